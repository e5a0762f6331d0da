"""What no anonymous node of a lattice can go below, from the nodes that were found broken.

Where nothing below a broken node is anonymous, every anonymous node is higher than it in some column. Each broken node
so gives a clause, and the cheapest levels that satisfy all clauses lose no more than any anonymous node. A node with
most columns at their top has the classes of the other columns alone: it is visited fast, and its clause is short. Such
nodes are looked for where the clauses so far allow cheap levels (implicit hitting sets).
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from duckanon.algorithms.full_domain.search import BROKEN

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from numpy.typing import NDArray

    from duckanon.algorithms.full_domain.lattice import Lattice
    from duckanon.algorithms.full_domain.objectives import Objective

    Levels = tuple[int, ...]

_IDLE = 20
"""So many nodes in a row that exclude nothing end the search for clauses."""
_SPREAD = 0.3
"""How much costs are varied, so that other cheap levels are looked at."""
_FREE = 1e-12
"""What a step costs that costs nothing: a ratio needs a number."""
_ARRAY = 1 << 20
"""The most combinations of levels that are looked at in one array."""
_MOST_WORK, _ARRAY_WORK = 5_000, 10
"""How many partial assignments are looked at, and as how many an array counts: bounds time and memory."""


def excludes(lattice: Lattice, levels: Levels) -> bool:
    """Return whether no node below these levels is anonymous, visiting the node if that is not known."""
    visit = lattice.visits.get(levels)
    if visit is None:
        if lattice.known(levels) == BROKEN:
            return True
        visit = lattice.visit(levels)
    return not visit.anonymous and (lattice.sound or visit.final)


class Clauses:
    """The clauses of broken nodes, over the steps of the columns above the floor.

    A step is one level of one column; node L has taken the steps of column j from ``floor[j]`` up to L[j]. A broken
    node's clause has, for each column that is not at its top, the step above it: an anonymous node has taken one of
    them.

    Parameters
    ----------
    lattice : Lattice
    terms : list of array
        What each column adds to the objective at each level.
    floor : tuple of int
        Levels that no anonymous node goes below.
    """

    def __init__(self, lattice: Lattice, terms: list[NDArray[np.float64]], floor: Levels) -> None:
        self.lattice, self.floor, self.high = lattice, floor, lattice.high
        spans = list(zip(terms, floor, self.high, strict=True))
        # Should a level lose less than one below it, both count as the lower.
        kept = [np.minimum.accumulate(term[low : high + 1][::-1])[::-1] for term, low, high in spans]
        self.base = float(sum(k[0] for k in kept))
        self.costs = np.concatenate([np.diff(k) for k in kept])
        self.starts = np.cumsum([0, *(len(k) - 1 for k in kept)]).tolist()
        self._steps: set[tuple[int, ...]] = set()
        self._matrix = np.zeros((64, len(self.costs)), dtype=np.bool_)

    def add(self, broken: Levels) -> None:
        """Take the clause of a node below which nothing is anonymous."""
        steps = tuple(
            start + level - low
            for start, level, low, high in zip(self.starts[:-1], broken, self.floor, self.high, strict=True)
            if level < high
        )
        if steps in self._steps:
            return
        if len(self._steps) == len(self._matrix):
            self._matrix = np.concatenate([self._matrix, np.zeros_like(self._matrix)])
        self._matrix[len(self._steps), list(steps)] = True
        self._steps.add(steps)

    @property
    def matrix(self) -> NDArray[np.bool_]:
        """One row for each clause, one column for each step."""
        return self._matrix[: len(self._steps)]

    def search(self, spent: Callable[[], bool], rng: random.Random, visited: Callable[[Levels], object]) -> None:
        """Find clauses until ``spent()``, or until cheap levels satisfy them all and exclude nothing more.

        ``visited`` is called with those levels: they may be anonymous, and good.
        """
        idle = 0
        while idle < _IDLE and not spent():
            levels = self._cheap_levels(rng)
            idle += 1
            if not excludes(self.lattice, levels):
                visited(levels)
            while not spent() and excludes(self.lattice, levels):
                idle = 0
                top = self._climb(levels, rng, spent)
                self.add(top)
                # Without the columns of this clause: the next one shares none with it, and both must be paid.
                levels = tuple(h if t < h else lev for lev, t, h in zip(levels, top, self.high, strict=True))

    def _climb(self, levels: Levels, rng: random.Random, spent: Callable[[], bool]) -> Levels:
        """Return a node above ``levels`` that still excludes all below, raising one column after the other.

        Their order is random: clauses of many kinds bound more than those that look dearest one by one.
        """
        top = list(levels)
        for j in rng.sample(range(len(top)), len(top)):
            for level in (self.high[j], *range(top[j] + 1, self.high[j])):
                if level <= top[j] or spent():
                    break
                if excludes(self.lattice, (*top[:j], level, *top[j + 1 :])):
                    top[j] = level
                elif level < self.high[j]:
                    break
        return tuple(top)

    def _cheap_levels(self, rng: random.Random) -> Levels:
        """Return levels that satisfy all clauses: of each step that is taken, many clauses for what it costs."""
        width = len(self.floor)
        spread = rng.choice((0.0, _SPREAD, _SPREAD))
        costs = self.costs * [rng.lognormvariate(0, spread) for _ in self.costs] + _FREE
        levels, open_ = list(self.floor), self.matrix
        while len(open_):
            gains = open_.sum(axis=0)
            best = (0.0, 0, 0)
            for j in range(width):
                at, end = self.starts[j] + levels[j] - self.floor[j], self.starts[j + 1]
                if at == end:
                    continue
                ratios = np.cumsum(gains[at:end]) / np.cumsum(costs[at:end])
                step = int(ratios.argmax())
                best = max(best, (float(ratios[step]), j, levels[j] + step + 1))
            _, j, level = best
            at = self.starts[j] - self.floor[j]
            open_ = open_[~open_[:, at + levels[j] : at + level].any(axis=1)]
            levels[j] = level
        return self._lowered(levels)

    def _lowered(self, levels: list[int]) -> Levels:
        """Return levels without the steps that no clause needs."""
        taken = np.zeros(len(self.costs), dtype=np.bool_)
        for j, level in enumerate(levels):
            taken[self.starts[j] : self.starts[j] + level - self.floor[j]] = True
        met = (self.matrix & taken).sum(axis=1)
        for j in sorted(
            range(len(levels)), key=lambda j: -float(self.costs[self.starts[j] : self.starts[j + 1]].sum())
        ):
            while levels[j] > self.floor[j]:
                at = self.starts[j] + levels[j] - self.floor[j] - 1
                needed = self.matrix[:, at]
                if (met[needed] == 1).any():
                    break
                met -= needed
                levels[j] -= 1
        return tuple(levels)

    def bound(self, spent: Callable[[], bool]) -> float:
        """Return what the cheapest levels that satisfy all clauses lose, or less where there is no more time.

        The columns with the dearest steps are assigned one after the other, cheapest first; of the others all levels
        are looked at together, in an array. What is left when the time is spent costs no less than what comes next.
        """
        order = sorted(range(len(self.floor)), key=lambda j: -float(self._of(j).max(initial=0.0)))
        inner: list[int] = []
        while order and prod(len(self._of(j)) + 1 for j in [*inner, order[-1]]) <= _ARRAY:
            inner.append(order.pop())
        axes = [np.concatenate([[0.0], np.cumsum(self._of(j))]) for j in inner]
        grid = np.zeros([len(axis) for axis in axes])
        for axis in np.ix_(*axes):
            grid = grid + axis
        # By what they cost so far: a node of the tree with its clauses, or at last the cost of whole levels.
        number, work = count(), 0
        every = np.arange(len(self.matrix), dtype=np.int32)
        queue: list[tuple[float, int, int, NDArray[np.int32] | None]] = [(0.0, 0, 0, every)]
        while queue:
            cost, _, depth, open_ = heappop(queue)
            if open_ is None or work >= _MOST_WORK or spent():
                return self.base + cost
            work += _ARRAY_WORK if depth == len(order) else 1
            if depth == len(order):
                best = cost + self._least(grid, inner, open_)
                heappush(queue, (best, next(number), depth, None))
                continue
            start, steps = self.starts[order[depth]], self._of(order[depth])
            for level in range(len(steps) + 1):
                taken = self.matrix[open_, start : start + level].any(axis=1)
                left = open_[~taken]
                total = cost + float(steps[:level].sum())
                heappush(queue, (total, next(number), depth + 1, left))
        raise AssertionError("the top satisfies every clause")

    def _of(self, column: int) -> NDArray[np.float64]:
        """Return the costs of the steps of a column."""
        return self.costs[self.starts[column] : self.starts[column + 1]]

    def _least(self, grid: NDArray[np.float64], columns: list[int], clauses: NDArray[np.int32]) -> float:
        """Return the least entry of a grid over some columns that satisfies these clauses; infinity if none does."""
        allowed = np.ones(grid.shape, dtype=np.bool_)
        for clause in self.matrix[clauses]:
            below = []
            for j in columns:
                at = np.flatnonzero(clause[self.starts[j] : self.starts[j + 1]])
                # A clause has at most one step of a column: it is open up to the level below.
                below.append(slice(None, int(at[0]) + 1 if len(at) else None))
            allowed[tuple(below)] = False
        return float(np.min(grid, where=allowed, initial=np.inf))


def lower_bound(lattice: Lattice, objective: Objective, clauses: Clauses | None, spent: Callable[[], bool]) -> float:
    """Return what no anonymous node goes below; the states of all nodes say it exactly where they are stored."""
    if lattice.tags is not None and objective.bounds is not None:
        return float(np.min(objective.bounds, where=lattice.tags != BROKEN, initial=np.inf))
    if clauses is None:
        return objective.bound(lattice.low)
    return max(objective.bound(clauses.floor), objective.bound_of(clauses.bound(spent)))
