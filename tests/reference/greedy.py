"""Greedy k-anonymization, slow and obviously right: the smallest class is merged where that costs least, until none is.

After C. Mauger, G. Le Mahec, G. Dequen, Multi-criteria optimization using l-diversity and t-closeness for
k-anonymization, 2020. Every item (a distinct tuple with its rows) begins as a class with the number of the item.
"""

from __future__ import annotations

from reference.space import Space


def merge(space: Space, classes: dict[int, list[int]], c: int) -> None:
    """Merge class c into the other class where that costs least; this one keeps its number."""
    d = min((d for d in classes if d != c), key=lambda d: (space.cost(classes[c], classes[d]), d))
    classes[d] = classes[d] + classes.pop(c)


def greedy(space: Space, k: int) -> list[list[int]]:
    """Return classes of k rows or more in order of their numbers, or all rows as one where there are fewer than k."""
    classes = {i: [i] for i in range(space.n)}
    while len(classes) > 1:
        small = [(space.rows(members), c) for c, members in classes.items() if space.rows(members) < k]
        if not small:
            break
        merge(space, classes, min(small)[1])
    return [sorted(classes[c]) for c in sorted(classes)]
