"""Roll-up of a frequency table along hierarchies: packed codes in, classes with their counts out.

A row of a table is a key of one or more 64-bit words in which every column has bits of its own, and a count. Columns
are generalized by replacing their bits; equal keys are then added up in a hash table. Classes come out in the order in
which their first row stands in the input, so the result does not depend on anything else.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.engine.process import allowed_threads, cores, workers
from duckanon.kernels.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Keys = NDArray[np.uint64]
    Integers = NDArray[np.int64]

_FREE = np.int32(-1)
_NO_LINES = np.zeros(0, dtype=np.int64)
_WORKERS = min(4, cores())
_LEAST = 40_000
"""Below this many rows a thread is not worth its start."""


@kernel
def _group(  # pragma: no cover
    keys: Any,
    counts: Any,
    words: Any,
    shifts: Any,
    masks: Any,
    offsets: Any,
    table: Any,
    keep: Any,
    lines: Any,
    slots: Any,
    out_keys: Any,
    out_counts: Any,
    out_sizes: Any,
) -> int:
    """Generalize the columns listed, clear the bits outside ``keep``, and add up equal keys; return their number."""
    width = keys.shape[1]
    changed = len(words)
    room = np.uint64(len(slots) - 1)
    found = 0
    key = np.empty(width, dtype=np.uint64)
    for i in range(keys.shape[0]):
        for w in range(width):
            key[w] = keys[i, w]
        for a in range(changed):
            w = words[a]
            old = (key[w] >> shifts[a]) & masks[a]
            new = np.uint64(table[offsets[a] + np.int64(old)])
            key[w] ^= (old ^ new) << shifts[a]
        mixed = np.uint64(0x9E3779B97F4A7C15)
        for w in range(width):
            key[w] &= keep[w]
            mixed = (mixed ^ key[w]) * np.uint64(0xBF58476D1CE4E5B9)
            mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0x94D049BB133111EB)
        slot = (mixed >> np.uint64(32)) & room
        while True:
            at = slots[slot]
            if at < 0:
                slots[slot] = found
                for w in range(width):
                    out_keys[found, w] = key[w]
                out_counts[found] = counts[i]
                out_sizes[found] = lines[i] if len(lines) else 1
                found += 1
                break
            same = True
            for w in range(width):
                if out_keys[at, w] != key[w]:
                    same = False
                    break
            if same:
                out_counts[at] += counts[i]
                out_sizes[at] += lines[i] if len(lines) else 1
                break
            slot = (slot + np.uint64(1)) & room
    return found


def group(
    keys: Keys,
    counts: Integers,
    words: Integers,
    shifts: Keys,
    masks: Keys,
    offsets: Integers,
    table: Integers,
    keep: Keys,
) -> tuple[Keys, Integers, Integers]:
    """Return the distinct keys after generalization, their counts, and how many rows of the input each one joins.

    Column a of those to generalize has the bits ``masks[a] << shifts[a]`` of word ``words[a]``; its code c becomes
    ``table[offsets[a] + c]``. ``keep`` has the bits of each word that count. A large table is grouped in parts, side by
    side, and the parts' classes once more: they come out in the same order.
    """
    places = (words, shifts, masks, offsets, table, keep)
    parts = min(_WORKERS, allowed_threads() or _WORKERS, len(keys) // _LEAST)
    if parts < 2:
        return _grouped(keys, counts, places, _NO_LINES)
    ends = [len(keys) * i // parts for i in range(parts + 1)]
    with workers(parts) as pool:
        found = list(
            pool.map(lambda s: _grouped(keys[s[0] : s[1]], counts[s[0] : s[1]], places, _NO_LINES), pairwise(ends))
        )
    some, totals, lines = (np.concatenate([part[i] for part in found]) for i in range(3))
    none = (words[:0], shifts[:0], masks[:0], offsets[:0], table[:1], keep)
    return _grouped(some, totals, none, lines)


def _grouped(
    keys: Keys, counts: Integers, places: tuple[Any, Any, Any, Any, Any, Any], lines: Integers
) -> tuple[Keys, Integers, Integers]:
    rows = len(keys)
    slots = np.full(1 << max(4, (2 * rows - 1).bit_length() if rows else 4), _FREE, dtype=np.int32)
    out_keys = np.empty_like(keys)
    out_counts = np.empty_like(counts)
    out_sizes = np.empty_like(counts)
    found = _group(keys, counts, *places, lines, slots, out_keys, out_counts, out_sizes)
    # Copies, so that the room for the worst case is given back.
    return out_keys[:found].copy(), out_counts[:found].copy(), out_sizes[:found].copy()


@kernel
def weighted_leaves(  # pragma: no cover
    keys: Keys,
    counts: Integers,
    kept: Any,
    words: Integers,
    shifts: Keys,
    masks: Keys,
    offsets: Integers,
    leaves: Any,
    out: Any,
) -> None:
    """Add up, for every column, count times the number that its code has in ``leaves``, over the kept classes."""
    for i in range(keys.shape[0]):
        if kept[i]:
            for a in range(len(words)):
                code = (keys[i, words[a]] >> shifts[a]) & masks[a]
                out[a] += counts[i] * leaves[offsets[a] + np.int64(code)]
