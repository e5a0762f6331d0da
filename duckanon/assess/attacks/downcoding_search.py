"""Downcoding: predicates made of published bounds that hold for one person alone (Cohen 2022).

A class tells bounds for each column. Who puts "and the age is the lower bound" behind the description of the class
singles somebody out if exactly one member has that age. With bounds that are the smallest and largest value of the
class there is always somebody, and with few members it is often one alone; with bounds from a grid it is chance. The
same predicate with any other value of the cell in place of the bound is that chance.

A published tuple of points (medians, medoids, means) is a predicate by itself: that everything is as published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


class Line(Protocol):
    """A column: cell c covers the places from ``low[c]`` to ``high[c]``.

    Those of a cell with gaps are ``members[start[c]:stop[c]]``; ``start[c]`` is -1 where there are no gaps.
    """

    @property
    def low(self) -> Floats:
        """The first place of each cell, -inf where any will do."""

    @property
    def high(self) -> Floats:
        """The last place of each cell."""

    @property
    def start(self) -> Ints:
        """Where the members of a cell begin."""

    @property
    def stop(self) -> Ints:
        """Where they end."""

    @property
    def members(self) -> Floats:
        """The places of cells with gaps."""


@dataclass(frozen=True)
class Singled:
    """How many predicates there were, how many held for one person alone, and how many would by chance.

    ``bounds``, ``bounds_hit`` and ``bounds_chance`` are of predicates with a bound in them; ``tuples`` and
    ``tuples_hit`` of the published tuples as they are.
    """

    bounds: int = 0
    bounds_hit: int = 0
    bounds_chance: float = 0.0
    tuples: int = 0
    tuples_hit: int = 0


def singled_out(lines: Sequence[Line], cells: NDArray[np.int32], points: Floats, weights: Ints) -> Singled:
    """Try the predicates of published tuples on people.

    Parameters
    ----------
    lines : sequence of Line
    cells : array (tuples, columns)
        The published tuples that are tried.
    points : array (people, columns)
        Where people lie, each combination once; ``weights`` says how many people have it.

    Notes
    -----
    Chance is that a place which is taken at random among those in the cell that anybody of the table has, in place of
    the bound, gives a predicate that holds for one person alone. Cells of one place, and those that stand for
    everything, have no bounds.
    """
    domains = [np.unique(points[:, j]) for j in range(len(lines))]
    # People are looked up column by column, the column with the most places first: few are left for the others.
    order = sorted(range(len(lines)), key=lambda j: -len(domains[j]))
    sorted_by = np.argsort(points[:, order[0]], kind="stable")
    leading = points[sorted_by, order[0]]
    hits = count = tuples_hit = 0
    chance = 0.0
    for own in cells:
        inside = _members(lines, order, own, points, sorted_by, leading)
        tuples_hit += int(weights[inside].sum() == 1)
        for j, line in enumerate(lines):
            allowed = domains[j][_covered(line, own[j], domains[j])]
            bounds = _bounds(line, int(own[j]))
            if not len(bounds):
                continue
            here, back = np.unique(points[inside, j], return_inverse=True)
            alone = here[np.bincount(back, weights=weights[inside], minlength=len(here)) == 1]
            count += len(bounds)
            hits += int(np.isin(bounds, alone).sum())
            chance += len(bounds) * len(alone) / max(len(allowed), 1)
    return Singled(count, hits, chance, len(cells), tuples_hit)


def _members(
    lines: Sequence[Line], order: Sequence[int], own: NDArray[np.int32], points: Floats, by: Ints, leading: Floats
) -> Ints:
    """Return the people whom a tuple can stand for."""
    first = order[0]
    line, cell = lines[first], own[first]
    ends = np.searchsorted(leading, line.low[cell], "left"), np.searchsorted(leading, line.high[cell], "right")
    inside = by[ends[0] : ends[1]]
    inside = inside[_covered(line, cell, points[inside, first])]
    for j in order[1:]:
        inside = inside[_covered(lines[j], own[j], points[inside, j])]
    return inside


def _covered(line: Line, cell: int, places: Floats) -> NDArray[np.bool_]:
    if line.start[cell] >= 0:
        return np.isin(places, line.members[line.start[cell] : line.stop[cell]])
    inside: NDArray[np.bool_] = (places >= line.low[cell]) & (places <= line.high[cell])
    return inside


def _bounds(line: Line, cell: int) -> Floats:
    """Return what a cell tells of its ends: its two bounds, or all members where it lists them."""
    if line.start[cell] >= 0:
        return line.members[line.start[cell] : line.stop[cell]]
    low, high = line.low[cell], line.high[cell]
    ends = np.array([low, high]) if low < high else np.empty(0)
    return ends[np.isfinite(ends)]


__all__ = ["Line", "Singled", "singled_out"]
