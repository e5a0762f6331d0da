"""How often values of two columns occur together, before and after: in the original, and in what is published of it.

Most numbers occur once: of them as they are each column tells everything of every other, whatever became of them. So
numbers of which there are more than ten are counted in ten intervals of equal width, the same before and after. A
published cell counts as the middle of what it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.engine.sql.relations import cast, col, conjunction, named, number, same, subquery, table, text, union_all
from duckanon.recoding.relations.relations import Described, Relations, size

if TYPE_CHECKING:
    from duckanon.plan.plan import Plan
    from duckanon.plan.roles import Attribute

BINS = 10
"""Into how many intervals numbers are put; those that have no more values are taken as they are."""


@dataclass(frozen=True)
class Passed:
    """Columns that are published as they are, by name and type.

    ``before`` gives ``(q_0, ..., p_0, ...)`` of the rows of the original, quasi-identifiers first, ``after``
    ``(class_id, p_0, ..., n)`` of the published rows.
    """

    columns: Sequence[tuple[str, str]]
    before: Callable[[], exp.Query]
    after: Callable[[], exp.Query]


def source_rows(plan: Plan, passed: Sequence[Attribute]) -> exp.Query:
    """Return ``(q_0, ..., p_0, ...)`` of the rows that a release was made from."""
    own = [named(plan.expression(a), f"q_{j}") for j, a in enumerate(plan.roles.quasi_identifiers)]
    theirs = [named(plan.expression(a), f"p_{i}") for i, a in enumerate(passed)]
    return exp.select(*own, *theirs).from_(subquery(plan.relation.query.copy(), "s"))


@dataclass(frozen=True)
class _Scale:
    """How the values of a column are told apart: by their texts, or by the intervals from ``low`` to ``high``."""

    low: float | None = None
    high: float | None = None

    def bin_of(self, value: exp.Expr) -> exp.Expr:
        """Return the interval of a number as text."""
        assert self.low is not None
        assert self.high is not None
        low, width = number(self.low / 2), number(self.high / 2 - self.low / 2)
        # Halves, so that the widest range of all is a number, too.
        above = exp.paren(exp.Sub(this=exp.paren(exp.Div(this=value, expression=number(2))), expression=low))
        share = exp.Mul(this=exp.Div(this=above, expression=width), expression=number(BINS))
        below = exp.Least(this=exp.Floor(this=share), expressions=[number(BINS - 1)])
        return cast(cast(exp.Greatest(this=below, expressions=[number(0)]), "BIGINT"), "VARCHAR")

    def told(self, plain: exp.Expr, value: exp.Expr | None) -> exp.Expr:
        """Return what a value counts as: its interval where it is a number that has one, else its text."""
        if self.low is None or value is None:
            return plain
        known = exp.Not(this=exp.Is(this=value.copy(), expression=exp.null()))
        return exp.case().when(known, self.bin_of(value)).else_(plain)


def pair_counts(relations: Relations, attributes: Sequence[Described], passed: Passed | None = None) -> str:
    """Create ``pairs(released, first, second, x, y, n)`` of every two columns, and return its name."""
    engine = relations.engine
    columns = passed.columns if passed is not None else ()
    names = [*(a.name for a in attributes), *(name for name, _ in columns)]
    scales = [*_quasi_scales(relations, len(attributes)), *_passed_scales(relations, passed)]
    before, after, found = engine.fresh("counted_before"), engine.fresh("counted_after"), engine.fresh("pairs")
    try:
        known = _from_codes(relations, scales) if passed is None else _from_rows(attributes, passed, scales)
        engine.create(before, known)
        engine.create(after, _released(relations, attributes, passed, scales))
        sides = ((before, exp.false()), (after, exp.true()))
        places = list(combinations(range(len(names)), 2))
        parts: list[exp.Query] = [_pair(side, flag, names, i, j) for side, flag in sides for i, j in places]
        engine.create(found, union_all(parts))
    finally:
        engine.drop(before, after)
    return found


def _pair(counted: str, released: exp.Expr, names: Sequence[str], i: int, j: int) -> exp.Query:
    query = exp.select(
        named(released.copy(), "released"),
        named(text(names[i]), "first"),
        named(text(names[j]), "second"),
        named(col(f"x_{i}"), "x"),
        named(col(f"x_{j}"), "y"),
        named(cast(exp.Sum(this=col("n")), "BIGINT"), "n"),
    )
    return query.from_(table(counted)).group_by(col(f"x_{i}"), col(f"x_{j}"))


def _quasi_scales(relations: Relations, width: int) -> list[_Scale]:
    counts = [exp.Count(this=exp.Distinct(expressions=[col("span")])), *_ends(col("span"))]
    query = exp.select(col("j"), *counts).from_(table(relations["column_values"])).group_by(col("j"))
    found = {int(j): _scale(*rest) for j, *rest in relations.engine.rows(query)}
    return [found.get(j, _Scale()) for j in range(width)]


def _passed_scales(relations: Relations, passed: Passed | None) -> list[_Scale]:
    if passed is None:
        return []
    scales = []
    for i, (_, kind) in enumerate(passed.columns):
        own = size(col(f"p_{i}"), kind)
        if own is None:
            scales.append(_Scale())
            continue
        counts = [exp.Count(this=exp.Distinct(expressions=[col("v")])), *_ends(col("v"))]
        values = exp.select(named(cast(own, "DOUBLE"), "v")).from_(subquery(passed.before(), "s"))
        scales.append(_scale(*relations.engine.row(exp.select(*counts).from_(subquery(values, "d")))))
    return scales


def _ends(value: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    return exp.Min(this=value), exp.Max(this=value.copy())


def _scale(distinct: int, low: float | None, high: float | None) -> _Scale:
    if low is None or high is None or distinct <= BINS or not high / 2 - low / 2 > 0:
        return _Scale()
    return _Scale(float(low), float(high))


def _from_codes(relations: Relations, scales: Sequence[_Scale]) -> exp.Query:
    """Return ``(x_0, ..., n)`` of the original, of which the distinct combinations of codes are there."""
    query = exp.select(named(cast(exp.Sum(this=col("n", "f")), "BIGINT"), "n"))
    query = query.from_(table(relations["frequency"], "f"))
    for j, scale in enumerate(scales):
        alias = f"v_{j}"
        on = [exp.EQ(this=col("j", alias), expression=number(j))]
        on.append(exp.EQ(this=col("code", alias), expression=col(f"c_{j}", "f")))
        query = query.join(table(relations["column_values"], alias), on=conjunction(on))
        query = query.select(named(scale.told(col("value", alias), col("span", alias)), f"x_{j}"))
    return query.group_by(exp.var("ALL"))


def _from_rows(attributes: Sequence[Described], passed: Passed, scales: Sequence[_Scale]) -> exp.Query:
    """Return ``(x_0, ..., n)`` of the original, row by row."""
    query = exp.select(named(exp.Count(this=exp.Star()), "n")).from_(subquery(passed.before(), "s"))
    types = [*((f"q_{j}", a.type) for j, a in enumerate(attributes)), *_typed(passed)]
    for place, ((name, kind), scale) in enumerate(zip(types, scales, strict=True)):
        query = query.select(named(_told(col(name, "s"), kind, scale), f"x_{place}"))
    return query.group_by(exp.var("ALL"))


def _typed(passed: Passed) -> list[tuple[str, str]]:
    return [(f"p_{i}", kind) for i, (_, kind) in enumerate(passed.columns)]


def _told(value: exp.Expr, kind: str, scale: _Scale) -> exp.Expr:
    own = size(value.copy(), kind)
    return scale.told(cast(value, "VARCHAR"), None if own is None else cast(own, "DOUBLE"))


def _released(
    relations: Relations, attributes: Sequence[Described], passed: Passed | None, scales: Sequence[_Scale]
) -> exp.Query:
    """Return ``(x_0, ..., n)`` of the published rows, class by class, with what they have besides."""
    query = exp.select(named(col("n", "l" if passed is None else "r"), "n"))
    query = query.from_(table(relations["labelled"], "l"))
    for j, attribute in enumerate(attributes):
        label, scale = col(f"l_{j}", "l"), scales[j]
        if scale.low is None:
            query = query.select(named(label, f"x_{j}"))
            continue
        alias = f"c_{j}"
        on = [same(col("class_id", alias), col("class_id", "l"))]
        on.append(exp.EQ(this=col("attribute", alias), expression=text(attribute.name)))
        query = query.join(table(relations["class_cells"], alias), on=conjunction(on))
        low, high = (exp.paren(exp.Div(this=col(c, alias), expression=number(2))) for c in ("lo", "hi"))
        middle = exp.paren(exp.Add(this=low, expression=high))
        query = query.select(named(scale.told(label, middle), f"x_{j}"))
    if passed is not None:
        on = [same(col("class_id", "r"), col("class_id", "l"))]
        query = query.join(subquery(passed.after(), "r"), on=conjunction(on))
        for i, (name, kind) in enumerate(_typed(passed)):
            place = len(attributes) + i
            query = query.select(named(_told(col(name, "r"), kind, scales[place]), f"x_{place}"))
    return query


__all__ = ["BINS", "Passed", "pair_counts", "source_rows"]
