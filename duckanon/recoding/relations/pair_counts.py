"""How often values of two columns occur together, before and after: in the original, and in what is published of it.

Most numbers occur once, so that each column of them would seem to determine every other. Columns with more than ten
different numbers are therefore counted in ten intervals of equal width, the same before and after. A published cell
counts as the middle of what it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.encoding.row_words import named_in
from duckanon.engine.sql.relations import (
    cast,
    col,
    conjunction,
    named,
    number,
    param,
    same,
    subquery,
    table,
    text,
    union_all,
)
from duckanon.recoding.relations.column_domain import size

if TYPE_CHECKING:
    from duckanon.plan.plan import Plan
    from duckanon.plan.roles import Attribute
    from duckanon.recoding.relations.relations import ReleaseRelations

BINS = 10
"""The number of intervals; columns with no more different numbers than this are counted value by value."""


def source_rows(plan: Plan, passed: Sequence[Attribute]) -> exp.Query:
    """Return ``(q_0, ..., p_0, ...)`` of the rows that a release was made from."""
    quasi = [named(plan.expression(a), f"q_{j}") for j, a in enumerate(plan.roles.quasi_identifiers)]
    theirs = [named(plan.expression(a), f"p_{i}") for i, a in enumerate(passed)]
    return exp.select(*quasi, *theirs).from_(subquery(plan.relation.query.copy(), "s"))


@dataclass(frozen=True)
class _Scale:
    """How the values of a column are counted: by their texts, or by equal intervals from ``low`` to ``high``.

    Both ends are values of the table: statements get them as parameters, whose names have the number of the column.
    """

    low: float | None = None
    high: float | None = None
    column: int = 0

    @property
    def params(self) -> dict[str, float]:
        """The parameters of statements that count by intervals."""
        if self.low is None or self.high is None:
            return {}
        return {f"low{self.column}": self.low / 2, f"width{self.column}": self.high / 2 - self.low / 2}

    def bin_of(self, value: exp.Expr) -> exp.Expr:
        """Return the interval of a number as text."""
        low, width = (cast(param(f"{name}{self.column}"), "DOUBLE") for name in ("low", "width"))
        # Divided by two first, so that the widest possible range does not overflow.
        above = exp.paren(exp.Sub(this=exp.paren(exp.Div(this=value, expression=number(2))), expression=low))
        share = exp.Mul(this=exp.Div(this=above, expression=width), expression=number(BINS))
        below = exp.Least(this=exp.Floor(this=share), expressions=[number(BINS - 1)])
        return cast(cast(exp.Greatest(this=below, expressions=[number(0)]), "BIGINT"), "VARCHAR")

    def text_of(self, plain: exp.Expr, value: exp.Expr | None) -> exp.Expr:
        """Return what a value counts as: its interval where it is a number that has one, else its text."""
        if self.low is None or value is None:
            return plain
        has_value = exp.Not(this=exp.Is(this=value.copy(), expression=exp.null()))
        return exp.case().when(has_value, self.bin_of(value)).else_(plain)


def pair_counts(relations: ReleaseRelations) -> str:
    """Create ``pairs(released, first, second, x, y, n)`` of every two columns, and return its name."""
    engine = relations.engine
    names = [*(domain.name for domain in relations.domains), *(name for name, _ in relations.passed)]
    every = [*_quasi_scales(relations), *_passed_scales(relations)]
    scales = [replace(scale, column=column) for column, scale in enumerate(every)]
    params = {name: value for scale in scales for name, value in scale.params.items()}
    before, after, pairs = engine.fresh("counted_before"), engine.fresh("counted_after"), engine.fresh("pairs")
    try:
        original = _from_rows(relations, scales) if relations.passed else _from_codes(relations, scales)
        for name, query in ((before, original), (after, _released(relations, scales))):
            engine.create(name, query, named_in(query, params))
        sides = ((before, exp.false()), (after, exp.true()))
        places = list(combinations(range(len(names)), 2))
        parts: list[exp.Query] = [_pair(side, flag, names, i, j) for side, flag in sides for i, j in places]
        engine.create(pairs, union_all(parts))
    finally:
        engine.drop(before, after)
    return pairs


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


def _quasi_scales(relations: ReleaseRelations) -> list[_Scale]:
    counts = [exp.Count(this=exp.Distinct(expressions=[col("span")])), *_ends(col("span"))]
    query = exp.select(col("j"), *counts).from_(table(relations.table("column_values"))).group_by(col("j"))
    scales = {int(j): _scale(*rest) for j, *rest in relations.engine.rows(query)}
    return [scales.get(j, _Scale()) for j in range(len(relations.domains))]


def _passed_scales(relations: ReleaseRelations) -> list[_Scale]:
    scales = []
    for i, (_, kind) in enumerate(relations.passed):
        number_of = size(col(f"p_{i}"), kind)
        if number_of is None:
            scales.append(_Scale())
            continue
        counts = [exp.Count(this=exp.Distinct(expressions=[col("v")])), *_ends(col("v"))]
        values = exp.select(named(cast(number_of, "DOUBLE"), "v")).from_(subquery(relations.source_rows(), "s"))
        scales.append(_scale(*relations.engine.row(exp.select(*counts).from_(subquery(values, "d")))))
    return scales


def _ends(value: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    return exp.Min(this=value), exp.Max(this=value.copy())


def _scale(distinct: int, low: float | None, high: float | None) -> _Scale:
    if low is None or high is None or distinct <= BINS or not high / 2 - low / 2 > 0:
        return _Scale()
    return _Scale(float(low), float(high))


def _from_codes(relations: ReleaseRelations, scales: Sequence[_Scale]) -> exp.Query:
    """Return ``(x_0, ..., n)`` of the original, of which the distinct combinations of codes are there."""
    query = exp.select(named(cast(exp.Sum(this=col("n", "f")), "BIGINT"), "n"))
    query = query.from_(table(relations.table("frequency"), "f"))
    for j, scale in enumerate(scales):
        alias = f"v_{j}"
        on = [exp.EQ(this=col("j", alias), expression=number(j))]
        on.append(exp.EQ(this=col("code", alias), expression=col(f"c_{j}", "f")))
        query = query.join(table(relations.table("column_values"), alias), on=conjunction(on))
        query = query.select(named(scale.text_of(col("value", alias), col("span", alias)), f"x_{j}"))
    return query.group_by(exp.var("ALL"))


def _from_rows(relations: ReleaseRelations, scales: Sequence[_Scale]) -> exp.Query:
    """Return ``(x_0, ..., n)`` of the original, row by row."""
    query = exp.select(named(exp.Count(this=exp.Star()), "n")).from_(subquery(relations.source_rows(), "s"))
    types = [*((f"q_{j}", a.type) for j, a in enumerate(relations.domains)), *_typed(relations)]
    for place, ((name, kind), scale) in enumerate(zip(types, scales, strict=True)):
        query = query.select(named(_text_of(col(name, "s"), kind, scale), f"x_{place}"))
    return query.group_by(exp.var("ALL"))


def _typed(relations: ReleaseRelations) -> list[tuple[str, str]]:
    return [(f"p_{i}", kind) for i, (_, kind) in enumerate(relations.passed)]


def _text_of(value: exp.Expr, kind: str, scale: _Scale) -> exp.Expr:
    size_of = size(value.copy(), kind)
    return scale.text_of(cast(value, "VARCHAR"), None if size_of is None else cast(size_of, "DOUBLE"))


def _released(relations: ReleaseRelations, scales: Sequence[_Scale]) -> exp.Query:
    """Return ``(x_0, ..., n)`` of the published rows, class by class, with what they have besides."""
    query = exp.select(named(col("n", "r" if relations.passed else "l"), "n"))
    query = query.from_(table(relations.table("labelled"), "l"))
    for j, attribute in enumerate(relations.domains):
        label, scale = col(f"l_{j}", "l"), scales[j]
        if scale.low is None:
            query = query.select(named(label, f"x_{j}"))
            continue
        alias = f"c_{j}"
        on = [same(col("class_id", alias), col("class_id", "l"))]
        on.append(exp.EQ(this=col("attribute", alias), expression=text(attribute.name)))
        query = query.join(table(relations.table("class_cells"), alias), on=conjunction(on))
        low, high = (exp.paren(exp.Div(this=col(c, alias), expression=number(2))) for c in ("lo", "hi"))
        middle = exp.paren(exp.Add(this=low, expression=high))
        query = query.select(named(scale.text_of(label, middle), f"x_{j}"))
    if relations.passed:
        on = [same(col("class_id", "r"), col("class_id", "l"))]
        query = query.join(subquery(relations.class_rows(), "r"), on=conjunction(on))
        for i, (name, kind) in enumerate(_typed(relations)):
            place = len(relations.domains) + i
            query = query.select(named(_text_of(col(name, "r"), kind, scales[place]), f"x_{place}"))
    return query


__all__ = ["BINS", "pair_counts", "source_rows"]
