"""Codes become places, and places bits of words."""

from __future__ import annotations

from typing import Any

import numpy as np

from duckanon.kernels.jit import kernel

_BLOCK = 4096
"""Rows whose words stay in the cache until all axes are in them."""


@kernel
def put_places(place: Any, codes: Any, out: Any) -> None:  # pragma: no cover
    """Put the place of every code into ``out``."""
    for i in range(len(codes)):
        out[i] = place[codes[i]]


@kernel
def pack_places(places: Any, words: Any, at: Any, order: int, first: int, last: int) -> None:  # pragma: no cover
    """Fill the words of rows from ``first`` to before ``last``: with the places of every axis, and their own numbers.

    ``at`` has the word and the first bit of each axis, ``order`` says which half of a word has the number.
    """
    own, half = order // 2, np.uint64(32 * (order % 2))
    for begin in range(first, last, _BLOCK):
        end = min(begin + _BLOCK, last)
        for i in range(begin, end):
            for w in range(words.shape[1]):
                words[i, w] = np.uint64(0)
            words[i, own] = np.uint64(i) << half
        for j in range(places.shape[1]):
            word, shift = at[0, j], np.uint64(at[1, j])
            for i in range(begin, end):
                words[i, word] |= np.uint64(places[i, j]) << shift


def warm() -> None:
    """Load what every kernel needs, by way of the smallest: the first takes a second, whichever it is."""
    places = np.zeros((2, 2), dtype=np.uint16, order="F")
    pack_places(places, np.zeros((2, 2), dtype=np.uint64), np.zeros((3, 2), dtype=np.int64), 0, 0, 2)
