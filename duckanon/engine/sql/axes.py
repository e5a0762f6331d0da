"""Statements about the ordered values of a column, and about the nodes of its hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from duckanon.engine.sql.dialect import epoch_microseconds, epoch_seconds, is_finite
from duckanon.engine.sql.relations import (
    TableName,
    call,
    cast,
    col,
    conjunction,
    in_utc,
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
    ``axis_query``, ``grid`` by ``grids.grid_bounds``. ``first`` and ``last`` are the places of the smallest and largest
    value that is not NULL, ``last_code`` is the code of the latter, ``null_code`` that of NULL. ``scale`` are the
    decimal places of a type that is narrow enough to be counted in its smallest unit.
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
