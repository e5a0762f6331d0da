"""Loss metrics straight from their definitions, on plain Python tables.

``rows`` holds the original values, ``levels`` the level of each column, ``kept`` says which rows are published,
``trees`` maps every value of a column's domain to its labels, level 0 first; a domain may hold values that the rows
lack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

Row = tuple[Hashable, ...]
Tree = dict[Hashable, list[Hashable]]


def loss(rows: Sequence[Row], trees: Sequence[Tree], levels: Sequence[int], kept: Sequence[bool]) -> list[float]:
    """Per attribute (sum of share - n/M) / (n - n/M), share = leaves under the label / M, 1 for a suppressed row."""
    found = []
    n = len(rows)
    for j, (tree, level) in enumerate(zip(trees, levels, strict=True)):
        m = len(tree)
        if m == 1:
            found.append(0.0)
            continue
        total = 0.0
        for row, keep in zip(rows, kept, strict=True):
            label = tree[row[j]][level]
            total += sum(labels[level] == label for labels in tree.values()) / m if keep else 1.0
        found.append((total - n / m) / (n - n / m))
    return found


def precision(rows: Sequence[Row], trees: Sequence[Tree], levels: Sequence[int], kept: Sequence[bool]) -> list[float]:
    """Per attribute 1 - mean of level / height, a suppressed row counting as the top."""
    found = []
    for tree, level in zip(trees, levels, strict=True):
        height = len(next(iter(tree.values()))) - 1
        found.append(1 - sum(level / height if keep else 1.0 for keep in kept) / len(rows))
    return found


def classes(rows: Sequence[Row], trees: Sequence[Tree], levels: Sequence[int], kept: Sequence[bool]) -> Counter[Row]:
    """Return the kept classes with their sizes."""
    return Counter(
        tuple(tree[v][level] for v, tree, level in zip(row, trees, levels, strict=True))
        for row, keep in zip(rows, kept, strict=True)
        if keep
    )


def discernibility(rows: Sequence[Row], trees: Sequence[Tree], levels: Sequence[int], kept: Sequence[bool]) -> float:
    """Sum of squared sizes of kept classes, n for each suppressed row."""
    squares = sum(size**2 for size in classes(rows, trees, levels, kept).values())
    return float(squares + len(rows) * sum(not keep for keep in kept))


def average_class_size(
    rows: Sequence[Row], trees: Sequence[Tree], levels: Sequence[int], kept: Sequence[bool]
) -> float:
    """Rows divided by kept classes, plus one class where any row is suppressed."""
    return len(rows) / (len(classes(rows, trees, levels, kept)) + (not all(kept)))
