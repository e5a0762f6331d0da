"""The items that are divided, and their places on the axes: an array, or codes in pieces as the database gave them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Words = NDArray[np.uint64]

_BLOCK = 32_768
"""Rows whose words stay in the cache until all axes are in them."""


@dataclass(frozen=True)
class CodedPlaces:
    """``codes[j]`` are the codes on axis j, in pieces that are as long on every axis; ``place[j]`` has their places.

    With ``bits`` they are words, of which so many bits from one on, the shift and the mask of each axis, are the codes.
    """

    codes: tuple[tuple[NDArray[Any], ...], ...]
    place: tuple[NDArray[np.uint32] | None, ...]
    bits: tuple[tuple[int, int], ...] | None = None

    def __len__(self) -> int:
        return sum(map(len, self.codes[0]))

    @cached_property
    def array(self) -> NDArray[Any]:
        """The places, of which most searches never need all at once."""
        largest = max(len(p) for p in self.place if p is not None)
        places = np.empty((len(self), len(self.codes)), np.uint16 if largest <= 2**16 else np.uint32, order="F")
        for j, (pieces, place) in enumerate(zip(self.codes, self.place, strict=True)):
            assert place is not None
            start = 0
            for piece in pieces:
                if self.bits is not None:
                    shift, mask = self.bits[j]
                    piece = (piece >> np.uint64(shift)) & np.uint64(mask)
                places[start : start + len(piece), j] = place[piece]
                start += len(piece)
        return places


@dataclass(frozen=True)
class Items:
    """The rows, or their distinct combinations with the number of rows of each.

    ``given`` are their places on the axes, as an array or as codes that become one when it is asked for. ``values`` has
    the codes of sensitive columns, ``entity`` the numbers of persons, ``targets`` what information gain and least
    squares look at. ``ties`` tells rows apart that are equal in everything else, for relaxed cuts.
    """

    given: NDArray[Any] | CodedPlaces
    counts: Integers | None = None
    entity: Integers | None = None
    values: dict[str, Integers] = field(default_factory=dict)
    ties: NDArray[np.uint64] | None = None
    targets: tuple[NDArray[Any], ...] = ()

    def __len__(self) -> int:
        return len(self.given)

    @property
    def places(self) -> NDArray[Any]:
        """The place of each item on each axis."""
        return self.given.array if isinstance(self.given, CodedPlaces) else self.given

    def taken(self, order: Integers) -> Items:
        """Return these items of them, in this order."""

        def some(array: Any) -> Any:
            return None if array is None else array[order]

        values = {name: codes[order] for name, codes in self.values.items()}
        targets = tuple(t[order] for t in self.targets)
        return Items(self.places[order], some(self.counts), some(self.entity), values, some(self.ties), targets)


def pack(
    places: NDArray[Any] | CodedPlaces, words: Words, spare: Words, at: Integers, order: int, threads: int
) -> None:
    """Fill the words of all rows with the places on every axis and the rows' own numbers.

    ``at`` has the word and the first bit of each axis, ``order`` says which half of a word has the number. ``spare`` is
    room that the first cut fills with one thread: to touch memory for the first time takes long on some machines.
    """
    if not isinstance(places, CodedPlaces):
        width = places.shape[1]
        places = CodedPlaces(tuple((places[:, j],) for j in range(width)), (None,) * width)
    blocks, start = [], 0
    for piece, own in enumerate(places.codes[0] if places.codes else [words]):
        blocks += [(start, piece, a, min(a + _BLOCK, len(own))) for a in range(0, len(own), _BLOCK)]
        start += len(own)
    if len(blocks) <= 1:
        _fill(places, words, spare, at, order, blocks)
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(lambda t: _fill(places, words, spare, at, order, blocks[t::threads]), range(threads)):
            pass


def _fill(
    places: CodedPlaces,
    words: Words,
    spare: Words,
    at: Integers,
    order: int,
    blocks: Sequence[tuple[int, int, int, int]],
) -> None:
    from duckanon.kernels.packing import add_places, move_places, number_rows

    for start, piece, low, high in blocks:
        own = words[start + low : start + high]
        spare[start + low : start + high] = 0
        number_rows(own, order, start + low)
        for j, place in enumerate(places.place):
            codes = np.ascontiguousarray(places.codes[j][piece][low:high])
            # Arrays from the database are read-only, and kernels are compiled for read-only arrays.
            codes.flags.writeable = False
            if places.bits is None:
                add_places(codes, place, own, at[0, j], np.uint64(at[1, j]))
            else:
                down, mask = map(np.uint64, places.bits[j])
                move_places(codes, down, mask, place, own, at[0, j], np.uint64(at[1, j]))


__all__ = ["CodedPlaces", "Items", "pack"]
