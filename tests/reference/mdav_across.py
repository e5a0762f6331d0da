"""MDAV with a row of every stratum in each cluster, slow and obviously right: clusters as close as t to the table.

After J. Soria-Comas, J. Domingo-Ferrer, D. Sanchez, S. Martinez, t-Closeness through microaggregation, 2015 (algorithm
3). The items in order of their sensitive values are divided into as many strata as a cluster has items; that in the
middle has what remains, and gives one item more to each of the first clusters. Ties go to the first stratum, and in it
to the smallest number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from reference.space import Space


def spread_size(count: int, k: int, t: float) -> int:
    """The items of a cluster: as many as t asks for, and more where the remainder were more than one for each."""
    size = max(k, math.ceil(count / (2 * (count - 1) * t + 1)))
    if size >= count:
        return count
    return size + (count % size) // (count // size)


def stratified(values: Sequence[int], size: int) -> list[list[int]]:
    """The items of each stratum; of equal values those with smaller numbers come first."""
    order = sorted(range(len(values)), key=lambda i: (values[i], i))
    each, more = divmod(len(values), size)
    found = []
    for stratum in range(size):
        count = each + (more if stratum == size // 2 else 0)
        found.append(sorted(order[:count]))
        order = order[count:]
    return found


def mdav_across(space: Space, values: Sequence[int], size: int) -> list[list[int]]:
    """Return n // size clusters with an item of each of ``size`` strata, of that in the middle one or two."""
    strata = stratified(values, size)
    rank = {i: (s, i) for s, stratum in enumerate(strata) for i in stratum}
    clusters: list[list[int]] = []
    still = space.n // size

    def left() -> list[int]:
        return [i for stratum in strata for i in stratum]

    def farthest(a: list[object]) -> int:
        return min(left(), key=lambda i: (-space.distance(a, space.items[i]), rank[i]))

    def take(seed: int) -> None:
        nonlocal still
        cluster = [seed]
        still -= 1
        for s, stratum in enumerate(strata):
            wanted = 0 if seed in stratum else 1
            others = [i for i in stratum if i != seed]
            if s == size // 2 and len(others) - wanted > still:
                wanted += 1
            cluster += space.nearest(space.items[seed], others, wanted)
        for stratum in strata:
            stratum[:] = [i for i in stratum if i not in cluster]
        clusters.append(cluster)

    while left():
        r = farthest(space.centroid(left()))
        take(r)
        if left():
            take(farthest(space.items[r]))
    return clusters
