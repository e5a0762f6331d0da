"""Clusters around one row after the other: a row and those nearest to it, or those that widen a box least."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from duckanon.kernels.boxtree import ALIVE, BEGIN, DEEPEST, FIRST, LEAF, LEFT, BoxTree, farthest, nearest, remove
from duckanon.kernels.bundle import bundled
from duckanon.kernels.jit import kernel, part
from duckanon.kernels.space import Space, copy, hulls, least_hulls, measure, stretched

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILLED, CLUSTERS, SEED = range(3)
"""The entries of ``Clusters.numbers``: the rows in clusters, the clusters, and the row that the last one began with."""


class Clusters(NamedTuple):
    """The clusters so far: ``order`` has the numbers of rows, cluster after cluster, which end at ``ends``."""

    numbers: NDArray[np.int64]
    order: NDArray[np.int64]
    ends: NDArray[np.int64]


def no_clusters(count: int, k: int) -> Clusters:
    """Return room for the clusters of rows."""
    return bundled(
        Clusters(np.zeros(3, dtype=np.int64), np.zeros(count, dtype=np.int64), np.zeros(count // k + 1, dtype=np.int64))
    )


@part
def _take(tree: BoxTree, clusters: Clusters, number: int) -> None:
    remove(tree, number)
    clusters.order[clusters.numbers[FILLED]] = number
    clusters.numbers[FILLED] += 1


@part
def _close(clusters: Clusters) -> None:
    clusters.ends[clusters.numbers[CLUSTERS]] = clusters.numbers[FILLED]
    clusters.numbers[CLUSTERS] += 1


@part
def _count(left, number: int, sign: int) -> None:  # type: ignore[no-untyped-def]
    """Add to the sums of a binary indexed tree, or take from them."""
    at = number + 1
    while at < len(left):
        left[at] += sign
        at += at & -at


@kernel
def count_all(left) -> None:  # type: ignore[no-untyped-def]
    """Count every row once."""
    for number in range(len(left) - 1):
        _count(left, number, 1)


@part
def _choose(left, rank: int) -> int:  # type: ignore[no-untyped-def]
    """Return the number of the row that has ``rank`` others of those left before it."""
    at, step = 0, 1
    while step * 2 < len(left):
        step *= 2
    while step:
        if at + step < len(left) and left[at + step] <= rank:
            at += step
            rank -= left[at]
        step //= 2
    return at


@kernel
def around_drawn(space: Space, tree: BoxTree, clusters: Clusters, left, draws, k: int, most: int) -> bool:  # type: ignore[no-untyped-def]
    """Make up to ``most`` clusters more around rows that are drawn; return whether fewer than k rows are left."""
    near, numbers = np.empty(k), np.empty(k, dtype=np.int64)
    row = np.empty(tree.point.shape[1])
    for _ in range(most):
        alive = tree.table[0, ALIVE]
        if alive < k:
            break
        number = _choose(left, min(int(draws[clusters.numbers[CLUSTERS]] * alive), alive - 1))
        copy(tree.point[tree.slot[number]], row)
        _take(tree, clusters, number)
        _count(left, number, -1)
        for i in range(nearest(space, tree, 0, row, k - 1, near, numbers)):
            _take(tree, clusters, numbers[i])
            _count(left, numbers[i], -1)
        _close(clusters)
    return tree.table[0, ALIVE] < k


@kernel
def around_seeds(space: Space, tree: BoxTree, clusters: Clusters, seeds, rows, k: int, most: int) -> bool:  # type: ignore[no-untyped-def]
    """Make up to ``most`` clusters more around rows that were drawn before; return whether all have theirs.

    Seeds, whose values are in ``rows``, are not in the tree: no other seed takes them.
    """
    near, numbers = np.empty(k), np.empty(k, dtype=np.int64)
    for _ in range(most):
        at = clusters.numbers[CLUSTERS]
        if at == len(seeds):
            break
        clusters.order[clusters.numbers[FILLED]] = seeds[at]
        clusters.numbers[FILLED] += 1
        for i in range(nearest(space, tree, 0, rows[at], k - 1, near, numbers)):
            _take(tree, clusters, numbers[i])
        _close(clusters)
    return clusters.numbers[CLUSTERS] == len(seeds)


@kernel
def take_away(tree: BoxTree, numbers) -> None:  # type: ignore[no-untyped-def]
    """Take rows out of a tree."""
    for number in numbers:
        remove(tree, number)


@part
def _best_fit(space: Space, tree: BoxTree, box) -> int:  # type: ignore[no-untyped-def]
    """Return the number of the row that widens a box least."""
    best, number = np.inf, -1
    stack, bounds = np.empty(DEEPEST, dtype=np.int64), np.empty(DEEPEST)
    wide = np.empty(LEAF)
    stack[0], bounds[0], depth = 0, 0.0, 1
    while depth:
        depth -= 1
        node, bound = stack[depth], bounds[depth]
        if bound > best or (bound == best and tree.table[node, FIRST] > number):
            continue
        left = tree.table[node, LEFT]
        if left < 0:
            begin = tree.table[node, BEGIN]
            end = begin + tree.table[node, ALIVE]
            stretched(space, tree.point, begin, end, box, wide)
            for s in range(begin, end):
                if wide[s - begin] < best or (wide[s - begin] == best and tree.number[s] < number):
                    best, number = wide[s - begin], tree.number[s]
            continue
        least_hulls(space, tree.box, left, box, wide)
        after = wide[1] < wide[0] or (wide[1] == wide[0] and tree.table[left + 1, FIRST] < tree.table[left, FIRST])
        for i in (1 - after, 0 + after):
            if tree.table[left + i, ALIVE]:
                stack[depth], bounds[depth] = left + i, wide[i]
                depth += 1
    return number


@kernel
def best_fitting(space: Space, tree: BoxTree, clusters: Clusters, last, k: int, most: int) -> bool:  # type: ignore[no-untyped-def]
    """Make up to ``most`` clusters more, each from the row farthest from where the one before began.

    ``last`` are the values of that row. Return whether fewer than k rows are left.
    """
    width = tree.point.shape[1]
    box = np.empty((2, width))
    for _ in range(most):
        if tree.table[0, ALIVE] < k:
            break
        number = farthest(space, tree, 1, last)
        copy(tree.point[tree.slot[number]], last)
        copy(last, box[0])
        copy(last, box[1])
        _take(tree, clusters, number)
        for _ in range(k - 1):
            number = _best_fit(space, tree, box)
            for j in range(width):
                x = tree.point[tree.slot[number], j]
                box[0, j], box[1, j] = min(box[0, j], x), max(box[1, j], x)
            _take(tree, clusters, number)
        _close(clusters)
    return tree.table[0, ALIVE] < k


@kernel
def add_rest(space: Space, rows, rest, boxes, sizes, into) -> None:  # type: ignore[no-untyped-def]
    """Find the cluster that each row left over goes to: the one whose width, times its rows, grows least.

    ``boxes`` and ``sizes`` of clusters grow with the rows that they get.
    """
    width, clusters = rows.shape[1], len(sizes)
    before, after = np.empty(clusters), np.empty(clusters)
    row = np.empty((2, width))
    for c in range(clusters):
        hulls(space, boxes, c, c + 1, boxes[c], before[c : c + 1])
    for at in range(len(rest)):
        copy(rows[rest[at]], row[0])
        copy(rows[rest[at]], row[1])
        hulls(space, boxes, 0, clusters, row, after)
        best, found = np.inf, 0
        for c in range(clusters):
            cost = (sizes[c] + 1) * after[c] - sizes[c] * before[c]
            if cost < best:
                best, found = cost, c
        into[at] = found
        sizes[found] += 1
        before[found] = after[found]
        for j in range(width):
            boxes[found, 0, j] = min(boxes[found, 0, j], row[0, j])
            boxes[found, 1, j] = max(boxes[found, 1, j], row[0, j])


@kernel
def varied(space: Space, tree: BoxTree, clusters: Clusters, ranked, gamma: float, k: int, most: int) -> bool:  # type: ignore[no-untyped-def]
    """Make up to ``most`` clusters of k to 2k - 1 rows more (V-MDAV), from the rows in the order of ``ranked``.

    Return whether fewer than k rows are left.
    """
    near, numbers = np.empty(k), np.empty(k, dtype=np.int64)
    beside, whose = np.empty(2 * k), np.empty(2 * k, dtype=np.int64)
    members = np.empty((2 * k, tree.point.shape[1]))
    for _ in range(most):
        if tree.table[0, ALIVE] < k:
            break
        at = clusters.numbers[SEED]
        while tree.slot[ranked[at]] < 0:
            at += 1
        clusters.numbers[SEED] = at
        copy(tree.point[tree.slot[ranked[at]]], members[0])
        _take(tree, clusters, ranked[at])
        size = 1
        for i in range(nearest(space, tree, 0, members[0], k - 1, near, numbers)):
            copy(tree.point[tree.slot[numbers[i]]], members[size])
            _take(tree, clusters, numbers[i])
            size += 1
        whose[:] = -1
        while size < 2 * k - 1 and tree.table[0, ALIVE]:
            best = 0
            for m in range(size):
                if whose[m] < 0 or tree.slot[whose[m]] < 0:
                    nearest(space, tree, 0, members[m], 1, near, numbers)
                    beside[m], whose[m] = near[0], numbers[0]
                if beside[m] < beside[best] or (beside[m] == beside[best] and whose[m] < whose[best]):
                    best = m
            number, inner = whose[best], beside[best]
            copy(tree.point[tree.slot[number]], members[size])
            outer = np.inf
            if nearest_others(space, tree, members[size], number, near, numbers):
                outer = near[0]
            if space.squares:
                inner, outer = np.sqrt(inner), np.sqrt(outer)
            if not inner < gamma * outer:
                break
            _take(tree, clusters, number)
            size += 1
        _close(clusters)
    return tree.table[0, ALIVE] < k


@part
def nearest_others(space: Space, tree: BoxTree, row, number: int, near, numbers) -> bool:  # type: ignore[no-untyped-def]
    """Find the row nearest to one that is in the tree itself; return whether there is another."""
    pair, who = np.empty(2), np.empty(2, dtype=np.int64)
    found = nearest(space, tree, 0, row, 2, pair, who)
    if found < 2:
        return False
    # Equal rows of smaller numbers may stand before the row itself, or in its place.
    i = 1 if who[0] == number else 0
    near[0], numbers[0] = pair[i], who[i]
    return True


@kernel
def nearest_middles(space: Space, rows, rest, middles, into) -> None:  # type: ignore[no-untyped-def]
    """Find the nearest of the middles to each row left over."""
    far = np.empty(len(middles))
    for at in range(len(rest)):
        measure(space, middles, 0, len(middles), rows[rest[at]], far)
        into[at] = np.argmin(far)


@kernel
def from_middle(space: Space, rows, middle, far) -> None:  # type: ignore[no-untyped-def]
    """Find the distance of every row from the middle."""
    measure(space, rows, 0, len(rows), middle, far)


@kernel
def to_own_middle(space: Space, rows, labels, middles, far) -> None:  # type: ignore[no-untyped-def]
    """Find the distance of every row from the middle of its cluster."""
    for i in range(len(rows)):
        measure(space, rows, i, i + 1, middles[labels[i]], far[i : i + 1])
