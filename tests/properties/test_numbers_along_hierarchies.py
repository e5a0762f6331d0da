"""Numbers of which nodes of a hierarchy are published are divided along it, by every algorithm."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties.clustering_cases import rounded
from reference.greedy import greedy
from reference.k_member import k_member
from reference.kaca import kaca
from reference.space import Space, Tree

import duckanon
from tests.effort import share

ALGORITHMS = ("greedy", "greedy(metric=ncp)", "greedy(metric=distortion)", "k_member", "kaca", "knn_clustering")
ALGORITHMS += ("mdav", "v_mdav", "tdg", "mondrian", "mondrian(choose_dim=distinct)")
SLOW = {"greedy": "nllm", "greedy(metric=ncp)": "ncp", "greedy(metric=distortion)": "distortion"}
SLOW |= {"k_member": "ncp", "kaca": "distortion"}
AGES = [
    [str(v), f"{(v - 1) // 5 * 5}-{(v - 1) // 5 * 5 + 4}", f"{(v - 1) // 10 * 10}-{(v - 1) // 10 * 10 + 9}", "*"]
    for v in range(10, 60)
]


def hierarchy(lines: list[list[str]]) -> duckanon.Hierarchy:
    return duckanon.Hierarchy.from_table({f"l{i}": list(own) for i, own in enumerate(zip(*lines, strict=True))})


def random_lines(rng: random.Random) -> list[list[str]]:
    """Lines of a hierarchy of the numbers from 10 on, whose groups are unevenly wide; of two digits, so that texts sort
    as numbers do."""
    leaves = list(range(10, 10 + rng.randint(2, 40)))
    lines = [[str(v)] for v in leaves]
    group = list(range(len(leaves)))
    for level in range(1, rng.randint(1, 4)):
        starts = [i == 0 or (group[i] != group[i - 1] and rng.random() < 0.5) for i in range(len(leaves))]
        group = [sum(starts[: i + 1]) for i in range(len(leaves))]
        for line, own in zip(lines, group, strict=True):
            line.append(f"{level}/{own:02}")
    return [[*line, "*"] for line in lines]


def drawn(rng: random.Random) -> tuple[list[list[list[str]]], list[list[int | None]], int]:
    trees = [random_lines(rng) for _ in range(rng.randint(1, 2))]
    n, few = rng.randint(2, 40), rng.random() < 0.5
    columns: list[list[int | None]] = []
    for lines in trees:
        values = [int(line[0]) for line in lines]
        values = rng.sample(values, min(len(values), 5)) if few else values
        missing = rng.choice([0.0, 0.0, 0.2])
        columns.append([None if rng.random() < missing else rng.choice(values) for _ in range(n)])
    return trees, columns, rng.randint(1, 5)


def published(
    columns: list[list[Any]], kind: pa.DataType, trees: list[list[list[str]]], k: int, connection: Any, **more: Any
) -> list[tuple[str | None, ...]]:
    names = [f"q{j}" for j in range(len(columns))]
    arrays = [pa.array([None if v is None else kind_of(v, kind) for v in own], kind) for own in columns]
    made = duckanon.anonymize(
        pa.table(arrays, names=names),
        quasi_identifiers=names,
        hierarchies={name: hierarchy(lines) for name, lines in zip(names, trees, strict=True)},
        k=min(k, len(columns[0])),
        output="lca",
        connection=connection,
        **more,
    )
    with made as release:
        rows = [[None if v is None else str(v) for v in c.to_pylist()] for c in release.to_arrow().columns]
    return sorted(zip(*rows, strict=True), key=repr)


def kind_of(value: int, kind: pa.DataType) -> Any:
    return str(value) if pa.types.is_string(kind) else value


@share(1 / 2)
@given(seed=st.integers(0, 2**32))
def test_numbers_are_divided_as_words_with_the_same_hierarchy(seed: int, connection: Any) -> None:
    rng = random.Random(seed)
    trees, columns, k = drawn(rng)
    how = {"algorithm": rng.choice(ALGORITHMS), "bounds": rng.choice(["grid", "tight"])}
    numbers = published(columns, pa.int64(), trees, k, connection, **how)
    assert numbers == published(columns, pa.string(), trees, k, connection, **how)


def tree_of(lines: list[list[str]], column: list[int | None], items: list[int | None], measure: str) -> Tree:
    """The tree of the values that occur; NULL hangs from the top alone."""
    present = sorted({v for v in column if v is not None})
    places = {v: i for i, v in enumerate(present)}
    null = None in column
    by_leaf = {int(line[0]): line for line in lines}
    height, total = len(lines[0]) - 1, len(lines) + null
    nodes, widths = [list(range(len(present) + null))], [[0.0] * (len(present) + null)]
    for level in range(1, height + 1):
        labels = [by_leaf[v][level] for v in present]
        known = list(dict.fromkeys(labels))
        own = [known.index(label) for label in labels]
        leaves = [sum(line[level] == label for line in lines) for label in known]
        if null:
            own.append(0 if level == height else len(known))
            leaves = [total] if level == height else [*leaves, 1]
        share_of = {
            "nllm": lambda n: (n - 1) / max(total - 1, 1),
            "ncp": lambda n: n / total if n > 1 else 0.0,
            "distortion": lambda n, level=level: level / height,
        }[measure]
        nodes.append(own)
        widths.append([rounded(share_of(n)) for n in leaves])
    return Tree([len(present) if v is None else places[v] for v in items], nodes, widths)


@share(1 / 2)
@given(seed=st.integers(0, 2**32))
def test_classes_are_those_of_the_slow_reference(seed: int, connection: Any) -> None:
    rng = random.Random(seed)
    trees, columns, k = drawn(rng)
    n = len(columns[0])
    k = min(k, n)
    algorithm = rng.choice(list(SLOW))
    rows = sorted(zip(*columns, strict=True), key=lambda row: [(v is None, v or 0) for v in row])
    items = rows if algorithm == "k_member" else list(dict.fromkeys(rows))
    weights = [1] * n if algorithm == "k_member" else [rows.count(item) for item in items]
    own = [
        tree_of(lines, column, [item[j] for item in items], SLOW[algorithm])
        for j, (lines, column) in enumerate(zip(trees, columns, strict=True))
    ]
    space = Space(own, weights)
    slow = {"k_member": lambda: k_member(space, k, 0), "kaca": lambda: kaca(space, k, 0)}
    classes = slow.get(algorithm, lambda: greedy(space, k))() if n >= 2 * k else [list(range(len(items)))]
    expected: list[tuple[str | None, ...]] = []
    for members in classes:
        cells = []
        for j, (lines, tree) in enumerate(zip(trees, own, strict=True)):
            level, _ = tree.box([tree.places[i] for i in members])
            first = items[members[0]][j]
            if len({items[i][j] for i in members}) == 1:
                cells.append(None if first is None else str(first))
            elif level == len(lines[0]) - 1:
                cells.append("*")
            else:
                cells.append(next(line[level] for line in lines if line[0] == str(first)))
        expected += [tuple(cells)] * space.rows(members)
    assert published(columns, pa.int64(), trees, k, connection, algorithm=algorithm) == sorted(expected, key=repr)


@pytest.mark.parametrize("bounds", ["grid", "tight"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.thinned(2)
def test_ages_get_the_lowest_label_that_holds_them(algorithm: str, bounds: str) -> None:
    ages: list[list[Any]] = [[21, 24, 20, 20]]
    found = published(ages, pa.int64(), [AGES], 2, None, algorithm=algorithm, bounds=bounds)
    assert found == [("20",), ("20",), ("20-24",), ("20-24",)]
