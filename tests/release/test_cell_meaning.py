"""What labels of the calendar stand for, in years that Python's dates do not have, too."""

from __future__ import annotations

import duckdb
import pytest

import duckanon
from duckanon import Hierarchy

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
