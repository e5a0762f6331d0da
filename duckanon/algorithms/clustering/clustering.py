"""What clustering algorithms have in common: rows that are near each other make one class."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.algorithms.clustering.spaces import FEW_COLUMNS, Spaced, spaced
from duckanon.algorithms.partition.partition import Items, PartitionAxis, Partitioner, Parts, Rules, judge
from duckanon.engine.process import cores
from duckanon.errors import ParameterError
from duckanon.models.base import require_int

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.algorithms.clustering.clusters import Advance, Cloud

    Integers = NDArray[np.int64]


class Clustering(Partitioner):
    """An algorithm that puts rows near each other into one class.

    Classes that then violate a model are merged, each with the class that widens least, until all satisfy every model.
    """

    block: int | None = None
    """The most rows that are clustered together; None for as many as take a reasonable time."""

    def __post_init__(self) -> None:
        """Check the parameters that many algorithms have."""
        if self.block is not None:
            require_int(self.name, "block", self.block, 1)
        if hasattr(self, "seed"):
            require_int(self.name, "seed", self.seed, 0)
        if not isinstance(getattr(self, "stable_seeds", False), bool):
            raise ParameterError(f"The 'stable_seeds' parameter of {self.name} must be true or false.")

    @property
    def cuts(self) -> bool:
        return False

    def bytes_of_item(self, width: int, size: int) -> int:
        # Codes and places, coordinates three times, boxes of leaves, and the state of each row.
        return width * (2 * size + 40) + 150

    def measure_of(self, axes: Sequence[PartitionAxis]) -> str:
        """Return how distances are measured, one of ``spaces.MEASURES``."""
        return "ncp"

    def space_of(self, axes: Sequence[PartitionAxis], items: Items) -> Spaced:
        """Return the space in which rows are near each other or far."""
        return spaced(axes, items, self.measure_of(axes))

    @abstractmethod
    def cluster(self, cloud: Cloud, least: int, threads: int | None, advance: Advance) -> Integers:
        """Return the number of its cluster for every row; clusters have at least so many rows."""

    def together(self, columns: int) -> int:
        """Return the default of ``block``: the most rows that are clustered together."""
        return 2_000_000 if columns <= FEW_COLUMNS else 200_000

    def divide(
        self,
        axes: Sequence[PartitionAxis],
        items: Items,
        rules: Rules,
        *,
        starts: Integers,
        regions: NDArray[np.int32] | None = None,
        threads: int | None = None,
        advance: Callable[[int], None] | None = None,
    ) -> Parts:
        space = self.space_of(axes, items)
        placed = 0

        def further(more: int) -> None:
            nonlocal placed
            placed += more
            if advance is not None:
                advance(min(placed, len(items.places)))

        runs: list[Parts] = []
        blocks = 0
        for start, end in pairwise(starts.tolist()):
            run = Run.of(space, items, rules, start, end, self.by_rows)
            labels, several = self._clustered(run, rules, threads, further)
            blocks += several
            runs.append(run.merged(labels))
        return _joined(axes, items, rules, runs, {"blocks": blocks} if blocks > len(runs) else {})

    def _clustered(self, run: Run, rules: Rules, threads: int | None, advance: Advance) -> tuple[Integers, int]:
        cloud, least = run.cloud, rules.least
        if int(cloud.counts.sum()) < 2 * least:
            return np.zeros(len(cloud.points), dtype=np.int64), 1
        usual = max(self.together(cloud.points.shape[1]), 4 * least)
        size = max(self.block, 4 * least) if self.block is not None else usual
        if len(cloud.points) <= size:
            return self.run(run, rules, threads, advance), 1
        if self.block is None:
            # Smaller blocks: all of them together then take no longer than the largest table that is not divided.
            size = max(usual // 10, 4 * least)

        def cluster(part: Cloud) -> Integers:
            # Progress is reported after each block, by one thread.
            return self.cluster(part, least, 1, lambda rows: None)

        return in_blocks(cloud, size, threads, cluster, advance)

    def run(self, run: Run, rules: Rules, threads: int | None, advance: Advance) -> Integers:
        """Return the clusters of a run of rows; by default those of its cloud."""
        return self.cluster(run.cloud, rules.least, threads, advance)


class Run:
    """Rows that are clustered together, in an order of their own: that of their values.

    ``order`` has the items in that order, ``owner`` the point of the cloud that each of them is.
    """

    def __init__(self, cloud: Cloud, items: Items, rules: Rules, order: Integers, owner: Integers) -> None:
        self.cloud, self.items, self.rules, self.order, self.owner = cloud, items, rules, order, owner

    @classmethod
    def of(cls, space: Spaced, items: Items, rules: Rules, start: int, end: int, by_rows: bool) -> Run:
        """Return the rows from ``start`` to before ``end``; equal ones are one point unless ``by_rows``."""
        from duckanon.algorithms.clustering.clusters import Cloud

        points = space.points(items.places[start:end])
        keys = [points[:, j] for j in reversed(range(points.shape[1]))]
        order = np.lexsort([*([items.ties[start:end]] if items.ties is not None else []), *keys])
        points = points[order]
        changes = np.ones(len(points), dtype=np.bool_)
        if not by_rows:
            changes[1:] = (points[1:] != points[:-1]).any(axis=1)
        first = np.flatnonzero(changes)
        counts = np.ones(len(points), dtype=np.int64)
        if items.counts is not None:
            counts = items.counts[start:end][order]
        cloud = Cloud(space.space, np.ascontiguousarray(points[first]), np.add.reduceat(counts, first))
        return cls(cloud, items, rules, order + start, np.cumsum(changes) - 1)

    def parts(self, labels: Integers) -> Parts:
        """Return the classes of clusters of points, without regions."""
        cluster = labels[self.owner]
        order = np.argsort(cluster, kind="stable")
        starts = np.concatenate([np.flatnonzero(np.diff(cluster[order], prepend=-1)), [len(cluster)]])
        none = np.empty((len(starts) - 1, 0), dtype=np.int32)
        return Parts(self.order[order].astype(np.int32), starts.astype(np.int64), none, none)

    def merged(self, labels: Integers) -> Parts:
        """Return the classes, those that break a model merged with others as long as there are any."""
        from duckanon.algorithms.clustering.clusters import Merging
        from duckanon.kernels.merging import each_once

        parts = self.parts(labels)
        if self.items.entity is None and all(m.traits.size_only for m in self.rules.models):
            return parts
        while True:
            fine, _ = judge(parts, self.items, self.rules)
            if fine.all() or len(fine) == 1:
                return parts
            boxes, rows = self.cloud.boxes(labels)
            merging = Merging.of(self.cloud.space, boxes, rows)
            failing = np.flatnonzero(~fine)
            failing = failing[np.lexsort([failing, rows[failing]])]
            tree, held, _ = merging.tree()
            each_once(self.cloud.space, tree, merging.classes, held, failing, np.zeros(len(rows), dtype=np.bool_))
            labels = merging.labels()[labels]
            parts = self.parts(labels)


def _joined(
    axes: Sequence[PartitionAxis], items: Items, rules: Rules, runs: Sequence[Parts], search_stats: dict[str, Any]
) -> Parts:
    """Return the classes of all runs, with the region of each: from its first to its last place on every axis."""
    ends = np.cumsum([0, *(len(run.order) for run in runs)])
    order = np.concatenate([run.order for run in runs])
    starts = np.concatenate([[0], *(run.starts[1:] + end for run, end in zip(runs, ends[:-1], strict=True))])
    starts = starts.astype(np.int64)
    classes = len(starts) - 1
    regions = np.empty((classes, len(axes), 2), dtype=np.int32)
    levels = np.empty((classes, len(axes)), dtype=np.int32)
    for j, axis in enumerate(axes):
        places = items.places[:, j].astype(np.int64)[order]
        low, high = np.minimum.reduceat(places, starts[:-1]), np.maximum.reduceat(places, starts[:-1])
        regions[:, j, 0], regions[:, j, 1], levels[:, j] = region_of(axis, low, high, rules.tight)
    return Parts(order.astype(np.int32), starts, regions, levels, search_stats)


def region_of(axis: PartitionAxis, low: Integers, high: Integers, tight: bool) -> tuple[Integers, Integers, Integers]:
    """Return what is published of values between two places: the run, or the level of the node over them.

    NULL among others is the top. Without ``tight``, a run on a line is widened to the atoms that it touches.
    """
    missing = axis.size - 1 if axis.null else -1
    mixed, alone = (high == missing) & (low != high), (high == missing) & (low == high)
    if axis.atoms is None:
        levels = np.full(len(low), len(axis.nodes) - 1, dtype=np.int64)
        for level in range(len(axis.nodes) - 1, -1, -1):
            nodes = np.asarray(axis.nodes[level])
            levels[nodes[low] == nodes[high]] = level
    else:
        one = (low == high) & axis.inner
        levels = np.where(one, 0, -1)
        if not tight:
            count = axis.size - axis.null
            atoms = np.asarray(axis.atoms[:count])
            plain = ~one & ~mixed & ~alone
            low, high = low.copy(), high.copy()
            low[plain] = np.searchsorted(atoms, atoms[low[plain]], side="left")
            high[plain] = np.searchsorted(atoms, atoms[high[plain]], side="right") - 1
    levels = np.where(mixed, axis.top if axis.atoms is not None else len(axis.nodes) - 1, levels)
    return low, high, np.where(alone, 0, levels)


def medoids(axes: Sequence[PartitionAxis], items: Items, parts: Parts) -> Integers:
    """Return for each class the item nearest to its middle; of several the first in the order of values."""
    from duckanon.algorithms.clustering.clusters import Cloud, middles
    from duckanon.kernels.nearest import to_own_middle

    lines = all(axis.atoms is not None for axis in axes)
    space = spaced(axes, items, "standardised" if lines else "ncp")
    points = space.points(items.places[parts.order])
    labels = np.repeat(np.arange(len(parts.starts) - 1), np.diff(parts.starts))
    counts = np.ones(len(points), dtype=np.int64) if items.counts is None else items.counts[parts.order]
    cloud = Cloud(space.space, points, counts)
    far = np.empty(len(points))
    to_own_middle(space.space, points, labels, middles(cloud, labels), far)
    order = np.lexsort([*(points[:, j] for j in reversed(range(points.shape[1]))), far, labels])
    return np.asarray(parts.order[order[parts.starts[:-1]]], dtype=np.int64)


def in_blocks(
    cloud: Cloud, size: int, threads: int | None, cluster: Callable[[Cloud], Integers], advance: Advance
) -> tuple[Integers, int]:
    """Return the clusters of blocks of at most ``size`` rows near each other, and how many blocks there are."""
    from duckanon.kernels.boxtree import BEGIN, LEFT

    tree, _ = cloud.tree()
    blocks, waiting = [], [(0, 0, len(cloud.points))]
    while waiting:
        node, begin, end = waiting.pop()
        left = int(tree.table[node, LEFT])
        if end - begin <= size or left < 0:
            blocks.append(np.sort(tree.number[begin:end]))
            continue
        middle = int(tree.table[left + 1, BEGIN])
        waiting += [(left + 1, middle, end), (left, begin, middle)]
    labels = np.empty(len(cloud.points), dtype=np.int64)
    workers = threads if threads is not None else min(8, cores())
    first = 0
    with ThreadPoolExecutor(workers) as pool:
        try:
            for numbers, clusters in zip(blocks, pool.map(lambda b: cluster(cloud.some(b)), blocks), strict=True):
                labels[numbers] = clusters + first
                first += int(clusters.max()) + 1
                advance(len(numbers))
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return labels, len(blocks)
