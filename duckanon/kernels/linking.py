"""Linking people to published cells: the nearest ones by a tree of boxes, patterns of agreement, and votes.

A published tuple is a box: on each column it stands for the places from ``low`` to ``high``. A person is a point. The
distance is Gower's: what lies between on ordered columns, at most 1, and 0 or 1 on the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from duckanon.kernels.jit import kernel, part

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAF = 12
"""Most tuples of a leaf."""
DEEPEST = 128
"""More levels than a tree has, which halves tuples."""
BEGIN, END, LEFT = range(3)
"""The columns of ``Tree.table``: the tuples of a node by their place in ``order``, and its first child (-1: a leaf)."""
CLOSE = 1e-12
"""Distances that differ by less are the same."""
AGREE, NEAR, DIFFER = range(3)
"""How a person and a cell compare: it can stand for the value, for one near it, or for neither."""


class Places(NamedTuple):
    """What the cells of columns stand for; the cells of column j begin at ``offset[j]``.

    ``start`` is -1 where a cell has no gaps; else its places are ``members`` from start to before stop.
    """

    ordered: NDArray[np.bool_]
    offset: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    members: NDArray[np.float64]


class Tree(NamedTuple):
    """Boxes around tuples, halved again and again."""

    table: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    order: NDArray[np.int64]


@part
def _gap(places: Places, j: int, cell: int, x: float) -> float:
    """Return the distance of a place from what a cell stands for."""
    at = places.offset[j] + cell
    low, high = places.low[at], places.high[at]
    if low <= x <= high:
        begin = places.start[at]
        if begin < 0:
            return 0.0
        end = places.stop[at]
        last = end
        while begin < end:
            middle = (begin + end) // 2
            if places.members[middle] < x:
                begin = middle + 1
            else:
                end = middle
        return 0.0 if begin < last and places.members[begin] == x else 1.0
    if not places.ordered[j]:
        return 1.0
    return min(low - x if x < low else x - high, 1.0)


@part
def _apart(places: Places, cells, row: int, point) -> float:  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(point)):
        total += _gap(places, j, cells[row, j], point[j])
    return total


@part
def _bound(places: Places, low, high, point) -> float:  # type: ignore[no-untyped-def]
    """Return the least distance that anything within a box can have."""
    total = 0.0
    for j in range(len(point)):
        x = point[j]
        if x < low[j]:
            total += min(low[j] - x, 1.0) if places.ordered[j] else 1.0
        elif x > high[j]:
            total += min(x - high[j], 1.0) if places.ordered[j] else 1.0
    return total


@kernel
def grow(places: Places, cells, tree: Tree) -> int:  # type: ignore[no-untyped-def]
    """Build the tree of tuples; return how many nodes it has.

    A node is halved on the column whose middles lie farthest apart, an unordered one with two places counting as 1.
    """
    width = cells.shape[1]
    stack = np.empty(2 * DEEPEST, dtype=np.int64)
    tree.table[0, BEGIN], tree.table[0, END], nodes = 0, len(cells), 1
    stack[0], depth = 0, 1
    while depth:
        depth -= 1
        node = stack[depth]
        begin, end = tree.table[node, BEGIN], tree.table[node, END]
        best, column = -1.0, 0
        for j in range(width):
            low, high, first, last = np.inf, -np.inf, np.inf, -np.inf
            for s in range(begin, end):
                at = places.offset[j] + cells[tree.order[s], j]
                a, b = places.low[at], places.high[at]
                low, high = min(low, a), max(high, b)
                middle = _middle(a, b)
                first, last = min(first, middle), max(last, middle)
            tree.low[node, j], tree.high[node, j] = low, high
            spread = last - first
            if not places.ordered[j]:
                spread = 1.0 if last > first else 0.0
            if spread > best:
                best, column = spread, j
        if end - begin <= LEAF:
            tree.table[node, LEFT] = -1
            continue
        keys = np.empty(end - begin)
        for s in range(begin, end):
            at = places.offset[column] + cells[tree.order[s], column]
            keys[s - begin] = _middle(places.low[at], places.high[at])
        tree.order[begin:end] = tree.order[begin:end][np.argsort(keys, kind="mergesort")]
        half = (begin + end) // 2
        tree.table[node, LEFT] = nodes
        tree.table[nodes, BEGIN], tree.table[nodes, END] = begin, half
        tree.table[nodes + 1, BEGIN], tree.table[nodes + 1, END] = half, end
        stack[depth], stack[depth + 1] = nodes, nodes + 1
        depth += 2
        nodes += 2
    return nodes


@part
def _middle(low: float, high: float) -> float:
    # What stands for everything has no middle.
    return 0.5 if low == -np.inf else (low + high) / 2


def new_tree(cells: NDArray[np.int32]) -> Tree:
    """Return room for a tree over tuples."""
    count, width = cells.shape
    nodes = 4 * (count // LEAF + 1) + 2
    return Tree(
        np.zeros((nodes, 3), dtype=np.int64),
        np.zeros((nodes, width)),
        np.zeros((nodes, width)),
        np.arange(count, dtype=np.int64),
    )


@part
def _visit(places: Places, cells, tree: Tree, point, best: float, found, fill: bool):  # type: ignore[no-untyped-def]
    """Look for the least distance (``found`` is empty), or gather tuples that are no farther than ``best``."""
    stack, bounds = np.empty(DEEPEST, dtype=np.int64), np.empty(DEEPEST)
    stack[0], bounds[0], depth, count = 0, 0.0, 1, 0
    while depth:
        depth -= 1
        if bounds[depth] > best + CLOSE:
            continue
        node = stack[depth]
        left = tree.table[node, LEFT]
        if left < 0:
            for s in range(tree.table[node, BEGIN], tree.table[node, END]):
                far = _apart(places, cells, tree.order[s], point)
                if fill:
                    if far <= best + CLOSE:
                        if len(found):
                            found[count] = tree.order[s]
                        count += 1
                elif far < best:
                    best = far
            continue
        one = _bound(places, tree.low[left], tree.high[left], point)
        two = _bound(places, tree.low[left + 1], tree.high[left + 1], point)
        after = two < one
        # The nearer of the two is the next to be looked at.
        stack[depth], bounds[depth] = (left, one) if after else (left + 1, two)
        stack[depth + 1], bounds[depth + 1] = (left + 1, two) if after else (left, one)
        depth += 2
    return best, count


@kernel
def least(places: Places, cells, tree: Tree, points, far, counts) -> None:  # type: ignore[no-untyped-def]
    """Find for each person the least distance of a tuple, and how many tuples have it."""
    nothing = np.empty(0, dtype=np.int64)
    for i in range(len(points)):
        far[i], _ = _visit(places, cells, tree, points[i], np.inf, nothing, False)
        _, counts[i] = _visit(places, cells, tree, points[i], far[i], nothing, True)


@kernel
def gather(places: Places, cells, tree: Tree, points, far, starts, found) -> None:  # type: ignore[no-untyped-def]
    """Write the tuples at that distance, those of person i from ``starts[i]`` on."""
    for i in range(len(points)):
        _visit(places, cells, tree, points[i], far[i], found[starts[i] : starts[i + 1]], True)


@part
def _compare(places: Places, point, near: float, levels) -> None:  # type: ignore[no-untyped-def]
    """Compare a person with every cell of every column: what it adds to a pattern, a number to base 3."""
    worth = 1
    for j in range(len(point)):
        end = places.offset[j + 1] if j + 1 < len(point) else len(places.low)
        for at in range(places.offset[j], end):
            far = _gap(places, j, at - places.offset[j], point[j])
            levels[at] = worth * (AGREE if far == 0.0 else NEAR if far <= near else DIFFER)
        worth *= 3


@part
def _pattern(places: Places, cells, row: int, levels) -> int:  # type: ignore[no-untyped-def]
    code = 0
    for j in range(cells.shape[1]):
        code += levels[places.offset[j] + cells[row, j]]
    return code


@kernel
def patterns(places: Places, cells, sizes, points, near: float, counts) -> None:  # type: ignore[no-untyped-def]
    """Count the pairs of people and published rows by how their columns compare."""
    levels = np.empty(len(places.low), dtype=np.int64)
    for i in range(len(points)):
        _compare(places, points[i], near, levels)
        for r in range(len(cells)):
            counts[_pattern(places, cells, r, levels)] += sizes[r]


@kernel
def heaviest(places: Places, cells, points, near: float, weights, best, counts) -> None:  # type: ignore[no-untyped-def]
    """Find for each person the largest weight of a tuple, and how many tuples have it."""
    levels = np.empty(len(places.low), dtype=np.int64)
    for i in range(len(points)):
        _compare(places, points[i], near, levels)
        best[i], counts[i] = -np.inf, 0
        for r in range(len(cells)):
            weight = weights[_pattern(places, cells, r, levels)]
            if weight > best[i]:
                best[i], counts[i] = weight, 1
            elif weight == best[i]:
                counts[i] += 1


@kernel
def gather_heaviest(places: Places, cells, points, near: float, weights, best, starts, found) -> None:  # type: ignore[no-untyped-def]
    """Write the tuples of that weight, those of person i from ``starts[i]`` on."""
    levels = np.empty(len(places.low), dtype=np.int64)
    for i in range(len(points)):
        _compare(places, points[i], near, levels)
        at = starts[i]
        for r in range(len(cells)):
            if at == starts[i + 1]:
                break
            if weights[_pattern(places, cells, r, levels)] == best[i]:
                found[at] = r
                at += 1


@kernel
def both_near(places: Places, cells, sizes, points, first, shared) -> None:  # type: ignore[no-untyped-def]
    """Find the chance that one row drawn from the nearest by some columns is the one drawn by the others.

    ``first`` says which columns belong to the one part.
    """
    count, width = cells.shape
    one, two = np.empty(count), np.empty(count)
    far = np.empty(len(places.low))
    for i in range(len(points)):
        for j in range(width):
            end = places.offset[j + 1] if j + 1 < width else len(places.low)
            for at in range(places.offset[j], end):
                far[at] = _gap(places, j, at - places.offset[j], points[i, j])
        least_one, least_two = np.inf, np.inf
        for r in range(count):
            a, b = 0.0, 0.0
            for j in range(width):
                gap = far[places.offset[j] + cells[r, j]]
                if first[j]:
                    a += gap
                else:
                    b += gap
            one[r], two[r] = a, b
            least_one, least_two = min(least_one, a), min(least_two, b)
        rows_one, rows_two, rows_both = 0, 0, 0
        for r in range(count):
            in_one, in_two = one[r] <= least_one + CLOSE, two[r] <= least_two + CLOSE
            rows_one += sizes[r] if in_one else 0
            rows_two += sizes[r] if in_two else 0
            rows_both += sizes[r] if in_one and in_two else 0
        shared[i] = rows_both / (float(rows_one) * rows_two)


@kernel
def votes(starts, found, begins, codes, sizes, truth, numbers, tolerance: float, hits) -> None:  # type: ignore[no-untyped-def]
    """Find how often the guess from linked tuples is right.

    The values of tuple r are ``codes`` from ``begins[r]`` on, with their numbers of rows. Without a tolerance (below
    0) the guess is the most frequent value, and a tie is settled by lot; with one it is the median, and right if it is
    that near the truth, as a share of it.
    """
    counts = np.zeros(len(numbers), dtype=np.int64)
    seen = np.empty(len(numbers), dtype=np.int64)
    for i in range(len(truth)):
        touched, total = 0, 0
        for at in range(starts[i], starts[i + 1]):
            for e in range(begins[found[at]], begins[found[at] + 1]):
                if counts[codes[e]] == 0:
                    seen[touched] = codes[e]
                    touched += 1
                counts[codes[e]] += sizes[e]
                total += sizes[e]
        hits[i] = 0.0
        if tolerance < 0:
            most, alike = 0, 0
            for s in range(touched):
                n = counts[seen[s]]
                if n > most:
                    most, alike = n, 0
                alike += int(n == most)
            if truth[i] >= 0 and most > 0 and counts[truth[i]] == most:
                hits[i] = 1.0 / alike
        elif touched:
            passed, guess = 0, -1
            for code in np.sort(seen[:touched]):
                passed += counts[code]
                if 2 * passed >= total:
                    guess = code
                    break
            if truth[i] >= 0:
                off = abs(numbers[guess] - numbers[truth[i]])
                hits[i] = 1.0 if guess == truth[i] or off <= tolerance * abs(numbers[truth[i]]) else 0.0
        for s in range(touched):
            counts[seen[s]] = 0


@kernel
def fitting(places: Places, cells, points, columns, order, begins, ends, enough: int, counts) -> None:  # type: ignore[no-untyped-def]
    """Count for each tuple the people for whom all of its cells can stand; counting ends at ``enough``.

    ``columns`` are those of ``points`` that the cells are of. Only people from ``begins[r]`` to before ``ends[r]`` of
    ``order`` are looked at for tuple r.
    """
    for r in range(len(cells)):
        counts[r] = 0
        for s in range(begins[r], ends[r]):
            fits = True
            for j in range(cells.shape[1]):
                if _gap(places, j, cells[r, j], points[order[s], columns[j]]) > 0.0:
                    fits = False
                    break
            if fits:
                counts[r] += 1
                if counts[r] == enough:
                    break
