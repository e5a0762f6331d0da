"""What all searches of the full-domain lattice have in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from duckanon.algorithms.base import Algorithm, Problem
from duckanon.algorithms.full_domain.listing import Seen
from duckanon.algorithms.full_domain.nodes import Node, evaluate, judge
from duckanon.errors import InfeasibleError, ParameterError
from duckanon.metrics.base import metrics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duckanon.algorithms.full_domain.lattice import Lattice
    from duckanon.algorithms.full_domain.objectives import Objective

    Levels = tuple[int, ...]


UNKNOWN, ANONYMOUS, BROKEN = 0, 1, 2
"""The states of a node: unknown, satisfies the models, violates them."""
MOST_NODES = 30_000_000
"""The most nodes for which the state of each is stored in an array."""


@dataclass(frozen=True)
class Choice:
    """The chosen node, its value, and a lower bound of all values; ``levels`` is None if there is no node."""

    levels: Levels | None
    value: float
    bound: float


@dataclass(frozen=True)
class FullDomain(Algorithm):
    """A search of the lattice in which every column has one level, minimising a metric.

    Parameters
    ----------
    metric : str
        What is made as small (a loss) or as large (a quality) as possible: the name of a metric.
    """

    metric: str = "loss"
    most_nodes: ClassVar[int] = MOST_NODES
    """The most nodes of a lattice for which the state of each is stored."""

    def __post_init__(self) -> None:
        if not isinstance(self.metric, str):
            raise ParameterError(f"The 'metric' parameter of {type(self).__name__} must be the name of a metric.")
        metrics.get(self.metric)

    @property
    def counts_values(self) -> bool:
        return self.metric == "classification"

    @abstractmethod
    def explore(self, lattice: Lattice, objective: Objective) -> Choice:
        """Return the node that is chosen."""

    def search(self, problem: Problem) -> Node:
        from duckanon.algorithms.full_domain.lattice import Lattice
        from duckanon.algorithms.full_domain.objectives import make_objective
        from duckanon.algorithms.full_domain.tables import Tables

        lattice = Lattice(problem, Tables(problem), problem.low, problem.high, most_nodes=self.most_nodes)
        objective = make_objective(lattice, self.metric)
        choice = self.explore(lattice, objective)
        if choice.levels is None:
            raise InfeasibleError(_too_far(lattice))
        node = evaluate(problem, choice.levels)
        node = node if problem.size_only else judge(problem, node)
        return replace(node, searched=_searched(lattice, objective, choice), seen=Seen.of(lattice))


@dataclass(frozen=True)
class MinimalSearch(FullDomain):
    """A search that finds k-minimal nodes, of which the best by the metric is taken."""

    @property
    def minimal(self) -> bool:
        return True

    @abstractmethod
    def candidates(self, lattice: Lattice) -> Iterable[Levels]:
        """Return the nodes among which the best is chosen."""

    def explore(self, lattice: Lattice, objective: Objective) -> Choice:
        from duckanon.algorithms.full_domain.minimal import best_of

        levels, value = best_of(lattice, objective, self.candidates(lattice))
        return Choice(levels, value, objective.bound(lattice.low))


def _too_far(lattice: Lattice) -> str:
    problem = lattice.problem
    top = lattice.visit(lattice.high)
    few = f"of fewer than {problem.min_size} {problem.unit}" if top.by_size else "that break a promise"
    rest = (
        f"{problem.allowed} may be suppressed" if top.outlier_rows > problem.allowed else "nothing would be published"
    )
    return (
        f"Of the {lattice.size:,} nodes none keeps the promise. With every quasi-identifier at the highest level that "
        f"it may have {top.outlier_rows} of {problem.frequency.rows} rows are in classes {few}, and {rest}."
    )


def _searched(lattice: Lattice, objective: Objective, choice: Choice) -> dict[str, Any]:
    gap = max(0.0, choice.value - choice.bound)
    return {
        "nodes": lattice.size,
        "visited": len(lattice.visits),
        "metric": objective.metric,
        "value": objective.shown(choice.value),
        "bound": objective.shown(choice.bound),
        "gap": gap,
        "optimal": gap <= 1e-9 * max(1.0, abs(choice.value)),
    }
