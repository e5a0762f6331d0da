"""Clusters on arrays: the loops around the kernels of the clustering algorithms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.algorithms.clustering.spaces import FEW_COLUMNS
from duckanon.engine.process import cores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.kernels.boxtree import BoxTree
    from duckanon.kernels.merging import LeafClasses
    from duckanon.kernels.space import Space

    Integers = NDArray[np.int64]
    Floats = NDArray[np.float64]

Advance = Callable[[int], None]
"""Called with the number of rows that were added to clusters."""

_AT_ONCE = 2_000
"""The number of clusters or merges between two reports of progress."""
_GRAIN = 20_000
"""Groups with fewer rows than this are divided to the end by one thread."""
_SCANNED = 50_000
"""With more columns than a tree is good for, the most rows for which MDAV measures all rows in each step."""


@dataclass(frozen=True)
class Cloud:
    """Rows in a space: ``points`` by number, each standing for ``counts`` rows; equal numbers, equal rows: see ``of``.

    Clusters are returned as the number of its cluster for every row, clusters being numbered from 0.
    """

    space: Space
    points: Floats
    counts: Integers

    def tree(self) -> tuple[BoxTree, int]:
        """Return the tree of boxes over all rows, and the number of its nodes."""
        from duckanon.kernels.boxtree import grow, new_tree

        tree = new_tree(self.points)
        return tree, int(grow(self.space, tree, np.array([0, len(self.points)])))

    def some(self, numbers: Integers) -> Cloud:
        """Return some of the rows."""
        return Cloud(self.space, np.ascontiguousarray(self.points[numbers]), self.counts[numbers])

    def boxes(self, labels: Integers) -> tuple[Floats, Integers]:
        """Return the boxes of clusters, and their rows."""
        order = np.argsort(labels, kind="stable")
        starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
        taken = self.points[order]
        low, high = np.minimum.reduceat(taken, starts), np.maximum.reduceat(taken, starts)
        return np.stack([low, high], axis=1), np.add.reduceat(self.counts[order], starts)


def _labels(count: int, order: Integers, ends: Sequence[int] | Integers) -> Integers:
    """Return the number of its cluster for every row, those in no cluster -1."""
    labels = np.full(count, -1, dtype=np.int64)
    sizes = np.asarray(np.diff(np.asarray(ends, dtype=np.int64), prepend=0), dtype=np.int64)
    labels[order[: int(sizes.sum())]] = np.repeat(np.arange(len(sizes)), sizes)
    return labels


def mdav(cloud: Cloud, k: int, advance: Advance) -> Integers:
    """Return the clusters of MDAV, with a tree or without one, whichever is faster."""
    count, width = cloud.points.shape
    return (mdav_scanned if width > FEW_COLUMNS and count <= _SCANNED else mdav_in_tree)(cloud, k, advance)


def mdav_in_tree(cloud: Cloud, k: int, advance: Advance) -> Integers:
    """Return the clusters of MDAV; rows are found in a tree of boxes."""
    from duckanon.kernels import mdav as kernels

    tree, nodes = cloud.tree()
    state = kernels.new_state(cloud.space, len(cloud.points), nodes, k)
    kernels.begin(cloud.space, tree, nodes, state)
    return _all_made(state, lambda: kernels.make(cloud.space, tree, state, k, _AT_ONCE), advance)


def mdav_scanned(cloud: Cloud, k: int, advance: Advance) -> Integers:
    """Return the clusters of MDAV; all rows left are measured each time."""
    from duckanon.kernels import mdav, scanning

    left = scanning.all_rows(cloud.points)
    state = mdav.new_state(cloud.space, len(cloud.points), 0, k)
    scanning.begin(cloud.space, left, state)
    return _all_made(state, lambda: scanning.make(cloud.space, left, state, k, _AT_ONCE), advance)


def _all_made(state: Any, step: Callable[[], bool], advance: Advance) -> Integers:
    """Call a kernel of MDAV, which makes some clusters at a time, until it is done."""
    from duckanon.kernels.mdav import CLUSTERS, FILLED

    filled, done = 0, False
    while not done:
        done = step()
        advance(int(state.numbers[FILLED]) - filled)
        filled = int(state.numbers[FILLED])
    return _labels(len(state.order), state.order, state.ends[: int(state.numbers[CLUSTERS])])


def mdav_across(cloud: Cloud, strata: Integers, advance: Advance) -> Integers:
    """Return the clusters of MDAV that have a row of each stratum; rows of stratum i come before those of i + 1.

    ``strata`` are where they begin, and the end.
    """
    from duckanon.kernels import mdav as kernels
    from duckanon.kernels.boxtree import grow, new_tree

    count, many = len(cloud.points), len(strata) - 1
    tree = new_tree(cloud.points, many)
    nodes = int(grow(cloud.space, tree, strata))
    state = kernels.new_state(cloud.space, count, nodes, many)
    kernels.begin(cloud.space, tree, nodes, state)
    return _all_made(state, lambda: kernels.make_across(cloud.space, tree, state, many, _AT_ONCE), advance)


def _made(cloud: Cloud, k: int, advance: Advance, step: Callable[[Any, int], bool]) -> Any:
    """Call a kernel, which makes some clusters at a time, until it is done."""
    from duckanon.kernels import nearest as kernels

    made = kernels.no_clusters(len(cloud.points), k)
    filled, done = 0, False
    while not done:
        done = step(made, _AT_ONCE)
        advance(int(made.numbers[kernels.FILLED]) - filled)
        filled = int(made.numbers[kernels.FILLED])
    return made


def _with_rest(cloud: Cloud, made: Any) -> Integers:
    """Return the clusters, with every row left over in the one whose width, times its rows, it makes grow least."""
    from duckanon.kernels import nearest as kernels

    labels = _labels(len(cloud.points), made.order, made.ends[: int(made.numbers[kernels.CLUSTERS])])
    rest = np.flatnonzero(labels < 0)
    if len(rest) == len(labels):
        return np.zeros(len(labels), dtype=np.int64)
    if len(rest):
        inside = np.flatnonzero(labels >= 0)
        boxes, sizes = cloud.some(inside).boxes(labels[inside])
        into = np.empty(len(rest), dtype=np.int64)
        kernels.add_rest(cloud.space, cloud.points, rest, boxes, sizes, into)
        labels[rest] = into
    return labels


def v_mdav(cloud: Cloud, k: int, gamma: float, advance: Advance) -> Integers:
    """Return the clusters of V-MDAV."""
    from duckanon.kernels import nearest as kernels

    far = np.empty(len(cloud.points))
    kernels.from_middle(cloud.space, cloud.points, middles(cloud, np.zeros(len(far), dtype=np.int64))[0], far)
    ranked = np.argsort(-far, kind="stable")
    tree, _ = cloud.tree()
    made = _made(cloud, k, advance, lambda m, most: kernels.varied(cloud.space, tree, m, ranked, gamma, k, most))
    labels = _labels(len(cloud.points), made.order, made.ends[: int(made.numbers[kernels.CLUSTERS])])
    rest = np.flatnonzero(labels < 0)
    if len(rest) == len(labels):
        return np.zeros(len(labels), dtype=np.int64)
    if len(rest):
        inside = np.flatnonzero(labels >= 0)
        into = np.empty(len(rest), dtype=np.int64)
        centres = middles(cloud.some(inside), labels[inside])
        kernels.nearest_middles(cloud.space, cloud.points, rest, centres, into)
        labels[rest] = into
    return labels


def middles(cloud: Cloud, labels: Integers) -> Floats:
    """Return the middle of every cluster: the mean of numbers that are there, and the most frequent place of trees."""
    clusters = int(labels.max(initial=-1)) + 1
    space, points = cloud.space, cloud.points
    centres = np.empty((clusters, points.shape[1]))
    for j in range(points.shape[1]):
        if j < space.lines:
            there = points[:, j] != space.missing[j]
            weights = np.where(there, cloud.counts, 0)
            rows = np.bincount(labels, weights=weights, minlength=clusters)
            sums = np.bincount(labels, weights=np.where(there, points[:, j], 0.0) * weights, minlength=clusters)
            centres[:, j] = np.where(rows > 0, sums / np.maximum(rows, 1), space.missing[j])
        else:
            places = points[:, j].astype(np.int64)
            most = int(places.max(initial=0)) + 1
            keys, inverse = np.unique(labels * most + places, return_inverse=True)
            often = np.bincount(inverse, weights=cloud.counts)
            # The last to be written is the one that occurs most, and of those the smallest.
            order = np.lexsort([-keys, often])
            centres[keys[order] // most, j] = keys[order] % most
    return centres


def knn_clustering(cloud: Cloud, k: int, seed: int, stable: bool, advance: Advance) -> Integers:
    """Return clusters of rows that are drawn and those nearest to them."""
    from duckanon.kernels import nearest as kernels

    count, space = len(cloud.points), cloud.space
    if count < k:
        return np.zeros(count, dtype=np.int64)
    tree, _ = cloud.tree()
    if stable:
        seeds = np.random.default_rng(seed).permutation(count)[: count // k]
        rows = cloud.points[seeds]
        kernels.take_away(tree, seeds)
        made = _made(cloud, k, advance, lambda m, most: kernels.around_seeds(space, tree, m, seeds, rows, k, most))
    else:
        draws = np.random.default_rng(seed).random(count // k)
        left = np.zeros(count + 1, dtype=np.int64)
        kernels.count_all(left)
        made = _made(cloud, k, advance, lambda m, most: kernels.around_drawn(space, tree, m, left, draws, k, most))
    return _with_rest(cloud, made)


def k_member(cloud: Cloud, k: int, seed: int, advance: Advance) -> Integers:
    """Return clusters that grow by the rows that widen them least."""
    from duckanon.kernels import nearest as kernels

    count = len(cloud.points)
    if count < k:
        return np.zeros(count, dtype=np.int64)
    tree, _ = cloud.tree()
    last = cloud.points[int(np.random.default_rng(seed).random() * count)].copy()
    made = _made(cloud, k, advance, lambda m, most: kernels.best_fitting(cloud.space, tree, m, last, k, most))
    return _with_rest(cloud, made)


@dataclass(frozen=True)
class Merging:
    """Classes that are merged two by two, each known by a number; ``into`` leads to the class that one is part of."""

    space: Space
    classes: Any

    @classmethod
    def of(cls, space: Space, boxes: Floats, rows: Integers) -> Merging:
        """Return classes with given boxes and rows."""
        from duckanon.kernels.bundle import bundled
        from duckanon.kernels.merging import Classes, widths_of

        widths = np.empty(len(boxes))
        widths_of(space, boxes, widths)
        return cls(space, bundled(Classes(boxes, widths, rows, np.arange(len(boxes), dtype=np.int64))))

    def rounds(self, step: Callable[[BoxTree, LeafClasses, int], int], advance: Advance) -> None:
        """Let a kernel merge classes; the tree of boxes is made anew whenever half of them are gone."""
        done = True
        while done:
            tree, held, left = self.tree()
            start = made = 0
            while start < left // 2 + 1 and done:
                made = step(tree, held, min(_AT_ONCE, left // 2 + 1 - start))
                start += made
                advance(made)
                done = bool(made)

    def tree(self) -> tuple[BoxTree, LeafClasses, int]:
        """Return a tree over the classes that are left, what its leaves hold, and how many classes there are."""
        from duckanon.kernels.boxtree import grow, new_tree
        from duckanon.kernels.bundle import bundled
        from duckanon.kernels.merging import LeafClasses, cover

        numbers = self.left()
        tree = new_tree(np.ascontiguousarray(self.classes.boxes[numbers].mean(axis=1)))
        lines = self.space.lines
        # The middle of two places is a place.
        tree.point[:, lines:] = np.floor(tree.point[:, lines:])
        nodes = int(grow(self.space, tree, np.array([0, len(numbers)])))
        count = len(numbers)
        held = bundled(
            LeafClasses(
                np.empty((count, *self.classes.boxes.shape[1:])),
                np.empty(count, dtype=np.int64),
                np.empty(count),
                np.empty(nodes, dtype=np.int64),
                np.empty(nodes),
                np.full(len(self.classes.rows), -1, dtype=np.int64),
            )
        )
        cover(tree, nodes, numbers, self.classes, held)
        return tree, held, count

    def left(self) -> Integers:
        """Return the numbers of the classes that are part of no other."""
        return np.flatnonzero(self.classes.into == np.arange(len(self.classes.into)))

    def labels(self) -> Integers:
        """Return for every class that there was the number of the one that it is part of."""
        into = self.classes.into
        while True:
            further = into[into]
            if np.array_equal(further, into):
                return np.asarray(np.unique(into, return_inverse=True)[1], dtype=np.int64)
            into = further


def greedy(cloud: Cloud, k: int, advance: Advance) -> Integers:
    """Return classes merged from single rows, the smallest first."""
    from duckanon.kernels.merging import smallest_first

    merging = Merging.of(cloud.space, np.stack([cloud.points, cloud.points], axis=1), cloud.counts.copy())
    merging.rounds(lambda tree, held, most: smallest_first(cloud.space, tree, merging.classes, held, k, most), advance)
    return merging.labels()


def kaca(cloud: Cloud, k: int, seed: int, advance: Advance) -> Integers:
    """Return classes merged from single rows, those that are drawn first."""
    from duckanon.kernels.merging import drawn_first

    draws = np.random.default_rng(seed).random(len(cloud.points))
    merging = Merging.of(cloud.space, np.stack([cloud.points, cloud.points], axis=1), cloud.counts.copy())
    used = 0

    def step(tree: BoxTree, held: LeafClasses, most: int) -> int:
        nonlocal used
        made = int(drawn_first(cloud.space, tree, merging.classes, held, draws[used:], k, most))
        used += made
        return made

    merging.rounds(step, advance)
    return merging.labels()


def tdg(cloud: Cloud, k: int, seed: int, stable: bool, threads: int | None, advance: Advance) -> Integers:
    """Return the classes of top-down greedy division; the same for any number of threads."""
    from duckanon.kernels import tdg as kernels
    from duckanon.kernels.bundle import bundled

    count, width = cloud.points.shape
    ranks = np.empty(0, dtype=np.int64)
    if stable:
        ranks = np.empty(count, dtype=np.int64)
        ranks[np.random.default_rng(seed).permutation(count)] = np.arange(count)
    # The draws for different k are independent.
    drawn = (seed * 0x9E3779B97F4A7C15 + (0 if stable else k) * 0xD1B54A32D192ED03) % 2**63
    data = bundled(
        kernels.Data(cloud.points.copy(), cloud.counts.copy(), np.arange(count), ranks, np.zeros(count, dtype=np.bool_))
    )
    workers = threads if threads is not None else min(8, cores())
    grain = max(_GRAIN, count // (8 * workers))
    buffers: list[Any] = []
    lock = Lock()

    def work(group: tuple[int, int, int]) -> tuple[list[tuple[int, int, int]], int]:
        start, end, path = group
        with lock:
            # Another thread must not take a buffer between the look at its size and the choice.
            fits = next((i for i, r in enumerate(buffers) if len(r.near) >= end - start), None)
            buffer = buffers.pop(fits) if fits is not None else None
        buffer = buffer or kernels.new_buffers(end - start, width)
        try:
            if end - start <= grain:
                kernels.finish(cloud.space, data, buffer, start, end, path, drawn, k)
                return [], end - start
            middle = kernels.halve(cloud.space, data, buffer, start, end, path, drawn, k)
            if middle == end:
                return [], end - start
            return [(start, int(middle), 2 * path % 2**62), (int(middle), end, (2 * path + 1) % 2**62)], 0
        finally:
            buffers.append(buffer)

    waiting = [(0, count, 1)]
    with ThreadPoolExecutor(workers) as pool:
        running: set[Future[Any]] = set()
        while running or waiting:
            while waiting and len(running) < 2 * workers:
                running.add(pool.submit(work, waiting.pop()))
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for one in finished:
                further, done = one.result()
                waiting += further
                advance(done)
    return _labels(count, data.numbers, np.flatnonzero(data.last) + 1)
