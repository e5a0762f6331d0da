"""The first cuts of a table that does not fit into arrays: the database makes them, so that each part fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.sql.relations import approx_distinct, call, cast, col, hash_of, named, number, subquery, table
from duckanon.models.base import Groups, Histograms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from duckanon.algorithms.partition.partition import OrderedAxis, Rules
    from duckanon.engine.base import Engine

    Bounds = dict[int, tuple[int, int]]

_FEW_CELLS = 20
"""Where places on lines are shared by so many rows on average, cuts are found on counts of the places."""
_SAMPLED = 1000
"""So many times the least members of a class are looked at before all are counted."""


@dataclass(frozen=True)
class Cutting:
    """What the first cuts leave: the ranges of the parts, and the way to them.

    ``cuts`` are (axis, place, where to go on below it, where from it on); a way that is not negative leads to another
    cut, -1 - p to part p.
    """

    bounds: tuple[Bounds, ...]
    cuts: tuple[tuple[int, int, int, int], ...] = ()

    def parts_of(self, codes: Sequence[NDArray[np.integer[Any]]]) -> NDArray[np.int64]:
        """Return the part of each item, ``codes`` being those of every axis."""
        import numpy as np

        at = np.full(len(codes[0]), 0 if self.cuts else -1, dtype=np.int64)
        axis, place, below, above = (np.array(c, dtype=np.int64) for c in zip(*self.cuts, strict=True))
        waiting = np.flatnonzero(at >= 0)
        while len(waiting):
            node = at[waiting]
            code = np.empty(len(waiting), dtype=np.int64)
            for j in np.unique(axis[node]):
                here = axis[node] == j
                code[here] = codes[j][waiting[here]]
            at[waiting] = np.where(code < place[node], below[node], above[node])
            waiting = waiting[at[waiting] >= 0]
        return -1 - at

    def log(self, ends: Sequence[int]) -> NDArray[np.int64]:
        """Return the cuts as lines, see ``kernels.layout.WHOLE``, with classes in place of items.

        ``ends`` are how many classes there are after so many parts, which are in the order of a depth-first walk.
        """
        import numpy as np

        spans: dict[int, tuple[int, int]] = {-1 - part: (part, part + 1) for part in range(len(self.bounds))}
        lines = []
        # A cut comes after the one above it.
        for at in range(len(self.cuts) - 1, -1, -1):
            axis, place, below, above = self.cuts[at]
            spans[at] = spans[below][0], spans[above][1]
            sides = [(*spans[at], *spans[side]) for side in (below, above)]
            lines += [[*(ends[part] for part in parts), axis, 1, place] for parts in sides]
        return np.array(lines, dtype=np.int64).reshape(-1, 7)


@dataclass(frozen=True)
class FirstCuts:
    """Cuts a table of codes into parts of at most ``budget`` items, each a range of codes on some axes.

    ``within`` are the axes whose values stay apart in any case: between those nothing need be asked. All other cuts
    are those of Mondrian on lines: the widest is cut nearest to its median, if both sides satisfy every model.
    """

    engine: Engine
    source: str
    codes: Sequence[str]
    placed: Sequence[OrderedAxis]
    within: Sequence[int]
    rules: Rules
    columns: dict[str, str] = field(default_factory=dict)
    """The column with the codes of each sensitive column."""
    person: str | None = None
    counted: bool = False
    every: FirstCuts | None = None
    """The cuts of the items themselves, where the source counts these by their places."""

    def parts(self, budget: int) -> Cutting:
        """Return the parts; one that cannot be cut any more stays as large as it is."""
        counts = self._counted(budget)
        try:
            return counts.cut(budget)
        finally:
            if counts is not self:
                self.engine.drop(counts.source)

    def cut(self, budget: int) -> Cutting:
        """Cut until every part is small enough, or cannot be cut."""
        waiting: list[tuple[Bounds, int, int]] = [({}, -1, 0)]
        parts: list[Bounds] = []
        cuts: list[list[int]] = []
        while waiting:
            bounds, parent, side = waiting.pop()
            cut = self._cut(bounds) if self._items(bounds) > budget else None
            if parent >= 0:
                cuts[parent][2 + side] = -1 - len(parts) if cut is None else len(cuts)
            if cut is None:
                parts.append(bounds)
                continue
            axis, place = cut
            low, high = bounds.get(axis, (0, self.placed[axis].axis.size - 1))
            waiting += [
                ({**bounds, axis: (place, high)}, len(cuts), 1),
                ({**bounds, axis: (low, place - 1)}, len(cuts), 0),
            ]
            cuts.append([axis, place, 0, 0])
        return Cutting(tuple(parts), tuple((a, p, below, above) for a, p, below, above in cuts))

    def _counted(self, budget: int) -> FirstCuts:
        """Return the same cuts on counts of the places on lines, where these are much fewer than the items."""
        lines = [self.codes[j] for j in self._lines()]
        if not lines:
            return self
        keys = [*lines, *self.columns.values()]
        (items,) = self.engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(self.source)))
        if items <= budget:
            return self
        several = approx_distinct(hash_of(*(col(k) for k in keys)))
        (distinct,) = self.engine.row(exp.select(several).from_(table(self.source)))
        if distinct * _FEW_CELLS > items:
            return self
        name = self.engine.fresh("cells")
        columns = [*(col(k) for k in keys), named(cast(self._rows(), "BIGINT"), "n")]
        query = exp.select(*columns, named(exp.Count(this=exp.Star()), "items")).from_(table(self.source))
        self.engine.create(name, query.group_by(*(col(k) for k in keys)))
        return replace(self, source=name, counted=True, every=self)

    def _lines(self) -> list[int]:
        """Return the axes that are lines whose places are their codes."""
        import numpy as np

        return [
            j
            for j, p in enumerate(self.placed)
            if p.axis.atoms is not None and (p.place == np.arange(len(p.place))).all()
        ]

    def where(self, bounds: Bounds) -> list[exp.Expr]:
        """Return the conditions that a part's rows meet."""
        return [
            exp.Between(this=col(self.codes[j]), low=number(low), high=number(high))
            for j, (low, high) in bounds.items()
        ]

    def _rows(self) -> exp.Expr:
        return exp.Sum(this=col("n")) if self.counted else exp.Count(this=exp.Star())

    def _items(self, bounds: Bounds) -> int:
        items = exp.Count(this=exp.Star()) if self.every is None else exp.Sum(this=col("items"))
        (count,) = self.engine.row(exp.select(items).from_(table(self.source)).where(*self.where(bounds)))
        return int(count or 0)

    def _cut(self, bounds: Bounds) -> tuple[int, int] | None:
        """Return the axis and the place of the next cut; None where no cut is allowed."""
        import numpy as np

        lines = self._lines()
        extents = [e for j in lines for e in (exp.Min(this=col(self.codes[j])), exp.Max(this=col(self.codes[j])))]
        if not extents:
            return None
        extents_of_axes = self.engine.row(exp.select(*extents).from_(table(self.source)).where(*self.where(bounds)))
        spans = {j: (int(extents_of_axes[2 * i]), int(extents_of_axes[2 * i + 1])) for i, j in enumerate(lines)}
        apart = [j for j in self.within if spans[j][0] != spans[j][1]]
        if apart:
            counts = self._counts(apart[0], bounds)
            return apart[0], _halved(counts, np.arange(len(counts)), 1)
        widths = {j: self._width(j, *spans[j]) for j in lines if spans[j][0] != spans[j][1]}
        for j in sorted(widths, key=lambda j: (-widths[j], j)):
            axis = self.placed[j].axis
            null = axis.size - 1
            if axis.null and spans[j][1] == null and self._allowed(j, null, bounds):
                return j, null
            # NULL that cannot stand alone goes with the largest values.
            place = _halved(self._counts(j, bounds), np.asarray(axis.atoms), self.rules.least)
            if place > 0 and self._allowed(j, place, bounds):
                return j, place
        return None

    def _width(self, j: int, low: int, high: int) -> float:
        axis = self.placed[j].axis
        if axis.null and high == axis.size - 1:
            return axis.weight
        whole = axis.numbers[axis.size - 1 - axis.null] - axis.numbers[0]
        return float(axis.weight * (axis.numbers[high] - axis.numbers[low]) / whole) if whole > 0 else 0.0

    def _counts(self, j: int, bounds: Bounds) -> NDArray[np.int64]:
        """Return the rows of a part by their codes on an axis."""
        import numpy as np

        code = col(self.codes[j])
        query = exp.select(named(code, "c"), named(self._rows(), "rows")).from_(table(self.source))
        counted = self.engine.arrow(query.where(*self.where(bounds)).group_by(code.copy()))
        counts = np.zeros(self.placed[j].axis.size, dtype=np.int64)
        counts[counted.column(0).to_numpy()] = counted.column(1).to_numpy().astype(np.int64)
        return counts

    def _allowed(self, j: int, place: int, bounds: Bounds) -> bool:
        """Ask every model about both sides of a cut."""
        import numpy as np

        side = exp.case().when(exp.LT(this=col(self.codes[j]), expression=number(place)), number(0)).else_(number(1))
        base = exp.select(named(side, "side")).from_(table(self.source)).where(*self.where(bounds)).group_by(number(1))
        rows = np.zeros(2, dtype=np.int64)
        for at, n in self.engine.rows(base.copy().select(named(self._rows(), "rows"))):
            rows[at] = n
        sizes = rows if self.person is None else (self.every or self)._persons(j, place, bounds)
        fine = rows >= self.rules.least
        plain = Groups(sizes, rows)
        counted: dict[str, Groups] = {}
        for name, column in self.columns.items():
            query = base.copy().select(named(col(column), "code"), named(self._rows(), "rows"))
            values = self.engine.arrow(query.group_by(number(2)).order_by(number(1), number(2)))
            at, codes, counts = (values.column(i).to_numpy().astype(np.int64) for i in range(3))
            totals, ancestors = self.rules.totals[name]
            histograms = Histograms(np.searchsorted(at, np.arange(3)), codes, counts, totals, ancestors)
            counted[name] = Groups(sizes, rows, histograms=histograms)
        for model in self.rules.models:
            fine &= model.satisfied(counted.get(str(getattr(model, "sensitive", None)), plain))
        return bool(fine.all())

    def _persons(self, j: int, place: int, bounds: Bounds) -> NDArray[np.int64]:
        """Return the persons on both sides of a cut; where they are plenty, only so many as show that."""
        import numpy as np

        sizes = np.zeros(2, dtype=np.int64)
        below = exp.LT(this=col(self.codes[j]), expression=number(place))
        for side, on in enumerate((below, exp.Not(this=below.copy()))):
            query = exp.select(named(col(str(self.person)), "person")).from_(table(self.source))
            query = query.where(*self.where(bounds), on)
            for some in (query.copy().limit(_SAMPLED * self.rules.least), query):
                people = call("count", exp.Distinct(expressions=[col("person")]))
                (several,) = self.engine.row(exp.select(people).from_(subquery(some, "p")))
                sizes[side] = int(several)
                # Models of class size need no more than their minimum, so counting stops above it.
                if sizes[side] >= self.rules.least:
                    break
        return sizes


def _halved(counts: NDArray[np.int64], atoms: NDArray[np.int64], least: int) -> int:
    """Return the place before which a cut between two atoms comes nearest to the half, 0 where there is none."""
    import numpy as np

    left = np.cumsum(counts)
    total = int(left[-1]) if len(left) else 0
    ends = np.flatnonzero(np.diff(atoms[: len(counts)]))
    ends = ends[(left[ends] >= least) & (total - left[ends] >= least)]
    if not len(ends):
        return 0
    return int(ends[np.argmin(np.abs(2 * left[ends] - total))]) + 1
