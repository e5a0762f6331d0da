"""Statements that answer range queries: on original rows, and on generalized ones as far as these can tell."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from duckanon.engine.sql.relations import cast, col, conjunction, named, number, same, subquery, table, union_all

TOTALS = ("n", "total", "known")
"""What is added up over rows: how many there are, the sum of the averaged column, and how many have a value there."""

GRAIN = 2.0**40
"""Parts of a row are counted in these: sums of whole numbers are the same in whatever order they are added up."""


def totals(measure: exp.Expr | None, grain: float = 1.0) -> list[exp.Expr]:
    """Return the sums over rows, of which the last two are about the averaged column, if there is one.

    Its values are counted in so many parts of 1 as ``grain`` says.
    """
    found: list[exp.Expr] = [named(exp.Count(this=exp.Star()), "n")]
    if measure is not None:
        found.append(named(exp.Sum(this=_grains(measure, grain)), "total"))
        found.append(named(exp.Count(this=measure.copy()), "known"))
    return found


def sizes(measure: exp.Expr, source: exp.Query, grain: float) -> exp.Query:
    """Return ``(largest, total, known)`` of the absolute values of a column."""
    own = exp.Abs(this=measure)
    total = cast(exp.Sum(this=_grains(own, grain)), "DOUBLE")
    known = exp.Count(this=measure.copy())
    return exp.select(exp.Max(this=own.copy()), total, known).from_(subquery(source, "s"))


def _grains(value: exp.Expr, grain: float) -> exp.Expr:
    parts = exp.Mul(this=exp.Paren(this=value.copy()), expression=cast(number(grain), "DOUBLE"))
    return cast(exp.Round(this=parts), "HUGEINT")


def summed(tuples: str, keys: Sequence[str], measured: bool) -> exp.Query:
    """Return what the tuples of some columns have in sum."""
    sums = [named(exp.Sum(this=col(name)), name) for name in (TOTALS if measured else TOTALS[:1])]
    return exp.select(*(col(k) for k in keys), *sums).from_(table(tuples)).group_by(*(col(k) for k in keys))


def actual(queries: str, tuples: str, cuts: Sequence[str], keys: Sequence[str], measured: bool) -> exp.Query:
    """Return ``(query, n, total, known)`` of the original rows.

    ``queries(query, first_0, last_0, ...)`` has a range of cuts for each of ``keys``, the columns of ``tuples`` with
    codes; ``cuts`` names the table ``(code, cut)`` of each. Values that every query asks for or leaves out alike have
    one cut: rows are added up by cuts before queries look at them.
    """
    names = TOTALS if measured else TOTALS[:1]
    marginal = exp.select(*(named(exp.Sum(this=col(c, "m")), c) for c in names)).from_(table(tuples, "m"))
    inside = []
    for place, (name, key) in enumerate(zip(cuts, keys, strict=True)):
        alias, own = f"r{place}", f"cut_{place}"
        on = exp.EQ(this=col("code", alias), expression=col(key, "m"))
        marginal = marginal.join(table(name, alias), on=on).select(named(col("cut", alias), own))
        inside.append(_within(col(own, "c"), place))
    marginal = marginal.group_by(*(col("cut", f"r{place}") for place in range(len(keys))))
    query = exp.select(col("query", "q")).from_(subquery(marginal, "c"))
    query = query.join(table(queries, "q"), on=conjunction(inside))
    sums = (named(cast(exp.Sum(this=col(c, "c")), "DOUBLE"), c) for c in names)
    return query.select(*sums).group_by(col("query", "q"))


def estimated(marginal: exp.Query, shares: Sequence[str], keys: Sequence[str], measured: bool) -> exp.Query:
    """Return ``(query, n, total, known)`` as released rows tell it: every row counts by its share in the query.

    Numbers of rows are in parts, ``GRAIN`` of which are one row.

    ``shares`` names the table ``(query, cell, share)`` of each of ``keys``, the columns of ``marginal`` with cells.
    """
    query = exp.select(col("query", "s0")).from_(subquery(marginal, "m"))
    share: exp.Expr | None = None
    for place, (name, key) in enumerate(zip(shares, keys, strict=True)):
        alias = f"s{place}"
        on = same(col("cell", alias), col(key, "m"))
        if place:
            on = exp.and_(on, exp.EQ(this=col("query", alias), expression=col("query", "s0")))
        query = query.join(table(name, alias), on=on)
        own = col("share", alias)
        share = own if share is None else exp.Mul(this=share, expression=own)
    assert share is not None
    for name in TOTALS if measured else TOTALS[:1]:
        weighed = exp.Mul(this=cast(col(name, "m"), "DOUBLE"), expression=share.copy())
        # Values of the averaged column are whole numbers of small parts already.
        grains = _grains(weighed, 1.0 if name == "total" else GRAIN)
        query = query.select(named(cast(exp.Sum(this=grains), "DOUBLE"), name))
    return query.group_by(col("query", "s0"))


def spans(covers: exp.Query, ranks: str) -> exp.Query:
    """Return ``(cell, least, most, ranked, members)``: the ranks that a cell can stand for, their number, and all.

    NULL of a column of numbers has no rank.
    """
    on = exp.EQ(this=col("code", "r"), expression=col("code", "c"))
    rank = col("rank", "r")
    return (
        exp.select(
            col("cell", "c"),
            named(exp.Min(this=rank), "least"),
            named(exp.Max(this=rank.copy()), "most"),
            named(exp.Count(this=rank.copy()), "ranked"),
            named(exp.Count(this=exp.Star()), "members"),
        )
        .from_(subquery(covers, "c"))
        .join(table(ranks, "r"), on=on, join_type="left")
        .group_by(col("cell", "c"))
    )


def given_spans(given: exp.Query, ranks: str) -> exp.Query:
    """Return the same of ``(cell, first, last, members)``, cells that stand for all values from one code to another.

    Codes and ranks must have the same order.
    """
    query = exp.select(
        col("cell", "g"),
        named(col("rank", "a"), "least"),
        named(col("rank", "b"), "most"),
        named(col("members", "g"), "ranked"),
        col("members", "g"),
    ).from_(subquery(given, "g"))
    for alias, end in (("a", "first"), ("b", "last")):
        query = query.join(table(ranks, alias), on=exp.EQ(this=col("code", alias), expression=col(end, "g")))
    return query


def gaps(covers: exp.Query, ranks: str, spans: str) -> exp.Query:
    """Return ``(cell, rank, members)`` of the cells whose ranks have gaps: mostly few, where all cells are many."""
    on_code = exp.EQ(this=col("code", "r"), expression=col("code", "c"))
    return (
        exp.select(col("cell", "s"), col("rank", "r"), col("members", "s"))
        .from_(subquery(covers, "c"))
        .join(table(spans, "s"), on=exp.and_(same(col("cell", "s"), col("cell", "c")), exp.Not(this=_dense())))
        .join(table(ranks, "r"), on=on_code)
    )


def _dense() -> exp.Expr:
    length = exp.Add(this=exp.Sub(this=col("most", "s"), expression=col("least", "s")), expression=number(1))
    return exp.EQ(this=col("ranked", "s"), expression=length)


def shares(queries: str, place: int, spans: str, gaps: str, ranks: str, cells: exp.Query) -> exp.Query:
    """Return ``(query, cell, share)``: how much of what a cell can stand for a query asks for, where that is not 0.

    Values are taken as equally likely. Where the ranks of a cell have no gap the overlap of two ranges is enough; else
    its values are counted one by one. A cell without any value, the mean of a class say, lies inside or outside.
    """
    first, last = col(f"first_{place}", "q"), col(f"last_{place}", "q")
    least, most, members = (col(c, "s") for c in ("least", "most", "members"))
    meets = exp.and_(exp.LTE(this=first, expression=most.copy()), exp.GTE(this=last, expression=least.copy()))
    upper = exp.Least(this=last.copy(), expressions=[most.copy()])
    lower = exp.Greatest(this=first.copy(), expressions=[least.copy()])
    overlap = exp.Add(this=exp.Sub(this=upper, expression=lower), expression=number(1))
    without_gap = (
        exp.select(col("query", "q"), col("cell", "s"), named(_part(overlap, members), "share"))
        .from_(table(spans, "s"))
        .join(table(queries, "q"), on=exp.and_(_dense(), meets))
    )
    counted = (
        exp.select(
            col("query", "q"),
            col("cell", "g"),
            named(_part(exp.Count(this=exp.Star()), exp.Max(this=col("members", "g"))), "share"),
        )
        .from_(table(gaps, "g"))
        .join(table(queries, "q"), on=_within(col("rank", "g"), place))
        .group_by(col("query", "q"), col("cell", "g"))
    )
    return union_all([without_gap, counted, _points(queries, place, spans, ranks, cells)])


def _points(queries: str, place: int, spans: str, ranks: str, cells: exp.Query) -> exp.Query:
    seen = same(col("cell", "s"), col("cell", "p"))
    has_place = exp.Not(this=exp.Is(this=col("lo", "p"), expression=exp.null()))
    query = exp.select(col("query", "q"), col("cell", "p"), named(cast(number(1), "DOUBLE"), "share"))
    query = query.from_(table(queries, "q"))
    for alias, end in (("a", f"first_{place}"), ("b", f"last_{place}")):
        query = query.join(table(ranks, alias), on=exp.EQ(this=col("rank", alias), expression=col(end, "q")))
    inside = exp.and_(
        exp.GTE(this=col("lo", "p"), expression=col("number", "a")),
        exp.LTE(this=col("hi", "p"), expression=col("number", "b")),
    )
    return (
        query.join(subquery(cells, "p"), on=inside).join(table(spans, "s"), on=seen, join_type="anti").where(has_place)
    )


def _within(rank: exp.Expr, place: int) -> exp.Expr:
    return exp.Between(this=rank, low=col(f"first_{place}", "q"), high=col(f"last_{place}", "q"))


def _part(part: exp.Expr, whole: exp.Expr) -> exp.Expr:
    return exp.Div(this=cast(part, "DOUBLE"), expression=whole.copy())
