"""Spaces of the slow references as the kernels have them, and clusters in a form in which both can be compared."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from reference.space import Line, Space, Tree

from duckanon.algorithms.clustering.clusters import Cloud
from duckanon.kernels.bundle import bundled
from duckanon.kernels.space import Space as Arrays


def lines_first(space: Space) -> Space:
    """The space with its lines before its trees, as the kernels have them: squares are added in this order."""
    return Space(sorted(space.columns, key=lambda c: isinstance(c, Tree)), space.weights, space.norm)


def cloud_of(space: Space, many: bool = False) -> Cloud:
    """The cloud of a space whose lines come first; with ``many`` the pairs of places are not written down."""
    lines = [c for c in space.columns if isinstance(c, Line)]
    trees = [c for c in space.columns if isinstance(c, Tree)]
    width = len(space.columns)
    points, caps, missing = np.zeros((space.n, width)), np.zeros(width), np.full(width, np.inf)
    table = np.zeros((4, width), dtype=np.int64)
    nodes, widths, pairs = [np.zeros(0)], [np.zeros(0)], [np.zeros(0)]
    for j, line in enumerate(lines):
        beyond = max((v for v in line.values if v is not None), default=0.0) + line.cap
        caps[j], missing[j] = line.cap, beyond if None in line.values else np.inf
        points[:, j] = [beyond if v is None else v for v in line.values]
    for j, tree in enumerate(trees, len(lines)):
        size = len(tree.nodes[0])
        points[:, j] = tree.places
        above = [np.array(level) for level in tree.nodes[1:]] or [np.zeros(size, dtype=np.int64)]
        wide = [np.array(w) for w in tree.widths[1:]] or [np.zeros(1)]
        first, pair = sum(map(len, nodes)), sum(map(len, pairs))
        table[:, j] = first, size, len(above) + 1, -1 if many else pair
        nodes += above
        widths += [w[level] for w, level in zip(wide, above, strict=True)]
        if not many:
            pairs.append(np.array([tree.delta(a, b) for a in range(size) for b in range(size)]))
    arrays = bundled(
        Arrays(
            len(lines),
            table,
            np.concatenate([*nodes, [0]]).astype(np.int32),
            np.concatenate([*widths, [0.0]]),
            np.concatenate([*pairs, [0.0]]),
            caps,
            missing,
            space.norm == "squares",
        )
    )
    return Cloud(arrays, points, np.array(space.weights, dtype=np.int64))


def as_sets(clusters: Iterable[Iterable[int]]) -> list[tuple[int, ...]]:
    """Clusters whatever their order."""
    return sorted(tuple(sorted(c)) for c in clusters)


def of_labels(labels: np.ndarray) -> list[tuple[int, ...]]:
    """Clusters from the number of its cluster for every item; numbers from 0 on, none left out."""
    count = int(labels.max()) + 1
    found: list[list[int]] = [[] for _ in range(count)]
    for i, label in enumerate(labels.tolist()):
        found[label].append(i)
    assert all(found)
    return as_sets(found)
