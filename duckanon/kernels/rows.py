"""Rows of words: where their places stand, how they are moved about, and the smaller half of a run is put first."""

from __future__ import annotations

from typing import Any

import numpy as np

from duckanon.kernels.jit import inlined, lean
from duckanon.kernels.layout import MASK, SHIFT, WORD

TWO = np.uint64(2)
"""The words of most rows: loops over them are compiled once more with this number written out."""


@inlined
def bits_of(data: Any, axes: Any, j: int) -> Any:  # pragma: no cover
    """Return where the places of an axis stand: the words of a row, which of them it is, the first bit, the mask.

    Without a sign, because an index that could be negative is asked for it at every step.
    """
    word, shift, mask = axes.table[WORD, j], axes.table[SHIFT, j], axes.table[MASK, j]
    return np.uint64(data.numbers.shape[1] >> 1), np.uint64(word), np.uint64(shift), np.uint64(mask)


@inlined
def place_of(words: Any, i: int, bits: Any) -> Any:  # pragma: no cover
    """Return the place of a row."""
    return np.int64((words[np.uint64(i) * bits[0] + bits[1]] >> bits[2]) & bits[3])


@lean
def sort_run(values: Any, start: int, count: int) -> None:  # pragma: no cover
    """Sort ``count`` numbers from ``start`` on, ascending, in place (by a heap)."""
    if count <= 24:
        for i in range(start + 1, start + count):
            value, k = values[i], i
            while k > start and values[k - 1] > value:
                values[k] = values[k - 1]
                k -= 1
            values[k] = value
        return
    for step in range(count // 2 + count - 1):
        # First the heap is made from its middle downwards, then its largest number goes to the end, again and again.
        building = step < count // 2
        root, size = (count // 2 - 1 - step, count) if building else (0, count - 1 - (step - count // 2))
        if not building:
            largest = values[start]
            values[start] = values[start + size]
            values[start + size] = largest
        value = values[start + root]
        while 2 * root + 1 < size:
            child = 2 * root + 1
            if child + 1 < size and values[start + child + 1] > values[start + child]:
                child += 1
            if values[start + child] <= value:
                break
            values[start + root] = values[start + child]
            root = child
        values[start + root] = value


@lean
def _exchange(words: Any, i: int, k: int, width: int) -> None:  # pragma: no cover
    """Let two rows change places."""
    for w in range(width):
        word = words[i * width + w]
        words[i * width + w] = words[k * width + w]
        words[k * width + w] = word


@lean
def _compared(  # pragma: no cover
    data: Any, axes: Any, config: Any, i: int, j: int, width: int, other: Any
) -> int:
    """Compare a row with one that was copied: by its place on axis j, the other places, its codes, its tie."""
    for step in range(-1, width):
        a = j if step < 0 else step
        place = place_of(data.words, i, bits_of(data, axes, a))
        if place != other[a]:
            return -1 if place < other[a] else 1
    for e in range(config.extras):
        if data.numbers[i, config.extra + e] != other[width + e]:
            return -1 if data.numbers[i, config.extra + e] < other[width + e] else 1
    size = data.numbers.shape[1] >> 1
    own = data.words[i * size + config.tie] if config.tie >= 0 else np.uint64(data.numbers[i, config.order])
    last = np.uint64(other[width + config.extras])
    if own != last:
        return -1 if own < last else 1
    return 0


@lean
def select_ties(  # pragma: no cover
    data: Any, axes: Any, config: Any, start: int, end: int, middle: int, j: int, width: int, other: Any
) -> None:
    """Reorder rows so that those before ``middle`` come first in the order of ``_compared``.

    Rows that are equal in everything are interchangeable, so the result does not depend on the order they came in.
    ``other`` is room for what is compared of a row.
    """
    low, high, size = start, end - 1, data.numbers.shape[1] >> 1
    while low < high:
        pivot = (low + high) // 2
        for a in range(width):
            other[a] = place_of(data.words, pivot, bits_of(data, axes, a))
        for e in range(config.extras):
            other[width + e] = data.numbers[pivot, config.extra + e]
        tie = data.words[pivot * size + config.tie] if config.tie >= 0 else np.uint64(data.numbers[pivot, config.order])
        other[width + config.extras] = np.int64(tie)
        i, k = low, high
        while i <= k:
            while _compared(data, axes, config, i, j, width, other) < 0:
                i += 1
            while _compared(data, axes, config, k, j, width, other) > 0:
                k -= 1
            if i <= k:
                _exchange(data.words, i, k, size)
                i += 1
                k -= 1
        if middle <= k:
            high = k
        elif middle >= i:
            low = i
        else:
            break


@inlined
def copy_regions(regions: Any, to: Any, at: int) -> None:  # pragma: no cover
    """Copy the regions of a partition to one place among many."""
    for j in range(len(regions)):
        to[at, j, 0], to[at, j, 1] = regions[j, 0], regions[j, 1]
