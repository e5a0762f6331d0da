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
def order_of(hashes: Any, keys: Any, rows: Any, part: int, parts: int) -> None:  # pragma: no cover
    """Write the hashes into ``keys`` and their numbers into ``rows``, sorted; equal hashes stay as they come.

    They are dealt by their first bits, then by the next ones, and what is left of disorder is settled run by run. One
    call does one of several parts of the work, whichever runs are its own.
    """
    count, first = len(hashes), 1
    while first < 14 and (count >> first) > _FEW:
        first += 1
    shift, then = np.uint64(64 - first), np.uint64(64 - first - _NEXT)
    mask = np.uint64(2**_NEXT - 1)
    ends = np.zeros((1 << first) + 1, dtype=np.int64)
    few = np.zeros(2**_NEXT + 1, dtype=np.int64)
    for i in range(count):
        ends[(hashes[i] >> shift) + np.uint64(1)] += 1
    for b in range(1 << first):
        ends[b + 1] += ends[b]
    low, high = (part << first) // parts, ((part + 1) << first) // parts
    begin = ends[low]
    for i in range(count):
        own = np.int64(hashes[i] >> shift)
        if low <= own < high:
            keys[ends[own]], rows[ends[own]] = hashes[i], i
            ends[own] += 1
    # Each run is filled now, so that its end stands where it began.
    start, longest = begin, 0
    for b in range(low, high):
        longest, start = max(longest, ends[b] - start), ends[b]
    spare, others = np.empty(longest, dtype=keys.dtype), np.empty(longest, dtype=rows.dtype)
    start = begin
    for b in range(low, high):
        end = ends[b]
        few[:] = 0
        for i in range(start, end):
            few[((keys[i] >> then) & mask) + np.uint64(1)] += 1
        for c in range(2**_NEXT):
            few[c + 1] += few[c]
        for i in range(start, end):
            own = (keys[i] >> then) & mask
            spare[few[own]], others[few[own]] = keys[i], rows[i]
            few[own] += 1
        for i in range(start, end):
            keys[i], rows[i] = spare[i - start], others[i - start]
        _settle(keys, rows, start, end)
        start = end
