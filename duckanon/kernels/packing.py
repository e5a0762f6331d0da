"""Places become bits of words."""

from __future__ import annotations

from typing import Any

import numpy as np

from duckanon.kernels.jit import kernel


@kernel
def pack_places(places: Any, words: Any, at: Any) -> None:  # pragma: no cover
    """Put the places of every axis where they stand in a row: ``at`` has the word and the first bit of each."""
    for begin in range(0, len(places), 4096):
        end = min(begin + 4096, len(places))
        for j in range(places.shape[1]):
            word, shift = at[0, j], np.uint64(at[1, j])
            for i in range(begin, end):
                words[i, word] |= np.uint64(places[i, j]) << shift


def warm() -> None:
    """Load what every kernel needs, by way of the smallest: the first takes a second, whichever it is."""
    places = np.zeros((2, 2), dtype=np.uint16, order="F")
    pack_places(places, np.zeros((2, 2), dtype=np.uint64), np.zeros((3, 2), dtype=np.int64))
