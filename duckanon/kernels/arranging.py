"""Rows of one group are brought together: of several groups, or of the two sides of a place."""

from __future__ import annotations

from typing import Any

import numpy as np

from duckanon.kernels.jit import inlined, lean
from duckanon.kernels.keys import clear, keys_at, tally_apart
from duckanon.kernels.layout import BOUNDS, COUNTS, GROUP, HEADS, HIGH, LOW, MEMBER, SEEN
from duckanon.kernels.rows import bits_of, place_of


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
    width = bits[0]
    for i in range(np.uint64(start), np.uint64(end)):
        place = place_of(words, i, bits)
        to = room[MEMBER, place - low] if direct else room[GROUP, keys[at + place] - first]
        source, target = i * width, np.uint64(room[HEADS, to]) * width
        room[HEADS, to] += 1
        for w in range(width):
            spare[target + w] = words[source + w]
    for w in range(np.uint64(start) * width, np.uint64(end) * width):
        words[w] = spare[w]


arrange, arrange_apart = inlined(_arrange), lean(_arrange)


@inlined
def halves(data: Any, axes: Any, start: int, end: int, j: int, place: int, scratch: Any) -> None:  # pragma: no cover
    """Bring the rows before a place on axis j to the front; BOUNDS gets the ends of both sides."""
    words, spare, bits = data.words, data.spare, bits_of(data, axes, j)
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
    room = scratch.room
    room[BOUNDS, 0], room[BOUNDS, 1], room[BOUNDS, 2] = start, np.int64(left // width), end
