"""What DuckDB alone does: cursors of the caller, its settings, its errors and its progress."""

from __future__ import annotations

import logging
import re
import stat
import threading
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from duckanon.engine.duckdb.catalog import DuckDBCatalog, clean_error
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.engine.process import allowed_threads, limited_threads
from duckanon.engine.sql.relations import LazyTable, col, registered, table
from duckanon.errors import DataError, DuckanonError, EngineError, ParameterError, ResourceError
from duckanon.progress import Event, Progress

CANARY = "Jane Canary Doe"


def sql(text: str) -> sqlglot.exp.Expression:
    return sqlglot.parse_one(text, dialect="duckdb")


@pytest.fixture
def engine():
    found = DuckDBEngine(threads=1)
    yield found
    found.close()


def test_a_lazy_table_is_made_by_the_first_statement_about_it(
    engine: DuckDBEngine, caplog: pytest.LogCaptureFixture
) -> None:
    first = registered(engine, "x", pa.table({"a": [1, 2]}))
    total = exp.select(exp.Sum(this=col("a")).as_("a"))
    second = LazyTable(engine, "x", lambda engine, name: engine.create(name, total.copy().from_(table(first))))
    third = LazyTable(engine, "x", lambda engine, name: engine.create(name, sql("SELECT 1 AS a")))
    with caplog.at_level(logging.DEBUG, "duckanon.sql"):
        engine.rows(sql("SELECT 1"))
        assert len(caplog.records) == 1
        assert not first.is_made
        for _ in range(2):
            assert engine.rows(exp.select("a").from_(table(second))) == [(3,)]
        assert first.is_made
        engine.drop(third)
        assert not third.is_made
    engine.drop(first, second)
    with pytest.raises(EngineError, match="does not exist"):
        engine.rows(exp.select("a").from_(table(second)))


def test_a_lazy_table_that_could_not_be_made_is_made_later(engine: DuckDBEngine) -> None:
    needed = engine.fresh("x")
    lazy = LazyTable(engine, "x", lambda engine, name: engine.create(name, sql(f"SELECT a FROM {needed}")))
    with pytest.raises(EngineError, match="does not exist"):
        table(lazy)
    engine.create(needed, sql("SELECT 1 AS a"))
    assert engine.rows(exp.select("a").from_(table(lazy))) == [(1,)]


def test_a_cursor_of_the_callers_connection() -> None:
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS a")
        con.execute("SET TimeZone = 'Asia/Tokyo'")
        engine = DuckDBEngine(con)
        there = engine.catalog.find("t")
        assert there is not None
        engine.create("private", exp.select("a").from_(there))
        assert engine.setting("TimeZone") == "UTC"
        assert con.execute("SELECT current_setting('TimeZone')").fetchone() == ("Asia/Tokyo",)
        with pytest.raises(duckdb.CatalogException):
            con.execute("SELECT * FROM private")
        engine.close()
        assert con.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_the_private_folder_is_private_and_goes(temp_folder: Path) -> None:
    engine = DuckDBEngine(threads=1)
    (folder,) = temp_folder.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert Path(engine.setting("temp_directory")) == folder
    engine.close()
    assert list(temp_folder.iterdir()) == []


BAD = {
    "date": f"SELECT strptime(x, '%Y') FROM (VALUES ('{CANARY}')) AS t(x)",
    "enum": f"SELECT x::ENUM('a') FROM (VALUES ('{CANARY}')) AS t(x)",
    "error()": f"SELECT error(x) FROM (VALUES ('{CANARY}')) AS t(x)",
    "json": f"SELECT x::JSON FROM (VALUES ('{CANARY}')) AS t(x)",
    "uuid": f"SELECT x::UUID FROM (VALUES ('{CANARY}')) AS t(x)",
    "regexp": f"SELECT regexp_matches('a', x) FROM (VALUES ('({CANARY}')) AS t(x)",
    "list": "SELECT array_value(x)::INTEGER[2] FROM (VALUES (4711)) AS t(x)",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_no_error_of_duckdbs_own_types_quotes_a_value(engine: DuckDBEngine, text: str) -> None:
    with pytest.raises(DuckanonError) as caught:
        engine.rows(sql(text))
    error: BaseException | None = caught.value
    while error is not None:
        assert CANARY not in str(error)
        assert "4711" not in str(error)
        assert not isinstance(error, duckdb.Error)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (duckdb.ConversionException(CANARY), DataError, "withheld"),
        (duckdb.InvalidInputException(CANARY), DataError, "withheld"),
        (duckdb.OutOfRangeException(CANARY), DataError, "withheld"),
        (duckdb.ConstraintException(CANARY), EngineError, "withheld"),
        (duckdb.InternalException(CANARY), EngineError, "withheld"),
        (duckdb.ParserException(CANARY), ParameterError, "withheld"),
        (duckdb.SerializationException(CANARY), EngineError, "withheld"),
        (duckdb.Error(CANARY), EngineError, "withheld"),
        (duckdb.InterruptException(CANARY), ResourceError, "interrupted"),
        (duckdb.CatalogException("Table t\nLINE 1: 'x'"), EngineError, "DuckDB: Table t$"),
    ],
)
def test_errors_are_cleaned(error: duckdb.Error, kind: type[DuckanonError], message: str) -> None:
    cleaned = clean_error(error)
    assert type(cleaned) is kind
    assert CANARY not in str(cleaned)
    assert re.search(message, str(cleaned))


def test_the_database_reports_progress() -> None:
    events: list[Event] = []
    engine = DuckDBEngine(progress=Progress(events.append), threads=1)
    with engine.progress.step("work", total=100):
        engine.rows(sql("SELECT count(*) FROM range(10000) AS a(x), range(10000) AS b(y) WHERE (x * y) % 7 = 1"))
    engine.close()
    assert (events[0].step, events[0].done, events[0].finished) == ("work", 0, False)
    assert events[-1].finished
    assert engine.progress.seconds["work"] > 0
    assert all(0 <= e.done <= 100 for e in events)


def test_an_interrupt_leaves_no_thread_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = DuckDBEngine(progress=Progress(lambda event: None), threads=1)
    before, start = set(threading.enumerate()), threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.rows(sql("SELECT 1"))
    assert set(threading.enumerate()) <= before
    engine.close()


def test_progress_of_a_statement_is_reported_under_the_limits_of_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    reported = threading.Event()

    class Busy:
        def query_progress(self) -> float:
            return 50.0

    engine = DuckDBEngine()
    monkeypatch.setattr("duckanon.engine.duckdb.engine._POLL_SECONDS", 0.001)
    engine.progress = Progress(lambda event: (seen.append(allowed_threads() or 0), reported.set()))
    connection = engine._connection
    try:
        with limited_threads(1), engine.progress.step("search", 100):
            del seen[:]
            reported.clear()
            engine._connection = Busy()
            with engine._watched():
                assert reported.wait(20)
            assert set(seen) == {1}
    finally:
        engine._connection = connection
        engine.close()


def test_an_interruption_while_the_session_is_set_up_leaves_nothing_attached(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: DuckDBCatalog, relation: object) -> None:
        raise KeyboardInterrupt

    with duckdb.connect() as caller:
        before = caller.sql("SELECT database_name FROM duckdb_databases() ORDER BY ALL").fetchall()
        with monkeypatch.context() as patch:
            patch.setattr(DuckDBCatalog, "look_up_in", interrupted)
            with pytest.raises(KeyboardInterrupt):
                DuckDBEngine(caller)
        assert caller.sql("SELECT database_name FROM duckdb_databases() ORDER BY ALL").fetchall() == before
