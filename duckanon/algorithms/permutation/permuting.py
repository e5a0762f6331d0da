"""Permute the values of rows within groups, block by block, with cryptographic random numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.algorithms.partition.partition import Items, Parts

    Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Draw:
    """Random words from a secret key: the same for the same key, and unknown to whoever does not have it.

    They are made by SHAKE-256: some of them do not reveal the others, nor the key.
    """

    key: bytes

    def words(self, count: int, *label: int) -> NDArray[np.uint64]:
        """Return so many words of 64 bits; different labels give different words."""
        label_bytes = b"".join(int(n).to_bytes(8, "big") for n in label)
        return np.frombuffer(hashlib.shake_256(self.key + label_bytes).digest(8 * count), dtype="<u8")


def blocks_of(information: Sequence[float], least: int = 2) -> tuple[tuple[int, ...], ...]:
    """Return the blocks of columns: those that tell most of the sensitive column together, ``least`` in each.

    The last block has what is left over. Columns that tell the same stay in their order.

    References
    ----------
    N. Senavirathne, V. Torra, Systematic evaluation of probabilistic k-anonymity, 2021, section 4.

    Examples
    --------
    >>> blocks_of([0.1, 0.5, 0.2, 0.4, 0.0])
    ((1, 3), (2, 0, 4))
    >>> blocks_of([0.3])
    ((0,),)
    """
    ranked = sorted(range(len(information)), key=lambda j: (-information[j], j))
    count = max(len(ranked) // least, 1)
    ends = [*(least * i for i in range(count)), len(ranked)]
    return tuple(tuple(ranked[a:b]) for a, b in pairwise(ends))


@dataclass(frozen=True)
class Permuted:
    """The places of all rows after the permutation, and how often something had to be drawn again."""

    places: NDArray[Any]
    redrawn: int


def permute(
    items: Items,
    parts: Parts,
    units: Integers,
    blocks: Sequence[Sequence[int]],
    draw: Draw,
    label: int,
    budget: int | None,
) -> Permuted:
    """Permute the places of rows within the classes, block by block.

    Every order of a class is as likely as any other. With a ``budget`` of k, a block that stayed where it was is drawn
    again, but only in classes where who knows that still links nobody above 1 in k: where it stays with a chance of at
    most (1 - k / units) / blocks. A block whose tuples are all the same stays.

    The result does not depend on the order of the items, nor on the numbers of the classes.
    """
    count = len(items.places)
    order, group = _in_order(items, parts)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    sizes = np.diff(np.append(starts, count))
    # Classes are in another order here than in ``parts``.
    owner = np.empty(count, dtype=np.int64)
    owner[parts.order] = np.repeat(np.arange(len(units)), np.diff(parts.starts))
    members = units[owner[order[starts]]]
    places = items.places.copy()
    redrawn = 0
    for number, block in enumerate(blocks):
        tuples = _numbered(items.places[:, list(block)])[order]
        again = np.zeros(len(starts), dtype=np.bool_)
        if budget is not None:
            chance = _chance_to_stay(tuples, group, starts, sizes)
            again = (chance < 1.0) & (chance <= (1.0 - budget / members) / len(blocks))
        taken = np.lexsort([draw.words(count, label, number, 0), group])
        turn = 0
        while True:
            moved = np.logical_or.reduceat(tuples[taken] != tuples, starts)
            stuck = np.flatnonzero(again & ~moved)
            if not len(stuck):
                break
            turn += 1
            redrawn += len(stuck)
            at = np.flatnonzero(np.isin(group, stuck))
            taken[at] = at[np.lexsort([draw.words(len(at), label, number, turn), group[at]])]
        for j in block:
            places[order, j] = items.places[order[taken], j]
    return Permuted(places, redrawn)


def _in_order(items: Items, parts: Parts) -> tuple[Integers, Integers]:
    """Return the rows class by class, in an order that follows from their values, and the number of the class of each.

    Classes come by the first of their rows, in the order of values and ties.
    """
    count = len(items.places)
    ties = [] if items.ties is None else [items.ties]
    ranked = np.lexsort([*ties, *(items.places[:, j] for j in reversed(range(items.places.shape[1])))])
    rank = np.empty(count, dtype=np.int64)
    rank[ranked] = np.arange(count)
    first = np.minimum.reduceat(rank[parts.order], parts.starts[:-1])
    by_row = np.empty(count, dtype=np.int64)
    by_row[parts.order] = np.repeat(np.argsort(np.argsort(first)), np.diff(parts.starts))
    order = np.lexsort([rank, by_row])
    return order, by_row[order]


def _numbered(columns: NDArray[Any]) -> Integers:
    """Return a number for every row, the same for equal rows."""
    numbers = np.zeros(len(columns), dtype=np.int64)
    for j in range(columns.shape[1]):
        column = columns[:, j].astype(np.int64)
        numbers = np.unique(numbers * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1].astype(
            np.int64
        )
    return numbers


def _chance_to_stay(tuples: Integers, group: Integers, starts: Integers, sizes: Integers) -> NDArray[np.float64]:
    """Return how likely the tuples of each class stay where they are under a random permutation."""
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, int(sizes.max(initial=1)) + 1)))])
    order = np.lexsort([tuples, group])
    sorted_tuples, of = tuples[order], group[order]
    runs = np.flatnonzero(np.concatenate([[True], (sorted_tuples[1:] != sorted_tuples[:-1]) | (of[1:] != of[:-1])]))
    lengths = np.diff(np.append(runs, len(sorted_tuples)))
    alike = np.bincount(of[runs], weights=logs[lengths], minlength=len(sizes))
    kinds = np.bincount(of[runs], minlength=len(sizes))
    return np.where(kinds > 1, np.exp(alike - logs[sizes]), 1.0)


__all__ = ["Draw", "Permuted", "blocks_of", "permute"]
