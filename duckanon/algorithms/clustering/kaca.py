"""KACA: a small class drawn at random is merged with the nearest, until all are large enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from duckanon.algorithms.base import algorithms
from duckanon.algorithms.clustering.clustering import Clustering
from duckanon.algorithms.clustering.greedy import TOGETHER

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from duckanon.algorithms.clustering.clusters import Advance, Cloud
    from duckanon.algorithms.partition.partition import PartitionAxis


@algorithms.register("kaca")
@dataclass(frozen=True)
class Kaca(Clustering):
    """Begin with a class for every combination of values; draw one of fewer than k rows, merge it with the nearest.

    Until there are no such classes. The distance of two classes is the distortion that it takes to make them one: the
    levels by which the values of all their rows are generalized, as shares of the heights of hierarchies, and the
    shares of the range of numbers.

    Parameters
    ----------
    seed : int
        The seed of the draw.
    block : int, optional
        As of ``greedy``.

    References
    ----------
    J. Li, R. C.-W. Wong, A. W.-C. Fu, J. Pei, Achieving k-anonymity by clustering in attribute hierarchical
    structures, 2006.
    """

    seed: int = 0
    block: int | None = None
    summary: ClassVar[str] = "small classes, drawn at random, are merged with the nearest"

    def measure_of(self, axes: Sequence[PartitionAxis]) -> str:
        return "distortion"

    def together(self, columns: int) -> int:
        return TOGETHER

    def cluster(self, cloud: Cloud, least: int, threads: int | None, advance: Advance) -> NDArray[np.int64]:
        from duckanon.algorithms.clustering.clusters import kaca

        return kaca(cloud, least, self.seed, advance)
