"""Rows of one group are brought together: of several groups, or of the two sides of a place."""

from __future__ import annotations

from typing import Any

import numpy as np

from duckanon.kernels.jit import inlined, lean
from duckanon.kernels.keys import clear, keys_at, tally_apart
from duckanon.kernels.layout import BOUNDS, COUNTS, GROUP, HEADS, HIGH, LOW, MEMBER, SEEN
from duckanon.kernels.rows import TWO, bits_of, place_of


@inlined
def _send(words: Any, spare: Any, i: int, bits: Any, to: int, room: Any) -> None:  # pragma: no cover
    """Copy a row to the next place of a group."""
    source, target = np.uint64(i) * bits[0], np.uint64(room[HEADS, to]) * bits[0]
    room[HEADS, to] += 1
    for w in range(bits[0]):
        spare[target + w] = words[source + w]


@inlined
def _deal_out(words: Any, spare: Any, start: int, end: int, bits: Any, low: int, room: Any) -> None:  # pragma: no cover
    """Copy rows to their groups, which MEMBER has for each place from ``low`` on."""
    for i in range(start, end):
        _send(words, spare, i, bits, room[MEMBER, place_of(words, i, bits) - low], room)


def _arrange(  # pragma: no cover
    data: Any, axes: Any, how: Any, start: int, end: int, j: int, level: int, found: int, groups: int, scratch: Any
) -> None:
    """Bring the rows of each group together: GROUP has that of each key, BOUNDS gets their ends."""
    room = scratch.room
    if how.many >= 0:
        clear(found, room)
        tally_apart(data, axes, how, start, end, j, level, scratch, True)
    for g in range(groups + 1):
        room[BOUNDS, g] = 0
    for c in range(found):
        own = room[SEEN, c]
        room[BOUNDS, room[GROUP, own] + 1] += room[COUNTS, own]
    room[BOUNDS, 0] = start
    for g in range(groups):
        room[BOUNDS, g + 1] += room[BOUNDS, g]
        room[HEADS, g] = room[BOUNDS, g]
    words, spare, keys = data.words, data.spare, axes.keys
    at, bits = keys_at(axes, j, level), bits_of(data, axes, j)
    low = scratch.marks[LOW, j]
    first = keys[at + low]
    places = scratch.marks[HIGH, j] - low + 1
    # Where there are rows enough, from place to group in one step; what no row has does not matter.
    direct = end - start >= places
    if direct:
        for p in range(places):
            room[MEMBER, p] = room[GROUP, keys[at + low + p] - first]
    if direct and bits[0] == TWO:
        _deal_out(words, spare, start, end, (TWO, bits[1], bits[2], bits[3]), low, room)
    elif direct:
        _deal_out(words, spare, start, end, bits, low, room)
    else:
        for i in range(start, end):
            _send(words, spare, i, bits, room[GROUP, keys[at + place_of(words, i, bits)] - first], room)
    for w in range(np.uint64(start) * bits[0], np.uint64(end) * bits[0]):
        words[w] = spare[w]


arrange, arrange_apart = inlined(_arrange), lean(_arrange)


@inlined
def _two_sides(words: Any, spare: Any, start: int, end: int, bits: Any, place: int) -> Any:  # pragma: no cover
    """Bring the rows before a place to the front, and return where they end."""
    width, none = bits[0], np.uint64(0)
    first, last = np.uint64(start) * width, np.uint64(end) * width
    left = right = source = first
    # Without a branch that depends on a row: all go both ways, and only one is counted on.
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
    room = scratch.room
    room[BOUNDS, 0], room[BOUNDS, 1], room[BOUNDS, 2] = start, left, end
