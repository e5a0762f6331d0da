"""What labels of the calendar stand for, in years that Python's dates do not have, too."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import duckanon
from duckanon import Hierarchy
from duckanon.release.cell_meaning import NOWHERE, Cells, Labelled, Placed, Shown, ends_of

MOMENTS = [
    "0001-12-31 (BC) 23:59:59",
    "0044-03-15 (BC) 12:00:00",
    "10000-01-01 10:00:00",
    "12345-06-07 08:09:10",
    "290309-12-22 (BC) 00:00:00",
    "294247-01-10 04:00:54",
    "2020-02-29 13:05:00",
]


@pytest.mark.parametrize("algorithm", ["datafly", "mondrian"])
@pytest.mark.parametrize("level", ["day", "week", "month", "quarter", "year", "decade"])
@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMPTZ", "DATE"])
@pytest.mark.thinned
def test_periods_of_distant_years_are_true(kind: str, level: str, algorithm: str) -> None:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        told = ", ".join(f"('{moment}')" for moment in MOMENTS)
        connection.execute(f"CREATE TABLE t AS SELECT m::{kind} AS x FROM (VALUES {told}) v(m), range(2)")
        more = {"min_levels": {"x": int(kind != "DATE" or level != "day")}} if algorithm == "datafly" else {}
        given = {"quasi_identifiers": ["x"], "hierarchies": {"x": Hierarchy.dates([level])}, "k": 2}
        with duckanon.anonymize("t", connection=connection, algorithm=algorithm, **given, **more) as release:
            assert release.rows_published == 2 * len(MOMENTS)


@pytest.mark.parametrize("algorithm", ["datafly", "mondrian"])
def test_the_first_week_that_there_is_begins_before_its_days(algorithm: str) -> None:
    with duckdb.connect(config={"threads": 1}) as connection:
        days = "('5877642-06-25 (BC)'), ('5877642-06-28 (BC)'), ('2020-01-01'), ('2020-01-02')"
        connection.execute(f"CREATE TABLE t AS SELECT d::DATE AS x FROM (VALUES {days}) v(d)")
        given = {"quasi_identifiers": ["x"], "hierarchies": {"x": Hierarchy.dates(["week"])}, "k": 2}
        with duckanon.anonymize("t", connection=connection, algorithm=algorithm, **given) as release:
            found = {row["x"] for row in release.to_arrow().to_pylist()}
    # Its Monday is no date, so that a group of the grid has no lower end.
    assert found == ({"-5877641-W26", "2020-W01"} if algorithm == "datafly" else {"*", "[2019-12-30, 2020-01-05]"})


@pytest.mark.parametrize("bounds", ["grid", "tight"])
@pytest.mark.parametrize("kind", ["DATE", "VARCHAR"])
def test_a_set_with_a_value_that_its_hierarchy_does_not_know_stands_for_all(kind: str, bounds: str) -> None:
    days = ["1970-01-01", "1970-01-02", "1970-02-03", "1970-02-04"]
    tree = Hierarchy.from_table({"day": days[:3], "month": ["a", "a", "b"]})
    with duckdb.connect(config={"threads": 1}) as connection:
        told = ", ".join(f"('{day}')" for day in days)
        connection.execute(f"CREATE TABLE t AS SELECT d::{kind} AS x FROM (VALUES {told}) v(d)")
        given = {"quasi_identifiers": ["x"], "hierarchies": {"x": tree}, "on_unknown": "top", "k": 2}
        with duckanon.anonymize("t", connection=connection, output="set", bounds=bounds, **given) as release:
            found = {row["x"] for row in release.to_arrow().to_pylist()}
    assert all("*" in cell or cell == "{1970-01-01, 1970-01-02}" for cell in found)
    assert any("*" in cell for cell in found)


def column(kind: str, labels: list[list[str]], leaves: list[str] | None = None) -> Shown:
    tree = pa.table({f"l{i}": pa.array(level) for i, level in enumerate(labels, 1)})
    listed = pa.chunked_array([pa.array(leaves)]) if leaves is not None else None
    return Shown("x", kind, "interval", "values", lambda: tree, Any, listed, len(labels), "*", by_tree=True)


def values(shown: Shown, texts: list[str | None]) -> Labelled:
    numbers = pa.array(range(len(texts)), pa.int32())
    missing = pa.array([int(text is None) for text in texts], pa.uint8())
    rows = {"code": numbers, "number": numbers, "text": pa.array(texts, pa.string()), "missing": missing}
    return Labelled.of(shown, pa.table(rows))


def covered(cells: Cells, labelled: Labelled) -> dict[str | None, list[int]]:
    """Return the codes that each cell stands for, as the gate decides it."""
    at, reach = cells.in_order(labelled)
    found: dict[str | None, list[int]] = {}
    for i, label in enumerate(cells.labels):
        inside = [int(c) for c, place in zip(labelled.codes, at, strict=True) if reach.low[i] <= place <= reach.high[i]]
        own = [c for c in inside if not reach.unlisted(np.array([i]), np.array([c]))]
        found[label] = own
    return found


def test_labels_sets_and_ranges_stand_for_the_values_that_they_name() -> None:
    shown = column("VARCHAR", [["x", "y", "x", "y", "y"], ["*"] * 5])
    labelled = values(shown, ["a", "b", "c", "d", None])
    every = list(range(5))
    labels = ["x", "{a, c}", "{a, nobody}", "b", None, "*", '{a, "*"}', "nobody", "[a, nobody]"]
    assert covered(Cells(shown, pa.array(labels)), labelled) == {
        "x": [0, 2],
        "{a, c}": [0, 2],
        "{a, nobody}": [],
        "b": [1],
        None: [4],
        "*": every,
        '{a, "*"}': every,
        "nobody": [],
        "[a, nobody]": [],
    }


def test_ranges_run_in_the_order_of_the_leaves_and_never_to_null() -> None:
    shown = column("VARCHAR", [["*"] * 5], ["low", "mid", "high"])
    # What the hierarchy does not list comes after what it lists.
    labelled = values(shown, ["high", "low", "mid", "other", None])
    labels = ["[low, mid]", ">= high", "<= mid", "{low, high}", "low", "[mid, low]"]
    assert covered(Cells(shown, pa.array(labels)), labelled) == {
        "[low, mid]": [1, 2],
        ">= high": [0, 3],
        "<= mid": [1, 2],
        "{low, high}": [0, 1],
        "low": [1],
        "[mid, low]": [],
    }


def test_labels_of_numbers_list_their_values_where_others_lie_between() -> None:
    shown = column("INTEGER", [["even", "odd", "even", "even"], ["*"] * 4])
    labelled = values(shown, ["2", "3", "4", None])
    cells = Cells(shown, pa.array(["even", "odd", None, "[2, 4)"]))
    reach, listed = cells.among(labelled, np.array([1, 2, 3, 0], dtype=np.int32))
    assert listed.tolist() == [0, 1]
    assert reach.odd.tolist() == [True, False, False, False]
    assert [reach.unlisted(np.array([0]), np.array([code])) for code in range(4)] == [0, 1, 0, 0]
    assert (reach.low[3], reach.high[3]) == (NOWHERE, 0)


def test_ends_are_placed_among_the_values() -> None:
    rows = {
        "side": [0, 0, 0, 0, 1, 2, 1, 2, 1, 2],
        "ix": [0, 1, 2, 3, 0, 0, 1, 1, 2, 2],
        "rank": [2, 4, 0, 4, 1, 4, 4, 4, 3, 0],
        "below": [0, 0, 0, 0, 0, 1, 0, 0, 0, 0],
        "word": [7, 8, 9, 8, 0, 0, 0, 0, 0, 0],
    }
    placed = Placed.of({name: np.array(column) for name, column in rows.items()}, 3)
    assert placed.at.tolist() == [1, 2, 0, 2]
    assert list(zip(placed.low.tolist(), placed.high.tolist(), strict=True)) == [(1, 1), (2, 2), (NOWHERE, 0)]
    assert placed.found.tolist() == [True, True, False]


def test_a_label_that_is_no_interval_has_no_ends() -> None:
    shown = column("INTEGER", [["*"]])
    ends = ends_of(shown, {0: "[15, 20)", 3: "odd", 5: "<= 7"})
    assert ends is not None
    assert ends.column("ix").to_pylist() == [0, 5]
    assert ends_of(shown, {3: "odd"}) is None
