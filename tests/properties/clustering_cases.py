"""Random small tables for the clustering algorithms, as their slow references see them, and their distances again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from reference.space import Line, Space, Tree

GRAIN = 2.0**-26
"""Numbers and widths are multiples of it."""


def rounded(number: float) -> float:
    return round(number / GRAIN) * GRAIN


def random_line(rng: np.random.Generator, n: int, few: bool, tight: bool = True) -> Line:
    """Few distinct numbers on a coarse grid, or continuous ones; some missing, at times all.

    The cap is the range, or more, or (``tight``) at times less.
    """
    scale = float(rng.choice([1.0, 1.0, 8.0]))
    if few:
        steps = int(rng.integers(1, 7))
        numbers = [rounded(float(i) / steps * scale) for i in rng.integers(0, steps + 1, n)]
    else:
        drawn = rng.random(n) if rng.random() < 0.5 else rng.normal(0.0, 0.5, n)
        numbers = [rounded(float(x) * scale) for x in drawn]
    # A cap is a distance: never 0 where the numbers differ, and not always where they are all the same.
    whole = max(numbers) - min(numbers) or rounded(float(rng.choice([0.0, 0.5, 1.0])))
    factor = float(rng.choice([0.3, 0.7, 1.0, 1.0, 1.0, 2.0] if tight else [1.0, 1.0, 2.0]))
    missing = float(rng.choice([0.0, 0.0, 0.1, 0.4, 1.0], p=[0.3, 0.27, 0.2, 0.2, 0.03]))
    gone = rng.random(n) < missing
    return Line([None if g else v for v, g in zip(numbers, gone, strict=True)], rounded(whole * factor))


def random_tree(rng: np.random.Generator, n: int, few: bool, ordered: bool = False) -> Tree:
    """A tree of up to five levels over a few leaves or many, with widths that grow upwards, at times not at all.

    A node is a run of places if ``ordered``; else in half of the trees the places are mixed up. In some trees one leaf,
    that of NULL, hangs from the top alone: the last, unless they are mixed up.
    """
    size = int(rng.integers(1, 6)) if few else int(rng.integers(4, 31))
    null = size > 1 and rng.random() < 0.3
    levels = [list(range(size))]
    for _ in range(int(rng.integers(0, 4))):
        below, parents = levels[-1], [0]
        for node in range(1, max(below) + 1):
            apart = rng.random() < 0.4 or (null and node == max(below))
            parents.append(parents[-1] + int(apart))
        levels.append([parents[node] for node in below])
    if size > 1 or rng.random() < 0.5:
        levels.append([0] * size)
    widths = [[0.0] * size]
    counted = rng.random() < 0.7
    for below, level in pairwise(levels):
        found = []
        for node in range(max(level) + 1):
            inside = [p for p in range(size) if level[p] == node]
            floor = max(widths[-1][below[p]] for p in inside)
            if counted:
                # As NCP has it: all leaves but one, over all leaves but one of the tree.
                found.append(rounded((len(inside) - 1) / (size - 1)) if size > 1 else 0.0)
            elif len(inside) == 1:
                found.append(0.0)
            else:
                found.append(floor + rounded(float(rng.choice([0.0, 0.25, 0.25, rng.random()]))))
        widths.append(found)
    if not ordered and rng.random() < 0.5:
        mixed = rng.permutation(size)
        levels = [levels[0], *([level[p] for p in mixed] for level in levels[1:])]
    common = rng.random() < 0.5
    places = rng.integers(0, size, n) if common else np.minimum(rng.geometric(0.4, n) - 1, size - 1)
    return Tree([int(p) for p in places], levels, widths)


def random_space(
    rng: np.random.Generator,
    *,
    weighted: bool = False,
    ordered: bool = False,
    tight: bool = True,
    most: int = 60,
) -> Space:
    """Draw 1 to ``most`` items of 1 to 4 columns, lines and trees; in half of the spaces ties abound.

    ``weighted`` (for greedy and kaca) draws weights of 1 to 4 in most spaces; ``ordered`` makes every node of a tree a
    run of places; without ``tight`` no cap is less than the range of its numbers.
    """
    n = int(rng.integers(1, most + 1))
    few = rng.random() < 0.5
    columns: list[Line | Tree] = []
    for _ in range(int(rng.integers(1, 5))):
        is_line = rng.random() < 0.6
        columns.append(random_line(rng, n, few, tight) if is_line else random_tree(rng, n, few, ordered))
    weights = [int(w) for w in rng.integers(1, 5, n)] if weighted and rng.random() < 0.75 else None
    return Space(columns, weights, str(rng.choice(["sum", "squares"])))


# Distances as matrices.


def deltas(space: Space) -> list[np.ndarray]:
    """For each column, how far every item is from every other."""
    found = []
    for column in space.columns:
        if isinstance(column, Line):
            x = np.array([np.nan if v is None else v for v in column.values])
            gone = np.isnan(x)
            d = np.minimum(np.abs(x[:, None] - x[None, :]), column.cap)
            d[gone[:, None] != gone[None, :]] = column.cap
            d[gone[:, None] & gone[None, :]] = 0.0
        else:
            d = np.full((space.n, space.n), np.nan)
            for level in reversed(range(len(column.nodes))):
                node = np.array(column.nodes[level])[np.array(column.places)]
                same = node[:, None] == node[None, :]
                d = np.where(same, np.array(column.widths[level])[node][:, None], d)
        found.append(d)
    return found


def added(space: Space, parts: Sequence[np.ndarray]) -> np.ndarray:
    total = np.zeros(parts[0].shape)
    for d in parts:
        total = total + (d**2 if space.norm == "squares" else d)
    return total


def from_centroid(space: Space, members: Sequence[int]) -> np.ndarray:
    """How far all items are from the centroid of some."""
    parts = []
    for column in space.columns:
        if isinstance(column, Line):
            x = np.array([np.nan if v is None else v for v in column.values])
            here = x[list(members)]
            here = here[~np.isnan(here)]
            if len(here):
                d = np.where(np.isnan(x), column.cap, np.minimum(np.abs(x - here.sum() / len(here)), column.cap))
            else:
                d = np.where(np.isnan(x), 0.0, column.cap)
        else:
            mode = np.bincount(np.array(column.places)[list(members)]).argmax()
            d = np.full(space.n, np.nan)
            for nodes, widths in reversed(list(zip(column.nodes, column.widths, strict=True))):
                here = np.array([nodes[p] == nodes[mode] for p in column.places])
                d[here] = widths[nodes[mode]]
        parts.append(d)
    return added(space, parts)


def widest(parts: Sequence[np.ndarray], members: Sequence[int]) -> float:
    """The width of a box: in every column that of its two farthest members (where no cap is less than a range)."""
    return float(sum(d[np.ix_(members, members)].max() for d in parts))
