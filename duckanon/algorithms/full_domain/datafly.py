"""Datafly (Sweeney 1997), greedy full-domain generalization with suppression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, ClassVar

from duckanon.algorithms.base import Algorithm, Problem, algorithms
from duckanon.algorithms.full_domain.listing import Seen
from duckanon.algorithms.full_domain.nodes import Node, evaluate, is_large, judge, rows_in_small_classes
from duckanon.errors import InfeasibleError, ParameterError
from duckanon.models.base import require_int

if TYPE_CHECKING:
    from duckanon.models.base import Model


@algorithms.register("datafly")
@dataclass(frozen=True)
class Datafly(Algorithm):
    """Generalize the quasi-identifier with the most distinct values, until few enough rows are outliers; drop those.

    One level is chosen for each column, so equal values stay equal everywhere. Fast, and cruder than a search for the
    optimum: columns with many values are generalized first, whether or not that is what helps.

    Which column comes next depends only on the numbers of distinct values, never on the classes. So the whole path of
    nodes is known from the dictionaries, and since merging classes never makes a class too small, the first node on it
    with few enough rows in small classes is found by bisection instead of walking. Models of sensitive values, of a
    population or of the whole table are asked from there on, node by node. The result is the one that walking gives.

    Parameters
    ----------
    stop : {"limit", "k"}
        When to stop generalizing: "limit" once at most ``suppression_limit`` of the rows are outliers; "k" once at most
        k rows are, as in the paper's pseudo-code, whatever the suppression limit.

    Notes
    -----
    Ties go to the column that was named first.

    References
    ----------
    L. Sweeney, Guaranteeing anonymity when sharing medical data, the Datafly system, 1997.
    """

    stop: str = "limit"
    summary: ClassVar[str] = "greedy full-domain generalization, most distinct values first (Sweeney 1997)"

    def __post_init__(self) -> None:
        if self.stop not in ("limit", "k"):
            raise ParameterError(f"The 'stop' parameter of Datafly must be 'limit' or 'k'. Got {self.stop!r}.")

    def allowed_rows(self, rows: int, suppression_limit: float, models: tuple[Model, ...]) -> int:
        if self.stop == "k":
            return max(m.traits.min_class_size for m in models)
        return super().allowed_rows(rows, suppression_limit, models)

    def search(self, problem: Problem) -> Node:
        visited: list[tuple[int, ...]] = []
        node = _search(problem, visited)
        nodes = prod(b - a + 1 for a, b in zip(problem.low, problem.high, strict=True))
        searched = {"nodes": nodes, "visited": len(visited)}
        return replace(node, searched=searched, seen=Seen(problem.allowed, tuple(visited)))


def _search(problem: Problem, visited: list[tuple[int, ...]]) -> Node:
    path = datafly_path([c.sizes for c in problem.frequency.coded], problem.low, problem.high)
    progress = problem.engine.progress
    # Invariant: every node before `low` has too many outliers, `best` (if any) is the node at `high`.
    low, high = 0, len(path)
    below: Node | None = None
    best: Node | None = None
    nearest: Node | None = None
    # Counting persons takes long for many rows, so counts of rows are checked first.
    by_rows = problem.frequency.entity and is_large(problem)
    while low < high:
        middle = (low + high) // 2
        if by_rows and rows_in_small_classes(problem, path[middle]) > problem.allowed:
            low = middle + 1
            visited.append(path[middle])
            progress.advance(len(visited))
            continue
        node = evaluate(problem, path[middle], below)
        visited.append(path[middle])
        progress.advance(len(visited))
        if node.outlier_rows <= problem.allowed:
            high, replaced, best = middle, best, node
        else:
            low, replaced, below = middle + 1, below, node
            nearest = node
        if replaced is not None:
            replaced.drop(problem.engine)
    if best is None:
        outliers = nearest.outlier_rows if nearest is not None else 0
        raise InfeasibleError(
            f"Even with every column at the highest level that it may have {outliers} of {problem.frequency.rows} rows "
            f"are in classes of fewer than {problem.min_size} {problem.unit}, and {problem.allowed} may be suppressed."
        )
    if below is not None:
        below.drop(problem.engine)
    return best if problem.size_only else _walk(problem, path[high + 1 :], best, visited)


def _walk(problem: Problem, path: list[tuple[int, ...]], first: Node, visited: list[tuple[int, ...]]) -> Node:
    """Return the first node from ``first`` on whose classes satisfy every model but for the rows that may go.

    Merging classes can make an outlier of a row here: of two classes, one close to the whole table and one far from it,
    the union may be too far. So the nodes are tried one by one, from the first that is good enough by size.
    """
    node = judge(problem, first)
    for levels in path:
        if node.outlier_rows <= problem.allowed:
            return node
        below = node
        node = judge(problem, evaluate(problem, levels, below), below)
        below.drop(problem.engine)
        visited.append(levels)
        problem.engine.progress.advance(len(visited))
    if node.outlier_rows <= problem.allowed:
        return node
    broken = ", ".join(m.name for m in problem.models if not m.traits.size_only)
    raise InfeasibleError(
        f"Even with every column at the highest level that it may have {node.outlier_rows} of "
        f"{problem.frequency.rows} rows are in classes that break a promise ({broken}), and {problem.allowed} may be "
        "suppressed."
    )


def datafly_path(
    sizes: list[tuple[int, ...]], low: Sequence[int] | None = None, high: Sequence[int] | None = None
) -> list[tuple[int, ...]]:
    """Return the nodes that Datafly visits, from least to most general; ``sizes[j][i]`` counts values at level i.

    Examples
    --------
    >>> datafly_path([(2, 1), (4, 3, 1)])
    [(0, 0), (0, 1), (0, 2), (1, 2)]
    """
    levels = list(low) if low is not None else [0] * len(sizes)
    top = list(high) if high is not None else [len(s) - 1 for s in sizes]
    path = [tuple(levels)]
    while True:
        open_columns = [j for j in range(len(sizes)) if levels[j] < top[j]]
        if not open_columns:
            return path
        widest = max(open_columns, key=lambda j: (sizes[j][levels[j]], -j))
        levels[widest] += 1
        path.append(tuple(levels))


@algorithms.register("datafly_shuffled")
@dataclass(frozen=True)
class DataflyShuffled(Datafly):
    """Datafly on hierarchies whose values were shuffled at random, so that their groups mean nothing.

    A control for studies: what it loses beside Datafly is what the order and meaning of hierarchies are worth. Groups
    have the sizes that they had, and numbers in place of their labels, which would be untrue of their new members.

    Parameters
    ----------
    stop : {"limit", "k"}
        As of ``datafly``.
    shuffle : int
        The seed of the shuffle.

    References
    ----------
    L. Sweeney, Guaranteeing anonymity when sharing medical data, the Datafly system, 1997; for the broken order, the
    study of information loss metrics as measures for utility, section 3.
    """

    shuffle: int = 0
    summary: ClassVar[str] = "Datafly on hierarchies whose values were shuffled at random, as a control"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "shuffle", require_int("DataflyShuffled", "shuffle", self.shuffle, 0))

    @property
    def hierarchy_shuffle_seed(self) -> int | None:
        return self.shuffle
