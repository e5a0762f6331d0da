"""Optimal lattice anonymization (El Emam et al. 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from duckanon.algorithms.base import algorithms
from duckanon.algorithms.full_domain.search import MinimalSearch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duckanon.algorithms.full_domain.lattice import Lattice

    Levels = tuple[int, ...]


@algorithms.register("ola")
@dataclass(frozen=True)
class Ola(MinimalSearch):
    """All k-minimal nodes, found by bisecting generalization strategies, and the best of them by a metric.

    The best k-minimal node is the best of all where the metric never falls with generalization. With suppression it
    may: a node above can lose less, because fewer rows are suppressed. ``optimal`` looks there, too.

    Parameters
    ----------
    metric : str
        By which one of the k-minimal nodes is chosen.

    References
    ----------
    K. El Emam et al., A globally optimal k-anonymity method for the de-identification of health data, 2009.
    """

    summary: ClassVar[str] = "all k-minimal nodes by predictive tagging, the best by a metric (El Emam 2009)"

    def candidates(self, lattice: Lattice) -> Iterable[Levels]:
        from duckanon.algorithms.full_domain.minimal import by_strategies

        return by_strategies(lattice)
