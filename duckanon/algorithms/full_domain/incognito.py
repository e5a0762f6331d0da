"""Incognito (LeFevre et al. 2005)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from duckanon.algorithms.base import algorithms
from duckanon.algorithms.full_domain.search import MinimalSearch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duckanon.algorithms.full_domain.lattice import Lattice

    Levels = tuple[int, ...]


@algorithms.register("incognito")
@dataclass(frozen=True)
class Incognito(MinimalSearch):
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

    def candidates(self, lattice: Lattice) -> Iterable[Levels]:
        from duckanon.algorithms.full_domain.minimal import by_subsets

        return by_subsets(lattice)
