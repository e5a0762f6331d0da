"""What tells the rows of a partition apart on an axis: keys on some level, and how many rows have each."""

from __future__ import annotations

from typing import Any

from duckanon.kernels.jit import lean
from duckanon.kernels.layout import COUNTS, HIGH, INNER, LEVELS, LOW, NULL, SEEN, SPAN, START, TREE
from duckanon.kernels.rows import sort_run


@lean
def weight(data: Any, how: Any, i: int) -> int:  # pragma: no cover
    """Return the rows of an item."""
    return int(data.numbers[i, how.many]) if how.many >= 0 else 1


@lean
def ancestor(axes: Any, j: int, low: int, high: int) -> int:  # pragma: no cover
    """Return the level of the lowest common ancestor of two places of a tree."""
    at, span, level = axes.table[START, j], axes.table[SPAN, j], 0
    while axes.keys[at + low] != axes.keys[at + high]:
        at += span
        level += 1
    return level


@lean
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


@lean
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


@lean
def is_line(axes: Any, j: int, level: int) -> bool:  # pragma: no cover
    """Say whether an axis is cut in two between atoms."""
    return axes.table[TREE, j] == 0 and level == 1


@lean
def keys_at(axes: Any, j: int, level: int) -> int:  # pragma: no cover
    """Return where the keys of a level begin; those that tell NULL apart are the last of an axis."""
    return int(axes.table[START, j] + (level if level >= 0 else axes.table[LEVELS, j]) * axes.table[SPAN, j])


@lean
def tally(  # pragma: no cover
    data: Any, axes: Any, how: Any, start: int, end: int, j: int, level: int, scratch: Any, items: bool
) -> int:
    """Count the rows (or items) by their keys on axis j; SEEN lists the keys, ascending, counted from the smallest."""
    room, keys, rows = scratch.room, axes.keys, data.rows
    at = keys_at(axes, j, level)
    first = keys[at + scratch.marks[LOW, j]]
    found = 0
    plain = items or how.many < 0
    for i in range(start, end):
        own = keys[at + rows[i, j]] - first
        if room[COUNTS, own] == 0:
            room[SEEN, found] = own
            found += 1
        room[COUNTS, own] += 1 if plain else data.numbers[i, how.many]
    span = keys[at + scratch.marks[HIGH, j]] - first + 1
    if span <= 4 * found:
        found = 0
        for own in range(span):
            if room[COUNTS, own] > 0:
                room[SEEN, found] = own
                found += 1
    else:
        sort_run(room[SEEN], 0, found)
    return found


@lean
def clear(found: int, room: Any) -> None:  # pragma: no cover
    """Set the counts back to zero."""
    for i in range(found):
        room[COUNTS, room[SEEN, i]] = 0


@lean
def halve(found: int, total: int, least: int, room: Any) -> int:  # pragma: no cover
    """Return the key after which a cut comes nearest to the half, -1 where none leaves enough on both sides.

    Of two that are equally near, the one with fewer rows on the left.
    """
    best, nearest, left = -1, total + 1, 0
    for i in range(found - 1):
        left += room[COUNTS, room[SEEN, i]]
        if left >= least and total - left >= least and abs(2 * left - total) < nearest:
            best, nearest = room[SEEN, i], abs(2 * left - total)
    return best
