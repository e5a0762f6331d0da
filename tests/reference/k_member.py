"""k-member, slow and obviously right: a cluster grows by the item that widens it least, and the next begins far away.

After J.-W. Byun, A. Kamra, E. Bertino, N. Li, Efficient k-anonymization using clustering techniques, 2007.
"""

from __future__ import annotations

import numpy as np
from reference.knn_clustering import assign
from reference.space import Space


def k_member(space: Space, k: int, seed: int) -> list[list[int]]:
    """Return n // k clusters of k items, and what was left over added to them (or alone, where n < k)."""
    left = list(range(space.n))
    clusters: list[list[int]] = []
    r = int(np.random.default_rng(seed).random() * space.n)
    while len(left) >= k:
        r = space.farthest(space.items[r], left)
        cluster = [r]
        left.remove(r)
        while len(cluster) < k:
            x = min(left, key=lambda i: (space.width([*cluster, i]), i))
            cluster.append(x)
            left.remove(x)
        clusters.append(cluster)
    return assign(space, clusters, left)
