"""The texts of cells that somebody else wrote: intervals, points and sets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf, isfinite

from duckanon.hierarchy.rules import ColumnType

_DATE = r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?"
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_BOUND = rf"(?:{_DATE}|{_NUMBER})"
_SPAN = re.compile(rf"\s*([\[(]?)\s*({_BOUND})\s*(,|;|~|-|\.\.)\s*({_BOUND})\s*([\])]?)\s*")
_POINT = re.compile(rf"\s*({_BOUND})\s*")
_OPEN = re.compile(rf"\s*(<=|<|>=|>)\s*({_BOUND})\s*")
_BRACKETS = {"{": "}", "[": "]", "(": ")"}


@dataclass(frozen=True)
class Parsed:
    """A label as a text: bounds, of which either may be open, or the members of a set, or both where it may be both."""

    span: tuple[float, float, bool, bool] | None = None
    members: tuple[str, ...] = ()


def parse(label: str, type_name: str) -> Parsed:
    """Read a label as an interval, a point or a set; members still have to be values of the column.

    Examples
    --------
    >>> parse("[20, 30)", "BIGINT")
    Parsed(span=(20.0, 30.0, False, True), members=())
    >>> parse("20-30", "BIGINT").span, parse("(-5--1]", "DOUBLE").span
    ((20.0, 30.0, False, False), (-5.0, -1.0, True, False))
    >>> parse("{red, green}", "VARCHAR").members
    ('red', 'green')
    >>> parse("37.5", "BIGINT").span
    (37.5, 37.5, False, False)
    >>> parse("< 18", "BIGINT").span, parse(">= 65", "BIGINT").span
    ((-inf, 18.0, False, True), (65.0, inf, False, False))
    >>> parse("about forty", "BIGINT")
    Parsed(span=None, members=())
    """
    members = _members(label)
    found = _SPAN.fullmatch(label)
    if found is not None:
        opening, low, separator, high, closing = found.groups()
        bounds = size_of(low, type_name), size_of(high, type_name)
        if bool(opening) == bool(closing) and None not in bounds and bounds[0] <= bounds[1]:  # type: ignore[operator]
            span = (bounds[0], bounds[1], opening == "(", closing == ")")
            # Without brackets a comma may separate bounds or members; whether those are values, the column knows.
            return Parsed(span, members if separator in ",;" and not opening else ())  # type: ignore[arg-type]
    side = _OPEN.fullmatch(label)
    if side is not None:
        sign, end = side.groups()
        own = size_of(end, type_name)
        if own is not None:
            return Parsed((-inf, own, False, sign == "<") if sign[0] == "<" else (own, inf, sign == ">", False))
    point = _POINT.fullmatch(label)
    if point is not None:
        own = size_of(point.group(1), type_name)
        if own is not None:
            return Parsed((own, own, False, False))
    return Parsed(None, members)


_PART = r"(\"(?:[^\"]|\"\")*\"|[^,{}\"]+)"
_BETWEEN = re.compile(rf"\[{_PART}, {_PART}\]")
_SIDE = re.compile(rf"(<=|>=) {_PART}")


def text_range(label: str) -> tuple[str | None, str | None] | None:
    """Return the first and the last text of a range, None where it is open; None if the label is no range.

    Examples
    --------
    >>> text_range("[Laos, Peru]"), text_range(">= Peru"), text_range('[", a", b]')
    (('Laos', 'Peru'), ('Peru', None), (', a', 'b'))
    >>> text_range("{Laos, Peru}"), text_range("[Peru, Laos]")
    (None, None)
    """
    between = _BETWEEN.fullmatch(label)
    if between is not None:
        low, high = (_unquoted(part) for part in between.groups())
        # A list of two values in brackets may come in any order; a range comes in that of the texts.
        return (low, high) if low < high else None
    side = _SIDE.fullmatch(label)
    if side is not None:
        own = _unquoted(side.group(2))
        return (own, None) if side.group(1) == ">=" else (None, own)
    return None


def _unquoted(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part


def _members(label: str) -> tuple[str, ...]:
    inner = label.strip()
    bracketed = len(inner) > 1 and _BRACKETS.get(inner[0]) == inner[-1]
    if bracketed:
        inner = inner[1:-1]
    for separator in (",", ";", "~", "|"):
        if separator in inner:
            parts = [p.strip().strip("'\"") for p in inner.split(separator)]
            return tuple(dict.fromkeys(parts))
    return (inner.strip().strip("'\""),) if bracketed else ()


def size_of(bound: str, type_name: str) -> float | None:
    """Return a bound as ``facts.size`` would: dates as days, timestamps as seconds, all else as a number."""
    family = ColumnType.parse(type_name).family
    if family in ("date", "timestamp"):
        try:
            moment = datetime.fromisoformat(bound)
        except ValueError:
            return None
        seconds = moment.replace(tzinfo=UTC).timestamp()
        return seconds / 86400 if family == "date" else seconds
    try:
        found = float(bound)
    except ValueError:
        return None
    return found if isfinite(found) else None
