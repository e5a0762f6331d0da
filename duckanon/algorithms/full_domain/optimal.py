"""Globally optimal full-domain generalization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from duckanon.algorithms.base import algorithms
from duckanon.algorithms.full_domain.search import BROKEN, UNKNOWN, Choice, FullDomain

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from duckanon.algorithms.full_domain.lattice import Lattice
    from duckanon.algorithms.full_domain.objectives import Objective

    Levels = tuple[int, ...]

_BLOCK = 1 << 14
_RARE = 200


@algorithms.register("optimal")
@dataclass(frozen=True)
class Optimal(FullDomain):
    """The node with the best value of all that keep the promise, for any metric and any models.

    Nodes are tried in the order of what they lose at least; when that exceeds the best value found, no other node can
    be better. Where anonymity is inherited by the nodes above, a path of unknown nodes is bisected instead of trying
    them one by one, and what is found is inferred of all nodes above and below. Where it is not (models that a larger
    class may break, with suppression) only nodes below are excluded: by the sizes of classes, and by how many rows of
    a class must violate a model however the class is split.

    Parameters
    ----------
    metric : str
        What is made as small (a loss) or as large (a quality) as possible: the name of a metric.

    Notes
    -----
    Of nodes with the same value the one with the lower bound is taken, then the one whose levels come first.

    References
    ----------
    F. Kohlmayer et al., Flash: efficient, stable and optimal k-anonymity, 2012 (paths and their bisection); R. Bayardo
    and R. Agrawal, Data privacy through optimal k-anonymization, 2005 (pruning by bounds).
    """

    summary: ClassVar[str] = "globally optimal full-domain generalization for any metric and models"

    @property
    def minimal(self) -> bool:
        return True

    def explore(self, lattice: Lattice, objective: Objective) -> Choice:
        import numpy as np

        from duckanon.algorithms.full_domain.minimal import lowest_levels

        tags = lattice.require_tags().reshape(-1)
        if objective.bounds is None:
            raise AssertionError("there are bounds where there are tags")
        bounds = objective.bounds.reshape(-1)
        best: tuple[float, float, Levels] | None = None
        settled = np.zeros(lattice.size, dtype=bool)

        def settle(place: int) -> bool:
            nonlocal best
            levels = lattice.unravel(place)
            visit = lattice.visit(levels)
            settled[place] = True
            if visit.anonymous:
                classes, kept = lattice.kept(levels)
                objective.learn(levels, classes)
                candidate = (objective.value(levels, classes, kept), float(bounds[place]), levels)
                if best is None or candidate < best:
                    best = candidate
            return visit.anonymous

        if lattice.problem.allowed * _RARE < lattice.problem.frequency.rows:
            # If hardly any row may be suppressed, single columns exclude many nodes, and roll-ups start smaller.
            lattice.tables.classes(lowest_levels(lattice))
        for place in _by_bound(bounds, objective.static, settled, tags):
            least = best[0] if best is not None else float("inf")
            if bounds[place] > least:
                break
            if tags[place] != UNKNOWN:
                settle(place)
                continue
            path = _climb(lattice, bounds, tags, place, least)
            low, high = 0, len(path)
            while low < high:
                middle = (low + high) // 2
                # Down where the node is anonymous or says nothing of those below it, up where it excludes them.
                if settle(path[middle]) or tags[place] == UNKNOWN:
                    high = middle
                else:
                    low = middle + 1
        if best is None:
            return Choice(None, float("inf"), float("inf"))
        return Choice(best[2], best[0], best[0])


def _by_bound(
    bounds: NDArray[np.float64], static: bool, settled: NDArray[np.bool_], tags: NDArray[np.uint8]
) -> Iterator[int]:
    """Yield the nodes that may be anonymous, lowest bound first; nodes that are excluded meanwhile are skipped."""
    import numpy as np

    if not static:
        while True:
            open_ = ~settled & (tags != BROKEN)
            if not open_.any():
                return
            yield int(np.where(open_, bounds, np.inf).argmin())
    order = np.argsort(bounds, kind="stable")
    for start in range(0, len(order), _BLOCK):
        block = order[start : start + _BLOCK]
        while True:
            open_ = ~settled[block] & (tags[block] != BROKEN)
            at = int(open_.argmax())
            if not open_[at]:
                break
            # The same node again if its state is still unknown: it was not visited yet.
            yield int(block[at])
            block = block[at:]


def _climb(
    lattice: Lattice, bounds: NDArray[np.float64], tags: NDArray[np.uint8], place: int, least: float
) -> list[int]:
    """Return a path of unknown nodes, each the parent with the lowest bound of the one before."""
    path = [place]
    levels = list(lattice.unravel(place))
    while True:
        steps = [(j, path[-1] + s) for j, s in enumerate(lattice.strides) if levels[j] < lattice.high[j]]
        ways = [(bounds[p], p, j) for j, p in steps if tags[p] == UNKNOWN and bounds[p] <= least]
        if not ways:
            return path
        _, up, column = min(ways)
        levels[column] += 1
        path.append(up)
