"""Bring the rows of each group together: of several groups, or of the two sides of a cut."""

from __future__ import annotations

from typing import Any

import numpy as np

from duckanon.kernels.jit import inlined, lean
from duckanon.kernels.keys import clear, keys_at, tally
from duckanon.kernels.layout import BOUNDS, COUNTS, GROUP, HEADS, HIGH, LOW, MEMBER, SEEN
from duckanon.kernels.rows import TWO, bits_of, place_of


@inlined
def _send(words: Any, spare: Any, i: int, bits: Any, to: int, buffer: Any) -> None:  # pragma: no cover
    """Copy a row to the next place of a group."""
    source, target = np.uint64(i) * bits[0], np.uint64(buffer[HEADS, to]) * bits[0]
    buffer[HEADS, to] += 1
    for w in range(bits[0]):
        spare[target + w] = words[source + w]


@inlined
def _deal_out(
    words: Any, spare: Any, start: int, end: int, bits: Any, low: int, buffer: Any
) -> None:  # pragma: no cover
    """Copy rows to their groups, which MEMBER has for each place from ``low`` on."""
    for i in range(start, end):
        _send(words, spare, i, bits, buffer[MEMBER, place_of(words, i, bits) - low], buffer)


@lean
def arrange(  # pragma: no cover
    data: Any, axes: Any, config: Any, start: int, end: int, j: int, level: int, found: int, groups: int, scratch: Any
) -> None:
    """Bring the rows of each group together: GROUP has that of each key, BOUNDS gets their ends."""
    buffer = scratch.buffer
    if config.many >= 0:
        clear(found, buffer)
        tally(data, axes, config, start, end, j, level, scratch, True)
    for g in range(groups + 1):
        buffer[BOUNDS, g] = 0
    for c in range(found):
        own = buffer[SEEN, c]
        buffer[BOUNDS, buffer[GROUP, own] + 1] += buffer[COUNTS, own]
    buffer[BOUNDS, 0] = start
    for g in range(groups):
        buffer[BOUNDS, g + 1] += buffer[BOUNDS, g]
        buffer[HEADS, g] = buffer[BOUNDS, g]
    words, spare, keys = data.words, data.spare, axes.keys
    at, bits = keys_at(axes, j, level), bits_of(data, axes, j)
    low = scratch.marks[LOW, j]
    first = keys[at + low]
    places = scratch.marks[HIGH, j] - low + 1
    # With enough rows, look up the group of a place directly; places that no row has do not matter.
    direct = end - start >= places
    if direct:
        for p in range(places):
            buffer[MEMBER, p] = buffer[GROUP, keys[at + low + p] - first]
    if direct and bits[0] == TWO:
        _deal_out(words, spare, start, end, (TWO, bits[1], bits[2], bits[3]), low, buffer)
    elif direct:
        _deal_out(words, spare, start, end, bits, low, buffer)
    else:
        for i in range(start, end):
            _send(words, spare, i, bits, buffer[GROUP, keys[at + place_of(words, i, bits)] - first], buffer)
    for w in range(np.uint64(start) * bits[0], np.uint64(end) * bits[0]):
        words[w] = spare[w]


@inlined
def _two_sides(words: Any, spare: Any, start: int, end: int, bits: Any, place: int) -> Any:  # pragma: no cover
    """Bring the rows before a place to the front, and return where they end."""
    width, none = bits[0], np.uint64(0)
    first, last = np.uint64(start) * width, np.uint64(end) * width
    left = right = source = first
    # No branch that depends on a row: every row is written to both sides, and one of the two counts it.
    while source < last:
        behind = width if ((words[source + bits[1]] >> bits[2]) & bits[3]) >= np.uint64(place) else none
        for w in range(width):
            word = words[source + w]
            words[left + w] = word
            spare[right + w] = word
        left += width - behind
        right += behind
        source += width
    for w in range(right - first):
        words[left + w] = spare[first + w]
    return np.int64(left // width)


@inlined
def halves(data: Any, axes: Any, start: int, end: int, j: int, place: int, scratch: Any) -> None:  # pragma: no cover
    """Bring the rows before a place on axis j to the front; BOUNDS gets the ends of both sides."""
    bits = bits_of(data, axes, j)
    left = start
    if bits[0] == TWO:
        left = _two_sides(data.words, data.spare, start, end, (TWO, bits[1], bits[2], bits[3]), place)
    else:
        left = _two_sides(data.words, data.spare, start, end, bits, place)
    buffer = scratch.buffer
    buffer[BOUNDS, 0], buffer[BOUNDS, 1], buffer[BOUNDS, 2] = start, left, end
