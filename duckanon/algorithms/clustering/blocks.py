"""Clusters of a large table, made in blocks of rows near each other."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from duckanon.engine.limits import cores

if TYPE_CHECKING:
    from duckanon.algorithms.clustering.clusters import Advance, Cloud, Integers


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
            for numbers, found in zip(blocks, pool.map(lambda b: cluster(cloud.some(b)), blocks), strict=True):
                labels[numbers] = found + first
                first += int(found.max()) + 1
                advance(len(numbers))
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return labels, len(blocks)
