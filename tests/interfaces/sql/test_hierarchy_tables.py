"""FROM hierarchy(...): a hierarchy as a table."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import duckanon

Con = duckdb.DuckDBPyConnection


@pytest.fixture(scope="module")
def con() -> Iterator[Con]:
    con = duckanon.connect()
    con.execute("CREATE TABLE t AS SELECT (97000 + i)::VARCHAR AS zip, i::INT AS age FROM range(10) r(i)")
    yield con
    con.close()


def test_a_table_has_a_column_for_each_level(con: Con) -> None:
    rows = con.sql("FROM hierarchy('countries') WHERE level_0 = 'Kenya'")
    assert rows.columns == ["level_0", "level_1", "level_2", "level_3"]
    assert rows.fetchall() == [("Kenya", "Eastern Africa", "Africa", "*")]


def test_of_a_rule_that_ends_in_a_table_the_table_is_shown(con: Con) -> None:
    rows = con.sql("FROM hierarchy('us_zip5') WHERE level_1 = '972'")
    assert rows.columns == ["level_1", "level_2", "level_3", "level_4", "level_5"]
    assert rows.fetchall() == [("972", "OR", "Pacific", "West", "*")]


def test_a_rule_alone_is_shown_as_it_is_written(con: Con) -> None:
    rows = con.sql("FROM hierarchy({'rule': 'dates', 'levels': ['month', 'year']})")
    assert rows.columns == ["key", "value"]
    assert rows.fetchall() == [("rule", '"dates"'), ("levels", '["month", "year"]')]


def test_a_rule_makes_a_table_of_the_values_of_a_column(con: Con) -> None:
    rows = con.sql("FROM hierarchy('us_zip5', source := 't', attribute := 'ZIP')").fetchall()
    assert rows[0] == ("97000", "970", "OR", "Pacific", "West", "*")
    assert len(rows) == 10
    ages = con.sql("FROM hierarchy({'rule': 'intervals', 'width': 5}, 't', 'age')").fetchall()
    assert {row[0]: row[1] for row in ages}["7"] == "[5, 10)"


def test_a_saved_hierarchy_is_shown_as_well(con: Con) -> None:
    con.execute("FROM save_hierarchy('ours', 'weekdays')").fetchall()
    assert (
        con.sql("SELECT count(*) FROM hierarchy('ours')").fetchall()
        == con.sql("SELECT count(*) FROM hierarchy('weekdays')").fetchall()
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("hierarchy('contries')", "Did you mean 'countries'"),
        ("hierarchy('us_zip5', 't')", "source and attribute go together"),
        ("hierarchy('us_zip5', 't', 'zipp')", "Did you mean 'zip'"),
        ("hierarchy(NULL)", "spec must not be NULL"),
    ],
)
def test_what_is_wrong_is_said(con: Con, call: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        con.execute(f"FROM {call}")
