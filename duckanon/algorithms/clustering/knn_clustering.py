"""Clusters of rows drawn at random and the rows nearest to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from duckanon.algorithms.base import algorithms
from duckanon.algorithms.clustering.clustering import Clustering

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from duckanon.algorithms.clustering.clusters import Advance, Cloud


@algorithms.register("knn_clustering")
@dataclass(frozen=True)
class KnnClustering(Clustering):
    """Draw a row, put it and the k - 1 rows nearest to it into a class, and go on with the rows left.

    Near is what makes the smallest box about two rows, by its normalised certainty penalty (NCP). Fewer than k rows
    left over go each to the class whose penalty, times its rows, grows least.

    Parameters
    ----------
    seed : int
        The seed of the draw.
    stable_seeds : bool
        Draw the first rows of all classes before any class is made, so that those of k + 1 are nearly those of k, and
        the release changes less from one k to the next.
    block : int, optional
        As of ``mdav``.

    References
    ----------
    J.-L. Lin, M.-C. Wei, An efficient clustering method for k-anonymization, 2008; as CB in D. Slijepcevic et al.,
    k-Anonymity in practice, 2021, section 5.8 of which proposes to choose all first rows before.
    """

    seed: int = 0
    stable_seeds: bool = False
    block: int | None = None
    summary: ClassVar[str] = "classes of a row drawn at random and the k - 1 nearest to it"

    @property
    def by_rows(self) -> bool:
        return True

    def cluster(self, cloud: Cloud, least: int, threads: int | None, advance: Advance) -> NDArray[np.int64]:
        from duckanon.algorithms.clustering.clusters import knn_clustering

        return knn_clustering(cloud, least, self.seed, self.stable_seeds, advance)
