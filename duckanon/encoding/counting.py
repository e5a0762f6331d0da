"""Classes, persons and values of a relation, counted by the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from duckanon.engine.base import Engine
from duckanon.engine.sql.relations import (
    call,
    cast,
    col,
    conjunction,
    hash_of,
    named,
    number,
    same,
    subquery,
    table,
    text,
    union_all,
)

ENTITY = "duckanon entity key"
"""The name of the entity key in private files and statements; no published column has it."""


def count_classes(
    engine: Engine,
    relation: exp.Query,
    columns: Sequence[exp.Expr],
    entity: exp.Expr | None = None,
    keys: bool = False,
    sensitive: Sequence[str] = (),
    rest: exp.Expr | None = None,
    params: Mapping[str, Any] | None = None,
) -> str:
    """Create ``classes(class_id, n, suppressed)`` of a relation; n counts persons where there is an entity.

    With ``keys``, ``classes`` has the values of the columns as ``q_0``, ``q_1``, ..., and is numbered by size. For the
    columns ``sensitive`` it has ``one_0``, ``one_1``, ...: whether all rows of a class have the same value. Where the
    only column is a word, ``rest`` is that of the other columns of a row, and ``total`` is the sum of the rows' words.
    """
    name = engine.fresh("classes")
    aliases = [f"q_{j}" for j in range(len(columns))]
    inner = exp.select(*(named(c.copy(), a) for c, a in zip(columns, aliases, strict=True))).from_(
        subquery(relation, "s")
    )
    members: exp.Expr = exp.Count(this=exp.Star())
    if entity is not None:
        inner = inner.select(named(entity.copy(), "entity"))
        distinct, without_person = persons(col("entity"))
        members = exp.Add(this=distinct, expression=without_person)
    flags = [f"one_{i}" for i in range(len(sensitive))]
    if rest is not None:
        inner = inner.select(named(rest.copy(), "rest"))
    # By hashes, of which the database makes one for each entry of a dictionary: comparing texts takes longer.
    inner = inner.select(*(named(hash_of(col(value)), flag) for value, flag in zip(sensitive, flags, strict=True)))
    counted = exp.select(*(col(a) for a in aliases), named(members, "n")).from_(subquery(inner, "i"))
    counted = counted.select(
        *(named(exp.EQ(this=exp.Min(this=col(f)), expression=exp.Max(this=col(f))), f) for f in flags)
    )
    if rest is not None:
        mixed = hash_of(call("xor", col(aliases[0]), col("rest")))
        counted = counted.select(named(exp.Sum(this=mixed), "total"))
    counted = counted.group_by(*(col(a) for a in aliases))
    # Without the values the numbers mean nothing: any order will do, and sorting costs time.
    by_size = exp.Order(expressions=[exp.Ordered(this=col("n"), desc=False)]) if keys else None
    rank = exp.Window(this=exp.RowNumber(), order=by_size)
    query = exp.select(named(cast(rank, "BIGINT"), "class_id"), col("n"), named(exp.false(), "suppressed"))
    query = query.select(*(col(flag) for flag in flags), *([col("total")] if rest is not None else []))
    if keys:
        query = query.select(*(col(a) for a in aliases))
    engine.create(name, query.from_(subquery(counted, "c")), params)
    return name


def persons(entity: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Return two aggregates whose sum counts persons.

    ``count(DISTINCT ...)`` skips NULL: all rows without an entity count as one more person.
    """
    without_person = exp.case().when(exp.Is(this=entity.copy(), expression=exp.null()), number(1)).else_(number(0))
    return call("count", exp.Distinct(expressions=[entity])), exp.Max(this=without_person)


def hidden_person(entity: exp.Expr | None, *keys: exp.Expr) -> exp.Expr | None:
    """Return a hash in place of an entity key: a collision could only make two persons one, never one person two."""
    if entity is None:
        return None
    hidden = hash_of(*keys, entity)
    return exp.case().when(exp.Is(this=entity.copy(), expression=exp.null()), exp.null()).else_(hidden)


def count_values(
    engine: Engine,
    relation: exp.Query,
    columns: Sequence[exp.Expr],
    sensitive: Mapping[str, exp.Expr],
    classes: str,
    params: Mapping[str, Any] | None = None,
) -> str:
    """Create ``class_values(class_id, attribute, value, n)``; ``classes`` has the values of the same columns."""
    keys = [f"q_{j}" for j in range(len(columns))]
    parts: list[exp.Query] = []
    for name, expression in sensitive.items():
        # Grouped before the join: there are far fewer combinations than rows.
        counted = exp.select(*(named(c.copy(), a) for c, a in zip(columns, keys, strict=True)))
        counted = counted.select(named(cast(expression.copy(), "VARCHAR"), "value"))
        counted = counted.select(named(exp.Count(this=exp.Star()), "n")).from_(subquery(relation.copy(), "s"))
        on = conjunction([same(col(a, "v"), col(a, "c")) for a in keys])
        found = [col("class_id", "c"), named(text(name), "attribute"), col("value", "v"), col("n", "v")]
        counted = counted.group_by(exp.var("ALL"))
        parts.append(exp.select(*found).from_(subquery(counted, "v")).join(table(classes, "c"), on=on))
    created = engine.fresh("class_values")
    engine.create(created, union_all(parts), params)
    return created


def count_domain(engine: Engine, source: exp.Query, sensitive: Mapping[str, exp.Expr]) -> str:
    """Create ``domain_values(attribute, value, ord, n)``: the sensitive values of a whole table, in their order."""
    parts: list[exp.Query] = []
    for name, expression in sensitive.items():
        counted = exp.select(named(expression.copy(), "v"), named(exp.Count(this=exp.Star()), "n"))
        counted = counted.from_(subquery(source.copy(), "s")).group_by(exp.var("ALL"))
        order = exp.Order(expressions=[exp.Ordered(this=col("v"), desc=False, nulls_first=False)])
        rank = exp.Sub(this=exp.Window(this=exp.RowNumber(), order=order), expression=number(1))
        found = [named(text(name), "attribute"), named(cast(col("v"), "VARCHAR"), "value")]
        parts.append(exp.select(*found, named(cast(rank, "BIGINT"), "ord"), col("n")).from_(subquery(counted, "d")))
    created = engine.fresh("domain_values")
    engine.create(created, union_all(parts))
    return created


def place_population(engine: Engine, classes: str, population: str, names: Sequence[str]) -> str:
    """Create ``population_classes(class_id, n)``; classes without a published row have ids below zero."""
    on = conjunction([same(col(name, "p"), col(f"q_{j}", "c")) for j, name in enumerate(names)])
    order = exp.Order(expressions=[exp.Ordered(this=col(name, "p"), desc=False) for name in names])
    other = exp.Neg(this=exp.Window(this=exp.RowNumber(), order=order))
    number_of = exp.func("COALESCE", col("class_id", "c"), cast(other, "BIGINT"))
    found = exp.select(named(number_of, "class_id"), col("n", "p")).from_(table(population, "p"))
    created = engine.fresh("population_classes")
    engine.create(created, found.join(table(classes, "c"), on=on, join_type="left"))
    return created


def count_rows(engine: Engine, query: exp.Query) -> int:
    """Return the number of rows of a query."""
    (rows,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(subquery(query, "s")))
    return int(rows)
