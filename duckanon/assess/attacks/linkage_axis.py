"""One column for linkage: values of people are places on an axis, and a cell is the places that it covers."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, inf
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.assess.labels.cells import covered
from duckanon.assess.labels.text import WHOLE, parse, size_of
from duckanon.encoding.dictionaries import Dictionary, dictionary
from duckanon.engine.sql.axes import is_null
from duckanon.engine.sql.relations import cast, col, named, number, same, subquery, table, text
from duckanon.errors import HierarchyError
from duckanon.hierarchy.rules import ColumnType
from duckanon.recoding.relations import size

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from duckanon.engine.base import Engine
    from duckanon.hierarchy import Levels

MISSING = 3.0
"""The place of NULL among numbers, which are from 0 to 1: farther from each of them than any two of them."""

STEP = 1e-9
"""How far within an open bound the values of a cell begin, as a share of the range."""


@dataclass(frozen=True)
class LinkageAxis:
    """The places of a column.

    Numbers, dates and times are placed from 0 to 1 by their size, ``low`` and ``high`` bound what a cell covers, and
    the distance is the difference (Gower 1971). Other values are placed at 0, 1, 2, ... in an order in which
    cells cover neighbours, if there is one; those of a cell with gaps are ``members`` from ``start`` on, up to
    the start of the next (``start`` is -1 where there are no gaps, ``stop`` where they end).
    """

    name: str
    ordered: bool
    places: NDArray[np.float64]
    """By the code of a value."""
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    members: NDArray[np.float64]
    least: float = 0.0
    span: float = 1.0

    @property
    def exact(self) -> bool:
        """Whether every cell covers one place."""
        return bool((self.low == self.high).all())


@dataclass(frozen=True)
class Column:
    """Where the values and the cells of a column lie in the engine.

    ``values`` is the dictionary of the people's values, ``cells(cell, label)`` numbers the labels that are published.
    """

    values: Dictionary
    cells: str
    axis: LinkageAxis


def numbered_labels(engine: Engine, rows: exp.Query, label: exp.Expr) -> str:
    """Create ``(cell, label, n)``: the labels of a released column, numbered in their order."""
    name = engine.fresh("cells")
    counted = exp.select(named(label, "label"), named(exp.Count(this=exp.Star()), "n"))
    counted = counted.from_(subquery(rows, "s")).group_by(label.copy())
    order = exp.Order(expressions=[exp.Ordered(this=col("label"), desc=False, nulls_first=False)])
    at = exp.Sub(this=exp.Window(this=exp.RowNumber(), order=order), expression=number(1))
    engine.create(
        name, exp.select(named(cast(at, "INTEGER"), "cell"), col("label"), col("n")).from_(subquery(counted, "l"))
    )
    return name


def read_column(
    engine: Engine,
    name: str,
    type_name: str,
    people: exp.Query,
    published: Callable[[bool], tuple[exp.Query, exp.Expr]],
    levels_of: Callable[[str], Levels | None],
    carried: bool,
) -> Column:
    """Number the values and the labels of a column, and find which values each label covers.

    ``people(value)`` are the values of everybody whom the attacker knows; ``published`` gives the released rows and
    their label, given whether NULL is among the values: where it is not, a published NULL covers everything.
    """
    ordered = size(col("value"), type_name) is not None
    further: exp.Query | None = None
    value: exp.Expr = col("value")
    rows, label = published(True)
    if carried and not ordered:
        type_name, value = "VARCHAR", cast(value, "VARCHAR")
        further = exp.select(named(label.copy(), "value")).from_(subquery(rows, "s"))
    values = dictionary(engine, people, name, value, further)
    if not values.null:
        rows, label = published(False)
    cells = numbered_labels(engine, rows, label)
    levels = None if carried else levels_of(values.table)
    axis = (_lined if ordered else _listed)(engine, name, type_name, values, levels, cells)
    return Column(values, cells, axis)


def _lined(
    engine: Engine, name: str, type_name: str, values: Dictionary, levels: Levels | None, cells: str
) -> LinkageAxis:
    """Read the labels of numbers, dates or times."""
    import numpy as np

    size_of_value = size(col("value"), type_name)
    assert size_of_value is not None
    sizes = engine.fresh("sizes")
    engine.create(
        sizes, exp.select(col("code"), col("text"), named(size_of_value, "number")).from_(table(values.table))
    )
    ordered = exp.select(col("number")).from_(table(sizes)).order_by(col("code"))
    numbers = engine.arrow(ordered).column(0).to_numpy(zero_copy_only=False).astype(np.float64)
    finite = numbers[~np.isnan(numbers)]
    least = float(finite.min()) if len(finite) else 0.0
    span = (float(finite.max()) - least if len(finite) else 0.0) or 1.0
    count = _count(engine, cells)
    low, high = np.full(count, np.nan), np.full(count, np.nan)
    read = np.zeros(count, dtype=bool)
    on = same(col("text", "v"), col("label", "c"))
    labelled = exp.select(col("cell", "c"), col("number", "v")).from_(table(cells, "c")).join(table(sizes, "v"), on=on)
    at, bounds = _columns(engine, labelled)
    low[at], high[at], read[at] = bounds, bounds, True
    for cell, lowest, highest in _spans(engine, sizes, levels, cells):
        fresh = ~read[cell]
        low[cell[fresh]], high[cell[fresh]], read[cell[fresh]] = lowest[fresh], highest[fresh], True
    lost = 0
    for place, label in _labels(engine, cells, ~read):
        bounds_of = (-inf, inf) if label == WHOLE else _read_span(label, type_name, STEP * span)
        if bounds_of is None:
            lost += 1
            continue
        low[place], high[place] = bounds_of
    _require_read(name, lost, count, levels is not None)
    engine.drop(sizes)
    missing, whole = np.isnan(low), np.isneginf(low) & np.isposinf(high)
    bottom, top = (np.clip((side - least) / span, -1.0, 2.0) for side in (low, high))
    bottom[missing], top[missing] = MISSING, MISSING
    bottom[whole], top[whole] = -inf, inf
    places = np.where(np.isnan(numbers), MISSING, (numbers - least) / span)
    none = np.full(count, -1, dtype=np.int64)
    return LinkageAxis(name, True, places, bottom, top, none, none, np.empty(0), least, span)


def _spans(engine: Engine, sizes: str, levels: Levels | None, cells: str) -> list[tuple[Any, Any, Any]]:
    """Return cell, least and largest number of the labels of each level, the lowest level first."""
    import numpy as np

    spans = []
    for level in range(1, 0 if levels is None else levels.height + 1):
        assert levels is not None
        on = exp.EQ(this=col("code", "t"), expression=col("code", "v"))
        under = exp.select(
            named(col(f"l{level}", "t"), "label"),
            named(exp.Min(this=col("number", "v")), "lo"),
            named(exp.Max(this=col("number", "v")), "hi"),
            named(exp.Count(this=exp.Star()), "n"),
        ).from_(table(levels.tree, "t"))
        under = under.join(table(sizes, "v"), on=on).group_by(col(f"l{level}", "t"))
        query = exp.select(col("cell", "c"), *(col(c, "u") for c in ("lo", "hi", "n"))).from_(table(cells, "c"))
        query = query.join(subquery(under, "u"), on=same(col("label", "c"), col("label", "u")))
        cell, low, high, n = _columns(engine, query)
        every = n == _count(engine, sizes)
        low, high = (np.where(every, bound, side) for bound, side in ((-inf, low), (inf, high)))
        spans.append((cell, low, high))
    return spans


def _read_span(label: str | None, type_name: str, step: float) -> tuple[float, float] | None:
    """Return the bounds that a text names; an open one is a step further in, 1 among whole numbers and days.

    Examples
    --------
    >>> _read_span("[20, 30]", "BIGINT", 0.1), _read_span("[20, 30)", "BIGINT", 0.1), _read_span("old", "BIGINT", 0.1)
    ((20.0, 30.0), (20.0, 29.0), None)
    >>> _read_span("(20.5, 30.5]", "DOUBLE", 0.125)
    (20.625, 30.5)
    """
    parsed = parse(label, type_name) if label is not None else None
    if parsed is None:
        return None
    if parsed.span is None:
        # Values of a region are listed: they lie between the least and the largest.
        members = [size_of(member, type_name) for member in parsed.members]
        listed = [number for number in members if number is not None]
        return (min(listed), max(listed)) if listed and len(listed) == len(members) else None
    low, high, above, below = parsed.span
    if ColumnType.parse(type_name).family in ("integer", "date"):
        return (floor(low) + 1.0 if above and low > -inf else low), (ceil(high) - 1.0 if below and high < inf else high)
    return (low + step if above else low), (high - step if below else high)


def _listed(
    engine: Engine, name: str, type_name: str, values: Dictionary, levels: Levels | None, cells: str
) -> LinkageAxis:
    """Read the labels of values without distances, and line the values up so that cells cover neighbours."""
    import numpy as np

    labels = engine.fresh("labels")
    engine.create(labels, exp.select(col("label"), col("n")).from_(table(cells)))
    covers = covered(engine, name, type_name, values, levels, labels)
    on = same(col("label", "c"), col("cell", "o"))
    query = exp.select(col("cell", "c"), col("code", "o")).distinct().from_(table(cells, "c"))
    cell, code = _columns(engine, query.join(table(covers, "o"), on=on))
    engine.drop(covers)
    count = _count(engine, cells)
    rank = _ranked(cell, code, values.size)
    order = np.lexsort((rank[code], cell))
    cell, members = cell[order], rank[code][order].astype(np.float64)
    sizes = np.bincount(cell, minlength=count)
    stop = np.cumsum(sizes)
    start = stop - sizes
    # A cell that covers no value of the data is beside all of them.
    low, high = np.full(count, -1.0), np.full(count, -1.0)
    some = sizes > 0
    low[some], high[some] = members[start[some]], members[stop[some] - 1]
    whole = high - low + 1 == sizes
    start[whole | ~some] = -1
    return LinkageAxis(name, False, rank.astype(np.float64), low, high, start, stop, members)


def _ranked(cell: NDArray[np.int64], code: NDArray[np.int64], values: int) -> NDArray[np.int64]:
    """Return an order of values in which few cells have gaps: that of the codes, or by the largest cells over each."""
    import numpy as np

    plain = np.arange(values)
    sizes = np.bincount(cell)
    if not _gaps(plain, cell, code, sizes):
        return plain
    # Cells that lie within each other have no gaps if values are sorted by the cells over them, the widest first.
    over: list[list[tuple[int, int]]] = [[] for _ in range(values)]
    for at in np.lexsort((cell, -sizes[cell])):
        over[code[at]].append((-int(sizes[cell[at]]), int(cell[at])))
    nested = np.empty(values, dtype=np.int64)
    nested[sorted(range(values), key=lambda v: (over[v], v))] = plain
    return nested if _gaps(nested, cell, code, sizes) < _gaps(plain, cell, code, sizes) else plain


def _gaps(rank: NDArray[np.int64], cell: NDArray[np.int64], code: NDArray[np.int64], sizes: NDArray[np.int64]) -> int:
    import numpy as np

    least, largest = np.full(len(sizes), len(rank)), np.full(len(sizes), -1)
    np.minimum.at(least, cell, rank[code])
    np.maximum.at(largest, cell, rank[code])
    return int(((largest - least + 1 != sizes) & (sizes > 0)).sum())


def _count(engine: Engine, name: str) -> int:
    (count,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(name)))
    return int(count)


def _columns(engine: Engine, query: exp.Query) -> list[NDArray[np.int64]]:
    columns = engine.arrow(query)
    return [columns.column(i).to_numpy() for i in range(columns.num_columns)]


def _labels(engine: Engine, cells: str, wanted: NDArray[np.bool_]) -> list[tuple[int, str | None]]:
    """Return the texts of some labels: those that are neither values nor on a level."""
    import pyarrow as pa

    if not wanted.any():
        return []
    incoming = engine.fresh("incoming")
    engine.register(incoming, pa.table({"cell": wanted.nonzero()[0]}))
    on = exp.EQ(this=col("cell", "i"), expression=col("cell", "c"))
    query = exp.select(col("cell", "c"), col("label", "c")).from_(table(cells, "c")).join(table(incoming, "i"), on=on)
    labels = [(int(cell), label) for cell, label in engine.rows(query)]
    engine.unregister(incoming)
    return labels


def _require_read(name: str, lost: int, total: int, levels: bool) -> None:
    if lost:
        nowhere = ", and on no level of its hierarchy" if levels else ""
        raise HierarchyError(
            f"{lost} of {total} labels of {name!r} are not a value, interval or set of values of the original column"
            f"{nowhere}: give the hierarchies that made this table."
        )


def span_label(low: exp.Expr, high: exp.Expr) -> exp.Expr:
    """Return the label of two bounds that are published one by one: NULL is an open one, and NULL where both are."""
    texts = [cast(side, "VARCHAR") for side in (low, high)]
    both = _joined(text("["), texts[0], text(", "), texts[1], text("]"))
    return (
        exp.case()
        .when(exp.and_(is_null(low.copy()), is_null(high.copy())), exp.null())
        .when(is_null(low.copy()), _joined(text("<= "), texts[1].copy()))
        .when(is_null(high.copy()), _joined(text(">= "), texts[0].copy()))
        .else_(both)
    )


def _joined(*parts: exp.Expr) -> exp.Expr:
    joined = parts[0]
    for part in parts[1:]:
        joined = exp.DPipe(this=joined, expression=part)
    return joined


__all__ = ["MISSING", "Column", "LinkageAxis", "read_column", "span_label"]
