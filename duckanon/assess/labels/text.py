"""The texts of published labels, whoever wrote them: intervals, points, sets and ranges of texts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from math import inf, isfinite, nextafter

from duckanon.hierarchy.rules import ColumnType
from duckanon.hierarchy.table import TOP
from duckanon.release.cell_meaning import text_ends, unquoted

WHOLE = TOP
"""The label that covers every value."""
Span = tuple[float, float, bool, bool]
"""Lower and upper bound, and whether each is open."""

_DATE = r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?"
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_BOUND = rf"(?:{_DATE}|{_NUMBER})"
_SPAN = re.compile(rf"\s*([\[(]?)\s*({_BOUND})\s*(,|;|~|-|\.\.)\s*({_BOUND})\s*([\])]?)\s*")
_POINT = re.compile(rf"\s*({_BOUND})\s*")
_OPEN = re.compile(rf"\s*(<=|<|>=|>)\s*({_BOUND})\s*")
_CALENDAR = re.compile(r"(\d{4})(?:-(\d\d)|-Q([1-4])|-W(\d\d)|(s))?")
_QUOTED = re.compile(r'(?:^|, )"')
_MEMBER = re.compile(r'\s*"(?:[^"]|"")*"|[^,]+')
_BRACKETS = {"{": "}", "[": "]", "(": ")"}


@dataclass(frozen=True)
class Parsed:
    """A label as a text: bounds, of which either may be open, or the members of a set, or both where it may be both."""

    span: Span | None = None
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
    >>> parse("1970-Q1", "DATE").span
    (0.0, 90.0, False, True)
    >>> parse('{"a, b", c, "d, e"}', "VARCHAR").members
    ('a, b', 'c', 'd, e')
    """
    members = _members(label)
    between = _SPAN.fullmatch(label)
    if between is not None:
        opening, low, separator, high, closing = between.groups()
        bounds = size_of(low, type_name), size_of(high, type_name)
        if bool(opening) == bool(closing) and None not in bounds and bounds[0] <= bounds[1]:  # type: ignore[operator]
            span = (bounds[0], bounds[1], opening == "(", closing == ")")
            # Without brackets a comma may separate bounds or members; whether those are values, the column knows.
            return Parsed(span, members if separator in ",;" and not opening else ())  # type: ignore[arg-type]
    side = _OPEN.fullmatch(label)
    if side is not None:
        sign, end = side.groups()
        bound = size_of(end, type_name)
        if bound is not None:
            return Parsed((-inf, bound, False, sign == "<") if sign[0] == "<" else (bound, inf, sign == ">", False))
    point = _POINT.fullmatch(label)
    if point is not None:
        bound = size_of(point.group(1), type_name)
        if bound is not None:
            return Parsed((bound, bound, False, False))
    return Parsed(_calendar(label, type_name), members)


def _calendar(label: str, type_name: str) -> Span | None:
    """Return the days of a month, quarter, week, year or decade as the rule ``dates`` writes them."""
    match = _CALENDAR.fullmatch(label)
    if match is None or ColumnType.parse(type_name).kind != "date":
        return None
    year, month, quarter, week, decade = match.groups()
    try:
        if week:
            first = date.fromisocalendar(int(year), int(week), 1)
            last = first + timedelta(days=7)
        else:
            at = int(month) if month else 3 * int(quarter) - 2 if quarter else 1
            months = 1 if month else 3 if quarter else 120 if decade else 12
            first = date(int(year), at, 1)
            last = date(int(year) + (at - 1 + months) // 12, (at - 1 + months) % 12 + 1, 1)
    except (ValueError, OverflowError):
        return None
    low, high = (size_of(day.isoformat(), type_name) for day in (first, last))
    assert low is not None
    assert high is not None
    return (low, high, False, True)


def text_range(label: str) -> tuple[str | None, str | None] | None:
    """Return the first and the last text of a range, None where it is open; None if the label is not a range.

    Examples
    --------
    >>> text_range("[Laos, Peru]"), text_range(">= Peru"), text_range('[", a", b]')
    (('Laos', 'Peru'), ('Peru', None), (', a', 'b'))
    >>> text_range("{Laos, Peru}"), text_range("[Peru, Laos]")
    (None, None)
    """
    ends = text_ends(label)
    if ends is None or None in ends:
        return ends
    # A list of two values in brackets may come in any order; a range comes in that of the texts.
    return ends if ends[0] < ends[1] else None  # type: ignore[operator]


def _members(label: str) -> tuple[str, ...]:
    inner = label.strip()
    bracketed = len(inner) > 1 and _BRACKETS.get(inner[0]) == inner[-1]
    if bracketed:
        inner = inner[1:-1]
    if bracketed and _QUOTED.search(inner):
        # As duckanon writes sets: members with commas, braces or quotes are quoted, and quotes in them doubled.
        return tuple(dict.fromkeys(unquoted(part) for part in _MEMBER.findall(inner)))
    for separator in (",", ";", "~", "|"):
        if separator in inner:
            parts = [p.strip().strip("'\"") for p in inner.split(separator)]
            return tuple(dict.fromkeys(parts))
    return (inner.strip().strip("'\""),) if bracketed else ()


def size_of(bound: str, type_name: str) -> float | None:
    """Return a bound as ``column_domain.size`` does: dates as days, timestamps as seconds, all else as a number."""
    family = ColumnType.parse(type_name).family
    if family in ("date", "timestamp"):
        try:
            moment = datetime.fromisoformat(bound)
        except ValueError:
            return None
        seconds = moment.replace(tzinfo=UTC).timestamp()
        return seconds / 86400 if family == "date" else seconds
    try:
        value = float(bound)
    except ValueError:
        return None
    return value if isfinite(value) else None


def spans(label: str, type_name: str) -> list[Span] | None:
    """Return the intervals and points that a text covers, or None where it is neither.

    Examples
    --------
    >>> spans("[15, 20)", "BIGINT"), spans("{3, 5}", "BIGINT"), spans("old", "BIGINT")
    ([(15.0, 20.0, False, True)], [(3.0, 3.0, False, False), (5.0, 5.0, False, False)], None)
    """
    parsed = parse(label, type_name)
    if parsed.span is not None:
        return [parsed.span]
    points = [parse(member, type_name).span for member in parsed.members]
    return None if not points or None in points else [point for point in points if point is not None]


def outermost(spans_of_label: list[Span] | None) -> tuple[float, float] | None:
    """Return the lowest and the highest bound."""
    return (
        None
        if spans_of_label is None
        else (min(span[0] for span in spans_of_label), max(span[1] for span in spans_of_label))
    )


def half_open(span: Span, whole: bool) -> tuple[float, float]:
    """Return an interval with its lower bound in it and its upper bound outside.

    Examples
    --------
    >>> half_open((15, 34, False, False), whole=True), half_open((15, 20, False, True), whole=False)
    ((15, 35), (15, 20))
    """
    low, high, above, below = span
    if whole:
        return low + above, high + (not below)
    return (
        nextafter(low, inf) if above else low,
        high if below else nextafter(high, inf),
    )
