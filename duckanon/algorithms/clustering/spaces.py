"""Axes as a space with distances, for algorithms that put rows near each other into one class."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.algorithms.partition.partition import Items, PartitionAxis
    from duckanon.kernels.space import Space

    Integers = NDArray[np.int64]
    Floats = NDArray[np.float64]

MEASURES = ("ncp", "nllm", "distortion", "gower", "standardised")
"""How far values are apart.

All but the last take a number's distance as a share of the range of its column, the last as standard deviations, which
are squared and added. Categories are apart by the lowest node over both: by its share of the leaves, by that beyond
one leaf, by its level, or, with "gower", by 1 if they differ at all. Numbers of which nodes of a hierarchy are
published are apart as categories are, with "gower" and "standardised" by the share of the leaves.
"""
_GRAIN = 2.0**26
"""Numbers and widths are multiples of one part of this: sums are exact then, in whatever order they are made."""
FEW_COLUMNS = 4
"""Up to so many columns a tree of boxes is faster than measuring all rows."""
_MOST_PAIRS = 2**18
"""The most pairs of places of a tree whose distances are stored in a table."""


@dataclass(frozen=True)
class Spaced:
    """A space, and the coordinates of every place: ``points`` takes the places of rows to their coordinates."""

    space: Space
    columns: tuple[int, ...]
    coordinates: tuple[Floats, ...]

    def points(self, places: NDArray[Any]) -> Floats:
        """Return the coordinates of rows."""
        rows = np.empty((len(places), len(self.columns)))
        for at, (j, coordinate) in enumerate(zip(self.columns, self.coordinates, strict=True)):
            np.take(coordinate, places[:, j], out=rows[:, at])
        return rows


def _rounded(values: Any) -> Floats:
    return np.rint(np.asarray(values, dtype=np.float64) * _GRAIN) / _GRAIN


def spaced(axes: Sequence[PartitionAxis], items: Items, measure: str) -> Spaced:
    """Return the space of axes; ``items`` say how often numbers occur, for their standard deviations."""
    from duckanon.kernels.bundle import bundled
    from duckanon.kernels.space import Space

    lines = [j for j, axis in enumerate(axes) if axis.atoms is not None]
    trees = [j for j, axis in enumerate(axes) if axis.atoms is None]
    columns = (*lines, *trees)
    coordinates, caps, missing = [], np.zeros(len(columns)), np.full(len(columns), np.inf)
    for at, j in enumerate(lines):
        own, caps[at], missing[at] = _line(axes[j], items, j, measure)
        coordinates.append(own)
    table = np.zeros((4, len(columns)), dtype=np.int64)
    nodes: list[NDArray[Any]] = []
    widths: list[Floats] = []
    pairs: list[Floats] = []
    start = pair = 0
    for at, j in enumerate(trees, len(lines)):
        axis = axes[j]
        coordinates.append(np.arange(axis.size, dtype=np.float64))
        above = [np.asarray(own) for own in axis.nodes[1:]] or [np.zeros(axis.size, dtype=np.int64)]
        wide = [_rounded(axis.weight * w[n]) for w, n in zip(_widths(axis, measure), above, strict=True)]
        many = axis.size**2 > _MOST_PAIRS
        table[:, at] = start, axis.size, len(above) + 1, -1 if many else pair
        nodes += above
        widths += wide
        start += axis.size * len(above)
        if not many:
            pairs.append(_pairs(axis.size, above, wide).ravel())
            pair += axis.size**2
    space = bundled(
        Space(
            len(lines),
            table,
            np.concatenate([*nodes, [0]]).astype(np.int32),
            np.concatenate([*widths, [0.0]]),
            np.concatenate([*pairs, [0.0]]),
            caps,
            missing,
            measure == "standardised",
        )
    )
    return Spaced(space, columns, tuple(coordinates))


def _line(axis: PartitionAxis, items: Items, j: int, measure: str) -> tuple[Floats, float, float]:
    """Return the coordinate of every place of a line, the largest distance, and where NULL is (infinite: nowhere)."""
    count = axis.size - axis.null
    numbers = np.asarray(axis.numbers[:count], dtype=np.float64)
    scale = axis.weight
    if count:
        with np.errstate(over="ignore"):
            numbers = numbers - numbers[0]
        if not np.isfinite(numbers[-1]):
            numbers = np.arange(count, dtype=np.float64)
        # Shares of the range: no square of them is too large or too small to be a number.
        numbers = numbers / numbers[-1] if numbers[-1] > 0 else np.zeros(count)
        if measure == "standardised":
            often = np.bincount(items.places[:, j], weights=items.counts, minlength=axis.size)[:count]
            rows = max(often.sum(), 1.0)
            numbers = numbers - (often * numbers).sum() / rows
            deviation = np.sqrt((often * numbers**2).sum() / rows)
            scale = axis.weight / deviation if deviation > 0 else 0.0
    coordinates = np.zeros(axis.size)
    coordinates[:count] = _rounded(numbers * scale)
    cap = float(coordinates[count - 1] - coordinates[0]) if count else 0.0
    cap = cap if cap > 0 else float(_rounded(axis.weight))
    if not axis.null:
        return coordinates, cap, np.inf
    coordinates[count] = (coordinates[count - 1] if count else 0.0) + cap
    return coordinates, cap, float(coordinates[count])


def _widths(axis: PartitionAxis, measure: str) -> list[Floats]:
    """Return the width of every node, level by level, from the first above the values."""
    if len(axis.nodes) < 2:
        return [np.ones(1)]
    height = len(axis.nodes) - 1
    total = float(axis.leaves[-1].max(initial=1))
    widths = []
    for level in range(1, height + 1):
        leaves = np.asarray(axis.leaves[level], dtype=np.float64)
        by: dict[str, Callable[[], Floats]] = {
            "ncp": lambda leaves=leaves: np.where(leaves > 1, leaves / total, 0.0),  # type: ignore[misc]
            "nllm": lambda leaves=leaves: (leaves - 1) / max(total - 1, 1.0),  # type: ignore[misc]
            "distortion": lambda leaves=leaves, level=level: np.full(len(leaves), level / height),  # type: ignore[misc]
        }
        usual = "ncp" if axis.measured else measure
        widths.append(by[measure]() if measure in by else by[usual]() if usual in by else np.ones(len(leaves)))
    return widths


def _pairs(size: int, nodes: Sequence[NDArray[Any]], widths: Sequence[Floats]) -> Floats:
    distances = np.empty((size, size))
    for level, wide in zip(reversed(nodes), reversed(widths), strict=True):
        same = level[:, None] == level[None, :]
        distances[same] = np.broadcast_to(wide[:, None], (size, size))[same]
    np.fill_diagonal(distances, 0.0)
    return distances


def free_space(axes: Sequence[PartitionAxis], items: Items, matrices: Mapping[int, Floats]) -> Spaced:
    """Return the space of lines by squares, and of columns whose places are apart by a matrix of their own.

    The square of a distance is the sum of squared differences on lines, shares of the range times the weight, and of
    the entries of matrices times the weight. Places of a matrix are put in a row, each beside the one that is nearest
    to it of those left, so that boxes of neighbours are small.
    """
    from duckanon.kernels.bundle import bundled
    from duckanon.kernels.space import Space

    lines = [j for j in range(len(axes)) if j not in matrices]
    columns = (*lines, *matrices)
    coordinates, caps, missing = [], np.zeros(len(columns)), np.full(len(columns), np.inf)
    for at, j in enumerate(lines):
        own, caps[at], missing[at] = _line(axes[j], items, j, "gower")
        coordinates.append(own)
    table = np.zeros((4, len(columns)), dtype=np.int64)
    pairs: list[Floats] = []
    pair = 0
    for at, (j, matrix) in enumerate(matrices.items(), len(lines)):
        chain = _chained(matrix)
        ranks = np.empty(len(chain))
        ranks[chain] = np.arange(len(chain))
        coordinates.append(ranks)
        table[:, at] = 0, len(chain), 0, pair
        pairs.append(_rounded(np.sqrt(axes[j].weight * matrix[np.ix_(chain, chain)])).ravel())
        pair += len(chain) ** 2
    every = np.concatenate([*pairs, [0.0]])
    space = bundled(Space(len(lines), table, np.zeros(1, dtype=np.int32), np.zeros(1), every, caps, missing, True))
    return Spaced(space, columns, tuple(coordinates))


def _chained(matrix: Floats) -> Integers:
    """Return places one beside the other, from the first on: next is the nearest that is left."""
    left = np.ones(len(matrix), dtype=np.bool_)
    chain = [0]
    left[0] = False
    while left.any():
        chain.append(int(np.argmin(np.where(left, matrix[chain[-1]], np.inf))))
        left[chain[-1]] = False
    return np.array(chain, dtype=np.int64)


def on_lines(numbers: Floats, missing: NDArray[np.bool_], standardised: bool) -> tuple[Space, Floats]:
    """Return the space of rows of numbers from 0 to 1, some of them missing, and their coordinates."""
    from duckanon.kernels.bundle import bundled
    from duckanon.kernels.space import Space

    width = numbers.shape[1]
    points, caps, absent = np.empty(numbers.shape), np.empty(width), np.full(width, np.inf)
    for j in range(width):
        there = ~missing[:, j]
        centred = numbers[:, j] - (numbers[there, j].mean() if standardised and there.any() else 0.0)
        deviation = centred[there].std() if standardised and there.any() else 1.0
        points[:, j] = _rounded(centred / deviation if deviation > 0 else np.zeros(len(centred)))
        present = points[there, j]
        caps[j] = np.ptp(present) if len(present) and np.ptp(present) > 0 else 1.0
        if not there.all():
            absent[j] = present.max(initial=0.0) + caps[j]
            points[~there, j] = absent[j]
    nothing = np.zeros(1)
    table, nodes = np.zeros((4, width), dtype=np.int64), np.zeros(1, dtype=np.int32)
    return bundled(Space(width, table, nodes, nothing, nothing, caps, absent, standardised)), points
