"""Statements that apply a full-domain recoding: rows to classes, classes to labels, and rows in a random order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from duckanon.engine.sql.relations import (
    TableName,
    cast,
    col,
    hash_of,
    named,
    number,
    pack,
    qualified,
    same,
    shuffle_key,
    subquery,
    table,
    text,
)


@dataclass(frozen=True)
class Cell:
    """How one quasi-identifier is recoded: its value in the source, and the tables of its dictionary and levels.

    ``size`` is the number of codes on the chosen level; ``constant`` says that the level is the top, which needs no
    lookup; ``typed`` that the value itself is published (level 0), in its own type; ``enum`` names a type that holds
    the published texts in a few bytes while rows are sorted. ``shares`` names a table ``(class_id, q)`` where the
    distribution of the values of its class is published in place of a label.
    """

    name: str
    expression: exp.Expr
    values: str
    levels: TableName
    labels: TableName
    level: int
    size: int
    constant: bool
    typed: bool
    top: str
    enum: str | None = None
    shares: str | None = None


def class_table(grouped: exp.Select, cells: Sequence[Cell]) -> exp.Select:
    """Return ``(class_id, n, units, kept, w_0, ..., g_0, ...)``: the classes of a node in the order of their codes."""
    order = [exp.Ordered(this=col(f"g_{j}"), desc=False, nulls_first=False) for j in range(len(cells))]
    rank = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=order))
    words = pack([col(f"g_{j}") for j in range(len(cells))], [c.size for c in cells])
    return exp.select(
        named(cast(rank, "BIGINT"), "class_id"),
        col("n"),
        col("units"),
        col("kept"),
        *(named(word, f"w_{i}") for i, word in enumerate(words)),
        *(col(f"g_{j}") for j in range(len(cells))),
    ).from_(subquery(grouped, "c"))


def published_texts(cell: Cell) -> exp.Select:
    """Return the texts that the cells of a column can have, as ``label``."""
    if cell.typed:
        query = exp.select(named(col("text"), "label")).from_(table(cell.values))
    else:
        level = exp.EQ(this=col("level"), expression=number(cell.level))
        query = exp.select(col("label")).from_(table(cell.labels)).where(level)
    return query


ORDER = "duckanon order"
"""The column with a keyed hash of all that is published of a row."""
_PLACE = "duckanon place"


def shuffled(rows: exp.Select) -> exp.Select:
    """Return rows that have ``ORDER`` without it, in an order that depends only on their content and a key.

    Rows are numbered among those that are published alike, and sorted by a hash of that number and of their content:
    neighbours are independent of each other, equal rows as well. Rows that are published alike are interchangeable, so
    the order of the source leaves no trace, and any number of threads gives the same file.
    """
    names = [name for name in rows.named_selects if name != ORDER]
    alike = exp.Order(expressions=[exp.Ordered(this=col(ORDER), desc=False, nulls_first=False)])
    place = exp.Window(this=exp.RowNumber(), partition_by=[col(ORDER)], order=alike)
    numbered = exp.select(exp.Star(), named(place, _PLACE)).from_(subquery(rows, "o"))
    # Hashed twice: a hash of several values may mix the last one in weakly.
    key = hash_of(hash_of(col(ORDER), col(_PLACE)))
    return exp.select(*(col(name) for name in names)).from_(subquery(numbered, "n")).order_by(key)


def recoded_rows(
    source: exp.Query,
    cells: Sequence[Cell],
    classes: str,
    kept_columns: Sequence[tuple[str, exp.Expr]],
    keyed: bool = False,
) -> exp.Select:
    """Return the published rows as ``(q_0, ..., p_0, ...)``, with ``keyed`` also ``ORDER``.

    A join would lose the order, so rows carry their labels through the sort, as values of enumerations.
    """
    inner = exp.select().from_(subquery(source, "s"))
    codes: list[exp.Expr] = []
    labels: list[exp.Expr] = []
    for j, cell in enumerate(cells):
        if cell.constant:
            codes.append(number(0))
            continue
        alias = f"m_{j}"
        value = qualified(cell.expression, "s")
        inner = inner.join(subquery(_value_codes(cell), alias), on=same(value, col("value", alias)))
        codes.append(col("g", alias))
        if cell.shares is None:
            labels.append(named(col("q", alias), f"q_{j}"))
    words = pack(codes, [c.size for c in cells])
    inner = inner.select(
        *(named(word, f"w_{i}") for i, word in enumerate(words)),
        *labels,
        *(named(qualified(expression, "s"), f"p_{i}") for i, (_, expression) in enumerate(kept_columns)),
    )
    on = exp.and_(
        *(exp.EQ(this=col(f"w_{i}", "r"), expression=col(f"w_{i}", "c")) for i in range(len(words))), col("kept", "c")
    )
    passed = [col(f"p_{i}", "r") for i in range(len(kept_columns))]
    shared = {j: cell.shares for j, cell in enumerate(cells) if cell.shares is not None}
    carried = [
        *(col(label.alias, "r") for label in labels),
        *(named(col("q", f"h_{j}"), f"q_{j}") for j in shared),
        *passed,
    ]
    query = exp.select(*(carried or [col("class_id", "c")])).from_(subquery(inner, "r"))
    query = query.join(table(classes, "c"), on=on)
    for j, name in shared.items():
        alike = exp.EQ(this=col("class_id", f"h_{j}"), expression=col("class_id", "c"))
        query = query.join(table(name, f"h_{j}"), on=alike)
    if keyed:
        query = query.select(named(shuffle_key(col("class_id", "c"), *(p.copy() for p in passed)), ORDER))
    return query


def local_rows(
    source: exp.Query,
    cells: Sequence[Cell],
    sizes: Sequence[int],
    relations: Mapping[str, str],
    kept_columns: Sequence[tuple[str, exp.Expr]],
    keyed: bool = False,
) -> exp.Select:
    """Return the published rows of a local recoding as ``recoded_rows`` does: a row's class depends on all its values.

    ``sizes`` are those of the dictionaries; ``tuple_map(w_0, ..., class_id, kept)`` gives every combination of values
    its class, and ``published(class_id, q_0, ...)`` what is published of it.
    """
    inner = exp.select().from_(subquery(source, "s"))
    for j, cell in enumerate(cells):
        alias = f"v_{j}"
        on = same(qualified(cell.expression, "s"), col("value", alias))
        inner = inner.join(table(cell.values, alias), on=on)
    words = pack([col("code", f"v_{j}") for j in range(len(cells))], sizes)
    inner = inner.select(
        *(named(word, f"w_{i}") for i, word in enumerate(words)),
        *(named(qualified(expression, "s"), f"p_{i}") for i, (_, expression) in enumerate(kept_columns)),
    )
    on = exp.and_(
        *(exp.EQ(this=col(f"w_{i}", "r"), expression=col(f"w_{i}", "t")) for i in range(len(words))), col("kept", "t")
    )
    passed = [col(f"p_{i}", "r") for i in range(len(kept_columns))]
    labels = [col(f"q_{j}", "c") for j, cell in enumerate(cells) if not cell.constant]
    query = (
        exp.select(*([*labels, *passed] or [col("class_id", "t")]))
        .from_(subquery(inner, "r"))
        .join(table(relations["tuple_map"], "t"), on=on)
        .join(table(relations["published"], "c"), on=exp.EQ(this=col("class_id", "c"), expression=col("class_id", "t")))
    )
    if keyed:
        query = query.select(named(shuffle_key(col("class_id", "t"), *(p.copy() for p in passed)), ORDER))
    return query


def recoded_counts(source: exp.Query, cells: Sequence[Cell], expressions: Sequence[exp.Expr]) -> exp.Select:
    """Return how often each combination of published values would occur if another table were recoded the same way."""
    query = exp.select().from_(subquery(source, "s"))
    for j, (cell, expression) in enumerate(zip(cells, expressions, strict=True)):
        if cell.constant:
            query = query.select(named(text(cell.top), cell.name))
            continue
        alias = f"m_{j}"
        on = same(qualified(expression, "s"), col("value", alias))
        query = query.join(subquery(_value_codes(cell), alias), on=on)
        published: exp.Expr = col("q", alias)
        if cell.enum is not None:
            published = cast(published, "VARCHAR")
        query = query.select(named(published, cell.name))
    return query.select(named(exp.Count(this=exp.Star()), "n")).group_by(exp.var("ALL"))


def released_rows(rows: exp.Query, cells: Sequence[Cell], columns: Sequence[tuple[str, str]]) -> exp.Select:
    """Return the release: ``columns`` lists (published name, ``q_j`` or ``p_i``) in their order."""
    values: dict[str, exp.Expr] = {}
    for j, cell in enumerate(cells):
        if cell.shares is not None:
            continue
        if cell.constant:
            values[f"q_{j}"] = text(cell.top)
        elif cell.enum is not None:
            values[f"q_{j}"] = cast(col(f"q_{j}"), "VARCHAR")
    projection = [named(values.get(inner, col(inner)), name) for name, inner in columns]
    return exp.select(*projection).from_(subquery(rows, "r"))


def code_labels(cell: Cell, name: str) -> exp.Select:
    """Return ``(code, name)``: what is published of every value."""
    query = exp.select(col("code", "v")).from_(table(cell.values, "v"))
    if cell.constant:
        return query.select(named(text(cell.top), name))
    if cell.typed:
        return query.select(named(col("value", "v"), name))
    on = exp.EQ(this=col("code", "k"), expression=col("code", "v"))
    on_label = exp.and_(
        exp.EQ(this=col("level", "l"), expression=number(cell.level)),
        exp.EQ(this=col("code", "l"), expression=col(f"c{cell.level}", "k")),
    )
    query = query.join(table(cell.levels, "k"), on=on).join(table(cell.labels, "l"), on=on_label)
    return query.select(named(col("label", "l"), name))


def _value_codes(cell: Cell) -> exp.Select:
    """Return ``(value, g, q)``: every value with its code on the chosen level and what is published of it."""
    on = exp.EQ(this=col("code", "k"), expression=col("code", "v"))
    query = exp.select(col("value", "v"), named(col(f"c{cell.level}", "k"), "g"))
    query = query.from_(table(cell.values, "v")).join(table(cell.levels, "k"), on=on)
    if cell.typed:
        published: exp.Expr = col("value", "v")
    else:
        published = col("label", "l")
        on_label = exp.and_(
            exp.EQ(this=col("level", "l"), expression=number(cell.level)),
            exp.EQ(this=col("code", "l"), expression=col(f"c{cell.level}", "k")),
        )
        query = query.join(table(cell.labels, "l"), on=on_label)
    if cell.enum is not None:
        published = exp.Cast(this=published, to=exp.DataType.build(cell.enum, udt=True))
    return query.select(named(published, "q"))


def coded_rows(source: exp.Query, cells: Sequence[Cell], levels: bool, through: Sequence[exp.Expr]) -> exp.Select:
    """Return the rows of the source as ``(k_0, ..., [g_0, ...,] p_0, ...)``: codes of values, and on their levels."""
    query = exp.select().from_(subquery(source.copy(), "s"))
    for j, cell in enumerate(cells):
        on = same(qualified(cell.expression, "s"), col("value", f"v_{j}"))
        query = query.select(named(col("code", f"v_{j}"), f"k_{j}")).join(table(cell.values, f"v_{j}"), on=on)
        if levels:
            own = exp.EQ(this=col("code", f"h_{j}"), expression=col("code", f"v_{j}"))
            query = query.select(named(col(f"c{cell.level}", f"h_{j}"), f"g_{j}"))
            query = query.join(table(cell.levels, f"h_{j}"), on=own)
    return query.select(*through)


def rows_in_classes(
    rows: exp.Select, words: Sequence[exp.Expr], classes: str, width: int, through: Sequence[exp.Expr]
) -> exp.Select:
    """Return the coded rows with ``class_id``, and ``kept``: whether they are published."""
    on = exp.and_(*(exp.EQ(this=exp.paren(w), expression=col(f"w_{i}", "c")) for i, w in enumerate(words)))
    columns = [col(name, "i") for name in (*(f"k_{j}" for j in range(width)), *(t.alias for t in through))]
    kept = named(exp.func("COALESCE", col("kept", "c"), exp.false()), "kept")
    query = exp.select(*columns, col("class_id", "c"), kept).from_(subquery(rows, "i"))
    return query.join(table(classes, "c"), on=on, join_type="left")
