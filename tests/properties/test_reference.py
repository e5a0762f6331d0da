"""The fast path against the slow, obviously right one, on many random tables."""

from __future__ import annotations

import math
import random

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import datafly as slow
from reference import metrics as plain
from reference.tables import full_domain

import duckanon
from duckanon.algorithms import Datafly
from duckanon.errors import InfeasibleError
from tests.effort import share


class Case:
    """A table of texts, a tree for each column that may know values which the table lacks, and parameters."""

    def __init__(self, rng: random.Random) -> None:
        self.width = rng.randint(1, 4)
        size = rng.randint(1, 40)
        domains = [[f"{c}{i}" for i in range(rng.randint(1, 8))] for c in "abcd"[: self.width]]
        self.trees = [self._tree(rng, domain) for domain in domains]
        used = [rng.sample(d, rng.randint(1, len(d))) for d in domains]
        nulls = [rng.random() < 0.3 for _ in domains]
        self.rows = [
            tuple(None if n and rng.random() < 0.2 else rng.choice(d) for d, n in zip(used, nulls, strict=True))
            for _ in range(size)
        ]
        for j, tree in enumerate(self.trees):
            if any(row[j] is None for row in self.rows):
                height = len(next(iter(tree.values()))) - 1
                tree[None] = [None] * height + ["*"]
        self.k = rng.randint(1, 6)
        self.limit = rng.choice([0.0, 0.0, 0.1, 0.25, 0.5, 1.0])
        self.stop = rng.choice(["limit", "limit", "k"])
        self.persons = [rng.choice([None, *range(size // 2 + 1)]) for _ in range(size)] if rng.random() < 0.4 else None

    @staticmethod
    def _tree(rng: random.Random, domain: list[str]) -> dict:
        labels = {leaf: [leaf] for leaf in domain}
        group = {leaf: i for i, leaf in enumerate(domain)}
        for level in range(1, rng.randint(1, 3)):
            parent = {g: rng.randint(0, max(0, len(set(group.values())) // 2)) for g in sorted(set(group.values()))}
            group = {leaf: parent[g] for leaf, g in group.items()}
            for leaf in domain:
                labels[leaf].append(f"{domain[0][0]}/{level}/{group[leaf]}")
        for leaf in domain:
            labels[leaf].append("*")
        return labels

    @property
    def names(self) -> list[str]:
        return [f"q{j}" for j in range(self.width)]

    def table(self) -> pa.Table:
        columns = {n: pa.array([r[j] for r in self.rows], pa.string()) for j, n in enumerate(self.names)}
        if self.persons is not None:
            columns["person"] = pa.array(self.persons, pa.int64())
        return pa.table(columns)

    def hierarchies(self) -> dict[str, duckanon.Hierarchy]:
        found = {}
        for name, tree in zip(self.names, self.trees, strict=True):
            lines = [labels for leaf, labels in tree.items() if leaf is not None]
            arrays = [pa.array(c, pa.string()) for c in zip(*lines, strict=True)]
            found[name] = duckanon.Hierarchy.from_table(pa.table(arrays, names=[f"l{i}" for i in range(len(arrays))]))
        return found

    def fast(self, connection: duckdb.DuckDBPyConnection) -> duckanon.Release:
        return duckanon.anonymize(
            self.table(),
            quasi_identifiers=self.names,
            entity_key="person" if self.persons is not None else None,
            hierarchies=self.hierarchies(),
            k=self.k,
            suppression_limit=self.limit,
            algorithm=Datafly(stop=self.stop),
            connection=connection,
        )


def compare(case: Case, connection: duckdb.DuckDBPyConnection) -> None:
    try:
        expected = slow.datafly(case.rows, case.trees, case.k, case.limit, case.stop, case.persons)
    except slow.Infeasible:
        with pytest.raises(InfeasibleError):
            case.fast(connection).close()
        return
    with case.fast(connection) as release:
        assert tuple(release.recoding.levels[n] for n in case.names) == expected.levels
        assert release.rows_suppressed == expected.suppressed
        columns = [c.to_pylist() for c in release.to_arrow().select(case.names).columns]
        assert sorted(zip(*columns, strict=True), key=repr) == sorted(expected.published.elements(), key=repr)
        compare_metrics(case, release, expected)


def compare_metrics(case: Case, release: duckanon.Release, expected: slow.Result) -> None:
    """The quick metrics; test_metrics.py compares all of them."""
    kept = [row is not None for row in expected.rows]
    table = full_domain(case.rows, case.trees, expected.levels, kept)
    found = {(m.metric, m.attribute): m.value for m in release.measure(duckanon.metrics.headlines())}
    for metric in (plain.loss, plain.precision, plain.discernibility, plain.average_class_size):
        for attribute, value in metric(table).items():
            name = None if attribute is None else case.names[attribute]
            assert math.isclose(found[metric.__name__, name], value, abs_tol=1e-9), (metric, name)


@share(1 / 2)
@given(seed=st.integers(0, 2**32))
def test_datafly_and_its_metrics_equal_the_reference(seed: int, connection) -> None:
    compare(Case(random.Random(seed)), connection)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_a_thousand_more_tables(block: int, connection) -> None:
    for seed in range(block * 100, block * 100 + 100):
        compare(Case(random.Random(f"table {seed}")), connection)


def test_the_papers_figure() -> None:
    """Figure 2.5 of the paper: zip codes and ages, k = 2; Datafly generalizes the column with more values first."""
    zips = {z: [z, z[:3] + "**", z[:2] + "***"] for z in ("97385", "97412", "97492", "97365")}
    zips = {z: [*labels, "*"] for z, labels in zips.items()}
    ages = {a: [a, "[20-40]", "*"] for a in ("21", "36")}
    rows = [("97385", "21"), ("97412", "21"), ("97492", "36"), ("97365", "36")]
    found = slow.datafly(rows, [zips, ages], k=2)
    assert found.levels == (2, 0)
    assert set(found.published) == {("97***", "21"), ("97***", "36")}
