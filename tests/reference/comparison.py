"""Indices and comparators of Dewri et al. 2009 as the paper writes them, and property vectors row by row. Slow."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction

Numbers = Sequence[int] | Sequence[float]


def coverage(a: Numbers, b: Numbers) -> Fraction:
    return Fraction(len([i for i in range(len(a)) if a[i] >= b[i]]), len(a))


def count_better(a: Numbers, b: Numbers) -> int:
    return len([i for i in range(len(a)) if a[i] > b[i]])


def spread(a: Numbers, b: Numbers) -> float:
    return sum(max(a[i] - b[i], 0) for i in range(len(a)))


def volume(a: Numbers, b: Numbers) -> float:
    return math.prod(a) - math.prod(min(x, y) for x, y in zip(a, b, strict=True))


def rank(a: Numbers, ideal: Numbers) -> float:
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, ideal, strict=True)))


def weakly(a: Sequence[Numbers], b: Sequence[Numbers]) -> bool:
    return all(x >= y for v, w in zip(a, b, strict=True) for x, y in zip(v, w, strict=True))


def strongly(a: Sequence[Numbers], b: Sequence[Numbers]) -> bool:
    return weakly(a, b) and any(x > y for v, w in zip(a, b, strict=True) for x, y in zip(v, w, strict=True))


def winner(forth: float | Fraction, back: float | Fraction, epsilon: float | Fraction = 0, higher: bool = True) -> str:
    if abs(forth - back) <= epsilon:
        return "equal"
    return "first" if (forth > back) == higher else "second"


def lexicographic(a: Sequence[Numbers], b: Sequence[Numbers], epsilon: Sequence[Fraction]) -> float:
    for i in range(len(a)):
        if coverage(a[i], b[i]) - coverage(b[i], a[i]) > epsilon[i]:
            return i + 1
    return math.inf


def weighted(a: Sequence[Numbers], b: Sequence[Numbers], weights: Sequence[Fraction]) -> Fraction:
    return sum((w * coverage(v, u) for w, v, u in zip(weights, a, b, strict=True)), Fraction(0))


def goal(a: Sequence[Numbers], b: Sequence[Numbers], goals: Sequence[Fraction]) -> Fraction:
    return sum(((coverage(v, u) - g) ** 2 for g, v, u in zip(goals, a, b, strict=True)), Fraction(0))


def gini(values: Numbers) -> float:
    """Half the mean absolute difference of two rows, over the mean."""
    n, total = len(values), sum(values)
    return sum(abs(x - y) for x in values for y in values) / (2 * n * total) if total else 0.0


Labels = tuple[Hashable, ...]


class Rows:
    """Rows with the labels of their cells, and which of them are suppressed.

    ``shares`` has for each row and attribute (leaves under the cell, leaves of the domain, level, height).
    """

    def __init__(
        self,
        labels: Sequence[Labels],
        kept: Sequence[bool],
        shares: Sequence[Sequence[tuple[int, int, int, int]]],
        sensitive: Sequence[Hashable],
    ) -> None:
        self.labels, self.kept, self.shares, self.sensitive = labels, kept, shares, sensitive
        self.n = len(labels)

    def mates(self, i: int) -> list[int]:
        """The rows that lie in the same class; the suppressed ones are a class."""
        if not self.kept[i]:
            return [j for j in range(self.n) if not self.kept[j]]
        return [j for j in range(self.n) if self.kept[j] and self.labels[j] == self.labels[i]]

    def vectors(self) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {name: [] for name in PROPERTIES}
        for i in range(self.n):
            mates, kept, cells = self.mates(i), self.kept[i], self.shares[i]
            same = len([j for j in mates if self.sensitive[j] == self.sensitive[i]])
            width = len(cells)
            loss = sum((m > 1) * ((c - 1) / (m - 1 or 1) if kept else 1) for c, m, _, _ in cells) / width
            values = {
                "class_size": len(mates),
                "reidentification_risk": 1 / len(mates) if kept else 0,
                "discernibility": len(mates) if kept else self.n,
                "iyengar_utility": width - sum(c / m for c, m, _, _ in cells) if kept else 0,
                "loss": loss,
                "precision": 1 - sum(level / height for _, _, level, height in cells) / width if kept else 0,
                "ncp": sum((c > 1) * c / m if kept else m > 1 for c, m, _, _ in cells) / width,
                "ambiguity": math.prod(c if kept else m for c, m, _, _ in cells),
                "granularity": sum(((c if kept else m) - 1) / m for c, m, _, _ in cells),
                "sensitive_count": same,
                "sensitive_share": same / len(mates) if kept else 0,
            }
            for name, value in values.items():
                found[name].append(value)
        return found


PROPERTIES = (
    "class_size",
    "reidentification_risk",
    "discernibility",
    "iyengar_utility",
    "loss",
    "precision",
    "ncp",
    "ambiguity",
    "granularity",
    "sensitive_count",
    "sensitive_share",
)


def weighted_volumes(a: Sequence[Numbers], b: Sequence[Numbers], weights: Sequence[Fraction]) -> Fraction:
    return sum((w * int(volume(v, u)) for w, v, u in zip(weights, a, b, strict=True)), Fraction(0))


def goal_of_volumes(a: Sequence[Numbers], b: Sequence[Numbers], goals: Sequence[Fraction]) -> Fraction:
    return sum(((int(volume(v, u)) - g) ** 2 for g, v, u in zip(goals, a, b, strict=True)), Fraction(0))


def first_larger_volume(a: Sequence[Numbers], b: Sequence[Numbers], epsilon: Sequence[Fraction]) -> float:
    for i in range(len(a)):
        if volume(a[i], b[i]) - volume(b[i], a[i]) > epsilon[i]:
            return i + 1
    return math.inf
