"""Nodes of the full-domain generalization lattice, evaluated by rolling up the frequency table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.encoding.dictionaries import Coded, Frequency, code_type
from duckanon.engine.sql.relations import call, cast, col, conjunction, named, number, subquery, table
from duckanon.models.base import Groups, Histograms

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from duckanon.algorithms.base import Problem, Tally
    from duckanon.algorithms.full_domain.listing import Seen
    from duckanon.engine.base import Engine


@dataclass(frozen=True)
class Node:
    """A level for each quasi-identifier, and the classes that it makes.

    ``table(g_0, ..., g_d-1, [entity,] n)`` counts rows by the codes of the levels; ``outlier_rows`` lie in classes that
    may not be published. ``grouped`` gives one row for each class: its codes, ``n`` rows, ``units`` (rows, or persons
    where there is an entity key) and whether it is ``kept``. ``rolled`` names the tables that count sensitive values
    and the population by the same codes, where they were needed.
    """

    levels: tuple[int, ...]
    table: str
    classes: int
    smallest: int
    outlier_rows: int
    outlier_classes: int
    grouped: exp.Select = field(repr=False)
    rolled: dict[str, str] = field(default_factory=dict)
    judged: tuple[str, ...] = ()
    searched: dict[str, Any] = field(default_factory=dict)
    """How the search went: nodes, visits, value, bound and gap, where the algorithm says."""
    seen: Seen | None = field(default=None, repr=False)
    """What the search knows of the lattice's nodes, where the algorithm says."""

    def drop(self, engine: Engine) -> None:
        """Drop the tables of the node."""
        engine.drop(self.table, *self.rolled.values(), *self.judged)


def evaluate(problem: Problem, levels: Sequence[int], start: Node | None = None) -> Node:
    """Return the node with these levels, rolled up from ``start`` (a node below it) or from the frequency table.

    Only the size of classes is checked: rows in classes with too few members are outliers.
    """
    engine, frequency = problem.engine, problem.frequency
    name = engine.fresh("node")
    large = frequency.entity and is_large(problem)
    rolled = _roll_up(frequency, tuple(levels), start.table if start else None, start)
    (engine.create_file if large else engine.create)(name, rolled)
    enough = exp.and_(
        exp.GTE(this=col("units"), expression=number(problem.min_size)),
        exp.GTE(this=col("n"), expression=number(problem.min_rows)),
    )
    grouped = by_class(name, len(levels), frequency.entity)
    columns = [*(col(f"g_{j}") for j in range(len(levels))), col("n"), col("units"), named(enough, "kept")]
    grouped = exp.select(*columns).from_(subquery(grouped, "b"))
    made: tuple[str, ...] = ()
    if frequency.entity:
        # Persons are counted once.
        made = (engine.fresh("grouped"),)
        engine.create(made[0], grouped)
        grouped = exp.select("*").from_(table(made[0]))
    row = engine.row(
        exp.select(
            exp.Count(this=exp.Star()),
            exp.func("COALESCE", exp.Min(this=col("units")), number(0)),
            exp.func("COALESCE", exp.Sum(this=exp.case().when(col("kept"), number(0)).else_(col("n"))), number(0)),
            exp.func("COALESCE", exp.Sum(this=exp.case().when(col("kept"), number(0)).else_(number(1))), number(0)),
        ).from_(subquery(grouped.copy(), "c"))
    )
    classes, smallest, rows, small_classes = (int(v) for v in row)
    return Node(tuple(levels), name, classes, smallest, rows, small_classes, grouped, judged=made)


def is_large(problem: Problem) -> bool:
    """Return whether the rows of the problem are too many for the memory."""
    frequency = problem.frequency
    return problem.engine.is_crowded_by(frequency.rows * (4 * len(frequency.coded) + 16))


def rows_in_small_classes(problem: Problem, levels: Sequence[int]) -> int:
    """Return the rows in classes of too few rows, which are outliers however many persons they belong to."""
    counted = _roll_up(replace(problem.frequency, carried=None), tuple(levels), None, None)
    least = max(problem.min_size, problem.min_rows)
    small = exp.select(exp.func("COALESCE", exp.Sum(this=col("n")), number(0))).from_(subquery(counted, "c"))
    (rows,) = problem.engine.row(small.where(exp.LT(this=col("n"), expression=number(least))))
    return int(rows)


def judge(problem: Problem, node: Node, start: Node | None = None) -> Node:
    """Return the node with every model asked about its classes; ``start`` is a judged node below it."""
    import numpy as np
    import pyarrow as pa

    from duckanon.algorithms.full_domain.publishable import publishable

    engine, width = problem.engine, len(node.levels)
    numbered, verdict = engine.fresh("numbered"), engine.fresh("verdict")
    codes = [col(f"g_{j}") for j in range(width)]
    order = exp.Order(expressions=[exp.Ordered(this=c.copy(), desc=False, nulls_first=False) for c in codes])
    rank = exp.Sub(this=exp.Window(this=exp.RowNumber(), order=order), expression=number(1))
    columns = [named(cast(rank, "BIGINT"), "i"), *codes, col("n"), col("units")]
    engine.create(numbered, exp.select(*columns).from_(subquery(node.grouped.copy(), "c")))
    found = engine.arrow(exp.select(col("n"), col("units")).from_(table(numbered)).order_by(col("i")))
    rows, sizes = _array(found, "n"), _array(found, "units")
    rolled = {}
    counts: dict[str, Groups] = {}
    for key, tally in problem.tallies.items():
        rolled[key] = engine.fresh("rolled")
        below = start.rolled[key] if start is not None else None
        engine.create(rolled[key], _roll_up(tally.frequency, node.levels, below, start))
        counted = engine.arrow(_by_number(numbered, tally, rolled[key], width))
        i, n = _array(counted, "i"), _array(counted, "n")
        if tally.totals is None:
            population = np.zeros(len(rows), dtype=np.int64)
            population[i] = n
            (everywhere,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(rolled[key])))
            counts[key] = Groups(sizes, rows, population=population, population_only=int(everywhere) - len(i))
        else:
            starts = np.searchsorted(i, np.arange(len(rows) + 1))
            found_values = Histograms(starts, _array(counted, "value"), n, tally.totals, tally.ancestors)
            counts[key] = Groups(sizes, rows, histograms=found_values)
    plain = Groups(sizes, rows)
    kept = publishable(problem.models, lambda model: counts.get(problem.key_of(model), plain), rows >= problem.min_rows)
    flags = engine.fresh("flags")
    engine.register(flags, pa.table({"i": np.arange(len(rows)), "kept": kept}))
    engine.create(verdict, exp.select("*").from_(table(flags)))
    engine.unregister(flags)
    on = exp.EQ(this=col("i", "v"), expression=col("i", "c"))
    passed = [*(col(f"g_{j}", "c") for j in range(width)), col("n", "c"), col("units", "c"), col("kept", "v")]
    grouped = exp.select(*passed).from_(table(numbered, "c")).join(table(verdict, "v"), on=on)
    return replace(
        node,
        outlier_rows=int(rows[~kept].sum()),
        outlier_classes=int((~kept).sum()),
        grouped=grouped,
        rolled=rolled,
        judged=(*node.judged, numbered, verdict),
    )


def placed(frequency: Frequency, node: Node) -> exp.Select:
    """Return the rows of a frequency table, each with the codes of its class at a node and whether that is kept."""
    query = exp.select(exp.Column(this=exp.Star(), table=exp.to_identifier("f", quoted=True)))
    query = query.from_(table(frequency.table, "f"))
    keys = []
    for j, (coded, level) in enumerate(zip(frequency.coded, node.levels, strict=True)):
        code: exp.Expr = number(0)
        if level < coded.height:
            alias = f"m_{j}"
            on = exp.EQ(this=col("a", alias), expression=col(f"c_{j}", "f"))
            query = query.join(subquery(_mapping(coded, None, level), alias), on=on)
            code = col("b", alias)
        keys.append(exp.EQ(this=col(f"g_{j}", "k"), expression=code))
    query = query.select(col("kept", "k"), *(col(f"g_{j}", "k") for j in range(len(node.levels))))
    return query.join(subquery(node.grouped.copy(), "k"), on=conjunction(keys))


def by_class(node_table: str, width: int, entity: bool) -> exp.Select:
    """Return one row for each class: its codes, ``n`` rows and ``units`` (persons where there is an entity key)."""
    codes = [col(f"g_{j}") for j in range(width)]
    if not entity:
        return exp.select(*codes, col("n"), named(col("n"), "units")).from_(table(node_table))
    # Every person counts once in each class; all rows without a key count as a single person.
    rows, people = exp.Sum(this=col("n")), exp.Count(this=exp.Star())
    return (
        exp.select(*codes, named(cast(rows, "BIGINT"), "n"), named(people, "units"))
        .from_(table(node_table))
        .group_by(*(c.copy() for c in codes))
    )


def persons(entity: exp.Expr) -> exp.Expr:
    """Return an aggregate that counts distinct entities; all rows without one count as a single person."""
    missing = exp.case().when(exp.Is(this=entity, expression=exp.null()), number(1)).else_(number(0))
    return exp.Add(this=call("count", exp.Distinct(expressions=[entity.copy()])), expression=exp.Max(this=missing))


def _by_number(numbered: str, tally: Tally, rolled: str, width: int) -> exp.Select:
    """Return the counts of a rolled-up table with the numbers of the classes that they belong to, in their order."""
    on = conjunction([exp.EQ(this=col(f"g_{j}", "c"), expression=col(f"g_{j}", "r")) for j in range(width)])
    columns = [col("i", "c"), col("n", "r")]
    if tally.frequency.carried is not None:
        columns.insert(1, col(tally.frequency.carried, "r"))
    joined = exp.select(*columns).from_(table(rolled, "r")).join(table(numbered, "c"), on=on)
    return joined.order_by(*(c.copy() for c in columns[:-1]))


def _array(rows: pa.Table, name: str) -> NDArray[np.int64]:
    import numpy as np

    return np.asarray(rows.column(name).to_numpy(), dtype=np.int64)


def _roll_up(frequency: Frequency, levels: tuple[int, ...], below_table: str | None, start: Node | None) -> exp.Query:
    """Return a frequency table by the codes of ``levels``, from itself or from its counts at the node ``start``."""
    base = frequency.table if below_table is None else below_table
    query = exp.select().from_(table(base, "f"))
    for j, (coded, level) in enumerate(zip(frequency.coded, levels, strict=True)):
        below = None if below_table is None or start is None else start.levels[j]
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
    if frequency.carried is not None:
        query = query.select(col(frequency.carried, "f"))
    query = query.select(named(cast(exp.Sum(this=col("n", "f")), "BIGINT"), "n"))
    return query.group_by(exp.var("ALL"))


def _mapping(coded: Coded, below: int | None, level: int) -> exp.Query:
    """Return (a, b): codes of one level, or of the values where ``below`` is None, and of a level above."""
    source = col("code" if below is None else f"c{below}")
    query = exp.select(named(source, "a"), named(col(f"c{level}"), "b")).from_(table(coded.levels))
    return query if below is None else query.distinct()
