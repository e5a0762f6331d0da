"""The caller's connection keeps its open results and transactions, and only committed rows are read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import duckdb
import pytest

import duckanon
from duckanon.errors import DataError

Con = duckdb.DuckDBPyConnection


def rows_of(con: Con, source: str = "t") -> int:
    with duckanon.anonymize(source, quasi_identifiers=["a"], k=5, connection=con) as release:
        return int(release.to_arrow().num_rows)


@pytest.fixture
def con() -> Con:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT range % 20 AS a FROM range(10000)")
    return connection


def test_a_result_that_is_read_half_stays(con: Con) -> None:
    con.execute("SELECT range FROM range(100000)")
    assert con.fetchone() == (0,)
    assert rows_of(con) == 10000
    assert con.fetchone() == (1,)
    assert len(con.fetchall()) == 99998


def test_what_is_not_committed_is_left_out_while_a_result_is_read_half(con: Con) -> None:
    con.begin()
    con.execute("INSERT INTO t SELECT 21 FROM range(500)")
    con.execute("SELECT range FROM range(100000)")
    assert con.fetchone() == (0,)
    # DuckDB does not tell this transaction from that of the result: nothing of either is touched.
    assert rows_of(con) == 10000
    assert con.fetchone() == (1,)
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(10500,)]
    con.rollback()


def test_a_connection_shared_by_threads(con: Con) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: rows_of(con), range(16))) == [10000] * 16


def test_an_open_transaction_is_refused_and_stays_open(con: Con) -> None:
    con.begin()
    con.execute("DELETE FROM t WHERE a = 0")
    with pytest.raises(DataError, match="open transaction"):
        rows_of(con)
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(9500,)]
    con.rollback()
    assert rows_of(con) == 10000


def test_a_failed_transaction_is_refused_and_stays_failed(con: Con) -> None:
    con.begin()
    with pytest.raises(duckdb.Error):
        con.execute("SELECT error('x')").fetchall()
    with pytest.raises(DataError, match="transaction"):
        rows_of(con)
    with pytest.raises(duckdb.Error, match="aborted"):
        con.execute("SELECT 1").fetchall()
    con.rollback()
    assert rows_of(con) == 10000


@pytest.mark.parametrize("path", ["s", "memory.s", "s,main", '"odd, name",s'])
def test_names_are_looked_up_where_the_connection_does(con: Con, path: str) -> None:
    con.execute("CREATE SCHEMA s")
    con.execute('CREATE SCHEMA "odd, name"')
    con.execute("CREATE TABLE s.t AS SELECT range % 20 AS a FROM range(500)")
    con.execute(f"SET search_path = '{path}'")
    assert rows_of(con) == rows_of(con, "FROM t") == 500
    assert rows_of(con, "main.t") == rows_of(con, "memory.main.t") == 10000


def test_settings_that_are_locked(con: Con) -> None:
    con.execute("SET GLOBAL TimeZone = 'UTC'")
    con.execute("SET lock_configuration = true")
    assert rows_of(con) == 10000
