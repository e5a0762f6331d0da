"""How reports write figures, times and sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def number(value: Any) -> str:
    """Return a figure with as many digits as a reader can use.

    Examples
    --------
    >>> number(20000), number(0.123456), number(1234.5), number(None)
    ('20,000', '0.1235', '1,234', '-')
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def share(value: Any) -> str:
    """Return a share in per cent.

    Examples
    --------
    >>> share(0.025), share(None)
    ('2.50%', '-')
    """
    return "-" if value is None else f"{value:.2%}"


_PLURALS = {"class": "classes"}


def counted(value: int, unit: str) -> str:
    """Return a number with its unit.

    Examples
    --------
    >>> counted(1, "class"), counted(2, "class"), counted(20000, "row")
    ('1 class', '2 classes', '20,000 rows')
    """
    return f"{number(value)} {unit if value == 1 else _PLURALS.get(unit, f'{unit}s')}"


def in_words(name: str) -> str:
    """Return a name of code in words.

    Examples
    --------
    >>> in_words("average_class_size")
    'average class size'
    """
    return name.replace("_", " ")


def parameters(given: Mapping[str, Any]) -> str:
    """Return parameters in words."""
    return ", ".join(f"{k} = {v}" for k, v in given.items()) or "none"


def sentence(text: str) -> str:
    """Return a text with a capital and a full stop."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else text + "."


def minute(text: Any) -> str:
    """Return an ISO time to the minute.

    Examples
    --------
    >>> minute("2026-03-01T02:00:07.123+00:00"), minute(None)
    ('2026-03-01 02:00 UTC', '')
    """
    given = str(text or "")
    return f"{given[:10]} {given[11:16]} UTC" if given[10:11] in ("T", " ") and len(given) >= 16 else given


def duration(seconds: float) -> str:
    """Return a duration in words.

    Examples
    --------
    >>> duration(0.8), duration(75.2), duration(7384)
    ('0.8 s', '1 min 15 s', '2 h 3 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def in_bytes(size: float) -> str:
    """Return a size in memory in words.

    Examples
    --------
    >>> in_bytes(512), in_bytes(734_003_200), in_bytes(3 * 2**30)
    ('512 bytes', '700 MiB', '3.0 GiB')
    """
    if size < 1024:
        return f"{size:.0f} bytes"
    if size < 2**30:
        return f"{size / 2**20:.0f} MiB" if size >= 2**20 else f"{size / 2**10:.0f} KiB"
    return f"{size / 2**30:.1f} GiB"


def visible(value: object) -> str:
    r"""Return a text in one line, with line breaks, control characters and marks of direction as escapes.

    Such characters could begin a new row, control a terminal, or disguise a name.

    Examples
    --------
    >>> print(visible("two\nlines"))
    two\nlines
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value))
