"""The DuckDB engine: private, clean, and silent about values."""

from __future__ import annotations

import logging
import re
import stat
import threading
import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.engine.duckdb.guard import clean_error
from duckanon.engine.sql.relations import Column
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


def test_rows_arrow_and_reader(engine: DuckDBEngine) -> None:
    assert engine.rows(sql("SELECT * FROM range(3)")) == [(0,), (1,), (2,)]
    assert engine.row(sql("SELECT 1, $x"), {"x": "a"}) == (1, "a")
    assert engine.arrow(sql("SELECT 1 AS a")).to_pydict() == {"a": [1]}
    assert engine.reader(sql("SELECT * FROM range(10)"), batch=3).read_all().num_rows == 10


def test_a_stream_read_half_blocks_nothing(engine: DuckDBEngine) -> None:
    reader = engine.reader(sql("SELECT * FROM range(100000)"), batch=10)
    reader.read_next_batch()
    engine.register("x", pa.table({"a": [1]}))
    assert engine.rows(sql("SELECT a FROM x")) == [(1,)]


def test_tables_for_later(engine: DuckDBEngine, caplog: pytest.LogCaptureFixture) -> None:
    """A table is made by the first statement that names it, with those that it needs, and by none otherwise."""
    first, second, third = (engine.fresh("x") for _ in range(3))
    engine.later(first, lambda: engine.register(first, pa.table({"a": [1, 2]})))
    engine.later(second, lambda: engine.create(second, sql(f"SELECT sum(a)::INTEGER AS a FROM {first}")))
    engine.later(third, lambda: engine.create(third, sql("SELECT 1 AS a")))
    with caplog.at_level(logging.DEBUG, "duckanon.sql"):
        engine.rows(sql("SELECT 1"))
        assert len(caplog.records) == 1
        for _ in range(2):
            assert engine.rows(sql(f'SELECT a FROM "{second}"')) == [(3,)]
        assert len(caplog.records) == 4
        engine.drop(third)
    with pytest.raises(EngineError, match="does not exist"):
        engine.rows(sql(f"SELECT a FROM {third}"))


def test_a_table_for_later_that_fails_once(engine: DuckDBEngine) -> None:
    name, needed = engine.fresh("x"), engine.fresh("x")
    engine.later(name, lambda: engine.create(name, sql(f"SELECT a FROM {needed}")))
    with pytest.raises(EngineError, match="does not exist"):
        engine.rows(sql(f"SELECT a FROM {name}"))
    engine.create(needed, sql("SELECT 1 AS a"))
    assert engine.rows(sql(f"SELECT a FROM {name}")) == [(1,)]


def test_private_tables(engine: DuckDBEngine) -> None:
    name = engine.fresh("x")
    assert name != engine.fresh("x")
    engine.create(name, sql("SELECT 1 AS a"))
    engine.create(name, sql("SELECT 2 AS a"))
    assert engine.rows(sql(f"SELECT a FROM {name}")) == [(2,)]
    assert engine.columns(sql(f"SELECT * FROM {name}")) == [Column("a", "INTEGER")]
    engine.drop(name, name)
    with pytest.raises(EngineError, match="does not exist"):
        engine.rows(sql(f"SELECT a FROM {name}"))


def test_a_cursor_of_the_callers_connection() -> None:
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS a")
        con.execute("SET TimeZone = 'Asia/Tokyo'")
        engine = DuckDBEngine(con)
        there = engine.find("t")
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


def test_spilled_rows_stay_in_the_private_folder(temp_folder: Path) -> None:
    engine = DuckDBEngine(threads=1, memory_limit="50MB")
    (folder,) = temp_folder.iterdir()
    engine.create("x", sql("SELECT i, md5(i::VARCHAR) AS m FROM range(2000000) AS r(i) ORDER BY md5((i + 1)::VARCHAR)"))
    spilled = list(folder.rglob("*"))
    assert spilled
    engine.close()
    assert list(temp_folder.iterdir()) == []


BAD = {
    "conversion": f"SELECT '{CANARY}'::INTEGER",
    "conversion of rows": f"SELECT x::INTEGER FROM (VALUES ('{CANARY}')) AS t(x)",
    "date": f"SELECT strptime(x, '%Y') FROM (VALUES ('{CANARY}')) AS t(x)",
    "enum": f"SELECT x::ENUM('a') FROM (VALUES ('{CANARY}')) AS t(x)",
    "range": "SELECT x::TINYINT FROM (VALUES (4711)) AS t(x)",
    "overflow": "SELECT x * x FROM (VALUES (4711000000000000000::BIGINT)) AS t(x)",
    "error()": f"SELECT error(x) FROM (VALUES ('{CANARY}')) AS t(x)",
    "json": f"SELECT x::JSON FROM (VALUES ('{CANARY}')) AS t(x)",
    "uuid": f"SELECT x::UUID FROM (VALUES ('{CANARY}')) AS t(x)",
    "regexp": f"SELECT regexp_matches('a', x) FROM (VALUES ('({CANARY}')) AS t(x)",
    "list": "SELECT array_value(x)::INTEGER[2] FROM (VALUES (4711)) AS t(x)",
    "subquery": "SELECT (SELECT x FROM (VALUES (4711), (4712)) AS t(x))",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_no_error_quotes_a_value(engine: DuckDBEngine, text: str) -> None:
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


def test_statements_are_logged_and_parameters_are_not(engine: DuckDBEngine, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="duckanon.sql"):
        engine.rows(sql("SELECT $x"), {"x": CANARY})
    assert "SELECT $x" in caplog.text
    assert CANARY not in caplog.text


def test_statement_kind_and_columns(engine: DuckDBEngine) -> None:
    assert engine.statement_kind("SELECT 1") == (1, "SELECT")
    assert engine.statement_kind("SELECT 1; DROP TABLE x")[0] == 2
    assert engine.statement_kind("DROP TABLE x") == (1, "DROP")
    assert engine.statement_kind("") == (0, "")
    assert engine.statement_columns("SELECT 1 AS a, 2 AS a") == ["a", "a"]
    with pytest.raises(ParameterError, match="not SQL that DuckDB can parse"):
        engine.statement_kind("SELEC 1")


def test_tables_are_found_under_all_their_names(engine: DuckDBEngine) -> None:
    engine.create("x", sql("SELECT 1 AS a"))
    assert {("x",), ("main", "x"), ("temp", "x"), ("temp", "main", "x")} <= engine.tables()


def test_parquet_paths_are_no_patterns(engine: DuckDBEngine, tmp_path: Path) -> None:
    for name in ("a[1].parquet", "b*.parquet", "it's.parquet"):
        engine.write_parquet(sql("SELECT 1 AS a"), tmp_path / name)
        assert engine.rows(engine.parquet([tmp_path / name])) == [(1,)]


def test_a_failed_snapshot_leaves_a_usable_engine(engine: DuckDBEngine) -> None:
    def fails() -> None:
        with engine.snapshot():
            engine.create("x", sql("SELECT 1 AS a"))
            engine.rows(sql("SELECT 'a'::INTEGER"))

    with pytest.raises(DataError):
        fails()
    assert engine.rows(sql("SELECT 1")) == [(1,)]
    assert ("x",) not in engine.tables()


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


def test_an_interrupt_is_an_error_without_text() -> None:
    engine = DuckDBEngine(threads=1)
    timer = threading.Timer(0.3, engine._connection.interrupt)
    timer.start()
    start = time.perf_counter()
    with pytest.raises(EngineError, match="interrupted"):
        engine.rows(sql("SELECT count(*) FROM range(10000000) AS a(x), range(1000000) AS b(y) WHERE (x * y) % 7 = 1"))
    assert time.perf_counter() - start < 20
    timer.join()
    engine.close()


def test_closing_twice_is_fine(engine: DuckDBEngine) -> None:
    engine.register("x", pa.table({"a": [1]}))
    engine.close()
    engine.close()
