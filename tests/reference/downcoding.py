"""Downcoding, by its definition: each predicate is tried on each person.

After A. Cohen, Attacks on deidentification's defenses, 2022: a predicate singles out if it holds for exactly one row.
"""

from __future__ import annotations

from collections.abc import Sequence

Cell = frozenset[int]


def tried(
    people: Sequence[tuple[int, ...]], classes: Sequence[tuple[Cell, ...]], bounds: Sequence[Sequence[Sequence[int]]]
) -> tuple[int, int, float, int]:
    """Return predicates with a bound, those that hold for one person, how many would by chance, and tuples that do.

    ``classes`` are published tuples, each cell the values that it can stand for; ``bounds`` the values that each of
    their cells tells by itself.
    """
    count = hits = alone = 0
    chance = 0.0

    def holding(cells: Sequence[Cell], j: int | None = None, value: int = 0) -> int:
        inside = [row for row in people if all(v in cell for v, cell in zip(row, cells, strict=True))]
        return sum(1 for row in inside if j is None or row[j] == value)

    for cells, told in zip(classes, bounds, strict=True):
        alone += holding(cells) == 1
        for j, cell in enumerate(cells):
            others = [v for v in {row[j] for row in people} if v in cell]
            for value in told[j]:
                count += 1
                hits += holding(cells, j, value) == 1
                chance += sum(holding(cells, j, v) == 1 for v in others) / max(len(others), 1)
    return count, hits, chance, alone
