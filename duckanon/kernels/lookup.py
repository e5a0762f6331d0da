"""Rows to what is published of their classes, as short codes."""

from __future__ import annotations

from typing import Any

from duckanon.kernels.jit import kernel


@kernel
def look_up(
    ids: Any, codes: Any, ranks: Any, firsts: Any, used: Any, out: Any, counts: Any
) -> None:  # pragma: no cover
    """Give the rows of a run codes of their own on every column, 0, 1, ... in the order in which they occur.

    ``codes[c, j]`` is the code of class c on column j, -1 for NULL, which stays so. Column j has its ranks from
    ``firsts[j]`` on, all -1 between uses. ``used[firsts[j] + r]`` gets the code whose rank is r, ``out[j]`` the ranks
    of the rows; ``counts[0, j]`` says how many codes occur, ``counts[1, j]`` how many rows are NULL.
    """
    width = codes.shape[1]
    for i in range(len(ids)):
        for j in range(width):
            out[j, i] = codes[ids[i], j]
    # Column by column, so that the ranks of one stay in the cache.
    for j in range(width):
        own, first = out[j], firsts[j]
        found, missing = 0, 0
        for i in range(len(ids)):
            code = own[i]
            if code < 0:
                missing += 1
                continue
            rank = ranks[first + code]
            if rank < 0:
                rank = found
                ranks[first + code] = rank
                used[first + rank] = code
                found += 1
            own[i] = rank
        counts[0, j], counts[1, j] = found, missing
        for r in range(found):
            ranks[first + used[first + r]] = -1
