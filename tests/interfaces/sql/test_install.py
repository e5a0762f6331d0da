"""Installing the functions on any connection, repeatedly, on cursors and threads, without a trace at exit."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pytest

import duckanon
from duckanon.engine.duckdb import functions
from duckanon.engine.duckdb.functions import CATALOG, Call, Function, Memo, Parameter
from tests.datasets import PATIENTS

from .conftest import CALL, fetch, memo_of, reason

Con = duckdb.DuckDBPyConnection
COUNT = f"SELECT count(*) FROM {CALL}"


def test_install_on_a_plain_connection_and_again() -> None:
    with duckdb.connect() as con:
        con.execute(PATIENTS)
        assert "anonymize" in reason(con, COUNT)
        duckanon.install(con)
        duckanon.install(con)
        assert fetch(con, COUNT) == [(600,)]


def test_connect_takes_settings(tmp_path: Path) -> None:
    with duckanon.connect(tmp_path / "d.duckdb", threads=1, memory_limit="1GB") as con:
        assert fetch(con, "SELECT current_setting('threads')") == [(1,)]
    with pytest.raises(duckdb.Error):
        duckanon.connect(tmp_path / "d.duckdb", no_such_setting=1)


def test_install_in_a_transaction(con: Con) -> None:
    cursor = con.cursor()
    cursor.begin()
    assert fetch(cursor, "SELECT count(*) FROM patients") == [(600,)]
    duckanon.install(cursor)
    assert fetch(cursor, COUNT) == [(600,)]
    cursor.rollback()


def test_nothing_is_left_in_the_database_file(tmp_path: Path) -> None:
    file = tmp_path / "d.duckdb"
    with duckanon.connect(file) as con:
        con.execute(PATIENTS)
        assert fetch(con, COUNT) == [(600,)]
    with duckdb.connect(file) as con:
        assert fetch(con, "SELECT count(*) FROM duckdb_functions() WHERE NOT internal") == [(0,)]
        assert fetch(con, "SELECT table_name FROM duckdb_tables()") == [("patients",)]
        assert fetch(con, "SELECT schema_name FROM duckdb_schemas() WHERE NOT internal") == []


def test_a_file_can_be_opened_again_after_close(tmp_path: Path) -> None:
    for _ in range(2):
        con = duckanon.connect(tmp_path / "d.duckdb")
        con.execute("CREATE OR REPLACE " + PATIENTS.strip().removeprefix("CREATE "))
        assert fetch(con, COUNT) == [(600,)]
        con.close()


def test_tables_of_the_same_names_are_left_alone(con: Con) -> None:
    for name in ("anonymize", "hierarchies", "anonymize_report"):
        con.execute(f"CREATE TABLE {name} AS SELECT 7 AS x")
        assert fetch(con, f"FROM {name}") == [(7,)]
    assert fetch(con, f"SELECT max(x), count(*) FROM anonymize, {CALL}") == [(7, 600)]
    assert fetch(con, "SELECT count(*) > 1 FROM hierarchies()") == [(True,)]


def test_a_database_of_the_user_with_our_name_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / f"{CATALOG}.duckdb"
    with duckanon.connect(file) as con:
        con.execute(PATIENTS)
        assert fetch(con, COUNT) == [(600,)]
    with duckdb.connect(file) as con:
        assert fetch(con, "SELECT count(*) FROM duckdb_functions() WHERE NOT internal") == [(0,)]


def test_cursors_with_install_and_through_the_shared_catalog(con: Con, made: list[Any]) -> None:
    cursor = con.cursor()
    assert "anonymize" in reason(cursor, COUNT)
    expected = fetch(con, f"FROM {CALL}")
    assert fetch(cursor, f"FROM {CATALOG}.{CALL}") == expected
    duckanon.install(cursor)
    assert fetch(cursor, f"FROM {CALL}") == expected
    assert len(made) == 1
    con.execute(f"CREATE VIEW shared AS FROM {CATALOG}.{CALL}")
    assert fetch(con.cursor(), "FROM shared") == expected


def test_a_cursor_outlives_the_connection() -> None:
    con = duckanon.connect()
    con.execute(PATIENTS)
    bare, installed = con.cursor(), con.cursor()
    duckanon.install(installed)
    del con
    gc.collect()
    assert fetch(installed, COUNT) == fetch(bare, f"SELECT count(*) FROM {CATALOG}.{CALL}") == [(600,)]
    del installed
    gc.collect()
    assert "call duckanon.install() on this one" in reason(bare, f"FROM {CATALOG}.{CALL}")
    duckanon.install(bare)
    assert fetch(bare, COUNT) == [(600,)]
    bare.close()


def test_threads_on_cursors(con: Con, made: list[Any]) -> None:
    barrier = threading.Barrier(4)

    def work(number: int) -> list[tuple[Any, ...]]:
        cursor = con.cursor()
        barrier.wait()
        if number % 2:
            duckanon.install(cursor)
        prefix = "" if number % 2 else f"{CATALOG}."
        found = [fetch(cursor, f"FROM {prefix}{CALL}") for _ in range(3)]
        found.append(fetch(cursor, f"FROM {prefix}{CALL.replace('k := 5', f'k := {number + 6}')}"))
        cursor.close()
        return found

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(4)))
    same = [rows for result in results for rows in result[:3]]
    assert all(rows == same[0] for rows in same)
    assert len(made) == 5


def test_threads_while_the_connection_itself_is_busy(con: Con) -> None:
    def work(number: int) -> Any:
        cursor = con if number == 0 else con.cursor()
        calls = [f"{'' if number == 0 else CATALOG + '.'}{CALL.replace('k := 5', f'k := {k}')}" for k in range(2, 5)]
        return [fetch(cursor, f"SELECT count(*) FROM {call}") for call in calls]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [[[(600,)]] * 3] * 4


def test_a_connection_that_lends_its_cursor_is_closed_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    from duckanon.interfaces.sql import door as sqldoor

    base = duckdb.connect()
    base.execute(PATIENTS)
    first, second, caller = (base.cursor() for _ in range(3))
    duckanon.install(first)
    duckanon.install(second)
    anonymize = sqldoor.anonymize

    def close_first(*arguments: Any, **keywords: Any) -> Any:
        first.close()
        return anonymize(*arguments, **keywords)

    monkeypatch.setattr(sqldoor, "anonymize", close_first)
    assert fetch(caller, f"SELECT count(*) FROM {CATALOG}.{CALL}") == [(600,)]
    assert fetch(second, COUNT) == [(600,)]
    base.close()


def test_threads_while_rows_are_written(con: Con) -> None:
    stop = threading.Event()

    def write() -> None:
        cursor = con.cursor()
        while not stop.is_set():
            cursor.execute("INSERT INTO patients SELECT 1, 30, '10000', 'f', 'flu' FROM range(5)")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(3):
            try:
                ((count,),) = fetch(con, COUNT)
            except duckdb.Error as error:
                assert "COMMIT first" in str(error) or "changed while it was read" in str(error)  # noqa: PT017
            else:
                assert count % 5 == 0
    finally:
        stop.set()
        thread.join()


def test_files_go_with_the_connection(made: list[Any]) -> None:
    con = duckanon.connect()
    con.execute(PATIENTS)
    fetch(con, COUNT)
    path = made[0].path
    made.clear()
    assert path.exists()
    del con
    gc.collect()
    assert not path.exists()


def test_files_of_a_closed_connection_go_with_the_next_install(made: list[Any]) -> None:
    con = duckanon.connect()
    con.execute(PATIENTS)
    fetch(con, COUNT)
    con.close()
    duckanon.connect().close()
    assert not made[0].path.exists()


def test_the_database_is_not_kept_open(tmp_path: Path) -> None:
    con = duckanon.connect(tmp_path / "d.duckdb")
    con.execute(PATIENTS)
    fetch(con, COUNT)
    del con
    gc.collect()
    assert not (tmp_path / "d.duckdb.wal").exists()
    duckdb.connect(tmp_path / "d.duckdb", read_only=True).close()


SCRIPT = """
import tempfile, sys
import duckanon
con = duckanon.connect({path!r})
con.execute({patients!r})
con.execute({count!r})
rows = con.execute({count!r}).fetchall()
cursor = con.cursor()
duckanon.install(cursor)
relation = cursor.sql({count!r})
assert relation.fetchall() == rows == [(600,)]
con.execute("CREATE VIEW v AS FROM " + {call!r})
{end}
print("done")
"""


@pytest.mark.parametrize(
    ("path", "options", "end"),
    [
        (":memory:", [], ""),
        (":memory:", ["-X", "dev"], ""),
        ("d.duckdb", ["-X", "dev"], ""),
        ("d.duckdb", [], "con.close()"),
        ("d.duckdb", [], "del con, cursor, relation"),
        (":memory:", ["-X", "dev"], "sys.exit(0)"),
    ],
)
@pytest.mark.thinned(5)
def test_a_script_ends_in_silence(tmp_path: Path, path: str, options: list[str], end: str) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    root = Path(duckanon.__file__).parents[1]
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(root)}
    script = SCRIPT.format(path=path, patients=PATIENTS, count=COUNT, call=CALL, end=end)
    done = subprocess.run(
        [sys.executable, *options, "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout == ("" if "exit" in end else "done\n")
    assert list(temporary.iterdir()) == []


def test_hierarchies_are_listed_and_saved(tmp_path: Path) -> None:
    file = tmp_path / "d.duckdb"
    with duckanon.connect(file) as con:
        listed = dict(fetch(con, "FROM hierarchies()"))
        assert listed["us_zip5"] == "shipped"
        assert fetch(con, "FROM save_hierarchy('grid', {'rule': 'intervals', 'width': 10, 'levels': 3})") == [
            ("grid", 4)
        ]
        assert fetch(con, "FROM save_hierarchy('any', {'rule': 'mask'})") == [("any", None)]
        ((name, height),) = fetch(con, "FROM save_hierarchy('zip; \"x\"', 'us_states')")
        assert name == 'zip; "x"'
        assert height >= 2
        assert fetch(con, "FROM save_hierarchy('any', {'rule': 'mask'})") == [("any", None)]
        assert "Another hierarchy is saved as 'any'" in reason(con, "FROM save_hierarchy('any', {'rule': 'suppress'})")
        replaced = "FROM save_hierarchy('any', {'rule': 'suppress'}, replace := true)"
        assert (fetch(con, replaced), fetch(con, replaced)) == ([("any", 1)], [("any", 1)])
        assert "replace must be a boolean" in reason(con, replaced.replace("true", "'yes'"))
        assert "Unknown hierarchy 'nope'" in reason(con, "FROM save_hierarchy('a', 'nope')")
        assert "name must be a text" in reason(con, "FROM save_hierarchy(1, 'us_zip5')")
    with duckanon.connect(file) as con:
        con.execute(PATIENTS)
        listed = dict(fetch(con, "FROM hierarchies()"))
        assert [listed[n] for n in ("grid", "any", 'zip; "x"', "us_zip5")] == ["saved"] * 3 + ["shipped"]
        call = "anonymize('patients', quasi_identifiers := ['age'], k := 30, hierarchies := {'age': 'grid'})"
        assert all(str(age).startswith("[") for (age,) in fetch(con, f"SELECT DISTINCT age FROM {call}"))


def test_functions_are_table_driven() -> None:
    def handler(request: Call) -> Any:
        from sqlglot import exp

        return exp.select(exp.alias_(exp.Literal.string(request.arguments["a"] * request.arguments.get("n", 1)), "x"))

    with duckdb.connect() as con:
        functions.install(con, [Function("again", (Parameter("a", "text", True), Parameter("n", "integer")), handler)])
        assert fetch(con, "FROM again('ab')") == [("ab",)]
        assert fetch(con, "FROM again('ab', n := 2)") == [("abab",)]
        duckanon.install(con)
        assert fetch(con, "FROM again('ab', n := 2)") == [("abab",)]


class _Kept:
    closed = False

    def close(self) -> None:
        self.closed = True


def test_memo_makes_once_keeps_the_recent_and_closes_the_rest() -> None:
    memo = Memo(limit=2)
    first = memo.get("a", _Kept)
    second = memo.get("b", _Kept)
    assert memo.get("a", _Kept) is first
    third = memo.get("c", _Kept)
    assert [first.closed, second.closed, third.closed] == [False, True, False]

    def fail() -> _Kept:
        raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        memo.get("d", fail)
    assert memo.get("d", _Kept) is not None
    memo.close()
    assert len(memo) == 0
    assert third.closed


def test_memos_of_two_databases_are_apart(con: Con) -> None:
    with duckanon.connect() as other:
        assert memo_of(con) is not memo_of(other)


def test_every_function_says_what_it_returns() -> None:
    from duckanon.interfaces.sql.door import FUNCTIONS

    assert [name for name, function in FUNCTIONS.items() if not function.about.endswith(".")] == []
