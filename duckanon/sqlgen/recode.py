"""Statements that apply a full-domain recoding: rows to classes, classes to labels, rows in an order of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from duckanon.sqlgen.relations import call, cast, col, named, number, param, qualified, same, subquery, table, union_all

_WORD = 2**62


@dataclass(frozen=True)
class Cell:
    """How one quasi-identifier is recoded: its value in the source, and the tables of its dictionary and levels.

    ``size`` is the number of codes on the chosen level; ``constant`` says that the level is the top, which needs no
    look-up.
    """

    name: str
    expression: exp.Expr
    values: str
    levels: str
    labels: str
    level: int
    size: int
    constant: bool
    typed: bool
    """Whether the value itself is published (level 0), in its own type."""


def pack(codes: Sequence[exp.Expr], sizes: Sequence[int]) -> list[exp.Expr]:
    """Return the codes packed into as few BIGINT words as hold them, most significant first."""
    words: list[exp.Expr] = []
    current: exp.Expr | None = None
    room = 1
    for code, size in zip(codes, sizes, strict=True):
        wide = cast(code, "BIGINT")
        if current is None or room * size > _WORD:
            if current is not None:
                words.append(current)
            current, room = wide, size
        else:
            product = exp.Mul(this=exp.paren(current), expression=number(size))
            current, room = exp.Add(this=product, expression=wide), room * size
    if current is not None:
        words.append(current)
    return words


def class_table(grouped: exp.Select, cells: Sequence[Cell], min_size: int) -> exp.Select:
    """Return ``(class_id, n, units, kept, w_0, ..., g_0, ...)``: the classes of a node in the order of their codes."""
    order = [exp.Ordered(this=col(f"g_{j}"), desc=False, nulls_first=False) for j in range(len(cells))]
    rank = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=order))
    words = pack([col(f"g_{j}") for j in range(len(cells))], [c.size for c in cells])
    return exp.select(
        named(cast(rank, "BIGINT"), "class_id"),
        col("n"),
        col("units"),
        named(exp.GTE(this=col("units"), expression=number(min_size)), "kept"),
        *(named(word, f"w_{i}") for i, word in enumerate(words)),
        *(col(f"g_{j}") for j in range(len(cells))),
    ).from_(subquery(grouped, "c"))


def class_labels(classes: str, cells: Sequence[Cell]) -> exp.Select:
    """Return ``(class_id, q_0, ...)``: the published value of each quasi-identifier for each kept class."""
    query = exp.select(col("class_id", "c")).from_(table(classes, "c")).where(col("kept", "c"))
    for j, cell in enumerate(cells):
        alias = f"l_{j}"
        code = exp.EQ(this=col("code", alias), expression=col(f"g_{j}", "c"))
        if cell.typed:
            query = query.select(named(col("value", alias), f"q_{j}")).join(table(cell.values, alias), on=code)
        else:
            level = exp.EQ(this=col("level", alias), expression=number(cell.level))
            query = query.select(named(col("label", alias), f"q_{j}")).join(
                table(cell.labels, alias), on=exp.and_(level, code)
            )
    return query


def class_cells(classes: str, cells: Sequence[Cell]) -> exp.Query:
    """Return ``class_cells(class_id, attribute, level, leaves, lo, hi)`` of the kept classes."""
    parts: list[exp.Query] = []
    null = cast(exp.null(), "DOUBLE")
    for j, cell in enumerate(cells):
        part = exp.select(
            col("class_id", "c"),
            named(exp.Literal.string(cell.name), "attribute"),
            named(number(cell.level), "level"),
        )
        part = part.from_(table(classes, "c")).where(col("kept", "c"))
        if cell.typed:
            part = part.select(named(number(1), "leaves"))
        else:
            on = exp.and_(
                exp.EQ(this=col("level", "l"), expression=number(cell.level)),
                exp.EQ(this=col("code", "l"), expression=col(f"g_{j}", "c")),
            )
            part = part.select(col("leaves", "l")).join(table(cell.labels, "l"), on=on)
        parts.append(part.select(named(null.copy(), "lo"), named(null.copy(), "hi")))
    return union_all(parts)


def shuffled_rows(
    source: exp.Query, cells: Sequence[Cell], classes: str, kept_columns: Sequence[tuple[str, exp.Expr]]
) -> exp.Select:
    """Return the kept rows as ``(class_id, p_0, ...)`` in an order that depends on nothing but their content and a key.

    Rows are sorted by a keyed hash of what is published of them. Rows that are published alike are interchangeable, so
    the order of the source leaves no trace, and any number of threads gives the same file.
    """
    inner = exp.select().from_(subquery(source, "s"))
    codes: list[exp.Expr] = []
    for j, cell in enumerate(cells):
        if cell.constant:
            codes.append(number(0))
            continue
        alias = f"m_{j}"
        inner = inner.join(
            subquery(_value_codes(cell), alias), on=same(qualified(cell.expression, "s"), col("value", alias))
        )
        codes.append(col("g", alias))
    words = pack(codes, [c.size for c in cells])
    inner = inner.select(
        *(named(word, f"w_{i}") for i, word in enumerate(words)),
        *(named(qualified(expression, "s"), f"p_{i}") for i, (_, expression) in enumerate(kept_columns)),
    )
    on = exp.and_(
        *(exp.EQ(this=col(f"w_{i}", "r"), expression=col(f"w_{i}", "c")) for i in range(len(words))), col("kept", "c")
    )
    published = [col(f"p_{i}", "r") for i in range(len(kept_columns))]
    key = call("hash", param("key0"), param("key1"), col("class_id", "c"), *(p.copy() for p in published))
    return (
        exp.select(col("class_id", "c"), *published)
        .from_(subquery(inner, "r"))
        .join(table(classes, "c"), on=on)
        .order_by(key)
    )


def labelled_rows(rows: str, labels: str, columns: Sequence[tuple[str, str]]) -> exp.Select:
    """Return the release: ``columns`` lists (published name, ``q_j`` or ``p_i``) in their order."""
    projection = [named(col(inner, "l" if inner.startswith("q_") else "r"), name) for name, inner in columns]
    on = exp.EQ(this=col("class_id", "l"), expression=col("class_id", "r"))
    return exp.select(*projection).from_(table(rows, "r")).join(table(labels, "l"), on=on)


def _value_codes(cell: Cell) -> exp.Select:
    on = exp.EQ(this=col("code", "k"), expression=col("code", "v"))
    return (
        exp.select(col("value", "v"), named(col(f"c{cell.level}", "k"), "g"))
        .from_(table(cell.values, "v"))
        .join(table(cell.levels, "k"), on=on)
    )
