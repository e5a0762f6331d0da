"""Codes and numbers packed into 64-bit words: the layout, and packing and unpacking in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlglot import exp

from duckanon.engine.sql.relations import cast, number

WORD = 64
"""Bits of a word."""


class Bits(NamedTuple):
    """The position of a code: its word, its shift within the word, and the mask of its bits after the shift."""

    word: int
    shift: int
    mask: int


def bits_for(size: int) -> int:
    """Return how many bits are needed for the codes ``0 .. size - 1``.

    Examples
    --------
    >>> bits_for(1), bits_for(4), bits_for(1000)
    (1, 2, 10)
    """
    return max(1, (size - 1).bit_length())


@dataclass
class WordLayout:
    """The layout of a row of words: ``used`` is how many bits of each word are taken, from the lowest on.

    At most ``limit`` bits of a word are taken. With ``in_order``, codes are only added to the last word or a new one.

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
        """Reserve bits for one of ``size`` codes, in the first word with enough free bits."""
        needed = bits_for(size)
        first = max(0, len(self.used) - 1) if self.in_order else 0
        fitting = (w for w in range(first, len(self.used)) if self.used[w] + needed <= self.limit)
        word = next(fitting, len(self.used))
        self.used += [0] * (word == len(self.used))
        self.used[word] += needed
        return Bits(word, self.used[word] - needed, 2**needed - 1)

    def number(self) -> int:
        """Reserve a number of 32 bits, in the second half of a word or in a new word; return its index among these."""
        word = next((w for w, used in enumerate(self.used) if used <= WORD // 2), None)
        if word is None:
            return self.numbers(1)
        self.used[word] = WORD
        return 2 * word + 1

    def numbers(self, count: int) -> int:
        """Reserve adjacent numbers of 32 bits; return the index of the first."""
        return 2 * self.words((count + 1) // 2, WORD - WORD // 2 * (count % 2))

    def words(self, count: int = 1, last: int = WORD) -> int:
        """Reserve whole words, of which the last has ``last`` bits taken; return the first."""
        self.used += ([WORD] * count)[: count - 1] + [last] * (count > 0)
        return len(self.used) - count


def moved_up(code: exp.Expr, shift: int) -> exp.Expr:
    """Return a code shifted to its position in a word."""
    wide = cast(code, "UBIGINT")
    return exp.Mul(this=wide, expression=cast(number(1 << shift), "UBIGINT")) if shift else wide


def joined(parts: Sequence[exp.Expr]) -> exp.Expr:
    """Return the word of several codes, each shifted to its position."""
    word = parts[0] if parts else cast(number(0), "UBIGINT")
    for part in parts[1:]:
        word = exp.BitwiseOr(this=word, expression=part)
    return word


def unpacked(word: exp.Expr, bits: Bits) -> exp.Expr:
    """Return the code at a position of a word."""
    moved = exp.paren(exp.BitwiseRightShift(this=word, expression=number(bits.shift)))
    return exp.paren(exp.BitwiseAnd(this=moved, expression=cast(number(bits.mask), "UBIGINT")))


__all__ = ["WORD", "Bits", "WordLayout", "bits_for", "joined", "moved_up", "unpacked"]
