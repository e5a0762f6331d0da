"""A tree of boxes over rows that are taken away one by one: the nearest and the farthest of those left.

Answers are exact, ties go to the smaller number: a box is passed over only where nothing in it can be better, and
rounding cannot hide that, because sums of larger terms are never rounded to less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from duckanon.kernels.bundle import bundled
from duckanon.kernels.jit import kernel, part
from duckanon.kernels.space import Space, above, copy_box, farthest_of, measure, nearest_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAF = 12
"""Most rows of a leaf."""
LEFT, PARENT, BEGIN, ALIVE, FIRST = range(5)
"""The columns of ``BoxTree.table``: the first of two children (-1: a leaf), the node above, the first slot of what is
below it, how many rows are left, and the smallest of their numbers."""
DEEPEST = 128
"""More levels than a tree has, which halves rows."""


class BoxTree(NamedTuple):
    """Rows stand in slots, those of a leaf side by side, and of these first those that are left.

    ``box`` bounds the rows left in each node. ``point[slot]`` is a row, ``number[slot]`` its number,
    ``slot[number]`` where it stands (-1: taken away), ``leaf[slot]`` the leaf of a slot.
    """

    table: NDArray[np.int32]
    box: NDArray[np.float64]
    point: NDArray[np.float64]
    number: NDArray[np.int64]
    slot: NDArray[np.int64]
    leaf: NDArray[np.int32]


def new_tree(points: NDArray[np.float64], roots: int = 1) -> BoxTree:
    """Return room for a tree over rows, or for several."""
    count, width = points.shape
    # Halving ends above LEAF / 2 rows.
    nodes = 4 * (count // LEAF + 1) + 2 * roots
    return bundled(
        BoxTree(
            np.full((nodes, 5), -1, dtype=np.int32),
            np.zeros((nodes, 2, width)),
            points.copy(),
            np.arange(count, dtype=np.int64),
            np.arange(count, dtype=np.int64),
            np.zeros(count, dtype=np.int32),
        )
    )


@part
def _swap(tree: BoxTree, a: int, b: int) -> None:
    for j in range(tree.point.shape[1]):
        tree.point[a, j], tree.point[b, j] = tree.point[b, j], tree.point[a, j]
    tree.number[a], tree.number[b] = tree.number[b], tree.number[a]
    tree.slot[tree.number[a]] = a
    tree.slot[tree.number[b]] = b


@part
def _bound(tree: BoxTree, node: int) -> None:
    """Set the box, the rows and the first number of a node from what is below it."""
    width = tree.point.shape[1]
    left = tree.table[node, LEFT]
    if left < 0:
        begin, alive = tree.table[node, BEGIN], tree.table[node, ALIVE]
        if not alive:
            # Boxes of what is empty are measured too: they stay where places are.
            return
        first = len(tree.number)
        for j in range(width):
            tree.box[node, 0, j], tree.box[node, 1, j] = np.inf, -np.inf
        for s in range(begin, begin + alive):
            first = min(first, tree.number[s])
            for j in range(width):
                x = tree.point[s, j]
                tree.box[node, 0, j] = min(tree.box[node, 0, j], x)
                tree.box[node, 1, j] = max(tree.box[node, 1, j], x)
        tree.table[node, FIRST] = first
        return
    tree.table[node, ALIVE] = tree.table[left, ALIVE] + tree.table[left + 1, ALIVE]
    if not tree.table[left, ALIVE] or not tree.table[left + 1, ALIVE]:
        left += int(tree.table[left, ALIVE] == 0)
        tree.table[node, FIRST] = tree.table[left, FIRST]
        copy_box(tree.box[left], tree.box[node])
        return
    tree.table[node, FIRST] = min(tree.table[left, FIRST], tree.table[left + 1, FIRST])
    for j in range(width):
        tree.box[node, 0, j] = min(tree.box[left, 0, j], tree.box[left + 1, 0, j])
        tree.box[node, 1, j] = max(tree.box[left, 1, j], tree.box[left + 1, 1, j])


@part
def _widest(space: Space, tree: BoxTree, begin: int, end: int) -> int:
    """Return the column on which rows are farthest apart."""
    best, column = -1.0, 0
    for j in range(tree.point.shape[1]):
        low, high = np.inf, -np.inf
        for s in range(begin, end):
            low, high = min(low, tree.point[s, j]), max(high, tree.point[s, j])
        wide = high - low if j < space.lines else above(space, j, int(low), int(high))
        if wide > best:
            best, column = wide, j
    return column


@part
def _halve(tree: BoxTree, begin: int, end: int, column: int) -> None:
    """Bring the smaller half of rows to the front."""
    middle, left, right = begin + (end - begin) // 2, begin, end - 1
    while left < right:
        pivot = tree.point[(left + right) // 2, column]
        i, j = left, right
        while i <= j:
            while tree.point[i, column] < pivot:
                i += 1
            while tree.point[j, column] > pivot:
                j -= 1
            if i <= j:
                _swap(tree, i, j)
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            return


@kernel
def grow(space: Space, tree: BoxTree, starts) -> int:  # type: ignore[no-untyped-def]
    """Build a tree over the rows between each two of ``starts``, node i being the root of tree i; return the nodes."""
    nodes = len(starts) - 1
    stack, ends = np.empty(DEEPEST, dtype=np.int64), np.empty(DEEPEST, dtype=np.int64)
    for root in range(len(starts) - 1):
        tree.table[root, BEGIN], stack[0], ends[0] = starts[root], root, starts[root + 1]
        nodes = _grow(space, tree, stack, ends, nodes)
    for node in range(nodes - 1, -1, -1):
        _bound(tree, node)
    return nodes


@part
def _grow(space: Space, tree: BoxTree, stack, ends, nodes: int) -> int:  # type: ignore[no-untyped-def]
    """Build the tree below the first node of a stack; return the nodes that there are then."""
    depth = 1
    while depth:
        depth -= 1
        node, end = stack[depth], ends[depth]
        begin = tree.table[node, BEGIN]
        tree.table[node, ALIVE] = end - begin
        if end - begin <= LEAF:
            tree.leaf[begin:end] = node
            continue
        _halve(tree, begin, end, _widest(space, tree, begin, end))
        middle = begin + (end - begin) // 2
        tree.table[node, LEFT] = nodes
        # The left child is the next to be divided, so that what is near stands near.
        for child in range(1, -1, -1):
            tree.table[nodes + child, PARENT] = node
            tree.table[nodes + child, BEGIN] = middle if child else begin
            stack[depth], ends[depth] = nodes + child, end if child else middle
            depth += 1
        nodes += 2
    return nodes


@part
def remove(tree: BoxTree, number: int) -> None:
    """Take a row away."""
    s = tree.slot[number]
    node = tree.leaf[s]
    last = tree.table[node, BEGIN] + tree.table[node, ALIVE] - 1
    if s != last:
        _swap(tree, s, last)
    tree.slot[number] = -1
    inside = False
    while node >= 0:
        tree.table[node, ALIVE] -= 1
        if not inside:
            # A row that does not bound a node bounds none of those above it.
            inside = tree.table[node, FIRST] != number
            for j in range(tree.point.shape[1]):
                inside &= tree.box[node, 0, j] < tree.point[last, j] < tree.box[node, 1, j]
            if not inside:
                _bound(tree, node)
        node = tree.table[node, PARENT]


@part
def _sift(distances, numbers, count: int) -> None:  # type: ignore[no-untyped-def]
    """Let the first entry of a heap, whose root is the last in order, sink to its place."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= count:
            return
        other = child + 1
        if other < count and (
            distances[other] > distances[child]
            or (distances[other] == distances[child] and numbers[other] > numbers[child])
        ):
            child = other
        if distances[at] > distances[child] or (distances[at] == distances[child] and numbers[at] > numbers[child]):
            return
        distances[at], distances[child] = distances[child], distances[at]
        numbers[at], numbers[child] = numbers[child], numbers[at]
        at = child


@part
def _rise(distances, numbers, at: int) -> None:  # type: ignore[no-untyped-def]
    while at:
        above = (at - 1) // 2
        if distances[above] > distances[at] or (distances[above] == distances[at] and numbers[above] > numbers[at]):
            return
        distances[at], distances[above] = distances[above], distances[at]
        numbers[at], numbers[above] = numbers[above], numbers[at]
        at = above


@part
def nearest(space: Space, tree: BoxTree, root: int, row, most: int, distances, numbers) -> int:  # type: ignore[no-untyped-def]
    """Find the rows of a tree nearest to one, in order of distance and number; return how many, at most ``most``."""
    found = 0
    if most <= 0 or tree.table[root, ALIVE] == 0:
        return 0
    stack, bounds = np.empty(DEEPEST, dtype=np.int64), np.empty(DEEPEST)
    near = np.empty(LEAF)
    stack[0], bounds[0], depth = root, 0.0, 1
    while depth:
        depth -= 1
        node, bound = stack[depth], bounds[depth]
        if found == most and (bound > distances[0] or (bound == distances[0] and tree.table[node, FIRST] > numbers[0])):
            continue
        left = tree.table[node, LEFT]
        if left < 0:
            begin = tree.table[node, BEGIN]
            end = begin + tree.table[node, ALIVE]
            measure(space, tree.point, begin, end, row, near)
            for s in range(begin, end):
                d, number = near[s - begin], tree.number[s]
                if found < most:
                    distances[found], numbers[found] = d, number
                    _rise(distances, numbers, found)
                    found += 1
                elif d < distances[0] or (d == distances[0] and number < numbers[0]):
                    distances[0], numbers[0] = d, number
                    _sift(distances, numbers, found)
            continue
        nearest_of(space, tree.box, left, row, near)
        after = near[1] < near[0] or (near[1] == near[0] and tree.table[left + 1, FIRST] < tree.table[left, FIRST])
        for i in (1 - after, 0 + after):
            # The nearer of the two is the next to be looked at.
            if tree.table[left + i, ALIVE]:
                stack[depth], bounds[depth] = left + i, near[i]
                depth += 1
    for last in range(found - 1, 0, -1):
        distances[0], distances[last] = distances[last], distances[0]
        numbers[0], numbers[last] = numbers[last], numbers[0]
        _sift(distances, numbers, last)
    return found


@part
def farthest(space: Space, tree: BoxTree, roots: int, row) -> int:  # type: ignore[no-untyped-def]
    """Return the number of the row of so many trees that is farthest from one, -1 where none is left."""
    best, number = -1.0, -1
    stack, bounds = np.empty(DEEPEST + roots, dtype=np.int64), np.empty(DEEPEST + roots)
    far = np.empty(LEAF)
    depth = 0
    for root in range(roots):
        if tree.table[root, ALIVE]:
            stack[depth], bounds[depth] = root, np.inf
            depth += 1
    while depth:
        depth -= 1
        node, bound = stack[depth], bounds[depth]
        if bound < best or (bound == best and tree.table[node, FIRST] > number):
            continue
        left = tree.table[node, LEFT]
        if left < 0:
            begin = tree.table[node, BEGIN]
            end = begin + tree.table[node, ALIVE]
            measure(space, tree.point, begin, end, row, far)
            for s in range(begin, end):
                if far[s - begin] > best or (far[s - begin] == best and tree.number[s] < number):
                    best, number = far[s - begin], tree.number[s]
            continue
        farthest_of(space, tree.box, left, row, far)
        after = far[1] > far[0] or (far[1] == far[0] and tree.table[left + 1, FIRST] < tree.table[left, FIRST])
        for i in (1 - after, 0 + after):
            if tree.table[left + i, ALIVE]:
                stack[depth], bounds[depth] = left + i, far[i]
                depth += 1
    return number
