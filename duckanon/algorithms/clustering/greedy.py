"""Greedy merging: the smallest class is merged with the one that costs least, until all are large enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from duckanon.algorithms.base import algorithms
from duckanon.algorithms.clustering.clustering import Clustering
from duckanon.errors import ParameterError, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from duckanon.algorithms.clustering.clusters import Advance, Cloud
    from duckanon.algorithms.partition.partition import PartitionAxis

METRICS = ("nllm", "ncp", "distortion")
"""What a merge may cost: see ``spaces.MEASURES``."""
TOGETHER = 50_000
"""The most combinations of values that are merged together: each merge may read all of them."""


@algorithms.register("greedy")
@dataclass(frozen=True)
class Greedy(Clustering):
    """Begin with a class for every combination of values; merge the smallest with the class that costs least.

    Until no class has fewer than k rows. A merge costs what the metric grows by, summed over rows. Of classes that are
    equally small, and of merges that cost the same, the first in the order of values is taken.

    Parameters
    ----------
    metric : {"nllm", "ncp", "distortion"}
        The leaves that a generalized value stands for beyond its own, as a share of all (normalised lost leaves); its
        leaves as a share of all; or its level as a share of the height. Of numbers always the share of their range,
        unless a label of their hierarchy is published of them (``output="lca"``): then they are values like others.
    block : int, optional
        Most combinations of values that are merged together, by default 50,000; larger tables are divided into blocks
        of values near each other, and the report says how many.

    References
    ----------
    C. Mauger, G. Le Mahec, G. Dequen, Multi-criteria optimization using l-diversity and t-closeness for
    k-anonymization, 2020; as algorithm 1 of the paper on proportional representation.
    """

    metric: str = "nllm"
    block: int | None = None
    summary: ClassVar[str] = "the smallest class is merged with the one that costs least, again and again"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.metric not in METRICS:
            hint = did_you_mean(str(self.metric), METRICS)
            raise ParameterError(f"The 'metric' parameter of {self.name} must be one of {', '.join(METRICS)}.{hint}")

    def measure_of(self, axes: Sequence[PartitionAxis]) -> str:
        return self.metric

    def together(self, columns: int) -> int:
        return TOGETHER

    def cluster(self, cloud: Cloud, least: int, threads: int | None, advance: Advance) -> NDArray[np.int64]:
        from duckanon.algorithms.clustering.clusters import greedy

        return greedy(cloud, least, advance)
