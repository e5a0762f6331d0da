"""Whether the rows of a file stand in an order that chance does not make.

An order that was kept, or made by a sort, tells of every row where it stood among the others. Three figures are looked
at for each column, each with what a random order of the same values gives:

- trend: the rank correlation of the values with the numbers of the rows (Spearman);
- neighbours: the rank correlation of each row's value with that of the next row (Wald and Wolfowitz 1943), which finds
  files that are sorted piece by piece;
- equal neighbours: how many rows have the value of the row before them, which finds rows that were written class by
  class whatever the classes' order.

A column is said to be in order where one of the three is so far from chance that it happens in less than one of a
million random orders. Large files are looked at in pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHANCE = 1e-6
"""How often a random order may be taken for one that is none."""
_SPARSE = 8
"""Numbers that are farther apart than this on average are numbered anew."""
FEWEST = 20
"""Rows below which an order says nothing: chance makes each of them too often."""


@dataclass(frozen=True)
class Order:
    """How far the order of a column is from chance.

    ``trend`` and ``neighbours`` are correlations between -1 and 1, about 0 for a random order; ``equal`` and
    ``expected`` count rows that are equal to the one before them.
    """

    rows: int
    trend: float
    neighbours: float
    equal: int
    expected: float
    found: tuple[str, ...]


def order_of(pieces: Sequence[tuple[int, NDArray[np.int64]]], chance: float = CHANCE) -> Order:
    """Judge the order of a column's values.

    Parameters
    ----------
    pieces : sequence of (int, array)
        Runs of neighbouring rows: the number of the first, and the values as ranks.
    chance : float
        How often a random order may be taken for one that is none.

    Examples
    --------
    >>> import numpy as np
    >>> order_of([(0, np.arange(100))]).found
    ('sorted', 'neighbours')
    >>> order_of([(0, np.repeat([3, 1, 2, 0, 4], 20))]).found
    ('neighbours', 'equal')
    """
    values = np.concatenate([own for _, own in pieces])
    places = np.concatenate([np.arange(first, first + len(own)) for first, own in pieces])
    n = len(values)
    if n < FEWEST:
        return Order(n, 0.0, 0.0, 0, 0.0, ())
    ranks, counts = _ranks(values)
    trend = _correlation(ranks, places.astype(float))
    before, after = _neighbours(pieces, ranks)
    centred = ranks - ranks.mean()
    spread = float(centred @ centred) / n
    pairs = max(len(before), 1)
    neighbours = float((before - ranks.mean()) @ (after - ranks.mean())) / pairs / spread if spread else 0.0
    equal = int((before == after).sum())
    share = float((counts * (counts - 1.0)).sum()) / (n * (n - 1.0))
    expected = pairs * share
    far = NormalDist().inv_cdf(1 - chance / 2)
    found = []
    if abs(trend) * sqrt(n - 1) > far:
        found.append("sorted")
    # Rows that are equal as a whole count once, so that neighbours of one value are rarer than by chance, never more.
    if (neighbours + 1 / n) * sqrt(pairs) > far:
        found.append("neighbours")
    if _poisson_tail(equal, expected) < chance:
        found.append("equal")
    return Order(n, trend, neighbours, equal, expected, tuple(found))


def _ranks(values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return ranks, equal values having the mean of theirs, and how often each value occurs."""
    numbers = values - values.min()
    if int(numbers.max()) > _SPARSE * len(numbers):
        numbers = np.unique(numbers, return_inverse=True)[1]
    counts = np.bincount(numbers)
    ranks = np.cumsum(counts) - (counts - 1) / 2.0
    return ranks[numbers], counts[counts > 0]


def _correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    a, b = a - a.mean(), b - b.mean()
    scale = sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / scale if scale else 0.0


def _neighbours(
    pieces: Sequence[tuple[int, NDArray[np.int64]]], ranks: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    before, after, start = [], [], 0
    for _, own in pieces:
        piece = ranks[start : start + len(own)]
        before.append(piece[:-1])
        after.append(piece[1:])
        start += len(own)
    return np.concatenate(before), np.concatenate(after)


def _poisson_tail(seen: int, expected: float) -> float:
    """Return a bound above the chance of so many or more (Chernoff)."""
    if seen <= expected:
        return 1.0
    if expected <= 0:
        return 0.0
    return exp(min(0.0, seen - expected - seen * log(seen / expected)))
