"""MDAV without a tree: every row left is measured each time, column by column.

Boxes hardly separate rows of many columns, above all where categories differ or do not. Then it is faster to measure
all rows left than to look for those that need not be: they stand side by side, the last takes the place of one that is
taken away. The clusters are those of ``kernels.mdav``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from duckanon.kernels.bundle import bundled
from duckanon.kernels.jit import kernel, part
from duckanon.kernels.mdav import CLUSTERS, FILLED, LEFT_OVER, State, close, set_centre
from duckanon.kernels.space import PAIRS, PLACES, Space, above

if TYPE_CHECKING:
    from numpy.typing import NDArray


class RemainingRows(NamedTuple):
    """The rows left: ``columns[j, s]`` by slot, ``number[s]`` of each, and how far each is from some row."""

    columns: NDArray[np.float64]
    number: NDArray[np.int64]
    far: NDArray[np.float64]


def all_rows(points: NDArray[np.float64]) -> RemainingRows:
    """Return all rows."""
    count = len(points)
    columns = np.ascontiguousarray(points.T)
    return bundled(RemainingRows(columns, np.arange(count, dtype=np.int64), np.empty(count)))


@part
def _measure(space: Space, left: RemainingRows, count: int, row) -> None:  # type: ignore[no-untyped-def]
    """Find how far every row left is from one."""
    far = left.far[:count]
    far[:] = 0.0
    for j in range(len(row)):
        x, own = row[j], left.columns[j, :count]
        if j < space.lines:
            cap = space.caps[j]
            if space.squares:
                for s in range(count):
                    d = min(abs(own[s] - x), cap)
                    far[s] += d * d
            else:
                for s in range(count):
                    far[s] += min(abs(own[s] - x), cap)
        elif space.table[PAIRS, j] >= 0:
            start = space.table[PAIRS, j] + int(x) * space.table[PLACES, j]
            pairs = space.pairs[start : start + space.table[PLACES, j]]
            if space.squares:
                for s in range(count):
                    d = pairs[int(own[s])]
                    far[s] += d * d
            else:
                for s in range(count):
                    far[s] += pairs[int(own[s])]
        else:
            for s in range(count):
                d = above(space, j, int(x), int(own[s]))
                far[s] += d * d if space.squares else d


@part
def _farthest(left: RemainingRows, count: int) -> int:
    """Return the slot of the row farthest away, the first of several by number."""
    best = 0
    for s in range(1, count):
        if left.far[s] > left.far[best] or (left.far[s] == left.far[best] and left.number[s] < left.number[best]):
            best = s
    return best


@part
def _take(space: Space, left: RemainingRows, state: State, s: int) -> None:
    """Put the row of a slot into the cluster that is made."""
    last = state.numbers[LEFT_OVER] - 1
    for j in range(len(left.columns)):
        x = left.columns[j, s]
        if j >= space.lines:
            state.tally[state.starts[j] + int(x)] -= 1
        elif x != space.missing[j]:
            state.sums[j] -= x
            state.counts[j] -= 1
        left.columns[j, s] = left.columns[j, last]
    state.order[state.numbers[FILLED]] = left.number[s]
    left.number[s], left.far[s] = left.number[last], left.far[last]
    state.numbers[FILLED] += 1
    state.numbers[LEFT_OVER] = last


@part
def _nearest(left: RemainingRows, count: int, most: int, state: State) -> int:
    """Find the slots of the rows nearest, in order of distance and number; return how many, at most ``most``."""
    found = 0
    for s in range(count):
        d = left.far[s]
        if found == most and d > state.distances[most - 1]:
            continue
        at = found if found < most else most - 1
        if found == most and d == state.distances[at] and left.number[s] > left.number[state.near[at]]:
            continue
        while at and (
            d < state.distances[at - 1]
            or (d == state.distances[at - 1] and left.number[s] < left.number[state.near[at - 1]])
        ):
            state.distances[at], state.near[at] = state.distances[at - 1], state.near[at - 1]
            at -= 1
        state.distances[at], state.near[at] = d, s
        found = min(found + 1, most)
    return found


@part
def _around(space: Space, left: RemainingRows, state: State, s: int, row, k: int) -> None:  # type: ignore[no-untyped-def]
    """Make a cluster of the row of a slot and the k - 1 rows nearest to it; the others stay measured from it."""
    for j in range(len(row)):
        row[j] = left.columns[j, s]
    _take(space, left, state, s)
    count = state.numbers[LEFT_OVER]
    _measure(space, left, count, row)
    found = _nearest(left, count, k - 1, state) if k > 1 else 0
    # Slots from the last on, so that the row that takes the place of one is none of those to be taken.
    taken = state.near[:found]
    taken.sort()
    for i in range(found - 1, -1, -1):
        _take(space, left, state, taken[i])
    close(state)


@kernel
def begin(space: Space, left: RemainingRows, state: State) -> None:
    """Set the middle of all rows."""
    for s in range(len(left.number)):
        for j in range(len(left.columns)):
            x = left.columns[j, s]
            if j >= space.lines:
                state.tally[state.starts[j] + int(x)] += 1
            elif x != space.missing[j]:
                state.sums[j] += x
                state.counts[j] += 1
    set_centre(space, state)


@kernel
def make(space: Space, left: RemainingRows, state: State, k: int, most: int) -> bool:
    """Make up to ``most`` clusters more; return whether all rows are in clusters."""
    row = np.empty(len(left.columns))
    until = state.numbers[CLUSTERS] + most
    while state.numbers[LEFT_OVER] >= 2 * k:
        if state.numbers[CLUSTERS] >= until:
            return False
        two = state.numbers[LEFT_OVER] >= 3 * k
        _measure(space, left, state.numbers[LEFT_OVER], state.centre)
        _around(space, left, state, _farthest(left, state.numbers[LEFT_OVER]), row, k)
        if two:
            _around(space, left, state, _farthest(left, state.numbers[LEFT_OVER]), row, k)
        set_centre(space, state)
    if state.numbers[LEFT_OVER]:
        while state.numbers[LEFT_OVER]:
            _take(space, left, state, state.numbers[LEFT_OVER] - 1)
        close(state)
    return True
