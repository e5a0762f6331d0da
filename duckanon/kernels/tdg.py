"""Top-down greedy division: two rows far apart, every other goes to the nearer, and so on with both groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from duckanon.kernels.bundle import bundled
from duckanon.kernels.jit import kernel, part
from duckanon.kernels.space import Space, copy, empty, hulls, measure, stretched

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROUNDS = 6
"""How often the farthest row is looked for, at most."""
_SHARE = 16
"""Rows as near to one as to the other go to where they cost less, if both groups get one of so many rows then."""


class Data(NamedTuple):
    """The rows in the order of their groups, and by number within these; ``last`` marks the last row of a class.

    ``counts`` has the rows that each stands for, ``ranks`` the order in which rows are to be taken as seeds; it is
    empty where they are drawn.
    """

    points: NDArray[np.float64]
    counts: NDArray[np.int64]
    numbers: NDArray[np.int64]
    ranks: NDArray[np.int64]
    last: NDArray[np.bool_]


class Buffers(NamedTuple):
    """Room to work in, one for each thread."""

    near: NDArray[np.float64]
    far: NDArray[np.float64]
    side: NDArray[np.bool_]
    points: NDArray[np.float64]
    counts: NDArray[np.int64]
    numbers: NDArray[np.int64]


def new_buffers(count: int, width: int) -> Buffers:
    """Return room for groups of so many rows."""
    return bundled(
        Buffers(
            np.empty(count),
            np.empty(count),
            np.empty(count, dtype=np.bool_),
            np.empty((count, width)),
            np.empty(count, dtype=np.int64),
            np.empty(count, dtype=np.int64),
        )
    )


@part
def _drawn(seed: int, path: int, count: int) -> int:
    """Return a number below ``count`` that a seed and the path to a group decide."""
    z = np.uint64(seed) + np.uint64(path) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return int(np.int64(z % np.uint64(count)))


@part
def _first(data: Data, start: int, end: int, seed: int, path: int) -> int:
    """Return where the search for two rows far apart begins."""
    if len(data.ranks) == 0:
        return start + _drawn(seed, path, end - start)
    best = start
    for i in range(start + 1, end):
        if data.ranks[data.numbers[i]] < data.ranks[data.numbers[best]]:
            best = i
    return best


@part
def _apart(space: Space, data: Data, buffer: Buffers, start: int, end: int, first: int) -> bool:
    """Mark the rows that go to the second of two rows far apart; return whether there are such rows."""
    count = end - start
    near, far = buffer.near, buffer.far
    measure(space, data.points, start, end, data.points[first], near)
    second = start + np.argmax(near[:count])
    best = near[second - start]
    if best == 0.0:
        return False
    for turn in range(_ROUNDS):
        # ``far`` has the distances from the second, ``near`` those from the first.
        measure(space, data.points, start, end, data.points[second], far)
        third = start + np.argmax(far[:count])
        if far[third - start] <= best or turn == _ROUNDS - 1:
            break
        best, second = far[third - start], third
        near, far = far, near
    _shared(space, data, buffer.side, start, count, near, far)
    return True


@part
def _shared(space: Space, data: Data, side, start: int, count: int, near, far) -> None:  # type: ignore[no-untyped-def]
    """Mark the rows nearer to the second of two; ``near`` and ``far`` have the distances from both, and are changed.

    Those as near to one as to the other go where the width of what is nearer, times its rows, grows less, unless hardly
    any row were left in one group. The others go to where fewer rows are, one after the other, equal ones together.
    """
    width = data.points.shape[1]
    rows, boxes = np.zeros(2, dtype=np.int64), np.empty((2, 2, width))
    for own in range(2):
        empty(boxes[own])
    total = 0
    for i in range(count):
        total += data.counts[start + i]
        if near[i] != far[i]:
            side[i] = near[i] > far[i]
            own = int(side[i])
            rows[own] += data.counts[start + i]
            for j in range(width):
                x = data.points[start + i, j]
                boxes[own, 0, j], boxes[own, 1, j] = min(boxes[own, 0, j], x), max(boxes[own, 1, j], x)
    if rows[0] + rows[1] == total:
        return
    before, after, grown = np.empty(2), np.empty(2), np.zeros(2, dtype=np.int64)
    for own in range(2):
        hulls(space, boxes, own, own + 1, boxes[own], before[own : own + 1])
    for i in range(count):
        if near[i] == far[i]:
            more = data.counts[start + i]
            for own in range(2):
                stretched(space, data.points, start + i, start + i + 1, boxes[own], after[own : own + 1])
                after[own] = (rows[own] + more) * after[own] - rows[own] * before[own]
            # From here on infinity tells these rows from the others.
            near[i], far[i] = after[0] - after[1], np.inf
            if near[i] != 0.0:
                grown[int(near[i] > 0.0)] += more
    least = min(total - rows[0] - grown[0], total - rows[1] - grown[1])
    by_cost = _SHARE * least >= total
    if by_cost:
        rows[0] += grown[0]
        rows[1] += grown[1]
    last = -1
    for i in range(count):
        if far[i] != np.inf:
            continue
        if by_cost and near[i] != 0.0:
            side[i] = near[i] > 0.0
            continue
        same = last >= 0
        for j in range(width):
            same = same and data.points[start + i, j] == data.points[start + last, j]
        side[i] = side[last] if same else rows[1] < rows[0]
        rows[int(side[i])] += data.counts[start + i]
        last = i


@part
def _borrow(space: Space, data: Data, buffer: Buffers, start: int, end: int, k: int) -> bool:
    """Give the smaller group what it lacks, from the nearest rows of the other; return whether that can be done."""
    count, width = end - start, data.points.shape[1]
    rows = np.zeros(2, dtype=np.int64)
    for i in range(count):
        rows[int(buffer.side[i])] += data.counts[start + i]
    small = rows[1] < rows[0]
    own, other = int(small), 1 - int(small)
    if rows[own] >= k:
        return True
    box = np.empty((2, width))
    empty(box)
    for i in range(count):
        if buffer.side[i] == small:
            for j in range(width):
                x = data.points[start + i, j]
                box[0, j], box[1, j] = min(box[0, j], x), max(box[1, j], x)
    stretched(space, data.points, start, end, box, buffer.near)
    for i in range(count):
        if buffer.side[i] == small:
            buffer.near[i] = np.inf
    while rows[own] < k:
        # Those that are too many for the other group to lose are passed over.
        best = np.argmin(buffer.near[:count])
        if buffer.near[best] == np.inf:
            return False
        buffer.near[best] = np.inf
        taken = data.counts[start + best]
        if rows[other] - taken >= k:
            buffer.side[best] = small
            rows[own] += taken
            rows[other] -= taken
    return True


@part
def _halve(space: Space, data: Data, buffer: Buffers, start: int, end: int, path: int, seed: int, k: int) -> int:
    """Divide a group in two; return where the second begins, or the end of a group that is a class."""
    total, count = 0, end - start
    for i in range(start, end):
        total += data.counts[i]
    if total < 2 * k or count < 2:
        return end
    if not _apart(space, data, buffer, start, end, _first(data, start, end, seed, path)):
        return end
    if not _borrow(space, data, buffer, start, end, k):
        return end
    at = 0
    middle = end
    for side in range(2):
        for i in range(count):
            if buffer.side[i] == side:
                copy(data.points[start + i], buffer.points[at])
                buffer.counts[at], buffer.numbers[at] = data.counts[start + i], data.numbers[start + i]
                at += 1
        if side == 0:
            middle = start + at
    for i in range(count):
        copy(buffer.points[i], data.points[start + i])
        data.counts[start + i], data.numbers[start + i] = buffer.counts[i], buffer.numbers[i]
    return middle


@kernel
def halve(space: Space, data: Data, buffer: Buffers, start: int, end: int, path: int, seed: int, k: int) -> int:
    """Divide a group in two; return where the second begins, or the end of a group that is a class."""
    middle = _halve(space, data, buffer, start, end, path, seed, k)
    if middle == end:
        data.last[end - 1] = True
    return middle


@kernel
def finish(space: Space, data: Data, buffer: Buffers, start: int, end: int, path: int, seed: int, k: int) -> None:
    """Divide a group until nothing can be divided any more."""
    # The larger of two groups waits, so that few do.
    waiting = np.empty((64, 3), dtype=np.int64)
    waiting[0, 0], waiting[0, 1], waiting[0, 2], depth = start, end, path, 1
    while depth:
        depth -= 1
        start, end, path = waiting[depth, 0], waiting[depth, 1], waiting[depth, 2]
        middle = _halve(space, data, buffer, start, end, path, seed, k)
        if middle == end:
            data.last[end - 1] = True
            continue
        larger = middle - start > end - middle
        for i in range(2):
            if (i == 0) == larger:
                waiting[depth, 0], waiting[depth, 1], waiting[depth, 2] = start, middle, 2 * path % 2**62
            else:
                waiting[depth, 0], waiting[depth, 1], waiting[depth, 2] = middle, end, (2 * path + 1) % 2**62
            depth += 1
