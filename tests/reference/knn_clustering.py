"""Clusters about random items, slow and obviously right: a seed and its k - 1 nearest, again and again.

After J.-L. Lin, M.-C. Wei, An efficient clustering method for k-anonymization, 2008. With ``stable_seeds`` all seeds
are drawn first, so that the clusters of k and of k + 1 begin alike.
"""

from __future__ import annotations

import numpy as np
from reference.space import Space


def assign(space: Space, clusters: list[list[int]], left: list[int]) -> list[list[int]]:
    """Add each item that is left over, in order of number, to the cluster that loses least by it."""
    if not clusters:
        return [left] if left else []
    for i in left:
        losses = []
        for number, members in enumerate(clusters):
            size = len(members)
            losses.append(((size + 1) * space.width([*members, i]) - size * space.width(members), number))
        clusters[min(losses)[1]].append(i)
    return clusters


def knn_clustering(space: Space, k: int, seed: int, stable_seeds: bool = False) -> list[list[int]]:
    """Return n // k clusters of k items, and what was left over added to them (or alone, where n < k)."""
    rng = np.random.default_rng(seed)
    count = space.n // k
    left = list(range(space.n))
    clusters: list[list[int]] = []

    if stable_seeds:
        seeds = [int(i) for i in rng.permutation(space.n)[:count]]
        left = [i for i in left if i not in seeds]
        for r in seeds:
            cluster = [r, *space.nearest(space.items[r], left, k - 1)]
            clusters.append(cluster)
            left = [i for i in left if i not in cluster]
    else:
        for u in rng.random(count):
            r = left[int(u * len(left))]
            cluster = [r, *space.nearest(space.items[r], [i for i in left if i != r], k - 1)]
            clusters.append(cluster)
            left = [i for i in left if i not in cluster]
    return assign(space, clusters, left)
