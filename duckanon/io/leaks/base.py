"""A leak: something that a file reveals beyond its rows."""

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
    """What a file reveals beyond its rows, in names, counts and words; no value of the data.

    Parameters
    ----------
    kind : str
        One of ``KINDS``.
    column : str or None
        The published column that it is about.
    count : int
        How many values, keys, names, rows or files are affected.
    of : int
        Out of how many; 0 if that has no meaning.
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
    by_key: dict[tuple[str, str, str | None], Leak] = {}
    for leak in leaks:
        key = (leak.kind, leak.text, leak.column)
        earlier = by_key.get(key)
        if earlier is not None:
            leak = Leak(leak.kind, leak.text, earlier.count + leak.count, earlier.of + leak.of, leak.column)
        by_key[key] = leak
    order = list(KINDS)
    return sorted(by_key.values(), key=lambda leak: (order.index(leak.kind), leak.column or "", leak.text))
