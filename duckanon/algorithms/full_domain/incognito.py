"""Incognito (LeFevre et al. 2005)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from duckanon.algorithms.base import algorithms
from duckanon.algorithms.full_domain.search import Choice, FullDomain

if TYPE_CHECKING:
    from duckanon.algorithms.full_domain.lattice import Lattice
    from duckanon.algorithms.full_domain.objectives import Objective


@algorithms.register("incognito")
@dataclass(frozen=True)
class Incognito(FullDomain):
    """All k-minimal nodes, found by way of ever larger subsets of the quasi-identifiers; the best of them by a metric.

    Parameters
    ----------
    metric : str
        By which one of the k-minimal nodes is chosen.

    References
    ----------
    K. LeFevre, D. DeWitt and R. Ramakrishnan, Incognito: efficient full-domain k-anonymity, 2005.
    """

    summary: ClassVar[str] = "all k-minimal nodes by subset pruning, the best by a metric (LeFevre 2005)"

    @property
    def minimal(self) -> bool:
        return True

    def explore(self, lattice: Lattice, objective: Objective) -> Choice:
        from duckanon.algorithms.full_domain.minimal import best_of, by_subsets

        levels, value = best_of(lattice, objective, by_subsets(lattice))
        return Choice(levels, value, objective.bound(lattice.low))
