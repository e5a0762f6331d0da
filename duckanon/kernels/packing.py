"""Turn codes into places and pack these into words; write the class of each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from duckanon.kernels.jit import kernel


@kernel
def number_rows(words: Any, order: int, first: int) -> None:  # pragma: no cover
    """Put numbers from ``first`` on into half ``order`` of the words of each row, and nothing into the others."""
    own, half = order // 2, np.uint64(32 * (order % 2))
    for i in range(words.shape[0]):
        for w in range(words.shape[1]):
            words[i, w] = np.uint64(0)
        words[i, own] = np.uint64(first + i) << half


@kernel
def add_places(codes: Any, place: Any, words: Any, word: int, shift: Any) -> None:  # pragma: no cover
    """Put the place of every code into its bits of a word; without ``place``, codes are places."""
    for i in range(len(codes)):
        if place is None:
            words[i, word] |= np.uint64(codes[i]) << shift
        else:
            words[i, word] |= np.uint64(place[codes[i]]) << shift


@kernel
def move_places(
    codes: Any, down: Any, mask: Any, place: Any, words: Any, word: int, shift: Any
) -> None:  # pragma: no cover
    """Put the place of every code into its bits of a word; codes are bits of words themselves."""
    for i in range(len(codes)):
        words[i, word] |= np.uint64(place[(codes[i] >> down) & mask]) << shift


@kernel
def put_classes(order: Any, starts: Any, first: int, low: int, high: int, out: Any) -> None:  # pragma: no cover
    """Put the numbers of classes ``low`` to before ``high``, counted from ``first`` on, at the rows that they have."""
    for c in range(low, high):
        for i in range(starts[c], starts[c + 1]):
            out[order[i]] = first + c


@kernel
def split_texts(raw: Any, ends: Any, texts: Any) -> bool:  # pragma: no cover
    """Split bytes of which each text has its length before it, in four bytes; return whether all are there.

    ``ends`` gets 0 and where each text ends in ``texts``.
    """
    place, end = 0, 0
    for i in range(len(ends) - 1):
        if place + 4 > len(raw):
            return False
        size = int(raw[place]) | int(raw[place + 1]) << 8 | int(raw[place + 2]) << 16 | int(raw[place + 3]) << 24
        place += 4
        if place + size > len(raw):
            return False
        # Byte by byte: assigning a slice compiles for a second longer, for the errors that it could raise.
        for at in range(size):
            texts[end + at] = raw[place + at]
        place += size
        end += size
        ends[i + 1] = end
    return True


def warm() -> None:
    """Call the smallest kernel, because the first call of any kernel loads what all of them need, in about a second."""
    number_rows(np.zeros((2, 2), dtype=np.uint64), 0, 0)
