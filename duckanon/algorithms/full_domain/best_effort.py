"""As good a full-domain generalization as a budget allows, with a bound on the gap to the optimum."""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, ClassVar

from duckanon.algorithms.base import algorithms
from duckanon.algorithms.full_domain.search import BROKEN, Choice, FullDomain
from duckanon.errors import ParameterError
from duckanon.models.base import require_int, require_number

if TYPE_CHECKING:
    from duckanon.algorithms.full_domain.lattice import Lattice
    from duckanon.algorithms.full_domain.objectives import Objective

    Levels = tuple[int, ...]

_STRATEGIES = ("top_down", "bottom_up", "genetic")
_POPULATION = 40
_GROUP = 6


@algorithms.register("best_effort")
@dataclass(frozen=True)
class BestEffort(FullDomain):
    """A good node within a budget of nodes or seconds, for lattices that are too large to search.

    It starts by asking, column by column, below which level even all other columns at their top do not help: no
    anonymous node lies below these levels, and what they lose at least is lost by every node. The report says how far
    the node that was found is from that bound; the true distance may be smaller.

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
    data to satisfy privacy constraints, 2002 (genetic search).
    """

    strategy: str = "genetic"
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
        # A quarter of the remaining budget is for the lower bound.
        search = budget.part(0.75)
        walk = {"top_down": _top_down, "bottom_up": _bottom_up}.get(self.strategy)
        steps = walk(lattice, objective, keeper, floor) if walk else _genetic(lattice, keeper, floor, self.seed)
        for _ in steps:
            if search.spent():
                break
        for _ in _polish(lattice, keeper, floor):
            if budget.spent():
                break
        least = _least(lattice, objective, floor, budget)
        bound = max(least, _bound(lattice, objective, floor))
        return Choice(keeper.levels, keeper.value, min(keeper.value, bound))


class _Budget:
    def __init__(self, lattice: Lattice, nodes: int, seconds: float | None) -> None:
        self.lattice, self.nodes = lattice, nodes
        self.end = time.monotonic() + seconds if seconds is not None else None

    def part(self, share: float) -> _Budget:
        """Return a share of the remaining budget."""
        used = len(self.lattice.visits)
        left = max(0.0, self.end - time.monotonic()) * share if self.end is not None else None
        return _Budget(self.lattice, used + int((self.nodes - used) * share), left)

    def spent(self) -> bool:
        """Return whether no more nodes may be visited."""
        late = self.end is not None and time.monotonic() > self.end
        return late or len(self.lattice.visits) >= self.nodes


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


def _least(lattice: Lattice, objective: Objective, floor: Levels, budget: _Budget) -> float:
    """Return what groups of columns lose at least, each with all other columns at their top.

    The classes of a group alone are no smaller than those of any node with the same levels in it, so a group that is
    broken by itself is broken everywhere. The columns with most values stand together, where they need most.
    """
    base = objective.bound(floor)
    if not objective.separable:
        return base
    sizes = [c.sizes[low] for c, low in zip(lattice.problem.frequency.coded, floor, strict=True)]
    order = sorted(range(len(floor)), key=lambda j: (-sizes[j], j))
    bound = base
    for start in range(0, len(order), _GROUP):
        group = order[start : start + _GROUP]
        bound += _least_of(lattice, objective, floor, group, budget) - base
    return bound


def _least_of(lattice: Lattice, objective: Objective, floor: Levels, group: list[int], budget: _Budget) -> float:
    """Return the lowest bound of the nodes that keep the promise with all columns outside the group at their top."""
    ways = []
    for chosen in product(*(range(floor[j], lattice.high[j] + 1) for j in group)):
        above, below = list(lattice.high), list(floor)
        for j, level in zip(group, chosen, strict=True):
            above[j] = below[j] = level
        ways.append((objective.bound(tuple(below)), tuple(above)))
    lowest = min(ways)[0]
    for bound, levels in sorted(ways):
        if budget.spent():
            # Nodes that were not visited may be anonymous: only those before them are excluded.
            return bound
        state = lattice.known(levels)
        if state == BROKEN and (lattice.sound or levels not in lattice.visits or lattice.visits[levels].final):
            continue
        visit = lattice.visit(levels)
        if visit.anonymous or not (lattice.sound or visit.final):
            return bound
    return lowest


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


def _bound(lattice: Lattice, objective: Objective, floor: Levels) -> float:
    """Return what no anonymous node can go below: above the floor, and not below any node that is broken."""
    bound = objective.bound(floor)
    for broken in lattice.broken:
        ways = [
            objective.bound((*floor[:j], max(floor[j], level + 1), *floor[j + 1 :]))
            for j, level in enumerate(broken)
            if level < lattice.high[j]
        ]
        if ways:
            bound = max(bound, min(ways))
    return bound
