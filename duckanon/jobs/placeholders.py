"""Placeholders in a job file, filled in for each run: variables of the environment, and the date in paths."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from duckanon.errors import JobError

_VARIABLE = re.compile(r"\$(\$|\{([^}]*)\})")
_PLACE = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def from_environment(where: str, value: Any, environment: Mapping[str, str] | None = None) -> Any:
    """Replace ``${NAME}`` in a text, or in all texts of a list, by variables of the environment; ``$$`` is a dollar.

    A variable that is not set is an error that names it; the value of a variable is in no message.

    Examples
    --------
    >>> from_environment("[source] path", "${STAGE}/in.csv", {"STAGE": "test"})
    'test/in.csv'
    """
    if isinstance(value, list):
        return [from_environment(where, one, environment) for one in value]
    if not isinstance(value, str):
        return value
    known = os.environ if environment is None else environment

    def variable(found: re.Match[str]) -> str:
        if found[1] == "$":
            return "$"
        if not _NAME.fullmatch(found[2]):
            raise JobError(f"{where} has a variable without a name: write ${{NAME}}, or $$ for a dollar.")
        if found[2] not in known:
            raise JobError(f"{where} needs the environment variable {found[2]}, which is not set.")
        return known[found[2]]

    return _VARIABLE.sub(variable, value)


def dated(where: str, value: Any, day: date) -> Any:
    """Replace ``{date}``, ``{year}``, ``{month}`` and ``{day}`` in a path, or in all paths of a list.

    Examples
    --------
    >>> dated("[output] path", "out/{year}/stays-{date}.parquet", date(2026, 3, 1))
    'out/2026/stays-2026-03-01.parquet'
    """
    if isinstance(value, list):
        return [dated(where, one, day) for one in value]
    places = {"date": day.isoformat(), "year": f"{day:%Y}", "month": f"{day:%m}", "day": f"{day:%d}"}

    def place(found: re.Match[str]) -> str:
        if found[1] not in places:
            raise JobError(f"{where} has {found[0]}, which is none of {', '.join(f'{{{p}}}' for p in places)}.")
        return places[found[1]]

    return _PLACE.sub(place, value) if isinstance(value, str) else value


def is_dated(value: Any) -> bool:
    """Return whether a path has a date in it."""
    return isinstance(value, str) and _PLACE.search(value) is not None


def day_in(value: str, path: str) -> str | None:
    """Return the date in a path, as far as it goes: year, month, day; None where the path has another form.

    Without the year there is no date: a month or a day alone gives no order.

    Examples
    --------
    >>> day_in("out/{year}/{month}/stays.csv", "/jobs/out/2026/03/stays.csv")
    '2026-03'
    >>> day_in("out/stays-{day}.csv", "out/stays-09.csv") is None
    True
    """
    digits = {"date": "[0-9]{4}-[0-9]{2}-[0-9]{2}", "year": "[0-9]{4}", "month": "[0-9]{2}", "day": "[0-9]{2}"}
    seen: set[str] = set()
    parts = []
    for i, part in enumerate(_PLACE.split(value)):
        if i % 2 == 0:
            parts.append(re.escape(part))
        elif part in seen:
            parts.append(f"(?P={part})")
        else:
            seen.add(part)
            parts.append(f"(?P<{part}>{digits[part]})")
    match = re.search(f"(?:^|/){''.join(parts).removeprefix(re.escape('/'))}$", path)
    if match is None:
        return None
    date_of = match.groupdict()
    if "date" in date_of:
        return date_of["date"]
    parts = []
    for part in ("year", "month", "day"):
        if part not in date_of:
            break
        parts.append(date_of[part])
    return "-".join(parts) or None


def any_day(value: str) -> str:
    """Return the pattern of a dated path for all days, for ``fnmatch``; a date has digits only.

    Examples
    --------
    >>> any_day("out/{year}/*-{month}.csv")
    'out/[0-9][0-9][0-9][0-9]/[*]-[0-9][0-9].csv'
    """
    literal = "".join(f"[{c}]" if c in "*?[" else c for c in value)
    lengths = {"date": (4, 2, 2), "year": (4,)}
    return _PLACE.sub(lambda found: "-".join("[0-9]" * n for n in lengths.get(found[1], (2,))), literal)
