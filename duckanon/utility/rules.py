"""Words whose hierarchy is a rule: codes that are masked or cut, of which any can come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from duckanon.utility.domain import WHOLE, Leaves
from duckanon.utility.learn_domain import Seen, listed

if TYPE_CHECKING:
    from duckanon.hierarchy import Hierarchy

NAMES = ("mask", "prefix")
"""Rules that label each value by itself, whatever other values there are, and labels like values."""


@dataclass(eq=False)
class Ruled(Leaves):
    """Published codes; a code that was not published finds the lowest published label that the rule gives it."""

    rule: Hierarchy | None = None

    def learn(self, labels: Sequence[str]) -> None:
        fresh = [x for x in labels if x != WHOLE and x not in self.place and x not in self.labels]
        for chain in _chains(self.rule, fresh):
            known = next((label for label in chain if label in self.place or label in self.labels), None)
            self.labels[chain[0]] = np.empty(0, dtype=np.int64) if known is None else self.members(known)


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
    found = hierarchy.materialise(list(labels), "VARCHAR").levels
    assert found is not None
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


__all__ = ["NAMES", "Ruled", "ruled"]
