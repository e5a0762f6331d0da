"""Reading from a real server: every type, odd names, refusals, one snapshot, small memory."""

from __future__ import annotations

import datetime as dt
import logging
import traceback
import uuid
from decimal import Decimal
from pathlib import Path

import pytest

import duckanon
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.engine.sql.relations import cast, col
from duckanon.errors import DataError, DuckanonError, EngineError
from duckanon.io.source import Source
from duckanon.plan.plan import Plan
from duckanon.progress import Progress

from .conftest import PASSWORD, TERMINATE, Server

pytestmark = pytest.mark.postgres
CANARY = "QxCanary8Zebra"


@pytest.fixture
def engine():
    found = DuckDBEngine(threads=2)
    yield found
    found.close()


def read(engine: DuckDBEngine, server: Server, **source: str):
    relation = Source.postgres(server.uri, **source).open(engine)
    return relation, engine.rows(relation.query)


def said(error: BaseException) -> str:
    """Return all that anybody could see of an error."""
    seen = "".join(traceback.format_exception(error))
    link: BaseException | None = error
    while link is not None:
        seen += str(link) + repr(link.args)
        link = link.__cause__ or link.__context__
    return seen


# Values of the types in SHOWN are compared as DuckDB writes them.
SHOWN = ("DATE", "TIMESTAMP WITH TIME ZONE")
TYPES = [
    ("boolean", "true", "BOOLEAN", True),
    ("smallint", "-32768", "SMALLINT", -32768),
    ("integer", "7", "INTEGER", 7),
    ("bigint", "9223372036854775807", "BIGINT", 2**63 - 1),
    ("real", "1.5", "FLOAT", 1.5),
    ("double precision", "NaN", "DOUBLE", "nan"),
    ("double precision", "-1e300", "DOUBLE", -1e300),
    ("numeric(10,2)", "-12345678.90", "DECIMAL(10,2)", Decimal("-12345678.90")),
    (
        "numeric(38,0)",
        "9" * 38,
        "DECIMAL(38,0)",
        Decimal("9" * 38),
    ),
    ("numeric(3,-2)", "12345", "DECIMAL(5,0)", Decimal(12300)),
    ("numeric(2,5)", "0.00012", "DECIMAL(5,5)", Decimal("0.00012")),
    ("numeric", "1234.5", "DOUBLE", 1234.5),
    ("numeric", "Infinity", "DOUBLE", float("inf")),
    ("numeric(40,2)", "1.25", "DOUBLE", 1.25),
    ("money", "12.34", "DECIMAL(22,3)", Decimal("12.340")),
    ("oid", "4000000000", "BIGINT", 4_000_000_000),
    ("text", "grüße 'quoted' \\ \"x\" 漢", "VARCHAR", "grüße 'quoted' \\ \"x\" 漢"),
    ("text", "", "VARCHAR", ""),
    ("varchar(5)", "ab", "VARCHAR", "ab"),
    ("char(6)", "ab", "VARCHAR", "ab"),
    ("name", "ab", "VARCHAR", "ab"),
    ("date", "1969-12-31", "DATE", "1969-12-31"),
    ("date", "0044-03-15 BC", "DATE", "0044-03-15 (BC)"),
    ("time", "01:02:03.5", "TIME", dt.time(1, 2, 3, 500000)),
    ("timetz", "01:02:03.5+02", "VARCHAR", "01:02:03.5+02"),
    ("timestamp", "2020-01-02 03:04:05.678901", "TIMESTAMP", dt.datetime(2020, 1, 2, 3, 4, 5, 678901)),
    (
        "timestamptz",
        "2020-01-02 03:04:05+02",
        "TIMESTAMP WITH TIME ZONE",
        "2020-01-02 01:04:05+00",
    ),
    ("interval", "2 days 03:00", "INTERVAL", dt.timedelta(days=2, hours=3)),
    ("bytea", "\\x00ff", "BLOB", b"\x00\xff"),
    ("uuid", str(uuid.UUID(int=5)), "UUID", uuid.UUID(int=5)),
    ("json", '{"a": 1}', "VARCHAR", '{"a": 1}'),
    ("jsonb", '{"a":1}', "VARCHAR", '{"a": 1}'),
    ("integer[]", "{1,NULL,3}", "INTEGER[]", [1, None, 3]),
    ("text[]", '{a,"b,c"}', "VARCHAR[]", ["a", "b,c"]),
    ("text[]", "{}", "VARCHAR[]", []),
    ("numeric(5,1)[]", "{1.5}", "DOUBLE[]", [1.5]),
    ("mood[]", "{sad}", "VARCHAR[]", ["sad"]),
    ("inet[]", "{10.0.0.1}", "VARCHAR[]", ["10.0.0.1/32"]),
    ("mood", "happy", "VARCHAR", "happy"),
    ("zip", "12345", "VARCHAR", "12345"),
    ("price", "3.5", "DECIMAL(12,2)", Decimal("3.50")),
    ("inet", "10.0.0.1", "VARCHAR", "10.0.0.1/32"),
    ("int4range", "[1,5)", "VARCHAR", "[1,5)"),
    ("bit(3)", "101", "VARCHAR", "101"),
    ("xml", "<a/>", "VARCHAR", "<a/>"),
    ("pair", "(1,x)", "VARCHAR", "(1,x)"),
]


def make_types(server: Server) -> None:
    server.run(
        "CREATE TYPE mood AS ENUM ('sad', 'happy')",
        "CREATE DOMAIN zip AS varchar(5)",
        "CREATE DOMAIN price AS numeric(12,2)",
        "CREATE TYPE pair AS (a int, b text)",
    )


def test_every_type_arrives_with_its_value_and_null(server: Server, engine: DuckDBEngine) -> None:
    make_types(server)
    columns = ", ".join(f"c{i} {kind}" for i, (kind, *_) in enumerate(TYPES))
    values = ", ".join(f"$q${value}$q$" for _, value, *_ in TYPES)
    server.run(
        f"CREATE TABLE every ({columns})", f"INSERT INTO every VALUES ({values})", "INSERT INTO every DEFAULT VALUES"
    )
    relation = Source.postgres(server.uri, table="every").open(engine)
    shown = [cast(col(c.name), "VARCHAR") if c.type in SHOWN else col(c.name) for c in relation.columns]
    full, empty = engine.rows(relation.query.select(*shown, append=False))
    assert [c.type for c in relation.columns] == [kind for _, _, kind, _ in TYPES]
    for (kind, _, _, expected), got in zip(TYPES, full, strict=True):
        assert (repr(got) if expected == "nan" else got) == expected, kind
    assert set(empty) == {None}
    # Without reading, the schema is the same.
    assert Source.postgres(server.uri, table="every").open(engine, read=False).columns == relation.columns


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("date", "infinity", "infinite"),
        ("date", "-infinity", "infinite"),
        ("timestamp", "infinity", "infinite"),
        ("timestamptz", "-infinity", "infinite"),
        ("timestamp", "294276-12-31", "infinite"),
        ("date[]", "{2020-01-01,infinity}", "infinite"),
        ("numeric(5,2)", "NaN", "NaN"),
        ("integer[]", "{{1,2},{3,4}}", "several dimensions"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(
    server: Server, engine: DuckDBEngine, kind: str, value: str, words: str
) -> None:
    server.run(f'CREATE TABLE t (a int, "odd col" {kind})', f"INSERT INTO t VALUES (1, NULL), (2, '{value}')")
    with pytest.raises(DataError, match=words) as caught:
        read(engine, server, table="t")
    assert "'odd col'" in str(caught.value)


def test_no_rows_and_no_columns(server: Server, engine: DuckDBEngine) -> None:
    server.run("CREATE TABLE empty (a int, b numeric(4,1), d date, l int[])", "CREATE TABLE bare ()")
    relation, rows = read(engine, server, table="empty")
    assert rows == []
    assert [c.type for c in relation.columns] == ["INTEGER", "DECIMAL(4,1)", "DATE", "INTEGER[]"]
    with pytest.raises(DataError, match="no columns"):
        read(engine, server, table="bare")


@pytest.mark.parametrize("name", ['say "hi"', "a.b", "sch.ema.t", "UPPER", "ünï 漢", "semi;colon--", "it's", "x) y"])
def test_odd_names_of_tables_and_columns(server: Server, engine: DuckDBEngine, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    server.run(f'CREATE TABLE {quoted} ({quoted} int, {quoted[:-1]}2" text)', f"INSERT INTO {quoted} VALUES (1, 'x')")
    server.run("CREATE SCHEMA s", f"CREATE TABLE s.{quoted} AS SELECT 2 AS x")
    for given in (name, quoted, f"public.{quoted}"):
        relation, rows = read(engine, server, table=given)
        assert (relation.names, rows) == ([name, f"{name}2"], [(1, "x")])
    assert read(engine, server, table=f"s.{quoted}")[1] == [(2,)]
    assert relation.portable.sql(dialect="postgres") == f'SELECT * FROM "public".{quoted}'


def test_views_schemas_and_case(server: Server, engine: DuckDBEngine) -> None:
    server.run(
        "CREATE SCHEMA clinic", "CREATE TABLE clinic.people AS SELECT 1 AS a", "CREATE VIEW adults AS SELECT 2 AS a"
    )
    server.run("CREATE MATERIALIZED VIEW kept AS SELECT 3 AS a")
    server.run(
        "CREATE TABLE parts (a int) PARTITION BY LIST (a)", "CREATE TABLE p4 PARTITION OF parts FOR VALUES IN (4)"
    )
    server.run("INSERT INTO parts VALUES (4)", 'CREATE TABLE "P4" AS SELECT 5 AS a')
    for given, expected in (("clinic.people", 1), ("adults", 2), ("ADULTS", 2), ("kept", 3), ("parts", 4), ("P4", 5)):
        assert read(engine, server, table=given)[1] == [(expected,)], given
    for given in ("people", "clinic.adults", "pg_class", "a.b.c", "cliniC.peoplE.x"):
        with pytest.raises(DataError, match="no table or view"):
            read(engine, server, table=given)
    with pytest.raises(DataError, match=r"Did you mean 'clinic\.people'\?"):
        read(engine, server, table="clinic.peple")


def test_duplicate_names_are_refused(server: Server, engine: DuckDBEngine) -> None:
    server.run('CREATE TABLE t (a int, "A" int)')
    for source in ({"table": "t"}, {"query": "SELECT 1 AS a, 2 AS a"}):
        for whole in (True, False):
            with pytest.raises(DataError, match="must differ"):
                Source.postgres(server.uri, **source).open(engine, read=whole)


def test_a_query_is_read_whatever_ends_it(server: Server, engine: DuckDBEngine) -> None:
    server.run("CREATE TABLE t AS SELECT i AS a, 'x' || i AS b FROM generate_series(1, 3) i")
    for query, expected in [
        ("SELECT max(a) AS m FROM t", [(3,)]),
        ("SELECT a FROM t ORDER BY a DESC LIMIT 1;", [(3,)]),
        ("SELECT a FROM t WHERE a = 1 -- the first; really", [(1,)]),
        ("WITH x AS (SELECT ';' AS s) SELECT s FROM x ; -- done", [(";",)]),
        ("VALUES (1), (2)", [(1,), (2,)]),
        ("TABLE t LIMIT 1", [(1, "x1")]),
        ("(SELECT a FROM t LIMIT 1) UNION ALL SELECT 9", [(1,), (9,)]),
        ('SELECT 1 AS "odd "" name"', [(1,)]),
    ]:
        relation, rows = read(engine, server, query=query)
        assert rows == expected, query
    assert relation.names == ['odd " name']
    assert relation.name == "query"
    assert relation.portable.sql() == 'SELECT * FROM "source"'


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM t",
        "DELETE FROM t RETURNING a",
        "WITH gone AS (DELETE FROM t RETURNING a) SELECT * FROM gone",
        "SELECT 1; DELETE FROM t",
        "SELECT 1) AS x; DELETE FROM t; --",
        "SELECT a INTO copied FROM t",
        "SELECT wipe()",
        "SELECT nextval('counted')",
        "SELECT a FROM t FOR UPDATE",
        "SELECT setval('counted', 9)",
        "COMMIT",
        "COPY t TO STDOUT",
        "EXPLAIN ANALYZE SELECT 1",
        ";",
        "-- nothing",
        "SELEC 1",
        "SELECT 'unclosed",
        "SELECT b FROM t",
        "SELECT a FROM nowhere",
        "SELECT nothing(1)",
    ],
)
@pytest.mark.parametrize("whole", [True, False])
def test_a_query_writes_nothing(server: Server, engine: DuckDBEngine, query: str, whole: bool) -> None:
    server.run("CREATE TABLE t AS SELECT 1 AS a", "CREATE SEQUENCE counted")
    server.run("CREATE FUNCTION wipe() RETURNS int LANGUAGE sql AS 'DELETE FROM t; SELECT 1'")
    runs = query in (
        "SELECT wipe()",
        "SELECT nextval('counted')",
        "SELECT setval('counted', 9)",
        "SELECT a FROM t FOR UPDATE",
    )
    if runs and not whole:
        Source.postgres(server.uri, query=query).open(engine, read=False)
    else:
        with pytest.raises(DataError):
            Source.postgres(server.uri, query=query).open(engine, read=whole)
    assert server.rows("SELECT count(*) FROM t") == [(1,)]
    assert server.rows("SELECT is_called FROM counted") == [(False,)]
    assert server.rows("SELECT count(*) FROM pg_class WHERE relname = 'copied'") == [(0,)]


def test_only_the_schema_is_touched_without_reading(server: Server, engine: DuckDBEngine) -> None:
    query = "SELECT 1 / (i - i) AS a FROM generate_series(1, 3) i"
    assert Source.postgres(server.uri, query=query).open(engine, read=False).names == ["a"]
    with pytest.raises(DataError):
        Source.postgres(server.uri, query=query).open(engine)
    server.run("CREATE TABLE t (age int, ill text)", "INSERT INTO t SELECT i % 7, 'x' FROM generate_series(1, 100) i")
    plan = Plan.of(Source.postgres(server.uri, table="t"), quasi_identifiers=["age"], k=2)
    assert plan.relation.kind == "postgres"


def test_all_rows_within_a_small_memory_limit(server: Server) -> None:
    server.run("CREATE TABLE big AS SELECT i AS id, md5(i::text) AS a, md5((i+1)::text) AS b, md5((i+2)::text) AS c, "
               "md5((i+3)::text) AS d FROM generate_series(1, 200000) i")  # fmt: skip
    events = []
    engine = DuckDBEngine(threads=2, memory_limit="24MB", progress=Progress(events.append))
    try:
        relation = Source.postgres(server.uri, table="big").open(engine)
        assert engine.rows(relation.query.select("count(*)", "sum(id)", append=False)) == [(200_000, 20_000_100_000)]
    finally:
        engine.close()
    counted = [e.done for e in events if e.step == "read" and not e.finished]
    assert counted == sorted(counted)
    assert counted[-1] == 200_000
    assert len(counted) > 2, "one batch is no stream"


@pytest.mark.parametrize("amid", [False, True])
def test_no_server_message_quotes_a_value(
    server: Server, engine: DuckDBEngine, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture, amid: bool
) -> None:
    caplog.set_level(logging.DEBUG)
    server.run(f"CREATE TABLE t AS SELECT i AS id, '{CANARY}' AS name FROM generate_series(1, 300000) i")
    at = 290_000 if amid else 1
    query = f"SELECT CASE WHEN id = {at} THEN name::int ELSE id END AS a, repeat('x', 100) AS b FROM t"
    with pytest.raises(DataError) as caught:
        read(engine, server, query=query)
    assert "withheld" in str(caught.value)
    out, err = capfd.readouterr()
    for seen in (said(caught.value), out, err, caplog.text):
        assert CANARY not in seen
        assert PASSWORD not in seen


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((PASSWORD, PASSWORD + "x"), "password is not accepted"),
        ((PASSWORD, PASSWORD + "%zz"), "%"),
        (("postgres:", "nobody:"), "password is not accepted"),
        (("127.0.0.1", "no-such-host.invalid"), "host is not known"),
        (("127.0.0.1:", "127.0.0.1:1"), "Cannot connect"),
        ((f":{PASSWORD}@", "@"), "asks for a password"),
    ],
)
def test_a_failed_connection_tells_the_reason_and_no_secret(
    server: Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, change, words: str
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("PGPASSFILE", "/nowhere")
    monkeypatch.delenv("PGPASSWORD", raising=False)
    source = Source.postgres(server.uri.replace(*change), table="t")
    with pytest.raises(EngineError, match=words) as caught:
        duckanon.anonymize(source, quasi_identifiers=["a"], k=2)
    for seen in (said(caught.value), repr(source), str(source), caplog.text):
        assert PASSWORD not in seen
        assert "127.0.0.1" not in seen


def test_missing_database_and_privilege_are_the_environment(server: Server, engine: DuckDBEngine) -> None:
    with pytest.raises(EngineError, match="no such database"):
        Source.postgres(server.uri + "x", table="t").open(engine)
    server.run("CREATE TABLE t AS SELECT 1 AS a", f"CREATE ROLE weak LOGIN PASSWORD '{PASSWORD}'")
    weak = server.uri.replace("postgres:" + PASSWORD, f"weak:{PASSWORD}")
    try:
        with pytest.raises(EngineError, match="privilege"):
            Source.postgres(weak, table="t").open(engine)
    finally:
        server.run("DROP OWNED BY weak", "DROP ROLE weak")


def test_a_server_that_goes_away_amid_the_rows(server: Server, engine: DuckDBEngine) -> None:
    server.run("CREATE TABLE t AS SELECT i AS a, repeat('x', 200) AS b FROM generate_series(1, 400000) i")
    stopped = []

    def stop(event) -> None:
        if event.step == "read" and event.done and not stopped:
            stopped.append(event.done)
            server.run(TERMINATE)

    engine.progress.listener = stop
    with pytest.raises(EngineError, match="lost"):
        Source.postgres(server.uri, table="t").open(engine)
    assert stopped


def test_one_snapshot_that_writers_do_not_change(server: Server, engine: DuckDBEngine) -> None:
    server.run("CREATE TABLE t AS SELECT i AS a, repeat('x', 200) AS b FROM generate_series(1, 300000) i")
    done = []

    def write(event) -> None:
        if event.step == "read" and event.done and not done:
            done.append(event.done)
            server.run("DELETE FROM t WHERE a % 2 = 0", "INSERT INTO t SELECT -1, 'new' FROM generate_series(1, 1000)")

    engine.progress.listener = write
    relation = Source.postgres(server.uri, table="t").open(engine)
    assert done
    assert engine.rows(relation.query.select("count(*)", "min(a)", append=False)) == [(300_000, 1)]


def test_a_database_in_another_encoding(cluster: Server, engine: DuckDBEngine) -> None:
    cluster.run("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    server = Server(cluster.port, "latin")
    try:
        server.run("CREATE TABLE t AS SELECT chr(228) || chr(223) AS a")
        assert read(engine, server, table="t")[1] == [("äß",)]
    finally:
        cluster.run("DROP DATABASE latin WITH (FORCE)")


def test_anonymize_reads_postgresql(server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server.run("CREATE TABLE people AS SELECT i AS id, 20 + i % 50 AS age, (10000 + i % 90)::text AS zip, "
               "(i % 7)::numeric(5,2) AS score, 'd' || i % 5 AS ill FROM generate_series(1, 2000) i")  # fmt: skip
    source = Source.postgres(server.uri, table="people")
    with duckanon.anonymize(source, quasi_identifiers=["age", "zip"], sensitive=["ill", "score"], k=5) as release:
        assert all(c.holds for c in release.checks)
        assert release.rows_published == 2000
        assert release.summary()["source"] == {"kind": "postgres", "name": "people"}
        assert "read" in release.summary()["seconds"]
        release.write(tmp_path / "out.parquet")
        seen = repr(release) + repr(release.plan) + repr(source) + str(release.summary()) + caplog.text
        seen += "".join(p.read_text(errors="replace") for p in tmp_path.iterdir())
        if release.recoding:
            seen += str(release.plan.explain())
    assert PASSWORD not in seen
    assert str(server.port) not in "".join(p.read_text() for p in tmp_path.glob("*.json"))


def test_reading_leaves_no_session_behind(server: Server, engine: DuckDBEngine) -> None:
    server.run("CREATE TABLE t AS SELECT 1 AS a")
    read(engine, server, table="t")
    with pytest.raises(DuckanonError):
        read(engine, server, query="SELECT a / 0 FROM t")
    open_ones = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    for _ in range(50):
        if server.rows(open_ones) == [(0,)]:
            return
    pytest.fail("a session is still open")
