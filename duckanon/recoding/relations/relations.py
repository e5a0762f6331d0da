"""The relations that describe a release, and that models, metrics, risk and comparison read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.engine.relation_tables import RelationTables, relation
from duckanon.engine.sql.relations import call, cast, col, named, number, same, subquery, table, text, union_all
from duckanon.recoding.relations.column_domain import QuasiIdentifierDomain, size
from duckanon.recoding.relations.pair_counts import pair_counts

if TYPE_CHECKING:
    from duckanon.engine.base import Engine


class ReleaseRelations(RelationTables):
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
    def labelled(self) -> exp.Query:
        """``(class_id, n, l_0, ...)``: the published classes with the texts of their cells."""
        raise NotImplementedError

    def member_rows(self) -> exp.Query:
        """Return ``(class_id, c_0, ..., n)``: the rows of all classes by the codes of their original values."""
        raise NotImplementedError

    def source_rows(self) -> exp.Query:
        """Return ``(q_0, ..., p_0, ...)`` of the rows of the original, p being the columns ``passed``."""
        raise NotImplementedError

    def class_rows(self) -> exp.Query:
        """Return ``(class_id, p_0, ..., n)`` of the published rows."""
        raise NotImplementedError

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


__all__ = ["ReleaseRelations"]
