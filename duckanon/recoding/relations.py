"""The relations that describe a release, and that models, metrics, risk and comparison read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.encoding.words import named_in
from duckanon.engine.sql.relations import (
    RelationTables,
    call,
    cast,
    col,
    conjunction,
    epoch_seconds,
    in_utc,
    is_finite,
    named,
    number,
    param,
    relation,
    same,
    subquery,
    table,
    text,
    union_all,
)
from duckanon.hierarchy.rules import ColumnType

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.plan.plan import Plan
    from duckanon.plan.roles import Attribute


@dataclass(frozen=True)
class QuasiIdentifierDomain:
    """A quasi-identifier: its original values, and what the cells that may be published of it stand for.

    ``values(code, value, text, n)`` is its dictionary. ``cells(cell, level, leaves, lo, hi)`` has every cell once. lo
    and hi, within the range of the column, are the ends of intervals; of other cells they are given only where the
    original values do not tell them. ``covers(cell, code)`` says which values a cell can stand for. Both are queries,
    or functions that return one.
    ``spanned`` says that lo and hi of all cells are given, so that they are not computed from what cells cover.
    ``spans`` is given where many cells are intervals: a query ``(cell, first, last, members)`` of those that stand for
    all values from one code to another, and the covers of the other cells. ``labels`` says that labels of the
    hierarchy are published, of which the leaves count, and not intervals, of which the ends count.
    """

    name: str
    type: str
    values: str
    height: int | None
    leaves: int
    cells: exp.Query | Callable[[], exp.Query]
    covers: exp.Query | Callable[[], exp.Query]
    weight: float = 1.0
    spanned: bool = False
    spans: tuple[exp.Query, exp.Query] | None = None
    labels: bool = False

    @property
    def ordered(self) -> bool:
        """Whether values are numbers, dates or times, which have distances."""
        return size(col("value"), self.type) is not None


def size(value: exp.Expr, type_name: str) -> exp.Expr | None:
    """Return a value as a number: days for dates, seconds for times; None for types that have no distances.

    Infinite values and NaN have no size.
    """
    kind = ColumnType.parse(type_name)
    if kind.family in ("integer", "decimal", "float"):
        # Types that Parquet lacks are counted as texts, which the cast may meet here.
        plain: exp.Expr = exp.TryCast(this=value, to=exp.DataType.build("DOUBLE"))
        return exp.case().when(is_finite(plain), plain.copy())
    if kind.family == "date":
        return exp.Div(this=epoch_seconds(value), expression=number(86400))
    if kind.family == "timestamp" or kind.name == "TIME":
        return epoch_seconds(in_utc(value, kind.name))
    return None


class ReleaseRelations(RelationTables, ABC):
    """The relations of a release, from its classes and from what the cells of its quasi-identifiers stand for.

    A subclass gives tables or definitions of ``classes``, ``frequency`` and its further relations.
    """

    domains: Sequence[QuasiIdentifierDomain]
    """The quasi-identifiers."""
    passed: Sequence[tuple[str, str]]
    """The sensitive columns, which are published as they are, by name and type."""

    def __init__(self, engine: Engine, tables: Mapping[str, str], passed: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(engine, tables)
        self.passed = passed

    def lacks(self, name: str) -> bool:
        if name == "pairs":
            return len(self.domains) + len(self.passed) < 2
        return name in ("class_values", "domain_values") and not self.passed

    @relation
    @abstractmethod
    def labelled(self) -> exp.Query:
        """``(class_id, n, l_0, ...)``: the published classes with the texts of their cells."""

    @abstractmethod
    def member_rows(self) -> exp.Query:
        """Return ``(class_id, c_0, ..., n)``: the rows of all classes by the codes of their original values."""

    @abstractmethod
    def source_rows(self) -> exp.Query:
        """Return ``(q_0, ..., p_0, ...)`` of the rows of the original, p being the columns ``passed``."""

    @abstractmethod
    def class_rows(self) -> exp.Query:
        """Return ``(class_id, p_0, ..., n)`` of the published rows."""

    @relation
    def column_values(self) -> exp.Query:
        """``(j, attribute, code, value, number, span, n)``: the original values."""
        return union_all([_values(j, domain) for j, domain in enumerate(self.domains)])

    @relation
    def covers(self) -> exp.Query:
        """``(j, cell, code)``: the values that cells can stand for."""
        return union_all([_tagged(j, domain.covers, "cell", "code") for j, domain in enumerate(self.domains)])

    @relation
    def cells(self) -> exp.Query:
        """``(j, cell, level, leaves, lo, hi)``: every cell with the smallest and largest value it can stand for."""
        return _cells(self)

    @relation
    def class_cells(self) -> exp.Query:
        """``(class_id, attribute, cell, level, leaves, lo, hi)``: the cells of the published classes."""
        return union_all([_class_cells(self, j, domain) for j, domain in enumerate(self.domains)])

    @relation
    def cell_rows(self) -> exp.Query:
        """``(attribute, level, leaves, lo, hi, n)``: in how many published rows cells stand for that much."""
        return _cell_rows(self)

    @relation
    def domain(self) -> exp.Query:
        """``(attribute, kind, height, leaves, lo, hi, weight, labels)``: the quasi-identifiers."""
        return union_all([_domain(domain) for domain in self.domains])

    @relation
    def cell_values(self) -> exp.Query:
        """``(attribute, cell, value, number, n)``: the original values that each cell can stand for."""
        return _cell_values(self)

    @relation
    def tuples(self) -> exp.Query:
        """``(tuple_id, class_id, n, c_0, ...)``: combinations of original values, once for each of their classes."""
        return _tuples(self.member_rows(), len(self.domains))

    @relation
    def tuple_values(self) -> exp.Query:
        """``(tuple_id, attribute, value, number)``: the original values of the combinations."""
        return union_all([_tuple_values(self, j, domain) for j, domain in enumerate(self.domains)])

    @relation
    def pairs(self) -> str:
        """``(released, first, second, x, y, n)``: how often values of two columns occur together."""
        return pair_counts(self)


def _tagged(j: int, query: exp.Query | Callable[[], exp.Query], *columns: str) -> exp.Select:
    tag = named(cast(number(j), "INTEGER"), "j")
    rows = query() if callable(query) else query.copy()
    return exp.select(tag, *(col(c) for c in columns)).from_(subquery(rows, "t"))


def _values(j: int, attribute: QuasiIdentifierDomain) -> exp.Query:
    """Return ``(j, attribute, code, value, number, span, n)`` of the values that occur.

    ``number`` is the value's size, or its rank where it has none; ``span`` is NULL there.
    """
    span = size(col("value"), attribute.type)
    order = exp.Order(expressions=[exp.Ordered(this=col("code"), desc=False, nulls_first=False)])
    rank = exp.Sub(this=exp.Window(this=exp.RowNumber(), order=order), expression=number(1))
    null = exp.null()
    return (
        exp.select(
            named(cast(number(j), "INTEGER"), "j"),
            named(text(attribute.name), "attribute"),
            named(cast(col("code"), "INTEGER"), "code"),
            named(col("text"), "value"),
            named(cast(rank if span is None else span, "DOUBLE"), "number"),
            named(cast(null if span is None else span.copy(), "DOUBLE"), "span"),
            col("n"),
        )
        .from_(table(attribute.values))
        .where(exp.GT(this=col("n"), expression=number(0)))
    )


def _cells(relations: ReleaseRelations) -> exp.Query:
    columns = ("cell", "level", "leaves", "lo", "hi")
    given = union_all([_tagged(j, domain.cells, *columns) for j, domain in enumerate(relations.domains)])
    if all(a.spanned for a in relations.domains):
        return given
    on = exp.and_(*(exp.EQ(this=col(c, "v"), expression=col(c, "o")) for c in ("j", "code")))
    spans = (
        exp.select(
            col("j", "o"),
            col("cell", "o"),
            named(exp.Min(this=col("span", "v")), "lo"),
            named(exp.Max(this=col("span", "v")), "hi"),
        )
        .from_(table(relations.table("covers"), "o"))
        .join(table(relations.table("column_values"), "v"), on=on)
        .group_by(col("j", "o"), col("cell", "o"))
    )
    same_cell = exp.and_(exp.EQ(this=col("j", "s"), expression=col("j", "k")), same(col("cell", "s"), col("cell", "k")))
    return (
        exp.select(
            *(col(c, "k") for c in ("j", "cell")),
            named(cast(col("level", "k"), "INTEGER"), "level"),
            named(cast(col("leaves", "k"), "BIGINT"), "leaves"),
            *(named(exp.func("COALESCE", col(c, "k"), col(c, "s")), c) for c in ("lo", "hi")),
        )
        .from_(subquery(given, "k"))
        .join(subquery(spans, "s"), on=same_cell, join_type="left")
    )


def _class_cells(relations: ReleaseRelations, j: int, attribute: QuasiIdentifierDomain) -> exp.Query:
    on = exp.and_(exp.EQ(this=col("j", "p"), expression=number(j)), same(col("cell", "p"), col(f"l_{j}", "c")))
    return (
        exp.select(
            col("class_id", "c"),
            named(text(attribute.name), "attribute"),
            *(col(c, "p") for c in ("cell", "level", "leaves", "lo", "hi")),
        )
        .from_(table(relations.table("labelled"), "c"))
        .join(table(relations.table("cells"), "p"), on=on)
    )


def _cell_rows(relations: ReleaseRelations) -> exp.Query:
    keys = [col(c, "x") for c in ("attribute", "level", "leaves", "lo", "hi")]
    on = exp.EQ(this=col("class_id", "x"), expression=col("class_id", "c"))
    return (
        exp.select(*keys, named(cast(exp.Sum(this=col("n", "c")), "BIGINT"), "n"))
        .from_(table(relations.table("classes"), "c"))
        .join(table(relations.table("class_cells"), "x"), on=on)
        .where(exp.Not(this=col("suppressed", "c")))
        .group_by(*(key.copy() for key in keys))
    )


def _domain(attribute: QuasiIdentifierDomain) -> exp.Query:
    height = exp.null() if attribute.height is None else number(attribute.height)
    span = size(col("value"), attribute.type)
    ends = exp.null() if span is None else span
    return (
        exp.select(
            named(text(attribute.name), "attribute"),
            named(text("ordered" if attribute.ordered else "unordered"), "kind"),
            named(cast(height, "INTEGER"), "height"),
            named(cast(number(attribute.leaves), "BIGINT"), "leaves"),
            named(cast(exp.Min(this=ends), "DOUBLE"), "lo"),
            named(cast(exp.Max(this=ends.copy()), "DOUBLE"), "hi"),
            named(cast(number(attribute.weight), "DOUBLE"), "weight"),
            named(exp.true() if attribute.labels else exp.false(), "labels"),
        )
        .from_(table(attribute.values))
        .where(exp.GT(this=col("n"), expression=number(0)))
    )


def _cell_values(relations: ReleaseRelations) -> exp.Query:
    on = exp.and_(*(exp.EQ(this=col(c, "v"), expression=col(c, "o")) for c in ("j", "code")))
    return (
        exp.select(col("attribute", "v"), col("cell", "o"), *(col(c, "v") for c in ("value", "number", "n")))
        .from_(table(relations.table("covers"), "o"))
        .join(table(relations.table("column_values"), "v"), on=on)
    )


def _tuples(members: exp.Query, width: int) -> exp.Query:
    codes = [col(f"c_{j}") for j in range(width)]
    order = exp.Order(expressions=[exp.Ordered(this=c.copy(), desc=False, nulls_first=False) for c in codes])
    rank = exp.Window(this=call("dense_rank"), order=order)
    columns = [named(cast(rank, "BIGINT"), "tuple_id"), col("class_id"), col("n"), *(c.copy() for c in codes)]
    return exp.select(*columns).from_(subquery(members, "m"))


def _tuple_values(relations: ReleaseRelations, j: int, attribute: QuasiIdentifierDomain) -> exp.Query:
    on = exp.and_(
        exp.EQ(this=col("j", "v"), expression=number(j)), exp.EQ(this=col("code", "v"), expression=col(f"c_{j}", "t"))
    )
    # A tuple has a line for each class that its rows lie in.
    distinct = exp.select(col("tuple_id"), col(f"c_{j}")).distinct().from_(table(relations.table("tuples")))
    return (
        exp.select(
            col("tuple_id", "t"), named(text(attribute.name), "attribute"), col("value", "v"), col("number", "v")
        )
        .from_(subquery(distinct, "t"))
        .join(table(relations.table("column_values"), "v"), on=on)
    )


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


__all__ = ["BINS", "QuasiIdentifierDomain", "ReleaseRelations", "pair_counts", "size", "source_rows"]
