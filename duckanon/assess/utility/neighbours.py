"""k nearest neighbours of released rows, of which hundreds are equally near: all of them vote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_NEAR = 1e-9
"""Distances that differ by a smaller share are the same: what encodings computed differs by rounding."""
_SEARCH = 1e-6
"""What a search over many points may be wrong by; the distances of those that it finds are computed again."""


class NearestNeighbours(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The classes of the k nearest rows; the votes that are left for the k-th distance are shared by all rows there.

    Rows of a release are alike in hundreds. Taking k of them takes those that happen to come first, which a release
    sorts by their class. Here the rows nearer than the k-th distance have a vote each, and all rows at that distance,
    however many, have the same part of the votes that remain, so that the order of rows plays no part.

    Parameters
    ----------
    n_neighbors : int
        How many votes there are.

    Notes
    -----
    The distance is the Euclidean one. Classes with as many votes as each other are taken in their order.

    Examples
    --------
    >>> cells, classes = [[0.0]] * 9 + [[1.0]], [0, 0, 0, 1, 1, 1, 1, 1, 1, 0]
    >>> near = NearestNeighbours(3).fit(cells, classes)
    >>> near.predict_proba([[0.0]]).round(3).tolist(), near.predict([[0.0]]).tolist()
    ([[0.333, 0.667]], [1])
    """

    def __init__(self, n_neighbors: int = 10) -> None:
        self.n_neighbors = n_neighbors

    def fit(self, X: Any, y: Any) -> NearestNeighbours:  # noqa: N803 - the names that scikit-learn gives them
        """Keep the rows that differ, and how many rows of each class each of them is."""
        from sklearn.neighbors import NearestNeighbors

        cells = np.asarray(X, dtype=np.float64)
        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        self.points_, at = np.unique(cells, axis=0, return_inverse=True)
        at = at.reshape(-1)
        width = len(self.classes_)
        counts = np.bincount(at * width + codes.reshape(-1), minlength=len(self.points_) * width)
        self.counts_ = counts.reshape(len(self.points_), width).astype(np.float64)
        self.votes_ = float(min(self.n_neighbors, len(cells)))
        self.n_features_in_ = cells.shape[1]
        self._search = NearestNeighbors().fit(self.points_)
        return self

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Return the share of the votes that each class has."""
        cells, back = np.unique(np.asarray(X, dtype=np.float64), axis=0, return_inverse=True)
        shares = np.zeros((len(cells), len(self.classes_)))
        left = np.arange(len(cells))
        # As many points as there are votes hold the k-th distance; further ones may be as near.
        asked = min(int(self.votes_) + 1, len(self.points_))
        while len(left):
            step = max(1, 20_000_000 // (asked * max(1, self.n_features_in_)))
            more = [self._vote(cells, left[i : i + step], asked, shares) for i in range(0, len(left), step)]
            left, asked = np.concatenate(more), min(4 * asked, len(self.points_))
        return shares[back.reshape(-1)]

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the class with the most votes; of several the first."""
        # Rounded, so that equal votes stay equal however they were added up.
        predicted: NDArray[Any] = self.classes_[np.argmax(np.round(self.predict_proba(X), 9), axis=1)]
        return predicted

    def _vote(self, cells: Floats, rows: NDArray[np.int64], asked: int, shares: Floats) -> NDArray[np.int64]:
        """Fill in the shares of rows, and return those that need more neighbours."""
        searched, places = self._search.kneighbors(cells[rows], asked)
        distances = np.sqrt(((cells[rows][:, None, :] - self.points_[places]) ** 2).sum(axis=2))
        order = np.argsort(distances, axis=1, kind="stable")
        distances = np.take_along_axis(distances, order, axis=1)
        counts = self.counts_[np.take_along_axis(places, order, axis=1)]
        reached = np.cumsum(counts.sum(axis=2), axis=1)
        last = np.argmax(reached >= self.votes_, axis=1)
        limit = distances[np.arange(len(rows)), last][:, None]
        near = _NEAR * (1 + limit)
        inside, at = distances < limit - near, np.abs(distances - limit) <= near
        nearer = (counts * inside[:, :, None]).sum(axis=1)
        tied = (counts * at[:, :, None]).sum(axis=1)
        rest = self.votes_ - nearer.sum(axis=1, keepdims=True)
        shares[rows] = (nearer + tied * rest / tied.sum(axis=1, keepdims=True)) / self.votes_
        if asked == len(self.points_):
            return rows[:0]
        size = np.abs(cells[rows]).max(axis=1, initial=0.0)
        more: NDArray[np.bool_] = searched[:, -1] <= limit[:, 0] + _SEARCH * (1 + limit[:, 0] + size)
        return rows[more]


__all__ = ["NearestNeighbours"]
