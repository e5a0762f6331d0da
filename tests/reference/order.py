"""How far the order of a column is from chance, by the definitions: over all orders of the values."""

from __future__ import annotations

from itertools import pairwise, permutations
from math import sqrt


def mid_ranks(values: list[int]) -> list[float]:
    """Return the mean of the places that a value has among all, sorted."""
    return [sum(v < w for v in values) + (sum(v == w for v in values) + 1) / 2 for w in values]


def correlation(a: list[float], b: list[float]) -> float:
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    above = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True))
    below = sqrt(sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b))
    return above / below if below else 0.0


def trend(values: list[int]) -> float:
    """Spearman's rank correlation with the numbers of the rows."""
    return correlation(mid_ranks(values), [float(i) for i in range(len(values))])


def equal_neighbours(values: list[int]) -> int:
    return sum(a == b for a, b in pairwise(values))


def expected_equal(values: list[int]) -> float:
    """The mean over all orders."""
    orders = list(permutations(values))
    return sum(equal_neighbours(list(order)) for order in orders) / len(orders)
