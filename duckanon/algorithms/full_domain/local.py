"""Local recoding: the rows that a pass suppresses are recoded again, at levels of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.algorithms.full_domain.nodes import placed
from duckanon.encoding.dictionaries import Frequency
from duckanon.engine.sql.relations import col, number, subquery, table
from duckanon.errors import InfeasibleError

if TYPE_CHECKING:
    from duckanon.algorithms.base import Algorithm, Problem
    from duckanon.algorithms.full_domain.nodes import Node


@dataclass(frozen=True)
class Pass:
    """One recoding: the rows that it was given, and the node that was chosen for them."""

    problem: Problem
    node: Node


def search_passes(algorithm: Algorithm, problem: Problem) -> list[Pass]:
    """Return the passes that leave at most the allowed rows over.

    Every pass may leave half of its rows to the next, so that dense parts of the table keep fine levels; it ends when
    nothing is left, or when no node serves half of what is. If too many rows are left then, the last passes are taken
    back, one by one, until their rows and the rest find a node together. The last resort is the release that a search
    without passes gives.

    Each class satisfies every model by itself. Classes of two passes that are published alike are one class, which the
    gate checks as such.
    """
    passes: list[Pass] = []
    rest: Problem | None = problem
    while rest is not None and rest.frequency.rows:
        rows = rest.frequency.rows
        try:
            node = algorithm.search(replace(rest, allowed=max(rows // 2, min(rest.allowed, rows - 1))))
        except InfeasibleError:
            break
        if node.outlier_rows == rows:
            node.drop(problem.engine)
            break
        passes.append(Pass(rest, node))
        rest = _rest(rest, node) if node.outlier_rows else None
    left = rest.frequency.rows if rest is not None else 0
    while left > problem.allowed:
        if not passes:
            break
        last = passes.pop()
        last.node.drop(problem.engine)
        try:
            node = algorithm.search(replace(last.problem, allowed=problem.allowed))
        except InfeasibleError:
            left = last.problem.frequency.rows
            continue
        passes.append(Pass(last.problem, node))
        left = node.outlier_rows
    # If no pass finds a node, a search without passes raises the error.
    return passes or [Pass(problem, algorithm.search(problem))]


def _rest(problem: Problem, node: Node) -> Problem:
    """Return the problem of the rows that a node does not publish; whole-table frequencies stay as they were."""
    frequency = _left(problem, problem.frequency, node)
    tallies = {
        key: replace(tally, frequency=_left(problem, tally.frequency, node)) for key, tally in problem.tallies.items()
    }
    return replace(problem, frequency=frequency, tallies=tallies)


def _left(problem: Problem, frequency: Frequency, node: Node) -> Frequency:
    engine = problem.engine
    name = engine.fresh("rest")
    columns = [col(f"c_{j}", "p") for j in range(len(frequency.coded))]
    if frequency.carried is not None:
        columns.append(col(frequency.carried, "p"))
    query = exp.select(*columns, col("n", "p")).from_(subquery(placed(frequency, node), "p"))
    engine.create(name, query.where(exp.Not(this=col("kept", "p"))))
    (rows,) = engine.row(exp.select(exp.func("COALESCE", exp.Sum(this=col("n")), number(0))).from_(table(name)))
    return replace(frequency, table=name, rows=int(rows))
