"""Where the labels of a table that duckanon did not make stand in hierarchies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.disclosure.subject import Subject
from duckanon.encode import dictionary
from duckanon.errors import HierarchyError, RoleError, did_you_mean
from duckanon.hierarchy import auto, resolve
from duckanon.sqlgen.relations import cast, col, named, number, same, subquery, table, text, union_all

if TYPE_CHECKING:
    from duckanon.hierarchy import Levels


@dataclass(frozen=True)
class Placed:
    """One quasi-identifier of a released table beside its hierarchy.

    ``places(label, level, leaves)`` has every label of the released column once; ``level`` is the one level on which
    all of them stand, or None where the column mixes levels. ``values`` is the dictionary of the original column.
    """

    attribute: str
    levels: Levels
    values: str
    places: str
    level: int | None


def place(original: Subject, released: Subject, hierarchies: Mapping[str, Any]) -> list[Placed]:
    """Look up the labels of every quasi-identifier; those that no level has are a HierarchyError with their number.

    Columns without a hierarchy get the one that ``anonymize`` would make. Where several levels fit a whole column, the
    lowest is taken; where none does, each label stands on the lowest level that has it.
    """
    lowered = {name.lower(): name for name in released.quasi}
    given = {}
    for name, spec in hierarchies.items():
        if name.lower() not in lowered:
            hint = did_you_mean(name, list(released.quasi))
            raise RoleError(f"A hierarchy is given for {name!r}, which is no quasi-identifier.{hint}")
        given[lowered[name.lower()]] = spec
    pairs = zip(released.quasi, original.quasi, strict=True)
    return [_placed(original, released, ours, theirs, given) for ours, theirs in pairs]


def _placed(original: Subject, released: Subject, name: str, source: str, given: Mapping[str, Any]) -> Placed:
    engine = original.engine
    values = dictionary(engine, original.query, source, original.quasi[source]).table
    kind = original.types[source]
    hierarchy = resolve(given[name], engine, None) if name in given else auto(engine, values, source, kind)
    levels = hierarchy.bind(engine, values, source, kind, "top")
    labels, candidates, places = (engine.fresh(stem) for stem in ("labels", "candidates", "places"))
    label = cast(released.quasi[name].copy(), "VARCHAR")
    count = named(exp.Count(this=exp.Star()), "n")
    engine.create(
        labels, exp.select(named(label, "label"), count).from_(subquery(released.query, "s")).group_by(label.copy())
    )
    on = same(col("label", "c"), col("label", "l"))
    found = exp.select(col("label", "l"), col("level", "c"), col("leaves", "c"), col("n", "l")).from_(
        table(labels, "l")
    )
    engine.create(candidates, found.join(subquery(_domain_labels(levels, values), "c"), on=on, join_type="left"))
    _require_found(released, name, candidates)
    level = _common_level(released, labels, candidates)
    chosen = exp.select(
        col("label"),
        named(exp.Min(this=col("level")), "level"),
        named(exp.ArgMin(this=col("leaves"), expression=col("level")), "leaves"),
    ).from_(table(candidates))
    if level is not None:
        chosen = chosen.where(exp.EQ(this=col("level"), expression=number(level)))
    engine.create(places, chosen.group_by(col("label")))
    engine.drop(labels, candidates)
    return Placed(name, levels, values, places, level)


def _domain_labels(levels: Levels, values: str) -> exp.Query:
    """Return (label, level, leaves) of level 0, the values themselves, and of all levels above."""
    on = exp.EQ(this=col("code", "t"), expression=col("code", "v"))
    own = exp.select(
        named(col("text", "v"), "label"), named(number(0), "level"), named(cast(number(1), "BIGINT"), "leaves")
    )
    own = own.from_(table(values, "v")).join(table(levels.tree, "t"), on=on).where(col("known", "t"))
    parts: list[exp.Query] = [own, exp.select(col("label"), col("level"), col("leaves")).from_(table(levels.leaves))]
    if levels.unknown:
        whole = cast(number(levels.size), "BIGINT")
        parts.append(exp.select(named(text(levels.top), "label"), named(number(0), "level"), named(whole, "leaves")))
    return union_all(parts)


def _require_found(released: Subject, name: str, candidates: str) -> None:
    per_label = (
        exp.select(named(exp.Max(this=col("level")), "level"), named(exp.Max(this=col("n")), "n"))
        .from_(table(candidates))
        .group_by(col("label"))
    )
    missing = exp.Is(this=col("level"), expression=exp.null())
    labels, lost, rows = released.engine.row(
        exp.select(
            exp.Count(this=exp.Star()),
            exp.Sum(this=exp.case().when(missing, number(1)).else_(number(0))),
            exp.Sum(this=exp.case().when(missing.copy(), col("n")).else_(number(0))),
        ).from_(subquery(per_label, "l"))
    )
    if lost:
        raise HierarchyError(
            f"{lost} of {labels} labels of {name!r} ({rows} rows) are on no level of its hierarchy: it is not the one "
            "that made this table."
        )


def _common_level(released: Subject, labels: str, candidates: str) -> int | None:
    (total,) = released.engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(labels)))
    counts = exp.select(col("level"), exp.Count(this=exp.Star())).from_(table(candidates)).group_by(col("level"))
    fitting = [int(level) for level, n in released.engine.rows(counts) if n == total]
    return min(fitting, default=None)
