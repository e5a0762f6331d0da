"""Compare original rows with what is published of them: checksums under a key, and the number of wrong cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from duckanon.kernels.jit import kernel, part

_FACTOR, _32 = np.uint64(0xD6E8FEB86659FD93), np.uint64(32)
_NONE, _ONE, _HIGH, _NULL, _PLACE = np.uint64(0), np.uint64(1), np.uint64(31), np.uint64(62), np.uint64(2**31 - 1)

_BLOCK = 512
"""Rows whose classes stay in the cache while one column after the other is looked at."""
OF, CODES, VALUES, BY, BASE, KEYS, SHOWS, STRIDE, CELLS = range(9)
"""The entries that describe a column: the line of its codes, how many there are, and where their values begin; the line
of its keys, -1 where the value itself is published, the first key, how many keys there are, where the numbers of the
cells that they show begin, and how far apart these are; and where its cells begin."""


def packed_values(codes: Any, places: Any, words: Any) -> Any:
    """Return the values of codes, each with its word and one more than its place: 0 for the place of NULL."""
    found = np.zeros((int(codes.max(initial=-1)) + 1, 2), dtype=np.uint64)
    found[codes, 0] = words
    found[codes, 1] = places.astype(np.uint64) + _ONE
    return found


def packed_cells(numbers: Any, low: Any, high: Any, null: Any, words: Any) -> Any:
    """Return cells, each with its word, and the places and whether NULL that it stands for in the bits of another."""
    found = np.zeros((len(numbers), 2), dtype=np.uint64)
    found[numbers, 0] = words
    reach = low.astype(np.uint64) | (high.astype(np.uint64) << _HIGH) | (null.astype(np.uint64) << _NULL)
    found[numbers, 1] = reach
    return found


@part
def _mixed(word: Any) -> Any:  # pragma: no cover
    """Return a word of which each bit depends on all bits of another: what the database's hash makes of it."""
    word = (word ^ (word >> _32)) * _FACTOR
    word = (word ^ (word >> _32)) * _FACTOR
    return word ^ (word >> _32)


@kernel
def add_words(words: Any, sums: Any) -> None:  # pragma: no cover
    """Add the words of rows, mixed, to ``sums[0]``."""
    total = np.uint64(0)
    for i in range(len(words)):
        total += _mixed(words[i])
    sums[0] += total


@kernel
def read_rows(
    keys: Any,
    columns: Any,
    values: Any,
    shows: Any,
    cells: Any,
    through: Any,
    owner: Any,
    kept: Any,
    counts: Any,
    sums: Any,
) -> None:  # pragma: no cover
    """Count cells that do not stand for the values beside them, and add up the words of rows.

    ``keys`` has a line for each key, and ``columns`` one for each column, see the names of its places above. Values and
    cells are packed. ``kept`` says which rows are published, of which those whose keys show nothing are unmarked. Rows
    begin with the word ``through``, as they were with ``owner``, too, where there is one.

    ``counts[j]`` counts rows of no value, and wrong cells of rows that are published. ``sums[0]`` gets the words of
    rows as they were, mixed, ``sums[1]`` those of rows as they are published, ``sums[2]`` the number of the latter.
    """
    cell = np.empty((len(columns), _BLOCK), dtype=np.int32)
    was, shown = np.empty(_BLOCK, dtype=np.uint64), np.empty(_BLOCK, dtype=np.uint64)
    place = np.empty(_BLOCK, dtype=np.uint64)
    total, published, count = _NONE, _NONE, _NONE
    for start in range(0, keys.shape[1], _BLOCK):
        size = min(_BLOCK, keys.shape[1] - start)
        mine = kept[start : start + size]
        for i in range(size):
            shown[i] = through[start + i]
            was[i] = shown[i] ^ owner[start + i] if len(owner) else shown[i]
        for j in range(len(columns)):
            if columns[j, BY] < 0:
                continue
            own, base, known = keys[columns[j, BY]], columns[j, BASE], columns[j, KEYS]
            first, stride, out = columns[j, SHOWS], columns[j, STRIDE], cell[j]
            # A loop that only looks up classes can wait for many of them at a time; unsigned places need no sign check.
            for i in range(size):
                key = own[start + i] - base
                found = np.int32(-1)
                if 0 <= key < known:
                    found = shows[np.uint64(first + key * stride)]
                out[i] = found
            for i in range(size):
                mine[i] &= out[i] >= 0
        for j in range(len(columns)):
            own, known, out = keys[columns[j, OF]], columns[j, CODES], cell[j]
            some, these = values[columns[j, VALUES] : columns[j, VALUES] + known], cells[columns[j, CELLS] :]
            passed = columns[j, BY] < 0
            lost, wrong = 0, 0
            for i in range(size):
                code = own[start + i]
                if code < 0 or code >= known:
                    place[i] = _NONE
                    lost += 1
                    continue
                word = some[np.uint64(code), 0]
                was[i] ^= word
                if passed:
                    shown[i] ^= word
                place[i] = some[np.uint64(code), 1]
            for i in range(size):
                lost += place[i] == _NONE
                if passed or mine[i] == 0:
                    continue
                at = np.uint64(out[i])
                shown[i] ^= these[at, 0]
                reach, here = these[at, 1], place[i] - _ONE
                outside = (here < (reach & _PLACE)) | (here > ((reach >> _HIGH) & _PLACE))
                if here == _NONE:
                    outside = reach >> _NULL == _NONE
                wrong += outside
            counts[j, 0] += lost
            counts[j, 1] += wrong
        for i in range(size):
            total += _mixed(was[i])
            if mine[i]:
                published += _mixed(shown[i])
                count += _ONE
    sums[0] += total
    sums[1] += published
    sums[2] += count
