"""Classes that are merged two by two: one that is too small with the one that costs least."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from duckanon.kernels.boxtree import ALIVE, BEGIN, DEEPEST, FIRST, LEAF, LEFT, PARENT, BoxTree
from duckanon.kernels.jit import kernel, part
from duckanon.kernels.space import Space, copy_box, empty, hulls, least_hulls

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Classes(NamedTuple):
    """The classes by number: their boxes, the widths of these, their rows, and which class each was merged into."""

    boxes: NDArray[np.float64]
    widths: NDArray[np.float64]
    rows: NDArray[np.int64]
    into: NDArray[np.int64]


class LeafClasses(NamedTuple):
    """The classes as the leaves of a tree hold them, by slot, and what bounds the cost of merging with one of a node.

    ``lightest`` and ``widest`` are the least rows and the largest width of a class below each node, ``slots`` has the
    slot of every class, -1 where it is gone.
    """

    boxes: NDArray[np.float64]
    rows: NDArray[np.int64]
    widths: NDArray[np.float64]
    lightest: NDArray[np.int64]
    widest: NDArray[np.float64]
    slots: NDArray[np.int64]


@kernel
def widths_of(space: Space, boxes, widths) -> None:  # type: ignore[no-untyped-def]
    """Find the widths of boxes."""
    for i in range(len(boxes)):
        hulls(space, boxes, i, i + 1, boxes[i], widths[i : i + 1])


@kernel
def cover(tree: BoxTree, nodes: int, numbers, classes: Classes, held: LeafClasses) -> None:  # type: ignore[no-untyped-def]
    """Let the leaves of a tree hold classes, whose numbers take the place of those of its rows."""
    width = held.boxes.shape[2]
    for s in range(len(tree.number)):
        number = numbers[tree.number[s]]
        tree.number[s], held.slots[number] = number, s
        copy_box(classes.boxes[number], held.boxes[s])
        held.rows[s], held.widths[s] = classes.rows[number], classes.widths[number]
    for node in range(nodes - 1, -1, -1):
        empty(tree.box[node])
        left = tree.table[node, LEFT]
        if left >= 0:
            tree.table[node, FIRST] = min(tree.table[left, FIRST], tree.table[left + 1, FIRST])
            held.lightest[node] = min(held.lightest[left], held.lightest[left + 1])
            held.widest[node] = max(held.widest[left], held.widest[left + 1])
            for j in range(width):
                tree.box[node, 0, j] = min(tree.box[left, 0, j], tree.box[left + 1, 0, j])
                tree.box[node, 1, j] = max(tree.box[left, 1, j], tree.box[left + 1, 1, j])
            continue
        begin = tree.table[node, BEGIN]
        tree.table[node, FIRST] = tree.number[begin]
        held.lightest[node], held.widest[node] = held.rows[begin], held.widths[begin]
        for s in range(begin, begin + tree.table[node, ALIVE]):
            tree.table[node, FIRST] = min(tree.table[node, FIRST], tree.number[s])
            held.lightest[node] = min(held.lightest[node], held.rows[s])
            held.widest[node] = max(held.widest[node], held.widths[s])
            for j in range(width):
                tree.box[node, 0, j] = min(tree.box[node, 0, j], held.boxes[s, 0, j])
                tree.box[node, 1, j] = max(tree.box[node, 1, j], held.boxes[s, 1, j])


@part
def _partner(space: Space, tree: BoxTree, classes: Classes, held: LeafClasses, number: int) -> int:
    """Return the class with which it costs least to merge one."""
    best, found = np.inf, -1
    rows, own = classes.rows[number], classes.widths[number]
    box = classes.boxes[number]
    stack, bounds = np.empty(DEEPEST, dtype=np.int64), np.empty(DEEPEST)
    wide = np.empty(LEAF)
    stack[0], bounds[0], depth = 0, 0.0, 1
    while depth:
        depth -= 1
        node, bound = stack[depth], bounds[depth]
        if bound > best or (bound == best and tree.table[node, FIRST] > found):
            continue
        left = tree.table[node, LEFT]
        if left < 0:
            begin = tree.table[node, BEGIN]
            end = begin + tree.table[node, ALIVE]
            hulls(space, held.boxes, begin, end, box, wide)
            for s in range(begin, end):
                other, both = tree.number[s], wide[s - begin]
                cost = rows * (both - own) + held.rows[s] * (both - held.widths[s])
                if other != number and (cost < best or (cost == best and other < found)):
                    best, found = cost, other
            continue
        least_hulls(space, tree.box, left, box, wide)
        for i in range(2):
            # What is added to the other class, which has at least so many rows and is at most so wide.
            added = max(wide[i] - held.widest[left + i], 0.0)
            wide[i] = rows * (wide[i] - own) + held.lightest[left + i] * added
        after = wide[1] < wide[0] or (wide[1] == wide[0] and tree.table[left + 1, FIRST] < tree.table[left, FIRST])
        for i in (1 - after, 0 + after):
            if tree.table[left + i, ALIVE]:
                stack[depth], bounds[depth] = left + i, wide[i]
                depth += 1
    return found


@part
def _leave(tree: BoxTree, held: LeafClasses, number: int) -> None:
    """Take a class out of the tree; boxes stay as they are."""
    s = held.slots[number]
    node = tree.leaf[s]
    last = tree.table[node, BEGIN] + tree.table[node, ALIVE] - 1
    other = tree.number[last]
    tree.number[s], tree.number[last] = other, number
    copy_box(held.boxes[last], held.boxes[s])
    held.rows[s], held.widths[s] = held.rows[last], held.widths[last]
    held.slots[other], held.slots[number] = s, -1
    while node >= 0:
        tree.table[node, ALIVE] -= 1
        node = tree.table[node, PARENT]


@part
def _merge(space: Space, tree: BoxTree, classes: Classes, held: LeafClasses, number: int, other: int) -> None:
    """Let one class be part of another."""
    _leave(tree, held, number)
    classes.into[number] = other
    classes.rows[other] += classes.rows[number]
    boxes = classes.boxes
    for j in range(boxes.shape[2]):
        boxes[other, 0, j] = min(boxes[other, 0, j], boxes[number, 0, j])
        boxes[other, 1, j] = max(boxes[other, 1, j], boxes[number, 1, j])
    hulls(space, boxes, other, other + 1, boxes[other], classes.widths[other : other + 1])
    s = held.slots[other]
    copy_box(boxes[other], held.boxes[s])
    held.rows[s], held.widths[s] = classes.rows[other], classes.widths[other]
    node = tree.leaf[s]
    while node >= 0:
        held.widest[node] = max(held.widest[node], classes.widths[other])
        for j in range(boxes.shape[2]):
            tree.box[node, 0, j] = min(tree.box[node, 0, j], boxes[other, 0, j])
            tree.box[node, 1, j] = max(tree.box[node, 1, j], boxes[other, 1, j])
        node = tree.table[node, PARENT]


@part
def _push(heap, size: int, key: int) -> None:  # type: ignore[no-untyped-def]
    at = size
    while at:
        above = (at - 1) // 2
        if heap[above] <= key:
            break
        heap[at] = heap[above]
        at = above
    heap[at] = key


@part
def _pop(heap, size: int) -> int:  # type: ignore[no-untyped-def]
    top, key, at = heap[0], heap[size - 1], 0
    while True:
        child = 2 * at + 1
        if child >= size - 1:
            break
        if child + 1 < size - 1 and heap[child + 1] < heap[child]:
            child += 1
        if key <= heap[child]:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = key
    return top


@kernel
def smallest_first(space: Space, tree: BoxTree, classes: Classes, held: LeafClasses, k: int, most: int) -> int:
    """Merge the smallest class with fewer than k rows, up to ``most`` times; return how many merges were made."""
    count = len(classes.rows)
    heap, size = np.empty(count + 1, dtype=np.int64), 0
    for number in range(count):
        if held.slots[number] >= 0 and classes.rows[number] < k:
            _push(heap, size, classes.rows[number] * count + number)
            size += 1
    done = 0
    while size and done < most and tree.table[0, ALIVE] > 1:
        key = _pop(heap, size)
        size -= 1
        number = key % count
        if held.slots[number] < 0 or classes.rows[number] != key // count:
            continue
        other = _partner(space, tree, classes, held, number)
        _merge(space, tree, classes, held, number, other)
        done += 1
        if classes.rows[other] < k:
            _push(heap, size, classes.rows[other] * count + other)
            size += 1
    return done


@kernel
def drawn_first(space: Space, tree: BoxTree, classes: Classes, held: LeafClasses, draws, k: int, most: int) -> int:  # type: ignore[no-untyped-def]
    """Merge a class with fewer than k rows that is drawn, up to ``most`` times; return how many merges were made."""
    count = len(classes.rows)
    small = np.zeros(count + 1, dtype=np.int64)
    left = 0
    for number in range(count):
        if held.slots[number] >= 0 and classes.rows[number] < k:
            _add(small, number, 1)
            left += 1
    done = 0
    while left and done < most and tree.table[0, ALIVE] > 1:
        rank, at, step = min(int(draws[done] * left), left - 1), 0, 1
        while step * 2 <= count:
            step *= 2
        while step:
            if at + step <= count and small[at + step] <= rank:
                at += step
                rank -= small[at]
            step //= 2
        other = _partner(space, tree, classes, held, at)
        was_small = classes.rows[other] < k
        _merge(space, tree, classes, held, at, other)
        done += 1
        _add(small, at, -1)
        left -= 1
        if was_small and classes.rows[other] >= k:
            _add(small, other, -1)
            left -= 1
    return done


@part
def _add(counts, number: int, sign: int) -> None:  # type: ignore[no-untyped-def]
    at = number + 1
    while at < len(counts):
        counts[at] += sign
        at += at & -at


@kernel
def each_once(space: Space, tree: BoxTree, classes: Classes, held: LeafClasses, numbers, changed) -> None:  # type: ignore[no-untyped-def]
    """Merge each of some classes with another, unless one was merged with it before; ``changed`` marks what grew."""
    for number in numbers:
        if changed[number] or held.slots[number] < 0 or tree.table[0, ALIVE] < 2:
            continue
        other = _partner(space, tree, classes, held, number)
        _merge(space, tree, classes, held, number, other)
        changed[other] = True
