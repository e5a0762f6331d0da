"""Algorithms that search nothing: they apply a recoding that was stored on an earlier night.

Rows whose class breaks a promise tonight, and rows that no stored region covers, are held back. They do not count
against the suppression limit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sqlglot import exp

from duckanon.algorithms.base import Algorithm
from duckanon.algorithms.full_domain.nodes import evaluate, judge
from duckanon.algorithms.partition.partition import Parts
from duckanon.algorithms.partition.partitioner import Partitioner
from duckanon.engine.sql.boxes import RUN
from duckanon.engine.sql.relations import col, named, same, subquery, table
from duckanon.errors import DataError, EngineError, InfeasibleError, ParameterError
from duckanon.jobs.nights.trees import AppliedTree, CutTree, runs_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.algorithms.base import Problem
    from duckanon.algorithms.full_domain.nodes import Node
    from duckanon.algorithms.partition.items import Items
    from duckanon.algorithms.partition.ordered_axis import Placed
    from duckanon.algorithms.partition.partition import Axis, Rules
    from duckanon.encoding.dictionaries import Coded
    from duckanon.engine.base import Engine
    from duckanon.models.base import Model

    Integers = NDArray[np.int64]

REFRESH = "Run once with recoding = 'refresh'."
REGIONS, CUTS = "regions.parquet", "cuts.parquet"
CUT_COLUMNS = tuple(f.name for f in fields(CutTree))


def values_file(position: int) -> str:
    """Return the name of the file with the values of a quasi-identifier that regions and cuts are about."""
    return f"values-{position}.parquet"


@dataclass(frozen=True)
class StoredLevels(Algorithm):
    """The node that was stored, by the levels of the quasi-identifiers."""

    inner: Algorithm
    levels: tuple[int, ...]
    heights: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.inner.name)

    def search(self, problem: Problem) -> Node:
        for name, height, before in zip(problem.names, problem.heights, self.heights, strict=True):
            _require_height(name, height, before)
        node = evaluate(problem, self.levels)
        node = node if problem.size_only else judge(problem, node)
        if node.outlier_rows == problem.frequency.rows:
            raise InfeasibleError(
                f"At the stored levels no class keeps the promise: all {node.outlier_rows} rows would be held back. "
                f"{REFRESH}"
            )
        return node

    def allowed_rows(self, rows: int, suppression_limit: float, models: tuple[Model, ...]) -> int:
        """Return all of them: what is held back waits for its class to fill."""
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
    """The classes that were stored in a folder, and the cuts that lead to them, see ``frozen.freeze``.

    All rows are placed at once, in arrays.
    """

    inner: Partitioner
    folder: Path
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    heights: tuple[int, ...]
    outputs: tuple[str, ...]
    applied: Applied | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.inner.name)
        object.__setattr__(self, "ordered", self.inner.ordered)
        # Rows go down the stored cuts one by one: there is nothing to be cut in parts.
        object.__setattr__(self, "budget", sys.maxsize)

    def known_values(self, engine: Engine, attribute: str) -> exp.Query | None:
        """Return the ends of regions and where cuts are: with them regions are called what they were called before."""
        values = engine.parquet([self.folder / values_file(self.names.index(attribute))])
        return exp.select(col("value")).from_(subquery(values, "v"))

    def divides_as(self, attribute: str) -> str | None:
        """Return what the axis was: labels that were listed when they were stored could be taken for a grid now."""
        return self.kinds[self.names.index(attribute)]

    def on_axes(self, engine: Engine, coded: Sequence[Coded], placed: Sequence[Placed]) -> Self:
        """Return the algorithm with the stored regions and cuts on the axes of tonight."""
        for name, kind, height, levels, own in zip(self.names, self.kinds, self.heights, coded, placed, strict=True):
            found = "tree" if own.axis.atoms is None else "line" if own.grid is None else "grid"
            if found != kind:
                raise DataError(
                    f"The column {name!r} is no longer divided as when the recoding was stored (it was a {kind}, and "
                    f"is a {found}). {REFRESH}"
                )
            # A line is cut between values: its hierarchy is for measures only, and names no region but the whole.
            if kind != "line":
                _require_height(name, levels.height, height)
        places = [self._places(engine, j, own) for j, own in enumerate(zip(coded, placed, strict=True))]
        regions = engine.arrow(engine.parquet([self.folder / REGIONS]))
        # Bounds on a grid are told, so that all values together end there; only "*" takes in whatever comes.
        closed = [
            kind == "grid" and output != "interval" for kind, output in zip(self.kinds, self.outputs, strict=True)
        ]
        every = zip(self.kinds, placed, places, closed, strict=True)
        spans = [_span(regions, j, *own) for j, own in enumerate(every)]
        low, high, levels_of = (np.stack([span[i] for span in spans], axis=1).astype(np.int32) for i in range(3))
        cuts = engine.arrow(engine.parquet([self.folder / CUTS]))
        tree = CutTree(*(cuts.column(c).to_numpy().astype(np.int64) for c in CUT_COLUMNS))
        return replace(self, applied=Applied(tree.on(placed, places), low, high, levels_of))

    def _places(self, engine: Engine, j: int, own: tuple[Coded, Placed]) -> Integers:
        """Return the places of tonight by those that the stored values had."""
        coded, placed = own
        query = exp.select(named(col("place", "r"), "place"), named(col("code", "v"), "code"))
        query = query.from_(subquery(engine.parquet([self.folder / values_file(j)]), "r"))
        on = same(col("value", "v"), col("value", "r"))
        query = query.join(table(coded.dictionary.table, "v"), on=on, join_type="left")
        found = engine.arrow(query.order_by(col("place", "r")))
        if found.column("code").null_count:
            raise EngineError(f"The stored values of {self.names[j]!r} are not among those of tonight. {REFRESH}")
        before, code = (found.column(c).to_numpy().astype(np.int64) for c in ("place", "code"))
        now = np.zeros(int(before.max(initial=0)) + 1, dtype=np.int64)
        now[before] = placed.place[code]
        if placed.axis.atoms is not None and (np.diff(now[before]) <= 0).any():
            raise DataError(
                f"The values of {self.names[j]!r} are in another order than when the recoding was stored. {REFRESH}"
            )
        return now

    def divide(
        self,
        axes: Sequence[Axis],
        items: Items,
        rules: Rules,
        *,
        starts: NDArray[np.int64],
        regions: NDArray[np.int32] | None = None,
        threads: int | None = None,
        advance: Callable[[int], None] | None = None,
    ) -> Parts:
        if self.applied is None:
            raise ParameterError("Stored regions are applied by the pipeline, which gives them their axes.")
        found = self.applied.classes_of(items.places)
        if (found < 0).all():
            raise InfeasibleError(f"No row lies in a stored region: all would be held back. {REFRESH}")
        order = np.argsort(found, kind="stable").astype(np.int32)
        boxes, first = np.unique(found[order], return_index=True)
        outside = boxes < 0
        own = np.where(outside, 0, boxes)
        bounds = np.stack([self.applied.low[own], self.applied.high[own]], axis=2)
        if advance is not None:
            advance(len(found))
        ends = np.append(first, len(found)).astype(np.int64)
        return Parts(order, ends, bounds, self.applied.levels[own], judged=False, refused=outside)

    def allowed_rows(self, rows: int, suppression_limit: float, models: tuple[Model, ...]) -> int:
        """Return all of them: what is held back waits for its class to fill."""
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
class Applied:
    """Cuts and classes on the axes of a night: the first and last places of labels, and the levels of nodes."""

    tree: AppliedTree
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    levels: NDArray[np.int32]

    def classes_of(self, places: NDArray[Any]) -> Integers:
        """Return the class of each row, -1 for none."""
        return self.tree.classes_of(places, self.low, self.high)


def _span(
    regions: Any, j: int, kind: str, own: Placed, places: Integers, closed: bool
) -> tuple[Integers, Integers, Integers]:
    """Return the first and last places of the regions on an axis, and the levels that they are named after.

    A run of all values takes in whatever comes, unless it is ``closed``.
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
            # All values of a group are called alike, those that nobody had on the first night among them.
            atoms = np.asarray(axis.atoms)[: last + 1]
            first, final = atoms[low[run]], atoms[high[run]]
            low[run] = np.searchsorted(atoms, first, side="left")
            high[run] = np.searchsorted(atoms, final, side="right") - 1
            alone[run] = first == final
        else:
            # The outermost regions of a line are open: "<= 30" takes in whatever is smaller.
            low[run & at_first & ~alone] = 0
            high[run & at_last & ~alone] = last
        above = levels > 0
        # A single value, on a grid a group, is called by its name, even where it is the only one of its column.
        whole = run & at_first & at_last & ~alone
        if not closed:
            low[whole], high[whole] = 0, last
        levels[above] = axis.top
    # The top stands for every value, and for NULL where it did so before.
    low[above] = 0
    high[above] = np.where(b[above] > last, size - 1, last)
    return low, high, levels


__all__ = ["CUTS", "CUT_COLUMNS", "REFRESH", "REGIONS", "Applied", "StoredLevels", "StoredRegions", "values_file"]
