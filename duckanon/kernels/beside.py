"""Rows as they were beside what is published of them: their sums under a key, and the cells that are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np

from duckanon.kernels.jit import kernel, part

_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)


@part
def _mixed(word: Any) -> Any:  # pragma: no cover
    """Return a word of which each bit depends on all bits of another."""
    word = (word ^ (word >> _30)) * _FIRST
    word = (word ^ (word >> _27)) * _SECOND
    return word ^ (word >> _31)


@kernel
def add_words(words: Any, sums: Any) -> None:  # pragma: no cover
    """Add the words of rows, mixed, to ``sums[0]``."""
    total = np.uint64(0)
    for i in range(len(words)):
        total += _mixed(words[i])
    sums[0] += total


@kernel
def mark_published(keys: Any, found: Any, kept: Any) -> None:  # pragma: no cover
    """Unmark the rows for whose key nothing was found."""
    for i in range(len(keys)):
        key = keys[i]
        if key < 0 or key >= len(found) or found[key] == 0:
            kept[i] = 0


@kernel
def look_at(
    codes: Any,
    keys: Any,
    at: Any,
    before: Any,
    cells: Any,
    low: Any,
    high: Any,
    null: Any,
    after: Any,
    kept: Any,
    was: Any,
    shown: Any,
    counts: Any,
) -> None:  # pragma: no cover
    """Join the words of a column to those of the rows, and count cells that do not stand for their values.

    Code c is the value at place ``at[c]``, 0 for NULL and -1 for none, with the word ``before[c]``. Key k shows the
    cell ``cells[k]``, which stands for the places from ``low`` to ``high``, and for NULL where ``null`` is not 0, with
    the word ``after``. ``counts[0]`` counts rows of no value, ``counts[1]`` wrong cells of rows that are ``kept``.
    """
    lost, wrong = 0, 0
    for i in range(len(codes)):
        code = codes[i]
        place = -1
        if 0 <= code < len(at):
            place = at[code]
        if place < 0:
            lost += 1
            continue
        was[i] ^= before[code]
        if kept[i]:
            cell = cells[keys[i]]
            shown[i] ^= after[cell]
            if place == 0:
                wrong += null[cell] == 0
            else:
                wrong += place < low[cell] or place > high[cell]
    counts[0] += lost
    counts[1] += wrong


@kernel
def add_rows(was: Any, shown: Any, kept: Any, sums: Any) -> None:  # pragma: no cover
    """Add the words of rows, mixed, to ``sums[0]``, and for those that are kept to ``sums[1]``; count these too."""
    total, published, count = np.uint64(0), np.uint64(0), np.uint64(0)
    for i in range(len(was)):
        total += _mixed(was[i])
        if kept[i]:
            published += _mixed(shown[i])
            count += np.uint64(1)
    sums[0] += total
    sums[1] += published
    sums[2] += count
