"""Statements about the classes of a full-domain recoding: their cells, what those stand for, and their members."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from duckanon.engine.sql.aggregates import shares_of
from duckanon.engine.sql.recode import Cell
from duckanon.engine.sql.relations import (
    cast,
    col,
    conjunction,
    ident,
    named,
    number,
    same,
    subquery,
    table,
    text,
    union_all,
)


def sizes_of_classes(rows: exp.Query, keys: Sequence[str]) -> tuple[exp.Select, str]:
    """Return the classes of published rows with their number of rows, and the name of that column, which no key has.

    Examples
    --------
    >>> query, size = sizes_of_classes(exp.select("*").from_("t"), ["N"])
    >>> print(size, "|", query.sql(dialect="duckdb"))
    n_ | SELECT "N", COUNT(*) AS "n_" FROM (SELECT * FROM t) AS "r" GROUP BY "N"
    """
    size = "n"
    while size in {name.lower() for name in keys}:
        size += "_"
    found = exp.select(*(col(name) for name in keys), named(exp.Count(this=exp.Star()), size))
    return found.from_(subquery(rows, "r")).group_by(*(col(name) for name in keys)), size


def level_cells(cell: Cell) -> exp.Query:
    """Return the cells of a level: the values themselves, or its labels."""
    null = cast(exp.null(), "DOUBLE")
    rest = [named(number(cell.level), "level")], [named(null, "lo"), named(null.copy(), "hi")]
    if cell.typed:
        own = exp.select(named(col("text"), "cell"), *rest[0], named(number(1), "leaves"), *rest[1])
        return own.from_(table(cell.values))
    labels = exp.select(named(col("label"), "cell"), *rest[0], col("leaves"), *rest[1]).from_(table(cell.labels))
    return labels.where(exp.EQ(this=col("level"), expression=number(cell.level)))


def level_covers(cell: Cell, leaves: int) -> exp.Query:
    """Return which values the cells of a level stand for; the top label stands for all of them."""
    if cell.typed:
        return exp.select(named(col("text"), "cell"), col("code")).from_(table(cell.values))
    on = exp.and_(
        exp.EQ(this=col("level", "l"), expression=number(cell.level)),
        exp.EQ(this=col("code", "l"), expression=col(f"c{cell.level}", "k")),
    )
    under = exp.select(named(col("label", "l"), "cell"), col("code", "k")).from_(table(cell.levels, "k"))
    under = under.join(table(cell.labels, "l"), on=on)
    whole = exp.and_(
        exp.EQ(this=col("level", "l"), expression=number(cell.level)),
        exp.EQ(this=col("leaves", "l"), expression=number(leaves)),
    )
    every = exp.select(named(col("label", "l"), "cell"), col("code", "k")).from_(table(cell.levels, "k"))
    return exp.union(under, every.join(table(cell.labels, "l"), on=whole), distinct=True)


def class_labels(class_map: str, cells: Sequence[Cell]) -> exp.Query:
    """Return ``(class_id, n, l_0, ...)``: the published classes with the texts of their cells."""
    query = exp.select(col("class_id", "c"), col("n", "c")).from_(table(class_map, "c")).where(col("kept", "c"))
    for j, cell in enumerate(cells):
        alias, code = f"t_{j}", col(f"g_{j}", "c")
        on = exp.EQ(this=col("code", alias), expression=code)
        if cell.typed:
            query = query.select(named(col("text", alias), f"l_{j}")).join(table(cell.values, alias), on=on)
        else:
            level = exp.EQ(this=col("level", alias), expression=number(cell.level))
            query = query.select(named(col("label", alias), f"l_{j}"))
            query = query.join(table(cell.labels, alias), on=exp.and_(on, level))
    return query


def class_members(frequency: str, class_map: str, cells: Sequence[Cell]) -> exp.Query:
    """Return the rows of every class by the codes of their values."""
    codes = [col(f"c_{j}", "f") for j in range(len(cells))]
    total = named(cast(exp.Sum(this=col("n", "f")), "BIGINT"), "n")
    query = _in_classes(frequency, class_map, cells)
    return query.select(*codes, total).group_by(col("class_id", "m"), *(c.copy() for c in codes))


def class_shares(
    frequency: str, class_map: str, cells: Sequence[Cell], position: int, leaves: int, *, masked: bool, ordered: bool
) -> exp.Query:
    """Return ``(class_id, q)``: for every class that is kept, a map from the values of a column to their shares.

    Numbers, dates and times (``ordered``) are counted by their labels on the first level, unless they are published as
    they are. NULL, and values that the hierarchy does not know (``masked``), count as the top label.
    """
    cell, code = cells[position], col(f"c_{position}", "f")
    query = _in_classes(frequency, class_map, cells).where(col("kept", "m"))
    query = query.join(table(cell.values, "v"), on=exp.EQ(this=col("code", "v"), expression=code))
    query = query.join(table(cell.levels, "x"), on=exp.EQ(this=col("code", "x"), expression=code.copy()))
    unknown: exp.Expr = exp.Is(this=col("value", "v"), expression=exp.null())
    key: exp.Expr = col("text", "v")
    if masked:
        query = query.join(table(cell.labels, "o"), on=_labelled("o", 0))
        unknown = exp.or_(unknown, exp.EQ(this=col("leaves", "o"), expression=number(leaves)))
    if ordered and cell.level:
        query, key = query.join(table(cell.labels, "l"), on=_labelled("l", 1)), col("label", "l")
    key = exp.case().when(unknown, text(cell.top)).else_(key)
    counted = query.select(named(key, "k"), named(exp.Sum(this=col("n", "f")), "n"))
    return shares_of(counted.group_by(col("class_id", "m"), key.copy()))


def _labelled(alias: str, level: int) -> exp.Expr:
    """Return the join condition between labels and the codes ``x`` of a level."""
    of_level = exp.EQ(this=col("level", alias), expression=number(level))
    return exp.and_(of_level, exp.EQ(this=col("code", alias), expression=col(f"c{level}", "x")))


def counted_values(attribute: str, frequency: str, values: str, class_map: str, cells: Sequence[Cell]) -> exp.Query:
    """Count the values of a sensitive column in every class that is kept, from its counts by codes."""
    on = exp.EQ(this=col("code", "v"), expression=col("value", "f"))
    query = _in_classes(frequency, class_map, cells).join(table(values, "v"), on=on).where(col("kept", "m"))
    total = named(cast(exp.Sum(this=col("n", "f")), "BIGINT"), "n")
    query = query.select(named(text(attribute), "attribute"), named(col("text", "v"), "value"), total)
    return query.group_by(col("class_id", "m"), col("code", "v"), col("text", "v"))


def _in_classes(frequency: str, class_map: str, cells: Sequence[Cell]) -> exp.Select:
    """Return the rows ``f`` of a frequency table, joined with their classes ``m``."""
    query = exp.select(col("class_id", "m")).from_(table(frequency, "f"))
    codes = [col(f"c_{j}", "f") for j in range(len(cells))]
    keys = []
    for j, cell in enumerate(cells):
        if cell.constant:
            continue
        if cell.typed:
            key: exp.Expr = codes[j].copy()
        else:
            alias = f"k_{j}"
            on = exp.EQ(this=col("code", alias), expression=codes[j].copy())
            query = query.join(table(cell.levels, alias), on=on)
            key = col(f"c{cell.level}", alias)
        keys.append(exp.EQ(this=col(f"g_{j}", "m"), expression=key))
    return query.join(table(class_map, "m"), on=conjunction(keys))


def class_values(labelled: str, released: exp.Query, cells: Sequence[Cell], sensitive: Sequence[str]) -> exp.Query:
    """Count the sensitive values of every class in the published rows, which are grouped before they are joined."""
    parts: list[exp.Query] = []
    for name in sensitive:
        value = named(cast(col("p_0", "g"), "VARCHAR"), "value")
        found = [col("class_id", "c"), named(text(name), "attribute"), value, col("n", "g")]
        parts.append(_by_class(labelled, released, cells, [name]).select(*found))
    return union_all(parts)


def class_rows(labelled: str, released: exp.Query, cells: Sequence[Cell], sensitive: Sequence[str]) -> exp.Query:
    """Return ``(class_id, p_0, ..., n)``: how often sensitive values occur together in every class."""
    values = [col(f"p_{i}", "g") for i in range(len(sensitive))]
    return _by_class(labelled, released, cells, sensitive).select(col("class_id", "c"), *values, col("n", "g"))


def _by_class(labelled: str, released: exp.Query, cells: Sequence[Cell], sensitive: Sequence[str]) -> exp.Select:
    """Return published rows ``g(p_0, ..., n)`` beside their classes ``c``; nothing is selected yet."""
    varying = [(j, c) for j, c in enumerate(cells) if not c.constant or c.shares is not None]
    shared = [(j, c.shares) for j, c in varying if c.shares is not None]
    keys = [named(col(c.name), f"q_{j}") for j, c in varying]
    values = [named(col(name), f"p_{i}") for i, name in enumerate(sensitive)]
    grouped = exp.select(*keys, *values, named(exp.Count(this=exp.Star()), "n")).from_(subquery(released.copy(), "r"))
    grouped = grouped.group_by(*(col(c.name) for _, c in varying), *(col(name) for name in sensitive))
    on = [same(cast(col(f"q_{j}", "g"), "VARCHAR"), col(f"l_{j}", "c")) for j, c in varying if c.shares is None]
    on += [exp.EQ(this=col(f"q_{j}", "g"), expression=col(f"q_{j}", "c")) for j, _ in shared]
    classes: exp.Select = exp.select(exp.Column(this=exp.Star(), table=ident("t"))).from_(table(labelled, "t"))
    for j, own in shared:
        tied = exp.EQ(this=col("class_id", f"h_{j}"), expression=col("class_id", "t"))
        classes = classes.select(named(col("q", f"h_{j}"), f"q_{j}")).join(table(own, f"h_{j}"), on=tied)
    joined: exp.Select = exp.select().from_(subquery(grouped, "g"))
    return joined.join(subquery(classes, "c") if shared else table(labelled, "c"), on=conjunction(on))


def published_labels(label_map: str, cells: Sequence[Cell]) -> exp.Query:
    """Return ``(class_id, q_0, ...)``: what is published of each class of a local recoding."""
    query = exp.select(col("class_id", "m")).distinct().from_(table(label_map, "m"))
    for j, cell in enumerate(cells):
        if cell.constant:
            continue
        published: exp.Expr = col(f"l_{j}", "m")
        if cell.typed:
            alias = f"v_{j}"
            on = exp.EQ(this=col("code", alias), expression=col(f"g_{j}", "m"))
            query = query.join(table(cell.values, alias), on=on)
            published = col("value", alias)
        if cell.enum is not None:
            published = exp.Cast(this=cast(published, "VARCHAR"), to=exp.DataType.build(cell.enum, udt=True))
        query = query.select(named(published, f"q_{j}"))
    return query
