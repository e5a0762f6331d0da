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
    for j in range(width):
        counts[0, j], counts[1, j] = 0, 0
    for i in range(len(ids)):
        for j in range(width):
            code = codes[ids[i], j]
            if code < 0:
                counts[1, j] += 1
                out[j, i] = -1
                continue
            rank = ranks[firsts[j] + code]
            if rank < 0:
                rank = counts[0, j]
                ranks[firsts[j] + code] = rank
                used[firsts[j] + rank] = code
                counts[0, j] += 1
            out[j, i] = rank
    for j in range(width):
        for r in range(counts[0, j]):
            ranks[firsts[j] + used[firsts[j] + r]] = -1
