"""As good a full-domain generalization as a budget allows, with a bound on the gap to the optimum."""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from duckanon.algorithms.base import algorithms
from duckanon.algorithms.full_domain.lower_bound import Clauses, lower_bound
from duckanon.algorithms.full_domain.search import BROKEN, Choice, FullDomain
from duckanon.errors import ParameterError
from duckanon.models.base import require_int, require_number

if TYPE_CHECKING:
    from duckanon.algorithms.full_domain.lattice import Lattice
    from duckanon.algorithms.full_domain.objectives import Objective

    Levels = tuple[int, ...]

_STRATEGIES = ("top_down", "bottom_up", "genetic")
_POPULATION = 40
_SEARCH, _CLAUSES = 0.5, 0.75
"""The shares of what is left of the budget for the search, and after it for what the lower bound is made of."""


@algorithms.register("best_effort")
@dataclass(frozen=True)
class BestEffort(FullDomain):
    """A good node within a budget of nodes or seconds, for lattices that are too large to search.

    It starts by asking, column by column, below which level even all other columns at their top do not help: no
    anonymous node lies below these levels. Half of the rest of the budget goes to the search, the other half to a lower
    bound: each broken node excludes all nodes below it, and what the cheapest levels lose that none of them excludes is
    lost by every anonymous node. The report says how far the node that was found is from that bound; the true distance
    may be smaller. Only losses that are sums over columns have such a bound where a lattice has more than a million
    nodes.

    Parameters
    ----------
    metric : str
        What is made as small (a loss) or as large (a quality) as possible.
    strategy : {"top_down", "bottom_up", "genetic"}
        "top_down" refines the best anonymous nodes step by step; "bottom_up" generalizes where most rows are won for
        the least loss; "genetic" crosses and mutates nodes.
    nodes : int
        How many nodes may be visited.
    seconds : float, optional
        How long the search may take. The result then depends on the machine: for a release that can be made again,
        give a number of nodes.
    seed : int
        Of the genetic strategy.

    References
    ----------
    F. Prasser et al., Lightning: utility-driven anonymization of high-dimensional data, 2016; V. Iyengar, Transforming
    data to satisfy privacy constraints, 2002 (genetic search); J. Davies and F. Bacchus, Solving MAXSAT by solving a
    sequence of simpler SAT instances, 2011 (hitting sets, from which the lower bound is made).
    """

    strategy: str = "genetic"
    # An array of more would take longer to keep than the nodes to visit.
    most_nodes: ClassVar[int] = 1_000_000
    nodes: int = 1000
    seconds: float | None = None
    seed: int = 0
    summary: ClassVar[str] = "a good node within a budget of nodes or seconds, with a provable gap"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.strategy not in _STRATEGIES:
            raise ParameterError(f"The 'strategy' parameter of BestEffort must be one of {', '.join(_STRATEGIES)}.")
        object.__setattr__(self, "nodes", require_int("BestEffort", "nodes", self.nodes, 1))
        object.__setattr__(self, "seed", require_int("BestEffort", "seed", self.seed, 0))
        if self.seconds is not None:
            seconds = require_number("BestEffort", "seconds", self.seconds, 0, above=True)
            object.__setattr__(self, "seconds", seconds)

    def explore(self, lattice: Lattice, objective: Objective) -> Choice:
        from duckanon.algorithms.full_domain.minimal import lowest_levels

        budget = _Budget(lattice, self.nodes, self.seconds)
        keeper = _Keeper(lattice, objective)
        if not keeper.try_(lattice.high):
            return Choice(None, float("inf"), float("inf"))
        floor = lowest_levels(lattice, budget.spent)
        search = budget.part(_SEARCH)
        walk = {"top_down": _top_down, "bottom_up": _bottom_up}.get(self.strategy)
        steps = walk(lattice, objective, keeper, floor) if walk else _genetic(lattice, keeper, floor, self.seed)
        _within(search, steps)
        _within(budget, _polish(lattice, keeper, floor))
        clauses = None
        if objective.terms is not None:
            clauses = Clauses(lattice, objective.terms, floor)
            # On the way there are nodes that nothing excludes: some are anonymous and better.
            clauses.search(budget.part(_CLAUSES).spent, random.Random(self.seed), keeper.try_)  # noqa: S311 - no secret
            _within(budget, _polish(lattice, keeper, floor))
        bound = lower_bound(lattice, objective, clauses, budget.late)
        return Choice(keeper.levels, keeper.value, min(keeper.value, bound))


class _Budget:
    def __init__(self, lattice: Lattice, nodes: int, seconds: float | None) -> None:
        self.lattice, self.nodes = lattice, nodes
        self.end = time.monotonic() + seconds if seconds is not None else None

    def part(self, share: float) -> _Budget:
        """Return a share of the remaining budget."""
        used = len(self.lattice.visits)
        left = max(0.0, self.end - time.monotonic()) if self.end is not None else None
        nodes = used + int((self.nodes - used) * share)
        return _Budget(self.lattice, nodes, left * share if left is not None else None)

    def late(self) -> bool:
        """Return whether the time is over."""
        return self.end is not None and time.monotonic() > self.end

    def spent(self) -> bool:
        """Return whether no more nodes may be visited."""
        return self.late() or len(self.lattice.visits) >= self.nodes


def _within(budget: _Budget, steps: Iterable[None]) -> None:
    """Take steps until the budget is spent."""
    for _ in steps:
        if budget.spent():
            break


class _Keeper:
    """Visits nodes and remembers the best anonymous one."""

    def __init__(self, lattice: Lattice, objective: Objective) -> None:
        self.lattice, self.objective = lattice, objective
        self.levels: Levels | None = None
        self.value = float("inf")
        self.values: dict[Levels, float] = {}

    def try_(self, levels: Levels) -> bool:
        """Visit a node if it was not visited yet; return whether it is anonymous."""
        if levels in self.values:
            return True
        if not self.lattice.visit(levels).anonymous:
            return False
        value = self.objective.value(levels, *self.lattice.kept(levels))
        self.values[levels] = value
        if (value, levels) < (self.value, self.levels or levels):
            self.levels, self.value = levels, value
        return True


def _top_down(lattice: Lattice, objective: Objective, keeper: _Keeper, floor: Levels) -> Iterator[None]:
    """Refine the anonymous node with the lowest value first, one level of one column at a time."""
    queue = [(keeper.value, lattice.high)]
    seen = {lattice.high}
    while queue:
        _, levels = heapq.heappop(queue)
        for child in lattice.children(levels):
            if child in seen or any(a < b for a, b in zip(child, floor, strict=True)):
                continue
            seen.add(child)
            if lattice.known(child) != BROKEN and keeper.try_(child):
                heapq.heappush(queue, (keeper.values[child], child))
            yield


def _bottom_up(lattice: Lattice, objective: Objective, keeper: _Keeper, floor: Levels) -> Iterator[None]:
    """Generalize the most promising node: few outliers and little loss."""
    rows = max(lattice.problem.frequency.rows, 1)

    def rank(levels: Levels) -> tuple[float, Levels]:
        visit = lattice.visit(levels)
        worst = objective.bound(lattice.high) or 1.0
        return (visit.outlier_rows / rows + objective.bound(levels) / worst, levels)

    queue = [rank(floor)]
    seen = {floor}
    keeper.try_(floor)
    while queue:
        _, levels = heapq.heappop(queue)
        if lattice.visit(levels).anonymous:
            continue
        for parent in lattice.parents(levels):
            if parent in seen or objective.bound(parent) > keeper.value:
                continue
            seen.add(parent)
            keeper.try_(parent)
            heapq.heappush(queue, rank(parent))
            yield


def _genetic(lattice: Lattice, keeper: _Keeper, floor: Levels, seed: int) -> Iterator[None]:
    """Cross and mutate nodes; anonymous ones by value come first, then the others by their outliers."""
    rng = random.Random(seed)  # noqa: S311 - a search, no secret

    def fitness(levels: Levels) -> tuple[int, float, Levels]:
        if keeper.try_(levels):
            return (0, keeper.values[levels], levels)
        return (1, float(lattice.visit(levels).outlier_rows), levels)

    spans = list(zip(floor, lattice.high, strict=True))
    people = [lattice.high, floor] + [tuple(rng.randint(a, b) for a, b in spans) for _ in range(_POPULATION - 2)]
    ranked = []
    for levels in people:
        ranked.append(fitness(levels))
        yield
    idle = 0
    while idle < 50 * _POPULATION:
        ranked = sorted(set(ranked))[:_POPULATION]
        mother, father = (min(rng.sample(ranked, min(3, len(ranked))))[2] for _ in range(2))
        child = [rng.choice(pair) for pair in zip(mother, father, strict=True)]
        at = rng.randrange(len(child))
        child[at] = min(max(child[at] + rng.choice((-1, 1)), spans[at][0]), spans[at][1])
        visited = len(lattice.visits)
        ranked.append(fitness(tuple(child)))
        idle = idle + 1 if len(lattice.visits) == visited else 0
        yield


def _polish(lattice: Lattice, keeper: _Keeper, floor: Levels) -> Iterator[None]:
    """Lower single levels of the best node as long as that helps."""
    better = True
    while better and keeper.levels is not None:
        start = keeper.value
        for child in list(lattice.children(keeper.levels)):
            if all(a >= b for a, b in zip(child, floor, strict=True)) and lattice.known(child) != BROKEN:
                keeper.try_(child)
                yield
        better = keeper.value < start
