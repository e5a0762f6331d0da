"""Statements that encode rows for learners: every cell is looked up in a codebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from duckanon.engine.sql.relations import call, cast, col, left, named, number, same, subquery, table, text, union_all

ROWS = "duckanon_rows"


@dataclass(frozen=True)
class Encoded:
    """One attribute: its columns, and a query of its codebook.

    The codebook is ``(cell, feature, value)`` for the long form, ``(cell, f_0, f_1, ...)`` for the wide one, with
    ``names`` of its features.
    """

    columns: Sequence[str]
    book: exp.Query
    names: Sequence[str]

    @property
    def cell(self) -> exp.Expr:
        """The text by which a cell is looked up; NULL has one, too."""
        return cell_text(self.columns)


def cell_text(columns: Sequence[str]) -> exp.Expr:
    """Return one text for each cell of an attribute, which may have two columns for its bounds."""
    if len(columns) == 1:
        return cast(col(columns[0]), "VARCHAR")
    parts = [exp.PropertyEQ(this=text(c), expression=col(c)) for c in columns]
    return cast(exp.Struct(expressions=parts), "VARCHAR")


def distinct_cells(source: exp.Query, columns: Sequence[str], count: str) -> exp.Select:
    """Return ``(columns, cell, count)``: the different cells of an attribute with their number of rows."""
    keys = [col(c) for c in columns]
    query = exp.select(*keys, named(cell_text(columns), "cell"), named(exp.Count(this=exp.Star()), count))
    return query.from_(subquery(source, "s")).group_by(*(k.copy() for k in keys))


def long_form(source: exp.Query, attributes: Sequence[Encoded], keep: Sequence[str], row: str) -> exp.Select:
    """Return ``(row, keep, feature, value)``: a line for each feature of a row that is not 0."""
    parts: list[exp.Query] = []
    for j, attribute in enumerate(attributes):
        query = exp.select(col(row, "r"), *(col(k, "r") for k in keep), col("feature", "b"), col("value", "b"))
        query = query.from_(table(ROWS, "r"))
        parts.append(query.join(subquery(attribute.book, "b"), on=same(col(f"cell {j}", "r"), col("cell", "b"))))
    found = exp.select("*").from_(subquery(union_all(parts), "e"))
    return found.with_(ROWS, as_=_numbered(source, attributes, keep, row), materialized=True)


def wide_form(source: exp.Query, attributes: Sequence[Encoded], keep: Sequence[str], row: str) -> exp.Select:
    """Return ``(row, keep, features)``: a column for each feature, 0 for an unknown cell."""
    query = exp.select(col(row, "r"), *(col(k, "r") for k in keep)).from_(table(ROWS, "r"))
    for j, attribute in enumerate(attributes):
        alias = f"b_{j}"
        query = query.join(left(subquery(attribute.book, alias), same(col(f"cell {j}", "r"), col("cell", alias))))
        for i, name in enumerate(attribute.names):
            value = exp.func("COALESCE", col(f"f_{i}", alias), cast(number(0), "DOUBLE"))
            query = query.select(named(value, name))
    return query.with_(ROWS, as_=_numbered(source, attributes, keep, row), materialized=True)


def _numbered(source: exp.Query, attributes: Sequence[Encoded], keep: Sequence[str], row: str) -> exp.Select:
    """Return rows numbered in the order in which they are read, with the texts of their cells."""
    order = exp.Window(this=exp.RowNumber())
    cells = [named(attribute.cell, f"cell {j}") for j, attribute in enumerate(attributes)]
    numbers = named(exp.Sub(this=order, expression=number(1)), row)
    return exp.select(numbers, *(col(k) for k in keep), *cells).from_(subquery(source, "s"))


def as_json(rows: str, shape: str) -> exp.Select:
    """Return the rows of a JSON text, a list of objects, with types that are given in the same form."""
    listed = call("from_json", text(rows), text(shape))
    depth = exp.PropertyEQ(this=exp.to_identifier("max_depth"), expression=exp.convert(2))
    return exp.select(call("unnest", listed, depth))


__all__ = ["Encoded", "as_json", "cell_text", "distinct_cells", "long_form", "wide_form"]
