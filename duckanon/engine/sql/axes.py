"""Statements about the axes of columns, and about regions on them: the label of a region, and what it stands for.

A region of a column is given by three numbers: the codes ``a`` and ``b`` of its first and last value, and ``v``, the
level of the node over ``a``, or -1 for the run of values from ``a`` to ``b``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from duckanon.engine.sql.relations import (
    TableName,
    call,
    cast,
    col,
    conjunction,
    epoch_microseconds,
    epoch_seconds,
    in_utc,
    is_finite,
    left,
    named,
    number,
    pack,
    quoted_member,
    subquery,
    table,
    text,
    union_all,
)

NUMBERS = ("integer", "decimal", "float")


@dataclass(frozen=True)
class BoxColumn:
    """A quasi-identifier whose regions are published, with the tables that describe it.

    ``type`` is the type in which its values are published, ``family`` what can be computed with them: "integer",
    "decimal", "float", "date", "timestamp", "time", or "other" for nothing. ``size`` counts its values, ``leaves`` the
    leaves of the domain. ``values``, ``levels`` and ``labels`` are those of ``encode.Coded``, ``axis`` is made by
    ``axis_query``, ``grid`` by ``grid_bounds``, ``names`` by ``node_names``. ``first`` and ``last`` are the places of
    the smallest and largest value that is not NULL, ``last_code`` is the code of the latter, ``null_code`` that of
    NULL. ``scale`` are the decimal places of a type that is narrow enough to be counted in its smallest unit.
    """

    name: str
    type: str
    family: str
    output: str
    bounds: str
    values: str
    levels: TableName
    labels: TableName
    size: int
    height: int
    leaves: int
    top: str
    masked: bool
    axis: str = ""
    grid: str | None = None
    names: str | None = None
    first: int = 0
    last: int = 0
    last_code: int = 0
    null_code: int | None = None
    scale: int | None = None

    @property
    def tight(self) -> bool:
        """Whether regions end at values of the class: the ends of the axis are then like any other."""
        return self.bounds == "tight"

    @property
    def lists(self) -> bool:
        """Whether the values of regions are listed; those of a class are where bounds are tight."""
        return self.output == "set" and not self.tight

    def key(self, a: exp.Expr, b: exp.Expr, v: exp.Expr) -> list[exp.Expr]:
        """Return the three numbers of a region in as few words as possible: a join by one word is much faster."""
        from_zero = exp.paren(exp.Add(this=v, expression=number(1)), copy=False)
        return pack([a, b, from_zero], [self.size, self.size, self.height + 2])

    def keys(self, alias: str | None = None) -> list[exp.Column]:
        """Return the columns that hold the words of a region."""
        words = self.key(*(number(0) for _ in range(3)))
        return [col(f"key_{i}", alias) for i in range(len(words))]

    def on(self, alias: str, position: int, boxes: str) -> exp.Expr:
        """Return the join condition between a class and its region in the column at that position."""
        words = self.key(*(col(f"{c}_{position}", boxes) for c in "abv"))
        return conjunction(
            [equal(key, exp.paren(word, copy=False)) for key, word in zip(self.keys(alias), words, strict=True)]
        )


def is_null(value: exp.Expr) -> exp.Expr:
    """Return whether a value is NULL."""
    return exp.Is(this=value, expression=exp.null())


def present(value: exp.Expr) -> exp.Expr:
    """Return whether a value is not NULL."""
    return exp.Not(this=is_null(value))


def equal(left: exp.Expr, right: exp.Expr | int) -> exp.Expr:
    """Return whether two values are the same."""
    return exp.EQ(this=left, expression=number(right) if isinstance(right, int) else right)


def choose(*cases: tuple[exp.Expr, exp.Expr], otherwise: exp.Expr | None = None) -> exp.Expr:
    """Return the value of the first condition that holds."""
    return exp.Case(ifs=[exp.If(this=condition, true=value) for condition, value in cases], default=otherwise)


def counted(alias: str) -> exp.Expr:
    """Return whether a value of the axis is in the table, and is not NULL."""
    return exp.and_(exp.GT(this=col("n", alias), expression=number(0)), present(col("value", alias)), copy=False)


def tick(value: exp.Expr, column: BoxColumn) -> exp.Expr:
    """Return a value as the number from which midpoints and means are computed; NULL if it is not finite."""
    family = column.family
    if family == "date":
        return cast(exp.Div(this=epoch_seconds(value), expression=number(86400)), "BIGINT")
    if family in ("timestamp", "time"):
        return cast(epoch_microseconds(in_utc(value, column.type)), "BIGINT")
    if family not in NUMBERS:
        return cast(exp.null(), "DOUBLE")
    plain = cast(value, "DOUBLE")
    return choose((is_finite(value), plain)) if family == "float" else plain


def from_tick(value: exp.Expr, column: BoxColumn) -> exp.Expr:
    """Return the inverse of ``tick``; numbers are DOUBLE."""
    if column.family == "date":
        return exp.Add(this=cast(text("1970-01-01"), "DATE"), expression=cast(value, "INTEGER"))
    if column.family == "timestamp":
        return cast(call("make_timestamp", cast(value, "BIGINT")), column.type)
    if column.family == "time":
        ticks = cast(value, "BIGINT")
        since = exp.Add(this=cast(text("00:00:00"), "TIME"), expression=call("to_microseconds", ticks))
        # Times wrap around after a day, but 24:00 is its end, not its beginning.
        return choose((equal(ticks.copy(), 86_400_000_000), cast(text("24:00:00"), "TIME")), otherwise=since)
    return cast(value, "DOUBLE")


def axis_query(column: BoxColumn, place: str, size: exp.Expr | None) -> exp.Select:
    """Return ``(code, place, value, n, text, whole, shown, number, tick)`` of all values, NULL among them.

    ``text`` is published for the value itself; where ``whole`` is true, it is the top label. ``shown`` is the text in
    labels of several values, ``number`` its ``size``.
    """
    query = exp.select(*(col(c, "v") for c in ("code", "value", "n")), col("place", "p"))
    query = query.from_(table(column.values, "v"), copy=False)
    query = query.join(table(place, "p"), on=equal(col("code", "p"), col("code", "v")), copy=False)
    own: exp.Expr = col("text", "v")
    whole: exp.Expr = exp.false()
    if column.masked:
        query = query.join(table(column.levels, "k"), on=equal(col("code", "k"), col("code", "v")), copy=False)
        on = exp.and_(equal(col("level", "l"), 0), equal(col("code", "l"), col("c0", "k")), copy=False)
        query = query.join(table(column.labels, "l"), on=on, copy=False)
        own, whole = col("label", "l"), equal(col("leaves", "l"), column.leaves)
    return query.select(
        named(own, "text"),
        named(whole, "whole"),
        named(quoted_member(col("text", "v")) if column.family == "other" else col("text", "v"), "shown"),
        named(cast(exp.null() if size is None else size, "DOUBLE"), "number"),
        named(tick(col("value", "v"), column), "tick"),
        copy=False,
    )


def positions_query(column: BoxColumn, ranks: str | None, runs: str) -> exp.Select:
    """Return ``(code, first, last, i1, ...)`` of all values.

    ``first`` and ``last`` tell which leaves of the domain a run takes in that begins or ends here: by
    ``ranks(code, first, last)``, else one for each value. All values between two places have one label on a level where
    the places agree in ``i<level>`` of ``runs(code, i1, ...)``, and only there.
    """
    query = exp.select(col("code", "x")).from_(table(column.axis, "x"), copy=False)
    query = query.join(table(runs, "i"), on=equal(col("code", "i"), col("code", "x")), copy=False)
    first, last = col("place", "x"), col("place", "x")
    if ranks is not None:
        query = query.join(left(table(ranks, "r"), equal(col("code", "r"), col("code", "x"))), copy=False)
        first, last = col("first", "r"), col("last", "r")
    query = query.select(named(cast(first, "BIGINT"), "first"), named(cast(last, "BIGINT"), "last"), copy=False)
    return query.select(*(col(f"i{level}", "i") for level in range(1, column.height)), copy=False)


def nodes_by_place(column: BoxColumn) -> exp.Select:
    """Return ``(code, c1, ...)``: the nodes over all values, in the order of their places."""
    nodes = [col(f"c{level}", "k") for level in range(1, column.height)]
    query = exp.select(col("code", "x"), *nodes).from_(table(column.axis, "x"), copy=False)
    query = query.join(table(column.levels, "k"), on=equal(col("code", "k"), col("code", "x")), copy=False)
    return query.order_by(col("place", "x"), copy=False)


_ENDS = (("lo", "min", "number"), ("hi", "max", "number"), ("least", "min", "tick"), ("most", "max", "tick"))


def _on_label(level: int) -> exp.Expr:
    return exp.and_(equal(col("level", "l"), level), equal(col("code", "l"), col(f"c{level}", "k")), copy=False)


def nodes_query(column: BoxColumn, levels: Sequence[int]) -> exp.Query:
    """Return ``(level, code, label, leaves, lo, hi, least, most, listed)``: the node over each value on some levels.

    ``lo`` and ``hi`` are the sizes of the smallest and largest value under it that occur, ``least`` and ``most`` their
    ticks, ``listed`` are all of them, where regions list their values.
    """
    parts: list[exp.Query] = []
    for level in levels:
        node = f"c{level}"
        ends = [named(call(function, col(source, "x")), name) for name, function, source in _ENDS]
        members = listing(col("text", "x"), col("place", "x")) if column.lists else cast(exp.null(), "VARCHAR")
        under = exp.select(named(col(node, "k"), "g"), *ends, named(members, "listed")).from_(
            table(column.levels, "k"), copy=False
        )
        under = under.join(table(column.axis, "x"), on=equal(col("code", "x"), col("code", "k")), copy=False)
        under = under.where(counted("x"), copy=False).group_by(col(node, "k"), copy=False)
        query = exp.select(
            named(cast(number(level), "INTEGER"), "level"),
            col("code", "k"),
            *(col(c, "l") for c in ("label", "leaves")),
            *(col(c, "u") for c in ("lo", "hi", "least", "most", "listed")),
        ).from_(table(column.levels, "k"), copy=False)
        query = query.join(table(column.labels, "l"), on=_on_label(level), copy=False)
        parts.append(query.join(left(subquery(under, "u"), equal(col("g", "u"), col(node, "k"))), copy=False))
    return union_all(parts)


def listing(value: exp.Expr, place: exp.Expr) -> exp.Expr:
    """Return the texts of a group as ``{a, b}`` in the order of their places, or the only one as it is."""
    order = exp.Order(this=text(", "), expressions=[place])
    several = call("concat", text("{"), call("string_agg", quoted_member(value), order), text("}"))
    return choose((equal(exp.Count(this=exp.Star()), 1), call("any_value", value)), otherwise=several)


def outermost(column: BoxColumn, pick: str, what: str) -> exp.Expr:
    """Return the smallest or largest of all values of the column that occur."""
    inside = (
        exp.select(call(pick, col(what, "x")))
        .from_(table(column.axis, "x"), copy=False)
        .where(counted("x"), copy=False)
    )
    return exp.paren(exp.Subquery(this=inside), copy=False)


RUN = -1
"""The level of a run of values."""


def used_levels(boxes: str, heights: Sequence[int]) -> exp.Select:
    """Return, for each column, a text with "1" for every level from -1 on that regions of published classes have."""
    levels = [call("bitstring_agg", col(f"v_{j}"), number(RUN), number(h)) for j, h in enumerate(heights)]
    found = exp.select(*(cast(bits, "VARCHAR") for bits in levels)).from_(table(boxes), copy=False)
    return found.where(col("kept"), copy=False)


def regions_query(
    column: BoxColumn,
    boxes: str,
    position: int,
    runs: bool,
    levels: Sequence[int],
    nodes: str | None,
    positions: str | None,
) -> exp.Select:
    """Return ``(key_0, ..., a, v, z, w, mixed, value, cell, low, high, [least, most,] listed)`` of regions.

    They are those that published classes have in the column at that position; ``runs`` says that some are runs, and
    others are nodes on some ``levels``, of which the table ``nodes`` tells where more than a name is wanted. ``z``
    is the code of the last value, ``w`` the level that the region is named after: a run of one value is that value, a
    run of all values the top unless bounds are tight; on a grid a run within one group is that group, and its value
    where it is the only one that the group can have. With the output "lca", which needs ``positions``, every run is
    the lowest node over it. ``mixed`` says that NULL and other values are in it. ``value`` is its first value,
    ``cell`` its name. ``low`` and ``high`` are typed bounds, NULL where it is open; ``least`` and ``most`` are the
    ticks of the values under a node, for midpoints only, ``listed`` are those values.
    """
    at_top = equal(col("w", "r"), column.height)
    names: list[tuple[exp.Expr, exp.Expr]] = [(equal(col("w", "r"), 0), col("own_text", "r"))]
    names += [(equal(col("w", "r"), RUN), col("run_text", "r"))] if runs else []
    ticks = (("min", "least"), ("max", "most")) if column.output == "midpoint" else ()
    under = {c: outermost(column, pick, "tick") for pick, c in ticks}
    cell = choose(*names, otherwise=text(column.top))
    listed = cast(exp.null(), "VARCHAR")
    if levels or nodes is not None:
        cell = choose(*names, (at_top, text(column.top)), otherwise=col("label", "n"))
    if nodes is not None:
        under = {c: choose((at_top, end), otherwise=col(c, "n")) for c, end in under.items()}
        listed = col("listed", "n") if column.lists else listed
    words = column.key(*(col(c, "r") for c in "abv"))
    ends = _ends_query(column, boxes, position, positions) if runs else _nodes_query(column, boxes, position)
    query = exp.select(
        *(named(word, f"key_{i}") for i, word in enumerate(words)),
        *(col(c, "r") for c in ("a", "v", "z", "w", "mixed", "value")),
        named(cell, "cell"),
        *(col(c, "r") for c in ("low", "high")),
        *(named(end, c) for c, end in under.items()),
        named(listed, "listed"),
    ).from_(subquery(ends, "r"), copy=False)
    if nodes is not None:
        on = exp.and_(equal(col("level", "n"), col("w", "r")), equal(col("code", "n"), col("a", "r")), copy=False)
        query = query.join(left(table(nodes, "n"), on), copy=False)
    elif levels:
        node = choose(*((equal(col("w", "r"), level), col(f"c{level}", "h")) for level in levels))
        on = exp.and_(equal(col("level", "n"), col("w", "r")), equal(col("code", "n"), node), copy=False)
        query = query.join(table(column.levels, "h"), on=equal(col("code", "h"), col("a", "r")), copy=False)
        query = query.join(left(table(column.labels, "n"), on), copy=False)
    return query


def _nodes_query(column: BoxColumn, boxes: str, position: int) -> exp.Select:
    """Return what ``_ends_query`` does where no region is a run, without the texts of runs."""
    keys = [named(col(f"{c}_{position}"), c) for c in "abv"]
    known = exp.select(*keys).distinct(copy=False).from_(table(boxes), copy=False).where(col("kept"), copy=False)
    own = alone = equal(col("v", "k"), 0)
    mixed: exp.Expr = exp.false()
    level: exp.Expr = col("v", "k")
    if column.null_code is not None:
        mixed = _mixed()
        level = choose((mixed, number(column.height)), otherwise=level)
    if column.masked:
        hidden = exp.and_(alone, col("whole", "x"), copy=False)
        level = choose((hidden, number(column.height)), otherwise=level)
        own = exp.and_(alone, exp.Not(this=col("whole", "x")), copy=False)
    bound = cast(choose((own, col("value", "x"))), column.type)
    query = exp.select(
        *(col(c, "k") for c in "abv"),
        named(cast(col("b", "k"), "INTEGER"), "z"),
        named(cast(level, "INTEGER"), "w"),
        named(mixed, "mixed"),
        col("value", "x"),
        named(col("text", "x"), "own_text"),
        named(bound, "low"),
        named(bound, "high"),
    ).from_(subquery(known, "k"), copy=False)
    query = query.join(table(column.axis, "x"), on=equal(col("code", "x"), col("a", "k")), copy=False)
    if column.null_code is not None:
        query = query.join(table(column.axis, "y"), on=equal(col("code", "y"), col("b", "k")), copy=False)
    return query


def _mixed() -> exp.Expr:
    above = exp.GT(this=col("v", "k"), expression=number(0))
    return exp.and_(above, present(col("value", "x")), is_null(col("value", "y")), copy=False)


def _ends_query(column: BoxColumn, boxes: str, position: int, positions: str | None) -> exp.Select:
    """Return regions with the columns of the axis and the grid for their first and last value."""
    a, b, v = (col(f"{c}_{position}") for c in "abv")
    end: exp.Expr = b
    if column.null_code is not None:
        # A run never takes in NULL, though the axis goes on to it.
        reaches = exp.and_(equal(v, RUN), equal(b, column.null_code), copy=False)
        end = choose((reaches, number(column.last_code)), otherwise=b)
    known = exp.select(named(a, "a"), named(b, "b"), named(v, "v"), named(cast(end, "INTEGER"), "z"))
    known = known.distinct(copy=False).from_(table(boxes), copy=False).where(col("kept"), copy=False)
    run, mixed = equal(col("v", "k"), RUN), _mixed()
    single = exp.and_(run, equal(col("place", "x"), col("place", "y")), copy=False)
    if column.grid is not None:
        # A group is labelled with a single value only if it can have no other value, whatever values occur.
        single = exp.and_(single, _one_value(column), copy=False)
    alone = exp.paren(exp.or_(equal(col("v", "k"), 0), single, copy=False), copy=False)
    # A value that the hierarchy lacks is published as the top label, even alone.
    hidden = exp.or_(mixed, exp.and_(alone, col("whole", "x"), copy=False), copy=False)
    cases = [(hidden, number(column.height)), (alone, number(0)), (exp.Not(this=run), col("v", "k"))]
    rest: exp.Expr = number(RUN)
    if positions is not None:
        rest = lowest(column)
    elif not column.tight:
        every = exp.and_(equal(col("place", "x"), column.first), equal(col("place", "y"), column.last), copy=False)
        if column.grid is not None:
            groups = exp.NEQ(this=col("atom", "gx"), expression=col("atom", "gy"))
            every = exp.and_(every, groups, copy=False)
        cases.append((every, number(column.height)))
    low, high = _bounds(column, alone, run)
    query = exp.select(
        *(col(c, "k") for c in "abvz"),
        named(cast(choose(*cases, otherwise=rest), "INTEGER"), "w"),
        named(mixed, "mixed"),
        col("value", "x"),
        named(col("text", "x"), "own_text"),
        named(_run_text(column), "run_text"),
        named(low, "low"),
        named(high, "high"),
    ).from_(subquery(known, "k"), copy=False)
    for alias, code, near, at in (("x", "a", "gx", "px"), ("y", "z", "gy", "py")):
        query = query.join(table(column.axis, alias), on=equal(col("code", alias), col(code, "k")), copy=False)
        if column.grid is not None:
            query = query.join(table(column.grid, near), on=equal(col("code", near), col(code, "k")), copy=False)
        if positions is not None:
            query = query.join(table(positions, at), on=equal(col("code", at), col(code, "k")), copy=False)
    if column.names is not None:
        on = exp.and_(equal(col("lo", "nn"), col("lo", "gx")), equal(col("hi", "nn"), col("hi", "gy")), copy=False)
        query = query.join(left(table(column.names, "nn"), on), copy=False)
    return query


def _one_value(column: BoxColumn) -> exp.Expr:
    """Return whether the group of ``x`` can have no other value: NaN and infinite dates have groups without bounds."""
    low, high, value = col("lo", "gx"), col("hi", "gx"), col("value", "x")
    one = equal(low, high)
    if column.family not in ("float", "date", "timestamp"):
        return one
    odd = call("isnan", value) if column.family == "float" else exp.Not(this=is_finite(in_utc(value, column.type)))
    boundless = exp.and_(is_null(low.copy()), is_null(high.copy()), odd, copy=False)
    return exp.paren(exp.or_(one, boundless, copy=False), copy=False)


def lowest(column: BoxColumn) -> exp.Expr:
    """Return the level of the lowest node over all values from ``px`` to ``py``, which are more than one."""
    steps = range(1, column.height)
    cases = [(equal(col(f"i{level}", "px"), col(f"i{level}", "py")), number(level)) for level in steps]
    return choose(*cases, otherwise=number(column.height)) if cases else number(column.height)


def _run_text(column: BoxColumn) -> exp.Expr:
    """Return the text of the run from ``x`` to ``y``."""
    if column.grid is not None:
        low, high = col("low", "gx"), col("high", "gy")
        # A region that is a node of the hierarchy that was given has the label of the node.
        of_node = [(present(col("label", "nn")), col("label", "nn"))] if column.names is not None else []
        return choose(
            *of_node,
            (exp.and_(present(low), present(high), copy=False), call("concat", text("["), low, text(", "), high)),
            (present(low), call("concat", text(">= "), low)),
            (present(high), col("upto", "gy")),
            otherwise=text(column.top),
        )
    low, high = col("shown", "x"), col("shown", "y")
    both = call("concat", text("["), low, text(", "), high, text("]"))
    if column.tight:
        return both
    return choose(
        (equal(col("place", "x"), column.first), call("concat", text("<= "), high)),
        (equal(col("place", "y"), column.last), call("concat", text(">= "), low)),
        otherwise=both,
    )


def _bounds(column: BoxColumn, alone: exp.Expr, run: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Return the typed bounds of a region; nodes have them only if they are single values."""
    ends: list[tuple[exp.Expr, exp.Expr]] = []
    for alias, near, bound, edge in (("x", "gx", "lo", column.first), ("y", "gy", "hi", column.last)):
        if column.grid is not None:
            ends.append((run, col(bound, near)))
        elif column.tight:
            ends.append((run, col("value", alias)))
        else:
            inner = exp.NEQ(this=col("place", alias), expression=number(edge))
            ends.append((exp.and_(run, inner, copy=False), col("value", alias)))
    own = exp.and_(alone, exp.Not(this=col("whole", "x")), copy=False), col("value", "x")
    low, high = (cast(choose(own, end), column.type) for end in ends)
    return low, high


def cells_query(
    column: BoxColumn, regions: str, nodes: str | None, positions: str, bounds: Sequence[exp.Expr] | None = None
) -> exp.Select:
    """Return ``(key_0, ..., cell, level, leaves, lo, hi)``: what every region stands for.

    ``level`` is that of the lowest node over it, ``leaves`` how many leaves of the domain it takes in. ``lo`` and
    ``hi`` are the ends of an interval as it is published, no farther out than the values of the column, and of a node
    the sizes of its outermost values that occur. ``bounds`` are the sizes of ``low`` and ``high`` of regions on a
    grid.
    """
    run, own = equal(col("w", "r"), RUN), equal(col("w", "r"), 0)
    at_top = equal(col("w", "r"), column.height)
    count = exp.Add(this=exp.Sub(this=col("last", "py"), expression=col("first", "px")), expression=number(1))
    leaves = [(run, call("greatest", count, number(1))), (own, number(1)), (at_top, number(column.leaves))]
    ends = []
    sides = (("x", "lo", "min", "greatest"), ("y", "hi", "max", "least"))
    for side, (alias, bound, pick, inner) in enumerate(sides):
        last = outermost(column, pick, "number")
        end: exp.Expr = col("number", alias)
        if column.grid is not None and bounds is not None:
            # Cuts and tight bounds are values. Those of a grid come from its groups, and may be open.
            end = call(inner, exp.func("COALESCE", bounds[side], last.copy()), last.copy())
        cases = [(run, end), (own, col("number", "x")), (at_top, last)]
        ends.append(named(choose(*cases, otherwise=col(bound, "n") if nodes is not None else None), bound))
    # A value that the hierarchy lacks is published as the top label, but on level 0. A grid has all values.
    value: exp.Expr = equal(col("v", "r"), 0)
    if column.grid is None:
        single = exp.and_(equal(col("v", "r"), RUN), equal(col("a", "r"), col("z", "r")), copy=False)
        value = exp.paren(exp.or_(value, single, copy=False), copy=False)
    level = choose((run, lowest(column)), (value, number(0)), otherwise=col("w", "r"))
    query = exp.select(
        *column.keys("r"),
        col("cell", "r"),
        named(cast(level, "INTEGER"), "level"),
        named(cast(choose(*leaves, otherwise=col("leaves", "n") if nodes is not None else None), "BIGINT"), "leaves"),
        *ends,
    ).from_(table(regions, "r"), copy=False)
    for alias, code, at in (("x", "a", "px"), ("y", "z", "py")):
        query = query.join(table(column.axis, alias), on=equal(col("code", alias), col(code, "r")), copy=False)
        query = query.join(table(positions, at), on=equal(col("code", at), col(code, "r")), copy=False)
    if nodes is not None:
        on = exp.and_(equal(col("level", "n"), col("w", "r")), equal(col("code", "n"), col("a", "r")), copy=False)
        query = query.join(left(table(nodes, "n"), on), copy=False)
    return query


def covers_query(column: BoxColumn, regions: str, levels: Sequence[int]) -> exp.Query:
    """Return ``(cell, code)``: the values that each region can stand for, ``levels`` being those of its nodes."""
    parts: list[exp.Query] = [
        _inside(column, exp.select(col("cell", "r"), col("code", "p")), regions).where(equal(col("w", "r"), RUN)),
        exp.select(col("cell"), named(col("a"), "code"))
        .from_(table(regions), copy=False)
        .where(equal(col("w"), 0), copy=False),
    ]
    for level in levels:
        node = f"c{level}"
        query = exp.select(col("cell", "r"), col("code", "m")).from_(table(regions, "r"), copy=False)
        query = query.join(table(column.levels, "k"), on=equal(col("code", "k"), col("a", "r")), copy=False)
        query = query.join(table(column.levels, "m"), on=equal(col(node, "m"), col(node, "k")), copy=False)
        parts.append(query.where(equal(col("w", "r"), level)))
    every = exp.select(col("cell", "r"), col("code", "p")).from_(table(regions, "r"), copy=False)
    parts.append(every.join(table(column.axis, "p"), on=equal(col("w", "r"), column.height)))
    return exp.select(col("cell"), col("code")).distinct(copy=False).from_(subquery(union_all(parts), "u"), copy=False)


def _inside(column: BoxColumn, query: exp.Select, regions: str) -> exp.Select:
    """Add regions ``r`` with all values ``p`` from their first to their last."""
    query = query.from_(table(regions, "r"), copy=False)
    for alias, code in (("x", "a"), ("y", "z")):
        query = query.join(table(column.axis, alias), on=equal(col("code", alias), col(code, "r")), copy=False)
    inside = exp.and_(
        exp.GTE(this=col("place", "p"), expression=col("place", "x")),
        exp.LTE(this=col("place", "p"), expression=col("place", "y")),
        copy=False,
    )
    return query.join(table(column.axis, "p"), on=inside, copy=False)


# What is published


def midpoint(column: BoxColumn) -> exp.Expr:
    """Return the value halfway between the bounds of a region; where one is open, the end of the axis takes its place.

    That of a node is halfway between the smallest and largest value under it that occur. The axis ends with its finite
    values: a region that lies beyond them is given by its one bound.
    """
    lo, hi = midpoint_ends(column)
    return choose(
        (col("mixed"), exp.null()),
        (equal(col("w"), 0), cast(col("value"), "DOUBLE") if column.family in NUMBERS else col("value")),
        otherwise=from_tick(_half(column, lo, hi), column),
    )


def midpoint_ends(column: BoxColumn) -> tuple[exp.Expr, exp.Expr]:
    """Return the ticks between which a midpoint lies, of a region of several values."""
    low, high = (tick(col(end), column) for end in ("low", "high"))
    # Both ignore NULL.
    first = call("least", outermost(column, "min", "tick"), high)
    last = call("greatest", outermost(column, "max", "tick"), low)
    run = equal(col("v"), RUN)
    lo = choose((run, exp.func("COALESCE", low.copy(), first)), otherwise=col("least"))
    return lo, choose((run.copy(), exp.func("COALESCE", high.copy(), last)), otherwise=col("most"))


def _half(column: BoxColumn, lo: exp.Expr, hi: exp.Expr) -> exp.Expr:
    if column.family in NUMBERS:
        halves = [exp.Div(this=exp.paren(end, copy=False), expression=number(2)) for end in (lo, hi)]
        return exp.paren(exp.Add(this=halves[0], expression=halves[1]), copy=False)
    total = exp.Add(this=cast(lo, "HUGEINT"), expression=cast(hi, "HUGEINT"))
    return exp.IntDiv(this=exp.paren(total, copy=False), expression=number(2))


def listed_values(column: BoxColumn, regions: str) -> exp.Select:
    """Return how many values all runs have in total."""
    query = exp.select().from_(table(regions, "r"), copy=False)
    for alias, code in (("x", "a"), ("y", "z")):
        query = query.join(table(column.axis, alias), on=equal(col("code", alias), col(code, "r")), copy=False)
    count = exp.Add(this=exp.Sub(this=col("place", "y"), expression=col("place", "x")), expression=number(1))
    total = exp.func("COALESCE", exp.Sum(this=cast(count, "BIGINT")), number(0))
    return query.select(total, copy=False).where(equal(col("v", "r"), RUN), copy=False)


def run_lists(column: BoxColumn, regions: str) -> exp.Select:
    """Return ``(key_0, ..., listed)``: the values of runs that occur in the table."""
    keys = column.keys("r")
    members = named(listing(col("text", "p"), col("place", "p")), "listed")
    query = _inside(column, exp.select(*keys, members), regions)
    query = query.where(exp.and_(equal(col("v", "r"), RUN), counted("p"), copy=False), copy=False)
    return query.group_by(*(key.copy() for key in keys), copy=False)


def class_lists(column: BoxColumn, position: int, boxes: str, members: TableName) -> exp.Select:
    """Return ``(class_id, q)``: the values of every published class, the top label where NULL is among others."""
    held = exp.select(col("class_id", "h"), named(col(f"c_{position}", "h"), "code")).distinct(copy=False)
    on = exp.and_(equal(col("class_id", "h"), col("class_id", "b")), col("kept", "b"), copy=False)
    held = held.from_(table(members, "h"), copy=False).join(table(boxes, "b"), on=on, copy=False)
    missing = is_null(col("value", "x"))
    mixed = exp.and_(call("bool_or", missing), exp.Not(this=call("bool_and", missing.copy())), copy=False)
    found = choose((mixed, text(column.top)), otherwise=listing(col("text", "x"), col("place", "x")))
    query = exp.select(col("class_id", "m"), named(found, "q")).from_(subquery(held, "m"), copy=False)
    query = query.join(table(column.axis, "x"), on=equal(col("code", "x"), col("code", "m")), copy=False)
    return query.group_by(col("class_id", "m"), copy=False)
