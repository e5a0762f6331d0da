"""Dates: the levels of the calendar, and age bands on a given day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from typing import Any, ClassVar

from sqlglot import exp

from duckanon.engine.sql.dialect import is_finite
from duckanon.engine.sql.relations import call, cast, col, number, text
from duckanon.errors import HierarchyError, did_you_mean
from duckanon.hierarchy.rules import ColumnType, Field, Labelling, Rule, floor_div, sequence, whole

LEVELS = ("day", "week", "month", "quarter", "year", "decade")
_DEFAULT = ("day", "month", "quarter", "year", "decade")


def day_of(value: exp.Expr, kind: ColumnType) -> exp.Expr:
    """Return the calendar day of a value, in UTC if it has a zone, whatever the zone of the session is."""
    if kind.zoned:
        value = call("timezone", text("UTC"), value)
    return cast(value, "DATE") if kind.family == "timestamp" else value


def _day(field: Field, rule: str) -> exp.Expr:
    if field.type.family not in {"date", "timestamp"}:
        raise field.refuse(rule, "a date or a timestamp")
    return day_of(col("value"), field.type)


def _padded(value: exp.Expr, digits: int) -> exp.Expr:
    return call("format", text(f"{{:0{digits}d}}"), cast(value, "BIGINT"))


def _finite(label: exp.Expr, day: exp.Expr) -> exp.Expr:
    """Infinite dates have no year: they keep a label of their own, which is no person's date."""
    return exp.Case().when(is_finite(day), label).else_(cast(day.copy(), "VARCHAR"))


def _label(level: str, day: exp.Expr) -> exp.Expr:
    year = call("year", day)
    if level == "day":
        parts = [_padded(call(part, day.copy()), 2) for part in ("month", "day")]
        return call("concat", _padded(year, 4), text("-"), parts[0], text("-"), parts[1])
    if level == "week":
        # A week belongs to the year of its Thursday. The functions of the database compute the first day of the year,
        # which fails for the earliest dates.
        since = cast(exp.paren(exp.Sub(this=call("isodow", day), expression=number(4))), "INTEGER")
        thursday = exp.paren(exp.Sub(this=day.copy(), expression=since))
        passed = exp.paren(exp.Sub(this=call("dayofyear", thursday), expression=number(1)))
        week = exp.Add(this=exp.IntDiv(this=passed, expression=number(7)), expression=number(1))
        return call("concat", _padded(call("year", thursday.copy()), 4), text("-W"), _padded(exp.paren(week), 2))
    if level == "month":
        return call("concat", _padded(year, 4), text("-"), _padded(call("month", day.copy()), 2))
    if level == "quarter":
        return call("concat", _padded(year, 4), text("-Q"), cast(call("quarter", day.copy()), "VARCHAR"))
    if level == "year":
        return _padded(year, 4)
    decade = exp.Mul(this=floor_div(cast(year, "BIGINT"), 10), expression=number(10))
    return call("concat", _padded(exp.paren(decade), 4), text("s"))


@dataclass(frozen=True)
class Dates(Rule):
    """Calendar levels that nest: day, month, quarter, year, decade; or day, week."""

    name: ClassVar[str] = "dates"
    levels: tuple[str, ...]

    @classmethod
    def make(cls, levels: object) -> Dates:
        """Check the parameters and return the rule."""
        if levels is None:
            return cls(_DEFAULT)
        names = sequence("dates", "levels", levels)
        for level in names:
            if level not in LEVELS:
                hint = did_you_mean(str(level), LEVELS)
                raise HierarchyError(f"Unknown level {level!r} of dates.{hint} Known: {', '.join(LEVELS)}.")
        positions = [LEVELS.index(level) for level in names]
        if any(a >= b for a, b in pairwise(positions)):
            raise HierarchyError("The 'levels' of dates must go from fine to coarse, each once.")
        if "week" in names and names[-1] != "week":
            after = names[names.index("week") + 1]
            raise HierarchyError(
                f"The levels of dates do not nest: a week can lie in two of {after!r}. "
                "'week' can only be the last level, after 'day' or alone."
            )
        return cls(tuple(names))

    def parameters(self) -> dict[str, Any]:
        return {"levels": list(self.levels)}

    def label(self, field: Field) -> Labelling:
        day = _day(field, self.name)
        # A DATE is a day already: that level would repeat the values.
        levels = [level for level in self.levels if level != "day" or field.type.family == "timestamp"]
        labels = [_finite(_label(level, col("key")), col("key")) for level in levels]
        return Labelling(field.keyed(field.present(key=day), labels), len(labels))


@dataclass(frozen=True)
class Age(Rule):
    """Birth date to age in completed years on a given day, then bands."""

    name: ClassVar[str] = "age"
    reference: date
    bands: tuple[int, ...]

    @classmethod
    def make(cls, reference_date: object, bands: object) -> Age:
        """Check the parameters and return the rule."""
        if isinstance(reference_date, str):
            try:
                reference_date = date.fromisoformat(reference_date)
            except ValueError:
                reference_date = None
        if isinstance(reference_date, datetime):
            reference_date = reference_date.date()
        if not isinstance(reference_date, date):
            raise HierarchyError("The 'reference_date' parameter of age must be a date such as 2024-05-17.")
        widths = [whole("age", "bands", b) for b in sequence("age", "bands", bands)]
        if any(b % a or a == b for a, b in pairwise(widths)):
            raise HierarchyError("Each number of 'bands' of age must be a multiple of the one before it.")
        return cls(reference_date, tuple(widths))

    def parameters(self) -> dict[str, Any]:
        return {"reference_date": self.reference.isoformat(), "bands": list(self.bands)}

    def depth(self) -> int:
        return len(self.bands) + 1

    def label(self, field: Field) -> Labelling:
        day = _day(field, self.name)
        birth = col("key")
        # In years without a 29 February, people born on that day become a year older on 1 March.
        position = exp.Add(
            this=exp.Mul(this=call("month", birth), expression=number(100)), expression=call("day", birth.copy())
        )
        today = self.reference.month * 100 + self.reference.day
        pending = exp.Case().when(exp.GT(this=position, expression=number(today)), number(1)).else_(number(0))
        years = exp.Sub(this=number(self.reference.year), expression=call("year", birth.copy()))
        age = exp.Sub(this=years, expression=pending)
        levels = [self._label(width) for width in (0, *self.bands)]
        return Labelling(field.keyed(field.present(key=day), levels, age=cast(age, "BIGINT")), len(levels))

    @staticmethod
    def _label(width: int) -> exp.Expr:
        age = col("age")
        if width == 0:
            label: exp.Expr = cast(age, "VARCHAR")
        else:
            low = exp.paren(exp.Mul(this=floor_div(age, width), expression=number(width)))
            high = exp.Add(this=low.copy(), expression=number(width))
            label = call("concat", text("["), cast(low, "VARCHAR"), text(", "), cast(high, "VARCHAR"), text(")"))
        unborn = exp.LT(this=age.copy(), expression=number(0))
        return _finite(exp.Case().when(unborn, text("< 0")).else_(label), col("key"))
