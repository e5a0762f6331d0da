"""Where a hierarchy meets a column: labels for every value, on every level, made in the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.errors import HierarchyError, ParameterError, UnknownValueError
from duckanon.hierarchy.rules import ColumnType, Field, Kind, Labelling
from duckanon.sqlgen.relations import call, cast, col, named, number, same, subquery, table, text

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine
    from duckanon.hierarchy.table import Hierarchy

ON_UNKNOWN = ("error", "top")


@dataclass(frozen=True)
class Levels:
    """A hierarchy bound to a column.

    ``tree(code, known, l1, ..., lh)`` has the labels of every data value; where ``known`` is false, all of them are the
    top label. ``leaves(level, label, leaves)`` counts the leaves of the domain under each label, levels 1 to h.
    """

    attribute: str
    tree: str
    leaves: str
    height: int
    size: int
    top: str
    origin: str
    kind: Kind
    unknown: int
    """How many data values the hierarchy does not know."""


def bind(
    hierarchy: Hierarchy,
    engine: Engine,
    values: str,
    attribute: str,
    type_name: str,
    on_unknown: str = "error",
) -> Levels:
    """Create the private tables of ``Levels`` for the column whose distinct values are in the table ``values``."""
    from duckanon.hierarchy.auto import Auto, auto

    if on_unknown not in ON_UNKNOWN:
        raise ParameterError("The 'on_unknown' parameter must be 'error' or 'top'.")
    if isinstance(hierarchy.rule, Auto):
        hierarchy = auto(engine, values, attribute, type_name)
    field = Field(engine, values, attribute, ColumnType.parse(type_name))
    domain: str | None = None
    if hierarchy.levels is not None:
        domain = _domain_table(engine, hierarchy.levels)
        labelling = _matched(field, domain, hierarchy.levels.num_columns - 1, _top(hierarchy.levels))
    else:
        assert hierarchy.rule is not None
        labelling = hierarchy.rule.label(field)
    top = hierarchy.top if labelling.top is None else labelling.top
    height = labelling.depth + (labelling.top is None)
    tree = engine.fresh("tree")
    engine.create(tree, _completed(field, labelling, top))
    engine.drop(*labelling.scratch)
    try:
        unknown = 0 if labelling.total else _unknown(field, tree, on_unknown)
    except HierarchyError:
        engine.drop(tree, *([domain] if domain else []))
        raise
    leaves = engine.fresh("leaves")
    if domain is None:
        size = _count(engine, values)
        query = _leaf_counts(tree, height)
    else:
        extra = _lacks_null(field, domain)
        size = _count(engine, domain) + extra
        query = _leaf_counts(domain, height, nulls=extra, top=top)
    engine.create(leaves, _with_unknown(query, height, top, size) if unknown else query)
    if domain is not None:
        engine.drop(domain)
    return Levels(attribute, tree, leaves, height, size, top, hierarchy.origin, field.type.kind, unknown)


def _top(levels: pa.Table) -> str:
    return str(levels.column(levels.num_columns - 1)[0].as_py())


def _count(engine: Engine, name: str) -> int:
    (count,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(name)))
    return int(count)


def _domain_table(engine: Engine, levels: pa.Table) -> str:
    name, incoming = engine.fresh("domain"), engine.fresh("incoming")
    engine.register(incoming, levels)
    engine.create(name, exp.select("*").from_(table(incoming)))
    engine.unregister(incoming)
    return name


def _is_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=value, expression=exp.null())


def _lacks_null(field: Field, domain: str) -> int:
    """Return 1 if the data has a NULL and the hierarchy has none, else 0."""
    found = [
        field.engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(name)).where(_is_null(col(column))))[0]
        for name, column in ((field.values, "value"), (domain, "l0"))
    ]
    return int(found[0] > 0 and found[1] == 0)


def _matched(field: Field, domain: str, height: int, top: str) -> Labelling:
    """Look every value up in the table: by its text, and numbers that are left over by their size."""
    engine, found = field.engine, field.engine.fresh("found")
    # Labels of the NULL leaf may be NULL below the top, never at the top: only the top tells a match.
    hit = exp.Not(this=_is_null(col(f"l{height}", "d")))
    plain = (
        exp.select(col("code", "v"), named(col("l0", "d"), "leaf"), named(hit, "hit"))
        .from_(table(field.values, "v"))
        .join(table(domain, "d"), on=same(col("text", "v"), col("l0", "d")), join_type="left")
    )
    engine.create(found, plain)
    scratch = [found]
    if field.type.kind == "number" and _by_number(field, domain, found):
        again = engine.fresh("found")
        engine.create(again, _numeric(field, domain, found))
        scratch.append(again)
        found = again
    null = _is_null(col("value", "v"))
    labels = [exp.Coalesce(this=col(f"l{height}", "d"), expressions=[text(top)])]
    below = [col(f"l{i}", "d") for i in range(1, height)]
    query = (
        exp.select(
            col("code", "v"),
            named(exp.Or(this=col("hit", "f"), expression=null), "known"),
            *(named(label, f"l{i}") for i, label in enumerate([*below, *labels], 1)),
        )
        .from_(table(field.values, "v"))
        .join(table(found, "f"), on=exp.EQ(this=col("code", "f"), expression=col("code", "v")))
        .join(
            table(domain, "d"), on=exp.and_(col("hit", "f"), same(col("leaf", "f"), col("l0", "d"))), join_type="left"
        )
    )
    return Labelling(query, height, top=top, total=False, nulls=True, scratch=tuple(scratch))


def _by_number(field: Field, domain: str, found: str) -> bool:
    """Whether values are left over and every leaf reads as a number."""
    (missed,) = field.engine.row(
        exp.select(exp.Count(this=exp.Star())).from_(table(found)).where(exp.Not(this=col("hit")))
    )
    if not missed:
        return False
    odd = exp.and_(
        _is_null(exp.TryCast(this=col("l0"), to=exp.DataType.build("DOUBLE"))), exp.Not(this=_is_null(col("l0")))
    )
    (texts,) = field.engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(domain)).where(odd))
    return not texts


def _canonical(field: Field, value: exp.Expr) -> exp.Expr:
    """Return what numbers are compared by: their size as DOUBLE for floats, else their digits, which is exact."""
    if field.type.family == "float":
        return exp.TryCast(this=value, to=exp.DataType.build("DOUBLE"))
    digits = call("regexp_replace", call("trim", value), text(r"^\+?(-?)0*([0-9])"), text(r"\1\2"))
    digits = call("regexp_replace", digits, text(r"(\.[0-9]*?)0*$"), text(r"\1"))
    digits = call("regexp_replace", digits, text(r"\.$"), text(""))
    return call("regexp_replace", digits, text("^-0$"), text("0"))


def _numeric(field: Field, domain: str, found: str) -> exp.Select:
    """Return ``found`` with the left over values matched by number, where one leaf only is that number."""
    leaf = exp.select(named(_canonical(field, col("l0")), "number"), named(exp.Min(this=col("l0")), "leaf"))
    leaf = leaf.from_(table(domain)).where(exp.Not(this=_is_null(col("l0")))).group_by(number(1))
    leaf = leaf.having(exp.EQ(this=exp.Count(this=exp.Star()), expression=number(1)))
    hit = exp.Or(this=col("hit", "f"), expression=exp.Not(this=_is_null(col("leaf", "n"))))
    on = exp.and_(
        exp.Not(this=col("hit", "f")), exp.EQ(this=_canonical(field, col("text", "v")), expression=col("number", "n"))
    )
    return (
        exp.select(
            col("code", "f"),
            named(exp.Coalesce(this=col("leaf", "f"), expressions=[col("leaf", "n")]), "leaf"),
            named(hit, "hit"),
        )
        .from_(table(found, "f"))
        .join(table(field.values, "v"), on=exp.EQ(this=col("code", "v"), expression=col("code", "f")))
        .join(subquery(leaf, "n"), on=on, join_type="left")
    )


def _completed(field: Field, labelling: Labelling, top: str) -> exp.Query:
    """Return ``(code, known, l1, ..., lh)`` of all values: with the top, with NULL, unknown values at the top."""
    height = labelling.depth + (labelling.top is None)
    known = exp.true() if labelling.total else col("known", "q")

    def level(i: int) -> exp.Expr:
        label: exp.Expr = text(top) if i > labelling.depth else col(f"l{i}", "q")
        if not labelling.total:
            label = exp.Case().when(known.copy(), label).else_(text(top))
        return named(cast(label, "VARCHAR"), f"l{i}")

    labelled = exp.select(col("code", "q"), named(known, "known"), *(level(i) for i in range(1, height + 1)))
    labelled = labelled.from_(subquery(labelling.query, "q"))
    if labelling.nulls:
        return labelled
    blank = [named(cast(exp.null(), "VARCHAR"), f"l{i}") for i in range(1, height)]
    nulls = exp.select(col("code"), named(exp.true(), "known"), *blank, named(text(top), f"l{height}"))
    nulls = nulls.from_(table(field.values)).where(_is_null(col("value")))
    return exp.union(labelled, nulls, distinct=False)


def _unknown(field: Field, tree: str, on_unknown: str) -> int:
    """Return how many values the hierarchy does not know, or say so."""
    missing = exp.Not(this=col("known", "t"))
    query = (
        exp.select(
            exp.Count(this=exp.Star()),
            call("count_if", missing),
            exp.Sum(this=col("n", "v")),
            call("sum", exp.Case().when(missing.copy(), col("n", "v")).else_(number(0))),
        )
        .from_(table(tree, "t"))
        .join(table(field.values, "v"), on=exp.EQ(this=col("code", "v"), expression=col("code", "t")))
    )
    values, unknown, rows, affected = field.engine.row(query)
    if unknown and on_unknown == "error":
        raise UnknownValueError(
            f"The hierarchy of {field.attribute!r} does not know {unknown} of {values} values "
            f"({affected} of {rows} rows). Add them to it, or set on_unknown='top' to publish them as its top label."
        )
    return int(unknown)


def _leaf_counts(source: str, height: int, nulls: int = 0, top: str = "") -> exp.Query:
    """Return ``(level, label, leaves)`` of every level of a table of labels, and of a NULL that the table lacks."""
    parts: list[exp.Query] = []
    for level in range(1, height + 1):
        at, label = named(number(level), "level"), col(f"l{level}")
        count = named(exp.Count(this=exp.Star()), "n")
        parts.append(exp.select(at, named(label, "label"), count).from_(table(source)).group_by(label.copy()))
        if nulls:
            missing = cast(text(top) if level == height else exp.null(), "VARCHAR")
            parts.append(exp.select(at.copy(), named(missing, "label"), named(number(1), "n")))
    union = parts[0]
    for part in parts[1:]:
        union = exp.union(union, part, distinct=False)
    total = cast(exp.Sum(this=col("n")), "BIGINT")
    return (
        exp.select(named(cast(col("level"), "INTEGER"), "level"), col("label"), named(total, "leaves"))
        .from_(subquery(union, "u"))
        .group_by(col("level"), col("label"))
    )


def _with_unknown(query: exp.Query, height: int, top: str, size: int) -> exp.Query:
    """Let the top label mean the whole domain on every level, once unknown values are published as it."""
    result = exp.select(col("level"), col("label"), col("leaves")).from_(subquery(query, "c"))
    covered = exp.and_(exp.LT(this=col("level"), expression=number(height)), same(col("label"), text(top)))
    union: exp.Query = result.where(exp.Not(this=exp.paren(covered)))
    for level in range(1, height):
        row = exp.select(
            named(cast(number(level), "INTEGER"), "level"),
            named(text(top), "label"),
            named(cast(number(size), "BIGINT"), "leaves"),
        )
        union = exp.union(union, row, distinct=False)
    return union
