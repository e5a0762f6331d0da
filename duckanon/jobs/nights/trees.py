"""The cuts that a division made, as a tree that other rows go down, too.

Labels alone do not say which class a row was in: children that cannot stand alone are published under their parent's
label, beside classes of its other children, and so regions overlap. The cuts say it: whatever values a row has, they
lead to one class or to none. A row belongs to the class that it comes to if the class's label is true of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from duckanon.errors import DuckanonError
from duckanon.kernels.descending import NOWHERE, descend
from duckanon.kernels.layout import AT, BY, ON, PIECE, PIECE_END

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.algorithms.partition.ordered_axis import Placed
    from duckanon.recoding.partitioned_rows import Cuts

    Integers = NDArray[np.int64]

THRESHOLD = -1
"""The level of a cut in two: by whether a place comes before that of a value."""
_MOST = 20_000_000
"""Values of classes that are looked at side by side."""


@dataclass(frozen=True)
class CutTree:
    """Cuts, the first of them that of the whole; a line for each of the ways on.

    Line i is of cut ``cut[i]`` on axis ``axis[i]``. By ``level[i]`` it is for rows whose node on that level is that of
    ``place[i]`` (0: that very value), or with -1 for those whose place is ``place[i]`` or later. ``way[i]`` is another
    cut, or -1 - c for class c; ``rest[i]``, the same for all lines of a cut, is the way of all other rows.
    """

    cut: Integers
    axis: Integers
    level: Integers
    place: Integers
    way: Integers
    rest: Integers

    @classmethod
    def of(cls, cuts: Cuts, classes: int, members: Callable[[int], tuple[Integers, Integers]]) -> CutTree:
        """Return the tree of cuts; ``members`` gives ``(class, code)`` of an axis once each, in the order of classes.

        Children that the first night does not know go with those that were left over under the same parent.
        """
        lines = cuts.lines
        # A partition is known by its classes; the outer ones come first, the whole before all.
        keys = [start * (classes + 1) + classes - end for start, end in (lines[:, :2].T, lines[:, 2:4].T)]
        wholes, cut = np.unique(keys[0], return_inverse=True)
        at = np.minimum(np.searchsorted(wholes, keys[1]), max(len(wholes) - 1, 0))
        single = lines[:, PIECE_END] - lines[:, PIECE] == 1
        inner = wholes[at] == keys[1] if len(wholes) else single
        if (inner == single).any() or (len(wholes) and wholes[0] != 0) or (classes > 1 and not len(wholes)):
            raise DuckanonError("The cuts do not lead to the classes: the recoding cannot be stored.")
        way = np.where(single, -1 - lines[:, PIECE], at)
        two = lines[:, AT] >= 0
        found = [_in_two(lines[two], cut[two], way[two])]
        for axis in np.unique(lines[~two, ON]):
            several = ~two & (lines[:, ON] == axis)
            own = members(int(axis))
            found += _by_nodes(lines[several], cut[several], way[several], own, cuts.placed[axis])
        return cls(*(np.concatenate(column).astype(np.int64) for column in zip(*found, strict=True)))

    def on(self, axes: Sequence[Placed], places: Sequence[Integers]) -> AppliedTree:
        """Return the tree on the axes of another night; ``places`` has, axis by axis, the places of those of before."""
        low, high = np.zeros_like(self.cut), np.zeros_like(self.cut)
        for j, (own, now) in enumerate(zip(axes, places, strict=True)):
            size = own.axis.size
            for level in np.unique(self.level[self.axis == j]):
                here = (self.axis == j) & (self.level == level)
                at = now[self.place[here]]
                if level == THRESHOLD:
                    low[here], high[here] = at, size - 1
                else:
                    low[here], high[here] = (ends[at] for ends in runs_of(own, int(level)))
        order = np.lexsort([low, self.cut])
        _, first = np.unique(self.cut[order], return_index=True)
        return AppliedTree(
            self.axis[order][first],
            self.rest[order][first],
            np.append(first, len(order)).astype(np.int64),
            low[order],
            high[order],
            self.way[order],
        )


@dataclass(frozen=True)
class AppliedTree:
    """A tree on axes, see ``kernels.descending.descend``."""

    axes: Integers
    rest: Integers
    starts: Integers
    low: Integers
    high: Integers
    ways: Integers

    def classes_of(
        self, places: NDArray[np.int32], first: NDArray[np.int32], last: NDArray[np.int32]
    ) -> NDArray[np.int64]:
        """Return the class of each row, -1 for none; ``first`` and ``last`` are what the labels of classes cover."""
        found = np.empty(len(places), dtype=np.int64)
        tree = (self.axes, self.rest, self.starts, self.low, self.high, self.ways)
        descend(np.ascontiguousarray(places, dtype=np.int32), *tree, first, last, found)
        return found


def runs_of(own: Placed, level: int) -> tuple[Integers, Integers]:
    """Return, place by place, the first and the last place of the node over it; on level 0 that is the place itself."""
    places = np.arange(own.axis.size, dtype=np.int64)
    if level == 0:
        return places, places
    nodes = np.asarray(own.axis.nodes[level])
    starts = np.flatnonzero(np.diff(nodes, prepend=-1))
    ends = np.append(starts[1:], len(nodes)) - 1
    at = np.searchsorted(starts, places, side="right") - 1
    return starts[at], ends[at]


_Lines = tuple["Integers", ...]


def _in_two(lines: Integers, cut: Integers, way: Integers) -> _Lines:
    """Return a line for each cut in two: the right side is the way, the left one the rest."""
    order = np.lexsort([lines[:, PIECE], cut])
    left, right = order[::2], order[1::2]
    level = np.full(len(right), THRESHOLD)
    return cut[right], lines[right, ON], level, lines[right, AT], way[right], way[left]


def _by_nodes(
    lines: Integers, cut: Integers, way: Integers, members: tuple[Integers, Integers], own: Placed
) -> list[_Lines]:
    """Return a line for each node on the level of its cut, of cuts by nodes of one axis."""
    classes, codes = members
    starts, ends = (np.searchsorted(classes, lines[:, c]) for c in (PIECE, PIECE_END))
    known: list[_Lines] = []
    steps = np.cumsum(ends - starts) // _MOST
    for step in np.unique(steps):
        some = np.flatnonzero(steps == step)
        counts = (ends - starts)[some]
        line = np.repeat(some, counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        place = own.place[codes[np.repeat(starts[some], counts) + within]]
        for level in np.unique(lines[some, BY]):
            here = lines[line, BY] == level
            node = runs_of(own, int(level))[0][place[here]]
            pairs, first = np.unique(np.stack([line[here], node]), axis=1, return_index=True)
            known.append((pairs[0], place[here][first]))
    line, place = (np.concatenate(column) for column in zip(*known, strict=True))
    # A group of several nodes is what was left over.
    several = np.flatnonzero(np.bincount(line, minlength=len(lines)) > 1)
    left = np.full(int(cut.max()) + 1, NOWHERE)
    left[cut[several]] = way[several]
    return [(cut[line], lines[line, ON], lines[line, BY], place, way[line], left[cut[line]])]


__all__ = ["THRESHOLD", "AppliedTree", "CutTree", "runs_of"]
