"""Mondrian with `anonymize`: tables of all types, published in regions, compared with the requirements."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from typing import Any

import pyarrow as pa
import pytest
from generated import Problem, key, problems, read, rows_of
from hypothesis import given
from hypothesis import strategies as st
from reference import mondrian as slow

import duckanon
from duckanon.algorithms import Mondrian
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.errors import InfeasibleError
from tests.effort import share

BOUNDS = ["grid", "cut", "tight"]
NUMBER = "no. of the row"
"""A column that tells rows apart, so that a published row can be put beside the original one."""


def numbered(table: pa.Table) -> pa.Table:
    return table.append_column(NUMBER, pa.array(range(table.num_rows), pa.int32()))


def released(problem: Problem, table: pa.Table, **options: Any) -> duckanon.Release:
    return duckanon.anonymize(
        table,
        quasi_identifiers=problem.quasi,
        sensitive=problem.sensitive,
        entity_key=problem.entity,
        k=problem.k,
        hierarchies=problem.hierarchies,
        **options,
    )


def members(problem: Problem) -> list[Any]:
    """Whom k counts: rows, or persons, and all rows without one are one person."""
    if problem.entity is None:
        return list(range(problem.table.num_rows))
    return [key(0.0) if v == 0 and isinstance(v, float) else key(v) for v in problem.table[problem.entity].to_pylist()]


@pytest.mark.thinned
@pytest.mark.parametrize("relaxed", [False, True])
@pytest.mark.parametrize("bounds", BOUNDS)
@share(1 / 10)
@given(data=st.data())
def test_every_class_is_large_enough_and_every_cell_covers_its_value(
    bounds: str, relaxed: bool, data: st.DataObject, connection: Any
) -> None:
    problem = data.draw(problems(persons=data.draw(st.booleans()), max_rows=60))
    table = numbered(problem.table)
    people = members(problem)
    # A budget of few rows makes a table one that is cut by the database first.
    how = Mondrian(relaxed=relaxed, budget=data.draw(st.sampled_from([None, 5, 20])))
    options = {"insensitive": [NUMBER], "bounds": bounds, "algorithm": how}
    if len(set(people)) < problem.k:
        with pytest.raises(InfeasibleError):
            released(problem, table, connection=connection, **options)
        return
    with released(problem, table, connection=connection, **options) as release:
        file = read(release)
        numbers = file[NUMBER].to_pylist()
        assert sorted(numbers) == list(range(table.num_rows)), "nothing is suppressed, and nothing comes twice"
        assert file.column_names == [c for c in table.column_names if c in {*problem.quasi, *problem.sensitive, NUMBER}]
        found = defaultdict(set)
        for row, number in zip(rows_of(file, problem.quasi), numbers, strict=True):
            found[row].add(people[number])
        assert min(len(own) for own in found.values()) >= problem.k
        original = table.take(numbers)
        assert rows_of(file, problem.sensitive) == rows_of(original, problem.sensitive)
        for name, hierarchy in problem.hierarchies.items():
            assert_labels_cover(hierarchy, original[name].to_pylist(), file[name].to_pylist())
        assert all(check.holds for check in release.checks)


def assert_labels_cover(hierarchy: duckanon.Hierarchy, values: list[Any], cells: list[Any]) -> None:
    """A cell of a column with a hierarchy is the value itself or a label over it; of NULL, itself or the top."""
    assert hierarchy.levels is not None
    lines = list(zip(*(c.to_pylist() for c in hierarchy.levels.columns), strict=True))
    labels = {line[0]: set(line) for line in lines}
    labels[None] = {None, lines[0][-1]}
    assert all(cell in labels[value] for value, cell in zip(values, cells, strict=True))


@pytest.mark.thinned
@pytest.mark.parametrize("relaxed", [False, True])
@pytest.mark.parametrize("bounds", BOUNDS)
@share(1 / 10)
@given(data=st.data())
def test_bounds_lie_around_every_value(bounds: str, relaxed: bool, data: st.DataObject, connection: Any) -> None:
    problem = data.draw(problems(max_rows=60))
    table = numbered(problem.table)
    options = {"insensitive": [NUMBER], "bounds": bounds, "algorithm": Mondrian(relaxed=relaxed)}
    if table.num_rows < problem.k:
        return
    with released(problem, table, connection=connection, output="struct", **options) as release:
        file = read(release)
        original = table.take(file[NUMBER].to_pylist())
        classes = [repr(row) for row in zip(*(file[n].to_pylist() for n in problem.quasi), strict=True)]
        assert min(Counter(classes).values()) >= problem.k
        for name in problem.quasi:
            if pa.types.is_struct(file.schema.field(name).type):
                own = defaultdict(list)
                pairs = zip(original[name].to_pylist(), file[name].to_pylist(), strict=True)
                for class_, pair in zip(classes, pairs, strict=True):
                    own[class_].append(pair)
                for found in own.values():
                    assert_between([v for v, _ in found], found[0][1], bounds)


def assert_between(values: list[Any], cell: dict[str, Any] | None, bounds: str) -> None:
    """NULL is an open bound, and where values are missing both are; NaN is the largest number."""

    def order(value: Any) -> tuple[int, Any]:
        return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)

    low, high = cell.values() if cell is not None else (None, None)
    if None in values:
        assert low is None
        assert high is None
        return
    least, most = min(map(order, values)), max(map(order, values))
    assert low is None or order(low) <= least
    assert high is None or order(high) >= most
    if bounds == "tight":
        assert (order(low), order(high)) == (least, most)


@pytest.mark.thinned
@pytest.mark.parametrize("relaxed", [False, True])
@pytest.mark.parametrize("bounds", BOUNDS)
@share(1 / 15)
@given(problem=problems(max_rows=60), shuffle=st.randoms(use_true_random=False), seed=st.integers(0, 9), data=st.data())
def test_threads_and_the_order_of_the_source_leave_no_trace(
    bounds: str, relaxed: bool, problem: Problem, shuffle: random.Random, seed: int, data: st.DataObject
) -> None:
    how = Mondrian(relaxed=relaxed, budget=data.draw(st.sampled_from([None, 10])))
    order = list(range(problem.table.num_rows))
    shuffle.shuffle(order)
    found = []
    for threads, table in ((1, problem.table), (2, problem.table.take(order))):
        engine = DuckDBEngine(threads=threads)
        options = {"bounds": bounds, "algorithm": how, "engine": engine, "seed": seed}
        try:
            with released(problem, table, **options) as release:
                found.append((rows_of(read(release)), release.path.read_bytes()))
        except InfeasibleError:
            found.append(None)
        finally:
            engine.close()
    assert found[0] == found[1], "other rows, or another order"


@pytest.mark.parametrize("relaxed", [False, True])
@share(1 / 8)
@given(data=st.data())
def test_rows_are_only_joined_within(relaxed: bool, data: st.DataObject, connection: Any) -> None:
    """Parts that are too small as a whole are left out, all others are published, and nothing is mixed."""
    problem = data.draw(problems(persons=data.draw(st.booleans()), max_rows=60))
    table, people = numbered(problem.table), members(problem)
    name = data.draw(st.sampled_from(problem.quasi))
    inside = [(key(0.0),) if row == (key(-0.0),) else row for row in rows_of(table, [name])]
    own = defaultdict(set)
    for part, person in zip(inside, people, strict=True):
        own[part].add(person)
    wanted = [i for i, part in enumerate(inside) if len(own[part]) >= problem.k]
    options = {"insensitive": [NUMBER], "within": [name], "suppression_limit": 1.0, "connection": connection}
    options["algorithm"] = Mondrian(relaxed=relaxed)
    if not wanted:
        with pytest.raises(InfeasibleError):
            released(problem, table, **options)
        return
    with released(problem, table, **options) as release:
        file = read(release)
        numbers = file[NUMBER].to_pylist()
        assert sorted(numbers) == wanted
        found = defaultdict(set)
        for row, number in zip(rows_of(file, problem.quasi), numbers, strict=True):
            found[row].add(number)
        assert all(len({inside[i] for i in rows}) == 1 for rows in found.values())
        assert all(len({people[i] for i in rows}) >= problem.k for rows in found.values())


CHOICES = ["range", "distinct", "round_robin"]
WIDTH = 10
"""Of the groups of a grid of numbers."""
LEAVES = [f"v{i:02}" for i in range(12)]
TREE = {leaf: [leaf, f"g{i // 3}", f"h{i // 6}", "*"] for i, leaf in enumerate(LEAVES)}
"""Texts with a hierarchy: the order of their leaves is that of the alphabet, so that places are known."""


class Table:
    """Columns of numbers (lines) and of texts (trees) as the reference sees them, and as anybody would publish them."""

    def __init__(self, rng: random.Random) -> None:
        count = rng.randint(1, 60)
        self.bounds = rng.choice(BOUNDS)
        self.kinds = [rng.choice(["number", "number", "text"]) for _ in range(rng.randint(1, 3))]
        self.names = [f"q{j}" for j in range(len(self.kinds))]
        self.columns = [self._column(rng, kind, count) for kind in self.kinds]
        self.values = [rng.randrange(rng.randint(1, 4)) for _ in range(count)]
        self.people = [rng.randrange(count) for _ in range(count)] if rng.random() < 0.3 else None
        self.k, self.l = rng.randint(1, 5), rng.choice([1, 1, 2, 3])
        self.choose = rng.choice(CHOICES)
        # Through lines, the widest first, the database cuts large tables as arrays would be cut.
        alike = self.choose == "range" and "text" not in self.kinds
        self.budget = rng.choice([None, 1, 9]) if alike else None

    @staticmethod
    def _column(rng: random.Random, kind: str, count: int) -> list[Any]:
        known: list[Any] = rng.sample(LEAVES, rng.randint(1, len(LEAVES)))
        if kind == "number":
            known = [rng.choice([0, 1, 2, 10, 100]) * rng.randint(-3, 9) for _ in range(rng.randint(1, 25))]
        missing = rng.choice([0.0, 0.0, 0.1, 0.4])
        return [None if rng.random() < missing else rng.choice(known) for _ in range(count)]

    def axis(self, kind: str, known: list[Any], null: bool) -> slow.Axis:
        size = len(known) + null
        if kind == "number":
            grid = self.bounds == "grid"
            atoms = [v // WIDTH for v in known] if grid else list(range(len(known)))
            # NULL comes last.
            atoms += [max(atoms, default=0) + 1] * null
            return slow.Axis(size, null, [float(v) for v in known], atoms)
        nodes, leaves = [], []
        for level in range(4):
            labels = [TREE[v][level] for v in known]
            order = list(dict.fromkeys(labels))
            # Below the top NULL has a node of its own.
            nodes.append([order.index(x) for x in labels] + [len(order) if level < 3 else 0] * null)
            leaves.append([sum(line[level] == x for line in TREE.values()) for x in order or ["*"]] + [1] * null)
        return slow.Axis(size, null, nodes=nodes, leaves=leaves)

    def reference(self) -> slow.Mondrian:
        axes, places = [], []
        for kind, column in zip(self.kinds, self.columns, strict=True):
            known = sorted({v for v in column if v is not None})
            axes.append(self.axis(kind, known, None in column))
            places.append([len(known) if v is None else known.index(v) for v in column])
        rows = [
            slow.Row(cell, person=self.people[i] if self.people else None, values=(self.values[i],))
            for i, cell in enumerate(zip(*places, strict=True))
        ]
        promises = [slow.promise("k_anonymity", k=self.k), slow.promise("l_diversity", 0, l=self.l)]
        return slow.Mondrian(axes, rows, promises, choose=self.choose, persons=self.people is not None)

    def release(self, connection: Any) -> duckanon.Release:
        types = {"number": pa.int32(), "text": pa.string()}
        columns = {
            name: pa.array(column, types[kind])
            for name, kind, column in zip(self.names, self.kinds, self.columns, strict=True)
        }
        columns["s"] = pa.array(self.values, pa.int32())
        columns["person"] = pa.array(self.people or [0] * len(self.values), pa.int64())
        lines = pa.table([pa.array(c) for c in zip(*TREE.values(), strict=True)], names=["l0", "l1", "l2", "l3"])
        made = {
            "number": duckanon.Hierarchy.intervals(width=WIDTH, levels=2),
            "text": duckanon.Hierarchy.from_table(lines),
        }
        return duckanon.anonymize(
            numbered(pa.table(columns)),
            quasi_identifiers=self.names,
            sensitive=["s"],
            insensitive=[NUMBER],
            entity_key="person" if self.people is not None else None,
            hierarchies={name: made[kind] for name, kind in zip(self.names, self.kinds, strict=True)},
            k=self.k,
            l=self.l,
            bounds=self.bounds,
            algorithm=Mondrian(choose_dim=self.choose, budget=self.budget),
            connection=connection,
        )


def compare(case: Table, connection: Any) -> None:
    try:
        wanted = case.reference().classes()
    except slow.Infeasible:
        with pytest.raises(InfeasibleError):
            case.release(connection)
        return
    with case.release(connection) as release:
        file = read(release)
        found = defaultdict(list)
        for row, number in zip(rows_of(file, case.names), file[NUMBER].to_pylist(), strict=True):
            found[row].append(number)
        assert sorted(map(sorted, found.values())) == sorted(sorted(c.rows) for c in wanted)


@share(1 / 3)
@given(seed=st.integers(0, 2**32))
def test_the_published_classes_are_the_references(seed: int, connection: Any) -> None:
    compare(Table(random.Random(seed)), connection)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_the_classes_of_a_thousand_more_tables(block: int, connection: Any) -> None:
    for seed in range(block * 100, block * 100 + 100):
        compare(Table(random.Random(f"table {seed}")), connection)
