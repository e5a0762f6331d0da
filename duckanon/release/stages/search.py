"""The second stage on the lattice: an algorithm chooses a node; or several, each for the rows that are left."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from duckanon.algorithms.full_domain.local import Pass, search_passes
from duckanon.errors import InfeasibleError

if TYPE_CHECKING:
    from duckanon.algorithms.full_domain.listing import Seen
    from duckanon.engine.base import Engine
    from duckanon.plan.plan import Plan
    from duckanon.recoding.coded_rows import Division
    from duckanon.release.stages.encode import Encoded


@dataclass(frozen=True)
class Found:
    """The result of the search: passes over the lattice, each with its node, or a partition of the rows."""

    suppressed: int
    """How many rows are not published."""
    search_stats: dict[str, Any]
    passes: tuple[Pass, ...] = ()
    partition: Division | None = None
    seen: Seen | None = field(default=None, repr=False)
    """The nodes that the first pass visited or inferred, if the algorithm reports them."""


def search(plan: Plan, engine: Engine, encoded: Encoded) -> Found:
    """Find a node of the lattice; or several, each for the rows that the last one left."""
    problem = encoded.problem
    with engine.progress.step("search", unit="nodes"):
        if plan.search_options.iterative:
            passes = search_passes(encoded.algorithm, problem)
        else:
            passes = [Pass(problem, encoded.algorithm.search(problem))]
    if passes[0].node.outlier_rows == encoded.rows:
        raise InfeasibleError(
            f"All {encoded.rows} rows would be suppressed: no class has {problem.min_size} {plan.unit}. Lower the "
            "suppression limit so that values are generalized instead."
        )
    # Tables of the first pass stay: the lattice of the release can be listed.
    for later in passes[1:]:
        engine.drop(*(tally.frequency.table for tally in later.problem.tallies.values()))
    first = passes[0].node
    return Found(passes[-1].node.outlier_rows, first.searched, tuple(passes), seen=first.seen)


__all__ = ["Found", "search"]
