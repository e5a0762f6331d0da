"""Writing to a real server: all or nothing, checked as the server holds it, one writer at a time."""

from __future__ import annotations

import datetime as dt
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from sqlglot import exp

import duckanon
from duckanon.engine.base import open_engine
from duckanon.engine.sql.relations import table as relation
from duckanon.errors import ConfigError, DataError, EngineError, ParameterError, PrivacyViolation, UnsupportedError
from duckanon.io.postgres import published_comment, require_writable, write_table
from duckanon.io.source import Source
from duckanon.progress import Progress
from duckanon.release.gate import check_release

from .conftest import PASSWORD, TERMINATE, Server
from .test_read import CANARY, said

pytestmark = pytest.mark.postgres
ROWS = pa.table({"a": [1, 2, None], "b": ["x", None, "z"]})
OTHER = pa.table({"a": ["[1, 2]", "[3, 4]"], "c": [1.5, None]})


def read_all(reader: pa.RecordBatchReader) -> None:
    reader.read_all()


def write(server: Server, data: pa.Table, name: str = "out", **options) -> int:
    given = {"replace": True, "comment": "run 1", "verify": read_all, **options}
    return write_table(server.uri, name, data.to_reader(), **given)


def held(server: Server, name: str = "out") -> list[tuple]:
    return sorted(server.rows(f"SELECT * FROM {name}"), key=repr)


def oid(server: Server) -> int:
    return server.rows("SELECT 'out'::regclass::oid::bigint")[0][0]


D = Decimal
TYPES = {
    "boolean": pa.array([True, None]),
    "int8": pa.array([-128, None], pa.int8()),
    "uint8": pa.array([255, None], pa.uint8()),
    "int16": pa.array([-32768, None], pa.int16()),
    "uint16": pa.array([65535, None], pa.uint16()),
    "int32": pa.array([-(2**31), None], pa.int32()),
    "uint32": pa.array([2**32 - 1, None], pa.uint32()),
    "int64": pa.array([-(2**63), None], pa.int64()),
    "uint64": pa.array([2**64 - 1, None], pa.uint64()),
    "float32": pa.array([1.5, None], pa.float32()),
    "float64": pa.array([float("inf"), None], pa.float64()),
    "decimal": pa.array([D("-99999999.90"), None], pa.decimal128(10, 2)),
    "decimal wide": pa.array([D("9" * 36 + ".99"), None], pa.decimal128(38, 2)),
    "decimal zero": pa.array([D("0.000"), None], pa.decimal128(4, 3)),
    "text": pa.array(["grüße ' \\ \" 漢\n", None]),
    "text empty": pa.array(["", None]),
    "text large": pa.array(["x", None], pa.large_string()),
    "dictionary": pa.array(["x", None]).dictionary_encode(),
    "bytes": pa.array([b"\x00\xff", None]),
    "date": pa.array([dt.date(1969, 12, 31), None]),
    "time": pa.array([dt.time(1, 2, 3, 4), None]),
    "time s": pa.array([dt.time(1, 2, 3), None], pa.time32("s")),
    "timestamp": pa.array([dt.datetime(2020, 1, 2, 3, 4, 5, 678901), None]),
    "timestamp s": pa.array([dt.datetime(1950, 1, 2, 3, 4, 5), None], pa.timestamp("s")),
    "timestamp ns": pa.array([dt.datetime(2020, 1, 2, 3, 4, 5, 678901), None], pa.timestamp("ns")),
    "timestamptz": pa.array([dt.datetime(2020, 1, 2, 3, 4, 5), None], pa.timestamp("us", "Europe/Berlin")),
    "list": pa.array([[1, None, 3], None]),
    "list of text": pa.array([["a", "b,c"], None]),
    "list empty": pa.array([[], None], pa.list_(pa.string())),
    "list of dates": pa.array([[dt.date(2020, 1, 1)], None]),
    "nothing": pa.array([None, None]),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([uuid.UUID(int=5).bytes, None], pa.binary(16))),
}


def test_every_type_is_held_as_it_was_sent(server: Server) -> None:
    data = pa.table(TYPES)
    seen = []
    assert write(server, data, verify=lambda reader: seen.append(reader.read_all())) == 2
    (back,) = seen
    assert back.column_names == data.column_names
    for name in TYPES:
        assert back.column(name).to_pylist() == data.column(name).to_pylist(), name
    kinds = "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'out'::regclass"
    found = dict(server.rows(kinds))
    assert (found["uint64"], found["decimal"], found["uuid"]) == ("numeric(20,0)", "numeric(10,2)", "uuid")
    assert (found["timestamp"], found["list"]) == ("timestamp without time zone", "bigint[]")
    # Written a second time, the types are recognised as the same: the table itself stays.
    first = oid(server)
    assert write(server, data) == 2
    assert oid(server) == first


@pytest.mark.parametrize(
    "kind",
    [
        pa.struct([("lo", pa.int32()), ("hi", pa.int32())]),
        pa.list_(pa.struct([("a", pa.int32())])),
        pa.list_(pa.list_(pa.int32())),
        pa.list_(pa.decimal128(5, 2)),
        pa.map_(pa.string(), pa.int32()),
        pa.month_day_nano_interval(),
        pa.duration("us"),
    ],
    ids=str,
)
def test_nested_columns_are_refused_before_anything_is_done(kind: pa.DataType) -> None:
    schema = pa.schema([("fine", pa.int32()), ("odd", kind)])
    with pytest.raises(UnsupportedError, match="'odd'"):
        write_table(
            "postgresql://nowhere.invalid/x",
            "t",
            schema.empty_table().to_reader(),
            replace=True,
            comment="",
            verify=read_all,
        )


def test_values_that_would_change_are_refused(server: Server) -> None:
    write(server, ROWS)
    for data, words in (
        (pa.table({"a": pa.array([1], pa.timestamp("ns"))}), "without loss"),
        (pa.table({"a": [f"{CANARY}\0"]}), "character"),
    ):
        with pytest.raises(DataError, match=words) as caught:
            write(server, data)
        assert CANARY not in said(caught.value)
    assert len(held(server)) == 3


@pytest.mark.parametrize("name", ['say "hi"', "ünï 漢", "semi;colon--", "it's", "UPPER", "x) y", "s.o.odd"])
def test_tables_and_schemas_with_odd_names_are_written(server: Server, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    data = pa.table({name: [1], f"{name} 2": ["x"]})
    server.run('CREATE SCHEMA "odd ""schema"')
    for given in (quoted, f'"odd ""schema".{quoted}'):
        assert write(server, data, given) == 1
        assert write(server, data, given, comment='it\'s \\ "2"') == 1
        assert held(server, given) == [(1, "x")]
        assert published_comment(server.uri, given) == 'it\'s \\ "2"'
        engine = open_engine()
        assert Source.postgres(server.uri, table=given).open(engine).names == data.column_names
        engine.close()
    assert published_comment(server.uri, "elsewhere") is None


def test_names_that_postgresql_would_cut(server: Server) -> None:
    long = "é" * 32
    with pytest.raises(ParameterError, match="63 bytes"):
        write(server, pa.table({long: [1]}))
    with pytest.raises(ParameterError, match="63 bytes"):
        write(server, ROWS, long)
    with pytest.raises(ParameterError, match="at most a schema"):
        write(server, ROWS, "a.b.c")
    with pytest.raises(DataError, match="no schema 'nowhere'"):
        write(server, ROWS, "nowhere.out")


def test_the_same_columns_keep_table_grants_views_and_indexes(server: Server) -> None:
    write(server, ROWS)
    server.run("CREATE VIEW seen AS SELECT * FROM out", "CREATE INDEX ON out (a)")
    first = oid(server)
    assert write(server, ROWS.slice(1), comment="run 2") == 2
    assert (oid(server), len(held(server, "seen"))) == (first, 2)
    assert published_comment(server.uri, "out") == "run 2"


def test_other_columns_replace_the_table_with_its_grants(server: Server) -> None:
    write(server, ROWS)
    server.run('DROP ROLE IF EXISTS "odd "" reader"', 'CREATE ROLE "odd "" reader"')
    try:
        server.run("GRANT SELECT ON out TO PUBLIC", 'GRANT SELECT, UPDATE ON out TO "odd "" reader" WITH GRANT OPTION')
        acl = "SELECT count(*) FROM pg_class, aclexplode(relacl) WHERE oid = 'out'::regclass"
        before = server.rows(acl)
        assert write(server, OTHER) == 2
        assert held(server) == [("[1, 2]", 1.5), ("[3, 4]", None)]
        assert server.rows(acl) == before
        server.run("CREATE VIEW seen AS SELECT * FROM out")
        with pytest.raises(EngineError, match="depend on the table"):
            write(server, ROWS)
        assert len(held(server)) == 2
    finally:
        server.run("DROP TABLE out CASCADE", 'DROP ROLE "odd "" reader"')
    assert server.rows("SELECT count(*) FROM pg_class WHERE relname LIKE 'duckanon%'") == [(0,)]


def test_rows_of_somebody_else_are_never_replaced(server: Server) -> None:
    server.run("CREATE TABLE patients AS SELECT 1 AS a, 'x' AS b", "CREATE VIEW shown AS SELECT 1 AS a")
    server.run("CREATE TABLE hooked (a bigint, b text)", "ALTER TABLE hooked ENABLE ROW LEVEL SECURITY")
    server.run("CREATE TABLE parts (a bigint) PARTITION BY LIST (a)", "CREATE TABLE ready (a bigint, b text)")
    for name, words in (
        ("patients", "no run of duckanon wrote"),
        ("shown", "is a view"),
        ("hooked", "row security"),
        ("parts", "partitioned"),
    ):
        with pytest.raises(ConfigError, match=words):
            require_writable(server.uri, name, replace=True)
        with pytest.raises(ConfigError, match=words):
            write(server, ROWS, name)
    assert held(server, "patients") == [(1, "x")]
    assert published_comment(server.uri, "patients") is None
    assert write(server, ROWS, "ready") == 3, "an empty table of the same columns may be filled"
    with pytest.raises(ConfigError, match="exists already"):
        write(server, ROWS, "ready", replace=False)
    assert write(server, ROWS, "fresh", replace=False) == 3


def raising(reader: pa.RecordBatchReader) -> None:
    reader.read_all()
    raise PrivacyViolation("The gate refused the release.")


def lazy(reader: pa.RecordBatchReader) -> None:
    """Look at nothing."""


def broken_stream() -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        yield ROWS.to_batches()[0]
        raise ValueError(CANARY)

    return pa.RecordBatchReader.from_batches(ROWS.schema, batches())


@pytest.mark.parametrize("data", [ROWS, OTHER], ids=["same columns", "other columns"])
@pytest.mark.parametrize(
    ("verify", "kind"), [(raising, PrivacyViolation), (lazy, EngineError)], ids=["gate", "not checked"]
)
def test_a_refused_write_leaves_the_old_table(server: Server, data: pa.Table, verify: Callable, kind: type) -> None:
    write(server, ROWS)
    before = held(server), oid(server)
    with pytest.raises(kind):
        write(server, data, verify=verify, comment="run 2")
    assert (held(server), oid(server)) == before
    assert published_comment(server.uri, "out") == "run 1"
    with pytest.raises(kind):
        write(server, data, "new", verify=verify)
    assert server.rows("SELECT count(*) FROM pg_class WHERE relname = 'new' OR relname LIKE 'duckanon%'") == [(0,)]
    assert write(server, data) == data.num_rows, "the lock is gone"


def test_a_stream_that_breaks_and_a_constraint_that_is_broken(server: Server) -> None:
    write(server, ROWS)
    with pytest.raises(EngineError) as caught:
        write_table(server.uri, "out", broken_stream(), replace=True, comment="2", verify=read_all)
    assert CANARY not in said(caught.value)
    server.run("ALTER TABLE out ADD UNIQUE (b)")
    with pytest.raises(EngineError, match="constraint") as caught:
        write(server, pa.table({"a": [1, 2], "b": [CANARY, CANARY]}))
    assert CANARY not in said(caught.value)
    assert len(held(server)) == 3


def test_a_server_that_goes_away(server: Server) -> None:
    write(server, ROWS)

    def stop(reader: pa.RecordBatchReader) -> None:
        reader.read_all()
        server.run(TERMINATE)

    with pytest.raises(EngineError) as caught:
        write(server, ROWS.slice(1), verify=stop)
    assert PASSWORD not in said(caught.value)
    assert len(held(server)) == 3


KILLED = """
import sys, time, pyarrow as pa
from duckanon.io.postgres import write_table

def slow(reader):
    reader.read_all()
    print("checking", flush=True)
    time.sleep(60)

rows = pa.table({"a": [7] * 1000, "b": ["killed"] * 1000})
def batches():
    for _ in range(50):
        yield rows.to_batches()[0]
    if sys.argv[2] == "sending":
        print("sending", flush=True)
        time.sleep(60)
write_table(sys.argv[1], "out", pa.RecordBatchReader.from_batches(rows.schema, batches()), replace=True, comment="x",
            verify=slow)
"""


@pytest.mark.parametrize("when", ["sending", "checking"])
def test_a_killed_writer_leaves_the_old_table(server: Server, when: str) -> None:
    write(server, ROWS)
    before = held(server)
    command = [sys.executable, "-c", KILLED, server.uri, when]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ}) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == when
        assert held(server) == before, "readers are not kept waiting and see the old rows"
        process.send_signal(signal.SIGKILL)
    for _ in range(100):
        try:
            assert write(server, ROWS) == 3
            break
        except EngineError:
            time.sleep(0.1)
    else:
        pytest.fail("the lock of the dead is still held")
    assert held(server) == before


def test_two_writers_exclude_each_other_at_once(server: Server) -> None:
    inside, leave = threading.Event(), threading.Event()

    def slow(reader: pa.RecordBatchReader) -> None:
        reader.read_all()
        inside.set()
        assert leave.wait(60)

    for first in (True, False):  # the table is new, and is there already
        inside.clear()
        leave.clear()
        found: list[int] = []
        thread = threading.Thread(target=lambda found=found: found.append(write(server, ROWS, verify=slow)))
        thread.start()
        try:
            assert inside.wait(60)
            begun = time.perf_counter()
            for attempt in (lambda: write(server, OTHER), lambda: require_writable(server.uri, "out", replace=True)):
                with pytest.raises(EngineError, match="Another run is writing 'out'"):
                    attempt()
            assert time.perf_counter() - begun < 5
            assert write(server, OTHER, "elsewhere") == 2
            if not first:
                assert len(held(server)) == 3
        finally:
            leave.set()
            thread.join()
        assert found == [3]


def test_a_reader_sees_all_old_rows_or_all_new_ones(server: Server) -> None:
    """Also in a snapshot that is older than the write, and that looks at the table for the first time after it."""
    import adbc_driver_postgresql.dbapi as dbapi

    write(server, ROWS)
    with dbapi.connect(server.uri) as connection, connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT 1")
        cursor.fetchall()
        write(server, pa.table({"a": [9] * 5, "b": ["n"] * 5}))
        cursor.execute("SELECT count(*) FROM out")
        assert cursor.fetchone() == (3,)
        connection.rollback()
    assert len(held(server)) == 5


def test_many_rows_in_batches_with_progress(server: Server) -> None:
    events: list = []
    part = pa.RecordBatch.from_pydict({"a": list(range(10_000)), "b": ["x" * 20] * 10_000})
    reader = pa.RecordBatchReader.from_batches(part.schema, (part for _ in range(20)))
    progress = Progress(events.append)
    seen = []

    def count(stream: pa.RecordBatchReader) -> None:
        seen.extend(batch.num_rows for batch in stream)

    with progress.step("write", 200_000):
        written = write_table(server.uri, "out", reader, replace=True, comment="", verify=count, progress=progress)
    assert (written, sum(seen)) == (200_000, 200_000)
    assert [e.done for e in events if not e.finished][-1] == 200_000
    assert published_comment(server.uri, "out") == ""


def test_a_table_without_rows_is_written(server: Server) -> None:
    assert write(server, ROWS.slice(0, 0)) == 0
    assert held(server) == []


def gate(release: duckanon.Release) -> Callable[[pa.RecordBatchReader], None]:
    """Return what checks every promise on the rows of a stream."""

    def verify(reader: pa.RecordBatchReader) -> None:
        engine, name = release.engine, release.engine.fresh("held")
        engine.register(f"{name}_stream", reader)
        engine.create(name, exp.select("*").from_(relation(f"{name}_stream")))
        engine.unregister(f"{name}_stream")
        plan = release.plan
        written = exp.select("*").from_(relation(name))
        check_release(
            engine, written, plan.roles, plan.models, plan.unit, release.rows_published, release.persons,
            release.reference, plan.published_as,
        )  # fmt: skip

    return verify


@pytest.mark.parametrize("output", ["interval", "bounds", "midpoint"])
def test_from_postgresql_through_the_gate_and_back(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture, output: str
) -> None:
    caplog.set_level(logging.DEBUG)
    server.run("CREATE TABLE people AS SELECT i AS id, 20 + i % 50 AS age, (i % 900)::numeric(6,1) AS pay, "
               "date '1950-01-01' + i % 9000 AS born, 'd' || i % 5 AS ill, i % 400 AS person "
               "FROM generate_series(1, 2000) i")  # fmt: skip
    source = Source.postgres(server.uri, query="SELECT * FROM people WHERE age > 20")
    options = {"quasi_identifiers": ["age", "pay", "born"], "sensitive": ["ill"], "k": 5, "l": 2, "output": output}
    with duckanon.anonymize(source, entity_key="person", **options) as release:
        rows = write_table(
            server.uri, "released", release.reader(), replace=True, comment=str(release.digest), verify=gate(release)
        )
        assert rows == release.rows_published == 1960
        assert published_comment(server.uri, "released") == release.digest
        # A row that is changed on its way breaks the promise, and nothing is published.
        changed = release.to_arrow()
        alone = pa.Table.from_arrays([pa.nulls(1, f.type) for f in changed.schema], schema=changed.schema)
        changed = pa.concat_tables([changed.slice(1), alone])
        with pytest.raises(PrivacyViolation):
            write_table(server.uri, "released", changed.to_reader(), replace=True, comment="x", verify=gate(release))
        assert published_comment(server.uri, "released") == release.digest
    quasi = [n for n in Source.postgres(server.uri, table="released").open(open_engine()).names if n != "ill"]
    results = duckanon.check(
        Source.postgres(server.uri, table="released"), quasi_identifiers=quasi, sensitive=["ill"], k=5, l=2
    )
    assert [r.holds for r in results] == [True, True]
    assert PASSWORD not in caplog.text
