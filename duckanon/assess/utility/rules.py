"""Words whose hierarchy is a rule: codes that are masked or cut, of which any can come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from duckanon.assess.utility.domain import WHOLE, Leaves
from duckanon.assess.utility.learn_domain import Seen, listed
from duckanon.engine.open import workspace
from duckanon.engine.sql.relations import col, table
from duckanon.hierarchy.build import column
from duckanon.hierarchy.chain import chain as links_of

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.hierarchy import Hierarchy

NAMES = ("mask", "prefix")
"""Rules that label each value by itself, whatever other values there are, and labels like values."""


@dataclass(eq=False)
class Ruled(Leaves):
    """Published codes; a code that was not published finds the lowest published label that the rule gives it."""

    rule: Hierarchy | None = None
    aliases: dict[str, str] = field(default_factory=dict)

    def alias(self, label: str) -> str:
        return self.aliases.get(label, label)

    def learn(self, labels: Sequence[str]) -> None:
        fresh = [x for x in labels if x != WHOLE and x not in self.place and x not in self.labels]
        for chain in _chains(self.rule, fresh):
            known = next((label for label in chain if label in self.place or label in self.labels), None)
            self.labels[chain[0]] = np.empty(0, dtype=np.int64) if known is None else self.members(known)
            if known is not None:
                self.aliases[chain[0]] = self.alias(known)


def ruled(seen: Seen, hierarchy: Hierarchy, most: int) -> Ruled:
    """Return the published labels as a tree: those under which no other one lies are its leaves."""
    import pyarrow as pa

    chains = _chains(hierarchy, [label for label in seen.labels if label != WHOLE])
    inner = {label for chain in chains for label in chain[1:] if label != chain[0]}
    leaves = [chain for chain in chains if chain[0] not in inner]
    columns = [pa.array(column, pa.string()) for column in zip(*leaves, strict=True)]
    found = listed(seen, pa.table(columns, names=[f"l{i}" for i in range(len(columns))]), most, owned=True)
    own = {f.name: getattr(found, f.name) for f in fields(found)}
    return Ruled(**own, rule=hierarchy)


def _chains(hierarchy: Hierarchy | None, labels: Sequence[str]) -> list[tuple[str, ...]]:
    """Return each label with those that the rule puts above it."""
    if not labels or hierarchy is None:
        return []
    with workspace(None) as engine:
        above_them = _continued(hierarchy, engine)
        values, _ = column(engine, list(labels), "VARCHAR")
        bound = hierarchy.bind(engine, values.table, "labels", "VARCHAR", "top")
        on = exp.EQ(this=col("code", "t"), expression=col("code", "v"))
        above = [col(f"l{i}", "t") for i in range(1, bound.height + 1)]
        query = exp.select(col("known", "t"), col("text", "v"), *above).from_(table(values.table, "v"))
        rows = engine.arrow(query.join(table(bound.tree, "t"), on=on).order_by(col("code", "v")))
    chains = []
    for known, label, *up in zip(*(own.to_pylist() for own in rows.columns), strict=True):
        # Labels of a hierarchy that goes on from the shortest prefix are no codes, even if they begin like one.
        own = above_them.get(label)
        if own is None and not known:
            own = (up[-1],)
        chains.append((label, *up) if own is None else (*[label] * (len(up) + 1 - len(own)), *own))
    return chains


def _continued(hierarchy: Hierarchy, engine: Engine) -> dict[str, tuple[str, ...]]:
    """Return the labels of the hierarchy that goes on from the shortest prefix, each with those above it.

    Prefixes themselves are left out: the rule reads them as codes. A label with several parents has only the top.
    """
    *before, last = links_of(hierarchy, engine)
    if not before or last.levels is None:
        return {}
    columns = [own.to_pylist() for own in last.levels.columns]
    prefixes = set(columns[0])
    found: dict[str, tuple[str, ...]] = {}
    for level in range(1, len(columns) - 1):
        for label, *up in zip(*columns[level:], strict=True):
            if label in prefixes:
                continue
            known = found.setdefault(label, tuple(up))
            if len(known) == len(up) and known != tuple(up):
                found[label] = tuple(up[-1:])
    return found


__all__ = ["NAMES", "Ruled", "ruled"]
