"""Algorithms that search nothing: they apply a recoding that was stored on an earlier night.

Rows whose class breaks a promise tonight, and rows that no stored region covers, are held back. They do not count
against the suppression limit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sqlglot import exp

from duckanon.algorithms.base import Algorithm
from duckanon.algorithms.nodes import evaluate, judge
from duckanon.algorithms.partition import Parts
from duckanon.algorithms.partitioner import Partitioner
from duckanon.errors import DataError, InfeasibleError, ParameterError
from duckanon.sqlgen.boxes import RUN
from duckanon.sqlgen.relations import col, named, same, subquery, table, union_all

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.algorithms.base import Problem
    from duckanon.algorithms.items import Items
    from duckanon.algorithms.nodes import Node
    from duckanon.algorithms.partition import Axis, Rules
    from duckanon.axes import Placed
    from duckanon.encode import Coded
    from duckanon.engine.base import Engine
    from duckanon.models.base import Model

    Integers = NDArray[np.int64]

REFRESH = "Run once with recoding = 'refresh'."


@dataclass(frozen=True)
class StoredLevels(Algorithm):
    """The node that was stored, by the levels of the quasi-identifiers."""

    inner: Algorithm
    levels: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.inner.name)

    def search(self, problem: Problem) -> Node:
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
    """The regions that were stored: ``file(a_0, b_0, v_0, first_0, last_0, ...)``, see ``frozen.freeze``.

    All rows are placed at once, in arrays.
    """

    inner: Partitioner
    file: Path
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    low: NDArray[np.int32] | None = field(default=None, repr=False)
    high: NDArray[np.int32] | None = field(default=None, repr=False)
    levels: NDArray[np.int32] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.inner.name)
        object.__setattr__(self, "ordered", self.inner.ordered)
        # A stored region is not cut in two: every class is judged whole.
        object.__setattr__(self, "budget", sys.maxsize)

    def known_values(self, engine: Engine, attribute: str) -> exp.Query | None:
        """Return the ends of the stored regions: with them the regions are called what they were called before."""
        j = self.names.index(attribute)
        ends: list[exp.Query] = [
            exp.select(named(col(f"{end}_{j}"), "value")).distinct().from_(subquery(engine.parquet([self.file]), "r"))
            for end in "ab"
        ]
        return union_all(ends)

    def on_axes(self, engine: Engine, coded: Sequence[Coded], placed: Sequence[Placed]) -> Self:
        """Return the algorithm with the stored regions as places on the axes of tonight."""
        for name, kind, own in zip(self.names, self.kinds, placed, strict=True):
            found = "tree" if own.axis.atoms is None else "line" if own.grid is None else "grid"
            if found != kind:
                raise DataError(
                    f"The column {name!r} is no longer divided as when the recoding was stored (it was a {kind}, and "
                    f"is a {found}). {REFRESH}"
                )
        regions = engine.arrow(self._coded(engine, coded))
        spans = [_span(regions, j, kind, own) for j, (kind, own) in enumerate(zip(self.kinds, placed, strict=True))]
        low, high, levels = (np.stack([span[i] for span in spans], axis=1).astype(np.int32) for i in range(3))
        return replace(self, low=low, high=high, levels=levels)

    def _coded(self, engine: Engine, coded: Sequence[Coded]) -> exp.Query:
        """Return the stored regions with the codes of their ends."""
        query = exp.select().from_(subquery(engine.parquet([self.file]), "r"))
        for j, own in enumerate(coded):
            for end in "ab":
                alias = f"{end}{j}"
                query = query.join(
                    table(own.dictionary.table, alias), on=same(col("value", alias), col(f"{end}_{j}", "r"))
                )
                query = query.select(named(col("code", alias), f"{end}_{j}"))
            query = query.select(*(col(f"{c}_{j}", "r") for c in ("v", "first", "last")))
        return query

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
        from duckanon.kernels.covering import covering

        if self.low is None or self.high is None or self.levels is None:
            raise ParameterError("Stored regions are applied by the pipeline, which gives them their axes.")
        found = covering(items.places.astype(np.int32), self.low, self.high)
        if (found < 0).all():
            raise InfeasibleError(f"No row lies in a stored region: all would be held back. {REFRESH}")
        order = np.argsort(found, kind="stable").astype(np.int32)
        boxes, first = np.unique(found[order], return_index=True)
        outside = boxes < 0
        own = np.where(outside, 0, boxes)
        bounds = np.stack([self.low[own], self.high[own]], axis=2)
        if advance is not None:
            advance(len(found))
        ends = np.append(first, len(found)).astype(np.int64)
        return Parts(order, ends, bounds, self.levels[own], judged=False, refused=outside)

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


def _span(regions: Any, j: int, kind: str, own: Placed) -> tuple[Integers, Integers, Integers]:
    """Return the first and last places of the regions on an axis, and the levels that they are named after."""
    axis = own.axis
    size, last = axis.size, axis.size - 1 - axis.null

    def column(name: str) -> Integers:
        return np.asarray(regions.column(f"{name}_{j}").to_numpy(zero_copy_only=False)).astype(np.int64)

    levels = column("v")
    a, b = own.place[column("a")], own.place[column("b")]
    at_first, at_last = column("first") > 0, column("last") > 0
    low, high = np.minimum(a, b), np.maximum(a, b)
    run, alone = levels == RUN, a == b
    if kind == "tree":
        for level in range(1, len(axis.nodes)):
            nodes = np.asarray(axis.nodes[level])
            starts = np.flatnonzero(np.diff(nodes, prepend=-1))
            ends = np.append(starts[1:], size) - 1
            here = levels == level
            low[here], high[here] = starts[nodes[a[here]]], ends[nodes[a[here]]]
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
        low[whole], high[whole] = 0, last
    # The top stands for every value, and for NULL where it did so before.
    low[above] = 0
    high[above] = np.where(b[above] > last, size - 1, last)
    return low, high, levels


__all__ = ["REFRESH", "StoredLevels", "StoredRegions"]
