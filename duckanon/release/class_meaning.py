"""What is published of a class as a whole, a mean, a share of each value, compared with the values of its rows."""

from __future__ import annotations

from sqlglot import exp

from duckanon.engine.sql.axes import NUMBERS, choose, equal, is_null, present
from duckanon.engine.sql.relations import (
    call,
    cast,
    col,
    epoch_microseconds,
    epoch_seconds,
    in_utc,
    is_finite,
    named,
    number,
    same,
    subquery,
    text,
)
from duckanon.release.cell_meaning import Shown

BY_CLASS = ("midpoint", "mean", "median", "geometric_mean", "mode", "medoid", "proportional")
"""Outputs that depend on a whole class: one row cannot show whether they are right."""
_NEAR = 1e-9
"""More than the rounding error of a mean, relatively."""


def class_is_right(shown: Shown, published: str, ends: bool) -> exp.Expr:
    """Return whether the cell of a class, of the type ``published``, follows from its values.

    ``ends`` says that the ends of its region are known, as ``low_end`` and ``high_end``.
    """
    value, cell = col("value"), col("cell")
    missing = call("bool_or", is_null(value.copy()))
    if shown.kind in ("median", "mode", "medoid"):
        own: exp.Expr = value.copy()
        if published == "VARCHAR":
            own = cast(own, "VARCHAR")
        # A value that its hierarchy does not know is published as the top label, or not at all.
        hidden = is_null(cell.copy())
        if published == "VARCHAR":
            hidden = exp.or_(hidden, equal(cell.copy(), text(shown.top)))
        unknown = exp.and_(hidden, exp.Not(this=exp.func("COALESCE", col("known"), exp.true())))
        return call("bool_or", exp.or_(same(own, cell.copy()), exp.paren(unknown)))
    finite: exp.Expr = value.copy()
    if shown.family in ("float", "date", "timestamp"):
        finite = choose((is_finite(in_utc(value.copy(), shown.type)), value.copy()))
    numbers = shown.family in ("integer", "decimal", "float")
    least, most = exp.Min(this=finite), exp.Max(this=finite.copy())
    low: exp.Expr = cast(least, "DOUBLE") if numbers else least
    high: exp.Expr = cast(most, "DOUBLE") if numbers else most
    if shown.kind == "midpoint" and ends:
        return _is_middle(shown, missing)
    given: exp.Expr = cast(cell.copy(), "DOUBLE") if numbers else cell.copy()
    inside: exp.Expr = exp.Between(this=given, low=low, high=high)
    if numbers:
        slack = exp.Mul(
            this=exp.paren(exp.Add(this=exp.Abs(this=low.copy()), expression=exp.Abs(this=high.copy()))),
            expression=number(_NEAR),
        )
        under, over = exp.Sub(this=low.copy(), expression=slack), exp.Add(this=high.copy(), expression=slack.copy())
        inside = exp.Between(this=given.copy(), low=under, high=over)
    inside = choose((is_null(exp.Min(this=finite.copy())), is_null(cell.copy())), otherwise=inside)
    return choose((missing, is_null(cell.copy())), otherwise=inside)


def shares_are_right(shown: Shown, labelled: exp.Query, name: str) -> exp.Select:
    """Return whether each class has exactly the shares of its values, by their labels or texts."""
    plain = exp.and_(present(col("value")), exp.func("COALESCE", col("known"), exp.false()))
    label = choose((plain, col(name)), otherwise=text(shown.top))
    counts = exp.select(col("cell_key"), col("cell"), named(label, "k"), named(exp.Sum(this=col("n")), "n"))
    counts = counts.from_(subquery(labelled, "y")).group_by(col("cell_key"), col("cell"), label.copy())
    total = exp.Window(this=exp.Sum(this=col("n")), partition_by=[col("cell_key")])
    kinds = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[col("cell_key")])
    share = exp.Div(this=cast(col("n"), "DOUBLE"), expression=cast(total, "DOUBLE"))
    # A list of one share, or none.
    given = call("list_extract", call("map_extract", col("cell"), col("k")), number(1))
    near = exp.LT(this=exp.Abs(this=exp.Sub(this=given, expression=share)), expression=number(_NEAR))
    several = equal(call("cardinality", col("cell")), kinds)
    return exp.select(named(exp.and_(near, several), "ok")).from_(subquery(counts, "q"))


def _tick(value: exp.Expr, shown: Shown) -> exp.Expr:
    """Return a value as a number: days, microseconds, or itself; NULL where it is not finite."""
    if shown.family in NUMBERS:
        plain = cast(value, "DOUBLE")
        return choose((is_finite(plain.copy()), plain))
    if shown.family == "date":
        return cast(exp.Div(this=epoch_seconds(value), expression=number(86400)), "BIGINT")
    return cast(epoch_microseconds(in_utc(value, shown.type)), "BIGINT")


def _is_middle(shown: Shown, missing: exp.Expr) -> exp.Expr:
    """Return whether all values of a class lie between two ends, and its cell halfway between them."""
    cell = col("cell") if shown.family in NUMBERS else _tick(col("cell"), shown)
    own = _tick(col("value"), shown)
    low, high = col("low_end"), col("high_end")
    outside = exp.or_(exp.LT(this=own, expression=low), exp.GT(this=own.copy(), expression=high))
    inside = exp.Not(this=exp.func("COALESCE", call("bool_or", outside), exp.false()))
    if shown.family in NUMBERS:
        halves = [exp.Div(this=exp.paren(end.copy()), expression=number(2)) for end in (low, high)]
        apart = exp.Abs(this=exp.Sub(this=cell, expression=exp.paren(exp.Add(this=halves[0], expression=halves[1]))))
        wide = exp.Add(this=exp.Abs(this=low.copy()), expression=exp.Abs(this=high.copy()))
        middle: exp.Expr = exp.LTE(this=apart, expression=exp.Mul(this=exp.paren(wide), expression=number(_NEAR)))
        alone = call("bool_and", equal(cast(col("value"), "DOUBLE"), col("cell")))
    else:
        total = exp.Add(this=cast(low.copy(), "HUGEINT"), expression=cast(high.copy(), "HUGEINT"))
        middle = equal(cell, exp.IntDiv(this=exp.paren(total), expression=number(2)))
        alone = call("bool_and", equal(col("value"), col("cell")))
    true = exp.or_(exp.func("COALESCE", alone, exp.false()), exp.paren(exp.and_(inside, middle)))
    return choose((missing, is_null(col("cell"))), otherwise=exp.paren(true))


__all__ = ["BY_CLASS", "class_is_right", "shares_are_right"]
