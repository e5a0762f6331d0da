"""Rows that are moved about: exchange two, and put the smaller half of a run first."""

from __future__ import annotations

from typing import Any

import numpy as np

from duckanon.kernels.jit import lean


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
def exchange(words: Any, i: int, k: int) -> None:  # pragma: no cover
    """Let two rows change places."""
    for w in range(words.shape[1]):
        word = words[i, w]
        words[i, w] = words[k, w]
        words[k, w] = word


@lean
def _compared(data: Any, how: Any, i: int, j: int, width: int, other: Any) -> int:  # pragma: no cover
    """Compare a row with one that was copied: by its place on axis j, the other places, its codes, its tie."""
    if data.rows[i, j] != other[j]:
        return -1 if data.rows[i, j] < other[j] else 1
    for a in range(width):
        if data.rows[i, a] != other[a]:
            return -1 if data.rows[i, a] < other[a] else 1
    for e in range(how.extras):
        if data.numbers[i, how.extra + e] != other[width + e]:
            return -1 if data.numbers[i, how.extra + e] < other[width + e] else 1
    own = data.words[i, how.tie] if how.tie >= 0 else np.uint64(data.numbers[i, how.order])
    last = np.uint64(other[width + how.extras])
    if own != last:
        return -1 if own < last else 1
    return 0


@lean
def select_ties(  # pragma: no cover
    data: Any, how: Any, start: int, end: int, middle: int, j: int, width: int, other: Any
) -> None:
    """Reorder rows so that those before ``middle`` come first in the order of ``_compared``.

    Rows that are equal in everything are interchangeable, so the result does not depend on the order they came in.
    ``other`` is room for what is compared of a row.
    """
    low, high = start, end - 1
    while low < high:
        pivot = (low + high) // 2
        for a in range(width):
            other[a] = data.rows[pivot, a]
        for e in range(how.extras):
            other[width + e] = data.numbers[pivot, how.extra + e]
        tie = data.words[pivot, how.tie] if how.tie >= 0 else np.uint64(data.numbers[pivot, how.order])
        other[width + how.extras] = np.int64(tie)
        i, k = low, high
        while i <= k:
            while _compared(data, how, i, j, width, other) < 0:
                i += 1
            while _compared(data, how, k, j, width, other) > 0:
                k -= 1
            if i <= k:
                exchange(data.words, i, k)
                i += 1
                k -= 1
        if middle <= k:
            high = k
        elif middle >= i:
            low = i
        else:
            break


@lean
def copy_regions(regions: Any, to: Any, at: int) -> None:  # pragma: no cover
    """Copy the regions of a partition to one place among many."""
    for j in range(len(regions)):
        to[at, j, 0], to[at, j, 1] = regions[j, 0], regions[j, 1]
