"""A real PostgreSQL server for the session, where one is installed."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

PASSWORD = "PaSsCanary7Quokka"
"""Stands in every URI of these tests, and must be found nowhere else."""

TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


class Server:
    """A running server; ``uri`` has a password."""

    def __init__(self, port: int, database: str = "postgres") -> None:
        self.port = port
        self.database = database

    @property
    def uri(self) -> str:
        return f"postgresql://postgres:{PASSWORD}@127.0.0.1:{self.port}/{self.database}"

    def run(self, *statements: str) -> None:
        with self._connected() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def rows(self, query: str) -> list[tuple]:
        with self._connected() as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall()

    def _connected(self):
        import adbc_driver_postgresql.dbapi as dbapi

        return dbapi.connect(self.uri, autocommit=True)


def programs() -> Path | None:
    """Return the folder of the server's programs: on the PATH, else where Debian puts them, the newest first."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    return debian[-1].parent if debian else None


@pytest.fixture(scope="session")
def cluster() -> Iterator[Server]:
    pytest.importorskip("adbc_driver_postgresql", reason="the extra 'postgres' is not installed")
    folder = programs()
    if folder is None:
        pytest.skip("no PostgreSQL server is installed (apt-get install postgresql)")
    # The server refuses to run as root.
    prefix: list[str] = []
    home = Path(tempfile.mkdtemp(prefix="duckanon-pg-", dir="/tmp"))
    if os.getuid() == 0:
        try:
            owner = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("running as root, and there is no user postgres to run the server as")
        os.chown(home, owner.pw_uid, owner.pw_gid)
        prefix = ["runuser", "-u", "postgres", "--"]
    secret = home / "password"
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = home / "data"
    options = f"-p {port} -k {home} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=40"
    starting = [*prefix, folder / "pg_ctl", "-D", data, "-w", "-l", home / "log", "-o", options, "start"]
    making = [*prefix, folder / "initdb", "-D", data, "-U", "postgres", "-A", "scram-sha-256", "--pwfile", secret]
    making += ["-E", "UTF8", "--locale", "C.UTF-8", "--no-sync"]
    try:
        subprocess.run(making, check=True, capture_output=True, cwd="/")
        subprocess.run(starting, check=True, capture_output=True, cwd="/")
        try:
            yield Server(port)
        finally:
            stopping = [*prefix, folder / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"]
            subprocess.run(stopping, check=True, capture_output=True, cwd="/")
    finally:
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def server(cluster: Server) -> Server:
    """The server with nothing in it."""
    named = "SELECT quote_ident(nspname) FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"
    cluster.run(*(f"DROP SCHEMA {name} CASCADE" for (name,) in cluster.rows(named)), "CREATE SCHEMA public")
    cluster.run("GRANT USAGE ON SCHEMA public TO PUBLIC")
    return cluster
