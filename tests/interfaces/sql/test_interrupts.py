"""Ctrl-C during a call in SQL ends the statement as an interruption, and not as the failure of a function."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import duckdb
import pytest

from duckanon.interfaces.sql import door as sqldoor

from .conftest import CALL, fetch

Con = duckdb.DuckDBPyConnection


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Ctrl-C arrive while the first release is made."""
    anonymize, calls = sqldoor.anonymize, []

    def slow(*arguments: Any, **keywords: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
        return anonymize(*arguments, **keywords)

    monkeypatch.setattr(sqldoor, "anonymize", slow)


STATEMENTS = {
    "rows": f"FROM {CALL}",
    "a count": f"SELECT count(*) FROM {CALL}",
    "a table": f"CREATE TABLE released AS FROM {CALL}",
    "a view": f"CREATE VIEW released AS FROM {CALL}",
    "an insertion": f"INSERT INTO copies FROM {CALL}",
    "some columns": f"SELECT age, zip FROM {CALL} ORDER BY age",
    "a report": f"FROM {CALL.replace('anonymize(', 'anonymize_report(')}",
}


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.usefixtures("interrupted")
def test_a_statement_is_interrupted_and_writes_nothing(con: Con, statement: str) -> None:
    con.execute("CREATE TABLE copies (age VARCHAR, zip VARCHAR, sex VARCHAR, diagnosis VARCHAR)")
    with pytest.raises(duckdb.InterruptException):
        con.execute(STATEMENTS[statement])
    assert fetch(con, "SELECT name FROM (SHOW TABLES) ORDER BY name") == [("copies",), ("patients",)]
    assert fetch(con, "SELECT count(*) FROM copies") == [(0,)]
    assert fetch(con, f"SELECT count(*) FROM {CALL}") == [(600,)]


@pytest.mark.usefixtures("interrupted")
def test_a_relation_that_is_only_bound_is_interrupted(con: Con) -> None:
    with pytest.raises(duckdb.InterruptException):
        con.sql(f"FROM {CALL}")
    assert len(con.sql(f"FROM {CALL}").fetchall()) == 600


@pytest.mark.usefixtures("interrupted")
def test_where_no_files_may_be_touched_the_statement_says_so(con: Con) -> None:
    con.execute("SET enable_external_access = false")
    with pytest.raises(duckdb.Error, match="Interrupted"):
        con.execute(f"SELECT age FROM {CALL}")


@pytest.mark.usefixtures("interrupted")
def test_a_call_of_a_session_that_is_not_known_says_so(con: Con) -> None:
    with con.cursor() as other, pytest.raises(duckdb.Error, match="Interrupted"):
        other.execute(f"FROM duckanon_sql.{CALL}").fetchall()
    assert fetch(con, f"SELECT count(*) FROM {CALL}") == [(600,)]
