"""The Flight SQL server, asked by real clients on 127.0.0.1."""

from __future__ import annotations

import datetime
import gc
import ipaddress
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

dbapi = pytest.importorskip("adbc_driver_flightsql.dbapi")
pytest.importorskip("google.protobuf")

from adbc_driver_flightsql import DatabaseOptions  # noqa: E402
from pyarrow import flight  # noqa: E402

from duckanon.interfaces.flight.database import served  # noqa: E402
from duckanon.interfaces.flight.messages import encoded, message  # noqa: E402
from duckanon.interfaces.flight.server import Server  # noqa: E402
from duckanon.interfaces.flight.statements import Limits, Statements  # noqa: E402
from tests.interfaces.cli.tools import CHECKOUT, COMMAND, call  # noqa: E402

TOKEN = "token-of-the-tests-0123"
HEADER = DatabaseOptions.AUTHORIZATION_HEADER.value
ROOTS = DatabaseOptions.TLS_ROOT_CERTS.value
CALL = "anonymize('patients', quasi_identifiers := ['age', 'zip'], sensitive := ['ill'], k := 5)"
ENDLESS = "SELECT count(*) FROM range(1000000000000) t(i) WHERE hash(i) = 5"
SECONDS = 30
"""Nothing here may take longer."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("served") / "clinic.duckdb"
    with duckdb.connect(path) as con:
        con.execute(
            "CREATE TABLE patients AS SELECT (20 + i % 60)::INT AS age, (97000 + i % 40)::VARCHAR AS zip, "
            "'canary' || (i % 7) AS ill FROM range(600) t(i)"
        )
        con.execute("CREATE SCHEMA other; CREATE TABLE other.salaries AS SELECT 'canary' AS name, 5 AS pay")
        con.execute("CREATE VIEW old AS FROM patients WHERE age > 60")
        con.execute("CREATE TABLE numbers AS SELECT i FROM range(2000000) t(i)")
    return path


@contextmanager
def serving(database: Path, *, read_only: bool = True, seconds: float | None = 600, **settings: Any) -> Iterator[Any]:
    """Serve, and yield (address, statements)."""
    tls = {name: settings.pop(name) for name in ("certificate", "key") if name in settings}
    limits = Limits(read_only=read_only, seconds=seconds, at_once=4)
    with served(database, limits, **settings) as statements:
        server = Server(statements, TOKEN, **tls)
        try:
            yield f"{'grpc+tls' if tls else 'grpc'}://127.0.0.1:{server.port}", statements
        finally:
            statements.close()
            server.shutdown()


@pytest.fixture(scope="module")
def place(database: Path) -> Iterator[tuple[str, Statements]]:
    with serving(database) as found:
        yield found


@pytest.fixture
def uri(place: tuple[str, Statements]) -> str:
    return place[0]


def connected(uri: str, token: str = TOKEN, **options: str) -> Any:
    return closing(dbapi.connect(uri, db_kwargs={HEADER: f"Bearer {token}", **options}, autocommit=True))


def ask(uri: str, sql: str, values: Any = None) -> list[tuple[Any, ...]]:
    with connected(uri) as con, con.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())


def refusal(uri: str, sql: str, values: Any = None) -> str:
    with pytest.raises(dbapi.Error) as caught:
        ask(uri, sql, values)
    message = str(caught.value)
    assert "Traceback" not in message
    assert "duckanon/" not in message
    return message


def eventually(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + SECONDS
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def idle(statements: Statements) -> bool:
    return statements._running._value == statements.limits.at_once  # type: ignore[attr-defined]


# Statements


def test_a_release_is_queried_like_a_table(uri: str) -> None:
    rows = ask(uri, f"SELECT age, zip, count(*) FROM {CALL} GROUP BY ALL")
    assert sum(n for *_, n in rows) == 600
    assert min(n for *_, n in rows) >= 5


def test_parameters_of_prepared_statements(uri: str) -> None:
    assert ask(uri, "SELECT count(*) FROM patients WHERE age < ? AND zip = ?", (50, "97000")) == [
        (sum(20 + i % 60 < 50 and i % 40 == 0 for i in range(600)),)
    ]
    assert ask(uri, "SELECT count(*) FROM anonymize('patients', quasi_identifiers := ['zip'], k := ?)", (7,)) == [
        (600,)
    ]
    with connected(uri) as con, con.cursor() as cursor:
        for age in (20, 21, 79):
            cursor.execute("SELECT count(*) FROM patients WHERE age = ?", (age,))
            assert cursor.fetchall() == [(10,)]


def test_a_prepared_statement_is_forgotten_when_it_is_closed(uri: str) -> None:
    client = flight.connect(uri)
    options = flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {TOKEN}".encode())])
    handle = b"no such handle"
    asked = encoded(message("CommandPreparedStatementQuery", prepared_statement_handle=handle))
    with client, pytest.raises(flight.FlightServerError, match="prepare it again"):
        client.get_flight_info(flight.FlightDescriptor.for_command(asked), options)


def test_a_command_that_is_none_is_refused(uri: str) -> None:
    options = flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {TOKEN}".encode())])
    with flight.connect(uri) as client:
        for content in (b"SELECT 1", b"", encoded(message("DoPutUpdateResult", record_count=1))):
            with pytest.raises(flight.FlightServerError):
                client.get_flight_info(flight.FlightDescriptor.for_command(content), options)


def test_one_statement_at_a_time(uri: str) -> None:
    assert "One statement at a time. Got 2" in refusal(uri, "SELECT 1; SELECT 2")


def test_the_same_release_is_shown_however_often_it_is_bound(uri: str) -> None:
    query = f"SELECT age, zip, ill FROM {CALL}"
    assert ask(uri, query) == ask(uri, query)


# What a tool's browser asks for


def test_a_browser_sees_catalogs_schemas_tables_and_columns(uri: str) -> None:
    with connected(uri) as con:
        (catalog,) = con.adbc_get_objects(depth="all").read_all().to_pylist()
        assert con.adbc_get_table_types() == ["TABLE", "VIEW"]
        assert con.adbc_get_info()["vendor_name"] == "duckanon"
        assert con.adbc_get_table_schema("patients").names == ["age", "zip", "ill"]
        only = (
            con.adbc_get_objects(depth="tables", table_name_filter="p%", table_types_filter=["TABLE"])
            .read_all()
            .to_pylist()
        )
    assert catalog["catalog_name"] == "clinic"
    tables = {
        (schema["db_schema_name"], table["table_name"]): table
        for schema in catalog["catalog_db_schemas"]
        for table in schema["db_schema_tables"]
    }
    assert {place: table["table_type"] for place, table in tables.items()} == {
        ("main", "numbers"): "TABLE",
        ("main", "patients"): "TABLE",
        ("main", "old"): "VIEW",
        ("other", "salaries"): "TABLE",
    }
    assert [c["column_name"] for c in tables["main", "patients"]["table_columns"]] == ["age", "zip", "ill"]
    shown = [t["table_name"] for s in only[0]["catalog_db_schemas"] for t in s["db_schema_tables"]]
    assert shown == ["patients"]


@pytest.mark.parametrize(
    "name",
    [
        "CommandGetPrimaryKeys",
        "CommandGetExportedKeys",
        "CommandGetImportedKeys",
        "CommandGetCrossReference",
        "CommandGetXdbcTypeInfo",
    ],
)
def test_there_are_no_keys(uri: str, name: str) -> None:
    options = flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {TOKEN}".encode())])
    with flight.connect(uri) as client:
        info = client.get_flight_info(flight.FlightDescriptor.for_command(encoded(message(name))), options)
        found = client.do_get(info.endpoints[0].ticket, options).read_all()
    assert (found.num_rows, found.schema) == (0, info.schema)


# Who may ask


@pytest.mark.parametrize("options", [{}, {HEADER: "Bearer wrong"}, {HEADER: f"Basic {TOKEN}"}, {HEADER: TOKEN}])
def test_nobody_without_the_token(uri: str, options: dict[str, str]) -> None:
    with (
        closing(dbapi.connect(uri, db_kwargs=options, autocommit=True)) as con,
        con.cursor() as cursor,
        pytest.raises(dbapi.Error, match="token is missing or wrong"),
    ):
        cursor.execute("SELECT 1")


def test_the_token_may_be_the_password_of_any_user(uri: str) -> None:
    who = {"username": "analyst", "password": TOKEN}
    with closing(dbapi.connect(uri, db_kwargs=who, autocommit=True)) as con, con.cursor() as cursor:
        cursor.execute("SELECT 42")
        assert cursor.fetchall() == [(42,)]


@pytest.fixture(scope="module")
def certificate() -> tuple[bytes, bytes]:
    """A certificate of 127.0.0.1 and its key."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made.public_bytes(serialization.Encoding.PEM), private


@pytest.fixture
def other(database: Path, tmp_path: Path) -> Path:
    """A copy: one process opens a file in one way only."""
    return Path(shutil.copy(database, tmp_path))


def test_tls(other: Path, certificate: tuple[bytes, bytes]) -> None:
    with serving(other, certificate=certificate[0], key=certificate[1]) as (uri, _):
        with connected(uri, **{ROOTS: certificate[0].decode()}) as con, con.cursor() as cursor:
            cursor.execute(f"SELECT count(*) FROM {CALL}")
            assert cursor.fetchall() == [(600,)]
        with connected(uri) as con, con.cursor() as cursor, pytest.raises(dbapi.Error, match="certificate"):
            cursor.execute("SELECT 1")


# Several clients, and those that go away


def test_two_clients_at_once(uri: str) -> None:
    with connected(uri) as con, con.cursor() as half_read:
        half_read.execute("SELECT i FROM numbers")
        assert half_read.fetchone() == (0,)
        with ThreadPoolExecutor(2) as pool:
            counts = list(pool.map(lambda k: ask(uri, f"SELECT count(*), {k} FROM {CALL}"), range(6)))
        assert counts == [[(600, k)] for k in range(6)]
        assert half_read.fetchone() == (1,)


def test_a_client_that_disconnects_in_the_middle_leaves_nothing_running(place: tuple[str, Statements]) -> None:
    uri, statements = place
    options = flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {TOKEN}".encode())])
    asked = message("CommandStatementQuery", query="SELECT a.i, b.i FROM numbers a, numbers b")
    client = flight.connect(uri)
    info = client.get_flight_info(flight.FlightDescriptor.for_command(encoded(asked)), options)
    reader = client.do_get(info.endpoints[0].ticket, options)
    assert reader.read_chunk().data.num_rows > 0
    assert not idle(statements)
    reader.cancel()
    client.close()
    del reader, client
    gc.collect()
    assert eventually(lambda: idle(statements))
    assert ask(uri, "SELECT 1") == [(1,)]


def test_cancelling_ends_a_statement_on_the_server(place: tuple[str, Statements]) -> None:
    uri, statements = place
    with connected(uri) as con, con.cursor() as cursor:
        timer = threading.Timer(0.5, cursor.adbc_cancel)
        timer.start()
        with pytest.raises(dbapi.Error, match=r"(?i)cancel"):  # noqa: PT012 - either of them may
            cursor.execute(ENDLESS)
            cursor.fetchall()
        timer.join()
    assert eventually(lambda: idle(statements))
    assert ask(uri, "SELECT 1") == [(1,)]


def test_a_statement_ends_when_its_time_is_up(other: Path) -> None:
    with serving(other, seconds=1) as (uri, statements):
        begun = time.monotonic()
        assert "ran for more than 1 s and was cancelled" in refusal(uri, ENDLESS)
        assert time.monotonic() - begun < SECONDS / 2
        assert eventually(lambda: idle(statements))
        assert ask(uri, "SELECT 1") == [(1,)]


# What may be done


WRITES = {
    "a table": "CREATE TABLE t AS SELECT 1",
    "a temporary table": "CREATE TEMP TABLE t AS SELECT 1",
    "rows": "INSERT INTO patients VALUES (1, 'a', 'b')",
    "a file": "COPY patients TO '/tmp/duckanon-should-not-be.csv'",
    "a setting": "SET memory_limit = '100GB'",
    "a database": "ATTACH '/tmp/duckanon-should-not-be.duckdb' AS x",
    "an extension": "INSTALL httpfs",
    "a macro": "CREATE MACRO f() AS 1",
    "a prepared one": "PREPARE p AS DELETE FROM patients",
    "a call": "CALL pragma_version()",
}


@pytest.mark.parametrize("what", WRITES)
def test_nothing_is_written_on_a_server_that_reads(uri: str, what: str) -> None:
    assert "The server only reads" in refusal(uri, WRITES[what])
    assert not list(Path("/tmp").glob("duckanon-should-not-be*"))
    assert ask(uri, "SELECT count(*) FROM patients") == [(600,)]


def test_a_function_that_writes_fails_where_the_server_reads(uri: str) -> None:
    assert "read-only" in refusal(uri, "FROM save_hierarchy('h', {'rule': 'mask'})")


def test_a_server_that_writes_says_how_many_rows_it_changed(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    duckdb.connect(path).close()
    with serving(path, read_only=False) as (uri, _), connected(uri) as con, con.cursor() as cursor:
        cursor.execute("CREATE TABLE t (a INT, b VARCHAR)")
        cursor.executemany("INSERT INTO t VALUES (?, ?)", [(1, "x"), (2, "y"), (3, None)])
        cursor.execute("SELECT a, b FROM t ORDER BY a")
        assert cursor.fetchall() == [(1, "x"), (2, "y"), (3, None)]
        assert "settings of the server cannot be changed" in refusal(uri, "SET memory_limit = '100GB'")
        cursor.execute("CREATE TABLE u AS FROM t")
        assert ask(uri, "SELECT count(*) FROM u") == [(3,)]
        for wrong in (
            "ATTACH '/tmp/duckanon-should-not-be.duckdb' AS x",
            "COPY t TO '/tmp/duckanon-should-not-be.csv'",
        ):
            assert "do not allow" in refusal(uri, wrong)
        assert not list(Path("/tmp").glob("duckanon-should-not-be*"))


FILES = {
    "a file": "FROM read_text('/etc/hostname')",
    "a file by its name": "FROM '/etc/hosts.csv'",
    "a pattern": "SELECT count(*) FROM glob('/etc/*')",
    "a source of ours": "FROM anonymize('/etc/passwd', quasi_identifiers := ['a'], k := 2)",
    "a query of ours": "FROM privacy('SELECT * FROM read_text(''/etc/hostname'')', quasi_identifiers := ['content'])",
    "a hierarchy of ours": "FROM anonymize('patients', quasi_identifiers := ['zip'], k := 2, "
    "hierarchies := {'zip': '/etc/h.csv'})",
}


@pytest.mark.parametrize("what", FILES)
def test_no_file_of_the_machine_is_read(uri: str, what: str) -> None:
    hosts = {line.split()[0] for line in Path("/etc/hosts").read_text().splitlines() if line.split()}
    message = refusal(uri, FILES[what])
    assert not any(host in message for host in hosts)
    assert re.search("do not allow|does not exist|no table|may not|disabled", message), message


def test_only_allowed_tables_are_there(database: Path) -> None:
    with serving(database, allow=["other.salaries", "OLD"]) as (uri, _):
        assert ask(uri, "SELECT pay FROM other.salaries") == [(5,)]
        assert ask(uri, "SELECT count(*) > 0 FROM old") == [(True,)]
        for source in ("patients", "main.patients", "clinic.main.patients", "numbers", "source.main.patients"):
            refused = refusal(uri, f"FROM {source}")
            assert "does not exist" in refused
            assert "canary" not in refused
        assert "no table" in refusal(uri, f"FROM {CALL}")
        with connected(uri) as con:
            objects = str(con.adbc_get_objects(depth="all").read_all().to_pylist())
        assert ("salaries" in objects, "patients" in objects) == (True, False)
        names = ask(uri, "SELECT DISTINCT table_name FROM duckdb_columns() WHERE table_name IN ('patients', 'old')")
        assert names == [("old",)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ill::INT FROM patients",
        "SELECT error(ill) FROM patients",
        "SELECT ill::DATE FROM patients WHERE age = ?",
        "FROM anonymize('SELECT ill::INT AS a FROM patients', quasi_identifiers := ['a'], k := 2)",
        "SELECT strptime(ill, '%Y') FROM patients",
    ],
)
def test_no_cell_is_in_an_error(uri: str, sql: str) -> None:
    message = refusal(uri, sql, (20,) if "?" in sql else None)
    assert "canary" not in message
    assert len(message) > 20


def test_errors_say_what_is_wrong_with_a_statement(uri: str) -> None:
    assert 'syntax error at or near "SELCT"' in refusal(uri, "SELCT 1")
    assert "Table with name nope does not exist" in refusal(uri, "FROM nope")
    assert "Did you mean 'age'?" in refusal(uri, CALL.replace("'age'", "'agee'").join(("FROM ", "")))


# The command


def test_the_command_serves_until_it_is_ended(database: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "DUCKANON_TOKEN": TOKEN}
    process = subprocess.Popen(
        [*COMMAND, "serve", str(database), "--port", "0", "--memory", "1GB", "--time-limit", "1min"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    try:
        first = process.stdout.readline()
        assert re.fullmatch(r"clinic.duckdb: 4 tables, read-only, at grpc://127\.0\.0\.1:[0-9]+\n", first)
        assert ask(first.split()[-1], f"SELECT count(*) FROM {CALL}") == [(600,)]
    finally:
        process.send_signal(signal.SIGTERM)
        said, wrong = process.communicate(timeout=SECONDS)
    assert (process.returncode, wrong) == (143, "Error: Terminated.\n")
    assert TOKEN not in first + said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--host", "0.0.0.0"), "need TLS"),
        (("--certificate", "c.pem"), "go together"),
        (("--allow", "patients", "--writable"), "does not go with it"),
        (("--time-limit", "soon"), "--time-limit"),
        (("--allow", "patience"), "Did you mean 'patients'?"),
    ],
)
def test_what_cannot_be_served_is_refused(database: Path, words: tuple[str, ...], message: str) -> None:
    result = call("serve", str(database), "--port", "0", *words)
    assert result.exit_code in (2, 3)
    assert message in " ".join(result.stderr.split())


def test_a_short_token_is_refused(database: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("short\n")
    result = call("serve", str(database), "--token-file", str(tmp_path / "token"))
    assert (result.exit_code, "at least 16 characters" in result.stderr) == (2, True)
