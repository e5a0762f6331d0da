"""Rows in the order of their hashes."""

from __future__ import annotations

from typing import Any

import numpy as np

from duckanon.kernels.jit import kernel, lean

_FEW = 512
"""Rows that are sorted at a time, on average."""
_NEXT = 10
"""Bits of a hash that bring those few nearly into order."""


@lean
def _settle(keys: Any, rows: Any, start: int, end: int) -> None:  # pragma: no cover
    """Sort a run that nearly is sorted; equal keys keep their order."""
    for i in range(start + 1, end):
        key, row, k = keys[i], rows[i], i
        while k > start and keys[k - 1] > key:
            keys[k], rows[k] = keys[k - 1], rows[k - 1]
            k -= 1
        keys[k], rows[k] = key, row


@kernel
def deal(hashes: Any, numbers: Any, bounds: Any) -> None:  # pragma: no cover
    """Write the numbers of hashes, pile by pile, a power of two of them; in a pile, they stay as they come.

    Piles go by the first bits. Pile p begins at ``bounds[p]``, which are all 0 before, and ends where the next begins.
    """
    bits = 0
    while (2 << bits) < len(bounds):
        bits += 1
    # A word is not shifted by all of its bits.
    shift, last = np.uint64(63 - bits), np.uint64(1)
    ends = np.zeros(len(bounds), dtype=np.int64)
    for i in range(len(hashes)):
        bounds[np.int64(hashes[i] >> shift >> last) + 1] += 1
    for p in range(len(bounds) - 1):
        ends[p] = bounds[p]
        bounds[p + 1] += bounds[p]
    for i in range(len(hashes)):
        own = np.int64(hashes[i] >> shift >> last)
        numbers[ends[own]] = i
        ends[own] += 1


@kernel
def order_of(hashes: Any, bounds: Any, rows: Any, part: int, parts: int) -> None:  # pragma: no cover
    """Write the numbers of hashes into ``rows``, sorted; equal hashes stay as they come.

    They come in batches, each dealt into piles by the first bits: batch s has the hashes of pile p from
    ``bounds[s, p]`` to ``bounds[s, p + 1]``. Here a pile is dealt by further bits, then by the next ones, and what is
    left of disorder is settled run by run. One call does one of several parts of the work, whichever piles are its own.
    """
    batches, piles, taken = bounds.shape[0], bounds.shape[1] - 1, 0
    while (1 << taken) < piles:
        taken += 1
    first = 1
    while first < 14 - taken and (len(hashes) >> (first + taken)) > _FEW:
        first += 1
    shift, then = np.uint64(64 - taken - first), np.uint64(64 - taken - first - _NEXT)
    some, mask = np.uint64((1 << first) - 1), np.uint64(2**_NEXT - 1)
    low, high = part * piles // parts, (part + 1) * piles // parts
    place, longest = 0, 0
    for s in range(batches):
        place += bounds[s, low] - bounds[s, 0]
    for p in range(low, high):
        longest = max(longest, (bounds[:, p + 1] - bounds[:, p]).sum())
    keys, numbers = np.empty(longest, dtype=hashes.dtype), np.empty(longest, dtype=rows.dtype)
    spare = np.empty(longest, dtype=hashes.dtype)
    ends, few = np.zeros((1 << first) + 1, dtype=np.int64), np.zeros(2**_NEXT + 1, dtype=np.int64)
    for p in range(low, high):
        ends[:] = 0
        for s in range(batches):
            for i in range(bounds[s, p], bounds[s, p + 1]):
                ends[np.int64((hashes[i] >> shift) & some) + 1] += 1
        for b in range(1 << first):
            ends[b + 1] += ends[b]
        for s in range(batches):
            for i in range(bounds[s, p], bounds[s, p + 1]):
                own = np.int64((hashes[i] >> shift) & some)
                keys[ends[own]], numbers[ends[own]] = hashes[i], i
                ends[own] += 1
        # Each run is filled now, so that its end stands where it began.
        start, others = 0, rows[place:]
        for b in range(1 << first):
            end = ends[b]
            few[:] = 0
            for i in range(start, end):
                few[np.int64((keys[i] >> then) & mask) + 1] += 1
            for c in range(2**_NEXT):
                few[c + 1] += few[c]
            for i in range(start, end):
                own = np.int64((keys[i] >> then) & mask)
                to = start + few[own]
                spare[to], others[to] = keys[i], numbers[i]
                few[own] += 1
            _settle(spare, others, start, end)
            start = end
        place += start
