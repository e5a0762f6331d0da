"""The form of a leak: something that a file tells beyond its rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

KINDS = {
    "dictionary": "values in a dictionary page that no row of its part has",
    "statistics": "minimum, maximum or counts in the footer that are not those of the rows",
    "metadata": "keys, paths, times or texts in the metadata",
    "column_names": "names of columns that are not published",
    "index": "a column that numbers the rows",
    "order": "an order of the rows that chance does not make",
    "leftovers": "other files beside the release",
}
"""The kinds of leaks, and what each is."""


@dataclass(frozen=True)
class Leak:
    """What a file tells beyond its rows. Names, counts and words of its own, no value of the data.

    Parameters
    ----------
    kind : str
        One of ``KINDS``.
    column : str or None
        The published column that it is about.
    count : int
        How many values, keys, names, rows or files are concerned.
    of : int
        Out of how many, 0 where that means nothing.
    text : str
        The same in words.
    """

    kind: str
    text: str
    count: int = 1
    of: int = 0
    column: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the leak as plain values."""
        return asdict(self)


def merged(leaks: Iterable[Leak]) -> list[Leak]:
    """Return leaks of many files or parts, each once, with its counts added up."""
    found: dict[tuple[str, str, str | None], Leak] = {}
    for leak in leaks:
        key = (leak.kind, leak.text, leak.column)
        known = found.get(key)
        if known is not None:
            leak = Leak(leak.kind, leak.text, known.count + leak.count, known.of + leak.of, leak.column)
        found[key] = leak
    order = list(KINDS)
    return sorted(found.values(), key=lambda leak: (order.index(leak.kind), leak.column or "", leak.text))
