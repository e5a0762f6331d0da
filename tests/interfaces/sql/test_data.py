"""A call reads committed rows only, the rows of now, and the caller's schema."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest

import duckanon
from tests.datasets import PATIENTS

from .conftest import CALL, fetch, memo_of, reason

Con = duckdb.DuckDBPyConnection
DIFFER = "The rows that this statement sees differ from the committed rows that were anonymized: COMMIT first"
COUNT = f"SELECT count(*) FROM {CALL}"


def test_inside_a_transaction(con: Con, made: list[Any]) -> None:
    con.begin()
    assert fetch(con, COUNT) == [(600,)]
    con.execute(f"CREATE TABLE released AS FROM {CALL}")
    assert fetch(con, COUNT.replace("k := 5", "k := 9")) == [(600,)]
    con.commit()
    assert fetch(con, "SELECT count(*) FROM released") == [(600,)]
    assert len(made) == 2


REMOVE = "DELETE FROM patients WHERE id = 3"


@pytest.mark.parametrize(
    ("change", "how"),
    [
        ("INSERT INTO patients SELECT 700, 30, '10000', 'f', 'flu'", COUNT),
        ("UPDATE patients SET diagnosis = 'gout' WHERE id = 3", COUNT),
        ("UPDATE patients SET age = NULL WHERE id = 3", COUNT),
        ("DELETE FROM patients", COUNT),
        (REMOVE, COUNT),
        (REMOVE, f"FROM {CALL}"),
        (REMOVE, f"CREATE TABLE x AS FROM {CALL}"),
        (REMOVE, f"SELECT 1 FROM {CALL} LIMIT 1"),
    ],
)
@pytest.mark.thinned(4)
def test_uncommitted_rows_are_refused(con: Con, change: str, how: str) -> None:
    con.begin()
    con.execute(change)
    assert DIFFER in reason(con, how)
    con.rollback()
    assert fetch(con, COUNT) == [(600,)]


@pytest.mark.parametrize("function", ["anonymize_report", "anonymize_classes"])
def test_uncommitted_rows_are_refused_by_companions(con: Con, function: str) -> None:
    con.begin()
    con.execute("DELETE FROM patients WHERE id = 3")
    assert DIFFER in reason(con, "FROM " + CALL.replace("anonymize", function))


def test_uncommitted_changes_of_columns_without_a_role_do_not_matter(con: Con) -> None:
    con.begin()
    con.execute("UPDATE patients SET id = 0")
    assert fetch(con, COUNT) == [(600,)]


@pytest.mark.parametrize("source", ["patients", "v", "SELECT * FROM patients"])
def test_uncommitted_rows_behind_views_and_queries(con: Con, source: str) -> None:
    con.execute("CREATE VIEW v AS FROM patients")
    con.begin()
    con.execute("DELETE FROM patients WHERE id = 3")
    assert DIFFER in reason(con, "FROM anonymize(?, quasi_identifiers := ['age'], k := 2)", [source])


def test_table_created_in_the_open_transaction(con: Con) -> None:
    con.begin()
    con.execute("CREATE TABLE fresh AS FROM patients")
    message = reason(con, CALL.replace("anonymize('patients'", "FROM anonymize('fresh'"))
    assert "There is no table or view 'fresh'" in message
    assert "COMMIT" in message


def test_a_snapshot_older_than_the_committed_rows_is_refused(con: Con) -> None:
    con.begin()
    con.execute("FROM patients").fetchall()
    con.cursor().execute("DELETE FROM patients WHERE id < 10")
    assert DIFFER in reason(con, COUNT)
    con.rollback()
    assert fetch(con, COUNT) == [(590,)]


def test_another_connection_that_writes_mixes_nothing(tmp_path: Path) -> None:
    # Each commit replaces all rows by those of another number: a mix of two states would show two of them.
    replaced = "UPDATE pairs SET b = b + 1"
    call = "FROM anonymize('pairs', quasi_identifiers := ['a'], insensitive := ['b'], k := 5)"
    stop = threading.Event()
    refused: list[str] = []
    with duckanon.connect(tmp_path / "d.duckdb") as con:
        con.execute("CREATE TABLE pairs AS SELECT i % 7 AS a, 0 AS b FROM range(70) AS r(i)")

        def write() -> None:
            with con.cursor() as other:
                while not stop.wait(0.005):
                    other.execute(replaced)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(3):
                try:
                    rows = fetch(con, call)
                except duckdb.Error as error:
                    refused.append(str(error))
                else:
                    assert len(rows) == 70
                    assert len({b for _, b in rows}) == 1
            assert all(DIFFER in message for message in refused)
            # What is said to do where somebody writes all the time.
            con.execute("CREATE TABLE copied AS FROM pairs")
            assert len(fetch(con, call.replace("'pairs'", "'copied'"))) == 70
        finally:
            stop.set()
            writer.join()


def test_changed_data_gives_another_release(con: Con, made: list[Any]) -> None:
    con.execute(f"CREATE VIEW v AS FROM {CALL}")
    con.execute(f"PREPARE p AS SELECT count(*) FROM {CALL}")
    assert fetch(con, "SELECT count(*) FROM v") == fetch(con, "EXECUTE p") == [(600,)]
    con.execute("DELETE FROM patients WHERE id < 100")
    relation = con.sql(COUNT)
    assert fetch(con, "SELECT count(*) FROM v") == fetch(con, "EXECUTE p") == relation.fetchall() == [(500,)]
    con.execute("INSERT INTO patients SELECT 1, 30, '10000', 'f', 'flu' FROM range(7)")
    assert fetch(con, "SELECT count(*) FROM v") == fetch(con, "EXECUTE p") == [(507,)]
    assert len(made) == 3


def test_unchanged_data_gives_the_same_rows_in_the_same_order(con: Con) -> None:
    assert fetch(con, f"FROM {CALL}") == fetch(con, f"FROM {CALL}")


def test_prepared_statement_in_a_transaction_that_changed_rows(con: Con) -> None:
    con.execute(f"PREPARE p AS SELECT count(*) FROM {CALL}")
    con.begin()
    con.execute("DELETE FROM patients WHERE id = 3")
    assert DIFFER in reason(con, "EXECUTE p")


def test_rows_that_swap_values_are_a_change(con: Con, made: list[Any]) -> None:
    con.execute("CREATE TABLE pairs AS SELECT i % 2 AS a, i % 2 AS b FROM range(20) AS r(i)")
    call = "FROM anonymize('pairs', quasi_identifiers := ['a'], sensitive := ['b'], k := 2)"
    fetch(con, call)
    con.execute("UPDATE pairs SET b = 1 - b")
    assert sorted(set(fetch(con, call))) == [(0, 1), (1, 0)]
    assert len(made) == 2


def test_changed_files_give_another_release(con: Con, tmp_path: Path, made: list[Any]) -> None:
    file = tmp_path / "p.parquet"
    con.execute(f"COPY patients TO '{file}'")
    call = f"SELECT count(*) FROM anonymize('{tmp_path}/*.parquet', quasi_identifiers := ['age'], k := 5)"
    assert fetch(con, call) == fetch(con, call) == [(600,)]
    assert len(made) == 1
    os.utime(file, ns=(1, 1))
    assert fetch(con, call) == [(600,)]
    assert len(made) == 2
    con.execute(f"COPY patients TO '{tmp_path}/q.parquet'")
    assert fetch(con, call) == [(1200,)]


def test_queries_that_give_other_rows_each_time_are_refused(con: Con) -> None:
    message = reason(con, "FROM anonymize('SELECT random() AS x FROM patients', quasi_identifiers := ['x'], k := 2)")
    assert "The source changed while it was read" in message
    assert "random()" in message


def test_changed_hierarchy_gives_another_release(con: Con, tmp_path: Path, made: list[Any]) -> None:
    file = tmp_path / "sex.csv"
    file.write_text("f;person\nm;person\n")
    con.execute(f"FROM save_hierarchy('s', '{file}')")
    queries = [
        f"SELECT DISTINCT sex FROM anonymize('patients', quasi_identifiers := ['sex'], k := 301, hierarchies := {h})"
        for h in (f"{{'sex': '{file}'}}", "{'sex': 's'}")
    ]
    assert [fetch(con, q) for q in queries] == [[("person",)], [("person",)]]
    assert [fetch(con, q) for q in queries] == [[("person",)], [("person",)]]
    file.write_text("f;human\nm;human\n")
    assert [fetch(con, q) for q in queries] == [[("human",)], [("person",)]]
    con.execute(f"FROM save_hierarchy('s', '{file}', replace := true)")
    assert [fetch(con, q) for q in queries] == [[("human",)], [("human",)]]


def test_the_schema_and_database_of_the_caller(con: Con) -> None:
    con.execute("ATTACH ':memory:' AS \"other ' db\"")
    con.execute('CREATE SCHEMA "other \' db"."s.x"')
    con.execute('CREATE TABLE "other \' db"."s.x".patients AS FROM patients LIMIT 50')
    con.execute('USE "other \' db"."s.x"')
    assert fetch(con, COUNT) == [(50,)]
    con.execute("USE memory")
    assert fetch(con, COUNT) == [(600,)]
    con.execute("SET search_path = 'memory.main'")
    assert fetch(con, COUNT) == [(600,)]


def test_temporary_tables_are_not_mistaken_for_others(con: Con) -> None:
    con.execute("CREATE TEMP TABLE mine AS FROM patients")
    message = reason(con, CALL.replace("anonymize('patients'", "FROM anonymize('mine'"))
    assert "temporary tables and registered data frames are private to their session" in message
    con.execute("CREATE TEMP TABLE patients AS FROM memory.patients LIMIT 20")
    assert DIFFER in reason(con, COUNT)


def test_python_variables_are_not_read(con: Con) -> None:
    frame = con.sql("FROM patients").to_arrow_table()
    assert frame.num_rows == 600
    message = reason(con, "FROM anonymize('frame', quasi_identifiers := ['age'], k := 2)")
    assert "There is no table or view 'frame'" in message


def test_read_only_database(tmp_path: Path) -> None:
    file = tmp_path / "d.duckdb"
    with duckdb.connect(file) as plain:
        plain.execute(PATIENTS)
    before = file.read_bytes()
    with duckanon.connect(file, read_only=True) as con:
        assert fetch(con, COUNT) == [(600,)]
        assert "is read-only" in reason(con, "FROM save_hierarchy('a', 'us_zip5')")
    assert file.read_bytes() == before


def test_files_may_not_be_touched(con: Con) -> None:
    con.execute("SET enable_external_access = false")
    assert "enable_external_access is false" in reason(con, COUNT)


def test_locked_settings(con: Con) -> None:
    con.execute("SET TimeZone = 'UTC'")
    con.execute("SET lock_configuration = true")
    assert fetch(con, COUNT) == [(600,)]


def test_locked_settings_that_do_not_fit_are_named(con: Con) -> None:
    con.execute("SET GLOBAL TimeZone = 'Asia/Tokyo'")
    con.execute("SET lock_configuration = true")
    message = reason(con, COUNT)
    assert "lock_configuration" in message
    assert "TimeZone = 'UTC'" in message


@pytest.mark.parametrize("setting", ["SET disabled_optimizers = 'filter_pushdown'", "PRAGMA disable_optimizer"])
def test_the_guard_does_not_depend_on_the_optimizer(con: Con, setting: str) -> None:
    con.execute(setting)
    assert fetch(con, COUNT) == [(600,)]
    con.begin()
    con.execute(REMOVE)
    assert DIFFER in reason(con, COUNT)


def test_rows_that_depend_on_the_time_zone_of_the_session(con: Con) -> None:
    con.execute(
        "CREATE TABLE visits AS SELECT TIMESTAMPTZ '2020-01-01 00:00:00+00' + INTERVAL (i * 7) HOUR AS ts "
        "FROM range(100) AS r(i)"
    )
    by_day = (
        "SELECT count(*) FROM anonymize('SELECT ts::DATE AS day FROM visits', quasi_identifiers := ['day'], k := 5)"
    )
    con.execute("SET TimeZone = 'Asia/Tokyo'")
    assert fetch(con, "SELECT count(*) FROM anonymize('visits', quasi_identifiers := ['ts'], k := 5)") == [(100,)]
    assert DIFFER in reason(con, by_day)
    con.execute("SET TimeZone = 'UTC'")
    assert fetch(con, by_day) == [(100,)]


def test_the_memo_is_bounded_and_files_go(con: Con, monkeypatch: pytest.MonkeyPatch, made: list[Any]) -> None:
    memo = memo_of(con)
    monkeypatch.setattr(memo, "_limit", 2)
    relation = con.sql(f"FROM {CALL}")
    for k in range(6, 9):
        fetch(con, CALL.replace("anonymize(", "FROM anonymize(").replace("k := 5", f"k := {k}"))
    assert len(memo) == 2
    assert [release.path.exists() for release in made] == [False, False, True, True]
    assert len(relation.fetchall()) == 600
    con.execute(f"PREPARE p AS {COUNT}")
    for k in range(6, 9):
        fetch(con, CALL.replace("anonymize(", "FROM anonymize(").replace("k := 5", f"k := {k}"))
    assert fetch(con, "EXECUTE p") == [(600,)]


def test_a_result_half_fetched_survives_its_file(con: Con, monkeypatch: pytest.MonkeyPatch) -> None:
    con.execute("CREATE TABLE big AS SELECT i % 1000 AS a FROM range(500_000) AS r(i)")
    monkeypatch.setattr(memo_of(con), "_limit", 1)
    cursor = con.cursor()
    duckanon.install(cursor)
    reader = cursor.sql("FROM anonymize('big', quasi_identifiers := ['a'], k := 5)").to_arrow_reader(1000)
    rows = reader.read_next_batch().num_rows
    fetch(con, COUNT)
    assert rows + sum(batch.num_rows for batch in reader) == 500_000
