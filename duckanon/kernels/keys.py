"""What tells the rows of a partition apart on an axis: keys on some level, and how many rows have each."""

from __future__ import annotations

from typing import Any

import numpy as np

from duckanon.kernels.jit import inlined, lean, trailing_zeros
from duckanon.kernels.layout import COUNTS, HEADS, HIGH, INNER, LEVELS, LOW, NULL, SEEN, SPAN, START, TREE
from duckanon.kernels.rows import bits_of, place_of


@inlined
def weight(data: Any, config: Any, i: int) -> int:  # pragma: no cover
    """Return the rows of an item."""
    return int(data.numbers[i, config.many]) if config.many >= 0 else 1


@inlined
def ancestor(axes: Any, j: int, low: int, high: int) -> int:  # pragma: no cover
    """Return the level of the lowest common ancestor of two places of a tree."""
    at, span, level = axes.table[START, j], axes.table[SPAN, j], 0
    while axes.keys[at + low] != axes.keys[at + high]:
        at += span
        level += 1
    return level


@inlined
def width_of(axes: Any, j: int, low: int, high: int) -> float:  # pragma: no cover
    """Return how much of an axis a partition takes up, times its weight."""
    if high == axes.table[NULL, j]:
        return float(axes.weights[j])
    at = axes.table[START, j]
    if axes.table[TREE, j]:
        level = ancestor(axes, j, low, high)
        return float(axes.weights[j] * axes.widths[at + level * axes.table[SPAN, j] + low])
    whole = axes.widths[at + axes.table[SPAN, j] + low]
    return float(axes.weights[j] * ((axes.widths[at + high] - axes.widths[at + low]) / whole))


@inlined
def key_level(axes: Any, j: int, low: int, high: int) -> int:  # pragma: no cover
    """Return on which level rows are told apart: -1 by NULL, -2 not at all."""
    if low == high:
        return -2
    if high == axes.table[NULL, j]:
        return -1
    if axes.table[TREE, j]:
        return ancestor(axes, j, low, high) - 1
    at = axes.table[START, j] + axes.table[SPAN, j]
    if axes.keys[at + low] != axes.keys[at + high]:
        return 1
    return 0 if axes.table[INNER, j] else -2


@inlined
def is_line(axes: Any, j: int, level: int) -> bool:  # pragma: no cover
    """Say whether an axis is cut in two between atoms."""
    return axes.table[TREE, j] == 0 and level == 1


@inlined
def keys_at(axes: Any, j: int, level: int) -> int:  # pragma: no cover
    """Return where the keys of a level begin; those that tell NULL apart are the last of an axis."""
    return int(axes.table[START, j] + (level if level >= 0 else axes.table[LEVELS, j]) * axes.table[SPAN, j])


@lean
def tally(  # pragma: no cover
    data: Any, axes: Any, config: Any, start: int, end: int, j: int, level: int, scratch: Any, items: bool
) -> int:
    """Count the rows (or items) by their keys on axis j; SEEN lists the keys, ascending, counted from the smallest."""
    buffer, keys, words, seen = scratch.buffer, axes.keys, data.words, scratch.bits
    at, bits = keys_at(axes, j, level), bits_of(data, axes, j)
    first = keys[at + scratch.marks[LOW, j]]
    span = keys[at + scratch.marks[HIGH, j]] - first + 1
    plain = items or config.many < 0
    found = 0
    if plain and end - start >= 4 * span:
        # Every other row is counted apart, because neighbours that have the same key wait for each other.
        for own in range(span):
            buffer[HEADS, own] = 0
        middle = (start + end) // 2
        for i in range(start, middle):
            buffer[COUNTS, keys[at + place_of(words, i, bits)] - first] += 1
            buffer[HEADS, keys[at + place_of(words, i + middle - start, bits)] - first] += 1
        if (end - start) % 2:
            buffer[COUNTS, keys[at + place_of(words, end - 1, bits)] - first] += 1
        for own in range(span):
            buffer[COUNTS, own] += buffer[HEADS, own]
            if buffer[COUNTS, own] > 0:
                buffer[SEEN, found] = own
                found += 1
        return found
    for i in range(start, end):
        own = keys[at + place_of(words, i, bits)] - first
        seen[own >> 6] |= np.uint64(1) << np.uint64(own & 63)
        buffer[COUNTS, own] += 1 if plain else data.numbers[i, config.many]
    for w in range((span + 63) >> 6):
        left = seen[w]
        seen[w] = 0
        while left != 0:
            buffer[SEEN, found] = 64 * w + np.int64(trailing_zeros(left))
            found += 1
            left &= left - np.uint64(1)
    return found


@inlined
def clear(found: int, buffer: Any) -> None:  # pragma: no cover
    """Set the counts back to zero."""
    for i in range(found):
        buffer[COUNTS, buffer[SEEN, i]] = 0


@inlined
def halve(found: int, total: int, least: int, buffer: Any) -> int:  # pragma: no cover
    """Return the key after which a cut comes nearest to the half, -1 where none leaves enough on both sides.

    Of two that are equally near, the one with fewer rows on the left.
    """
    best, nearest, left = -1, total + 1, 0
    for i in range(found - 1):
        left += buffer[COUNTS, buffer[SEEN, i]]
        if left >= least and total - left >= least and abs(2 * left - total) < nearest:
            best, nearest = buffer[SEEN, i], abs(2 * left - total)
    return best
