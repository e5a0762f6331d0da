"""MDAV, slow and obviously right: clusters of k about the items at both ends, farthest from the centroid first.

After J. Domingo-Ferrer, V. Torra, Ordinal, continuous and heterogeneous k-anonymity through microaggregation, 2005
(MDAV-generic). The last cluster has its items in order of number, the others their seed first, then nearest first.
"""

from __future__ import annotations

from reference.space import Space


def mdav(space: Space, k: int) -> list[list[int]]:
    """Return clusters of k to 2k - 1 items, or a single one where there are fewer than 2k."""
    left = list(range(space.n))
    clusters: list[list[int]] = []

    def take(seed: int) -> None:
        others = [i for i in left if i != seed]
        cluster = [seed, *space.nearest(space.items[seed], others, k - 1)]
        clusters.append(cluster)
        left[:] = [i for i in left if i not in cluster]

    while len(left) >= 3 * k:
        r = space.farthest(space.centroid(left), left)
        take(r)
        s = space.farthest(space.items[r], left)
        take(s)
    if len(left) >= 2 * k:
        take(space.farthest(space.centroid(left), left))
    if left:
        clusters.append(left)
    return clusters
