"""Clusters that grow row by row, each time by the one that costs least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from duckanon.algorithms.base import algorithms
from duckanon.algorithms.clustering.clustering import Clustering

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from duckanon.algorithms.clustering.clusters import Advance, Cloud


@algorithms.register("k_member")
@dataclass(frozen=True)
class KMember(Clustering):
    """Begin a class with the row farthest from where the last one began, and add the row that widens it least, k times.

    Width is the normalised certainty penalty (NCP) of the smallest box about a class. Fewer than k rows left over go
    each to the class whose penalty, times its rows, grows least.

    Parameters
    ----------
    seed : int
        The seed that chooses the row from which the first is the farthest.
    block : int, optional
        As of ``mdav``.

    References
    ----------
    J.-W. Byun, A. Kamra, E. Bertino, N. Li, Efficient k-anonymization using clustering techniques, 2007.
    """

    seed: int = 0
    block: int | None = None
    summary: ClassVar[str] = "classes that grow by the row that widens them least"

    @property
    def by_rows(self) -> bool:
        return True

    def cluster(self, cloud: Cloud, least: int, threads: int | None, advance: Advance) -> NDArray[np.int64]:
        from duckanon.algorithms.clustering.clusters import k_member

        return k_member(cloud, least, self.seed, advance)
