"""A quasi-identifier as the relations describe it: its values, and what the cells published of it stand for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from duckanon.engine.sql.dialect import epoch_seconds, is_finite
from duckanon.engine.sql.relations import col, in_utc, number
from duckanon.hierarchy.rules import ColumnType


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


__all__ = ["QuasiIdentifierDomain", "size"]
