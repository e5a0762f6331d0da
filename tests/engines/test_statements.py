"""Statements of `sql/` other than models and metrics, on small relations, compared with plain Python."""

from __future__ import annotations

import hashlib
import random
from collections import Counter, defaultdict
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import metrics as plain
from reference.comparison import PROPERTIES
from reference.comparison import Rows as SlowRows
from reference.relations import relations_of
from reference.tables import Table, full_domain

from duckanon.assess.comparison.properties.base import CellProperty, properties
from duckanon.engine.base import Engine
from duckanon.engine.sql.files import names
from duckanon.engine.sql.relations import RelationTables
from tests.effort import share
from tests.engines.relations import ask, registered

ROOMS = {"models", "metrics", "properties", "risk", "nights", "attacks", "permutation"}
SEEDS = st.integers(0, 2**32)


def test_every_statement_is_run_on_every_engine() -> None:
    assert {name.split("/")[0] for name in names(".")} <= ROOMS, "a statement has no test in tests/engines"


# Properties: a number for each row


def generalized(rng: random.Random) -> Table:
    """Draw a table whose columns are generalized to one level each, rows of small classes being suppressed."""
    width, size = rng.randint(1, 3), rng.randint(1, 25)
    trees: list[dict[Any, list[Any]]] = []
    for _ in range(width):
        leaves = [*(f"v{i}" for i in range(rng.randint(1, 6))), *([None] if rng.random() < 0.3 else [])]
        trees.append({v: [v, f"m{rng.randint(0, 2)}", "*"] for v in leaves})
    rows = [tuple(rng.choice(list(tree)) for tree in trees) for _ in range(size)]
    levels = [rng.randint(0, 2) for _ in trees]
    labels = [tuple(tree[v][level] for v, tree, level in zip(row, trees, levels, strict=True)) for row in rows]
    k = rng.randint(1, 4)
    kept = [labels.count(label) >= k for label in labels]
    return full_domain(rows, trees, levels, kept, labels=[rng.choice(["a", "b", None]) for _ in rows], k=k)


def of_rows(engine: Engine, name: str, table: Table) -> list[float]:
    """Return a property of every row."""
    ids = {key: i + 1 for i, key in enumerate(dict.fromkeys(table.cells))}
    class_ids = [ids[cells] for cells in table.cells]
    assert table.labels is not None
    rows = relations_of(table, list("pqr"[: table.width])) | {
        "row_values": [(i, c, v) for i, (c, v) in enumerate(zip(class_ids, table.labels, strict=True))]
    }
    kind = properties.get(name.split("/")[1])
    if issubclass(kind, CellProperty):
        with registered(engine, {r: rows[r] for r in ("classes", "class_cells", "domain")}) as relations:
            found = dict(engine.rows(kind.metric.of_classes(RelationTables(engine, relations))))
    else:
        found = dict(ask(engine, name, rows))
    return [found[i if name.split("/")[1].startswith("sensitive") else c] for i, c in enumerate(class_ids)]


@share(1)
@given(seed=SEEDS)
def test_properties_are_those_of_slow_rows(seed: int, shared_engine: Engine) -> None:
    table = generalized(random.Random(seed))
    shares = [
        [(c.leaves, d.leaves, c.level or 0, d.height or 0) for c, d in zip(cells, table.domains, strict=True)]
        if cells is not None
        else [(0, d.leaves, 0, 1) for d in table.domains]
        for cells in table.cells
    ]
    assert table.labels is not None
    kept = [cells is not None for cells in table.cells]
    expected = SlowRows(list(table.cells), kept, shares, table.labels).vectors()
    for name in PROPERTIES:
        assert of_rows(shared_engine, f"properties/{name}", table) == pytest.approx(expected[name], abs=1e-9), name


@share(1 / 2)
@given(seed=SEEDS)
def test_properties_add_up_to_their_metric(seed: int, shared_engine: Engine) -> None:
    table = generalized(random.Random(seed))
    for name in set(properties) - set(PROPERTIES):
        total = sum(of_rows(shared_engine, f"properties/{name}", table))
        assert total == pytest.approx(plain.ALL[name](table)[None], abs=1e-9), name


# Risk: sizes of classes in the sample and in the population

CLASSES = st.lists(
    st.tuples(st.integers(1, 6), st.booleans(), st.integers(0, 3)).map(lambda c: (c[0], c[1], c[0] + c[2])), max_size=6
)


@share(2)
@given(classes=CLASSES, threshold=st.sampled_from([0.0, 0.2, 1 / 3, 0.5, 1.0]))
def test_risk_is_one_divided_by_the_size(
    classes: list[tuple[int, bool, int]], threshold: float, shared_engine: Engine
) -> None:
    rows = {
        "classes": [(i, n, out) for i, (n, out, _) in enumerate(classes)],
        "population_classes": [(i, p) for i, (_, _, p) in enumerate(classes)],
    }
    kept = [(n, p) for n, out, p in classes if not out]
    sizes = [n for n, _ in kept]
    persons = [pair for pair in kept for _ in range(pair[0])]
    assert ask(shared_engine, "risk/sizes", rows) == [
        (len(kept), sum(sizes), min(sizes, default=None), max(sizes, default=None), sizes.count(1))
    ]
    counted = Counter((n, out) for n, out, _ in classes)
    assert ask(shared_engine, "risk/size_counts", rows) == [
        (n, count, out) for (n, out), count in sorted(counted.items())
    ]
    prosecutor = ask(shared_engine, "risk/prosecutor", rows, threshold=threshold)
    journalist = ask(shared_engine, "risk/journalist", rows, threshold=threshold)
    if not persons:
        assert [set(row) for row in (*prosecutor, *journalist)] == [{None}] * 2
        return
    risks = [1 / n for n, _ in persons]
    assert prosecutor == [pytest.approx((*seen(risks, threshold), mean(risk == max(risks) for risk in risks)))]
    risks = [1 / p for _, p in persons]
    above, largest, average, smallest = seen(risks, threshold)
    drawn = len(kept) / sum(p for _, p in kept)
    expected = (above, largest, max(drawn, average), smallest, mean(risk == max(risks) for risk in risks))
    assert journalist == [pytest.approx((*expected, average, mean(p == 1 for _, p in persons)))]


def mean(values: Any) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def seen(risks: list[float], threshold: float) -> tuple[float, ...]:
    return mean(risk > threshold for risk in risks), max(risks), mean(risks), min(risks)


# Nights: persons and their classes in two releases

NIGHT = st.dictionaries(
    st.integers(0, 9).map(lambda n: f"p{n}"), st.sets(st.sampled_from("ABC"), min_size=1, max_size=2), max_size=10
)


def moves(before: dict[str, set[str]], after: dict[str, set[str]]) -> list[tuple[str, str | None, str | None]]:
    """Return for each person each class that they stayed in, and each that they left with each that they came to."""
    found: list[tuple[str, str | None, str | None]] = []
    for person in before.keys() | after.keys():
        old, new = before.get(person, set()), after.get(person, set())
        found += [(person, c, c) for c in old & new]
        lost, gained = sorted(old - new), sorted(new - old)
        if lost or gained:
            found += [(person, x, y) for x in lost or [None] for y in gained or [None]]
    return found


@share(3)
@given(before=NIGHT, after=NIGHT, k=st.integers(1, 4))
def test_two_nights_are_compared_person_by_person(
    before: dict[str, set[str]], after: dict[str, set[str]], k: int, shared_engine: Engine
) -> None:
    rows = {
        "night_before": [(p, c) for p, own in before.items() for c in sorted(own)],
        "night_after": [(p, c) for p, own in after.items() for c in sorted(own)],
    }
    groups = Counter((x, y) for _, x, y in moves(before, after))
    found = ask(shared_engine, "nights/groups", rows)
    assert sorted(found, key=str) == sorted(((x, y, n) for (x, y), n in groups.items()), key=str)
    rows["night_groups"] = found
    exposed = {
        (person, "new" if x is None else "departed" if y is None else "both")
        for person, x, y in moves(before, after)
        if groups[x, y] < k
    }
    answer = ask(shared_engine, "nights/exposed", rows, k=k)
    assert len(answer) == len(exposed)
    assert set(answer) == exposed
    answer = ask(shared_engine, "nights/companions", rows, k=k, salt="s")
    assert sorted(answer) == [(person,) for person in sorted(companions(before, after, groups, k))]


def companions(before: dict[str, set[str]], after: dict[str, set[str]], groups: Counter[Any], k: int) -> set[str]:
    """Return who waits with those who left a class for good: first those of its largest group, drawn by the salt."""
    found = set()
    for (left, gone), departed in groups.items():
        if gone is None and departed < k:
            others = [
                (-groups[left, c], hashlib.md5(f"{p.encode().hex().upper()}s".encode()).hexdigest(), p)
                for p in before
                if left in before[p]
                for c in after.get(p, ())
                if (left, c) in groups
            ]
            found |= {person for _, _, person in sorted(others)[: k - departed]}
    return found


# Attacks on the values of classes


@share(2)
@given(
    classes=st.lists(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=6), min_size=1, max_size=5),
    k=st.integers(1, 4),
)
def test_attacks_on_class_values_count_as_row_by_row(
    classes: list[list[str | None]], k: int, shared_engine: Engine
) -> None:
    rows = {"class_values": [(i, "ill", v, n) for i, own in enumerate(classes) for v, n in Counter(own).items()]}
    table = [value for own in classes for value in own]
    counts, total = Counter(table), len(table)
    alone = mean(len(set(own)) == 1 for own in classes for _ in own)
    allowed = sum((n / total) ** k for n in counts.values())
    assert ask(shared_engine, "attacks/homogeneity", rows, k=k) == [
        ("ill", *map(pytest.approx, (total, alone, float(len(counts) == 1), allowed)))
    ]
    shown = mean(own.count(value) / len(own) for own in classes for value in own)
    drawn = mean(counts[value] / total for value in table)
    others = mean((counts[value] - 1) / (total - 1) for value in table) if total > 1 else 1
    assert ask(shared_engine, "attacks/skewness", rows, k=k) == [
        ("ill", *map(pytest.approx, (total, shown, drawn, (1 + (k - 1) * others) / k)))
    ]


# Permutation


@share(1)
@given(seed=SEEDS)
def test_mutual_information_is_that_of_the_definition(seed: int, shared_engine: Engine) -> None:
    table = generalized(random.Random(seed))
    columns = [*"pqr"[: table.width], "ill"]
    found = {
        (x, y): rest
        for x, y, *rest in ask(shared_engine, "permutation/mutual_information", relations_of(table, columns[:-1]))
    }
    expected: dict[tuple[str, str], list[float | None]] = defaultdict(list)
    for i, j in combinations(range(len(columns)), 2):
        for xs, ys in zip(plain.told(table, i), plain.told(table, j), strict=True):
            expected[columns[i], columns[j]].append(plain.mutual_information(xs, ys) if xs else None)
    assert found == {
        pair: [None if n is None else pytest.approx(n, abs=1e-9) for n in bits] for pair, bits in expected.items()
    }
