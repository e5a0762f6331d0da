"""The order of published rows: neighbours are independent of each other, whichever way the rows were written."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon.engine.base import open_engine
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.io.sinks.folder import ParquetFolder

ROWS = 12_000
ROLES: dict[str, Any] = {"quasi_identifiers": ["age", "sex"], "sensitive": ["ill"], "seed": 5}


def people(rows: int = ROWS) -> pa.Table:
    """A table in which rows repeat often; who is ill depends on the age, and the rows are in the order of the age."""
    draw = random.Random(3)
    ages = sorted(draw.randrange(20, 60) for _ in range(rows))
    return pa.table(
        {
            "age": pa.array(ages, pa.int64()),
            "sex": [draw.choice("fm") for _ in range(rows)],
            "ill": [draw.choice(["flu", "cold"]) if age < 35 else draw.choice(["cold", "gout"]) for age in ages],
        }
    )


def equal_neighbours(rows: list[tuple[Any, ...]]) -> tuple[float, float]:
    """Return the share of rows that equal the row before them, and the share by chance."""
    equal = sum(a == b for a, b in pairwise(rows)) / (len(rows) - 1)
    chance = sum(n * (n - 1) for n in Counter(rows).values()) / (len(rows) * (len(rows) - 1))
    return equal, chance


def tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def by_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("recoding.regions", "recoding.coded_rows"):
        monkeypatch.setattr(f"duckanon.{module}.MANY_ROWS", 0)
    monkeypatch.setattr("duckanon.io.shuffled_writer._ROW_GROUP", 5_000)


def in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DuckDBEngine, "is_crowded_by", lambda self, size: True)


def by_lookup_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    by_lookup(monkeypatch)
    in_files(monkeypatch)


WAYS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "at once": lambda monkeypatch: None,
    "looked up": by_lookup,
    "files": in_files,
    "looked up, files": by_lookup_in_files,
}
CASES: dict[str, dict[str, Any]] = {
    "mondrian": {"k": 400},
    "mondrian, rows suppressed": {"k": 400, "suppression_limit": 0.2, "l": 2},
    "datafly": {"k": 400, "algorithm": "datafly"},
    "iterative": {"k": 400, "algorithm": "datafly", "iterative": True, "suppression_limit": 0.2},
    "permuted": {"k": 4, "algorithm": "probabilistic"},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_neighbours_are_equal_no_more_than_by_chance(case: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    WAYS[way](monkeypatch)
    found = []
    for threads in (1, 2):
        with duckanon.anonymize(people(), engine=open_engine(threads=threads), **ROLES, **CASES[case]) as release:
            found.append(pq.read_table(release.path))
    assert found[0].equals(found[1])
    equal, chance = equal_neighbours(tuples(found[0]))
    assert abs(equal - chance) < 5 * (chance / ROWS) ** 0.5


def test_the_first_rows_are_of_different_classes() -> None:
    for seed in range(5):
        with duckanon.anonymize(people(), **(ROLES | {"seed": seed}), k=400) as release:
            (classes,) = release.engine.row(_classes(release.path))
        assert len(classes) > 3


def _classes(path: Path) -> Any:
    import sqlglot

    source = str(path).replace("'", "''")
    query = f"SELECT list(DISTINCT (age, sex)) FROM (FROM read_parquet('{source}') LIMIT 8)"
    return sqlglot.parse_one(query, read="duckdb")


def test_folds_of_neighbours_are_samples_of_the_release() -> None:
    """Cross-validation without a shuffle: what most rows of a class have in other folds is right as often as in all."""
    with duckanon.anonymize(people(), **ROLES, k=400) as release:
        rows = tuples(pq.read_table(release.path))
    shuffled = rows.copy()
    random.Random(1).shuffle(shuffled)
    right = [_cross_validated(table) for table in (rows, shuffled)]
    assert right[0] == pytest.approx(right[1], abs=0.02)


def _cross_validated(rows: list[tuple[Any, ...]], folds: int = 5) -> float:
    parts = [rows[len(rows) * i // folds : len(rows) * (i + 1) // folds] for i in range(folds)]
    right = 0
    for i, part in enumerate(parts):
        seen: dict[Any, Counter[Any]] = {}
        for j, other in enumerate(parts):
            for *cells, ill in other if i != j else ():
                seen.setdefault(tuple(cells), Counter())[ill] += 1
        right += sum(bool(n := seen.get(tuple(cells))) and n.most_common(1)[0][0] == ill for *cells, ill in part)
    return right / len(rows)


def test_a_folder_of_partitions_has_independent_neighbours(tmp_path: Path) -> None:
    sink = ParquetFolder(tmp_path / "people", ["sex"])
    with duckanon.anonymize(people(), **ROLES, k=400) as release:
        sink.publish(release, reports={}, run={})
    files = sorted((tmp_path / "people").rglob("*.parquet"))
    assert files
    for file in files:
        rows = tuples(pq.ParquetFile(file).read())
        equal, chance = equal_neighbours(rows)
        assert abs(equal - chance) < 5 * (chance / len(rows)) ** 0.5


def test_another_order_of_the_source_is_not_seen() -> None:
    made = people()
    again = made.take(pa.array(np.random.default_rng(2).permutation(len(made))))
    published = []
    for table in (made, again):
        with duckanon.anonymize(table, **ROLES, k=400) as release:
            published.append(pq.read_table(release.path))
    assert published[0].equals(published[1])
