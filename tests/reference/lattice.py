"""Full-domain generalization by looking at every node: slow, and nothing to get wrong.

Tables and hierarchies as in ``reference.datafly``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from reference.datafly import Row, Tree, generalize, outliers

Levels = tuple[int, ...]
Broken = Callable[[list[Row]], set[Row]]


@dataclass
class Node:
    """A node, its rows as they would be published (None where suppressed), and whether it keeps the promise."""

    levels: Levels
    rows: list[Row | None]
    anonymous: bool

    @property
    def suppressed(self) -> int:
        return sum(row is None for row in self.rows)


def nodes(
    rows: Sequence[Row],
    trees: Sequence[Tree],
    k: int,
    allowed: int,
    persons: Sequence[Hashable] | None = None,
    broken: Broken | None = None,
    spans: Sequence[tuple[int, int]] | None = None,
) -> list[Node]:
    """Return all nodes, in the order of their levels."""
    heights = [len(next(iter(tree.values()))) - 1 for tree in trees]
    found = []
    for levels in product(*(range(a, b + 1) for a, b in (spans or [(0, h) for h in heights]))):
        table = generalize(rows, trees, levels)
        bad = outliers(table, k, persons) | (broken(table) if broken is not None else set())
        kept = [None if row in bad else row for row in table]
        left_out = sum(row is None for row in kept)
        # What publishes no row is no release.
        found.append(Node(levels, kept, left_out <= allowed and left_out < len(kept)))
    return found


def below(a: Levels, b: Levels) -> bool:
    """Say whether a is another node that b generalizes."""
    return a != b and all(x <= y for x, y in zip(a, b, strict=True))


def minimal(found: Iterable[Node]) -> list[Levels]:
    """Return the anonymous nodes with no anonymous node below."""
    good = [n.levels for n in found if n.anonymous]
    return [levels for levels in good if not any(below(other, levels) for other in good)]


def lowest(found: Iterable[Node]) -> list[Levels]:
    """Return the anonymous nodes of the least height."""
    good = [n.levels for n in found if n.anonymous]
    least = min((sum(levels) for levels in good), default=0)
    return [levels for levels in good if sum(levels) == least]
