"""V-MDAV, slow and obviously right: as MDAV, but a group takes in items that are nearer to it than to all others.

After A. Solanas, A. Martinez-Balleste, V-MDAV: a multivariate microaggregation with variable group size, 2006.
"""

from __future__ import annotations

import math

from reference.space import Space


def v_mdav(space: Space, k: int, gamma: float) -> list[list[int]]:
    """Return groups of k to 2k - 1 items, and what was left over added to them (or alone, where there is no group)."""
    items, distance = space.items, space.distance
    left = list(range(space.n))
    groups: list[list[int]] = []
    centre = space.centroid(left)

    def length(d: float) -> float:
        return math.sqrt(d) if space.norm == "squares" else d

    while len(left) >= k:
        seed = space.farthest(centre, left)
        group = [seed, *space.nearest(items[seed], [i for i in left if i != seed], k - 1)]
        left = [i for i in left if i not in group]
        while len(group) < 2 * k - 1 and left:
            d_in, u = min((min(distance(items[i], items[m]) for m in group), i) for i in left)
            d_out = min((distance(items[u], items[i]) for i in left if i != u), default=math.inf)
            if not length(d_in) < gamma * length(d_out):
                break
            group.append(u)
            left.remove(u)
        groups.append(group)

    if not groups:
        return [left] if left else []
    centres = [space.centroid(group) for group in groups]
    for i in left:
        groups[min(range(len(groups)), key=lambda g: (distance(items[i], centres[g]), g))].append(i)
    return groups
