"""Probabilistic k-anonymity, slow and straight from the definitions.

After N. Senavirathne, V. Torra, Systematic evaluation of probabilistic k-anonymity, 2021, section 4, and A. Ahmad, L.
Dey, A k-mean clustering algorithm for mixed numeric and categorical data, 2007. Rows are lists of values; a column is
numeric or not. Where the first paper prints a set that makes P(w|a) + P(w|b) largest, its own formula needs the set
that makes P(w|a) + P(not w|b) largest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction
from itertools import chain, combinations, permutations, product
from typing import Any

Column = Sequence[Any]


def intervals(values: Column, count: int) -> list[Hashable]:
    """Put numbers into intervals of equal width, unless there are few of them; None is an interval of its own."""
    known = sorted({v for v in values if v is not None})
    if len(known) <= count:
        return list(values)
    low, high = known[0], known[-1]
    return [None if v is None else min(int((v - low) / (high - low) * count), count - 1) for v in values]


def entropy(values: Column) -> float:
    n = len(values)
    return -sum(c / n * math.log2(c / n) for c in Counter(values).values())


def mutual_information(x: Column, y: Column) -> float:
    """H(X) - H(X|Y), equation 3."""
    conditional = 0.0
    for value, count in Counter(y).items():
        conditional += count / len(y) * entropy([a for a, b in zip(x, y, strict=True) if b == value])
    return entropy(x) - conditional


def blocks(information: Sequence[float]) -> list[list[int]]:
    """Columns of high information together, at least two in each block."""
    left = sorted(range(len(information)), key=lambda j: -information[j])
    found = []
    while len(left) >= 4:
        found.append(left[:2])
        left = left[2:]
    return [*found, left]


def value_distance(own: Column, other: Column, a: Hashable, b: Hashable) -> Fraction:
    """The distance of two values with respect to another column: every subset of its values is tried."""
    beside_a = Counter(o for v, o in zip(own, other, strict=True) if v == a)
    beside_b = Counter(o for v, o in zip(own, other, strict=True) if v == b)
    domain = set(other)
    subsets = chain.from_iterable(combinations(domain, size) for size in range(len(domain) + 1))
    best = Fraction(0)
    for subset in subsets:
        inside = Fraction(sum(beside_a[u] for u in subset), beside_a.total())
        outside = Fraction(sum(beside_b[u] for u in domain - set(subset)), beside_b.total())
        best = max(best, inside + outside - 1)
    return best


def category_distance(columns: Sequence[Column], i: int, a: Hashable, b: Hashable) -> Fraction:
    """The mean over all other columns."""
    others = [c for j, c in enumerate(columns) if j != i]
    if not others:
        return Fraction(int(a != b))
    return sum((value_distance(columns[i], other, a, b) for other in others), Fraction(0)) / len(others)


def significance(columns: Sequence[Column], i: int) -> Fraction:
    """The mean distance of the intervals of a number."""
    pairs = list(combinations(sorted({v for v in columns[i] if v is not None}), 2))
    found = [category_distance(columns, i, a, b) for a, b in pairs]
    return sum(found, Fraction(0)) / len(found) if found else Fraction(0)


def gower(a: Sequence[Any], b: Sequence[Any], ranges: Sequence[float | None]) -> float:
    """Equation 1 without missing values: the mean over columns; a column without a range is a category."""
    return sum(
        float(x != y) if wide is None else abs(x - y) / wide for x, y, wide in zip(a, b, ranges, strict=True)
    ) / len(a)


# What somebody learns who knows the rule


def posterior(
    tuples: Sequence[Sequence[Hashable]], observed: Sequence[Sequence[Hashable]], redrawn: Sequence[bool]
) -> list[list[Fraction]]:
    """The probability that row j was person i's, for every i and j.

    ``tuples[b][i]`` is what person i has in block b, ``observed[b][j]`` what row j of the release has. Every order of
    persons is as likely as any other; block b was not let stay if ``redrawn[b]``.
    """
    n = len(tuples[0])
    likely = [[Fraction(0)] * n for _ in range(n)]
    total = Fraction(0)
    for order in permutations(range(n)):
        # Row j is that of person order[j].
        weight = Fraction(1)
        for own, seen, again in zip(tuples, observed, redrawn, strict=True):
            if again and [own[i] for i in order] == list(seen):
                weight = Fraction(0)
        total += weight
        for j, i in enumerate(order):
            likely[i][j] += weight
    return [[p / total for p in row] for row in likely]


def highest_link(tuples: Sequence[Sequence[Hashable]], redrawn: Sequence[bool]) -> Fraction:
    """The largest probability over all releases that can come about."""
    best = Fraction(0)
    arrangements = [sorted(set(permutations(own))) for own in tuples]
    for observed in product(*arrangements):
        n = len(tuples[0])
        possible = any(
            all(
                not again or [own[i] for i in order] != list(seen)
                for own, seen, again in zip(tuples, observed, redrawn, strict=True)
            )
            for order in permutations(range(n))
        )
        if possible:
            best = max(best, *(p for row in posterior(tuples, observed, redrawn) for p in row))
    return best


def chance_to_stay(own: Sequence[Hashable]) -> Fraction:
    """The share of the orders of a group that leave a block as it is."""
    orders = list(permutations(range(len(own))))
    return Fraction(sum([own[i] for i in order] == list(own) for order in orders), len(orders))
