"""A hierarchy bound to a column: labels for every value, on every level, made in the database."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.engine.sql.relations import (
    call,
    cast,
    col,
    left,
    named,
    number,
    registered,
    same,
    subquery,
    table,
    text,
    union_all,
)
from duckanon.errors import HierarchyError, ParameterError, UnknownValueError
from duckanon.hierarchy.rules import ColumnType, Field, Kind, Labelling

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine
    from duckanon.engine.sql.relations import TableName
    from duckanon.hierarchy.table import Hierarchy

ON_UNKNOWN = ("error", "top")


@dataclass(frozen=True)
class Levels:
    """A hierarchy bound to a column.

    ``tree(code, known, l1, ..., lh)`` has the labels of every data value; where ``known`` is false, all of them are the
    top label. ``leaves(level, label, leaves)`` counts the leaves of the domain under each label, levels 1 to h.
    """

    attribute: str
    tree: TableName
    leaves: TableName
    height: int
    size: int
    top: str
    origin: str
    kind: Kind
    unknown: int
    """How many values of the data the hierarchy lacks."""
    arrays: tuple[pa.Table, pa.Table] | None = field(default=None, repr=False, compare=False)
    """Both tables, where they were made in memory."""


def bind(
    hierarchy: Hierarchy,
    engine: Engine,
    values: str,
    attribute: str,
    type_name: str,
    on_unknown: str = "error",
    texts: pa.Array | None = None,
) -> Levels:
    """Create the private tables of ``Levels`` for the column whose distinct values are in the table ``values``.

    ``texts`` are those of its values, where they are few enough for a lookup in memory.
    """
    from duckanon.hierarchy.auto import Auto, auto

    if on_unknown not in ON_UNKNOWN:
        raise ParameterError("The 'on_unknown' parameter must be 'error' or 'top'.")
    if isinstance(hierarchy.rule, Auto):
        hierarchy = auto(engine, values, attribute, type_name)
    column = ColumnType.parse(type_name)
    listed = hierarchy.levels
    if listed is not None and texts is not None:
        matched = _taken_from(listed, texts)
        if matched is not None:
            top, height = _top(listed), listed.num_columns - 1
            counted, size = _listed_leaves(listed, texts.null_count > 0, top)
            tables = registered(engine, "tree", matched), registered(engine, "leaves", counted)
            origin, arrays = hierarchy.origin, (matched, counted)
            return Levels(attribute, *tables, height, size, top, origin, column.kind, 0, arrays)
    field = Field(engine, values, attribute, column)
    domain = engine.fresh("domain")
    if listed is not None:
        engine.register(domain, listed)
        labelling = _matched(field, domain, listed.num_columns - 1, _top(listed))
    else:
        assert hierarchy.rule is not None
        labelling = hierarchy.rule.label(field)
    top = hierarchy.top if labelling.top is None else labelling.top
    height = labelling.depth + (labelling.top is None)
    tree = engine.fresh("tree")
    size = engine.create(tree, _completed(field, labelling, top))
    engine.drop(*labelling.scratch)
    if listed is not None:
        engine.unregister(domain)
    unknown, null = 0, False
    if not labelling.total:
        try:
            unknown, null = _unknown(field, tree, on_unknown)
        except HierarchyError:
            engine.drop(tree)
            raise
    leaves, incoming = engine.fresh("leaves"), engine.fresh("incoming")
    if listed is None:
        query = _leaf_counts(tree, height)
    else:
        counted, size = _listed_leaves(listed, null, top)
        engine.register(incoming, counted)
        query = exp.select(exp.Star()).from_(table(incoming), copy=False)
    engine.create(leaves, _with_unknown(query, height, top, size) if unknown else query)
    if listed is not None:
        engine.unregister(incoming)
    return Levels(attribute, tree, leaves, height, size, top, hierarchy.origin, field.type.kind, unknown)


def _taken_from(listed: pa.Table, texts: pa.Array) -> pa.Table | None:
    """Return ``(code, known, l1, ..., lh)``; None if the text of a value is not listed. NULL need not be."""
    import pyarrow as pa
    import pyarrow.compute as pc

    at = pc.index_in(texts, value_set=listed.column(0).combine_chunks())
    if pc.any(pc.and_(at.is_null(), texts.is_valid())).as_py():
        return None
    listed_values = pa.repeat(pa.scalar(True, pa.bool_()), len(texts))
    columns = {"code": pa.array(range(len(texts)), pa.int32()), "known": listed_values}
    for level, column in enumerate(listed.columns[1:], 1):
        columns[f"l{level}"] = column.combine_chunks().take(at)
    columns[f"l{level}"] = columns[f"l{level}"].fill_null(_top(listed))
    return pa.table(columns)


def _top(levels: pa.Table) -> str:
    return str(levels.column(levels.num_columns - 1)[0].as_py())


def _is_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=value, expression=exp.null())


def _matched(field: Field, domain: str, height: int, top: str) -> Labelling:
    """Look up every value in the table: by its text, or else, if it is a number, by its size."""
    # Labels of the NULL leaf may be NULL below the top, but not at the top: only the top shows a match.
    hit = exp.Not(this=_is_null(col(f"l{height}", "d")))
    labels = [exp.Coalesce(this=col(f"l{height}", "d"), expressions=[text(top)])]
    below = [col(f"l{i}", "d") for i in range(1, height)]
    query = exp.select(
        col("code", "v"),
        named(exp.Or(this=hit, expression=_is_null(col("value", "v"))), "known"),
        *(named(label, f"l{i}") for i, label in enumerate([*below, *labels], 1)),
    ).from_(table(field.values, "v"), copy=False)
    scratch: tuple[str, ...] = ()
    on = same(col("text", "v"), col("l0", "d"))
    if field.type.kind == "number":
        plain = exp.select(col("code", "v"), named(col("l0", "d"), "leaf"), named(hit, "hit"))
        plain = plain.from_(table(field.values, "v"), copy=False).join(left(table(domain, "d"), on), copy=False)
        if _by_number(field, domain, plain):
            by_number = field.engine.fresh("by_number")
            field.engine.create(by_number, _numeric(field, domain, plain))
            scratch = (by_number,)
            query = query.join(
                table(by_number, "f"), on=exp.EQ(this=col("code", "f"), expression=col("code", "v")), copy=False
            )
            on = exp.and_(col("hit", "f"), same(col("leaf", "f"), col("l0", "d")), copy=False)
    query = query.join(table(domain, "d"), on=on, join_type="left", copy=False)
    return Labelling(query, height, top=top, total=False, nulls=True, scratch=scratch)


def _by_number(field: Field, domain: str, labels: exp.Query) -> bool:
    """Whether there are values without a match, and all leaves are numbers."""
    missed = (
        exp.select(exp.Count(this=exp.Star()))
        .from_(subquery(labels, "f"), copy=False)
        .where(exp.Not(this=col("hit")), copy=False)
    )
    if field.engine.row(missed) == (0,):
        return False
    odd = exp.and_(
        _is_null(exp.TryCast(this=col("l0"), to=exp.DataType.build("DOUBLE"))),
        exp.Not(this=_is_null(col("l0"))),
        copy=False,
    )
    (texts,) = field.engine.row(
        exp.select(exp.Count(this=exp.Star())).from_(table(domain), copy=False).where(odd, copy=False)
    )
    return not texts


def _canonical(field: Field, value: exp.Expr) -> exp.Expr:
    """Return the form in which numbers are compared: DOUBLE for floats, else their digits, which are exact."""
    if field.type.family == "float":
        return exp.TryCast(this=value, to=exp.DataType.build("DOUBLE"))
    digits = call("regexp_replace", call("trim", value), text(r"^\+?(-?)0*([0-9])"), text(r"\1\2"))
    digits = call("regexp_replace", digits, text(r"(\.[0-9]*?)0*$"), text(r"\1"))
    digits = call("regexp_replace", digits, text(r"\.$"), text(""))
    return call("regexp_replace", digits, text("^-0$"), text("0"))


def _numeric(field: Field, domain: str, labels: exp.Query) -> exp.Select:
    """Return ``labels`` with the remaining values matched by number, where exactly one leaf is that number."""
    leaf = exp.select(named(_canonical(field, col("l0")), "number"), named(exp.Min(this=col("l0")), "leaf"))
    leaf = (
        leaf.from_(table(domain), copy=False)
        .where(exp.Not(this=_is_null(col("l0"))), copy=False)
        .group_by(number(1), copy=False)
    )
    leaf = leaf.having(exp.EQ(this=exp.Count(this=exp.Star()), expression=number(1)), copy=False)
    hit = exp.Or(this=col("hit", "f"), expression=exp.Not(this=_is_null(col("leaf", "n"))))
    on = exp.and_(
        exp.Not(this=col("hit", "f")),
        exp.EQ(this=_canonical(field, col("text", "v")), expression=col("number", "n")),
        copy=False,
    )
    return (
        exp.select(
            col("code", "f"),
            named(exp.Coalesce(this=col("leaf", "f"), expressions=[col("leaf", "n")]), "leaf"),
            named(hit, "hit"),
        )
        .from_(subquery(labels, "f"), copy=False)
        .join(table(field.values, "v"), on=exp.EQ(this=col("code", "v"), expression=col("code", "f")), copy=False)
        .join(left(subquery(leaf, "n"), on), copy=False)
    )


def _completed(field: Field, labelling: Labelling, top: str) -> exp.Query:
    """Return ``(code, known, l1, ..., lh)`` of all values, NULL and unknown ones included; these have the top label."""
    height = labelling.depth + (labelling.top is None)
    is_known = exp.true() if labelling.total else col("known", "q")

    def level(i: int) -> exp.Expr:
        label: exp.Expr = text(top) if i > labelling.depth else col(f"l{i}", "q")
        if not labelling.total:
            label = exp.Case().when(is_known.copy(), label, copy=False).else_(text(top), copy=False)
        return named(cast(label, "VARCHAR"), f"l{i}")

    labelled = exp.select(col("code", "q"), named(is_known, "known"), *(level(i) for i in range(1, height + 1)))
    labelled = labelled.from_(subquery(labelling.query, "q"), copy=False)
    if labelling.nulls:
        return labelled
    blank = [named(cast(exp.null(), "VARCHAR"), f"l{i}") for i in range(1, height)]
    nulls = exp.select(col("code"), named(exp.true(), "known"), *blank, named(text(top), f"l{height}"))
    nulls = nulls.from_(table(field.values), copy=False).where(_is_null(col("value")), copy=False)
    return exp.union(labelled, nulls, distinct=False)


def _unknown(field: Field, tree: str, on_unknown: str) -> tuple[int, bool]:
    """Return how many values the hierarchy lacks, or raise; and whether NULL is among the values."""
    missing = exp.Not(this=col("known", "t"))
    query = (
        exp.select(
            exp.Count(this=exp.Star()),
            call("count_if", missing),
            exp.Sum(this=col("n", "v")),
            call("sum", exp.Case().when(missing, col("n", "v"), copy=False).else_(number(0), copy=False)),
            call("bool_or", _is_null(col("value", "v"))),
        )
        .from_(table(tree, "t"), copy=False)
        .join(table(field.values, "v"), on=exp.EQ(this=col("code", "v"), expression=col("code", "t")), copy=False)
    )
    values, unknown, rows, affected, null = field.engine.row(query)
    if unknown and on_unknown == "error":
        raise UnknownValueError(
            f"The hierarchy of {field.attribute!r} does not know {unknown} of {values} values "
            f"({affected} of {rows} rows). Add them to it, or set on_unknown='top' to publish them as its top label."
        )
    return int(unknown), bool(null)


def _leaf_counts(tree: str, height: int) -> exp.Query:
    """Return ``(level, label, leaves)`` of every level of a table of labels."""
    parts: list[exp.Query] = []
    for level in range(1, height + 1):
        at, label = named(cast(number(level), "INTEGER"), "level"), col(f"l{level}")
        count = named(exp.Count(this=exp.Star()), "leaves")
        query = exp.select(at, named(label, "label"), count).from_(table(tree), copy=False)
        parts.append(query.group_by(label, copy=False))
    return union_all(parts)


def _listed_leaves(levels: pa.Table, null: bool, top: str) -> tuple[pa.Table, int]:
    """Return ``(level, label, leaves)`` of a hierarchy, and how many leaves it has, NULL among them."""
    import pyarrow as pa

    if null and not levels.column(0).null_count:
        blank = {name: [None] for name in levels.column_names} | {levels.column_names[-1]: [top]}
        levels = pa.concat_tables([levels, pa.table(blank, levels.schema)])
    parts = []
    for level, column in enumerate(levels.columns[1:], 1):
        counted = column.combine_chunks().value_counts()
        at = pa.repeat(pa.scalar(level, pa.int32()), len(counted))
        parts.append(pa.table({"level": at, "label": counted.field("values"), "leaves": counted.field("counts")}))
    return pa.concat_tables(parts), levels.num_rows


def _with_unknown(query: exp.Query, height: int, top: str, size: int) -> exp.Query:
    """Let the top label cover the whole domain on every level, because unknown values are published as it."""
    result = exp.select(col("level"), col("label"), col("leaves")).from_(subquery(query, "c"), copy=False)
    covered = exp.and_(exp.LT(this=col("level"), expression=number(height)), same(col("label"), text(top)), copy=False)
    union: exp.Query = result.where(exp.Not(this=exp.paren(covered, copy=False)))
    for level in range(1, height):
        row = exp.select(
            named(cast(number(level), "INTEGER"), "level"),
            named(text(top), "label"),
            named(cast(number(size), "BIGINT"), "leaves"),
        )
        union = exp.union(union, row, distinct=False)
    return union
