"""MDAV: clusters of k rows around the row farthest from the middle, and around the row farthest from that one.

The row farthest from the middle is found without looking at most rows. A leaf whose farthest row was at a distance d
when it was last looked at has none farther than d plus the way that the middle has gone since; leaves stand in a heap
by d minus the way gone until then, so that the order of the heap does not change while the middle goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from duckanon.kernels.boxtree import ALIVE, BEGIN, LEAF, LEFT, PARENT, BoxTree, farthest, nearest, remove
from duckanon.kernels.bundle import bundled
from duckanon.kernels.jit import kernel, part
from duckanon.kernels.space import PLACES, Space, apart, copy, measure

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAVES, FILLED, CLUSTERS, LEFT_OVER = range(4)
"""The entries of ``State.numbers``: the size of the heap, the rows in clusters, the clusters, and the rows left."""
_ALLOWANCE = 1e-9
"""More than rounding can make of a distance, as a share of it."""


class State(NamedTuple):
    """Where the work stands, so that it can go on: sums and counts of the rows left, the middle, and the clusters.

    ``tally`` counts the rows left at each place of a tree, whose place of most is in ``centre``, and its rows in
    ``counts``. ``order`` has the numbers of rows, cluster after cluster, which end at ``ends``.
    """

    sums: NDArray[np.float64]
    counts: NDArray[np.int64]
    starts: NDArray[np.int64]
    tally: NDArray[np.int64]
    centre: NDArray[np.float64]
    heap: NDArray[np.int64]
    keys: NDArray[np.float64]
    moved: NDArray[np.float64]
    numbers: NDArray[np.int64]
    order: NDArray[np.int64]
    ends: NDArray[np.int64]
    distances: NDArray[np.float64]
    near: NDArray[np.int64]


def new_state(space: Space, count: int, nodes: int, k: int) -> State:
    """Return the state before the first cluster."""
    width = space.table.shape[1]
    places = np.where(np.arange(width) < space.lines, 0, space.table[PLACES])
    starts = np.concatenate([[0], np.cumsum(places)]).astype(np.int64)
    return bundled(
        State(
            np.zeros(width),
            np.zeros(width, dtype=np.int64),
            starts,
            np.zeros(max(int(starts[-1]), 1), dtype=np.int64),
            np.zeros(width),
            np.zeros(nodes, dtype=np.int64),
            np.zeros(nodes),
            np.zeros(1),
            np.array([0, 0, 0, count], dtype=np.int64),
            np.zeros(count, dtype=np.int64),
            np.zeros(count // k + 1, dtype=np.int64),
            np.zeros(2 * k),
            np.zeros(2 * k, dtype=np.int64),
        )
    )


@part
def _count(space: Space, state: State, tree: BoxTree, s: int, sign: int) -> None:
    """Add the row of a slot to the sums, or take it from them."""
    for j in range(tree.point.shape[1]):
        x = tree.point[s, j]
        if j >= space.lines:
            state.tally[state.starts[j] + int(x)] += sign
        elif x != space.missing[j]:
            state.sums[j] += sign * x
            state.counts[j] += sign


@part
def set_centre(space: Space, state: State) -> None:
    """Set the middle of the rows left."""
    for j in range(len(state.centre)):
        if j >= space.lines:
            start = state.starts[j]
            if 0 < state.counts[j] == state.tally[start + int(state.centre[j])]:
                # Rows are only taken away: as long as the most frequent place has all of its own, none has more.
                continue
            best, mode = -1, 0
            for place in range(space.table[PLACES, j]):
                if state.tally[start + place] > best:
                    best, mode = state.tally[start + place], place
            state.centre[j], state.counts[j] = mode, best
        elif state.counts[j]:
            state.centre[j] = state.sums[j] / state.counts[j]
        else:
            state.centre[j] = space.missing[j]


@part
def _push(state: State, leaf: int, key: float) -> None:
    at = state.numbers[LEAVES]
    state.numbers[LEAVES] += 1
    while at:
        above = (at - 1) // 2
        if state.keys[above] >= key:
            break
        state.keys[at], state.heap[at] = state.keys[above], state.heap[above]
        at = above
    state.keys[at], state.heap[at] = key, leaf


@part
def _pop(state: State) -> int:
    top = state.heap[0]
    state.numbers[LEAVES] -= 1
    size = state.numbers[LEAVES]
    key, leaf = state.keys[size], state.heap[size]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and state.keys[child + 1] > state.keys[child]:
            child += 1
        if key >= state.keys[child]:
            break
        state.keys[at], state.heap[at] = state.keys[child], state.heap[child]
        at = child
    state.keys[at], state.heap[at] = key, leaf
    return top


@part
def _metric(space: Space, d: float) -> float:
    """Return a distance for which two sides of a triangle are no shorter than the third."""
    return np.sqrt(d) if space.squares else d


@kernel
def begin(space: Space, tree: BoxTree, nodes: int, state: State) -> None:
    """Set the middle of all rows, and put all leaves where they are looked at first."""
    for s in range(len(tree.number)):
        _count(space, state, tree, s, 1)
    set_centre(space, state)
    for node in range(nodes):
        if tree.table[node, LEFT] < 0 and tree.table[node, ALIVE]:
            _push(state, node, np.inf)


@part
def _outermost(space: Space, tree: BoxTree, state: State, seen, farthest_in) -> int:  # type: ignore[no-untyped-def]
    """Return the number of the row farthest from the middle."""
    best, number, looked = -1.0, -1, 0
    far = np.empty(LEAF)
    while state.numbers[LEAVES]:
        most = (state.keys[0] + state.moved[0]) * (1 + _ALLOWANCE) + _ALLOWANCE
        if most < _metric(space, best) and best >= 0:
            break
        leaf = _pop(state)
        alive, start = tree.table[leaf, ALIVE], tree.table[leaf, BEGIN]
        if not alive:
            continue
        own = -1.0
        measure(space, tree.point, start, start + alive, state.centre, far)
        for s in range(start, start + alive):
            d = far[s - start]
            own = max(own, d)
            if d > best or (d == best and tree.number[s] < number):
                best, number = d, tree.number[s]
        seen[looked], farthest_in[looked] = leaf, _metric(space, own)
        looked += 1
    for i in range(looked):
        _push(state, seen[i], farthest_in[i] - state.moved[0])
    return number


@part
def _take(space: Space, tree: BoxTree, state: State, number: int) -> None:
    """Put a row into the cluster that is made."""
    _count(space, state, tree, tree.slot[number], -1)
    remove(tree, number)
    state.order[state.numbers[FILLED]] = number
    state.numbers[FILLED] += 1
    state.numbers[LEFT_OVER] -= 1


@part
def close(state: State) -> None:
    """End the cluster that is made."""
    state.ends[state.numbers[CLUSTERS]] = state.numbers[FILLED]
    state.numbers[CLUSTERS] += 1


@part
def _around(space: Space, tree: BoxTree, state: State, number: int, row, k: int) -> None:  # type: ignore[no-untyped-def]
    """Make a cluster of a row and the k - 1 rows nearest to it."""
    _take(space, tree, state, number)
    found = nearest(space, tree, 0, row, k - 1, state.distances, state.near)
    for i in range(found):
        _take(space, tree, state, state.near[i])
    close(state)


@kernel
def make(space: Space, tree: BoxTree, state: State, k: int, most: int) -> bool:
    """Make up to ``most`` clusters more; return whether all rows are in clusters."""
    width = len(state.centre)
    row, old = np.empty(width), np.empty(width)
    seen, farthest_in = np.empty(len(state.heap), dtype=np.int64), np.empty(len(state.heap))
    until = state.numbers[CLUSTERS] + most
    while state.numbers[LEFT_OVER] >= 2 * k:
        if state.numbers[CLUSTERS] >= until:
            return False
        number = _outermost(space, tree, state, seen, farthest_in)
        copy(tree.point[tree.slot[number]], row)
        two = state.numbers[LEFT_OVER] >= 3 * k
        _around(space, tree, state, number, row, k)
        if two:
            number = farthest(space, tree, 1, row)
            copy(tree.point[tree.slot[number]], row)
            _around(space, tree, state, number, row, k)
        copy(state.centre, old)
        set_centre(space, state)
        state.moved[0] += _metric(space, apart(space, old, state.centre)) * (1 + _ALLOWANCE)
    if state.numbers[LEFT_OVER]:
        for number in range(len(tree.slot)):
            if tree.slot[number] >= 0:
                _take(space, tree, state, number)
        close(state)
    return True


@part
def _across(space: Space, tree: BoxTree, state: State, number: int, row, strata: int, clusters: int) -> None:  # type: ignore[no-untyped-def]
    """Make a cluster of a row and, of every other stratum, the row nearest to it.

    The stratum in the middle has one row more for some of the ``clusters`` still to be made.
    """
    own = int(tree.leaf[tree.slot[number]])
    while tree.table[own, PARENT] >= 0:
        own = int(tree.table[own, PARENT])
    _take(space, tree, state, number)
    middle = strata // 2
    for stratum in range(strata):
        wanted = int(stratum != own)
        if stratum == middle and tree.table[stratum, ALIVE] - wanted > clusters - 1:
            wanted += 1
        for i in range(nearest(space, tree, stratum, row, wanted, state.distances, state.near)):
            _take(space, tree, state, state.near[i])
    close(state)


@kernel
def make_across(space: Space, tree: BoxTree, state: State, strata: int, most: int) -> bool:
    """Make up to ``most`` clusters more, each with a row of every tree; return whether all rows are in clusters."""
    width = len(state.centre)
    row, old = np.empty(width), np.empty(width)
    seen, farthest_in = np.empty(len(state.heap), dtype=np.int64), np.empty(len(state.heap))
    until = state.numbers[CLUSTERS] + most
    total = len(state.order) // strata
    while state.numbers[LEFT_OVER]:
        if state.numbers[CLUSTERS] >= until:
            return False
        number = _outermost(space, tree, state, seen, farthest_in)
        copy(tree.point[tree.slot[number]], row)
        _across(space, tree, state, number, row, strata, total - state.numbers[CLUSTERS])
        if state.numbers[LEFT_OVER]:
            number = farthest(space, tree, strata, row)
            copy(tree.point[tree.slot[number]], row)
            _across(space, tree, state, number, row, strata, total - state.numbers[CLUSTERS])
        copy(state.centre, old)
        set_centre(space, state)
        state.moved[0] += _metric(space, apart(space, old, state.centre)) * (1 + _ALLOWANCE)
    return True
