"""Codes and numbers in the bits of 64-bit words: what stands where, and the codes as SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlglot import exp

from duckanon.engine.sql.relations import cast, number

WORD = 64
"""Bits of a word."""


class Bits(NamedTuple):
    """Where a code stands: in which word, how far up, and the mask of its bits once it is moved down."""

    word: int
    shift: int
    mask: int


def bits_for(size: int) -> int:
    """Return how many bits hold the codes ``0 .. size - 1``.

    Examples
    --------
    >>> bits_for(1), bits_for(4), bits_for(1000)
    (1, 2, 10)
    """
    return max(1, (size - 1).bit_length())


@dataclass
class WordLayout:
    """How a row of words is filled: ``used`` are the bits of each word that are taken, from the lowest on.

    ``limit`` is how many bits of a word may be taken; with ``in_order``, no code stands in a word before the last one.

    Examples
    --------
    >>> layout = WordLayout()
    >>> tuple(layout.bits(1000)), tuple(layout.bits(4)), layout.number(), layout.used
    ((0, 0, 1023), (0, 10, 3), 1, [64])
    """

    limit: int = WORD
    in_order: bool = False
    used: list[int] = field(default_factory=list)

    def bits(self, size: int) -> Bits:
        """Take the bits for one of so many codes, in the first word that has them."""
        needed = bits_for(size)
        first = max(0, len(self.used) - 1) if self.in_order else 0
        fitting = (w for w in range(first, len(self.used)) if self.used[w] + needed <= self.limit)
        word = next(fitting, len(self.used))
        self.used += [0] * (word == len(self.used))
        self.used[word] += needed
        return Bits(word, self.used[word] - needed, 2**needed - 1)

    def number(self) -> int:
        """Take 32 bits, counted in such numbers: the second half of a word, or a new word."""
        word = next((w for w, used in enumerate(self.used) if used <= WORD // 2), None)
        if word is None:
            return self.numbers(1)
        self.used[word] = WORD
        return 2 * word + 1

    def numbers(self, count: int) -> int:
        """Take numbers of 32 bits beside each other."""
        return 2 * self.words((count + 1) // 2, WORD - WORD // 2 * (count % 2))

    def words(self, count: int = 1, last: int = WORD) -> int:
        """Take whole words, of which the last has so many bits taken."""
        self.used += ([WORD] * count)[: count - 1] + [last] * (count > 0)
        return len(self.used) - count


def moved_up(code: exp.Expr, shift: int) -> exp.Expr:
    """Return a code where its bits stand in a word."""
    wide = cast(code, "UBIGINT")
    return exp.Mul(this=wide, expression=cast(number(1 << shift), "UBIGINT")) if shift else wide


def joined(parts: Sequence[exp.Expr]) -> exp.Expr:
    """Return the word that several codes make, each moved up to its own bits."""
    word = parts[0] if parts else cast(number(0), "UBIGINT")
    for part in parts[1:]:
        word = exp.BitwiseOr(this=word, expression=part)
    return word


def unpacked(word: exp.Expr, bits: Bits) -> exp.Expr:
    """Return the code that stands in some bits of a word."""
    moved = exp.paren(exp.BitwiseRightShift(this=word, expression=number(bits.shift)))
    return exp.paren(exp.BitwiseAnd(this=moved, expression=cast(number(bits.mask), "UBIGINT")))


__all__ = ["WORD", "Bits", "WordLayout", "bits_for", "joined", "moved_up", "unpacked"]
