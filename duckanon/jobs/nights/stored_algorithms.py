"""Algorithms that search nothing: they apply a stored recoding.

Rows whose class violates a model in this run, and rows that no stored region covers, are held back. They do not count
against the suppression limit.

Labels alone do not say which class a row was in: children too small for a class of their own are published under their
parent's label, beside classes of its other children, and so regions overlap. So the cuts are stored as a tree: whatever
values a row has, they lead to one class or to none. The row is in that class if the class's label covers it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sqlglot import exp

from duckanon.algorithms.base import Algorithm
from duckanon.algorithms.full_domain.nodes import evaluate, judge
from duckanon.algorithms.partition.partition import Partitioner, Parts
from duckanon.engine.sql.axes import RUN
from duckanon.engine.sql.relations import col, named, same, subquery, table
from duckanon.errors import DataError, DuckanonError, EngineError, InfeasibleError, ParameterError
from duckanon.kernels.descending import NOWHERE, descend
from duckanon.kernels.layout import AT, BY, ON, PIECE, PIECE_END

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.algorithms.base import Problem
    from duckanon.algorithms.full_domain.nodes import Node
    from duckanon.algorithms.partition.partition import Items, OrderedAxis, PartitionAxis, Rules
    from duckanon.encoding.dictionaries import Coded
    from duckanon.engine.base import Engine
    from duckanon.models.base import Model

    Integers = NDArray[np.int64]
    from duckanon.recoding.coded_rows import Cuts

REFRESH = "Run once with recoding = 'refresh'."
REGIONS, CUTS = "regions.parquet", "cuts.parquet"
CUT_COLUMNS = ("cut", "axis", "level", "place", "way", "rest")


def values_file(position: int) -> str:
    """Return the name of the file with the values of a quasi-identifier that regions and cuts are about."""
    return f"values-{position}.parquet"


@dataclass(frozen=True)
class StoredLevels(Algorithm):
    """The stored node, by the levels of the quasi-identifiers."""

    inner: Algorithm
    levels: tuple[int, ...]
    heights: tuple[int, ...]

    searches: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.inner.name)

    def search(self, problem: Problem) -> Node:
        for name, height, before in zip(problem.names, problem.heights, self.heights, strict=True):
            _require_height(name, height, before)
        node = evaluate(problem, self.levels)
        node = node if problem.size_only else judge(problem, node)
        if node.outlier_rows == problem.frequency.rows:
            raise InfeasibleError(
                f"At the stored levels no class satisfies the models: all {node.outlier_rows} rows would be held back. "
                f"{REFRESH}"
            )
        return node

    def allowed_rows(self, rows: int, suppression_limit: float, models: tuple[Model, ...]) -> int:
        """Return all rows: those held back wait until their class is large enough."""
        return rows

    def supports(self, model: Model) -> bool:
        return self.inner.supports(model)

    @property
    def counts_values(self) -> bool:
        return self.inner.counts_values

    def parameters(self) -> dict[str, Any]:
        return self.inner.parameters()


@dataclass(frozen=True)
class StoredRegions(Partitioner):
    """The classes stored in a folder, and the cuts that lead to them, see ``frozen.freeze``.

    All rows are assigned at once, in arrays.
    """

    inner: Partitioner
    folder: Path
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    heights: tuple[int, ...]
    outputs: tuple[str, ...]
    applied: AppliedRegions | None = field(default=None, repr=False)

    searches: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.inner.name)
        object.__setattr__(self, "ordered", self.inner.ordered)
        # Rows go down the stored cuts one by one: no presplit is needed.
        object.__setattr__(self, "budget", sys.maxsize)

    def known_values(self, engine: Engine, attribute: str) -> exp.Query | None:
        """Return the ends of regions and the places of cuts: with them regions have the labels they had before."""
        values = engine.parquet([self.folder / values_file(self.names.index(attribute))])
        return exp.select(col("value")).from_(subquery(values, "v"))

    def divides_as(self, attribute: str) -> str | None:
        """Return the kind of the stored axis: labels that were listed then could look like a grid now."""
        return self.kinds[self.names.index(attribute)]

    def on_axes(self, engine: Engine, coded: Sequence[Coded], placed: Sequence[OrderedAxis]) -> Self:
        """Return the algorithm with the stored regions and cuts on the axes of this run."""
        for name, kind, height, levels, own in zip(self.names, self.kinds, self.heights, coded, placed, strict=True):
            now = "tree" if own.axis.atoms is None else "line" if own.grid is None else "grid"
            if now != kind:
                raise DataError(
                    f"The column {name!r} is no longer cut as when the recoding was stored (it was a {kind} and is a "
                    f"{now}). {REFRESH}"
                )
            # A line is cut between values: its hierarchy is for metrics, and labels no region but the whole.
            if kind != "line":
                _require_height(name, levels.height, height)
        places = [self._places(engine, j, own) for j, own in enumerate(zip(coded, placed, strict=True))]
        regions = engine.arrow(engine.parquet([self.folder / REGIONS]))
        # Published bounds on a grid end where the values ended; only "*" covers whatever comes later.
        closed = [
            kind == "grid" and output != "interval" for kind, output in zip(self.kinds, self.outputs, strict=True)
        ]
        every = zip(self.kinds, placed, places, closed, strict=True)
        spans = [_span(regions, j, *own) for j, own in enumerate(every)]
        low, high, levels_of = (np.stack([span[i] for span in spans], axis=1).astype(np.int32) for i in range(3))
        cuts = engine.arrow(engine.parquet([self.folder / CUTS]))
        tree = CutTree(*(cuts.column(c).to_numpy().astype(np.int64) for c in CUT_COLUMNS))
        return replace(self, applied=AppliedRegions(tree.on(placed, places), low, high, levels_of))

    def _places(self, engine: Engine, j: int, own: tuple[Coded, OrderedAxis]) -> Integers:
        """Return the places of this run by the stored places."""
        coded, placed = own
        query = exp.select(named(col("place", "r"), "place"), named(col("code", "v"), "code"))
        query = query.from_(subquery(engine.parquet([self.folder / values_file(j)]), "r"))
        on = same(col("value", "v"), col("value", "r"))
        query = query.join(table(coded.dictionary.table, "v"), on=on, join_type="left")
        codes = engine.arrow(query.order_by(col("place", "r")))
        if codes.column("code").null_count:
            raise EngineError(f"The stored values of {self.names[j]!r} are not among those of this run. {REFRESH}")
        before, code = (codes.column(c).to_numpy().astype(np.int64) for c in ("place", "code"))
        now = np.zeros(int(before.max(initial=0)) + 1, dtype=np.int64)
        now[before] = placed.place[code]
        if placed.axis.atoms is not None and (np.diff(now[before]) <= 0).any():
            raise DataError(
                f"The values of {self.names[j]!r} are in another order than when the recoding was stored. {REFRESH}"
            )
        return now

    def divide(
        self,
        axes: Sequence[PartitionAxis],
        items: Items,
        rules: Rules,
        *,
        starts: NDArray[np.int64],
        regions: NDArray[np.int32] | None = None,
        threads: int | None = None,
        advance: Callable[[int], None] | None = None,
    ) -> Parts:
        if self.applied is None:
            raise ParameterError("Stored regions need axes: on_axes() comes first.")
        class_of = self.applied.classes_of(items.places)
        if (class_of < 0).all():
            raise InfeasibleError(f"No row is in a stored region: all would be held back. {REFRESH}")
        order = np.argsort(class_of, kind="stable").astype(np.int32)
        boxes, first = np.unique(class_of[order], return_index=True)
        outside = boxes < 0
        index = np.where(outside, 0, boxes)
        bounds = np.stack([self.applied.low[index], self.applied.high[index]], axis=2)
        if advance is not None:
            advance(len(class_of))
        ends = np.append(first, len(class_of)).astype(np.int64)
        return Parts(order, ends, bounds, self.applied.levels[index], judged=False, refused=outside)

    def allowed_rows(self, rows: int, suppression_limit: float, models: tuple[Model, ...]) -> int:
        """Return all rows: those held back wait until their class is large enough."""
        return rows

    def supports(self, model: Model) -> bool:
        return self.inner.supports(model)

    @property
    def reported(self) -> tuple[str, ...]:
        return self.inner.reported

    def parameters(self) -> dict[str, Any]:
        return self.inner.parameters()


def _require_height(name: str, height: int, before: int) -> None:
    if height != before:
        raise DataError(
            f"The hierarchy of {name!r} has {height} levels, and had {before} when the recoding was stored. {REFRESH}"
        )


@dataclass(frozen=True)
class AppliedRegions:
    """Cuts and classes on the axes of a run: the first and last places of labels, and the levels of nodes."""

    tree: AppliedTree
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    levels: NDArray[np.int32]

    def classes_of(self, places: NDArray[Any]) -> Integers:
        """Return the class of each row, -1 for none."""
        return self.tree.classes_of(places, self.low, self.high)


def _span(
    regions: Any, j: int, kind: str, own: OrderedAxis, places: Integers, closed: bool
) -> tuple[Integers, Integers, Integers]:
    """Return the first and last places of the regions on an axis, and the levels of their labels.

    A run of all values covers whatever comes later, unless it is ``closed``.
    """
    axis = own.axis
    size, last = axis.size, axis.size - 1 - axis.null

    def column(name: str) -> Integers:
        return np.asarray(regions.column(f"{name}_{j}").to_numpy(zero_copy_only=False)).astype(np.int64)

    levels = column("v")
    a, b = places[column("a")], places[column("b")]
    at_first, at_last = column("first") > 0, column("last") > 0
    low, high = np.minimum(a, b), np.maximum(a, b)
    run, alone = levels == RUN, a == b
    if kind == "tree":
        for level in range(1, len(axis.nodes)):
            starts, ends = runs_of(own, level)
            here = levels == level
            low[here], high[here] = starts[a[here]], ends[a[here]]
        above = levels == len(axis.nodes) - 1
    else:
        if kind == "grid":
            # All values of a group have one label, also those that did not occur when it was stored.
            atoms = np.asarray(axis.atoms)[: last + 1]
            first, final = atoms[low[run]], atoms[high[run]]
            low[run] = np.searchsorted(atoms, first, side="left")
            high[run] = np.searchsorted(atoms, final, side="right") - 1
            alone[run] = first == final
        else:
            # The outermost regions of a line are open: "<= 30" covers whatever is smaller.
            low[run & at_first & ~alone] = 0
            high[run & at_last & ~alone] = last
        above = levels > 0
        # A single value (on a grid, a group) is its own label, even where it is the only one of its column.
        whole = run & at_first & at_last & ~alone
        if not closed:
            low[whole], high[whole] = 0, last
        levels[above] = axis.top
    # The top covers every value, and NULL if it did so before.
    low[above] = 0
    high[above] = np.where(b[above] > last, size - 1, last)
    return low, high, levels


THRESHOLD = -1
"""The level of a cut in two: by whether a place comes before that of a value."""
_MOST = 20_000_000
"""How many values of classes are compared at a time."""


@dataclass(frozen=True)
class CutTree:
    """Cuts, the first of them that of the whole table; a line for each branch.

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

        Values that occur later go with the leftover children of the same parent.
        """
        lines = cuts.lines
        # A part is identified by its classes; outer parts come before inner ones, the whole first.
        keys = [start * (classes + 1) + classes - end for start, end in (lines[:, :2].T, lines[:, 2:4].T)]
        wholes, cut = np.unique(keys[0], return_inverse=True)
        at = np.minimum(np.searchsorted(wholes, keys[1]), max(len(wholes) - 1, 0))
        single = lines[:, PIECE_END] - lines[:, PIECE] == 1
        inner = wholes[at] == keys[1] if len(wholes) else single
        if (inner == single).any() or (len(wholes) and wholes[0] != 0) or (classes > 1 and not len(wholes)):
            raise DuckanonError("The recoding cannot be stored: its cuts do not lead to its classes.")
        way = np.where(single, -1 - lines[:, PIECE], at)
        two = lines[:, AT] >= 0
        parts = [_in_two(lines[two], cut[two], way[two])]
        for axis in np.unique(lines[~two, ON]):
            several = ~two & (lines[:, ON] == axis)
            class_codes = members(int(axis))
            parts += _by_nodes(lines[several], cut[several], way[several], class_codes, cuts.placed[axis])
        return cls(*(np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True)))

    def on(self, axes: Sequence[OrderedAxis], places: Sequence[Integers]) -> AppliedTree:
        """Return the tree on the axes of another run; ``places`` maps the stored places of each axis to its places."""
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
        """Return the class of each row, -1 for none; labels of classes cover the places ``first`` to ``last``."""
        class_of = np.empty(len(places), dtype=np.int64)
        tree = (self.axes, self.rest, self.starts, self.low, self.high, self.ways)
        descend(np.ascontiguousarray(places, dtype=np.int32), *tree, first, last, class_of)
        return class_of


def runs_of(own: OrderedAxis, level: int) -> tuple[Integers, Integers]:
    """Return, for each place, the first and last place of the node above it; on level 0 the place itself."""
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
    lines: Integers, cut: Integers, way: Integers, members: tuple[Integers, Integers], own: OrderedAxis
) -> list[_Lines]:
    """Return a line for each node on the level of its cut, of cuts by nodes of one axis."""
    classes, codes = members
    starts, ends = (np.searchsorted(classes, lines[:, c]) for c in (PIECE, PIECE_END))
    nodes: list[_Lines] = []
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
            nodes.append((pairs[0], place[here][first]))
    line, place = (np.concatenate(column) for column in zip(*nodes, strict=True))
    # A group of several nodes has the leftover children.
    several = np.flatnonzero(np.bincount(line, minlength=len(lines)) > 1)
    left = np.full(int(cut.max()) + 1, NOWHERE)
    left[cut[several]] = way[several]
    return [(cut[line], lines[line, ON], lines[line, BY], place, way[line], left[cut[line]])]
