"""Rounds of merging, slow and obviously right: every class that breaks a rule is merged where that costs least.

In a round those that break it are taken in order of their rows and numbers; one with which another was merged in this
round is left alone until the next. Classes are numbered anew after each round, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reference.greedy import merge
from reference.space import Space


def merge_rounds(
    space: Space, classes: Sequence[Sequence[int]], fine: Callable[[Sequence[int]], bool]
) -> list[list[int]]:
    """Return the classes once all are fine, or only one is left."""
    now = [list(members) for members in classes]
    while len(now) > 1 and not all(fine(members) for members in now):
        failing = sorted((space.rows(members), c) for c, members in enumerate(now) if not fine(members))
        left = dict(enumerate(now))
        grown: set[int] = set()
        for _, c in failing:
            if c in left and c not in grown and len(left) > 1:
                before = {d: len(members) for d, members in left.items()}
                merge(space, left, c)
                grown |= {d for d, members in left.items() if len(members) > before[d]}
        now = [sorted(left[c]) for c in sorted(left)]
    return now
