"""KACA, slow and obviously right: a random class that is too small is merged where that costs least, until none is.

After J. Li, R. C.-W. Wong, A. W.-C. Fu, J. Pei, Achieving k-anonymity by clustering in attribute hierarchical
structures, 2006.
"""

from __future__ import annotations

import numpy as np
from reference.greedy import merge
from reference.space import Space


def kaca(space: Space, k: int, seed: int) -> list[list[int]]:
    """Return classes of k rows or more in order of their numbers, or all rows as one where there are fewer than k."""
    classes = {i: [i] for i in range(space.n)}
    for u in np.random.default_rng(seed).random(space.n):
        small = [c for c in sorted(classes) if space.rows(classes[c]) < k]
        if not small or len(classes) == 1:
            break
        merge(space, classes, small[int(u * len(small))])
    return [sorted(classes[c]) for c in sorted(classes)]
