"""Whether the rows of a file are in an order that is not random.

An order that was preserved, or made by a sort, reveals the position of every row among the others. Three statistics are
compared, for each column, with what a random order of the same values gives:

- trend: the rank correlation of the values with the numbers of the rows (Spearman);
- neighbours: the rank correlation of each row's value with that of the next row (Wald and Wolfowitz 1943), which finds
  files that are sorted in pieces;
- equal neighbours: how many rows have the value of the row before them, which finds rows that were written class by
  class, whatever the order of the classes is.

A column is reported if one of the three is so far from chance that it happens in fewer than one in a million random
orders. Large files are sampled in pieces.
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
"""How often a random order may be reported as not random."""
_SPARSE = 8
"""Numbers that are farther apart than this on average are replaced by dense ranks."""
FEWEST = 20
"""With fewer rows, an order says nothing: each order is too likely by chance."""


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
    signs: tuple[str, ...]


def order_of(pieces: Sequence[tuple[int, NDArray[np.int64]]], chance: float = CHANCE) -> Order:
    """Judge the order of a column's values.

    Parameters
    ----------
    pieces : sequence of (int, array)
        Runs of neighbouring rows: the number of the first, and the values as ranks.
    chance : float
        How often a random order may be reported as not random.

    Examples
    --------
    >>> import numpy as np
    >>> order_of([(0, np.arange(100))]).signs
    ('sorted', 'neighbours')
    >>> order_of([(0, np.repeat([3, 1, 2, 0, 4], 20))]).signs
    ('neighbours', 'equal')
    """
    values = np.concatenate([values_of_piece for _, values_of_piece in pieces])
    places = np.concatenate([np.arange(first, first + len(values_of_piece)) for first, values_of_piece in pieces])
    n = len(values)
    if n < FEWEST:
        return Order(n, 0.0, 0.0, 0, 0.0, ())
    ranks, counts = _ranks(values)
    trend = _correlation(ranks, places.astype(float))
    before, after = _neighbours(pieces, ranks)
    centred = ranks - ranks.mean()
    spread = _dot(centred, centred) / n
    pairs = max(len(before), 1)
    neighbours = _dot(before - ranks.mean(), after - ranks.mean()) / pairs / spread if spread else 0.0
    equal = int((before == after).sum())
    share = float((counts * (counts - 1.0)).sum()) / (n * (n - 1.0))
    expected = pairs * share
    far = NormalDist().inv_cdf(1 - chance / 2)
    signs = []
    if abs(trend) * sqrt(n - 1) > far:
        signs.append("sorted")
    # Rows that are equal as a whole count once, so neighbours of one value can only be rarer than by chance.
    if (neighbours + 1 / n) * sqrt(pairs) > far:
        signs.append("neighbours")
    if _poisson_tail(equal, expected) < chance:
        signs.append("equal")
    return Order(n, trend, neighbours, equal, expected, tuple(signs))


def _ranks(values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return ranks, with the mean rank for equal values, and how often each value occurs."""
    numbers = values - values.min()
    if int(numbers.max()) > _SPARSE * len(numbers):
        numbers = np.unique(numbers, return_inverse=True)[1]
    counts = np.bincount(numbers)
    ranks = np.cumsum(counts) - (counts - 1) / 2.0
    return ranks[numbers], counts[counts > 0]


def _correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    a, b = a - a.mean(), b - b.mean()
    scale = sqrt(_dot(a, a) * _dot(b, b))
    return _dot(a, b) / scale if scale else 0.0


def _dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    # Not by linear algebra, whose threads wait busily for each other: that costs more than so few products.
    return float(np.multiply(a, b).sum())


def _neighbours(
    pieces: Sequence[tuple[int, NDArray[np.int64]]], ranks: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    before, after, start = [], [], 0
    for _, values in pieces:
        piece = ranks[start : start + len(values)]
        before.append(piece[:-1])
        after.append(piece[1:])
        start += len(values)
    return np.concatenate(before), np.concatenate(after)


def _poisson_tail(seen: int, expected: float) -> float:
    """Return a bound above the chance of so many or more (Chernoff)."""
    if seen <= expected:
        return 1.0
    if expected <= 0:
        return 0.0
    return exp(min(0.0, seen - expected - seen * log(seen / expected)))
