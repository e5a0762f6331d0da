"""The space in which clusters are made, slow and obviously right: items, how far apart they are, how wide a set is.

An item is a list of values, one for each column: a number or None on a line, a place on a tree. Numbers and widths are
multiples of 2**-26, so that their sums are exact whatever the order; squares are added in the order of the columns.
Ties go to the smallest number of an item everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Item = list[Any]


@dataclass(frozen=True)
class Line:
    """Numbers, or None where one is missing; no two values are farther apart than ``cap``."""

    values: Sequence[float | None]
    cap: float

    def delta(self, a: float | None, b: float | None) -> float:
        if a is None or b is None:
            return 0.0 if a is b else self.cap
        return min(abs(a - b), self.cap)

    def box(self, values: Sequence[float | None]) -> tuple[float | None, float | None, bool]:
        """The least and the greatest number, and whether any is missing."""
        numbers = [v for v in values if v is not None]
        return min(numbers, default=None), max(numbers, default=None), len(numbers) < len(values)

    def width(self, box: tuple[float | None, float | None, bool]) -> float:
        lo, hi, missing = box
        if lo is None or hi is None:
            return 0.0
        return self.cap if missing else hi - lo

    def centre(self, values: Sequence[float | None]) -> float | None:
        """The mean of the numbers that are there."""
        numbers = [v for v in values if v is not None]
        return sum(numbers) / len(numbers) if numbers else None


@dataclass(frozen=True)
class Tree:
    """Places among the leaves; ``nodes[level][place]`` and ``widths[level][node]``, level 0 being the leaves."""

    places: Sequence[int]
    nodes: Sequence[Sequence[int]]
    widths: Sequence[Sequence[float]]

    def delta(self, a: int, b: int) -> float:
        return self.width(self.box([a, b]))

    def box(self, values: Sequence[int]) -> tuple[int, int]:
        """The lowest common ancestor: its level and its number there."""
        for level, nodes in enumerate(self.nodes):
            if len({nodes[place] for place in values}) == 1:
                return level, nodes[values[0]]
        raise AssertionError("the last level has more than one node")

    def width(self, box: tuple[int, int]) -> float:
        return self.widths[box[0]][box[1]]

    def centre(self, values: Sequence[int]) -> int:
        """The most frequent place, the smallest of them."""
        counts = Counter(values)
        return min(counts, key=lambda place: (-counts[place], place))


class Space:
    """Items of one or more columns; each stands for ``weights`` rows, 1 unless given."""

    def __init__(self, columns: Sequence[Line | Tree], weights: Sequence[int] | None = None, norm: str = "sum"):
        assert norm in ("sum", "squares")
        self.columns = list(columns)
        self.norm = norm
        values: list[Sequence[Any]] = [c.values if isinstance(c, Line) else c.places for c in columns]
        self.items: list[Item] = [list(row) for row in zip(*values, strict=True)]
        self.n = len(self.items)
        self.weights = [1] * self.n if weights is None else list(weights)

    def distance(self, a: Item, b: Item) -> float:
        """How far two items (or an item and a centroid) are apart; with norm "squares" its square."""
        total = 0.0
        for j, column in enumerate(self.columns):
            d = column.delta(a[j], b[j])
            total += d * d if self.norm == "squares" else d
        return total

    def farthest(self, a: Item, among: Iterable[int]) -> int:
        return min(among, key=lambda i: (-self.distance(a, self.items[i]), i))

    def nearest(self, a: Item, among: Iterable[int], count: int) -> list[int]:
        return sorted(among, key=lambda i: (self.distance(a, self.items[i]), i))[:count]

    def centroid(self, members: Iterable[int]) -> Item:
        rows = [self.items[i] for i in members]
        return [column.centre([row[j] for row in rows]) for j, column in enumerate(self.columns)]

    def box(self, members: Iterable[int]) -> list[Any]:
        rows = [self.items[i] for i in members]
        return [column.box([row[j] for row in rows]) for j, column in enumerate(self.columns)]

    def width(self, members: Iterable[int]) -> float:
        """W, the width of the box of these items over all columns."""
        return sum(column.width(box) for column, box in zip(self.columns, self.box(members), strict=True))

    def rows(self, members: Iterable[int]) -> int:
        return sum(self.weights[i] for i in members)

    def cost(self, one: Sequence[int], other: Sequence[int]) -> float:
        """What all rows of two classes lose together when they are merged."""
        w, v = self.rows(one), self.rows(other)
        return (w + v) * self.width([*one, *other]) - w * self.width(one) - v * self.width(other)
