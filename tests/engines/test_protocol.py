"""The protocol of engines: statements, private tables, streams, snapshots, files, errors and limits."""

from __future__ import annotations

import datetime as dt
import logging
import math
import stat
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot
from sqlglot import exp

from duckanon.engine.base import Engine
from duckanon.engine.sql.relations import Column
from duckanon.errors import DataError, DuckanonError, EngineError, ParameterError
from duckanon.progress import Progress
from tests.engines.conftest import Opener

CANARY = "Jane Canary Doe"


def sql(text: str) -> exp.Query:
    return sqlglot.parse_one(text, dialect="duckdb").assert_is(exp.Query)


def read(engine: Engine, name: str) -> list[tuple[Any, ...]]:
    return engine.rows(exp.select("*").from_(exp.to_identifier(name, quoted=True)))


# Results


def test_rows_are_plain_python_values(engine: Engine) -> None:
    assert engine.rows(sql("SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS t(x, y) ORDER BY x")) == [(1, "a"), (2, None)]
    assert engine.rows(sql("SELECT 1 AS x WHERE false")) == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("CAST(7 AS BIGINT)", 7),
        ("CAST(0.5 AS DOUBLE)", 0.5),
        ("CAST('1.50' AS DECIMAL(9, 2))", Decimal("1.50")),
        ("'it''s'", "it's"),
        ("''", ""),
        ("CAST('2026-02-28' AS DATE)", dt.date(2026, 2, 28)),
        ("CAST('2026-02-28 01:02:03.000004' AS TIMESTAMP)", dt.datetime(2026, 2, 28, 1, 2, 3, 4)),
        ("CAST(NULL AS VARCHAR)", None),
    ],
)
def test_a_value_has_its_type(engine: Engine, text: str, value: object) -> None:
    (found,) = engine.row(sql(f"SELECT {text}"))
    assert found == value
    assert type(found) is type(value)


def test_doubles_that_are_no_numbers_come_back(engine: Engine) -> None:
    low, nan = engine.row(sql("SELECT CAST('-inf' AS DOUBLE), CAST('nan' AS DOUBLE)"))
    assert low == -math.inf
    assert math.isnan(nan)


@pytest.mark.parametrize("value", [1, 0.5, "it's $y", "", True, None, dt.date(2026, 1, 1)])
def test_a_parameter_is_a_value_and_never_sql(engine: Engine, value: object) -> None:
    assert engine.row(sql("SELECT $x"), {"x": value}) == (value,)


@pytest.mark.parametrize("rows", [0, 2])
def test_a_row_is_the_only_one(engine: Engine, rows: int) -> None:
    with pytest.raises(ValueError, match="values to unpack"):
        engine.row(sql(f"SELECT 1 FROM (VALUES (1), (2)) AS t(x) WHERE x <= {rows}"))


def test_arrow_keeps_names_types_and_nulls(engine: Engine) -> None:
    found = engine.arrow(sql("SELECT CAST(x AS BIGINT) AS \"a b\", y FROM (VALUES (1, 'u'), (NULL, NULL)) AS t(x, y)"))
    assert found.column_names == ["a b", "y"]
    assert found.schema.types == [pa.int64(), pa.string()]
    assert found.to_pylist() == [{"a b": 1, "y": "u"}, {"a b": None, "y": None}]


def test_names_that_differ_in_case_alone_stay_apart_as_columns_of_a_result(engine: Engine) -> None:
    assert engine.arrow(sql('SELECT 1 AS a, 2 AS "A b", 3 AS "a.b", 4 AS "it\'s"')).column_names == [
        "a",
        "A b",
        "a.b",
        "it's",
    ]


def test_a_stream_has_every_row_once_in_order(engine: Engine) -> None:
    query = sql("SELECT CAST(i AS BIGINT) AS i FROM (SELECT unnest(generate_series(0, 24999)) AS i) AS s ORDER BY i")
    stream = engine.reader(query, batch=2000)
    assert stream.schema.types == [pa.int64()]
    assert stream.read_all()["i"].to_pylist() == list(range(25_000))


def test_a_stream_that_is_read_half_blocks_nothing(engine: Engine) -> None:
    stream = engine.reader(sql("SELECT unnest(generate_series(0, 99999)) AS i"), batch=10)
    stream.read_next_batch()
    engine.register("x", pa.table({"a": [1]}))
    assert read(engine, "x") == [(1,)]


def test_a_private_stream_reads_private_tables(engine: Engine) -> None:
    engine.create("x", sql("SELECT 7 AS a"))
    assert engine.reader(sql("SELECT a FROM x"), private=True).read_all().to_pydict() == {"a": [7]}


def test_columns_are_known_without_running_the_query(engine: Engine) -> None:
    query = sql("SELECT CAST(error('ran') AS INTEGER) AS a, 'x' AS \"b c\", CAST('2026-01-01' AS DATE) AS d")
    assert engine.columns(query) == [Column("a", "INTEGER"), Column("b c", "VARCHAR"), Column("d", "DATE")]


# Private tables


def test_a_private_table_is_replaced_and_dropped(engine: Engine) -> None:
    name = engine.fresh("x")
    assert engine.create(name, sql("SELECT 1 AS a UNION ALL SELECT 3")) == 2
    assert engine.create(name, sql("SELECT 2 AS a")) == 1
    assert read(engine, name) == [(2,)]
    engine.drop(name, name, engine.fresh("never made"))
    with pytest.raises(EngineError, match="does not exist"):
        read(engine, name)


def test_a_table_is_made_with_parameters(engine: Engine) -> None:
    engine.create("x", sql("SELECT $a AS a"), {"a": "it's"})
    assert read(engine, "x") == [("it's",)]


@pytest.mark.parametrize("name", ["order", "two words", 'a"b', "Größe"])
def test_any_name_is_a_name(engine: Engine, name: str) -> None:
    engine.create(name, sql("SELECT 1 AS a"))
    assert read(engine, name) == [(1,)]
    engine.drop(name)


def test_fresh_names_are_never_given_twice(engine: Engine) -> None:
    names = [engine.fresh(stem) for stem in ("x", "x", "y") * 20]
    assert len({name.lower() for name in names}) == 60


def test_a_view_runs_nothing_until_it_is_read(engine: Engine) -> None:
    engine.create_view("x", sql("SELECT CAST(error('ran') AS INTEGER) AS a"))
    with pytest.raises(DuckanonError):
        read(engine, "x")
    engine.create("t", sql("SELECT 1 AS a"))
    engine.create_view("x", sql("SELECT a FROM t"))
    engine.create("t", sql("SELECT 2 AS a"))
    assert read(engine, "x") == [(2,)]
    engine.drop("x")
    with pytest.raises(EngineError, match="does not exist"):
        read(engine, "x")


def test_an_enumeration_sorts_by_its_own_order(engine: Engine) -> None:
    engine.create_enum("sizes", sql("SELECT x FROM (VALUES ('small', 1), ('large', 2)) AS t(x, i) ORDER BY i"))
    rows = engine.rows(
        sql("SELECT CAST(x AS sizes) AS y FROM (VALUES ('large'), (NULL), ('small')) AS t(x) ORDER BY y")
    )
    assert [text for (text,) in rows if text is not None] == ["small", "large"]


def test_rows_in_a_private_file_keep_their_order_and_go_with_it(engine: Engine) -> None:
    before = files(engine.scratch())
    query = sql("SELECT (i * 7919) % 100000 AS i, CAST(i AS VARCHAR) AS t FROM range(100000) AS r(i)")
    assert engine.create_file("x", query) == 100_000
    assert engine.arrow(sql("SELECT i FROM x"))["i"].to_pylist() == [i * 7919 % 100_000 for i in range(100_000)]
    assert files(engine.scratch()) > before
    engine.drop("x")
    assert files(engine.scratch()) == before
    with pytest.raises(EngineError, match="does not exist"):
        read(engine, "x")


def test_what_is_text_in_an_enumeration_is_text_in_a_private_file(engine: Engine) -> None:
    engine.create_enum("towns", sql("SELECT x FROM (VALUES ('Bonn'), ('Kiel')) AS t(x)"))
    engine.create_file("x", sql("SELECT CAST('Kiel' AS towns) AS town"))
    assert engine.columns(sql("SELECT * FROM x")) == [Column("town", "VARCHAR")]
    assert read(engine, "x") == [("Kiel",)]


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


# What stands in memory


def people() -> pa.Table:
    return pa.table({"a": [1, None, 3], "it's": ["x", "", None]})


@pytest.mark.parametrize("form", ["table", "record batch", "stream", "pandas", "polars"])
def test_data_in_memory_is_read_under_a_name(engine: Engine, form: str) -> None:
    data: Any = people()
    if form == "record batch":
        (data,) = data.to_batches()
    elif form == "stream":
        data = pa.RecordBatchReader.from_batches(data.schema, data.to_batches())
    elif form == "pandas":
        pandas = pytest.importorskip("pandas")
        data = data.to_pandas(types_mapper={pa.int64(): pandas.Int64Dtype()}.get)
    elif form == "polars":
        data = pytest.importorskip("polars").from_arrow(data)
    engine.register("x", data)
    assert read(engine, "x") == [(1, "x"), (None, ""), (3, None)]
    engine.unregister("x")
    with pytest.raises(EngineError, match="does not exist"):
        read(engine, "x")


def test_what_is_registered_is_read_as_often_as_it_is_named(engine: Engine) -> None:
    engine.register("x", people())
    assert engine.row(sql("SELECT count(*) FROM x AS u CROSS JOIN x AS v")) == (9,)


# One state of the tables


def test_a_snapshot_within_a_snapshot_is_the_same(engine: Engine) -> None:
    with engine.snapshot(), engine.snapshot():
        engine.create("x", sql("SELECT 1 AS a"))
    assert read(engine, "x") == [(1,)]


def test_a_failed_snapshot_takes_back_what_was_made_and_leaves_a_usable_engine(engine: Engine) -> None:
    def fails() -> None:
        with engine.snapshot():
            engine.create("x", sql("SELECT 1 AS a"))
            engine.rows(sql("SELECT CAST('a' AS INTEGER)"))

    with pytest.raises(DataError):
        fails()
    assert engine.rows(sql("SELECT 1")) == [(1,)]
    with pytest.raises(EngineError, match="does not exist"):
        read(engine, "x")
    with engine.snapshot():
        engine.create("x", sql("SELECT 2 AS a"))
    assert read(engine, "x") == [(2,)]


# Files


def test_parquet_is_written_in_the_order_of_the_query_and_read_again(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    query = sql("SELECT i, CASE WHEN i % 2 = 0 THEN 'x' END AS t FROM range(300000) AS r(i) ORDER BY i DESC")
    engine.write_parquet(query, path)
    table = pq.read_table(path)
    assert table["i"].to_pylist() == list(range(299_999, -1, -1))
    assert table["t"].null_count == 150_000
    assert engine.rows(exp.select("count(*)", "max(i)").from_(engine.parquet([path]).subquery())) == [
        (300_000, 299_999)
    ]
    metadata = pq.read_metadata(path)
    assert not {key for key in metadata.metadata or {} if key != b"ARROW:schema"}


def test_several_files_are_one_relation(engine: Engine, tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.parquet" for i in range(3)]
    for i, path in enumerate(paths):
        engine.write_parquet(sql("SELECT $i AS i"), path, {"i": i})
    assert sorted(engine.rows(engine.parquet(paths[:2]))) == [(0,), (1,)]


@pytest.mark.parametrize("name", ["a[1].parquet", "b*.parquet", "it's.parquet", "town=Bonn/x.parquet"])
def test_a_path_is_no_pattern_and_no_partition(engine: Engine, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    (tmp_path / "a1.parquet").write_bytes(b"another file")
    engine.write_parquet(sql("SELECT 1 AS a"), path)
    assert engine.columns(engine.parquet([path])) == [Column("a", "INTEGER")]
    assert engine.rows(engine.parquet([path])) == [(1,)]


# Private


def test_the_private_folder_is_the_owners_alone_and_goes_with_the_engine(opener: Opener, temp_folder: Path) -> None:
    engine = opener(threads=1)
    folder = engine.scratch()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    engine.create_file("x", sql("SELECT 1 AS a"))
    engine.close()
    assert list(temp_folder.iterdir()) == []


def test_rows_that_do_not_fit_are_spilled_into_the_private_folder(opener: Opener, temp_folder: Path) -> None:
    engine = opener(threads=1, memory_limit="50MB")
    engine.create("x", sql("SELECT i, md5(i::VARCHAR) AS m FROM range(2000000) AS r(i) ORDER BY md5((i + 1)::VARCHAR)"))
    spilled = files(temp_folder)
    assert spilled
    assert all(path.is_relative_to(engine.scratch()) for path in spilled)
    engine.close()
    assert list(temp_folder.iterdir()) == []


def test_two_engines_see_nothing_of_each_other(opener: Opener) -> None:
    first, second = opener(threads=1), opener(threads=1)
    first.create("x", sql("SELECT 1 AS a"))
    with pytest.raises(EngineError, match="does not exist"):
        read(second, "x")
    first.close()
    assert second.rows(sql("SELECT 1")) == [(1,)]
    second.close()


def test_closing_twice_is_fine(engine: Engine) -> None:
    engine.register("x", people())
    engine.close()
    engine.close()


# Errors and limits

BAD = {
    "cast to a number": f"SELECT CAST('{CANARY}' AS INTEGER)",
    "cast of a row": f"SELECT CAST(x AS INTEGER) FROM (VALUES ('{CANARY}')) AS t(x)",
    "cast to a date": f"SELECT CAST(x AS DATE) FROM (VALUES ('{CANARY}')) AS t(x)",
    "too large a number": "SELECT CAST(x AS TINYINT) FROM (VALUES (4711)) AS t(x)",
    "overflow": "SELECT x * x FROM (VALUES (CAST(4711000000000000000 AS BIGINT))) AS t(x)",
    "several rows for one": "SELECT (SELECT x FROM (VALUES (4711), (4712)) AS t(x))",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_no_error_quotes_a_value(engine: Engine, text: str) -> None:
    assert_silent(lambda: engine.rows(sql(text)))
    assert engine.rows(sql("SELECT 1")) == [(1,)]


def assert_silent(call: Any) -> None:
    """The call fails with an error of the package, in whose chain there is no value and no error of a database."""
    with pytest.raises(DuckanonError) as caught:
        call()
    for error in chain(caught.value):
        assert CANARY not in str(error)
        assert "4711" not in str(error)
        assert isinstance(error, DuckanonError)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def test_an_attempt_that_fails_says_none_and_ends_no_snapshot(engine: Engine) -> None:
    with engine.snapshot():
        engine.create("x", sql("SELECT 1 AS a"))
        assert engine.attempt(sql("SELECT CAST('a' AS INTEGER)")) is None
        assert engine.attempt(sql("SELECT 2")) == [(2,)]
    assert read(engine, "x") == [(1,)]


def test_statements_are_logged_and_parameters_are_not(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="duckanon.sql"):
        engine.rows(sql("SELECT $x"), {"x": CANARY})
    assert "SELECT $x" in caplog.text
    assert CANARY not in caplog.text


def test_an_interrupt_ends_the_statement_and_nothing_else(engine: Engine) -> None:
    timer = threading.Timer(0.3, engine.interrupt)
    timer.start()
    with pytest.raises(EngineError, match="interrupted"):
        engine.rows(sql("SELECT count(*) FROM range(10000000) AS a(x), range(1000000) AS b(y) WHERE (x * y) % 7 = 1"))
    timer.join()
    engine.interrupt()
    assert engine.rows(sql("SELECT 1")) == [(1,)]


def test_limits_are_reported(opener: Opener) -> None:
    engine = opener(threads=1, memory_limit="64MB")
    assert engine.threads() == 1
    limit = engine.memory_limit()
    assert limit is not None
    assert 60_000_000 <= limit <= 68_000_000
    arrays = engine.array_limit()
    assert arrays is not None
    assert arrays < limit
    assert engine.is_crowded_by(limit)
    assert not engine.is_crowded_by(1000)
    assert engine.name
    assert engine.version
    engine.close()


def test_steps_are_reported_with_their_seconds(opener: Opener) -> None:
    engine = opener(threads=1, progress=Progress())
    with engine.progress.step("work"):
        engine.rows(sql("SELECT 1"))
    assert engine.progress.seconds["work"] > 0
    engine.close()


# The caller's text


def test_a_statement_of_the_caller_is_taken_apart_and_not_run(engine: Engine) -> None:
    assert engine.catalog.statement_kind("SELECT 1") == (1, "SELECT")
    assert engine.catalog.statement_kind("SELECT 1; DROP TABLE x")[0] == 2
    assert engine.catalog.statement_kind("DROP TABLE x") == (1, "DROP")
    assert engine.catalog.statement_kind("") == (0, "")
    assert engine.catalog.statement_columns("SELECT 1 AS a, 2 AS a") == ["a", "a"]
    with pytest.raises(ParameterError, match=r"not SQL that \w+ can parse"):
        engine.catalog.statement_kind("SELEC 1")


@pytest.mark.parametrize("text", ["SELECT 1 AS a", "SELECT 1 AS a;", "SELECT 1 AS a -- a comment"])
def test_a_table_is_made_of_the_callers_text(engine: Engine, text: str) -> None:
    engine.catalog.create_as("x", text)
    assert read(engine, "x") == [(1,)]
    engine.catalog.create_as("x", text, empty=True)
    assert read(engine, "x") == []


def test_tables_are_found_under_all_their_names(engine: Engine) -> None:
    engine.create("x", sql("SELECT 1 AS a"))
    found = {names for names in engine.catalog.tables() if names[-1] == "x"}
    assert {len(names) for names in found} == {1, 2, 3}
    assert engine.catalog.find("nothing") is None
