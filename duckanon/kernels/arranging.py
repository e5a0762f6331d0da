"""Rows of one group are brought together: of several groups, or of the two sides of a place."""

from __future__ import annotations

from typing import Any

from duckanon.kernels.jit import lean
from duckanon.kernels.keys import clear, keys_at, tally
from duckanon.kernels.layout import BOUNDS, COUNTS, GROUP, HEADS, LOW, SEEN
from duckanon.kernels.rows import exchange


@lean
def arrange(  # pragma: no cover
    data: Any, axes: Any, how: Any, start: int, end: int, j: int, level: int, found: int, groups: int, scratch: Any
) -> None:
    """Bring the rows of each group together: GROUP has that of each key, BOUNDS gets their ends."""
    room = scratch.room
    if how.many >= 0:
        clear(found, room)
        tally(data, axes, how, start, end, j, level, scratch, True)
    for g in range(groups + 1):
        room[BOUNDS, g] = 0
    for c in range(found):
        own = room[SEEN, c]
        room[BOUNDS, room[GROUP, own] + 1] += room[COUNTS, own]
    room[BOUNDS, 0] = start
    for g in range(groups):
        room[BOUNDS, g + 1] += room[BOUNDS, g]
        room[HEADS, g] = room[BOUNDS, g]
    words, rows, keys, buffer = data.words, data.rows, axes.keys, scratch.buffer
    at = keys_at(axes, j, level)
    first = keys[at + scratch.marks[LOW, j]]
    if end - start <= len(buffer):
        # By way of a copy: every row is looked at once, and none waits for another.
        for i in range(start, end):
            to = room[GROUP, keys[at + rows[i, j]] - first]
            place = room[HEADS, to] - start
            room[HEADS, to] += 1
            for w in range(words.shape[1]):
                buffer[place, w] = words[i, w]
        for i in range(start, end):
            for w in range(words.shape[1]):
                words[i, w] = buffer[i - start, w]
        return
    for g in range(groups):
        while room[HEADS, g] < room[BOUNDS, g + 1]:
            i = room[HEADS, g]
            to = room[GROUP, keys[at + rows[i, j]] - first]
            if to != g:
                exchange(words, i, room[HEADS, to])
            room[HEADS, to] += 1


@lean
def halves(data: Any, start: int, end: int, j: int, place: int, scratch: Any) -> None:  # pragma: no cover
    """Bring the rows before a place on axis j to the front; BOUNDS gets the ends of both sides."""
    words, rows, buffer = data.words, data.rows, scratch.buffer
    width, left = words.shape[1], start
    if end - start <= len(buffer):
        # Without a branch that depends on a row: all go both ways, and only one is counted on.
        right = 0
        for i in range(start, end):
            behind = 1 if rows[i, j] >= place else 0
            for w in range(width):
                word = words[i, w]
                words[left, w] = word
                buffer[right, w] = word
            left += 1 - behind
            right += behind
        for i in range(right):
            for w in range(width):
                words[left + i, w] = buffer[i, w]
    else:
        last = end - 1
        while left <= last:
            if rows[left, j] < place:
                left += 1
            elif rows[last, j] >= place:
                last -= 1
            else:
                exchange(words, left, last)
                left += 1
                last -= 1
    room = scratch.room
    room[BOUNDS, 0], room[BOUNDS, 1], room[BOUNDS, 2] = start, left, end
