"""Codes read in pieces are those of one array, and are packed into the same words."""

from __future__ import annotations

import numpy as np
import pytest

from duckanon.algorithms.partition import partition
from duckanon.algorithms.partition.partition import CodedPlaces, Parts, classes_of_items, pack

# Word, first bit and mask of three axes of 1000, 4 and 70,000 places; rows are numbered in the second half of word 0.
AT = np.array([[0, 0, 1], [0, 10, 0], [1023, 3, 2**17 - 1]], dtype=np.int64)
ORDER = 1


def made(rows: int, pieces: int, seed: int) -> CodedPlaces:
    rng = np.random.default_rng(seed)
    sizes, kinds = (1000, 4, 70_000), (np.uint16, np.uint8, np.uint32)
    ends = sorted(rng.integers(0, rows + 1, pieces - 1)) if pieces > 1 else []
    codes = [np.split(rng.integers(0, n, rows).astype(kind), ends) for n, kind in zip(sizes, kinds, strict=True)]
    return CodedPlaces(tuple(map(tuple, codes)), tuple(rng.permutation(n).astype(np.uint32) for n in sizes))


def in_words(coded: CodedPlaces) -> CodedPlaces:
    """The same codes, the first and the last in the bits of one word, the last up to its highest bit."""
    bits = ((3, 1023), (0, 3), (47, 2**17 - 1))
    words = []
    for axes in ((0, 2), (1,)):
        pieces = zip(*(coded.codes[j] for j in axes), strict=True)
        moved = [[c.astype(np.uint64) << np.uint64(bits[j][0]) for j, c in zip(axes, p, strict=True)] for p in pieces]
        words.append(tuple(np.bitwise_or.reduce(own) for own in moved))
    return CodedPlaces((words[0], words[1], words[0]), coded.place, bits)


@pytest.mark.parametrize(("rows", "pieces"), [(0, 1), (1, 1), (500, 1), (500, 7), (1000, 3)])
@pytest.mark.parametrize("threads", [1, 3])
def test_pieces_are_packed_as_an_array_is(
    rows: int, pieces: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition, "_BLOCK", 64)
    coded = made(rows, pieces, rows + pieces)
    assert len(coded) == rows
    wanted = np.column_stack([p[np.concatenate(c)] for c, p in zip(coded.codes, coded.place, strict=True)])
    assert coded.array.tolist() == wanted.tolist()
    shared = in_words(coded)
    assert shared.array.tolist() == wanted.tolist()
    for given in (coded, shared, coded.array, np.ascontiguousarray(coded.array)):
        words = np.full((rows, 2), 2**64 - 1, dtype=np.uint64)
        pack(given, words, np.empty_like(words), AT, ORDER, threads)
        found = [(words[:, w] >> np.uint64(shift)) & np.uint64(mask) for w, shift, mask in AT.T]
        assert np.column_stack(found).tolist() == wanted.tolist()
        assert (words[:, 0] >> np.uint64(32)).tolist() == list(range(rows))
        # Bits that nothing was put into are empty.
        assert not ((words[:, 0] & np.uint64(2**32 - 1)) >> np.uint64(13)).any()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_classes_of_items(threads: int) -> None:
    rng = np.random.default_rng(4)
    starts = np.concatenate([[0], np.cumsum(rng.integers(1, 9, 30))])
    order = rng.permutation(int(starts[-1])).astype(np.int32)
    none = np.empty((30, 0), dtype=np.int32)
    # Also where numbers of rows stand between others.
    for own in (order, np.column_stack([order, order])[:, 1]):
        found = classes_of_items(Parts(own, starts, none, none), 100, threads)
        for c in range(30):
            assert set(found[order[starts[c] : starts[c + 1]]]) == {100 + c}
