"""The groups of a hierarchy's first level as intervals with bounds of the column's own type.

A partition that may only be cut between these groups shows no bound that comes from a row: bounds are those of the rule
that made the level, or of the leaves that the hierarchy itself lists.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.encode import published_type
from duckanon.hierarchy.auto import Auto, auto
from duckanon.hierarchy.dates import Dates
from duckanon.hierarchy.intervals import Cuts, Intervals, Quantiles
from duckanon.hierarchy.rules import ColumnType, floor_div, written
from duckanon.sqlgen.relations import call, cast, col, named, number, same, subquery, table, text

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine
    from duckanon.hierarchy import Hierarchy

_INSIDE = re.compile(r"\[(.+), (.+)\)")
_BELOW = re.compile(r"< (.+)")
_ABOVE = re.compile(r">= (.+)")
_CONTEXT = Context(prec=400)
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}


def grid_bounds(
    engine: Engine, hierarchy: Hierarchy | None, values: str, attribute: str, type_name: str, tree: str
) -> str | None:
    """Create the groups of level 1 as intervals, or return None where they are none.

    Parameters
    ----------
    engine : Engine
    hierarchy : Hierarchy, optional
        The one that is bound to the column; None for the one that is made where none is given.
    values : str
        The column's dictionary ``(code, value, text, n)``.
    attribute, type_name : str
    tree : str
        The labels of its values ``(code, known, l1, ...)``.

    Returns
    -------
    str or None
        A private table ``(code, atom, lo, hi, low, high, upto)`` of all values that are not NULL. ``atom`` numbers the
        groups in the order of the values. ``lo`` and ``hi`` have the column's type, and ``lo <= value <= hi``; NULL is
        an open end. Of integers, dates and listed leaves ``hi`` belongs to the group, of everything else it is where
        the next group begins. ``low``, ``high`` and ``upto`` are the same as texts: "15", "19]" or "20)", and "< 20" or
        "<= 19".
    """
    kind = ColumnType.parse(type_name)
    if published_type(type_name) != type_name or kind.kind == "category":
        return None
    if hierarchy is None or isinstance(hierarchy.rule, Auto):
        hierarchy = auto(engine, values, attribute, type_name)
    atoms = _atoms(engine, values, tree)
    groups = _groups(engine, hierarchy, kind, values, atoms) if _contiguous(engine, atoms) else None
    if groups is None:
        engine.drop(atoms)
        return None
    found = engine.fresh("grid")
    engine.create(found, _bounded(atoms, groups))
    engine.drop(atoms, groups)
    if not _holds(engine, found, values):
        engine.drop(found)
        return None
    return found


def _present(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=value, expression=exp.null()))


def _atoms(engine: Engine, values: str, tree: str) -> str:
    """Create ``(code, known, label, atom)``: neighbours with one label are one atom."""
    import numpy as np
    import pyarrow as pa

    query = exp.select(col("code", "v"), col("known", "t"), named(col("l1", "t"), "label")).from_(table(values, "v"))
    query = query.join(table(tree, "t"), on=exp.EQ(this=col("code", "v"), expression=col("code", "t")))
    found = engine.arrow(query.where(_present(col("value", "v"))).order_by(col("code", "v")))
    label = found.column("label").combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy()
    changed = np.concatenate([[False], label[1:] != label[:-1]])[: len(label)]
    incoming, atoms = engine.fresh("incoming"), engine.fresh("atoms")
    engine.register(incoming, found.append_column("atom", pa.array(np.cumsum(changed, dtype=np.int32))))
    engine.create(atoms, exp.select("*").from_(table(incoming)))
    engine.unregister(incoming)
    return atoms


def _contiguous(engine: Engine, atoms: str) -> bool:
    """Say whether every value is known, and no label comes again after another one."""
    counts = [call("count", exp.Distinct(expressions=[col(c)])) for c in ("label", "atom")]
    query = exp.select(*counts, call("count_if", exp.Not(this=col("known"))), call("count_if", _absent("label")))
    labels, runs, unknown, blank = engine.row(query.from_(table(atoms)))
    return bool(runs) and labels == runs and not unknown and not blank


def _absent(name: str) -> exp.Expr:
    return exp.Is(this=col(name), expression=exp.null())


def _groups(engine: Engine, hierarchy: Hierarchy, kind: ColumnType, values: str, atoms: str) -> str | None:
    """Create ``(label, lo, hi, low, high, upto)`` of the labels of level 1, if they are intervals."""
    if hierarchy.levels is not None:
        return _listed_groups(engine, hierarchy.levels, kind)
    if isinstance(hierarchy.rule, Intervals | Cuts | Quantiles):
        return _number_groups(engine, kind, atoms)
    if isinstance(hierarchy.rule, Dates):
        return _date_groups(engine, hierarchy.rule, kind, values, atoms)
    return None


def _bounded(atoms: str, groups: str) -> exp.Query:
    bounds = [col(c, "g") for c in ("lo", "hi", "low", "high", "upto")]
    query = exp.select(col("code", "a"), col("atom", "a"), *bounds).from_(table(atoms, "a"))
    return query.join(table(groups, "g"), on=exp.EQ(this=col("label", "a"), expression=col("label", "g")))


def _holds(engine: Engine, grid: str, values: str) -> bool:
    """Say whether every value has a group and lies between its bounds."""
    outside = exp.or_(
        exp.LT(this=col("value", "v"), expression=col("lo", "g")),
        exp.GT(this=col("value", "v"), expression=col("hi", "g")),
    )
    query = exp.select(call("count_if", _absent_of("code", "g")), call("count_if", outside))
    on = exp.EQ(this=col("code", "g"), expression=col("code", "v"))
    query = query.from_(table(values, "v")).join(table(grid, "g"), on=on, join_type="left")
    lost, wrong = engine.row(query.where(_present(col("value", "v"))))
    return not lost and not wrong


def _absent_of(name: str, alias: str) -> exp.Expr:
    return exp.Is(this=col(name, alias), expression=exp.null())


# Numbers: the labels of interval rules are exact, so that they are read rather than computed again.


def _number_groups(engine: Engine, kind: ColumnType, atoms: str) -> str | None:
    import pyarrow as pa

    found = engine.arrow(exp.select(col("label")).distinct().from_(table(atoms)))
    rows = []
    for label in found.column("label").to_pylist():
        span = _read(label)
        if span is None:
            return None
        rows.append((label, *_ends(span, kind)))
    names = ("label", "lo", "hi", "low", "high", "upto")
    columns = {name: pa.array([row[i] for row in rows], pa.string()) for i, name in enumerate(names)}
    incoming, groups = engine.fresh("incoming"), engine.fresh("groups")
    engine.register(incoming, pa.table(columns))
    ends = [named(exp.TryCast(this=col(c), to=_type(kind)), c) for c in ("lo", "hi")]
    texts = [col(c) for c in ("low", "high", "upto")]
    engine.create(groups, exp.select(col("label"), *ends, *texts).from_(table(incoming)))
    engine.unregister(incoming)
    return groups


def _type(kind: ColumnType) -> exp.DataType:
    return exp.DataType.build(kind.name, dialect="duckdb")


def _read(label: str) -> tuple[Decimal | None, Decimal | None] | None:
    """Return where the interval of a label begins and where the next begins; None for a label that is no interval.

    Examples
    --------
    >>> _read("[15, 20)"), _read("< 18"), _read("nan"), _read("*")
    ((Decimal('15'), Decimal('20')), (None, Decimal('18')), (None, None), None)
    """
    if label == "nan":
        return None, None
    for pattern, place in ((_BELOW, (None, 1)), (_ABOVE, (1, None)), (_INSIDE, (1, 2))):
        match = pattern.fullmatch(label)
        if match is not None:
            low, high = (Decimal(match.group(i)) if i is not None else None for i in place)
            return low, high
    return None


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
            least, most = _limits(kind.name)
            lo = None if low is None else str(max(low, least))
            hi = None if after is None else str(min(after - 1, most))
            texts = (None, None) if after is None else (f"{after - 1}]", f"< {after}")
            return (lo, hi, None if low is None else str(low), *texts)
        ends = [None if end is None else _fitted(end, kind, i) for i, end in enumerate(span)]
    shown = [None if end is None else written(end) for end in span]
    texts = (None, None) if shown[1] is None else (f"{shown[1]})", f"< {shown[1]}")
    return (ends[0], ends[1], shown[0], *texts)


def _limits(name: str) -> tuple[int, int]:
    """Return the smallest and largest value of a type of integers."""
    bits = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "INT": 32, "BIGINT": 64}[name.removeprefix("U")]
    return (0, 2**bits - 1) if name.startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _fitted(end: Decimal, kind: ColumnType, upper: int) -> str:
    """Return a bound as the column's type can hold it: a lower one is rounded down, an upper one up."""
    if kind.family != "decimal":
        return str(end)
    digits = int(re.findall(r"\d+", kind.name)[0]) if "(" in kind.name else 18
    unit = Decimal(1).scaleb(-kind.scale)
    most = Decimal(10) ** (digits - kind.scale) - unit
    rounded = (end / unit).to_integral_value(ROUND_CEILING if upper else ROUND_FLOOR) * unit
    return str(max(min(rounded, most), -most))


# Dates: the first day of a period, and that of the next one.


def _date_groups(engine: Engine, rule: Dates, kind: ColumnType, values: str, atoms: str) -> str | None:
    levels = [level for level in rule.levels if level != "day" or kind.family == "timestamp"]
    if not levels:
        return None
    day: exp.Expr = col("value", "v")
    if kind.zoned:
        day = call("timezone", text("UTC"), day)
    if kind.family == "timestamp":
        day = cast(day, "DATE")
    on = exp.EQ(this=col("code", "v"), expression=col("code", "a"))
    days = exp.select(col("label", "a"), named(call("any_value", day), "day")).from_(table(values, "v"))
    days = days.join(table(atoms, "a"), on=on).group_by(col("label", "a"))
    first, after = _period(levels[0])
    finite = call("isfinite", col("day"))
    spans = exp.select(
        col("label"),
        named(exp.case().when(finite, call("try", first)), "first"),
        named(exp.case().when(finite.copy(), call("try", after)), "following"),
    ).from_(subquery(days, "d"))
    lo: exp.Expr = col("first")
    hi: exp.Expr = exp.Sub(this=col("following"), expression=number(1))
    if kind.family == "timestamp":
        # Beyond what the type can hold an end is open.
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
        monday = cast(call("date_trunc", text("week"), day), "DATE")
        return monday, exp.Add(this=monday.copy(), expression=number(7))
    if level == "decade":
        year = exp.Mul(this=floor_div(cast(call("year", day), "BIGINT"), 10), expression=number(10))
        first = call("make_date", cast(exp.paren(year), "INTEGER"), number(1), number(1))
    else:
        first = cast(call("date_trunc", text(level), day), "DATE")
    step = call("to_months", number(_MONTHS[level]))
    return first, cast(exp.Add(this=first.copy(), expression=step), "DATE")


# Tables: the smallest and largest leaf that the hierarchy itself lists under a label.


def _listed_groups(engine: Engine, levels: pa.Table, kind: ColumnType) -> str | None:
    leaves, incoming = engine.fresh("leaves"), engine.fresh("incoming")
    engine.register(incoming, levels.select(["l0", "l1"]))
    typed: exp.Expr = exp.TryCast(this=col("l0"), to=_type(kind))
    own = exp.select(named(col("l1"), "label"), named(typed, "value")).from_(table(incoming))
    if kind.kind == "number":
        # A leaf such as 17.5 is no integer, though it could be read as one.
        wide = [exp.TryCast(this=e, to=exp.DataType.build("DOUBLE")) for e in (col("l0"), typed.copy())]
        exact: exp.Expr = same(wide[0], wide[1]) if kind.name not in ("FLOAT", "REAL") else exp.true()
    else:
        exact = call("isfinite", typed.copy())
    engine.create(leaves, own.select(named(exact, "exact")).where(_present(col("l0"))))
    engine.unregister(incoming)
    odd = exp.or_(_absent("value"), exp.Not(this=col("exact")), _absent("label"))
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
    """Say whether a group begins before another one ends: its leaves are then no neighbours."""
    order = exp.Order(expressions=[exp.Ordered(this=col("lo")), exp.Ordered(this=col("hi"))])
    following = exp.Window(this=call("lead", col("lo")), order=order)
    pairs = exp.select(col("hi"), named(following, "following")).from_(table(groups))
    meets = exp.GTE(this=col("hi"), expression=col("following"))
    (found,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(subquery(pairs, "p")).where(meets))
    return bool(found)


__all__ = ["grid_bounds"]
