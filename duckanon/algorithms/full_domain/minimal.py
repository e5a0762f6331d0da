"""Minimal nodes of a lattice: the searches of Samarati, Incognito and OLA, and the choice among the nodes."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from duckanon.algorithms.full_domain.search import ANONYMOUS, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from duckanon.algorithms.full_domain.lattice import Lattice
    from duckanon.algorithms.full_domain.objectives import Objective

    Levels = tuple[int, ...]


def minimal(lattice: Lattice) -> list[Levels]:
    """Return the anonymous nodes with no anonymous node below them; every node must be known."""
    anonymous = lattice.require_tags() == ANONYMOUS
    below = anonymous.copy()
    for axis in range(below.ndim):
        np.logical_or.accumulate(below, axis=axis, out=below)
    strictly = np.zeros_like(below)
    for axis in range(below.ndim):
        here = tuple(slice(1, None) if a == axis else slice(None) for a in range(below.ndim))
        there = tuple(slice(None, -1) if a == axis else slice(None) for a in range(below.ndim))
        strictly[here] |= below[there]
    return [lattice.levels(place) for place in np.argwhere(anonymous & ~strictly).tolist()]


def _heights(spans: Iterable[tuple[int, int]]) -> NDArray[np.int64]:
    """Return an array over a lattice: the sum of the levels of every node."""
    total = np.zeros(1, dtype=np.int64)
    for low, high in spans:
        total = np.add.outer(total, np.arange(low, high + 1))
    return np.asarray(total[0])


def at_height(lattice: Lattice, height: int) -> Iterator[Levels]:
    """Yield the nodes whose levels add up to ``height``, in the order of their levels."""
    for place in np.argwhere(_heights(zip(lattice.low, lattice.high, strict=True)) == height).tolist():
        yield lattice.levels(place)


def lowest(lattice: Lattice) -> list[Levels]:
    """Return the anonymous nodes of the least height at which there are any (Samarati 2001).

    The height is found by bisection where anonymity is inherited by nodes above, else by trying one after the other.
    """
    lattice.require_tags()

    def any_at(height: int) -> bool:
        nodes = [levels for levels in at_height(lattice, height) if lattice.known(levels) == ANONYMOUS]
        return bool(nodes) or any(
            lattice.visit(levels).anonymous for levels in at_height(lattice, height) if lattice.known(levels) == UNKNOWN
        )

    low, high = sum(lattice.low), sum(lattice.high) + 1
    if lattice.sound:
        while low < high:
            middle = (low + high) // 2
            if any_at(middle):
                high = middle
            else:
                low = middle + 1
    else:
        while low < high and not any_at(low):
            low += 1
    if low > sum(lattice.high):
        return []
    for levels in at_height(lattice, low):
        if lattice.known(levels) == UNKNOWN:
            lattice.visit(levels)
    return [levels for levels in at_height(lattice, low) if lattice.known(levels) == ANONYMOUS]


def by_strategies(lattice: Lattice) -> list[Levels]:
    """Return all minimal nodes by bisecting generalization strategies (El Emam et al. 2009).

    A strategy is a path from a node up. The lowest node of which nothing is known starts the next one, and what is
    found on it is inferred of all nodes above and below. Where that is not sound every node is visited.
    """
    tags = lattice.require_tags()
    if not lattice.sound:
        return everywhere(lattice)
    while (tags == UNKNOWN).any():
        start = np.unravel_index(int(np.argmax((tags == UNKNOWN).ravel())), tags.shape)
        path = [lattice.levels([int(i) for i in start])]
        while True:
            parents = [p for p in lattice.parents(path[-1]) if lattice.known(p) == UNKNOWN]
            if not parents:
                break
            path.append(parents[0])
        low, high = 0, len(path)
        while low < high:
            middle = (low + high) // 2
            if lattice.visit(path[middle]).anonymous:
                high = middle
            else:
                low = middle + 1
    return minimal(lattice)


def by_subsets(lattice: Lattice) -> list[Levels]:
    """Return all minimal nodes by way of subsets of the quasi-identifiers (Incognito, LeFevre et al. 2005).

    With all other columns at their top a node has the classes of the subset alone. If they are too small, so are those
    of every node that generalizes the subset no further. Subsets grow by one column at a time.
    """
    lattice.require_tags()
    if not lattice.sound:
        return everywhere(lattice)
    columns = range(len(lattice.shape))
    for size in range(1, len(lattice.shape) + 1):
        for subset in combinations(columns, size):
            for levels in _of_subset(lattice, subset):
                if lattice.known(levels) == UNKNOWN:
                    lattice.visit(levels)
    return minimal(lattice)


def _of_subset(lattice: Lattice, subset: tuple[int, ...]) -> Iterator[Levels]:
    """Yield the nodes of a subset, the other columns at their highest level, in the order of their height."""
    spans = [range(lattice.low[j], lattice.high[j] + 1) for j in subset]
    shape = tuple(len(s) for s in spans)
    heights = _heights((span[0], span[-1]) for span in spans)
    for flat in np.argsort(heights, axis=None, kind="stable"):
        levels = list(lattice.high)
        for j, at, span in zip(subset, np.unravel_index(int(flat), shape), spans, strict=True):
            levels[j] = span[int(at)]
        yield tuple(levels)


def everywhere(lattice: Lattice) -> list[Levels]:
    """Return all minimal nodes by visiting every node of which nothing is known."""
    lattice.require_tags()
    for levels in lattice.nodes():
        if lattice.known(levels) == UNKNOWN:
            lattice.visit(levels)
    return minimal(lattice)


def lowest_levels(lattice: Lattice, spent: Callable[[], bool] = lambda: False) -> Levels:
    """Return the levels below which no anonymous node lies: each column by itself, the others at their highest.

    ``spent`` says when no more nodes may be visited.
    """
    levels = list(lattice.low)
    for j in range(len(levels)):
        low, high = lattice.low[j], lattice.high[j]
        while low < high and not spent():
            middle = (low + high) // 2
            visit = lattice.visit((*lattice.high[:j], middle, *lattice.high[j + 1 :]))
            if visit.anonymous or not (lattice.sound or visit.final):
                high = middle
            else:
                low = middle + 1
                levels[j] = low
    return tuple(levels)


def best_of(lattice: Lattice, objective: Objective, nodes: Iterable[Levels]) -> tuple[Levels | None, float]:
    """Return the best of some anonymous nodes and its value; ties go to the one whose levels come first."""
    best: tuple[float, Levels] | None = None
    for levels in nodes:
        value = objective.value(levels, *lattice.kept(levels))
        if best is None or (value, levels) < best:
            best = (value, levels)
    return (best[1], best[0]) if best is not None else (None, float("inf"))
