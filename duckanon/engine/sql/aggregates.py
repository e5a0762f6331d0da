"""Statements about the values of a class: means, medians and other outputs that depend on all of them."""

from __future__ import annotations

from sqlglot import exp

from duckanon.engine.sql.axes import NUMBERS, BoxColumn, choose, counted, equal, from_tick, is_null, present
from duckanon.engine.sql.relations import TableName, call, cast, col, in_utc, named, number, subquery, table, text


def class_means(column: BoxColumn, position: int, boxes: str, members: TableName) -> exp.Select:
    """Return ``(class_id, q)``: the mean of the values of every class, NULL where NULL is among them.

    Values that are not finite are left out. All but floats are summed exactly, and those in their order, so that
    the last digit is the same each time. Dates and times are divided exactly, too: a DOUBLE has too few digits for
    moments, so that a mean of them could lie before or after all of its values.
    """
    if column.family not in NUMBERS:
        return _class_moments(column, position, members)
    value, rows = col("tick", "x"), col("n", "m")
    total = exp.Sum(this=choose((present(value), rows)))
    units = 1
    if column.family == "float" or (column.family == "decimal" and column.scale is None):
        added = _in_order(exp.Mul(this=value, expression=rows))
    else:
        whole: exp.Expr = col("value", "x")
        if column.family == "decimal" and column.scale:
            units = 10**column.scale
            whole = exp.Mul(this=whole, expression=number(units))
        added = exp.Sum(this=exp.Mul(this=cast(whole, "HUGEINT"), expression=rows))
    scaled = exp.paren(exp.Mul(this=cast(total, "DOUBLE"), expression=cast(number(units), "DOUBLE")))
    mean = exp.Div(this=cast(added, "DOUBLE"), expression=scaled)
    return _by_class(column, position, members, from_tick(mean, column))


def _class_moments(column: BoxColumn, position: int, members: TableName) -> exp.Select:
    """Return the means of dates or times, rounded to the unit of their type."""
    fine = "_NS" in column.type.upper()
    value: exp.Expr = col("tick", "x")
    if fine:
        value = choose((present(value), call("epoch_ns", in_utc(col("value", "x"), column.type))))
    rows = col("n", "m")
    added = exp.Sum(this=exp.Mul(this=cast(value, "HUGEINT"), expression=rows))
    total = cast(exp.Sum(this=choose((present(value), rows))), "HUGEINT")
    two = number(2)
    # Half a unit is rounded away from zero, the quotient towards zero.
    half = choose((exp.LT(this=added, expression=number(0)), exp.Neg(this=total)), otherwise=total)
    doubled = exp.Add(this=exp.Mul(this=added.copy(), expression=two), expression=exp.paren(half))
    mean = exp.IntDiv(this=exp.paren(doubled), expression=exp.paren(exp.Mul(this=total.copy(), expression=two.copy())))
    made = from_tick(mean, column)
    if fine:
        made = cast(call("make_timestamp_ns", cast(mean, "BIGINT")), column.type)
    return _by_class(column, position, members, made)


def _by_class(column: BoxColumn, position: int, members: TableName, made: exp.Expr) -> exp.Select:
    """Return ``(class_id, q)`` of an aggregate over the members ``m`` of a class, NULL where NULL is among them."""
    found = choose((exp.Not(this=call("bool_or", is_null(col("value", "x")))), made))
    query = exp.select(col("class_id", "m"), named(found, "q")).from_(table(members, "m"))
    query = query.join(table(column.axis, "x"), on=equal(col("code", "x"), col(f"c_{position}", "m")))
    return query.group_by(col("class_id", "m"))


def class_geometric_means(column: BoxColumn, position: int, boxes: str, members: TableName) -> exp.Select:
    """Return ``(class_id, q)``: the geometric mean of the values of every class, NULL where NULL is among them.

    All values must be above 0; those that are not finite are left out. The mean is never outside the values.
    """
    value, rows = col("tick", "x"), col("n", "m")
    total = exp.Sum(this=choose((present(value), rows)))
    added = _in_order(exp.Mul(this=call("ln", value), expression=rows))
    mean = call("exp", exp.Div(this=added, expression=cast(total, "DOUBLE")))
    inside = call("least", call("greatest", mean, exp.Min(this=value)), exp.Max(this=value))
    found = choose((exp.Not(this=call("bool_or", is_null(col("value", "x")))), inside))
    query = exp.select(col("class_id", "m"), named(found, "q"))
    query = query.from_(subquery(_counts(position, boxes, members), "m"))
    query = query.join(table(column.axis, "x"), on=equal(col("code", "x"), col("code", "m")))
    return query.group_by(col("class_id", "m"))


def not_positive(column: BoxColumn) -> exp.Select:
    """Return how many values of the column are not above 0."""
    low = exp.LTE(this=col("value", "x"), expression=number(0))
    query = exp.select(exp.Count(this=exp.Star())).from_(table(column.axis, "x"))
    return query.where(exp.and_(counted("x"), low))


def class_medians(column: BoxColumn, position: int, boxes: str, members: TableName) -> exp.Select:
    """Return ``(class_id, q)``: the lower median of every published class, NULL where NULL is among its values."""
    by_class = [col("class_id")]
    upto = exp.Window(
        this=exp.Sum(this=col("n")),
        partition_by=by_class,
        order=exp.Order(expressions=[exp.Ordered(this=col("code"))]),
        spec=exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW"),
    )
    total = exp.Window(this=exp.Sum(this=col("n")), partition_by=by_class)
    last = exp.Window(this=exp.Max(this=col("code")), partition_by=by_class)
    running = exp.select(col("class_id"), col("code"), named(upto, "upto"), named(total, "total"), named(last, "last"))
    running = running.from_(subquery(_counts(position, boxes, members), "c"))
    middle: exp.Expr = exp.Min(this=col("code"))
    if column.null_code is not None:
        # NULL is the last of all codes.
        missing = equal(exp.Max(this=col("last")), column.null_code)
        middle = choose((missing, number(column.null_code)), otherwise=middle)
    half = exp.GTE(this=exp.Mul(this=col("upto"), expression=number(2)), expression=col("total"))
    chosen = exp.select(col("class_id"), named(middle, "code")).from_(subquery(running, "r"))
    return _values(column, chosen.where(half).group_by(col("class_id")))


def class_modes(column: BoxColumn, position: int, boxes: str, members: TableName) -> exp.Select:
    """Return ``(class_id, q)``: the most frequent value of every published class, the smallest of several."""
    most = exp.Window(this=exp.Max(this=col("n")), partition_by=[col("class_id")])
    ranked = exp.select(col("class_id"), col("code"), col("n"), named(most, "most"))
    ranked = ranked.from_(subquery(_counts(position, boxes, members), "c"))
    chosen = exp.select(col("class_id"), named(exp.Min(this=col("code")), "code")).from_(subquery(ranked, "r"))
    return _values(column, chosen.where(equal(col("n"), col("most"))).group_by(col("class_id")))


def class_medoids(column: BoxColumn, position: int, boxes: str, members: TableName) -> exp.Select:
    """Return ``(class_id, q)``: the value of the medoid of every published class."""
    chosen = exp.select(col("class_id"), named(col(f"m_{position}"), "code")).from_(table(boxes))
    return _values(column, chosen.where(col("kept")))


def class_shares(column: BoxColumn, position: int, boxes: str, members: TableName) -> exp.Select:
    """Return ``(class_id, q)``: for every published class, a map from values to their shares of its rows.

    Numbers, dates and times are counted by their labels on the first level of the hierarchy. NULL, and values that the
    hierarchy does not know, count as the top label. Keys are in their order, so that equal shares are equal maps.
    """
    own: exp.Expr = col("text", "x")
    if column.family != "other":
        own = col("label", "l")
    unknown = exp.or_(is_null(col("value", "x")), col("whole", "x"))
    key = choose((unknown, text(column.top)), otherwise=own)
    counts = exp.select(col("class_id", "m"), named(key, "k"), named(exp.Sum(this=col("n", "m")), "n"))
    counts = counts.from_(subquery(_counts(position, boxes, members), "m"))
    counts = counts.join(table(column.axis, "x"), on=equal(col("code", "x"), col("code", "m")))
    if column.family != "other":
        first = exp.and_(equal(col("level", "l"), 1), equal(col("code", "l"), col("c1", "k")))
        counts = counts.join(table(column.levels, "k"), on=equal(col("code", "k"), col("code", "m")))
        counts = counts.join(table(column.labels, "l"), on=first)
    return shares_of(counts.group_by(col("class_id", "m"), key.copy()))


def shares_of(counts: exp.Select) -> exp.Select:
    """Return ``(class_id, q)`` of counts ``(class_id, k, n)``: from each k to its share of the class."""
    total = exp.Window(this=exp.Sum(this=col("n")), partition_by=[col("class_id")])
    share = exp.Div(this=cast(col("n"), "DOUBLE"), expression=cast(total, "DOUBLE"))
    shares = exp.select(col("class_id"), col("k"), named(share, "v")).from_(subquery(counts, "c"))
    pair = exp.Struct(expressions=[exp.PropertyEQ(this=text(c), expression=col(c)) for c in ("k", "v")])
    listed = call("list", exp.Order(this=pair, expressions=[exp.Ordered(this=col("k"), nulls_first=False)]))
    query = exp.select(col("class_id"), named(call("map_from_entries", listed), "q")).from_(subquery(shares, "s"))
    return query.group_by(col("class_id"))


def _in_order(products: exp.Expr) -> exp.Expr:
    """Return the sum of floats in ascending order, so that it does not depend on the order of rows."""
    return call("list_sum", call("list_sort", call("list", products)))


def _counts(position: int, boxes: str, members: TableName) -> exp.Select:
    """Return ``(class_id, code, n)``: the values of every published class, with their rows."""
    code = col(f"c_{position}", "h")
    query = exp.select(col("class_id", "h"), named(code, "code"), named(exp.Sum(this=col("n", "h")), "n"))
    on = exp.and_(equal(col("class_id", "h"), col("class_id", "b")), col("kept", "b"))
    query = query.from_(table(members, "h")).join(table(boxes, "b"), on=on)
    return query.group_by(col("class_id", "h"), code.copy())


def _values(column: BoxColumn, chosen: exp.Select) -> exp.Select:
    """Return ``(class_id, q)`` of chosen codes: texts, or typed values, NULL where a hierarchy does not know one."""
    shown: exp.Expr = col("value", "x")
    if column.type == "VARCHAR":
        shown = col("text", "x")
    elif column.masked:
        shown = choose((exp.Not(this=col("whole", "x")), shown))
    query = exp.select(col("class_id", "m"), named(shown, "q")).from_(subquery(chosen, "m"))
    return query.join(table(column.axis, "x"), on=equal(col("code", "x"), col("code", "m")))


AGGREGATES = {
    "mean": class_means,
    "median": class_medians,
    "geometric_mean": class_geometric_means,
    "mode": class_modes,
    "medoid": class_medoids,
    "proportional": class_shares,
}
"""The statement of an output, by its name: ``(column, position, boxes, members)``."""
