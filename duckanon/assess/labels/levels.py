"""The levels of hierarchies on which the labels of a table are, where duckanon did not make it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.assess.assessed_table import AssessedTable
from duckanon.encoding.dictionaries import dictionary
from duckanon.engine.sql.axes import present
from duckanon.engine.sql.relations import cast, col, named, number, same, subquery, table, text, union_all
from duckanon.errors import HierarchyError, RoleError, did_you_mean
from duckanon.hierarchy import auto, resolve
from duckanon.hierarchy.auto import Auto
from duckanon.hierarchy.match import matched_hierarchy

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.hierarchy import Levels

_BY_VALUES = ("order", "random", "quantiles")
"""Rules whose groups depend on which values there are."""


@dataclass(frozen=True)
class LabelLevels:
    """One quasi-identifier of a released table beside its hierarchy.

    ``places(label, level, leaves)`` has every label of the released column once; ``level`` is the one level on which
    all of them are, or None where the column mixes levels. ``values`` is the dictionary of the original column.
    """

    attribute: str
    levels: Levels
    values: str
    places: str
    level: int | None


def label_levels(original: AssessedTable, released: AssessedTable, hierarchies: Mapping[str, Any]) -> list[LabelLevels]:
    """Find the labels of every quasi-identifier; labels on no level are a HierarchyError with their number.

    Columns without a hierarchy get the one that ``anonymize`` would make. Where several levels fit a whole column, the
    lowest is taken; where none does, each label is on the lowest level that has it.
    """
    pairs = zip(released.quasi, original.quasi, strict=True)
    return [_label_levels(original, released, ours, theirs, hierarchies) for ours, theirs in pairs]


def _label_levels(
    original: AssessedTable, released: AssessedTable, name: str, source: str, hierarchies: Mapping[str, Any]
) -> LabelLevels:
    engine = original.engine
    values = dictionary(engine, original.query, source, original.quasi[source]).table
    levels = column_levels(original, released, name, source, values, hierarchies)
    labels = released_labels(released, name)
    candidates = candidates_of(engine, labels, values, levels)
    _require_level(released, name, candidates)
    level = common_level(engine, labels, candidates)
    chosen = exp.select(
        col("label"),
        named(exp.Min(this=col("level")), "level"),
        named(exp.ArgMin(this=col("leaves"), expression=col("level")), "leaves"),
    ).from_(table(candidates))
    if level is not None:
        chosen = chosen.where(exp.EQ(this=col("level"), expression=number(level)))
    places = engine.fresh("places")
    engine.create(places, chosen.group_by(col("label")))
    engine.drop(labels, candidates)
    return LabelLevels(name, levels, values, places, level)


def column_levels(
    original: AssessedTable,
    released: AssessedTable,
    name: str,
    source: str,
    values: str,
    hierarchies: Mapping[str, Any],
    own: str | None = None,
) -> Levels:
    """Return the hierarchy of a column, the given one or the one that ``anonymize`` would make, bound to its values.

    ``own`` is the dictionary of the original where others have added to ``values``: they did not shape its groups.
    """
    own = values if own is None else own
    lowered = {quasi.lower(): quasi for quasi in released.quasi}
    given = {}
    for key, spec in hierarchies.items():
        if key.lower() not in lowered:
            hint = did_you_mean(key, list(released.quasi))
            raise RoleError(f"A hierarchy is given for {key!r}, which is no quasi-identifier.{hint}")
        given[lowered[key.lower()]] = spec
    engine, kind = original.engine, original.types[source]
    hierarchy = resolve(given[name], engine, None) if name in given else None
    if hierarchy is not None and isinstance(hierarchy.rule, Auto):
        hierarchy = matched_hierarchy(engine, source, kind, own)
    if hierarchy is None:
        hierarchy = auto(engine, own, source, kind, pairs=_has_groups(released, name, own))
    if own != values and hierarchy.rule is not None and hierarchy.rule.name in _BY_VALUES:
        listed = exp.select(col("value")).from_(table(own)).where(present(col("value"))).order_by(col("code"))
        hierarchy = hierarchy.materialise(engine.arrow(listed).column(0), kind, engine)
    return hierarchy.bind(engine, values, source, kind, "top")


def _has_groups(released: AssessedTable, name: str, values: str) -> bool:
    """Return whether some cells of a column are neither values nor the top: then texts were put into groups."""
    engine, labels = released.engine, released_labels(released, name)
    values_of_column = exp.Subquery(this=exp.select(col("text")).from_(table(values)).where(present(col("text"))))
    other = exp.and_(
        exp.Not(this=exp.In(this=col("label"), query=values_of_column)),
        exp.NEQ(this=col("label"), expression=text("*")),
    )
    (count,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(labels)).where(other))
    engine.drop(labels)
    return bool(count)


def released_labels(released: AssessedTable, name: str) -> str:
    """Create ``(label, n)``: the labels of a released column as texts."""
    labels = released.engine.fresh("labels")
    label = cast(released.quasi[name].copy(), "VARCHAR")
    count = named(exp.Count(this=exp.Star()), "n")
    released.engine.create(
        labels, exp.select(named(label, "label"), count).from_(subquery(released.query, "s")).group_by(label.copy())
    )
    return labels


def candidates_of(engine: Engine, labels: str, values: str, levels: Levels | None) -> str:
    """Create ``(label, level, leaves, n)``: the labels on every level that has them, once without one where none has.

    Without a hierarchy, level 0 is the values themselves.
    """
    candidates = engine.fresh("candidates")
    on = same(col("label", "c"), col("label", "l"))
    standing = exp.select(col("label", "l"), col("level", "c"), col("leaves", "c"), col("n", "l")).from_(
        table(labels, "l")
    )
    level_labels = _own_labels(values) if levels is None else domain_labels(levels, values)
    engine.create(candidates, standing.join(subquery(level_labels, "c"), on=on, join_type="left"))
    return candidates


def _own_labels(values: str) -> exp.Select:
    return exp.select(
        named(col("text", "v"), "label"), named(number(0), "level"), named(cast(number(1), "BIGINT"), "leaves")
    ).from_(table(values, "v"))


def domain_labels(levels: Levels, values: str) -> exp.Query:
    """Return (label, level, leaves) of level 0, the values themselves, and of all levels above."""
    on = exp.EQ(this=col("code", "t"), expression=col("code", "v"))
    value_labels = _own_labels(values).join(table(levels.tree, "t"), on=on).where(col("known", "t"))
    parts: list[exp.Query] = [
        value_labels,
        exp.select(col("label"), col("level"), col("leaves")).from_(table(levels.leaves)),
    ]
    if levels.unknown:
        whole = cast(number(levels.size), "BIGINT")
        parts.append(exp.select(named(text(levels.top), "label"), named(number(0), "level"), named(whole, "leaves")))
    return union_all(parts)


def _require_level(released: AssessedTable, name: str, candidates: str) -> None:
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


def common_level(engine: Engine, labels: str, candidates: str) -> int | None:
    """Return the lowest level that has all labels, or None."""
    (total,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(labels)))
    counts = exp.select(col("level"), exp.Count(this=exp.Star())).from_(table(candidates)).group_by(col("level"))
    fitting = [int(level) for level, n in engine.rows(counts) if n == total and level is not None]
    return min(fitting, default=None)
