"""Top-down greedy division, slow and obviously right: items go to the nearer of two far apart, again and again.

After J. Xu et al., Utility-based anonymization using local recoding, 2006. Where the search for the two begins is drawn
for every group by itself: a hash of the seed, k and the path of halves that leads to the group; or, with
``stable_seeds``, one order of all items decides, whatever k is.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np
from reference.space import Space

WORD, PATHS = 2**64, 2**62
ROUNDS = 6
SHARE = 16


def drawn(seed: int, path: int, count: int) -> int:
    """A number below ``count``, by the finish of splitmix64."""
    z = (seed + path * 0x9E3779B97F4A7C15) % WORD
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return (z ^ (z >> 31)) % count


def far_apart(space: Space, group: list[int], start: int) -> tuple[int, int] | None:
    """Two items that are far apart, or None where all are equal: the farthest, the farthest from that, and so on."""
    first, second = start, space.farthest(space.items[start], group)
    best = space.distance(space.items[first], space.items[second])
    if best == 0:
        return None
    for _ in range(ROUNDS - 1):
        third = space.farthest(space.items[second], group)
        farther = space.distance(space.items[second], space.items[third])
        if farther <= best:
            break
        first, second, best = second, third, farther
    return first, second


def lent(space: Space, small: list[int], large: list[int], k: int) -> list[int] | None:
    """What the larger side lends, so that the smaller has k rows: those that widen it least; None if it cannot."""
    given: list[int] = []
    for i in sorted(large, key=lambda i: (space.width([*small, i]), i)):
        if space.rows(small) + space.rows(given) >= k:
            break
        if space.rows(large) - space.rows(given) - space.weights[i] >= k:
            given.append(i)
    return given if space.rows(small) + space.rows(given) >= k else None


def between(space: Space, sides: list[list[int]], ties: list[int]) -> None:
    """Give items as near to one side as to the other to that which loses less by it, as the sides are before.

    Where that would leave a side less than a sixteenth of all rows, and where both lose the same, items go to the side
    of fewer rows, one after the other; equal ones that follow each other stay together.
    """
    first, second = ([*side] for side in sides)
    losses = {i: loss(space, first, i) - loss(space, second, i) for i in ties}
    gains = [[i for i in ties if losses[i] < 0], [i for i in ties if losses[i] > 0]]
    total = space.rows(first) + space.rows(second) + space.rows(ties)
    most = max(space.rows([*side, *gained]) for side, gained in zip(sides, gains, strict=True))
    if SHARE * (total - most) >= total:
        for side, gained in zip(sides, gains, strict=True):
            side += gained
        ties = [i for i in ties if losses[i] == 0]
    for _, run in groupby(ties, key=lambda i: space.items[i]):
        sides[space.rows(sides[1]) < space.rows(sides[0])].extend(run)


def loss(space: Space, side: list[int], i: int) -> float:
    """What all rows of a side lose when an item comes to it, and what that loses there."""
    return (space.rows(side) + space.weights[i]) * space.width([*side, i]) - space.rows(side) * space.width(side)


def halves(space: Space, group: list[int], start: int, k: int) -> tuple[list[int], list[int]] | None:
    ends = far_apart(space, group, start)
    if ends is None:
        return None
    first, second = (space.items[i] for i in ends)
    nearer = {i: space.distance(first, space.items[i]) - space.distance(second, space.items[i]) for i in group}
    sides: list[list[int]] = [[i for i in group if nearer[i] < 0], [i for i in group if nearer[i] > 0]]
    between(space, sides, [i for i in group if nearer[i] == 0])
    sides = [sorted(side) for side in sides]
    small = 1 if space.rows(sides[1]) < space.rows(sides[0]) else 0
    if space.rows(sides[small]) < k:
        given = lent(space, sides[small], sides[1 - small], k)
        if given is None:
            return None
        sides[small] = sorted([*sides[small], *given])
        sides[1 - small] = [i for i in sides[1 - small] if i not in given]
    return sides[0], sides[1]


def tdg(space: Space, k: int, seed: int, stable_seeds: bool = False) -> list[list[int]]:
    """Return classes of k rows or more, or all rows as one where there are fewer than 2k."""
    order = [int(i) for i in np.random.default_rng(seed).permutation(space.n)]
    ranks = {item: rank for rank, item in enumerate(order)}
    own = (seed * 0x9E3779B97F4A7C15 + (0 if stable_seeds else k) * 0xD1B54A32D192ED03) % 2**63
    classes: list[list[int]] = []
    waiting = [(list(range(space.n)), 1)]
    while waiting:
        group, path = waiting.pop()
        two = None
        if space.rows(group) >= 2 * k and len(group) > 1:
            start = min(group, key=lambda i: ranks[i]) if stable_seeds else group[drawn(own, path, len(group))]
            two = halves(space, group, start, k)
        if two is None:
            classes.append(group)
        else:
            waiting += [(half, (2 * path + side) % PATHS) for side, half in enumerate(two)]
    return classes
