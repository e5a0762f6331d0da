"""MDAV: microaggregation in clusters of k rows, from the outside in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from duckanon.algorithms.base import algorithms
from duckanon.algorithms.clustering.clustering import Clustering, Run
from duckanon.errors import ParameterError, did_you_mean
from duckanon.models.ordered_t_closeness import OrderedTCloseness

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.algorithms.clustering.clusters import Advance, Cloud
    from duckanon.algorithms.partition.partition import PartitionAxis, Rules

    Integers = NDArray[np.int64]

DISTANCES = {"standardised": "standardised", "gower": "gower", "hierarchy": "ncp"}
"""The distances, with the measure of the space for each."""


@algorithms.register("mdav")
@dataclass(frozen=True)
class Mdav(Clustering):
    """Make clusters of k rows (the last of up to 2k - 1): of the row farthest from the middle and those nearest to it.

    Then of the row farthest from that one, and again with the rows left. Publish ``output="mean"`` (or median, mode,
    medoid, ...) for microaggregation proper; intervals are the default here as for every algorithm. The result is
    exact: of rows equally far or near the one that comes first in the order of values is taken, and of equal rows one
    that a keyed hash of their published values chooses.

    Where ordered t-closeness is promised of one column, its values are divided into as many strata as t asks for, and
    every cluster gets a row of each (Soria-Comas et al.). Classes that break a model after that are merged with the
    class that widens least, as for any other model.

    Parameters
    ----------
    distance : {"standardised", "gower", "hierarchy"}, optional
        Squared differences in standard deviations, and 1 for categories that differ; shares of the range of numbers,
        and 1 for categories that differ; or that with the share of leaves under the lowest common node for categories.
        By default the first if all quasi-identifiers are numbers, dates or times, else the last. The middle has the
        mean of numbers and the most frequent category.
    block : int, optional
        Most rows that are clustered together; larger tables are divided into blocks of rows near each other, each
        clustered by itself, and the report says how many. By default 2,000,000 rows of up to four quasi-identifiers
        and 200,000 rows of more are one block, and larger tables are divided into blocks of a tenth of that.

    References
    ----------
    J. Domingo-Ferrer, V. Torra, Ordinal, continuous and heterogeneous k-anonymity through microaggregation, 2005;
    J. Soria-Comas, J. Domingo-Ferrer, D. Sanchez, S. Martinez, t-Closeness through microaggregation, 2015.

    Examples
    --------
    >>> Mdav(distance="gower").parameters()
    {'distance': 'gower', 'block': None}
    """

    distance: str | None = None
    block: int | None = None
    summary: ClassVar[str] = "microaggregation: clusters of k rows, from the outside in"

    def __post_init__(self) -> None:
        require_distance(self.name, self.distance)
        super().__post_init__()

    @property
    def reported(self) -> tuple[str, ...]:
        return ("sse", "sse_ratio")

    @property
    def by_rows(self) -> bool:
        return True

    def measure_of(self, axes: Sequence[PartitionAxis]) -> str:
        return measure_of(self.distance, axes)

    def cluster(self, cloud: Cloud, least: int, threads: int | None, advance: Advance) -> Integers:
        from duckanon.algorithms.clustering.clusters import mdav

        return mdav(cloud, least, advance)

    def run(self, run: Run, rules: Rules, threads: int | None, advance: Advance) -> Integers:
        close = [m for m in rules.models if isinstance(m, OrderedTCloseness)]
        if len(close) != 1:
            return self.cluster(run.cloud, rules.least, threads, advance)
        count = len(run.cloud.points)
        size = spread_size(count, rules.least, close[0].t)
        if size >= count:
            return np.zeros(count, dtype=np.int64)
        values = run.items.values[str(close[0].sensitive)][run.order].astype(np.int64)
        return across(run.cloud, values, size, advance)


def spread_size(count: int, least: int, t: float) -> int:
    """Return the rows of a cluster that has one of each stratum of sensitive values, so that it is as close as t.

    Examples
    --------
    >>> spread_size(1000, 5, 0.1), spread_size(1000, 5, 0.5)
    (5, 5)
    >>> spread_size(1000, 2, 0.02)
    25
    """
    size = max(least, int(np.ceil(count / (2 * (count - 1) * t + 1)))) if count > 1 else 1
    size = min(size, count)
    return size + (count % size) // (count // size)


def across(cloud: Cloud, values: Integers, size: int, advance: Advance) -> Integers:
    """Return clusters with a row of each of ``size`` strata of sensitive values; the middle one has the remainder."""
    from duckanon.algorithms.clustering.clusters import mdav_across

    count = len(values)
    each, more = divmod(count, size)
    sizes = np.full(size, each, dtype=np.int64)
    sizes[size // 2] += more
    strata = np.concatenate([[0], np.cumsum(sizes)])
    ranked = np.argsort(values, kind="stable")
    for start, end in pairwise(strata.tolist()):
        ranked[start:end].sort()
    labels = np.empty(count, dtype=np.int64)
    labels[ranked] = mdav_across(cloud.some(ranked), strata, advance)
    return labels


def measure_of(distance: str | None, axes: Sequence[PartitionAxis]) -> str:
    """Return the measure of a distance, by default one that fits the columns."""
    if distance is None:
        distance = "standardised" if all(a.atoms is not None for a in axes) else "hierarchy"
    return DISTANCES[distance]


def require_distance(name: str, distance: object) -> None:
    """Raise unless a distance is known."""
    if distance is not None and distance not in DISTANCES:
        hint = did_you_mean(str(distance), list(DISTANCES))
        raise ParameterError(f"The 'distance' parameter of {name} must be one of {', '.join(DISTANCES)}.{hint}")
