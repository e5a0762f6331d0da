"""What is known of a release: the relations that models, metrics, risk and comparison read.

Only what the recoding needs is made with the release. Everything else is a recipe: a table that is created when a
statement first asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.sql.relations import call, cast, col, in_utc, named, number, same, subquery, table, text, union_all
from duckanon.hierarchy.rules import ColumnType

if TYPE_CHECKING:
    from duckanon.engine.base import Engine

Recipe = Callable[[], exp.Query | str]
"""Gives the query of a relation, or the name of a table that it has created."""


class Relations(dict[str, str]):
    """The tables of relations by their names; those with a recipe are created on first use."""

    def __init__(self, engine: Engine, made: Mapping[str, str]) -> None:
        super().__init__(made)
        self.engine = engine
        self.recipes: dict[str, Recipe] = {}

    def __missing__(self, name: str) -> str:
        made = self.recipes[name]()
        if not isinstance(made, str):
            query, made = made, self.engine.fresh(name)
            self.engine.create(made, query)
        self[name] = made
        return made

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.recipes

    def drop(self, *keep: str) -> None:
        """Drop the tables, but for those named."""
        self.engine.drop(*(made for name, made in self.items() if name not in keep))

    def get(self, name: str, default: Any = None) -> Any:
        """Return the table of a relation, or the default where there is neither table nor recipe."""
        return self[name] if name in self else default  # noqa: SIM401 - this is that function


@dataclass(frozen=True)
class Described:
    """One quasi-identifier: its original values, and what the cells that may be published of it stand for.

    ``values(code, value, text, n)`` is its dictionary; ``cells(cell, level, leaves, lo, hi)`` has every cell once, lo
    and hi, within the range of the column, are the ends of intervals, and of other cells only there where no original
    value can tell them; ``covers(cell, code)`` says which values a cell can stand for.
    ``spanned`` says that lo and hi of all cells are given, so that nobody need look at what they cover. Both are
    queries, or what gives one when it is needed. ``spans`` is there where many cells are intervals: a query
    ``(cell, first, last, members)`` of those that stand for all values from one code to another, and the covers of the
    other cells. ``labels`` says that labels of the hierarchy are published, whose leaves count, and not intervals,
    whose ends do.
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

    Infinite values have no size, and neither has NaN.
    """
    kind = ColumnType.parse(type_name)
    if kind.family in ("integer", "decimal", "float"):
        # What Parquet cannot hold is counted as text, so a cast may meet text here.
        plain: exp.Expr = exp.TryCast(this=value, to=exp.DataType.build("DOUBLE"))
        return exp.case().when(call("isfinite", plain), plain.copy())
    if kind.family == "date":
        return exp.Div(this=call("epoch", value), expression=number(86400))
    if kind.family == "timestamp" or kind.name == "TIME":
        return call("epoch", in_utc(value, kind.name))
    return None


def describe(
    relations: Relations,
    attributes: Sequence[Described],
    labelled: Callable[[], exp.Query],
    members: Callable[[], exp.Query] | None = None,
) -> None:
    """Give the relations of cells and tuples their recipes.

    ``labelled(class_id, n, l_0, ...)`` are the published classes with the texts of their cells,
    ``members(class_id, c_0, ..., n)`` the rows of all classes by the codes of their original values. Without the
    latter, nothing that follows single rows is known. ``relations`` has classes and frequency already.
    """
    recipes = relations.recipes
    places = list(enumerate(attributes))
    recipes["labelled"] = labelled
    recipes["column_values"] = lambda: union_all([_values(j, a) for j, a in places])
    recipes["covers"] = lambda: union_all([_tagged(j, a.covers, "cell", "code") for j, a in places])
    recipes["cells"] = lambda: _cells(relations, attributes)
    recipes["class_cells"] = lambda: union_all([_class_cells(relations, j, a) for j, a in places])
    recipes["cell_rows"] = lambda: _cell_rows(relations)
    recipes["domain"] = lambda: union_all([_domain(a) for a in attributes])
    recipes["cell_values"] = lambda: _cell_values(relations)
    if members is not None:
        recipes["tuples"] = lambda: _tuples(members(), len(attributes))
        recipes["tuple_values"] = lambda: union_all([_tuple_values(relations, j, a) for j, a in places])


def _tagged(j: int, query: exp.Query | Callable[[], exp.Query], *columns: str) -> exp.Select:
    tag = named(cast(number(j), "INTEGER"), "j")
    own = query() if callable(query) else query.copy()
    return exp.select(tag, *(col(c) for c in columns)).from_(subquery(own, "t"))


def _values(j: int, attribute: Described) -> exp.Query:
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


def _cells(relations: Relations, attributes: Sequence[Described]) -> exp.Query:
    """Return ``(j, cell, level, leaves, lo, hi)``: every cell with the smallest and largest value it can stand for."""
    known = union_all([_tagged(j, a.cells, "cell", "level", "leaves", "lo", "hi") for j, a in enumerate(attributes)])
    if all(a.spanned for a in attributes):
        return known
    on = exp.and_(*(exp.EQ(this=col(c, "v"), expression=col(c, "o")) for c in ("j", "code")))
    spans = (
        exp.select(
            col("j", "o"),
            col("cell", "o"),
            named(exp.Min(this=col("span", "v")), "lo"),
            named(exp.Max(this=col("span", "v")), "hi"),
        )
        .from_(table(relations["covers"], "o"))
        .join(table(relations["column_values"], "v"), on=on)
        .group_by(col("j", "o"), col("cell", "o"))
    )
    own = exp.and_(exp.EQ(this=col("j", "s"), expression=col("j", "k")), same(col("cell", "s"), col("cell", "k")))
    return (
        exp.select(
            *(col(c, "k") for c in ("j", "cell")),
            named(cast(col("level", "k"), "INTEGER"), "level"),
            named(cast(col("leaves", "k"), "BIGINT"), "leaves"),
            *(named(exp.func("COALESCE", col(c, "k"), col(c, "s")), c) for c in ("lo", "hi")),
        )
        .from_(subquery(known, "k"))
        .join(subquery(spans, "s"), on=own, join_type="left")
    )


def _class_cells(relations: Relations, j: int, attribute: Described) -> exp.Query:
    on = exp.and_(exp.EQ(this=col("j", "p"), expression=number(j)), same(col("cell", "p"), col(f"l_{j}", "c")))
    return (
        exp.select(
            col("class_id", "c"),
            named(text(attribute.name), "attribute"),
            *(col(c, "p") for c in ("cell", "level", "leaves", "lo", "hi")),
        )
        .from_(table(relations["labelled"], "c"))
        .join(table(relations["cells"], "p"), on=on)
    )


def _cell_rows(relations: Relations) -> exp.Query:
    """Return ``(attribute, level, leaves, lo, hi, n)``: in how many published rows cells stand for that much."""
    keys = [col(c, "x") for c in ("attribute", "level", "leaves", "lo", "hi")]
    on = exp.EQ(this=col("class_id", "x"), expression=col("class_id", "c"))
    return (
        exp.select(*keys, named(cast(exp.Sum(this=col("n", "c")), "BIGINT"), "n"))
        .from_(table(relations["classes"], "c"))
        .join(table(relations["class_cells"], "x"), on=on)
        .where(exp.Not(this=col("suppressed", "c")))
        .group_by(*(key.copy() for key in keys))
    )


def _domain(attribute: Described) -> exp.Query:
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


def _cell_values(relations: Relations) -> exp.Query:
    on = exp.and_(*(exp.EQ(this=col(c, "v"), expression=col(c, "o")) for c in ("j", "code")))
    return (
        exp.select(col("attribute", "v"), col("cell", "o"), *(col(c, "v") for c in ("value", "number", "n")))
        .from_(table(relations["covers"], "o"))
        .join(table(relations["column_values"], "v"), on=on)
    )


def _tuples(members: exp.Query, width: int) -> exp.Query:
    codes = [col(f"c_{j}") for j in range(width)]
    order = exp.Order(expressions=[exp.Ordered(this=c.copy(), desc=False, nulls_first=False) for c in codes])
    rank = exp.Window(this=call("dense_rank"), order=order)
    columns = [named(cast(rank, "BIGINT"), "tuple_id"), col("class_id"), col("n"), *(c.copy() for c in codes)]
    return exp.select(*columns).from_(subquery(members, "m"))


def _tuple_values(relations: Relations, j: int, attribute: Described) -> exp.Query:
    on = exp.and_(
        exp.EQ(this=col("j", "v"), expression=number(j)), exp.EQ(this=col("code", "v"), expression=col(f"c_{j}", "t"))
    )
    # A tuple whose rows lie in several classes is there once for each.
    distinct = exp.select(col("tuple_id"), col(f"c_{j}")).distinct().from_(table(relations["tuples"]))
    return (
        exp.select(
            col("tuple_id", "t"), named(text(attribute.name), "attribute"), col("value", "v"), col("number", "v")
        )
        .from_(subquery(distinct, "t"))
        .join(table(relations["column_values"], "v"), on=on)
    )
