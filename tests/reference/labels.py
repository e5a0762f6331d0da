"""What a published label stands for, as a plain reader takes it who knows neither the program nor its database.

Numbers are exact, dates are counted in days and moments in nanoseconds of the Gregorian calendar without end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

_NUMBERS = ("INT", "INTEGER", "DECIMAL", "FLOAT", "DOUBLE", "REAL", "BIGNUM")
_MOMENT = re.compile(
    r"(\d+)-(\d\d)-(\d\d)( \(BC\))?(?: (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?)?( \(BC\))?([+]00(?::00)?)?"
)
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?")
_PERIOD = re.compile(r"(-?\d{3,})(?:-(\d\d)|-Q([1-4])|-W(\d\d)|(s))?")
_DATED = re.compile(r"(-?\d{3,})-(\d\d)-(\d\d)")
_CYCLE = 146_097
"""Days after which the calendar, weeks included, is the same again: 400 years."""
_DAY = 86_400 * 10**9

Place = tuple[bool, Decimal | int]
"""Where a value stands in the order of its column; nan is above all others."""


def family(kind: str) -> str:
    """Return what texts of a type are read as: "number", "date", "moment", "time", or "other"."""
    name = kind.upper().partition("(")[0]
    if kind.endswith("]"):
        return "other"
    if name == "DATE":
        return "date"
    if name.startswith("TIMESTAMP"):
        return "moment"
    if name in ("TIME", "TIME_NS"):
        return "time"
    return "number" if name.endswith(_NUMBERS) else "other"


def day_number(year: int, month: int, day: int) -> int:
    """Return the days since the year 1 began; the year before it is 0."""
    cycles = (year - 2000) // 400
    return date(year - 400 * cycles, month, day).toordinal() + _CYCLE * cycles


def _fraction(digits: str | None) -> int:
    return int((digits or "").ljust(9, "0"))


def place(text: str, kind: str) -> Place:
    """Return where a value stands; a ValueError says that the text is none."""
    own = family(kind)
    if own == "number":
        try:
            return (True, 0) if text == "nan" else (False, Decimal(text))
        except ArithmeticError as error:
            raise ValueError(text) from error
    if text in ("infinity", "-infinity"):
        return False, Decimal(text)
    if own == "time":
        found = _TIME.fullmatch(text)
        if found is None:
            raise ValueError(text)
        hour, minute, second = (int(n) for n in found.groups()[:3])
        return False, ((hour * 60 + minute) * 60 + second) * 10**9 + _fraction(found[4])
    found = _MOMENT.fullmatch(text)
    if found is None or own == "other":
        raise ValueError(text)
    year = 1 - int(found[1]) if found[4] or found[9] else int(found[1])
    days = day_number(year, int(found[2]), int(found[3]))
    if own == "date":
        return False, days
    hour, minute, second = (int(n or 0) for n in found.groups()[4:7])
    return False, days * _DAY + ((hour * 60 + minute) * 60 + second) * 10**9 + _fraction(found[8])


def period(label: str) -> tuple[int, int] | None:
    """Return the first day of a day, week, month, quarter, year or decade, and the day after its last one."""
    dated = _DATED.fullmatch(label)
    if dated is not None:
        day = day_number(*(int(n) for n in dated.groups()))
        return day, day + 1
    found = _PERIOD.fullmatch(label)
    if found is None:
        return None
    year = int(found[1])
    if found[4]:
        cycles = (year - 2000) // 400
        monday = date.fromisocalendar(year - 400 * cycles, int(found[4]), 1).toordinal() + _CYCLE * cycles
        return monday, monday + 7
    month = int(found[2]) if found[2] else 3 * int(found[3]) - 2 if found[3] else 1
    months = 1 if found[2] else 3 if found[3] else 120 if found[5] else 12
    end = year * 12 + month - 1 + months
    return day_number(year, month, 1), day_number(end // 12, end % 12 + 1, 1)


def members(inner: str) -> list[str] | None:
    """Return the texts of a list with commas, in which those with commas, braces or quotes are quoted."""
    found, at = [], 0
    while True:
        if inner.startswith('"', at):
            own = ""
            at += 1
            while True:
                end = inner.find('"', at)
                if end < 0:
                    return None
                own += inner[at:end]
                at = end + 1
                if not inner.startswith('"', at):
                    break
                own += '"'
                at += 1
        else:
            end = inner.find(", ", at)
            end = len(inner) if end < 0 else end
            own = inner[at:end]
            at = end
        found.append(own)
        if at == len(inner):
            return found
        if not inner.startswith(", ", at):
            return None
        at += 2


@dataclass(frozen=True)
class Reader:
    """Reads the labels of one column.

    ``kind`` is the type of its values, ``order`` their texts in their order where they are no numbers, dates or times,
    and ``chain`` the labels over a value where a hierarchy says so and the labels do not say it themselves.
    """

    kind: str
    order: Sequence[str] = ()
    chain: Callable[[str], Collection[str]] | Mapping[str, Collection[str]] | None = None
    top: str = "*"
    ranks: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ranks", {text: i for i, text in enumerate(self.order)})

    def covers(self, cell: str | None, value: str | None) -> bool:
        """Say whether a cell is true of a value, both as texts; NULL is a value like any other."""
        if cell == self.top:
            return True
        if cell is None or value is None:
            return cell is value
        if cell == value or cell in self._chain(value):
            return True
        if cell.startswith("{") and cell.endswith("}"):
            return any(one == self.top or self._same(one, value) for one in members(cell[1:-1]) or ())
        return self._in_range(cell, value) or self._in_period(cell, value) or self._same(cell, value)

    def _chain(self, value: str) -> Collection[str]:
        if self.chain is None:
            return ()
        return self.chain(value) if callable(self.chain) else self.chain.get(value, ())

    def place(self, text: str) -> Place:
        if family(self.kind) != "other":
            return place(text, self.kind)
        if text not in self.ranks:
            raise ValueError(text)
        return False, self.ranks[text]

    def _same(self, one: str, other: str) -> bool:
        if one == other:
            return True
        try:
            return family(self.kind) != "other" and self.place(one) == self.place(other)
        except ValueError:
            return False

    def _in_range(self, cell: str, value: str) -> bool:
        low: str | None
        high: str | None
        below = cell.startswith("< ") or cell.endswith(")")
        if cell.startswith(("< ", "<= ", ">= ")):
            sign, _, end = cell.partition(" ")
            low, high = (end, None) if sign == ">=" else (None, end)
        elif cell.startswith("[") and cell.endswith(("]", ")")):
            ends = self._ends(cell[1:-1])
            if ends is None:
                return False
            low, high = ends
        else:
            return False
        try:
            own = self.place(value)
            first = None if low is None else self.place(self._unquoted(low))
            last = None if high is None else self.place(self._unquoted(high))
        except ValueError:
            return False
        if first is not None and own < first:
            return False
        return last is None or own < last or (own == last and not below)

    def _ends(self, inner: str) -> tuple[str, str] | None:
        ends = members(inner)
        if ends is not None and len(ends) == 2:
            return ends[0], ends[1]
        return None

    def _unquoted(self, end: str) -> str:
        own = members(end) if end.startswith('"') else None
        return own[0] if own else end

    def _in_period(self, cell: str, value: str) -> bool:
        own = family(self.kind)
        if own not in ("date", "moment"):
            return False
        span = period(cell)
        if span is None:
            return False
        _, at = self.place(value)
        unit = 1 if own == "date" else _DAY
        return span[0] * unit <= at < span[1] * unit


def masked(character: str, cell: str, value: str) -> bool:
    """Say whether a mask can be read as a value: as long, and the same wherever it is not masked."""
    if len(cell) != len(value):
        return not value and cell == character
    return all(c in (character, v) for c, v in zip(cell, value, strict=True))


def completed_years(birth: str, kind: str, today: date) -> int:
    """Return how many birthdays somebody has had by a day; one of 29 February is on 1 March where there is none."""
    found = _MOMENT.fullmatch(birth)
    if found is None:
        raise ValueError(birth)
    year = 1 - int(found[1]) if found[4] or found[9] else int(found[1])
    had = (today.month, today.day) >= (int(found[2]), int(found[3]))
    return today.year - year - (0 if had else 1)
