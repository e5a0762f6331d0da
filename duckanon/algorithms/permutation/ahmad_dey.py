"""Ahmad-Dey's dissimilarity: values are as far apart as the distributions of other columns beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from duckanon.algorithms.clustering.mdav import Mdav
from duckanon.algorithms.clustering.spaces import Spaced, free_space
from duckanon.errors import UnsupportedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.algorithms.partition.partition import Items, PartitionAxis

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

MOST_VALUES = 1_000
"""The most values of a categorical column, because every two of them are compared."""


@dataclass(frozen=True)
class Beside:
    """A column as its neighbours see it: how many values or intervals it has, and whether they are intervals.

    ``missing`` is the interval of what has no size; it has no part in the significance of a number.
    """

    name: str
    size: int
    numeric: bool
    missing: int | None = None


@dataclass(frozen=True)
class Apart:
    """The distances between values: the significance of numbers, and a matrix for every categorical column."""

    weights: dict[int, float]
    matrices: dict[int, Floats]


def require_few(columns: Sequence[Beside]) -> None:
    """Raise where a column has more values than can be compared, every two of them."""
    for column in columns:
        if not column.numeric and column.size > MOST_VALUES:
            raise UnsupportedError(
                f"Ahmad-Dey's dissimilarity compares every two values of a column, and {column.name!r} has "
                f"{column.size}: use dissimilarity='gower', or give the column no more than {MOST_VALUES} values."
            )


def apart(columns: Sequence[Beside], counts: dict[tuple[int, int], Floats]) -> Apart:
    """Return the dissimilarities; ``counts[i, j]``, i before j, has how often values stand together.

    Two values a and b of a column are apart, for another column, by P(w | a) + P(not w | b) - 1 with the set w of
    values that makes it largest: by half the sum of the differences of both distributions. The mean over all other
    columns is their distance. The significance of a number is the mean distance of its intervals that occur.
    """
    weights: dict[int, float] = {}
    matrices: dict[int, Floats] = {}
    for i, column in enumerate(columns):
        others = [j for j in range(len(columns)) if j != i]
        beside = [counts[i, j] if i < j else counts[j, i].T for j in others]
        total = np.zeros((column.size, column.size))
        for table in beside:
            total += _differences(table)
        mean = total / len(others) if others else 1.0 - np.eye(column.size)
        if not column.numeric:
            matrices[i] = mean
            continue
        occurs = beside[0].sum(axis=1) > 0 if others else np.ones(column.size, dtype=np.bool_)
        if column.missing is not None:
            occurs = occurs & (np.arange(column.size) != column.missing)
        present = np.flatnonzero(occurs)
        pairs = [mean[a, b] for a, b in combinations(present.tolist(), 2)]
        weights[i] = float(np.mean(pairs)) if pairs else 0.0
    return Apart(weights, matrices)


def _differences(table: Floats) -> Floats:
    """Return half the sum of differences between the distributions of every two rows."""
    rows = table.sum(axis=1, keepdims=True)
    shares = np.divide(table, rows, out=np.zeros_like(table), where=rows > 0)
    sums = np.empty((len(table), len(table)))
    for a in range(len(table)):
        sums[a] = np.abs(shares - shares[a]).sum(axis=1) / 2
    return sums


@dataclass(frozen=True)
class AhmadDeyMdav(Mdav):
    """MDAV by Ahmad-Dey's dissimilarity."""

    name = "mdav"
    dissimilarities: Apart | None = None

    def space_of(self, axes: Sequence[PartitionAxis], items: Items) -> Spaced:
        if self.dissimilarities is None:
            raise UnsupportedError("Ahmad-Dey's dissimilarity needs the counts of a table.")
        distances = self.dissimilarities
        weighted = [
            replace(axis, weight=float(np.sqrt(axis.weight * distances.weights[j]))) if j in distances.weights else axis
            for j, axis in enumerate(axes)
        ]
        return free_space(weighted, items, distances.matrices)
