"""The hierarchy that is made if none is given: round grids, calendars, masks, or one step to the top."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from duckanon.engine.sql.relations import call, cast, col, is_finite, table, text
from duckanon.errors import HierarchyError
from duckanon.hierarchy.rules import ColumnType, Field, Labelling, Rule, written
from duckanon.hierarchy.table import Hierarchy

if TYPE_CHECKING:
    from duckanon.engine.base import Engine

_FINEST = 50
"""Most intervals on the first level of a grid."""
_COARSEST = 3
"""A grid ends with the first level that has no more intervals than this."""
_SMALLEST = Decimal("1e-300")
"""The narrowest intervals: a DOUBLE hardly represents smaller numbers."""
_DISTINCT = 2**46
"""Most intervals between zero and a DOUBLE; an interval rule counts up to 2**50 units, of which one has up to five."""
_CODE_LENGTHS = range(2, 13)
_CODE_VALUES = 20
_CODE_SHARE = 0.9
_ONE_STEP = "made: one step to *"


@dataclass(frozen=True)
class Auto(Rule):
    """A placeholder for the hierarchy that ``auto`` makes once the column is known."""

    name: ClassVar[str] = "auto"

    def parameters(self) -> dict[str, Any]:
        return {}

    def label(self, field: Field) -> Labelling:
        raise HierarchyError("The hierarchy is made when it is bound to a column.")


def expected(type_name: str | None) -> str:
    """Return a description of what ``auto`` will make, as far as the type alone determines it."""
    if type_name is None:
        return "made: by the column's type and values"
    kind = ColumnType.parse(type_name)
    if kind.kind == "number":
        return "made: nested round grid"
    if kind.kind == "date":
        return "made: calendar"
    return "made: masks for codes of equal length, else one step to *" if kind.family == "text" else _ONE_STEP


def auto(engine: Engine, values: str, attribute: str, type_name: str, pairs: bool = False) -> Hierarchy:
    """Return a hierarchy for a column, from its type and the distinct values in the table ``values``.

    Numbers get a nested grid whose bounds are multiples of 5 or 10 times a power of ten, dates the calendar's levels,
    text codes of equal length a mask from the right, everything else one step to the top; with ``pairs``, text is
    joined with its neighbours in the alphabet, two by two, instead.
    """
    field = Field(engine, values, attribute, ColumnType.parse(type_name))
    if field.type.kind == "number":
        return _grid(field)
    if field.type.kind == "date":
        levels = ["month", "quarter", "year", "decade"]
        if field.type.family == "timestamp":
            levels.insert(0, "day")
        return Hierarchy.dates(levels).named(f"made: calendar ({', '.join(levels)})")
    if field.type.family == "text":
        length = _code_length(field)
        if length is not None:
            return Hierarchy.mask(levels=length - 1).named(
                f"made: masks from the right of codes of {length} characters"
            )
        if pairs:
            return Hierarchy.order(2).named(
                "made: neighbours in the alphabet, joined two by two and named by what they hold"
            )
    return Hierarchy.suppress().named(_ONE_STEP)


def _grid(field: Field) -> Hierarchy:
    value = cast(col("value"), "DOUBLE")
    # Whole numbers in a column of floats have the grid of whole numbers: sources differ in how they store them.
    whole = call("bool_and", exp.EQ(this=value.copy(), expression=call("floor", value.copy())))
    query = exp.select(exp.Min(this=value), exp.Max(this=value.copy()), whole).from_(table(field.values))
    if field.type.family == "float":
        query = query.where(is_finite(value.copy()))
    low, high, integer = field.engine.row(query)
    widths = grid_widths(low, high, bool(integer)) if low is not None else []
    if field.type.family == "float" and widths:
        # Too far from zero for a DOUBLE to distinguish the intervals, all values would be in the outermost one.
        farthest = Decimal(max(abs(low), abs(high)))
        widths = [w for w in widths if farthest <= w * _DISTINCT]
    if not widths:
        return Hierarchy.suppress().named(_ONE_STEP)
    factors = [int(b / a) for a, b in pairwise(widths)]
    shown = ", ".join(written(w) for w in widths)
    try:
        made = Hierarchy.intervals(width=widths[0], factors=factors)
    except HierarchyError:
        return Hierarchy.suppress().named(_ONE_STEP)
    return made.named(f"made: nested round grid of width {shown}")


def grid_widths(low: float, high: float, integer: bool) -> list[Decimal]:
    """Return nested widths for values between ``low`` and ``high``: 5, 10, 50, 100, ... times a power of ten.

    Examples
    --------
    >>> [str(w) for w in grid_widths(17, 90, integer=True)]
    ['5', '1E+1', '5E+1']
    >>> grid_widths(0, 1, integer=True)
    []
    """
    with localcontext(prec=400):
        least, most = Decimal(low), Decimal(high)
        spread = most - least
        if spread <= 0:
            return []
        width = Decimal(10) ** (spread.adjusted() - 3)
        if integer:
            width = max(width, Decimal(5))
        widths: list[Decimal] = []
        while True:
            groups = (
                int((most / width).to_integral_value("ROUND_FLOOR") - (least / width).to_integral_value("ROUND_FLOOR"))
                + 1
            )
            if groups <= 1:
                return widths
            if groups <= _FINEST + 1 and width >= _SMALLEST:
                widths.append(width.normalize())
            if groups <= _COARSEST:
                return widths
            # The first digit tells where in 1, 5, 10, 50, ... the width stands.
            width *= 2 if width.as_tuple().digits[0] == 5 else 5


def _code_length(field: Field) -> int | None:
    """Return the common length of a column of codes, or None if the column has no codes."""
    length = call("length", col("text"))
    code = call("regexp_full_match", col("text"), text("[0-9A-Z]+"))
    query = exp.select(
        exp.Count(this=col("text")), exp.Min(this=length), exp.Max(this=length.copy()), call("count_if", code)
    ).from_(table(field.values))
    count, shortest, longest, codes = field.engine.row(query)
    if count < _CODE_VALUES or shortest != longest or longest not in _CODE_LENGTHS:
        return None
    return int(longest) if codes >= _CODE_SHARE * count else None
