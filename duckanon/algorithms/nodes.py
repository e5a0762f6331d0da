"""Nodes of the full-domain generalization lattice, evaluated by rolling up the frequency table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.encode import Coded, Frequency, code_type
from duckanon.sqlgen.relations import call, cast, col, named, number, subquery, table

if TYPE_CHECKING:
    from duckanon.algorithms.base import Problem


@dataclass(frozen=True)
class Node:
    """A level for each quasi-identifier, and the classes that it makes.

    ``table(g_0, ..., g_d-1, [entity,] n)`` counts rows by the codes of the levels; ``outlier_rows`` lie in classes of
    fewer units (rows, or persons where there is an entity key) than the models ask for.
    """

    levels: tuple[int, ...]
    table: str
    classes: int
    smallest: int
    outlier_rows: int
    outlier_classes: int


def evaluate(problem: Problem, levels: Sequence[int], start: Node | None = None) -> Node:
    """Return the node with these levels, rolled up from ``start`` (a node below it) or from the frequency table."""
    engine, frequency = problem.engine, problem.frequency
    name = engine.fresh("node")
    engine.create(name, _roll_up(frequency, tuple(levels), start))
    grouped = by_class(name, len(levels), frequency.entity)
    small = exp.LT(this=col("units"), expression=number(problem.min_size))
    row = engine.row(
        exp.select(
            exp.Count(this=exp.Star()),
            exp.func("COALESCE", exp.Min(this=col("units")), number(0)),
            exp.func("COALESCE", exp.Sum(this=exp.case().when(small, col("n")).else_(number(0))), number(0)),
            exp.func("COALESCE", exp.Sum(this=exp.case().when(small.copy(), number(1)).else_(number(0))), number(0)),
        ).from_(subquery(grouped, "c"))
    )
    classes, smallest, rows, small_classes = (int(v) for v in row)
    return Node(tuple(levels), name, classes, smallest, rows, small_classes)


def by_class(node_table: str, width: int, entity: bool) -> exp.Select:
    """Return one row for each class: its codes, ``n`` rows and ``units`` (persons where there is an entity key)."""
    codes = [col(f"g_{j}") for j in range(width)]
    if not entity:
        return exp.select(*codes, col("n"), named(col("n"), "units")).from_(table(node_table))
    rows = exp.Sum(this=col("n"))
    return (
        exp.select(*codes, named(rows, "n"), named(persons(col("entity")), "units"))
        .from_(table(node_table))
        .group_by(*(c.copy() for c in codes))
    )


def persons(entity: exp.Expr) -> exp.Expr:
    """Return an aggregate that counts distinct entities; all rows without one count as a single person."""
    missing = exp.case().when(exp.Is(this=entity, expression=exp.null()), number(1)).else_(number(0))
    return exp.Add(this=call("count", exp.Distinct(expressions=[entity.copy()])), expression=exp.Max(this=missing))


def _roll_up(frequency: Frequency, levels: tuple[int, ...], start: Node | None) -> exp.Query:
    base = frequency.table if start is None else start.table
    query = exp.select().from_(table(base, "f"))
    for j, (coded, level) in enumerate(zip(frequency.coded, levels, strict=True)):
        below = None if start is None else start.levels[j]
        source = col(f"c_{j}" if below is None else f"g_{j}", "f")
        target = f"g_{j}"
        if level == coded.height:
            value: exp.Expr = number(0)
        elif below == level or (below is None and level == 0 and not coded.masked):
            value = source
        else:
            alias = f"m_{j}"
            query = query.join(
                subquery(_mapping(coded, below, level), alias), on=exp.EQ(this=col("a", alias), expression=source)
            )
            value = col("b", alias)
        query = query.select(named(cast(value, code_type(coded.sizes[level])), target))
    if frequency.entity:
        query = query.select(col("entity", "f"))
    query = query.select(named(cast(exp.Sum(this=col("n", "f")), "BIGINT"), "n"))
    return query.group_by(exp.var("ALL"))


def _mapping(coded: Coded, below: int | None, level: int) -> exp.Query:
    """Return (a, b): codes of one level, or of the values where ``below`` is None, and of a level above."""
    source = col("code" if below is None else f"c{below}")
    query = exp.select(named(source, "a"), named(col(f"c{level}"), "b")).from_(table(coded.levels))
    return query if below is None else query.distinct()
