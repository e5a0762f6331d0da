"""What minimality tells, by looking at every world of the whole table.

After R. Wong, A. Fu, K. Wang, J. Pei, Minimality attack in privacy preserving data publishing, 2007.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import permutations, product

Holds = Callable[[Sequence[int]], bool]
Class = tuple[Sequence[int], Sequence[Sequence[int]]]
"""The sensitive values of a class; for each of its people the part in which each division would put them."""


def orders(values: Sequence[int]) -> list[tuple[int, ...]]:
    return sorted(set(permutations(values)))


def breaks(world: Sequence[int], parts: Sequence[Sequence[int]], division: int, holds: Holds) -> bool:
    groups = {own[division] for own in parts}
    members = [[v for v, own in zip(world, parts, strict=True) if own[division] == g] for g in groups]
    return any(not holds(m) for m in members)


def chances(classes: Sequence[Class], holds: Holds, everywhere: bool) -> list[list[dict[int, Fraction]]]:
    """Return for each person of each class the probability of each value.

    With ``everywhere`` each division must have been refused in each class; else each in some class.
    """
    divisions = len(classes[0][1][0])
    left = []
    for world in product(*(orders(values) for values, _ in classes)):
        broken = [
            [breaks(own, parts, d, holds) for d in range(divisions)]
            for own, (_, parts) in zip(world, classes, strict=True)
        ]
        several = (
            all(all(b) for b in broken) if everywhere else all(any(b[d] for b in broken) for d in range(divisions))
        )
        if several:
            left.append(world)
    found = []
    for c, (values, _) in enumerate(classes):
        people = []
        for i in range(len(values)):
            counts = {v: sum(1 for world in left if world[c][i] == v) for v in sorted(set(values))}
            people.append({v: Fraction(n, len(left)) for v, n in counts.items()} if left else {})
        found.append(people)
    return found
