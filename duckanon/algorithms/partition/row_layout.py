"""What stands where in a row of 64-bit words."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Row:
    """How a row of words is filled: ``used`` are the bits of each word that are taken, from the lowest on.

    Examples
    --------
    >>> row = Row()
    >>> row.bits(1000), row.bits(4), row.number(), row.used
    ((0, 0, 1023), (0, 10, 3), 1, [64])
    """

    used: list[int] = field(default_factory=list)

    def bits(self, size: int) -> tuple[int, int, int]:
        """Return word, shift and mask of room for so many places, in the first word that has it."""
        width = max(1, (size - 1).bit_length())
        word = next((w for w, used in enumerate(self.used) if used + width <= 64), len(self.used))
        self.used += [0] * (word == len(self.used))
        self.used[word] += width
        return word, self.used[word] - width, 2**width - 1

    def number(self) -> int:
        """Return room for a number of 32 bits, counted in such numbers: the second half of a word, or a new word."""
        word = next((w for w, used in enumerate(self.used) if used <= 32), None)
        if word is None:
            return self.numbers(1)
        self.used[word] = 64
        return 2 * word + 1

    def numbers(self, count: int) -> int:
        """Return room for numbers of 32 bits beside each other."""
        return 2 * self.words((count + 1) // 2, 64 - 32 * (count % 2))

    def words(self, count: int = 1, last: int = 64) -> int:
        """Return room for whole words, of which the last has so many bits taken."""
        self.used += ([64] * count)[: count - 1] + [last] * (count > 0)
        return len(self.used) - count


__all__ = ["Row"]
