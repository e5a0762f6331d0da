"""A table and what is published of it, row by row: what slow, obviously right references read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

Row = tuple[Hashable, ...]
Tree = dict[Hashable, list[Hashable]]


@dataclass(frozen=True)
class Cell:
    """What is published in one place: a text that can stand for some of the original values of its column."""

    text: str | None
    level: int | None
    leaves: int
    covers: frozenset[Hashable]


@dataclass
class Domain:
    """A column: the leaves of its domain, the height of its hierarchy, the numbers of its values if it is ordered."""

    leaves: int
    height: int | None
    numbers: dict[Hashable, float | None] | None = None
    weight: float = 1.0
    labels: bool = False
    """Whether labels of a hierarchy are published, whose leaves count, and no intervals."""


@dataclass
class Table:
    """Original rows, and for each its published cells, or None if it is suppressed.

    ``known`` has the cells of every column that exist, published or not; ``labels`` the sensitive values of the rows.
    """

    rows: Sequence[Row]
    cells: Sequence[tuple[Cell, ...] | None]
    domains: Sequence[Domain]
    known: Sequence[set[Cell]] = field(default_factory=list)
    labels: Sequence[Hashable] | None = None
    k: int = 1

    @property
    def n(self) -> int:
        return len(self.rows)

    @property
    def width(self) -> int:
        return len(self.domains)

    @property
    def published(self) -> list[tuple[Cell, ...]]:
        return [c for c in self.cells if c is not None]

    def sizes(self) -> Counter[tuple[Cell, ...]]:
        return Counter(self.published)

    def column(self, j: int) -> list[Hashable]:
        return [row[j] for row in self.rows]

    def number(self, j: int, value: Hashable) -> float | None:
        """The size of an ordered value, the rank of any other, NULL being the last."""
        numbers = self.domains[j].numbers
        if numbers is not None:
            return numbers[value]
        present = sorted({v for v in self.column(j) if v is not None}, key=str)
        return float(present.index(value) if value is not None else len(present))

    def suppressed(self) -> Table:
        return replace(self, cells=[None] * self.n, known=[set() for _ in self.domains])


def full_domain(
    rows: Sequence[Row],
    trees: Sequence[Tree],
    levels: Sequence[int],
    kept: Sequence[bool],
    numbers: Sequence[dict[Hashable, float | None] | None] | None = None,
    **more: object,
) -> Table:
    """Return the release that generalizes every column to one level; ``trees`` maps values to labels, level 0 first."""
    made: list[dict[Hashable, Cell]] = []
    for j, (tree, level) in enumerate(zip(trees, levels, strict=True)):
        present = {row[j] for row in rows}
        column = {}
        for value in present:
            label = tree[value][level]
            under = [leaf for leaf, labels in tree.items() if labels[level] == label]
            text = label if label is None else str(label)
            column[value] = Cell(text, level, len(under), frozenset(present & set(under)))
        made.append(column)
    cells = [
        tuple(made[j][v] for j, v in enumerate(row)) if keep else None for row, keep in zip(rows, kept, strict=True)
    ]
    domains = [
        Domain(len(tree), len(next(iter(tree.values()))) - 1, numbers[j] if numbers else None, labels=True)
        for j, tree in enumerate(trees)
    ]
    return Table(rows, cells, domains, [set(column.values()) for column in made], **more)  # type: ignore[arg-type]
