"""Where the values of a column stand: among the leaves that its hierarchy lists, and under its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.engine.sql.axes import BoxColumn, equal, is_null, nodes_by_place, present
from duckanon.engine.sql.relations import call, cast, col, data_type, named, number, subquery, table, union_all

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine


def leaf_ranks(engine: Engine, column: BoxColumn, place: str, levels: pa.Table) -> str | None:
    """Create ``(code, first, last)``: which leaves a run takes in that begins or ends at a value.

    Leaves are in the order of their values, or of the hierarchy where those are only texts. A run on a grid takes in
    the leaves of its outermost groups, and one that is open at an end all leaves up to that of the domain. None is
    returned where leaves cannot be read as values of the column.
    """
    import numpy as np
    import pyarrow as pa

    leaves, incoming = engine.fresh("leaves"), engine.fresh("incoming")
    position = pa.array(np.arange(1, len(levels) + 1, dtype=np.int64))
    engine.register(incoming, pa.table({"at": position, "leaf": levels.column("l0")}))
    own = exp.select(col("at"), col("leaf")).from_(table(incoming)).where(present(col("leaf")))
    if column.family != "other":
        typed = exp.TryCast(this=col("leaf"), to=data_type(column.type))
        own = own.select(named(typed, "value"))
    engine.create(leaves, own)
    engine.unregister(incoming)
    ranks = engine.fresh("ranks")
    if column.family == "other":
        engine.create(ranks, _by_text(column, leaves))
    else:
        (odd,) = engine.row(exp.select(call("count_if", is_null(col("value")))).from_(table(leaves)))
        if odd:
            engine.drop(leaves)
            return None
        engine.create(ranks, _by_value(column, place, leaves))
    engine.drop(leaves)
    return ranks


def node_runs(engine: Engine, column: BoxColumn) -> str:
    """Create ``(code, i1, ...)``: on every level, which run of neighbours under one node a value is in."""
    import numpy as np
    import pyarrow as pa

    found = engine.arrow(nodes_by_place(column))
    runs = {"code": found.column("code")}
    for level in range(1, column.height):
        node = found.column(f"c{level}").to_numpy()
        changed = np.concatenate([[False], node[1:] != node[:-1]])[: len(node)]
        runs[f"i{level}"] = pa.array(np.cumsum(changed, dtype=np.int64))
    name = engine.fresh("runs")
    engine.register(name, pa.table(runs))
    return name


def _by_text(column: BoxColumn, leaves: str) -> exp.Query:
    query = exp.select(col("code", "v"), named(col("at", "f"), "first"), named(col("at", "f"), "last"))
    on = equal(col("leaf", "f"), col("text", "v"))
    return query.from_(table(column.values, "v")).join(table(leaves, "f"), on=on)


def _by_value(column: BoxColumn, place: str, leaves: str) -> exp.Query:
    """Count the leaves before the lower bound of every value, and those up to its upper bound."""
    sides = []
    for name, bound, end in (("first", "lo", column.first), ("last", "hi", column.last)):
        value: exp.Expr = col("value", "v")
        if column.grid is not None:
            value = col(bound, "g")
        elif not column.tight:
            value = exp.case().when(exp.NEQ(this=col("place", "p"), expression=number(end)), value)
        points = exp.select(named(value, "value"), col("code", "v"), named(number(0), "leaf"))
        points = points.from_(table(column.values, "v"))
        points = points.join(table(place, "p"), on=equal(col("code", "p"), col("code", "v")))
        if column.grid is not None:
            points = points.join(table(column.grid, "g"), on=equal(col("code", "g"), col("code", "v")))
        points = points.where(present(col("value", "v")))
        listed = exp.select(col("value"), named(cast(exp.null(), "INTEGER"), "code"), named(number(1), "leaf"))
        every = union_all([points, listed.from_(table(leaves))])
        # Of equal values, leaves come after the bound that begins with them, and before the one that ends with them.
        order = [
            exp.Ordered(this=col("value"), desc=False, nulls_first=name == "first"),
            exp.Ordered(this=col("leaf"), desc=name == "last"),
        ]
        running = exp.Window(
            this=exp.Sum(this=col("leaf")),
            order=exp.Order(expressions=order),
            spec=exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW"),
        )
        before: exp.Expr = running if name == "last" else exp.Add(this=running, expression=number(1))
        ranked = exp.select(col("code"), named(cast(before, "BIGINT"), name)).from_(subquery(every, "e"))
        sides.append(exp.select("*").from_(subquery(ranked, "r")).where(present(col("code"))))
    query = exp.select(col("code", "a"), col("first", "a"), col("last", "b")).from_(subquery(sides[0], "a"))
    return query.join(subquery(sides[1], "b"), on=equal(col("code", "a"), col("code", "b")))


__all__ = ["leaf_ranks", "node_runs"]
