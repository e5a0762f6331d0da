"""Clustering with `anonymize`: what is published, and what has no influence on it."""

from __future__ import annotations

import datetime as dt
import statistics
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.testing import check_algorithm
from tests.algorithms.clustered import NAMES, QUASI, ROWS, TABLE, classes, covers, in_order, made, publish

# What is published.


@pytest.mark.parametrize("bounds", ["grid", "tight"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thinned(3)
def test_classes_are_large_enough_and_cells_cover_values(name: str, bounds: str) -> None:
    with publish(name, bounds=bounds) as release:
        assert release.rows_published == ROWS
        assert release.searched == {}
        summary = release.summary()
        assert summary["algorithm"]["name"] == name
        assert summary["bounds"] == bounds
        found = classes(release)
    originals = TABLE.to_pylist()
    assert min(map(len, found.values())) >= 5
    assert len(found) > ROWS // 25
    assert sorted(row["row"] for rows in found.values() for row in rows) == list(range(ROWS))
    for cells, rows in found.items():
        for row in rows:
            for column, cell in zip(QUASI, cells, strict=True):
                assert covers(cell, originals[row["row"]][column]), (column, cell)
    towns: dict[Any, list[str]] = {}
    for cells, rows in found.items():
        towns.setdefault(cells[-1], []).extend(originals[row["row"]]["town"] for row in rows)
    assert in_order(towns)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thinned(2)
def test_tight_bounds_are_those_of_the_class(name: str) -> None:
    with publish(name, quasi_identifiers=["income", "born"], bounds="tight") as release:
        found = classes(release, ["income", "born"])
    originals = TABLE.to_pylist()
    for cells, rows in found.items():
        for column, cell in zip(["income", "born"], cells, strict=True):
            values = [originals[row["row"]][column] for row in rows]
            low, high = cell[1:-1].split(", ")
            kind: Any = float if column == "income" else dt.date.fromisoformat
            assert (kind(low), kind(high)) == (min(values), max(values))


OTHERS = [
    ("mdav", {"block": 1}),
    ("tdg", {"seed": 4, "stable_seeds": True}),
    ("mdav", {"distance": "gower"}),
    ("mdav", {"distance": "standardised"}),
    ("v_mdav", {"gamma": 1.1, "distance": "hierarchy"}),
    ("knn_clustering", {"seed": 4, "stable_seeds": True}),
    ("k_member", {"seed": 4, "block": 12}),
    ("greedy", {"metric": "ncp", "block": 5}),
    ("greedy", {"metric": "distortion"}),
    ("kaca", {"seed": 4}),
]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [pytest.param(*other, marks=[pytest.mark.slow] if at != 1 else []) for at, other in enumerate(OTHERS)],
    ids=str,
)
@pytest.mark.slow
def test_other_parameters_keep_the_rules_of_the_house(name: str, parameters: dict[str, Any]) -> None:
    check_algorithm(made(name, **parameters))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thinned(7)
def test_neither_the_order_of_rows_nor_threads_matter(name: str) -> None:
    shuffled = TABLE.take(pa.array(np.random.default_rng(1).permutation(ROWS)))
    found = []
    for table, threads in ((TABLE, 1), (TABLE, 2), (shuffled, 2)):
        engine = DuckDBEngine(threads=threads)
        try:
            with publish(name, table, engine=engine) as release:
                found.append(release.to_arrow().sort_by("row").to_pylist())
        finally:
            engine.close()
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("name", ["knn_clustering", "k_member", "tdg", "kaca"])
@pytest.mark.thinned(2)
def test_the_seed_of_an_algorithm_changes_classes(name: str) -> None:
    found = []
    for seed in (0, 0, 1, 2, 3):
        with publish(made(name, seed=seed), quasi_identifiers=["cost", "born"]) as release:
            found.append(release.to_arrow().sort_by("row").to_pylist())
    assert found[0] == found[1]
    assert any(found[0] != other for other in found[2:])


# Outputs.


def by_class(algorithm: Any, output: str, table: pa.Table = TABLE, **more: Any) -> list[Any]:
    """What is published of every class, with the original rows of it."""
    columns = more.get("quasi_identifiers", ["age", "income", "born"])
    with publish(algorithm, table, output=output, **({"quasi_identifiers": columns} | more)) as release:
        found = classes(release, columns)
    originals = table.to_pylist()
    return [
        (dict(zip(columns, cells, strict=True)), [originals[row["row"]] for row in rows])
        for cells, rows in found.items()
    ]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thinned(3)
def test_a_medoid_is_a_row_of_its_class(name: str) -> None:
    for cells, rows in by_class(name, "medoid", quasi_identifiers=["age", "income", "town"]):
        assert len(rows) >= 5
        assert any(all(row[c] == cells[c] for c in cells) for row in rows)


def test_the_medoid_is_the_nearest_to_the_middle() -> None:
    incomes = np.array(TABLE.column("income").to_pylist())
    costs = np.array(TABLE.column("cost").to_pylist(), dtype=float)
    columns = {"quasi_identifiers": ["income", "cost"], "sensitive": []}
    for cells, rows in by_class("mdav", "medoid", **columns):
        own = np.array([[r["income"] / incomes.std(), r["cost"] / costs.std()] for r in rows])
        chosen = np.array([cells["income"] / incomes.std(), cells["cost"] / costs.std()])
        far = ((own - own.mean(axis=0)) ** 2).sum(axis=1)
        assert ((chosen - own.mean(axis=0)) ** 2).sum() == pytest.approx(far.min(), abs=1e-5)


def test_means_medians_and_modes_of_clusters() -> None:
    columns = {"quasi_identifiers": ["income", "cost", "born"]}
    for cells, rows in by_class("mdav", "mean", **columns):
        assert 5 <= len(rows) < 10
        for column in ("income", "cost"):
            assert cells[column] == pytest.approx(statistics.fmean(row[column] for row in rows))
        days = statistics.fmean(row["born"].toordinal() for row in rows)
        assert abs(cells["born"].toordinal() - days) <= 1
    for cells, rows in by_class("mdav", "median", **columns):
        for column in cells:
            assert cells[column] == sorted(row[column] for row in rows)[(len(rows) - 1) // 2]
    for cells, rows in by_class("v_mdav", "mode", quasi_identifiers=["age", "town"]):
        for column in cells:
            often = Counter(row[column] for row in rows)
            assert often[cells[column]] == max(often.values())


def test_a_mean_has_less_error_where_clusters_are_by_distance() -> None:
    """MDAV is made for small errors: they must be well below those of classes made at random."""
    incomes = np.array(TABLE.column("income").to_pylist())
    error = 0.0
    for cells, rows in by_class("mdav", "mean", quasi_identifiers=["income"]):
        error += sum((row["income"] - cells["income"]) ** 2 for row in rows)
    assert error < 0.05 * ((incomes - incomes.mean()) ** 2).sum()


# NULL, dates, text.


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thinned(3)
def test_a_column_of_null_alone(name: str) -> None:
    table = TABLE.append_column("empty", pa.nulls(ROWS, pa.int64()))
    with publish(name, table, quasi_identifiers=["empty", "income"]) as release:
        assert {cells[0] for cells in classes(release, ["empty", "income"])} == {None}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thinned(3)
def test_null_is_far_from_everything(name: str) -> None:
    """NULL stays by itself where it can: half of the rows have it."""
    ages = pa.array([None if i % 2 else 20 + i % 50 for i in range(200)], pa.int64())
    with publish(name, pa.table({"age": ages, "row": range(200)}), quasi_identifiers=["age"]) as release:
        found = {cell: len(rows) for (cell,), rows in classes(release, ["age"]).items()}
    assert found[None] >= 90
    assert found.get("*", 0) <= 20


@pytest.mark.parametrize("bounds", ["grid", "tight"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thinned
def test_text_without_a_hierarchy(name: str, bounds: str) -> None:
    towns = [f"{'abcdefgh'[i * 7 % 8]}{i % 30}" for i in range(150)]
    table = pa.table({"town": towns, "row": range(150)})
    with publish(name, table, quasi_identifiers=["town"], bounds=bounds) as release:
        found = classes(release, ["town"])
    assert min(map(len, found.values())) >= 5
    values = {cell: [towns[row["row"]] for row in rows] for (cell,), rows in found.items()}
    assert all(covers(cell, value) for cell, own in values.items() for value in own)
    assert in_order(values)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thinned(3)
def test_dates_and_times_alone(name: str) -> None:
    moments = [dt.datetime(2024, 1, 1) + dt.timedelta(hours=31 * i) for i in range(100)]
    table = pa.table({"at": pa.array(moments, pa.timestamp("us")), "row": range(100)})
    with publish(name, table, quasi_identifiers=["at"], bounds="tight") as release:
        found = classes(release, ["at"])
    assert min(map(len, found.values())) >= 5
    assert len(found) > 5
    if name != "kaca":
        # Clusters of rows on a line are runs, but for what is left over.
        gaps = [max(r["row"] for r in rows) - min(r["row"] for r in rows) for rows in found.values()]
        assert statistics.median(gaps) < 15
