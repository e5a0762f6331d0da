"""Rows to what is published of their classes, as short codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from duckanon.kernels.jit import kernel

_BLOCK = 512
"""Rows whose classes stay in the cache while one column after the other is looked up."""


@kernel
def look_up(
    ids: Any, codes: Any, ranks: Any, firsts: Any, used: Any, out: Any, counts: Any
) -> None:  # pragma: no cover
    """Give the rows of a run codes of their own on every column, 0, 1, ... in the order in which they occur.

    ``codes[c, j]`` is the code of class c on column j, from 1 on, and 0 for NULL, which becomes -1. Column j has its
    ranks from ``firsts[j]`` on, -1 for NULL and -2 for all others between uses. ``used[firsts[j] + r]`` gets the code
    whose rank is r, ``out[j]`` the ranks of the rows; ``counts[0, j]`` says how many codes occur, ``counts[1, j]`` how
    many rows are NULL, both 0 before.
    """
    block = np.empty(_BLOCK, dtype=codes.dtype)
    for start in range(0, len(ids), _BLOCK):
        size = min(_BLOCK, len(ids) - start)
        for j in range(codes.shape[1]):
            # A loop that does nothing else waits for many classes at a time.
            for i in range(size):
                block[i] = codes[ids[start + i], j]
            first, found, missing = firsts[j], counts[0, j], counts[1, j]
            own = ranks[first : firsts[j + 1]]
            for i in range(size):
                rank = own[block[i]]
                if rank < -1:
                    rank = found
                    own[block[i]] = rank
                    used[first + rank] = block[i]
                    found += 1
                missing += rank < 0
                out[j, start + i] = rank
            counts[0, j], counts[1, j] = found, missing
    for j in range(codes.shape[1]):
        for r in range(counts[0, j]):
            ranks[firsts[j] + used[firsts[j] + r]] = -2
