"""Samarati's algorithm: least height by bisection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from duckanon.algorithms.base import algorithms
from duckanon.algorithms.full_domain.search import MinimalSearch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duckanon.algorithms.full_domain.lattice import Lattice

    Levels = tuple[int, ...]


@algorithms.register("samarati")
@dataclass(frozen=True)
class Samarati(MinimalSearch):
    """All k-minimal nodes of the least height, found by bisecting the height; the best of them by a metric.

    Fewest steps of generalization in all columns together, whatever a step costs: columns with many levels pay for
    those with few.

    Parameters
    ----------
    metric : str
        By which one of the nodes of least height is chosen.

    References
    ----------
    P. Samarati, Protecting respondents' identities in microdata release, 2001.
    """

    summary: ClassVar[str] = "least height by bisection, all k-minimal nodes there (Samarati 2001)"

    def candidates(self, lattice: Lattice) -> Iterable[Levels]:
        from duckanon.algorithms.full_domain.minimal import lowest

        return lowest(lattice)
