"""Columns to dense integer codes, and the frequency table of distinct quasi-identifier tuples.

One pass over each quasi-identifier makes its dictionary; one pass over all of them the frequency table. A search never
reads the rows again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.engine.sql.axes import present
from duckanon.engine.sql.relations import (
    Column,
    call,
    cast,
    col,
    left,
    named,
    number,
    qualified,
    registered,
    same,
    subquery,
    table,
    text,
    union_all,
)
from duckanon.io.parquet_types import kept_type

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine
    from duckanon.engine.sql.relations import TableName
    from duckanon.io.source import Relation


FEW = 10_000
"""Up to this many values of a column, texts and labels are handled in memory, which saves statements."""
_FLOATS = {"FLOAT", "DOUBLE", "REAL"}


def canonical(value: exp.Expr, type_name: str, collated: bool) -> exp.Expr:
    """Return the value as it is counted and published: equal here if and only if equal in the file.

    Negative zero becomes zero, collations are removed, and types that Parquet would change become text, also within
    lists, structs and maps.
    """
    upper = type_name.upper()
    if upper in _FLOATS:
        return cast(exp.Add(this=value, expression=cast(number(0), type_name)), type_name)
    kept = kept_type(type_name)
    if kept != type_name:
        return cast(value, kept)
    if upper.startswith("VARCHAR") and collated and not upper.endswith("]"):
        return call("decode", call("encode", value))
    return value


def published_type(type_name: str) -> str:
    """Return the type that a value has after ``canonical``."""
    return kept_type(type_name)


def code_type(size: int) -> str:
    """Return the smallest unsigned type that holds codes below ``size``."""
    for name, limit in (("UTINYINT", 2**8), ("USMALLINT", 2**16), ("UINTEGER", 2**32)):
        if size <= limit:
            return name
    return "UBIGINT"


@dataclass(frozen=True)
class Dictionary:
    """The distinct values of one quasi-identifier: ``table(code, value, text, n)``, in the order of the values.

    ``null`` says that NULL is among them; it is the last. ``texts`` are their texts, where they are few.
    """

    attribute: str
    expression: exp.Expr
    table: str
    size: int
    null: bool = False
    texts: pa.Array | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Coded:
    """A dictionary with the codes of its values on every level of a hierarchy.

    ``levels(code, c0, c1, ..., ch)`` maps a value's code to its code on each level, and
    ``labels(level, code, label, leaves)`` names them; level 0 only where ``masked`` says that some values are published
    as the top label even there. ``arrays`` are both tables in memory, where values are few.
    """

    dictionary: Dictionary
    levels: TableName
    labels: TableName
    height: int
    sizes: tuple[int, ...]
    domain_size: int
    masked: bool
    arrays: tuple[pa.Table, pa.Table] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Frequency:
    """``table(c_0, ..., c_d-1, [carried,] n)``: every distinct tuple of codes with its number of rows.

    ``carried`` names one more grouping column: "entity", or "value", the code of a sensitive value.
    """

    table: str
    coded: tuple[Coded, ...]
    rows: int
    carried: str | None = None

    @property
    def entity(self) -> bool:
        """Whether rows are grouped by person, too."""
        return self.carried == "entity"


def dictionary(
    engine: Engine, source: exp.Query, attribute: str, expression: exp.Expr, further: exp.Query | None = None
) -> Dictionary:
    """Create the dictionary of one column of ``source``; NULL is a value like any other.

    ``further(value)`` are values that get a code though no row may have them; with ``first`` they also say by
    what a text is ordered.
    """
    (only,) = dictionaries(engine, source, [(attribute, expression, further)])
    return only


def dictionaries(
    engine: Engine, source: exp.Query, columns: Sequence[tuple[str, exp.Expr, exp.Query | None]]
) -> list[Dictionary]:
    """Create the dictionaries of several columns, each with its name, its expression and ``further`` values."""
    made = []
    for attribute, expression, further in columns:
        name = engine.fresh("values")
        size = engine.create(name, dictionary_query(source, expression, further))
        made.append(Dictionary(attribute, expression, name, size))
    texts = _texts(engine, [own.table for own in made if own.size <= FEW])
    return [_complete(engine, own, texts.get(own.table)) for own in made]


def _complete(engine: Engine, own: Dictionary, texts: pa.Array | None) -> Dictionary:
    """Say whether NULL is among the values, and what their texts are."""
    if texts is not None:
        return replace(own, null=texts.null_count > 0, texts=texts)
    missing = exp.Is(this=col("value"), expression=exp.null())
    (null,) = engine.row(exp.select(call("bool_or", missing)).from_(table(own.table), copy=False))
    return replace(own, null=bool(null))


def _texts(engine: Engine, values: Sequence[str]) -> dict[str, pa.Array]:
    """Return the texts of some dictionaries, each in the order of its codes; all are fetched by one statement."""
    import numpy as np
    import pyarrow as pa

    if not values:
        return {}
    parts: list[exp.Query] = [
        exp.select(named(number(at), "at"), col("code"), col("text")).from_(table(name), copy=False)
        for at, name in enumerate(values)
    ]
    found = engine.arrow(union_all(parts))
    at, code = (found.column(c).to_numpy() for c in ("at", "code"))
    texts = found.column("text").combine_chunks().cast(pa.string()).take(pa.array(np.lexsort((code, at))))
    ends = np.cumsum(np.bincount(at, minlength=len(values))).tolist()
    return {name: texts[start:end] for name, start, end in zip(values, [0, *ends], ends, strict=False)}


def dictionary_query(source: exp.Query, expression: exp.Expr, further: exp.Query | None = None) -> exp.Query:
    """Return the statement that numbers the distinct values of a column."""
    counted = exp.select(named(expression, "value"), named(exp.Count(this=exp.Star()), "n")).from_(
        subquery(source, "s"), copy=False
    )
    counted = counted.group_by(expression.copy(), copy=False)
    order = [exp.Ordered(this=col("value"), desc=False, nulls_first=False)]
    as_text = isinstance(expression, exp.Cast) and expression.is_type(exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR)
    by_first = as_text and (further is None or "first" in further.named_selects)
    if by_first:
        # What is published as text is in the order of the values themselves: 5 before 20, "low" before "high".
        counted = counted.select(named(exp.Min(this=expression.this.copy()), "first"))
        order.insert(0, exp.Ordered(this=col("first"), desc=False, nulls_first=False))
    if further is not None:
        firsts = [col("first")] if by_first else []
        none = exp.select(col("value"), named(cast(number(0), "BIGINT"), "n"), *firsts)
        none = none.from_(subquery(further, "f"), copy=False)
        both = exp.select(col("value"), named(cast(exp.Sum(this=col("n")), "BIGINT"), "n"))
        both = both.select(*(named(exp.Min(this=first), "first") for first in firsts))
        counted = both.from_(subquery(union_all([counted, none]), "b")).group_by(col("value"))
    rank = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=order))
    return exp.select(
        named(cast(exp.Sub(this=rank, expression=number(1)), "INTEGER"), "code"),
        col("value"),
        named(cast(col("value"), "VARCHAR"), "text"),
        col("n"),
    ).from_(subquery(counted, "v"), copy=False)


def code_levels(
    engine: Engine,
    values: Dictionary,
    tree: TableName,
    leaves: TableName,
    height: int,
    domain_size: int,
    top: str,
    masked: bool,
    arrays: tuple[pa.Table, pa.Table] | None = None,
) -> Coded:
    """Give every label of every level a dense code, in the order of the labels.

    ``tree(code, known, l1, ..., lh)`` holds the labels of each value, ``leaves(level, label, leaves)`` how many leaves
    of the domain lie under each. ``arrays`` are both tables in memory, where all values are in the hierarchy and few.
    """
    if arrays is not None:
        made = _numbered_arrays(*arrays, height)
        tables = registered(engine, "levels", made[0]), registered(engine, "labels", made[1])
        counts = made[1].column("level").value_counts().field("counts").to_pylist()
        return Coded(values, *tables, height, (values.size, *counts), domain_size, masked, made)
    labels, levels = engine.fresh("labels"), engine.fresh("levels")
    base = tree
    if masked:
        base = engine.fresh("masked")
        engine.create(base, _with_level_zero(values, tree, height, top))
    first = 0 if masked else 1
    engine.create(labels, _numbered(base, leaves, range(first, height + 1), top, domain_size))
    projection: list[exp.Expr] = [col("code", "j")]
    select = exp.select().from_(table(base, "j"), copy=False)
    for level in range(height + 1):
        if level == 0 and not masked:
            projection.append(named(col("code", "j"), "c0"))
            continue
        alias = f"k{level}"
        projection.append(named(cast(col("code", alias), "INTEGER"), f"c{level}"))
        condition = exp.and_(
            exp.EQ(this=col("level", alias), expression=number(level)),
            same(col("label", alias), col(f"l{level}", "j")),
            copy=False,
        )
        select = select.join(table(labels, alias), on=condition, copy=False)
    engine.create(levels, select.select(*projection))
    counted = (
        exp.select(col("level"), exp.Count(this=exp.Star()))
        .from_(table(labels), copy=False)
        .group_by(col("level"), copy=False)
    )
    found = {int(level): int(n) for level, n in engine.rows(counted)}
    sizes = tuple(found.get(level, values.size) for level in range(height + 1))
    return Coded(values, levels, labels, height, sizes, domain_size, masked)


def _numbered_arrays(tree: pa.Table, leaves: pa.Table, height: int) -> tuple[pa.Table, pa.Table]:
    """Return the tables ``levels`` and ``labels`` of ``Coded``; NULL is the last label of its level."""
    import pyarrow as pa
    import pyarrow.compute as pc

    codes = tree.column("code")
    levels, labels = {"code": codes, "c0": codes}, []
    for level in range(1, height + 1):
        # Finding out the type of a plain number takes longer than the comparison.
        own_level = pa.scalar(level, pa.int32())
        own = tree.column(f"l{level}").combine_chunks()
        label = own.unique()
        label = label.take(pc.sort_indices(label))
        levels[f"c{level}"] = pc.index_in(own, value_set=label)
        under = leaves.filter(pc.equal(leaves.column("level"), own_level)).combine_chunks()
        at = pc.index_in(label, value_set=under.column("label").combine_chunks())
        numbers = {
            "level": pa.repeat(own_level, len(label)),
            "code": pa.array(range(len(label)), pa.int64()),
            "label": label,
            "leaves": under.column("leaves").take(at),
        }
        labels.append(pa.table(numbers))
    return pa.table(levels), pa.concat_tables(labels).combine_chunks()


def frequency(
    engine: Engine,
    source: exp.Query,
    coded: Sequence[Coded],
    entity: exp.Expr | None = None,
    value: Dictionary | None = None,
    expected: int = 0,
) -> Frequency:
    """Create the frequency table: the rows are read once, joined with the dictionaries and grouped.

    Rows are also grouped by ``entity``, or by ``value``, the dictionary of a sensitive column. If ``expected`` rows are
    too many for the memory, the table is a file, and rows of persons are not grouped: few are alike.
    """
    name = engine.fresh("frequency")
    query = frequency_query(source, [c.dictionary for c in coded], entity, value)
    crowded = engine.is_crowded_by(expected * (4 * len(coded) + 16))
    if crowded and entity is not None:
        query = ungrouped(query)
    (engine.create_file if crowded else engine.create)(name, query)
    (rows,) = engine.row(
        exp.select(exp.func("COALESCE", exp.Sum(this=col("n")), number(0))).from_(table(name), copy=False)
    )
    carried = "entity" if entity is not None else "value" if value is not None else None
    return Frequency(name, tuple(coded), int(rows), carried)


def frequency_query(
    source: exp.Query,
    dictionaries: Sequence[Dictionary],
    entity: exp.Expr | None = None,
    value: Dictionary | None = None,
) -> exp.Select:
    """Return the statement that counts the distinct tuples of codes."""
    query = exp.select().from_(subquery(source, "s"), copy=False)
    columns = [(f"c_{position}", values) for position, values in enumerate(dictionaries)]
    if value is not None:
        columns.append(("value", value))
    for position, (name, values) in enumerate(columns):
        alias = f"v{position}"
        code = named(cast(col("code", alias), code_type(values.size)), name)
        query = query.select(code, copy=False).join(
            table(values.table, alias), on=same(qualified(values.expression, "s"), col("value", alias)), copy=False
        )
    if entity is not None:
        query = query.select(named(qualified(entity, "s"), "entity"), copy=False)
    return query.select(named(exp.Count(this=exp.Star()), "n"), copy=False).group_by(exp.var("ALL"), copy=False)


def ungrouped(counts: exp.Select) -> exp.Select:
    """Return the statement of a frequency table without grouping."""
    plain = counts.copy()
    plain.set("group", None)
    plain.set("expressions", [named(number(1), "n") if s.alias == "n" else s for s in plain.expressions])
    return plain


def _with_level_zero(values: Dictionary, tree: TableName, height: int, top: str) -> exp.Select:
    """Return the tree with ``l0``: the value's text, or the top label where the hierarchy does not know the value."""
    zero = exp.Case().when(col("known", "t"), col("text", "v"), copy=False).else_(text(top), copy=False)
    return (
        exp.select(col("code", "t"), named(zero, "l0"), *(col(f"l{i}", "t") for i in range(1, height + 1)))
        .from_(table(tree, "t"), copy=False)
        .join(table(values.table, "v"), on=exp.EQ(this=col("code", "v"), expression=col("code", "t")), copy=False)
    )


def _numbered(base: TableName, leaves: TableName, levels: Sequence[int], top: str, domain_size: int) -> exp.Select:
    """Number the distinct labels of each level in their order, with the number of leaves under each."""
    distinct: list[exp.Query] = [
        exp.select(named(number(level), "level"), named(col(f"l{level}"), "label"))
        .distinct(copy=False)
        .from_(table(base), copy=False)
        for level in levels
    ]
    order = exp.Order(expressions=[exp.Ordered(this=col("label", "g"), desc=False, nulls_first=False)])
    rank = exp.Window(this=exp.RowNumber(), partition_by=[col("level", "g")], order=order)
    # On level 0, too, the top label stands for the whole domain.
    whole = (
        exp.case()
        .when(same(col("label", "g"), text(top)), number(domain_size), copy=False)
        .else_(number(1), copy=False)
    )
    is_zero = exp.EQ(this=col("level", "g"), expression=number(0))
    under = exp.and_(
        exp.EQ(this=col("level", "n"), expression=col("level", "g")),
        same(col("label", "n"), col("label", "g")),
        copy=False,
    )
    return (
        exp.select(
            col("level", "g"),
            named(exp.Sub(this=rank, expression=number(1)), "code"),
            col("label", "g"),
            named(
                cast(exp.case().when(is_zero, whole, copy=False).else_(col("leaves", "n"), copy=False), "BIGINT"),
                "leaves",
            ),
        )
        .from_(subquery(union_all(distinct), "g"), copy=False)
        .join(left(table(leaves, "n"), under), copy=False)
    )


# Published texts as enumerations: short codes to sort by. They are texts again before they are written.

MANY_TEXTS = 1_000_000
"""Most texts of a column that are enumerated, where the database looks up in many of them quickly."""
ENUM_LIMIT = 50_000
"""Beyond this many texts in a column, an enumeration costs more to look up in than its short codes save in the sort."""


def enumerated(
    engine: Engine, source: exp.Table, keys: Sequence[exp.Expr], shown: exp.Expr, most: int | None = None
) -> exp.Query:
    """Return ``(keys, q)`` of a table with its published texts, and no others, as values of an enumeration.

    ``most`` is given if none of them is NULL, and there are at most so many.
    """
    if most is None or most > _limit(engine):
        different = call("count", exp.Distinct(expressions=[shown]))
        (most,) = engine.row(exp.select(different).from_(source, copy=False))
    return exp.select(*keys, named(enumerated_text(engine, source, shown, most), "q")).from_(source, copy=False)


def enumerated_text(engine: Engine, source: exp.Table, shown: exp.Expr, most: int) -> exp.Expr:
    """Return a text of a table as a value of an enumeration, unless there are too many."""
    if not 0 < most <= _limit(engine):
        return shown
    enum = enumeration(engine, exp.select(named(shown, "label")).from_(source))
    return exp.Cast(this=shown, to=exp.DataType.build(enum, udt=True))


def enumeration(engine: Engine, labels: exp.Query) -> str:
    """Create an enumeration of the texts of a query's column ``label``, NULL aside, in their order; return its name."""
    enum, label = engine.fresh("enum"), col("label")
    texts = exp.select(label).distinct(copy=False).from_(subquery(labels, "l"), copy=False)
    engine.create_enum(enum, texts.where(present(label), copy=False).order_by(label, copy=False))
    return enum


def _limit(engine: Engine) -> int:
    return MANY_TEXTS if engine.writes_used_texts else ENUM_LIMIT


# Numbers of 128 bits, which ``sum`` gives and Parquet cannot hold, as decimals

_HUGE, _WIDEST = ("HUGEINT", "UHUGEINT"), "DECIMAL(38,0)"


def with_decimals(engine: Engine, relation: Relation, read: bool) -> Relation:
    """Return a relation whose numbers of 128 bits are decimals; a column with 39 digits is published as text.

    Without ``read`` no column is assumed to have that many.
    """
    huge = [c.name for c in relation.columns if c.type.upper() in _HUGE]
    if huge and read:
        lost = [exp.and_(_known(col(name)), exp.Not(this=_known(_tried(name)))) for name in huge]
        query = exp.select(*(call("count_if", found) for found in lost)).from_(subquery(relation.query, "s"))
        huge = [name for name, count in zip(huge, engine.row(query), strict=True) if not count]
    if not huge:
        return relation
    columns = tuple(Column(c.name, _WIDEST) if c.name in huge else c for c in relation.columns)
    own = [named(cast(col(c.name), _WIDEST), c.name) if c.name in huge else col(c.name) for c in columns]
    return replace(relation, query=exp.select(*own).from_(subquery(relation.query, "s")), columns=columns)


def _tried(name: str) -> exp.Expr:
    return exp.TryCast(this=col(name), to=exp.DataType.build(_WIDEST, dialect="duckdb"))


def _known(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=value, expression=exp.null()))
