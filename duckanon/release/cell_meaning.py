"""What published cells stand for, read from the cells themselves and from the hierarchies of their columns.

Nothing here knows how rows were recoded. A cell is an interval, a set, a label of a hierarchy or a value; what it
stands for is a range of places in an order of the values, and where it is no range, a list of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation, localcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from duckanon.engine.sql.axes import choose, is_null
from duckanon.engine.sql.relations import cast, col, data_type, in_utc, is_finite, named, text
from duckanon.hierarchy.rules import ColumnType

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


NOWHERE = 2**31 - 1
"""A place after all values."""
_BETWEEN = re.compile(r"\[(.+), (.+)([\])])", re.DOTALL)
_SIDE = re.compile(r"(<=|<|>=) (.+)", re.DOTALL)
_YEAR = r"(\d{4,}|-\d{3,})"
_PART = r"(\"(?:[^\"]|\"\")*\"|[^,{}\"]+)"
_TEXTS = re.compile(rf"\[{_PART}, {_PART}\]")
_TEXT_SIDE = re.compile(rf"(<=|>=) {_PART}")
_DAY = re.compile(_YEAR + r"-(\d\d)-(\d\d)")
_CALENDAR = re.compile(_YEAR + r"(?:-(\d\d)|-Q([1-4])|-W(\d\d)|(s))?")
_MEMBER = re.compile(r'"((?:[^"]|"")*)"|([^,{}"]+)')
_CONTEXT = Context(prec=400)
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Shown:
    """A quasi-identifier, and how it is published.

    ``values`` is a table ``(code, value, text)`` of its values, with codes from 0 on. ``labels`` gives ``(l1, ...)``
    line by line in the order of the codes, and ``labelled`` the query ``(value, text, known, l1, ...)``; ``height``
    counts the levels, of which ``top`` is the last label. ``leaves`` are those of a hierarchy in the order in which it
    lists them, where that is the order of the values, too. With ``by_tree``, labels mean what the hierarchy says, even
    if they look like intervals.
    """

    name: str
    type: str
    kind: str
    values: str
    labels: Callable[[], pa.Table]
    labelled: Callable[[], exp.Query]
    leaves: pa.ChunkedArray | None
    height: int
    top: str
    by_tree: bool

    @property
    def family(self) -> str:
        """The family of its type; "other" where nothing can be computed with values."""
        kind = ColumnType.parse(self.type)
        return "time" if kind.name == "TIME" else "other" if kind.kind == "category" else kind.family


def extremes(type_name: str) -> tuple[str, str]:
    """Return texts of the smallest and the largest value of a type with distances.

    Examples
    --------
    >>> extremes("UTINYINT"), extremes("DECIMAL(4,1)"), extremes("DOUBLE")
    (('0', '255'), ('-999.9', '999.9'), ('-inf', 'nan'))
    """
    kind = ColumnType.parse(type_name)
    if kind.family in ("integer", "decimal"):
        least, most = _limits(kind)
        return f"{least:f}", f"{most:f}"
    if kind.family == "float":
        return "-inf", "nan"
    return ("00:00:00", "24:00:00") if kind.name == "TIME" else ("-infinity", "infinity")


def _limits(kind: ColumnType) -> tuple[Decimal, Decimal]:
    if kind.family == "integer":
        bits = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "INT": 32, "BIGINT": 64}[kind.name.removeprefix("U")]
        if kind.name.startswith("U"):
            return Decimal(0), Decimal(2**bits - 1)
        return Decimal(-(2 ** (bits - 1))), Decimal(2 ** (bits - 1) - 1)
    found = _DIGITS.findall(kind.name)
    with localcontext(_CONTEXT):
        most = (Decimal(10) ** int(found[0] if found else 18) - 1).scaleb(-kind.scale)
        return -most, most


# Intervals


@dataclass(frozen=True)
class _Span:
    """The ends of an interval as texts; ``below`` says that the upper one does not belong to it."""

    low: str | None
    high: str | None
    below: bool = False


def _span(label: str, family: str) -> _Span | None:
    """Return the ends of an interval; None for a label that is none.

    Examples
    --------
    >>> _span("[15, 20)", "integer"), _span("<= 7", "integer"), _span("nan", "float")
    (_Span(low='15', high='20', below=True), _Span(low=None, high='7', below=False), None)
    >>> _span("1980-Q1", "date")
    _Span(low='1980-01-01', high='1980-04-01', below=True)
    """
    both = _BETWEEN.fullmatch(label)
    if both is not None:
        return _Span(both[1], both[2], both[3] == ")")
    side = _SIDE.fullmatch(label)
    if side is not None:
        return _Span(side[2], None) if side[1] == ">=" else _Span(None, side[2], side[1] == "<")
    if family == "timestamp" and (day := _DAY.fullmatch(label)) is not None:
        return _days(int(day[1]), lambda year: date(year, int(day[2]), int(day[3])), lambda d: d + timedelta(days=1))
    return _calendar(label) if family in ("date", "timestamp") else None


def _calendar(label: str) -> _Span | None:
    found = _CALENDAR.fullmatch(label)
    if found is None:
        return None
    year, month, quarter, week, decade = found.groups()
    if week:
        return _days(int(year), lambda y: date.fromisocalendar(y, int(week), 1), lambda d: d + timedelta(days=7))
    at = int(month) if month else 3 * int(quarter) - 2 if quarter else 1
    months = 1 if month else 3 if quarter else 120 if decade else 12
    after = at - 1 + months
    return _days(int(year), lambda y: date(y, at, 1), lambda d: date(d.year + after // 12, after % 12 + 1, 1))


def _days(year: int, first: Callable[[int], date], after: Callable[[date], date]) -> _Span | None:
    """Return the days from the first one of a period to that after its last one, in any year.

    Python's dates have the years 1 to 9999, and the calendar is the same again after 400 of them, weekdays included.

    Examples
    --------
    >>> _days(-43, lambda year: date(year, 12, 31), lambda day: day + timedelta(days=1))
    _Span(low='0044-12-31 (BC)', high='0043-01-01 (BC)', below=True)
    """
    moved = (year - 2000) // 400 * 400
    try:
        start = first(year - moved)
        ends = [_dated(day.year + moved, day) for day in (start, after(start))]
    except ValueError:
        return None
    return _Span(ends[0], ends[1], True)


def _dated(year: int, day: date) -> str:
    """Return a day of a year as the database writes it: the year before the first is 1 BC."""
    return f"{year:04d}-{day:%m-%d}" if year > 0 else f"{1 - year:04d}-{day:%m-%d} (BC)"


def _exact(span: _Span, kind: ColumnType) -> tuple[str, str] | None:
    """Return the smallest and the largest number of a type that lie in an interval, as texts.

    Examples
    --------
    >>> _exact(_Span("15", "20", True), ColumnType.parse("INTEGER"))
    ('15', '19')
    >>> _exact(_Span("0.25", None), ColumnType.parse("DECIMAL(3,1)"))
    ('0.3', '99.9')
    """
    with localcontext(_CONTEXT):
        least, most = _limits(kind)
        unit = Decimal(1).scaleb(-kind.scale)
        try:
            low = least if span.low is None else Decimal(span.low)
            high = most if span.high is None else Decimal(span.high)
        except InvalidOperation:
            return None
        if not low.is_finite() or not high.is_finite():
            return None
        first = (low / unit).to_integral_value(ROUND_CEILING)
        last = (high / unit).to_integral_value(ROUND_CEILING) - 1
        if not span.below or span.high is None:
            last = (high / unit).to_integral_value(ROUND_FLOOR)
        first, last = max(first * unit, least), min(last * unit, most)
        # Nothing of the type lies in it.
        return (f"{first:f}", f"{last:f}") if first <= last else (f"{most:f}", f"{least:f}")


def _double(span: _Span) -> tuple[float, float] | None:
    try:
        low = -math.inf if span.low is None else float(span.low)
        high = math.nan if span.high is None else float(span.high)
    except ValueError:
        return None
    return low, math.nextafter(high, -math.inf) if span.below else high


# Intervals of values with distances


def ends_of(shown: Shown, labels: Mapping[int, str]) -> pa.Table | None:
    """Return ``(ix, low, high, below)`` of labels by their numbers that are intervals or values; None without any.

    The ends of floats are numbers; others are texts that the database has yet to read, NULL where a side is open. Where
    ``below``, ``high`` itself is left out.
    """
    import pyarrow as pa

    family, kind = shown.family, ColumnType.parse(shown.type)
    rows: list[tuple[Any, ...]] = []
    for ix, label in labels.items():
        span = _span(label, family) or _Span(label, label)
        if family == "float":
            ends = (math.nan, math.nan) if label == "nan" else _double(span)
            rows += [(ix, *ends, False)] if ends is not None else []
        elif family in ("integer", "decimal"):
            exact = _exact(span, kind)
            rows += [(ix, *exact, False)] if exact is not None else []
        else:
            rows.append((ix, span.low, span.high, span.below))
    if not rows:
        return None
    end = pa.float64() if family == "float" else pa.string()
    types = {"ix": pa.int32(), "low": end, "high": end, "below": pa.bool_()}
    return pa.table({n: pa.array([row[i] for row in rows], kind) for i, (n, kind) in enumerate(types.items())})


def read_ends(shown: Shown) -> exp.Select:
    """Return ``(ix, lo, hi, below)`` from ``(ix, low, high, below)``: ends as values, NULL where they are none."""
    if shown.family == "float":
        return exp.select(col("ix"), named(col("low"), "lo"), named(col("high"), "hi"), col("below"))
    ends = zip(("low", "high"), extremes(shown.type), strict=True)
    low, high = (
        choose((is_null(col(name)), cast(text(end), shown.type)), otherwise=_tried(name, shown)) for name, end in ends
    )
    below: exp.Expr = col("below")
    if shown.family in ("date", "timestamp"):
        finite = is_finite(in_utc(_tried("high", shown), shown.type))
        below = exp.and_(below, exp.func("COALESCE", finite, exp.false()))
    return exp.select(col("ix"), named(low, "lo"), named(high, "hi"), named(below, "below"))


def _tried(name: str, shown: Shown) -> exp.Expr:
    return exp.TryCast(this=col(name), to=data_type(shown.type))


# Places


@dataclass(frozen=True)
class Reach:
    """What cells stand for, by their numbers: the places from ``low`` to ``high``, and NULL where ``null`` is true.

    ``odd`` cells stand only for those of these values that ``listed`` has, as sorted ``pairs`` of cell and code.
    """

    low: NDArray[np.int32]
    high: NDArray[np.int32]
    null: NDArray[np.bool_]
    odd: NDArray[np.bool_]
    listed: NDArray[np.int64]

    @classmethod
    def of_ranges(cls, low: NDArray[np.int32], high: NDArray[np.int32], null: NDArray[np.bool_]) -> Reach:
        """Return cells that stand for all values between two places."""
        return cls(low, high, null, np.zeros_like(null), np.zeros(0, dtype=np.int64))

    def replaced(self, other: Reach, numbers: NDArray[Any]) -> Reach:
        """Return the same with some cells of another one."""
        chosen = np.zeros(len(self.low), dtype=np.bool_)
        chosen[numbers] = True
        return Reach(
            np.where(chosen, other.low, self.low),
            np.where(chosen, other.high, self.high),
            np.where(chosen, other.null, self.null),
            np.where(chosen, other.odd, self.odd),
            np.union1d(self.listed, other.listed),
        )

    def unlisted(self, cells: NDArray[Any], codes: NDArray[Any]) -> int:
        """Count the pairs whose cell is odd, and does not list the value; a cell below 0 is none."""
        some = cells >= 0
        some[some] = self.odd[cells[some]]
        wanted = pairs(cells[some], codes[some])
        place = np.searchsorted(self.listed, wanted)
        inside = place < len(self.listed)
        inside[inside] = self.listed[place[inside]] == wanted[inside]
        return len(wanted) - int(inside.sum())


def pairs(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.int64]:
    """Return pairs of numbers as one number each."""
    joined: NDArray[np.int64] = (first.astype(np.int64) << 32) | second.astype(np.int64)
    return joined


@dataclass(frozen=True)
class Placed:
    """Values in their order, and the places between which cells lie.

    ``at`` are the places of values by ``codes``, 0 for NULL; ``low`` and ``high`` are those of cells by their numbers,
    as far as both ends of them are ``found``.
    """

    codes: NDArray[np.int32]
    at: NDArray[np.int32]
    words: NDArray[np.uint64]
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    found: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: Mapping[str, NDArray[Any]], count: int) -> Placed:
        """Return the places of values and ends that were ranked together.

        ``rows`` has ``side``, 0 for values and 1 and 2 for the ends of cells, ``ix``, the code or the number of the
        cell, ``rank``, 0 for NULL, ``below``, whether the upper end itself is left out, and ``word``.
        """
        mine = [rows["side"] == side for side in range(3)]
        codes, ranks = rows["ix"][mine[0]], rows["rank"][mine[0]]
        values = np.unique(ranks[ranks > 0])
        at = np.where(ranks > 0, np.searchsorted(values, ranks) + 1, 0).astype(np.int32)
        low, high = np.full(count, NOWHERE, dtype=np.int32), np.zeros(count, dtype=np.int32)
        first, last, below = (np.zeros(count, dtype=np.int64) for _ in range(3))
        first[rows["ix"][mine[1]]], last[rows["ix"][mine[2]]] = rows["rank"][mine[1]], rows["rank"][mine[2]]
        below[rows["ix"][mine[2]]] = rows["below"][mine[2]]
        found = (first > 0) & (last > 0)
        low[found] = np.searchsorted(values, first[found]) + 1
        up_to = np.where(below > 0, np.searchsorted(values, last), np.searchsorted(values, last, side="right"))
        high[found] = up_to[found]
        return cls(codes, at, rows["word"][mine[0]], low, high, found)


@dataclass(frozen=True)
class Labelled:
    """Values with their labels, line by line.

    ``codes`` are their numbers in a lookup, ``places`` their order, -1 where the column has no such value, ``null``
    says which is NULL, and ``names`` are their texts and their labels on each level.
    """

    codes: NDArray[np.int32]
    places: NDArray[np.int64]
    null: NDArray[np.bool_]
    names: Sequence[pa.ChunkedArray]

    @classmethod
    def of(cls, shown: Shown, rows: pa.Table) -> Labelled:
        """Return the values of ``(code, number, text, missing)``; ``number`` is the code in ``shown.values``, or NULL.

        Values that a hierarchy does not list come after those that it lists, and NULL comes last.
        """
        import pyarrow.compute as pc

        number, texts = rows.column("number"), rows.column("text")
        null, places = rows.column("missing").to_numpy() > 0, number.fill_null(-1).to_numpy().astype(np.int64)
        labels = shown.labels() if shown.height else None
        names = [] if labels is None else [labels.column(f"l{i}").take(number) for i in range(1, shown.height + 1)]
        if shown.leaves is not None:
            at = pc.index_in(texts, value_set=shown.leaves).fill_null(len(shown.leaves)).to_numpy()
            listed = np.full(len(places), -1, dtype=np.int64)
            lines = np.lexsort([places, at, null])
            lines = lines[places[lines] >= 0]
            listed[lines] = np.arange(len(lines))
            places = listed
        return cls(rows.column("code").to_numpy(), places, null, [texts, *names])

    def numbers(self, name: pa.ChunkedArray, listed: pa.Array) -> NDArray[np.int32]:
        """Return the place of each line's name in a list, -1 where it is not there; NULL is a name."""
        import pyarrow.compute as pc

        found: NDArray[np.int32] = pc.index_in(name, value_set=listed).fill_null(-1).to_numpy().astype(np.int32)
        found[self.places < 0] = -1
        return found

    def order(self, by: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
        """Return places from 1 on, 0 of what the hierarchy does not know: in the order of the last key, ..., the first.

        Values that are equal in all of them stand in their own order.
        """
        at = np.zeros(len(self.places), dtype=np.int32)
        keys: list[NDArray[Any]] = [self.places, *by]
        sorted_lines = np.lexsort(keys)
        sorted_lines = sorted_lines[self.places[sorted_lines] >= 0]
        at[sorted_lines] = np.arange(1, len(sorted_lines) + 1)
        return at


@dataclass(frozen=True)
class Cells:
    """The different cells of a column, as texts, and what they stand for."""

    shown: Shown
    texts: pa.Array

    @cached_property
    def labels(self) -> list[str | None]:
        """The texts."""
        found: list[str | None] = self.texts.to_pylist()
        return found

    @cached_property
    def null(self) -> NDArray[np.bool_]:
        """Which of them is NULL."""
        return np.array([label is None for label in self.labels], dtype=np.bool_)

    @cached_property
    def whole(self) -> NDArray[np.bool_]:
        """Which labels stand for every value. In a set the top label stands for values that the hierarchy lacks."""
        top = self.shown.top
        every = [label is not None and (label == top or top in members_of(label)) for label in self.labels]
        return np.array(every, dtype=np.bool_)

    @cached_property
    def inside(self) -> dict[int, str]:
        """The labels by their numbers that do not stand for every value."""
        return {i: label for i, label in enumerate(self.labels) if label is not None and not self.whole[i]}

    # Values in an order

    def in_order(self, values: Labelled) -> tuple[NDArray[np.int32], Reach]:
        """Return the places of values without distances, and what the cells stand for.

        Values under one label are neighbours in the hierarchy, those of a range in the order of the values.
        """
        cells, lines = self._listed(values)
        have = set(np.unique(cells).tolist())
        ranges = {i: ends for i, label in self.inside.items() if i not in have and (ends := text_ends(label))}
        levels = [values.numbers(name, self.texts) for name in values.names[1:]]
        at = values.order([] if ranges else levels)
        reach = self._reach(cells, values.codes[lines], at[lines])
        if reach.odd.any() and not ranges:
            at = values.order([])
            reach = self._reach(cells, values.codes[lines], at[lines])
        if ranges:
            self._add_ranges(reach, ranges, values, at)
        self.add_whole(reach)
        return at, reach

    def _add_ranges(
        self, reach: Reach, ranges: Mapping[int, tuple[str | None, str | None]], values: Labelled, at: NDArray[np.int32]
    ) -> None:
        """Add ranges of texts, both ends of which must be values. NULL comes after all values."""
        import pyarrow as pa

        ends = pa.array(dict.fromkeys(end for both in ranges.values() for end in both if end is not None), pa.string())
        numbers = values.numbers(values.names[0], ends)
        lines = np.flatnonzero((numbers >= 0) & ~values.null)
        first, last = np.full(len(ends), NOWHERE, dtype=np.int32), np.zeros(len(ends), dtype=np.int32)
        np.minimum.at(first, numbers[lines], at[lines])
        np.maximum.at(last, numbers[lines], at[lines])
        number_of = {end: i for i, end in enumerate(ends.to_pylist())}
        most = int(at[~values.null].max(initial=0))
        for i, (low, high) in ranges.items():
            reach.low[i] = 1 if low is None else first[number_of[low]]
            reach.high[i] = most if high is None else last[number_of[high]]

    def add_whole(self, reach: Reach) -> None:
        """Add the top label, which stands for every value and NULL."""
        reach.low[self.whole], reach.high[self.whole], reach.null[self.whole] = 0, NOWHERE, True

    # Values with distances

    def known(self, values: Labelled) -> set[int]:
        """Return the numbers of the cells that are texts, labels or sets of values."""
        return set(np.unique(self._listed(values)[0]).tolist())

    def among(self, values: Labelled, at: NDArray[np.int32]) -> tuple[Reach, NDArray[np.int64]]:
        """Return what the cells stand for that are texts, labels or sets of values, and the numbers of these.

        ``at`` are the places of the values line by line, 0 for NULL.
        """
        cells, lines = self._listed(values)
        some = ~self.null[cells]
        cells, lines = cells[some], lines[some]
        return self._reach(cells, values.codes[lines], at[lines]), np.unique(cells)

    def _reach(self, cells: NDArray[Any], codes: NDArray[Any], at: NDArray[np.int32]) -> Reach:
        """Return what cells stand for that list values: a range where no other value lies between them."""
        count = len(self.texts)
        low, high = np.full(count, NOWHERE, dtype=np.int32), np.zeros(count, dtype=np.int32)
        null = np.zeros(count, dtype=np.bool_)
        null[cells[at == 0]] = True
        placed = np.unique(pairs(cells, at)[at > 0])
        of, place = placed >> 32, (placed & 0xFFFFFFFF).astype(np.int32)
        np.minimum.at(low, of, place)
        np.maximum.at(high, of, place)
        number = np.bincount(of, minlength=count)
        odd = (number > 0) & (high.astype(np.int64) - low + 1 != number)
        return Reach(low, high, null, odd, np.unique(pairs(cells, codes)[odd[cells]]))

    def _listed(self, values: Labelled) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return pairs of a cell and a line: the values that a label is, covers or lists, and NULL of NULL."""
        cells, lines = [], []
        for name in values.names:
            numbers = values.numbers(name, self.texts)
            some = np.flatnonzero(numbers >= 0)
            some = some[~self.whole[numbers[some]]]
            cells.append(numbers[some].astype(np.int64))
            lines.append(some.astype(np.int64))
        sets = {i: members for i, label in self.inside.items() if (members := members_of(label))}
        if sets:
            more = self._in_sets(sets, values)
            cells.append(more[0])
            lines.append(more[1])
        return np.concatenate(cells), np.concatenate(lines)

    def _in_sets(
        self, sets: Mapping[int, Sequence[str]], values: Labelled
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return pairs of a set and the line of a member; all members must be values."""
        import pyarrow as pa

        every = pa.array(dict.fromkeys(member for members in sets.values() for member in members), pa.string())
        number_of = {member: i for i, member in enumerate(every.to_pylist())}
        numbers = values.numbers(values.names[0], every)
        lines = np.argsort(numbers, kind="stable")
        ends = np.searchsorted(numbers[lines], np.arange(len(every) + 1))
        cells, found = [], []
        for cell, members in sets.items():
            runs = [lines[ends[i] : ends[i + 1]] for i in map(number_of.__getitem__, members)]
            if all(len(run) for run in runs):
                cells += [np.full(len(run), cell, dtype=np.int64) for run in runs]
                found += runs
        none = np.zeros(0, dtype=np.int64)
        return np.concatenate([none, *cells]), np.concatenate([none, *found])


# Sets and ranges of texts


def members_of(label: str) -> tuple[str, ...]:
    """Return the members of a set as duckanon writes it; nothing for another label.

    Examples
    --------
    >>> members_of('{a, "b, c", d e}'), members_of("a")
    (('a', 'b, c', 'd e'), ())
    """
    if len(label) < 3 or label[0] != "{" or label[-1] != "}":
        return ()
    found, place, end = [], 1, len(label) - 1
    while place <= end:
        match = _MEMBER.match(label, place, end)
        if match is None:
            return ()
        found.append(match[1].replace('""', '"') if match[1] is not None else match[2])
        place = match.end()
        if place == end:
            return tuple(dict.fromkeys(found))
        if not label.startswith(", ", place):
            return ()
        place += 2
    return ()


def text_ends(label: str) -> tuple[str | None, str | None] | None:
    """Return the ends of a range of values in whatever order, None where it is open; None if the label is no range.

    Examples
    --------
    >>> text_ends("[low, high]"), text_ends("<= mid"), text_ends("mid")
    (('low', 'high'), (None, 'mid'), None)
    """
    between = _TEXTS.fullmatch(label)
    if between is not None:
        low, high = (unquoted(part) for part in between.groups())
        return low, high
    side = _TEXT_SIDE.fullmatch(label)
    if side is not None:
        own = unquoted(side.group(2))
        return (own, None) if side.group(1) == ">=" else (None, own)
    return None


def unquoted(member: str) -> str:
    """Return a value of a list or range as it is; one with commas, braces or quotes is written in double quotes."""
    own = member.strip()
    return own[1:-1].replace('""', '"') if own.startswith('"') else own


__all__ = [
    "NOWHERE",
    "Cells",
    "Labelled",
    "Placed",
    "Reach",
    "Shown",
    "ends_of",
    "extremes",
    "members_of",
    "pairs",
    "read_ends",
    "text_ends",
    "unquoted",
]
