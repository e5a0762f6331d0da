"""Which box covers a point: a tree of boxes, each node with the hull of those below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from duckanon.kernels.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAF = 8
"""Most boxes of a leaf."""


@kernel
def grow_tree(
    low: NDArray[np.int32],
    high: NDArray[np.int32],
    order: NDArray[np.int64],
    nodes: NDArray[np.int64],
    hull_low: NDArray[np.int32],
    hull_high: NDArray[np.int32],
) -> int:
    """Fill a tree over boxes and return how many nodes it has.

    ``order`` is made the order of the boxes in the tree, ``nodes[i]`` are the first and the end of a node's boxes in
    it and the number of the first of two children, which follow each other (-1: a leaf). There is room for as many
    nodes as there are boxes, and at least one. A node is halved by the middles of its boxes along the axis on which
    its hull is widest, the first of those that are as wide; ties in the middles go by the number of the box.
    """
    count, width = low.shape
    for i in range(count):
        order[i] = i
    nodes[0, 0], nodes[0, 1], nodes[0, 2] = 0, count, -1
    used, at = 1, 0
    while at < used:
        first, end = nodes[at, 0], nodes[at, 1]
        for j in range(width):
            hull_low[at, j], hull_high[at, j] = low[order[first], j], high[order[first], j]
            for i in range(first + 1, end):
                hull_low[at, j] = min(hull_low[at, j], low[order[i], j])
                hull_high[at, j] = max(hull_high[at, j], high[order[i], j])
        if end - first > _LEAF:
            axis = 0
            for j in range(1, width):
                if hull_high[at, j] - hull_low[at, j] > hull_high[at, axis] - hull_low[at, axis]:
                    axis = j
            own = np.sort(order[first:end])
            middles = np.empty(end - first, dtype=np.int64)
            for i in range(end - first):
                middles[i] = np.int64(low[own[i], axis]) + np.int64(high[own[i], axis])
            order[first:end] = own[np.argsort(middles, kind="mergesort")]
            half = (first + end) // 2
            nodes[at, 2] = used
            nodes[used, 0], nodes[used, 1], nodes[used, 2] = first, half, -1
            nodes[used + 1, 0], nodes[used + 1, 1], nodes[used + 1, 2] = half, end, -1
            used += 2
        at += 1
    return used


@kernel
def find_boxes(
    places: NDArray[np.int32],
    low: NDArray[np.int32],
    high: NDArray[np.int32],
    order: NDArray[np.int64],
    nodes: NDArray[np.int64],
    hull_low: NDArray[np.int32],
    hull_high: NDArray[np.int32],
    sizes: NDArray[np.float64],
    found: NDArray[np.int32],
) -> None:
    """Fill ``found`` with the box that covers each point, -1 where none does.

    Where several do, it is the smallest by ``sizes``, and the first of those that are as small.
    """
    width = low.shape[1]
    stack = np.empty(256, dtype=np.int64)
    for i in range(len(places)):
        best = -1
        stack[0], depth = 0, 1
        while depth > 0:
            depth -= 1
            at = stack[depth]
            inside = True
            for j in range(width):
                if places[i, j] < hull_low[at, j] or places[i, j] > hull_high[at, j]:
                    inside = False
                    break
            if not inside:
                continue
            if nodes[at, 2] >= 0:
                stack[depth], stack[depth + 1] = nodes[at, 2], nodes[at, 2] + 1
                depth += 2
                continue
            for at_box in range(nodes[at, 0], nodes[at, 1]):
                box = order[at_box]
                if best >= 0 and (sizes[box] > sizes[best] or (sizes[box] == sizes[best] and box > best)):
                    continue
                inside = True
                for j in range(width):
                    if places[i, j] < low[box, j] or places[i, j] > high[box, j]:
                        inside = False
                        break
                if inside:
                    best = box
        found[i] = best


def covering(places: NDArray[np.int32], low: NDArray[np.int32], high: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return, for each row of ``places``, the number of the smallest box that covers it, or -1.

    ``low`` and ``high`` are the first and last places of the boxes, both inside. Halving boxes keeps the tree's depth
    below 64, whatever the boxes are.

    Examples
    --------
    >>> box = np.array([[0, 0], [2, 0]], dtype=np.int32), np.array([[1, 9], [3, 4]], dtype=np.int32)
    >>> covering(np.array([[1, 5], [2, 4], [2, 5]], dtype=np.int32), *box).tolist()
    [0, 1, -1]
    """
    count, width = low.shape
    found = np.full(len(places), -1, dtype=np.int32)
    if not count or not len(places):
        return found
    low, high = np.ascontiguousarray(low, dtype=np.int32), np.ascontiguousarray(high, dtype=np.int32)
    order, nodes = np.empty(count, dtype=np.int64), np.empty((max(count, 1) + 1, 3), dtype=np.int64)
    hulls = np.empty((len(nodes), width), dtype=np.int32), np.empty((len(nodes), width), dtype=np.int32)
    grow_tree(low, high, order, nodes, *hulls)
    sizes = np.prod(high.astype(np.float64) - low + 1, axis=1)
    points = np.ascontiguousarray(places, dtype=np.int32)
    find_boxes(points, low, high, order, nodes, *hulls, sizes, found)
    return found
