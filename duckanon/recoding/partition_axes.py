"""Columns as axes: lines that are cut between values or on a grid, and trees that are cut along a hierarchy.

A grid has the groups of a hierarchy's first level as intervals with bounds of the column's own type. A partition that
is cut only between these shows no bound that comes from a row: the bounds are those of the rule that made the level, or
of the leaves that the hierarchy lists.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.algorithms.partition.partition import OrderedAxis, PartitionAxis
from duckanon.encoding.dictionaries import published_type
from duckanon.engine.sql.axes import is_null, present
from duckanon.engine.sql.relations import (
    call,
    cast,
    col,
    data_type,
    in_utc,
    is_finite,
    named,
    number,
    same,
    subquery,
    table,
    text,
    union_all,
)
from duckanon.hierarchy.auto import Auto, auto
from duckanon.hierarchy.intervals import Cuts, Intervals, Quantiles, number_range
from duckanon.hierarchy.rules import ColumnType, Dates, day_of, floor_div, limits, written
from duckanon.plan.plan import has_distance
from duckanon.recoding.relations import size

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.encoding.dictionaries import Coded
    from duckanon.engine.base import Engine
    from duckanon.hierarchy import Hierarchy
    from duckanon.plan.plan import Plan
    from duckanon.plan.roles import Attribute

    Integers = NDArray[np.int64]


_CONTEXT = Context(prec=400)
_BOUNDS = ("lo", "hi", "low", "high", "upto")
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}


def grid_bounds(
    engine: Engine, hierarchy: Hierarchy | None, coded: Coded, type_name: str, *, apart: bool = False
) -> tuple[str, NDArray[np.int32]] | None:
    """Create the groups of level 1 as intervals, or return None if they are not intervals.

    Parameters
    ----------
    engine : Engine
    hierarchy : Hierarchy, optional
        The hierarchy that is bound to the column; None for the one that is made if none is given.
    coded : Coded
        The column's values and their labels.
    type_name : str
    apart : bool
        Values that the hierarchy does not know are groups of their own, without bounds, after all others. Without
        ``apart``, there is no grid if there are such values.

    Returns
    -------
    tuple of str and array, or None
        A private table ``(code, atom, lo, hi, low, high, upto)`` of all values; for NULL, all but the code is NULL.
        ``atom`` numbers the groups in the order of the values; the array has it by the codes of the values that are
        not NULL. ``lo`` and ``hi`` have the column's type, and ``lo <= value <= hi``; NULL is an open end. For
        integers, dates and listed leaves ``hi`` belongs to the group, for all others it is where the next group begins.
        ``low``, ``high`` and ``upto`` are the same as texts: "15", "19]" or "20)", and "< 20" or "<= 19".
    """
    values, kind = coded.dictionary, ColumnType.parse(type_name)
    if published_type(type_name) != type_name or kind.kind == "category" or (coded.masked and not apart):
        return None
    if hierarchy is None or isinstance(hierarchy.rule, Auto):
        hierarchy = auto(engine, values.table, values.attribute, type_name)
    numbered = _atoms(engine, coded)
    if numbered is None:
        return None
    atoms, atom = numbered
    groups = _groups(engine, hierarchy, kind, values.table, atoms)
    if groups is None:
        engine.drop(atoms)
        return None
    grid = _bounded(engine, atoms, groups, atom, values.null, coded.masked)
    engine.drop(atoms, groups)
    if not _holds(engine, grid, values.table):
        engine.drop(grid)
        return None
    return grid, atom


def _atoms(engine: Engine, coded: Coded) -> tuple[str, NDArray[np.int32]] | None:
    """Create ``(atom, code, label)``: neighbours with one label are one atom, of which ``code`` is the first value.

    The array has the atom of every value that is not NULL. A value that the hierarchy does not know has a number of its
    own, after those of the table. The result is None if a label recurs after another one, or is missing.
    """
    import numpy as np
    import pyarrow as pa

    dictionary, nodes = coded.dictionary, exp.select(col("c1")).from_(table(coded.levels)).order_by(col("code"))
    coded_levels = coded.arrays[0] if coded.arrays is not None else engine.arrow(nodes)
    every = coded_levels.column("c1").to_numpy()[: dictionary.size - dictionary.null]
    unknown = _unknown(engine, coded)
    listed = np.flatnonzero(~unknown)
    node = every[listed]
    changed = np.concatenate([[True], node[1:] != node[:-1]])[: len(node)]
    firsts = np.flatnonzero(changed)
    if not len(firsts) or len(np.unique(node[firsts])) < len(firsts):
        return None
    first = listed[firsts].astype(np.int32)
    incoming, atoms = engine.fresh("incoming"), engine.fresh("atoms")
    numbers = np.arange(len(firsts), dtype=np.int32)
    engine.register(incoming, pa.table({"atom": numbers, "code": first, "node": node[firsts]}))
    query = exp.select(col("atom", "i"), col("code", "i"), col("label", "l")).from_(table(incoming, "i"))
    on = exp.and_(
        exp.EQ(this=col("level", "l"), expression=number(1)),
        exp.EQ(this=col("code", "l"), expression=col("node", "i")),
    )
    labelled = query.join(table(coded.labels, "l"), on=on).where(present(col("label", "l")))
    count = engine.create(atoms, labelled)
    engine.unregister(incoming)
    if count < len(firsts):
        engine.drop(atoms)
        return None
    atom = np.empty(len(every), dtype=np.int32)
    atom[listed] = np.cumsum(changed) - 1
    atom[unknown] = len(firsts) + np.arange(len(every) - len(listed))
    return atoms, atom


def _unknown(engine: Engine, coded: Coded) -> NDArray[np.bool_]:
    """Return which values, except NULL, the hierarchy does not know: their label covers the whole domain."""
    import numpy as np

    unknown = np.zeros(coded.dictionary.size - coded.dictionary.null, dtype=np.bool_)
    if coded.masked:
        on = exp.and_(
            exp.EQ(this=col("level", "l"), expression=number(0)),
            exp.EQ(this=col("code", "l"), expression=col("c0", "k")),
        )
        query = exp.select(col("code", "k")).from_(table(coded.levels, "k")).join(table(coded.labels, "l"), on=on)
        whole = exp.EQ(this=col("leaves", "l"), expression=number(coded.domain_size))
        codes = engine.arrow(query.where(whole)).column("code").to_numpy()
        unknown[codes[codes < len(unknown)]] = True
    return unknown


def _groups(engine: Engine, hierarchy: Hierarchy, kind: ColumnType, values: str, atoms: str) -> str | None:
    """Create ``(label, lo, hi, low, high, upto)`` of the labels of level 1, if they are intervals."""
    if hierarchy.levels is not None:
        return _listed_groups(engine, hierarchy.levels, kind, "l1")
    if isinstance(hierarchy.rule, Intervals | Cuts | Quantiles):
        return _number_groups(engine, kind, atoms)
    if isinstance(hierarchy.rule, Dates):
        return _date_groups(engine, hierarchy.rule, kind, values, atoms)
    return None


def _bounded(engine: Engine, atoms: str, groups: str, atom: NDArray[np.int32], null: bool, masked: bool) -> str:
    """Create the table of ``grid_bounds``."""
    import numpy as np
    import pyarrow as pa

    incoming, grid = engine.fresh("incoming"), engine.fresh("grid")
    engine.register(incoming, pa.table({"code": np.arange(len(atom), dtype=np.int32), "atom": atom}))
    query = exp.select(*(col(c, "i") for c in ("code", "atom")), *(col(c, "g") for c in _BOUNDS))
    query = query.from_(table(incoming, "i"))
    query = query.join(table(atoms, "a"), on=exp.EQ(this=col("atom", "a"), expression=col("atom", "i")))
    query = query.join(table(groups, "g"), on=exp.EQ(this=col("label", "a"), expression=col("label", "g")))
    parts: list[exp.Query] = [query]
    if masked:
        blank = [named(exp.null(), c) for c in _BOUNDS]
        unknown = exp.select(col("code", "i"), col("atom", "i"), *blank).from_(table(incoming, "i"))
        missing = exp.Join(
            this=table(atoms, "a"), on=exp.EQ(this=col("atom", "a"), expression=col("atom", "i")), kind="ANTI"
        )
        parts.append(unknown.join(missing))
    if null:
        blank = [named(exp.null(), c) for c in ("atom", *_BOUNDS)]
        parts.append(exp.select(named(number(len(atom)), "code"), *blank))
    engine.create(grid, union_all(parts))
    engine.unregister(incoming)
    return grid


def _holds(engine: Engine, grid: str, values: str) -> bool:
    """Return whether every value has a group and lies between its bounds."""
    outside = exp.or_(
        exp.LT(this=col("value", "v"), expression=col("lo", "g")),
        exp.GT(this=col("value", "v"), expression=col("hi", "g")),
    )
    query = exp.select(call("count_if", is_null(col("code", "g"))), call("count_if", outside))
    on = exp.EQ(this=col("code", "g"), expression=col("code", "v"))
    query = query.from_(table(values, "v")).join(table(grid, "g"), on=on, join_type="left")
    lost, wrong = engine.row(query.where(present(col("value", "v"))))
    return not lost and not wrong


# Numbers: the labels of interval rules are exact, so they are read instead of being computed again.


def _number_groups(engine: Engine, kind: ColumnType, atoms: str) -> str | None:
    import pyarrow as pa

    labels = engine.arrow(exp.select(col("label")).from_(table(atoms)))
    rows = []
    for label in labels.column("label").to_pylist():
        span = number_range(label)
        if span is None:
            return None
        rows.append((label, *_ends(span, kind)))
    names = ("label", *_BOUNDS)
    columns = {name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(names)}
    incoming, groups = engine.fresh("incoming"), engine.fresh("groups")
    engine.register(incoming, pa.table(columns))
    ends = [named(exp.TryCast(this=col(c), to=_type(kind)), c) for c in ("lo", "hi")]
    texts = [col(c) for c in ("low", "high", "upto")]
    engine.create(groups, exp.select(col("label"), *ends, *texts).from_(table(incoming)))
    engine.unregister(incoming)
    return groups


def _type(kind: ColumnType) -> exp.DataType:
    return data_type(kind.name)


def _ends(span: tuple[Decimal | None, Decimal | None], kind: ColumnType) -> tuple[str | None, ...]:
    """Return lo, hi, low, high and upto of an interval as texts.

    Examples
    --------
    >>> _ends((Decimal(15), Decimal(20)), ColumnType.parse("INTEGER"))
    ('15', '19', '15', '19]', '< 20')
    >>> _ends((Decimal(250), Decimal(260)), ColumnType.parse("UTINYINT"))
    ('250', '255', '250', '259]', '< 260')
    >>> _ends((Decimal("0.5"), None), ColumnType.parse("DOUBLE"))
    ('0.5', None, '0.5', None, None)
    """
    first, following = span
    with localcontext(_CONTEXT):
        if kind.family == "integer":
            low = None if first is None else int(first.to_integral_value(ROUND_CEILING))
            after = None if following is None else int(following.to_integral_value(ROUND_CEILING))
            least, most = limits(kind)
            lo = None if low is None else str(max(low, least))
            hi = None if after is None else str(min(after - 1, most))
            texts = (None, None) if after is None else (f"{after - 1}]", f"< {after}")
            return (lo, hi, None if low is None else str(low), *texts)
        ends = [None if end is None else _fitted(end, kind, i) for i, end in enumerate(span)]
    shown = [None if end is None else written(end) for end in span]
    texts = (None, None) if shown[1] is None else (f"{shown[1]})", f"< {shown[1]}")
    return (ends[0], ends[1], shown[0], *texts)


def _fitted(end: Decimal, kind: ColumnType, upper: int) -> str:
    """Return a bound that fits the column's type: a lower bound is rounded down, an upper one up."""
    if kind.family != "decimal":
        return str(end)
    unit = Decimal(1).scaleb(-kind.scale)
    most = limits(kind)[1] * unit
    rounded = (end / unit).to_integral_value(ROUND_CEILING if upper else ROUND_FLOOR) * unit
    return str(max(min(rounded, most), -most))


# Dates: the first day of a period, and that of the next one.


def _date_groups(engine: Engine, rule: Dates, kind: ColumnType, values: str, atoms: str) -> str | None:
    levels = [level for level in rule.levels if level != "day" or kind.family == "timestamp"]
    if not levels:
        return None
    day = day_of(col("value", "v"), kind)
    on = exp.EQ(this=col("code", "v"), expression=col("code", "a"))
    days = exp.select(col("label", "a"), named(day, "day")).from_(table(values, "v")).join(table(atoms, "a"), on=on)
    first, after = _period(levels[0])
    finite = is_finite(col("day"))
    spans = exp.select(
        col("label"),
        named(exp.case().when(finite, call("try", first)), "first"),
        named(exp.case().when(finite.copy(), call("try", after)), "following"),
    ).from_(subquery(days, "d"))
    lo: exp.Expr = col("first")
    hi: exp.Expr = exp.Sub(this=col("following"), expression=number(1))
    if kind.family == "timestamp":
        # An end beyond the range of the type is open.
        lo, hi = (exp.TryCast(this=col(c), to=_type(kind)) for c in ("first", "following"))
    typed = exp.select(col("label"), named(lo, "lo"), named(hi, "hi"), col("following")).from_(subquery(spans, "s"))
    high = cast(col("hi"), "VARCHAR")
    closing = text("]") if kind.family == "date" else text(")")
    upper = cast(col("following") if kind.family == "date" else col("hi"), "VARCHAR")
    groups = engine.fresh("groups")
    engine.create(
        groups,
        exp.select(
            col("label"),
            col("lo"),
            col("hi"),
            named(cast(col("lo"), "VARCHAR"), "low"),
            named(exp.DPipe(this=high, expression=closing), "high"),
            named(exp.DPipe(this=text("< "), expression=upper), "upto"),
        ).from_(subquery(typed, "t")),
    )
    return groups


def _period(level: str) -> tuple[exp.Expr, exp.Expr]:
    """Return the first day of the period in which ``day`` lies, and the first day of the next one."""
    day = col("day")
    if level == "day":
        return day, exp.Add(this=day.copy(), expression=number(1))
    if level == "week":
        # Not by date_trunc: for a column with the earliest dates, the database fails before it runs anything.
        since = cast(exp.paren(exp.Sub(this=call("isodow", day), expression=number(1))), "INTEGER")
        monday = cast(exp.Sub(this=day.copy(), expression=since), "DATE")
        return monday, exp.Add(this=monday.copy(), expression=number(7))
    if level == "decade":
        year = exp.Mul(this=floor_div(cast(call("year", day), "BIGINT"), 10), expression=number(10))
        first = call("make_date", cast(exp.paren(year), "INTEGER"), number(1), number(1))
    else:
        first = cast(call("date_trunc", text(level), day), "DATE")
    step = call("to_months", number(_MONTHS[level]))
    return first, cast(exp.Add(this=first.copy(), expression=step), "DATE")


# Tables: the smallest and largest leaf that the hierarchy lists under a label.


def node_names(engine: Engine, levels: pa.Table, type_name: str) -> str:
    """Create ``(lo, hi, label)``: what a hierarchy calls all its values from one to another, on its lowest level.

    Levels whose groups are not neighbours are left out, and so is the top.
    """
    kind, parts, scratch = ColumnType.parse(type_name), [], []
    for level in range(1, levels.num_columns - 1):
        groups = _listed_groups(engine, levels, kind, f"l{level}")
        if groups is not None:
            columns = (*(col(c) for c in ("lo", "hi", "label")), named(number(level), "level"))
            parts.append(exp.select(*columns).from_(table(groups)))
            scratch.append(groups)
    none = [named(cast(exp.null(), kind.name), c) for c in ("lo", "hi")]
    none += [named(cast(exp.null(), t), c) for t, c in (("VARCHAR", "label"), ("INTEGER", "level"))]
    every = union_all([*parts, exp.select(*none)])
    lowest = named(exp.ArgMin(this=col("label"), expression=col("level")), "label")
    query = exp.select(col("lo"), col("hi"), lowest).from_(subquery(every, "n")).where(present(col("label")))
    names = engine.fresh("names")
    engine.create(names, query.group_by(col("lo"), col("hi")))
    engine.drop(*scratch)
    return names


def _listed_groups(engine: Engine, levels: pa.Table, kind: ColumnType, level: str) -> str | None:
    leaves, incoming = engine.fresh("leaves"), engine.fresh("incoming")
    engine.register(incoming, levels.select(["l0", level]))
    typed: exp.Expr = exp.TryCast(this=col("l0"), to=_type(kind))
    typed_leaves = exp.select(named(col(level), "label"), named(typed, "value")).from_(table(incoming))
    if kind.kind == "number":
        # A leaf such as 17.5 is not an integer, although it could be cast to one.
        wide = [exp.TryCast(this=e, to=exp.DataType.build("DOUBLE")) for e in (col("l0"), typed.copy())]
        exact: exp.Expr = same(wide[0], wide[1]) if kind.name not in ("FLOAT", "REAL") else exp.true()
    else:
        exact = is_finite(in_utc(typed.copy(), kind.name))
    engine.create(leaves, typed_leaves.select(named(exact, "exact")).where(present(col("l0"))))
    engine.unregister(incoming)
    odd = exp.or_(is_null(col("value")), exp.Not(this=col("exact")), is_null(col("label")))
    (strange,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(leaves)).where(odd))
    groups = engine.fresh("groups")
    ends = [named(call(f, col("value")), c) for f, c in (("min", "lo"), ("max", "hi"))]
    spans = exp.select(col("label"), *ends).from_(table(leaves)).group_by(col("label"))
    low, high = (cast(col(c), "VARCHAR") for c in ("lo", "hi"))
    texts = [
        named(low, "low"),
        named(exp.DPipe(this=high, expression=text("]")), "high"),
        named(exp.DPipe(this=text("<= "), expression=high.copy()), "upto"),
    ]
    engine.create(groups, exp.select(col("label"), col("lo"), col("hi"), *texts).from_(subquery(spans, "s")))
    engine.drop(leaves)
    if strange or _overlap(engine, groups):
        engine.drop(groups)
        return None
    return groups


def _overlap(engine: Engine, groups: str) -> bool:
    """Return whether a group begins before another one ends: its leaves are then not neighbours."""
    order = exp.Order(expressions=[exp.Ordered(this=col("lo")), exp.Ordered(this=col("hi"))])
    following = exp.Window(this=call("lead", col("lo")), order=order)
    pairs = exp.select(col("hi"), named(following, "following")).from_(table(groups))
    meets = exp.GTE(this=col("hi"), expression=col("following"))
    (overlapping,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(subquery(pairs, "p")).where(meets))
    return bool(overlapping)


def place_column(plan: Plan, engine: Engine, attribute: Attribute, coded: Coded, hierarchy: Hierarchy) -> OrderedAxis:
    """Return the axis of a quasi-identifier; ``hierarchy`` is the one given, or that was made."""
    import numpy as np

    name, dictionary = attribute.name, coded.dictionary
    ordered = {n.lower() for n in getattr(plan.algorithm, "ordered", ())}
    null = dictionary.null
    weight = plan.search_options.weights.get(name, 1.0)
    measured = has_distance(attribute.type)
    if name in plan.within:
        # Rows are divided by this column before any cut, and it is published unchanged.
        places = np.arange(dictionary.size, dtype=np.int64)
        axis = PartitionAxis(
            dictionary.size, null, places.astype(np.float64), places, inner=True, weight=weight, top=coded.height
        )
        return OrderedAxis(axis, places, _stored(engine, places))
    cut_by_order = plan.bounds != "grid" and name.lower() in ordered
    if plan.output[name] == "lca" and not cut_by_order:
        # Numbers and dates are published as nodes of the hierarchy, too, so classes are cut along it.
        return _tree(engine, coded, null, weight, measured)
    if plan.bounds == "grid" and not plan.algorithm.permutes:
        before = plan.algorithm.divides_as(name)  # type: ignore[attr-defined]
        gridded = measured and before != "tree"
        # A column that was cut on a grid before stays one: new values have no place between its groups.
        bounds = grid_bounds(engine, hierarchy, coded, attribute.type, apart=before == "grid") if gridded else None
        if bounds is not None:
            grid, atom = bounds
            order = np.append(np.argsort(atom, kind="stable"), np.arange(len(atom), dictionary.size))
            atoms = np.append(np.sort(atom), np.zeros(int(null), dtype=np.int32)).astype(np.int64)
            axis = _line(engine, attribute, coded, null, weight, atoms, inner=False)
            axis = replace(axis, numbers=np.maximum.accumulate(axis.numbers[order]))
            places = np.empty(dictionary.size, dtype=np.int64)
            places[order] = np.arange(dictionary.size)
            return OrderedAxis(axis, places, _stored(engine, places), grid)
        return _tree(engine, coded, null, weight)
    given = plan.hierarchies[name] is not None
    coded_as_text = hierarchy.rule is not None and hierarchy.rule.name == "mask"
    by_order = not (given or coded_as_text) and getattr(plan.algorithm, "cuts", True)
    if measured or name.lower() in ordered or by_order:
        axis = _line(engine, attribute, coded, null, weight, np.arange(dictionary.size, dtype=np.int64), inner=False)
        listed = (
            _leaf_order(engine, dictionary.table, hierarchy, dictionary.size, null) if not measured and given else None
        )
        places = np.arange(dictionary.size, dtype=np.int64) if listed is None else listed
        return OrderedAxis(axis, places, _stored(engine, places))
    return _tree(engine, coded, null, weight)


def _stored(engine: Engine, places: Integers) -> str:
    """Create ``(code, place)``."""
    import numpy as np
    import pyarrow as pa

    name = engine.fresh("places")
    codes = np.arange(len(places), dtype=np.int32)
    placed = pa.table({"code": codes, "place": places.astype(np.int32)})
    engine.register(name, placed)
    return name


def _line(
    engine: Engine, attribute: Attribute, coded: Coded, null: bool, weight: float, atoms: Integers, inner: bool
) -> PartitionAxis:
    import numpy as np

    total = coded.dictionary.size
    number = size(col("value"), attribute.type) if has_distance(attribute.type) else None
    numbers = np.arange(total, dtype=np.float64)
    if number is not None:
        query = (
            exp.select(named(cast(number, "DOUBLE"), "v")).from_(table(coded.dictionary.table)).order_by(col("code"))
        )
        values: Any = engine.arrow(query).column(0).to_numpy(zero_copy_only=False).astype(np.float64)
        finite = np.flatnonzero(np.isfinite(values))
        if len(finite):
            # Infinities and NaN are placed at the nearest finite number.
            numbers = np.interp(np.arange(total), finite, values[finite])
    return PartitionAxis(total, null, numbers, atoms, inner=inner, weight=weight, top=coded.height)


def _leaf_order(engine: Engine, values: str, hierarchy: Hierarchy, total: int, null: bool) -> Integers | None:
    """Return the place of each code in the order in which a hierarchy's table lists its leaves; None for a rule."""
    import numpy as np
    import pyarrow.compute as pc

    if hierarchy.levels is None:
        return None
    texts = engine.arrow(exp.select(col("text")).from_(table(values)).order_by(col("code"))).column(0)
    at = pc.index_in(texts, value_set=hierarchy.levels.column(0).combine_chunks()).fill_null(len(hierarchy.levels))
    ranks = at.to_numpy(zero_copy_only=False).astype(np.int64)
    if null:
        ranks[total - 1] = np.iinfo(np.int64).max
    places = np.empty(total, dtype=np.int64)
    places[np.argsort(ranks, kind="stable")] = np.arange(total)
    return places


def _tree(engine: Engine, coded: Coded, null: bool, weight: float, measured: bool = False) -> OrderedAxis:
    """Return a tree whose nodes are runs of places: values are sorted by their path from the top.

    ``measured`` says that the values are numbers, dates or times.
    """
    import numpy as np

    total, height = coded.dictionary.size, coded.height
    names = [f"c{level}" for level in range(height + 1)]
    if coded.arrays is not None:
        levels = coded.arrays[0]
    else:
        levels = engine.arrow(exp.select(*(col(n) for n in names)).from_(table(coded.levels)).order_by(col("code")))
    paths = [levels.column(name).to_numpy().astype(np.int64) for name in names]
    leaves_of = _leaves(engine, coded)
    alone = np.zeros(total, dtype=np.int64)
    if null:
        alone[total - 1] = 1
    order = np.lexsort([np.arange(total), *paths, alone])
    nodes, leaves = [np.arange(total, dtype=np.int64)], [np.ones(total, dtype=np.int64)]
    for level in range(1, height + 1):
        # A node is identified by its path from the top; below the top, NULL is a node of its own.
        keys = [paths[above][order] for above in range(level, height + 1)]
        keys += [alone[order]] if level < height else []
        changes = np.zeros(total, dtype=np.int64)
        for key in keys:
            changes[1:] |= key[1:] != key[:-1]
        groups = np.cumsum(changes)
        nodes.append(groups)
        first = np.flatnonzero(np.diff(groups, prepend=-1))
        leaves.append(leaves_of[level][paths[level][order][first]])
    places = np.empty(total, dtype=np.int64)
    places[order] = np.arange(total)
    own, under = tuple(nodes), tuple(leaves)
    axis = PartitionAxis(
        total, null, np.zeros(total), nodes=own, leaves=under, weight=weight, top=height, measured=measured
    )
    return OrderedAxis(axis, places, _stored(engine, places))


def _leaves(engine: Engine, coded: Coded) -> list[Integers]:
    """Return, level by level, how many leaves of the domain lie under each label's code."""
    import numpy as np

    names = ("level", "code", "leaves")
    if coded.arrays is not None:
        labels = coded.arrays[1]
    else:
        labels = engine.arrow(exp.select(*(col(name) for name in names)).from_(table(coded.labels)))
    level, code, leaves = (labels.column(name).to_numpy().astype(np.int64) for name in names)
    counts = []
    for v in range(coded.height + 1):
        leaves_of_level = np.ones(coded.sizes[v], dtype=np.int64)
        leaves_of_level[code[level == v]] = leaves[level == v]
        counts.append(leaves_of_level)
    return counts
