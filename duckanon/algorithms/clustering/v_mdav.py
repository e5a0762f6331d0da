"""V-MDAV: microaggregation in clusters of k to 2k - 1 rows, as the data have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from duckanon.algorithms.base import algorithms
from duckanon.algorithms.clustering.clustering import Clustering
from duckanon.algorithms.clustering.mdav import measure_of, require_distance
from duckanon.models.base import require_number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from duckanon.algorithms.clustering.clusters import Advance, Cloud
    from duckanon.algorithms.partition.partition import PartitionAxis


@algorithms.register("v_mdav")
@dataclass(frozen=True)
class VMdav(Clustering):
    """Make clusters of k rows around the row farthest from the middle, and let each grow by rows that belong to it.

    A row belongs to a cluster if it is nearer to one of its rows than ``gamma`` times its distance to any other row
    left. The middle is that of all rows. What is left over at the end goes to the nearest cluster.

    Parameters
    ----------
    gamma : float
        How readily clusters grow: the larger, the more.
    distance : {"standardised", "gower", "hierarchy"}, optional
        As of ``mdav``.
    block : int, optional
        As of ``mdav``.

    References
    ----------
    A. Solanas, A. Martinez-Balleste, V-MDAV: a multivariate microaggregation with variable group size, 2006.
    """

    gamma: float = 0.2
    distance: str | None = None
    block: int | None = None
    summary: ClassVar[str] = "microaggregation: clusters of k to 2k - 1 rows, as the data have it"

    def __post_init__(self) -> None:
        require_distance(self.name, self.distance)
        super().__post_init__()
        require_number(self.name, "gamma", self.gamma, 0.0)

    @property
    def reported(self) -> tuple[str, ...]:
        return ("sse", "sse_ratio")

    @property
    def by_rows(self) -> bool:
        return True

    def measure_of(self, axes: Sequence[PartitionAxis]) -> str:
        return measure_of(self.distance, axes)

    def cluster(self, cloud: Cloud, least: int, threads: int | None, advance: Advance) -> NDArray[np.int64]:
        from duckanon.algorithms.clustering.clusters import v_mdav

        return v_mdav(cloud, least, self.gamma, advance)
