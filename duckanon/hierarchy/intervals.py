"""Intervals: equal width with nested multiples, given cut points, and the data's quantiles."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal, localcontext
from itertools import accumulate, pairwise
from math import inf, nextafter, prod
from operator import mul
from typing import Any, ClassVar

from sqlglot import exp

from duckanon.engine.sql.relations import call, cast, col, is_finite, named, number, subquery, table, text
from duckanon.errors import HierarchyError
from duckanon.hierarchy.rules import (
    Field,
    Labelling,
    Rule,
    exact,
    floor_div,
    limits,
    plain,
    sequence,
    whole,
    written,
)

_EXACT_LIMIT = 10**36
"""Beyond this many units HUGEINT arithmetic could overflow."""
_FLOAT_LIMIT = 2**50
"""Beyond this many units a DOUBLE could get into the neighbouring interval."""
_FINEST = 30
"""Most decimal places that HUGEINT and DECIMAL can count and print."""
_SHORT = {"TINYINT", "SMALLINT", "INTEGER", "INT", "UTINYINT", "USMALLINT", "UINTEGER"}
_NAN = "nan"
_CONTEXT = Context(prec=60, rounding=ROUND_HALF_EVEN)


def _floating(field: Field, scale: int) -> bool:
    """Return whether the column is computed as DOUBLE: floats, and what is too fine for exact arithmetic."""
    if field.type.family == "float" or scale > _FINEST:
        return True
    digits = field.type.scale if field.type.family == "decimal" else 0
    return scale + digits > 38 and scale > digits


def _double(field: Field) -> exp.Expr:
    # A FLOAT is converted through its text, so that 0.7 is 0.7 and not slightly less.
    return cast(col("text"), "DOUBLE") if field.type.name in {"FLOAT", "REAL"} else cast(col("value"), "DOUBLE")


def _clamped(value: exp.Expr, low: exp.Expr, high: exp.Expr) -> exp.Expr:
    return call("greatest", call("least", value, high), low)


def _units(field: Field, scale: int) -> exp.Expr:
    """Return ``floor(value * 10**scale)`` as HUGEINT, for integers and decimals.

    Units smaller than one are clamped to the limit; of larger units there are never too many.
    """
    value: exp.Expr = col("value")
    if field.type.name in _SHORT and scale == 0:
        # Four times as fast, and far from overflowing.
        return cast(value, "BIGINT")
    if scale < 0:
        return _large_units(field, -scale)
    bound = _EXACT_LIMIT // 10**scale
    if field.type.family == "decimal" and scale + field.type.scale > 38:
        return _cut_digits(field.type.scale, scale)
    if field.type.name == "UHUGEINT":
        value = call("least", cast(value, "UHUGEINT"), cast(number(bound), "UHUGEINT"))
    if field.type.family == "integer" or not field.type.scale:
        return exp.paren(_scaled(_clamped(cast(value, "HUGEINT"), number(-bound), number(bound)), scale))
    whole_part = cast(call("trunc", value), "HUGEINT")
    fraction = exp.paren(exp.Sub(this=value.copy(), expression=call("trunc", value.copy())))
    if scale == 0:
        return _clamped(_floor(whole_part, fraction), number(-bound), number(bound))
    held = _clamped(whole_part, number(-bound), number(bound))
    shifted = call("floor", exp.Mul(this=fraction, expression=number(10**scale)))
    return exp.paren(exp.Add(this=_scaled(held, scale), expression=cast(shifted, "HUGEINT")))


def _scaled(value: exp.Expr, scale: int) -> exp.Expr:
    return exp.Mul(this=value, expression=number(10**scale)) if scale else value


def _floor(whole_part: exp.Expr, fraction: exp.Expr) -> exp.Expr:
    """Truncation rounds negative fractions up; this rounds them down."""
    below = exp.Case().when(exp.LT(this=fraction, expression=number(0)), number(1)).else_(number(0))
    return exp.paren(exp.Sub(this=whole_part, expression=below))


def _large_units(field: Field, power: int) -> exp.Expr:
    """Return ``floor(value / 10**power)`` as HUGEINT."""
    value: exp.Expr = col("value")
    if field.type.name == "UHUGEINT":
        if power > 38:
            return cast(number(0), "HUGEINT")
        return cast(
            exp.IntDiv(this=cast(value, "UHUGEINT"), expression=cast(text(str(10**power)), "UHUGEINT")), "HUGEINT"
        )
    if field.type.family == "integer" or not field.type.scale:
        entire = cast(value, "HUGEINT")
    else:
        fraction = exp.Sub(this=value.copy(), expression=call("trunc", value.copy()))
        entire = _floor(cast(call("trunc", value), "HUGEINT"), exp.paren(fraction))
    if power > 38:
        # No integer is as large as this unit, which HUGEINT cannot represent: only the sign matters.
        return exp.Case().when(exp.LT(this=entire, expression=number(0)), number(-1)).else_(number(0))
    # The quotient rounded towards zero, minus one if that rounded up: nothing is added that could overflow.
    unit = cast(text(str(10**power)), "HUGEINT")
    quotient = exp.paren(exp.IntDiv(this=entire, expression=unit))
    above = exp.LT(this=entire.copy(), expression=exp.Mul(this=quotient.copy(), expression=unit.copy()))
    return exp.paren(exp.Sub(this=quotient, expression=exp.Case().when(above, number(1)).else_(number(0))))


def _cut_digits(places: int, scale: int) -> exp.Expr:
    """Return ``floor(value * 10**scale)`` of a decimal with more ``places`` than that: further digits are cut off.

    The product would have too many digits, so the digits are taken from the text.
    """
    digits = call("replace", call("replace", cast(col("value"), "VARCHAR"), text("-"), text("")), text("."), text(""))
    size = exp.paren(exp.Sub(this=call("length", digits), expression=number(places - scale)))
    leading = call("left", digits.copy(), size)
    units = cast(call("concat", text("0"), leading), "HUGEINT")
    rest = call("right", digits.copy(), number(places - scale))
    more = exp.Case().when(call("regexp_matches", rest, text("[1-9]")), number(1)).else_(number(0))
    negative = exp.LT(this=col("value"), expression=number(0))
    below = exp.Sub(this=exp.Neg(this=units.copy()), expression=more)
    return exp.Case().when(negative, below).else_(units)


def _printed(units: exp.Expr, scale: int) -> exp.Expr:
    """Return the text of ``units / 10**scale``, exactly and without trailing zeros."""
    if 0 < scale <= _FINEST:
        unit = cast(text(f"{Decimal(1).scaleb(-scale):f}"), f"DECIMAL({scale + 1},{scale})")
        digits = cast(exp.Mul(this=cast(units, "DECIMAL(38,0)"), expression=unit), "VARCHAR")
        return call("rtrim", call("rtrim", digits, text("0")), text("."))
    digits = cast(units, "VARCHAR")
    if scale == 0:
        return digits
    zero = exp.EQ(this=units.copy(), expression=number(0))
    tail = "0" * -scale if -20 <= scale < 0 else f"e{-scale}"
    return exp.Case().when(zero, text("0")).else_(call("concat", digits, text(tail)))


def _number_of_units(units: exp.Expr, scale: int) -> exp.Expr:
    """Return the DOUBLE nearest to ``units / 10**scale``."""
    if -22 <= scale <= 22:
        factor = cast(number(10 ** abs(scale)), "DOUBLE")
        operation = exp.Div if scale >= 0 else exp.Mul
        return exp.paren(operation(this=cast(units, "DOUBLE"), expression=factor))
    return cast(call("concat", cast(units, "VARCHAR"), text(f"e{-scale}")), "DOUBLE")


@dataclass(frozen=True)
class Intervals(Rule):
    """Equal widths from an origin; each level joins ``factors[i]`` neighbours of the one below."""

    name: ClassVar[str] = "intervals"
    width: Decimal
    origin: Decimal = Decimal(0)
    factors: tuple[int, ...] = ()

    @classmethod
    def make(cls, width: object, origin: object, factors: object, levels: object) -> Intervals:
        """Check the parameters and return the rule."""
        wide, start = exact("intervals", "width", width), exact("intervals", "origin", origin)
        if wide <= 0:
            raise HierarchyError("The 'width' parameter of intervals must be a number > 0.")
        if isinstance(factors, int) or factors is None:
            count = whole("intervals", "levels", levels) if levels is not None else 1
            if factors is not None and levels is None:
                raise HierarchyError("One number as 'factors' of intervals needs 'levels' beside it.")
            steps = [2 if factors is None else factors] * (count - 1)
        else:
            steps = list(factors) if factors == [] or factors == () else sequence("intervals", "factors", factors)
            if levels is not None and whole("intervals", "levels", levels) != len(steps) + 1:
                raise HierarchyError("The 'levels' of intervals must be one more than the number of 'factors'.")
        rule = cls(wide, start, tuple(whole("intervals", "factors", f, least=2) for f in steps))
        rule._grid(_FLOAT_LIMIT)
        return rule

    def parameters(self) -> dict[str, Any]:
        return {"width": plain(self.width), "origin": plain(self.origin), "factors": list(self.factors)}

    def depth(self) -> int:
        return len(self.factors) + 1

    def _grid(self, limit: int) -> tuple[int, int, int, int]:
        """Return scale, width and origin in units of ``10**-scale``, and the index where the outermost groups begin."""
        exponents = [int(d.as_tuple().exponent) for d in (self.width, self.origin) if d]
        exponent = min(exponents)
        scale = -exponent if exponent < 0 or exponent > 6 else 0
        wide, start = (int(d.scaleb(scale, _CONTEXT)) for d in (self.width, self.origin))
        coarsest = prod(self.factors)
        outermost = (limit - abs(start)) // (wide * coarsest) * coarsest
        if outermost < 1 or scale > 300:
            raise HierarchyError("The 'width', 'origin' and 'factors' of intervals need too many digits together.")
        return scale, wide, start, outermost

    def label(self, field: Field) -> Labelling:
        if field.type.kind != "number":
            raise field.refuse(self.name, "a number")
        floating = _floating(field, max(self._grid(_FLOAT_LIMIT)[0], 0))
        scale, wide, start, outermost = self._grid(_FLOAT_LIMIT if floating else _EXACT_LIMIT // 10)
        if floating:
            source = self._float_index(field, scale, wide, start, outermost)
        else:
            units = exp.paren(exp.Sub(this=_units(field, scale), expression=exp.paren(number(start))))
            index = _clamped(floor_div(units, wide), number(-outermost - 1), number(outermost))
            source = field.present(key=index)
        spans = list(accumulate((1, *self.factors), mul))
        levels = [self._label(f"b{i}", scale, wide, start, outermost, span) for i, span in enumerate(spans, 1)]
        # The bounds are columns of their own, because a label uses each several times.
        bounds = {f"b{i}": _first(span, wide, start) for i, span in enumerate(spans, 1)}
        index_table = field.engine.fresh("index")
        field.engine.create(index_table, source)
        query = field.keyed(exp.select("code", "key").from_(table(index_table)), levels, **bounds)
        return Labelling(query, len(levels), scratch=(index_table,))

    def _float_index(self, field: Field, scale: int, wide: int, start: int, outermost: int) -> exp.Select:
        """Estimate the interval's number, then correct it by comparing with the interval's own bounds."""

        def bound(index: exp.Expr) -> exp.Expr:
            units = exp.Add(this=exp.Mul(this=exp.paren(index), expression=number(wide)), expression=number(start))
            return _number_of_units(exp.paren(units), scale)

        def literal(value: float) -> exp.Expr:
            return cast(text(repr(value)), "DOUBLE")

        def nearest(units: int) -> exp.Expr:
            # The outermost bounds of a wide grid lie beyond every DOUBLE; an infinite bound would spoil the quotient.
            value = float(Decimal(units).scaleb(-scale, _CONTEXT))
            return literal(min(max(value, -sys.float_info.max), sys.float_info.max))

        low, high = nearest(start - (outermost + 1) * wide), nearest(start + outermost * wide)
        held = field.present(v=_double(field))
        # Divided before the origin is subtracted: the difference of two large numbers could overflow.
        quotient = exp.Sub(
            this=exp.Div(this=_clamped(col("v", "a"), low, high), expression=nearest(wide)),
            expression=literal(start / wide),
        )
        ends = cast(number(-outermost - 1), "DOUBLE"), cast(number(outermost), "DOUBLE")
        estimate = cast(_clamped(call("floor", quotient), *ends), "BIGINT")
        guessed = exp.select(col("code", "a"), col("v", "a"), named(estimate, "k")).from_(subquery(held, "a"))
        k, v = col("k", "b"), col("v", "b")
        above = exp.Add(this=k, expression=number(1))
        index = (
            exp.Case()
            .when(call("isnan", v.copy()), number(outermost + 1))
            .when(exp.EQ(this=v.copy(), expression=literal(inf)), number(outermost))
            .when(exp.EQ(this=v.copy(), expression=literal(-inf)), number(-outermost - 1))
            .when(exp.LTE(this=bound(above), expression=v), call("least", above.copy(), number(outermost)))
            .when(exp.LTE(this=bound(k.copy()), expression=v.copy()), call("least", k.copy(), number(outermost)))
            .else_(call("greatest", exp.Sub(this=k.copy(), expression=number(1)), number(-outermost - 1)))
        )
        return exp.select(col("code", "b"), named(cast(index, "BIGINT"), "key")).from_(subquery(guessed, "b"))

    @staticmethod
    def _label(bound: str, scale: int, wide: int, start: int, outermost: int, factor: int) -> exp.Expr:
        key, low = col("key"), col(bound)
        high = exp.paren(exp.Add(this=low.copy(), expression=number(wide * factor)))
        inner = call("concat", text("["), _printed(low, scale), text(", "), _printed(high, scale), text(")"))
        least, most = (Decimal(start + sign * outermost * wide).scaleb(-scale, _CONTEXT) for sign in (-1, 1))
        return (
            exp.Case()
            .when(exp.GT(this=key.copy(), expression=number(outermost)), text(_NAN), copy=False)
            .when(exp.EQ(this=key.copy(), expression=number(outermost)), text(f">= {written(most)}"), copy=False)
            .when(exp.LT(this=key.copy(), expression=number(-outermost)), text(f"< {written(least)}"), copy=False)
            .else_(inner, copy=False)
        )


def _first(factor: int, wide: int, start: int) -> exp.Expr:
    """Return where the group of ``factor`` intervals that ``key`` is in begins, in units."""
    groups = exp.Mul(this=cast(floor_div(col("key"), factor), "HUGEINT"), expression=number(wide * factor))
    return exp.paren(exp.Add(this=groups, expression=exp.paren(number(start))))


@dataclass(frozen=True)
class Cuts(Rule):
    """Given cut points, one list for each level; each level keeps some of the cuts of the level below."""

    name: ClassVar[str] = "intervals"
    cuts: tuple[tuple[Decimal, ...], ...]

    @classmethod
    def make(cls, cuts: object) -> Cuts:
        """Check the parameters and return the rule."""
        levels = sequence("intervals", "cuts", cuts)
        if not any(isinstance(level, list | tuple) for level in levels):
            levels = [levels]
        checked: list[tuple[Decimal, ...]] = []
        for position, level in enumerate(levels, 1):
            points = [exact("intervals", "cuts", c) for c in sequence("intervals", "cuts", level)]
            if any(a >= b for a, b in pairwise(points)):
                raise HierarchyError(f"The cuts of level {position} must be ascending, each once.")
            if checked and not set(points) <= set(checked[-1]):
                raise HierarchyError(
                    f"The cuts of level {position} must all be cuts of level {position - 1}: "
                    "otherwise the levels do not nest."
                )
            checked.append(tuple(points))
        return cls(tuple(checked))

    def parameters(self) -> dict[str, Any]:
        return {"cuts": [[plain(c) for c in level] for level in self.cuts]}

    def depth(self) -> int:
        return len(self.cuts)

    def label(self, field: Field) -> Labelling:
        if field.type.kind != "number":
            raise field.refuse(self.name, "a number")
        floating = field.type.family == "float"
        # Types that Parquet does not have are counted as text.
        value = _double(field) if floating else cast(col("value"), field.type.name)
        levels = [_binned(level, field, 0, len(level)) for level in self.cuts]
        if floating:
            nan = call("isnan", col("key", "v"))
            levels = [exp.Case().when(nan.copy(), text(_NAN)).else_(level) for level in levels]
        named_levels = [named(level, f"l{i}") for i, level in enumerate(levels, 1)]
        query = exp.select(col("code", "v"), *named_levels).from_(subquery(field.present(key=value), "v"))
        return Labelling(query, len(levels))


def _binned(cuts: Sequence[Decimal], field: Field, low: int, high: int) -> exp.Expr:
    """Return the label of a value known to lie between cut ``low - 1`` and cut ``high``, by halving."""
    if low == high:
        if low == 0:
            return text(f"< {written(cuts[0])}")
        if low == len(cuts):
            return text(f">= {written(cuts[-1])}")
        return text(f"[{written(cuts[low - 1])}, {written(cuts[low])})")
    middle = (low + high) // 2
    left, right = _binned(cuts, field, low, middle), _binned(cuts, field, middle + 1, high)
    return exp.Case().when(_below(cuts[middle], field), left).else_(right)


def _below(cut: Decimal, field: Field) -> exp.Expr:
    """Return whether a value lies below a cut: below the first value of its own type that does not."""
    kind, key = field.type, col("key", "v")
    if kind.family == "float":
        return exp.LT(this=key, expression=cast(text(repr(_first_not_below(cut))), "DOUBLE"))
    unit = Decimal(1).scaleb(-kind.scale)
    with localcontext(Context(prec=400)):
        first = (cut / unit).to_integral_value(ROUND_CEILING)
        least, most = limits(kind)
        if first <= least:
            return exp.false()
        if first > most:
            return exp.true()
        bound = first * unit
    return exp.LT(this=key, expression=cast(text(f"{bound:f}"), kind.name))


def _first_not_below(cut: Decimal) -> float:
    """Return the smallest DOUBLE that is not below a cut; each DOUBLE is taken as the number that it is written as.

    Examples
    --------
    >>> _first_not_below(Decimal("0.7")), _first_not_below(Decimal(2**53 + 1))
    (0.7, 9007199254740994.0)
    """
    nearest = float(cut)
    # A cut may have more digits than a DOUBLE, and the nearest one may then lie below it.
    return nearest if Decimal(repr(nearest)) >= cut else nextafter(nearest, inf)


@dataclass(frozen=True)
class Quantiles(Rule):
    """Cut points at the data's quantiles, rounded; further levels keep every n-th of them."""

    name: ClassVar[str] = "quantiles"
    note: ClassVar[str] = " (cut points from the data's quantiles, rounded)"
    bins: int
    then: tuple[int, ...] = ()

    @classmethod
    def make(cls, bins: object, then: object) -> Quantiles:
        """Check the parameters and return the rule."""
        count = whole("quantiles", "bins", bins, least=2)
        if count > 1000:
            raise HierarchyError("The 'bins' parameter of quantiles must be at most 1000.")
        further = [then] if isinstance(then, int) else [] if not then else sequence("quantiles", "then", then)
        chain = [count, *(whole("quantiles", "then", b, least=2) for b in further)]
        if any(a % b or a == b for a, b in pairwise(chain)):
            raise HierarchyError("Each number of 'then' of quantiles must divide the one before it, 'bins' first.")
        return cls(count, tuple(chain[1:]))

    def parameters(self) -> dict[str, Any]:
        return {"bins": self.bins, "then": list(self.then)}

    def label(self, field: Field) -> Labelling:
        cuts = self.cuts(field)
        return Labelling(field.present(), 0) if cuts is None else cuts.label(field)

    def cuts(self, field: Field) -> Cuts | None:
        """Return the cut points that a column gives; None where it gives none."""
        if field.type.kind != "number":
            raise field.refuse(self.name, "a number")
        points = self._points(field)
        if not points:
            return None
        step = _rounding(points, self.bins, field.type.family == "integer")
        rounded = [_round(p, step) for p in points]
        levels: list[tuple[Decimal, ...]] = []
        for bins in (self.bins, *self.then):
            every = self.bins // bins
            chosen = tuple(sorted(set(rounded[every - 1 :: every])))
            # A level with the same cuts as the level below would repeat it.
            if chosen and (not levels or len(chosen) < len(levels[-1])):
                levels.append(chosen)
        return Cuts(tuple(levels))

    def _points(self, field: Field) -> list[Decimal]:
        """Return the first value with at least i/bins of the rows below it, for i = 1 .. bins - 1."""
        finite = is_finite(col("v"))
        base = exp.select(col("code"), named(_double(field), "v"), col("n")).from_(table(field.values))
        running = exp.Window(
            this=exp.Sum(this=col("n")),
            order=exp.Order(expressions=[exp.Ordered(this=col("code"))]),
            spec=exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW"),
        )
        before = exp.Sub(this=running, expression=col("n"))
        total = exp.Window(this=exp.Sum(this=col("n")))
        counted = exp.select(col("v"), named(before, "below"), named(total, "total")).from_(subquery(base, "b"))
        counted = counted.where(finite)
        bucket = exp.IntDiv(this=exp.Mul(this=col("below"), expression=number(self.bins)), expression=col("total"))
        query = exp.select(named(bucket, "bucket"), exp.Min(this=col("v")), exp.Max(this=col("v")))
        rows = sorted(field.engine.rows(query.from_(subquery(counted, "c")).group_by(number(1))))
        points: list[Decimal] = []
        for i in range(1, self.bins) if rows else ():
            # If the last value has more rows than a bin, the cut is at that value.
            reached = next((first for at, first, _ in rows if at >= i), rows[-1][2])
            points.append(Decimal(repr(float(reached))))
        return points


def _rounding(points: Sequence[Decimal], bins: int, integer: bool) -> Decimal:
    """Return the round step, 1, 2 or 5 times a power of ten, next below a quarter of the usual distance of two cuts."""
    with localcontext(_CONTEXT):
        distance = (points[-1] - points[0]) / max(1, bins - 2) / 4
        if distance <= 0:
            distance = abs(points[0]) / 10 or Decimal(1)
        power = Decimal(1).scaleb(distance.adjusted())
        step = next(m * power for m in (5, 2, 1) if m * power <= distance)
    return max(step, Decimal(1)) if integer else step


def _round(value: Decimal, step: Decimal) -> Decimal:
    with localcontext(_CONTEXT):
        result = (value / step).to_integral_value() * step
        return result.normalize() if result else Decimal(0)


_INSIDE = re.compile(r"\[(.+), (.+)\)")
_BELOW = re.compile(r"< (.+)")
_FROM = re.compile(r">= (.+)")


def number_range(label: str) -> tuple[Decimal | None, Decimal | None] | None:
    """Return where the interval of a label begins and where the next one does, exactly; None if it is no interval.

    Examples
    --------
    >>> number_range("[15, 20)"), number_range("< 18"), number_range("nan"), number_range("*")
    ((Decimal('15'), Decimal('20')), (None, Decimal('18')), (None, None), None)
    """
    if label == _NAN:
        return None, None
    for pattern, place in ((_BELOW, (None, 1)), (_FROM, (1, None)), (_INSIDE, (1, 2))):
        match = pattern.fullmatch(label)
        if match is not None:
            low, high = (Decimal(match.group(i)) if i is not None else None for i in place)
            return low, high
    return None
