"""Hierarchies that stay as they are: those made from the data are stored, those given are compared."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.sql.relations import col, named, table
from duckanon.errors import ConfigError
from duckanon.hierarchy import Hierarchy, resolve
from duckanon.hierarchy.auto import Auto
from duckanon.hierarchy.build import from_rule
from duckanon.hierarchy.dates import Age, Dates
from duckanon.hierarchy.intervals import Cuts, Intervals, Quantiles
from duckanon.hierarchy.masks import Mask, Prefix, Suppress
from duckanon.hierarchy.rules import ColumnType, Field
from duckanon.jobs.nights.fixed import REFRESH

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine
    from duckanon.hierarchy import Levels
    from duckanon.plan.roles import Attribute

_TOTAL = (Suppress, Intervals, Cuts, Dates, Age)
"""Rules that give a value the same labels whatever other values there are."""
RULES = "hierarchies.parquet"


@dataclass(frozen=True)
class Kept:
    """How the hierarchy of one quasi-identifier was given, and what it was when the recoding was stored.

    ``given`` is "table", the JSON of a rule, or None where one was made; ``rule`` is the JSON of a rule that does not
    look at the data, or None where ``levels`` has every value with its labels.
    """

    given: str | None
    rule: str | None
    source: str
    top: str
    levels: pa.Table | None = None

    @classmethod
    def of(
        cls,
        engine: Engine,
        attribute: Attribute,
        values: str,
        given: Hierarchy | None,
        used: Hierarchy,
        bound: Levels,
    ) -> Kept:
        """Return what is to be stored of a hierarchy; ``values`` is the dictionary of the column."""
        told = _told(given)
        if used.levels is not None:
            return cls(told, None, used.origin, bound.top, used.levels)
        rule: Any = used.rule
        if isinstance(rule, Quantiles):
            cuts = rule.cuts(Field(engine, values, attribute.name, ColumnType.parse(attribute.type)))
            rule = Suppress() if cuts is None else cuts
        if isinstance(rule, Mask) and rule.depth() is None:
            depth = bound.height - 1
            rule = Mask(rule.side, None, rule.character, depth) if depth else Suppress()
        if told is not None and isinstance(rule, Prefix) and _steady(rule, engine):
            return cls(told, told, used.origin, used.top)
        if isinstance(rule, _TOTAL) or (isinstance(rule, Mask | Prefix) and rule.depth() is not None):
            fixed = Hierarchy(None, rule, used.origin, used.top)
            return cls(told, json.dumps(fixed.to_rule(), sort_keys=True), used.origin, used.top)
        return cls(told, None, used.origin, bound.top, _listed(engine, values, bound))

    def hierarchy(self, name: str, given: Hierarchy | None) -> Hierarchy:
        """Return the hierarchy for tonight; a ConfigError where another one is given than was."""
        if _told(given) != self.given:
            raise ConfigError(f"The hierarchy of {name!r} is another one than when the recoding was stored. {REFRESH}")
        if given is not None and given.levels is not None:
            self._require_grown(name, given.levels)
            return given
        if given is not None and self.given is not None and self.rule == self.given:
            return given
        if self.rule is not None:
            return from_rule(json.loads(self.rule), None).named(self.source)
        return Hierarchy(self.levels, None, self.source, self.top)

    def _require_grown(self, name: str, levels: pa.Table) -> None:
        """Raise unless a table has all that it had; leaves that were added are welcome."""
        import pyarrow.compute as pc

        before = self.levels
        fine = before is not None and before.num_columns == levels.num_columns
        if before is not None and fine:
            at = pc.index_in(before.column(0).combine_chunks(), value_set=levels.column(0).combine_chunks())
            fine = at.null_count == 0 and all(
                levels.column(i).combine_chunks().take(at).equals(before.column(i).combine_chunks())
                for i in range(levels.num_columns)
            )
        if not fine:
            raise ConfigError(
                f"The hierarchy of {name!r} has changed since the recoding was stored: leaves may be added, but those "
                f"that were there must keep their labels. {REFRESH}"
            )


def _told(given: Hierarchy | None) -> str | None:
    if given is None or isinstance(given.rule, Auto):
        return None
    return "table" if given.levels is not None else json.dumps(given.to_rule(), sort_keys=True)


def _steady(rule: Prefix, engine: Engine) -> bool:
    """Say whether prefixes go on in a hierarchy that does not look at the data either."""
    follow = rule.then
    while follow is not None:
        found = resolve(follow, engine, rule.base)
        if found.levels is not None or isinstance(found.rule, _TOTAL):
            return True
        if not isinstance(found.rule, Prefix):
            return False
        rule, follow = found.rule, found.rule.then
    return True


def _listed(engine: Engine, values: str, bound: Levels) -> pa.Table:
    """Return the labels of all values that a hierarchy knows, in the order of the values."""
    import pyarrow as pa

    labels = [col(f"l{i}", "t") for i in range(1, bound.height + 1)]
    query = exp.select(named(col("text", "v"), "l0"), *labels).from_(table(bound.tree, "t"))
    query = query.join(table(values, "v"), on=exp.EQ(this=col("code", "v"), expression=col("code", "t")))
    found = engine.arrow(query.where(col("known", "t")).order_by(col("code", "v")))
    return found.cast(pa.schema([(name, pa.string()) for name in found.column_names])).combine_chunks()


def levels_file(position: int) -> str:
    """Return the name of the file with the labels of a quasi-identifier's values."""
    return f"levels-{position}.parquet"


def store(kept: list[Kept], folder: Path) -> list[str]:
    """Write hierarchies to Parquet files; return their names."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: [getattr(one, name) for one in kept] for name in ("given", "rule", "source", "top")}
    pq.write_table(pa.table({name: pa.array(own, pa.string()) for name, own in columns.items()}), folder / RULES)
    names = [RULES]
    for j, one in enumerate(kept):
        if one.levels is not None:
            pq.write_table(one.levels, folder / levels_file(j))
            names.append(levels_file(j))
    return names


def load(folder: Path) -> list[Kept]:
    """Return the hierarchies that ``store`` wrote."""
    import pyarrow.parquet as pq

    # One row for each quasi-identifier.
    rows = pq.read_table(folder / RULES).to_pylist()
    return [
        Kept(**row, levels=None if row["rule"] is not None else pq.read_table(folder / levels_file(j)))
        for j, row in enumerate(rows)
    ]


__all__ = ["Kept", "load", "store"]
