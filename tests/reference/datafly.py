"""Datafly, slow and obviously right: Algorithm 1 of "Information loss metrics versus utility", after Sweeney 1997.

A table is a list of tuples of values, a hierarchy a dict from each value to the list of its labels, level 0 (the value
itself) first. Every step generalizes one column, and counts all rows again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

Row = tuple[Hashable, ...]
Tree = dict[Hashable, list[Hashable]]


@dataclass
class Result:
    """The levels that Datafly chose, the recoded rows (None where suppressed), and the number of classes kept."""

    levels: tuple[int, ...]
    rows: list[Row | None]

    @property
    def published(self) -> Counter[Row]:
        return Counter(r for r in self.rows if r is not None)

    @property
    def suppressed(self) -> int:
        return sum(r is None for r in self.rows)


class Infeasible(Exception):
    """Everything is generalized, and still too many rows are outliers; or nothing would be left."""


def generalize(rows: Sequence[Row], trees: Sequence[Tree], levels: Sequence[int]) -> list[Row]:
    """Return the rows with column j at level ``levels[j]``."""
    return [tuple(tree[v][level] for v, tree, level in zip(row, trees, levels, strict=True)) for row in rows]


def outliers(rows: Sequence[Row], k: int, persons: Sequence[Hashable] | None = None) -> set[Row]:
    """Return the classes with fewer than k members: rows, or distinct persons (all rows without one are one person)."""
    if persons is None:
        return {row for row, n in Counter(rows).items() if n < k}
    members = defaultdict(set)
    for row, person in zip(rows, persons, strict=True):
        members[row].add(person)
    return {row for row, found in members.items() if len(found) < k}


def datafly(
    rows: Sequence[Row],
    trees: Sequence[Tree],
    k: int,
    limit: float = 0.0,
    stop: str = "limit",
    persons: Sequence[Hashable] | None = None,
    broken: Callable[[list[Row]], set[Row]] | None = None,
) -> Result:
    """Generalize the column with most distinct values until few enough rows are outliers, then suppress those.

    ``stop="limit"`` allows a share of the rows, ``stop="k"`` k rows as in the paper. ``broken`` returns further classes
    of a recoded table that may not be published.
    """
    allowed = k if stop == "k" else int(len(rows) * limit + 1e-9)
    levels = [0] * len(trees)
    heights = [len(next(iter(tree.values()))) - 1 for tree in trees]
    while True:
        table = generalize(rows, trees, levels)
        small = outliers(table, k, persons) | (broken(table) if broken is not None else set())
        if sum(row in small for row in table) <= allowed:
            break
        distinct = [len({row[j] for row in table}) for j in range(len(trees))]
        open_columns = [j for j in range(len(trees)) if levels[j] < heights[j]]
        if not open_columns:
            raise Infeasible
        chosen = open_columns[0]
        for j in open_columns:
            if distinct[j] > distinct[chosen]:
                chosen = j
        levels[chosen] += 1
    kept = [None if row in small else row for row in table]
    if all(row is None for row in kept):
        raise Infeasible
    return Result(tuple(levels), kept)
