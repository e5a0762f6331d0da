"""Distances: what clusters measure between rows, and how wide the smallest box around some of them is.

On a line and on a tree the distance from a value does not fall as one goes away from it along the places of the
column: so a box of places bounds the distances of all that lies in it, and the same boxes serve both. Many are measured
by one call, column by column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from duckanon.kernels.jit import part

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.float64]
    Boxes = NDArray[np.float64]
    Floats = NDArray[np.float64]

START, PLACES, LEVELS, PAIRS = range(4)
"""The rows of ``Space.table``."""


class Space(NamedTuple):
    """The columns, lines before trees; see ``algorithms.clusters``.

    On a line no two values are farther apart than ``caps``; what is missing lies that far behind the last number, at
    ``missing``. Of a tree, ``table[:, j]`` says where its nodes begin, how many places and levels it has, and where
    the widths of all pairs of places begin (-1: they are too many). Level v, for v above 0, has its nodes by place
    from START + (v - 1) * PLACES on, and ``widths`` has theirs at the same places. A column without levels is no tree:
    its places are apart by their pairs, in no order, and a box of them is looked through.

    Rows are values by row and column, boxes the least and the largest values by box, side and column.
    """

    lines: int
    table: NDArray[np.int64]
    nodes: NDArray[np.int32]
    widths: NDArray[np.float64]
    pairs: NDArray[np.float64]
    caps: NDArray[np.float64]
    missing: NDArray[np.float64]
    squares: bool


@part
def copy(source: Floats, target: Floats) -> None:
    """Copy a row: an assignment of arrays compiles what composes messages too, which takes longer than the rest."""
    for j in range(len(source)):
        target[j] = source[j]


@part
def copy_box(source: Rows, target: Rows) -> None:
    """Copy both sides of a box."""
    copy(source[0], target[0])
    copy(source[1], target[1])


@part
def empty(box: Rows) -> None:
    """Let a box hold nothing, so that it grows to whatever comes."""
    for j in range(box.shape[1]):
        box[0, j], box[1, j] = np.inf, -np.inf


@part
def above(space: Space, j: int, a: int, b: int) -> float:
    """Return how far two places of a tree are apart: the width of the lowest node over both."""
    at, places = space.table[PAIRS, j], space.table[PLACES, j]
    if at >= 0:
        return space.pairs[at + a * places + b]
    if a == b:
        return 0.0
    at = space.table[START, j]
    last = at + (space.table[LEVELS, j] - 2) * places
    while at < last and space.nodes[at + a] != space.nodes[at + b]:
        at += places
    return space.widths[at + a]


@part
def measure(space: Space, rows: Rows, first: int, last: int, row: Floats, found: Floats) -> None:
    """Find the distances of rows, from ``first`` to before ``last``, to one row."""
    found[: last - first] = 0.0
    for j in range(len(row)):
        x = row[j]
        if j < space.lines:
            cap = space.caps[j]
            for i in range(first, last):
                d = min(abs(rows[i, j] - x), cap)
                found[i - first] += d * d if space.squares else d
        else:
            for i in range(first, last):
                d = above(space, j, int(x), int(rows[i, j]))
                found[i - first] += d * d if space.squares else d


@part
def apart(space: Space, a: Floats, b: Floats) -> float:
    """Return the distance of two rows."""
    total = 0.0
    for j in range(len(a)):
        d = min(abs(a[j] - b[j]), space.caps[j]) if j < space.lines else above(space, j, int(a[j]), int(b[j]))
        total += d * d if space.squares else d
    return total


@part
def _least(space: Space, j: int, x: int, low: int, high: int) -> float:
    """Return the least distance of a place from those between two others."""
    if space.table[LEVELS, j]:
        return above(space, j, x, min(max(x, low), high))
    if low <= x <= high:
        return 0.0
    at = space.table[PAIRS, j] + x * space.table[PLACES, j]
    found = space.pairs[at + low]
    for y in range(low + 1, high + 1):
        found = min(found, space.pairs[at + y])
    return found


@part
def _most(space: Space, j: int, x: int, low: int, high: int) -> float:
    """Return the largest distance of a place from those between two others."""
    if space.table[LEVELS, j]:
        return max(above(space, j, x, low), above(space, j, x, high))
    at = space.table[PAIRS, j] + x * space.table[PLACES, j]
    found = space.pairs[at + low]
    for y in range(low + 1, high + 1):
        found = max(found, space.pairs[at + y])
    return found


@part
def nearest_of(space: Space, boxes: Boxes, first: int, row: Floats, found: Floats) -> None:
    """Find the least distance from a row that something within each of two boxes can have."""
    found[0], found[1] = 0.0, 0.0
    for j in range(len(row)):
        x = row[j]
        for i in range(2):
            low, high = boxes[first + i, 0, j], boxes[first + i, 1, j]
            if j < space.lines:
                d = min(abs(x - min(max(x, low), high)), space.caps[j])
            else:
                d = _least(space, j, int(x), int(low), int(high))
            found[i] += d * d if space.squares else d


@part
def farthest_of(space: Space, boxes: Boxes, first: int, row: Floats, found: Floats) -> None:
    """Find the largest distance from a row that something within each of two boxes can have."""
    found[0], found[1] = 0.0, 0.0
    for j in range(len(row)):
        x = row[j]
        for i in range(2):
            low, high = boxes[first + i, 0, j], boxes[first + i, 1, j]
            if j < space.lines:
                d = min(max(abs(x - low), abs(x - high)), space.caps[j])
            else:
                d = _most(space, j, int(x), int(low), int(high))
            found[i] += d * d if space.squares else d


@part
def hulls(space: Space, boxes: Boxes, first: int, last: int, box: Rows, found: Floats) -> None:
    """Find the widths of the smallest boxes that hold one box and each of others, all columns together."""
    found[: last - first] = 0.0
    for j in range(box.shape[1]):
        low, high = box[0, j], box[1, j]
        for i in range(first, last):
            a, b = min(low, boxes[i, 0, j]), max(high, boxes[i, 1, j])
            found[i - first] += min(b - a, space.caps[j]) if j < space.lines else above(space, j, int(a), int(b))


@part
def stretched(space: Space, rows: Rows, first: int, last: int, box: Rows, found: Floats) -> None:
    """Find the widths of the smallest boxes that hold one box and each of some rows."""
    found[: last - first] = 0.0
    for j in range(box.shape[1]):
        low, high = box[0, j], box[1, j]
        for i in range(first, last):
            a, b = min(low, rows[i, j]), max(high, rows[i, j])
            found[i - first] += min(b - a, space.caps[j]) if j < space.lines else above(space, j, int(a), int(b))


@part
def least_hulls(space: Space, boxes: Boxes, first: int, box: Rows, found: Floats) -> None:
    """Find the least width of a box that holds one box and something within each of two others."""
    found[0], found[1] = 0.0, 0.0
    for j in range(box.shape[1]):
        for i in range(2):
            a, b = min(box[0, j], boxes[first + i, 1, j]), max(box[1, j], boxes[first + i, 0, j])
            found[i] += min(b - a, space.caps[j]) if j < space.lines else above(space, j, int(a), int(b))
