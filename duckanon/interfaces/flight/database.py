"""The database that is served: opened within limits, and with nothing in it that clients may not see."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlglot import exp

from duckanon.engine.duckdb.functions import DatabaseError, clean_reason
from duckanon.engine.process import PrivateFolder, share_of_database, size_in_bytes, sweep
from duckanon.engine.sql.relations import DIALECT, call, ident, table, text
from duckanon.errors import DataError, EngineError, did_you_mean
from duckanon.interfaces.flight.statements import Limits, Statements
from duckanon.interfaces.sql.door import connect

_SOURCE = "source"


@contextmanager
def served(
    path: Path,
    limits: Limits,
    *,
    allow: Sequence[str] = (),
    memory: str | None = None,
    threads: int | None = None,
) -> Iterator[Statements]:
    """Yield what runs the statements of clients on a database.

    With ``allow``, a private copy of those tables and views is served, so that there is nothing else to be reached.
    Statements touch no file, and no setting can be changed. What they need on disk lies in a private folder, which is
    removed afterwards.

    Examples
    --------
    >>> import duckdb
    >>> path = Path(tempfile.mkdtemp()) / "d.duckdb"
    >>> with duckdb.connect(path) as con:
    ...     _ = con.execute("CREATE TABLE t AS SELECT 1 AS a; CREATE TABLE u AS SELECT 2 AS a")
    >>> with served(path, Limits(read_only=True, seconds=None, at_once=2), allow=["t"]) as statements:
    ...     statements.rows("SELECT table_name FROM duckdb_tables()")
    [('t',)]
    """
    if not path.is_file():
        raise DataError(f"There is no database file {path.name!r}.")
    before, parent = tempfile.tempdir, Path(tempfile.gettempdir())
    sweep(parent)
    folder = PrivateFolder(parent)
    try:
        releases = folder.path / "releases"
        releases.mkdir(mode=0o700)
        if allow:
            path = _copied(path, allow, folder.path / path.name)
        # Private files of releases are the only ones that statements may touch.
        tempfile.tempdir = str(releases)
        with closing(_opened(path, limits.read_only, folder.path, releases, memory, threads)) as connection:
            statements = Statements(connection, limits)
            try:
                yield statements
            finally:
                statements.close()
    finally:
        tempfile.tempdir = before
        folder.close()


def _opened(path: Path, read_only: bool, folder: Path, releases: Path, memory: str | None, threads: int | None) -> Any:
    settings: dict[str, Any] = {
        "python_enable_replacements": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "temp_directory": str(folder / "spill"),
    }
    if memory is not None:
        settings["memory_limit"] = f"{share_of_database(size_in_bytes(memory))}B"
    if threads is not None:
        settings["threads"] = threads
    try:
        connection = connect(path, read_only=read_only, **settings)
        # Days and hours do not depend on where the server runs.
        connection.execute("SET GLOBAL TimeZone = 'UTC'")
        connection.execute("SET allowed_directories = ?", [[str(releases)]])
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
    except DatabaseError as error:
        reason = clean_reason(error)
    else:
        return connection
    raise EngineError(f"The database {path.name!r} cannot be served. {reason}")


def _copied(path: Path, allow: Sequence[str], target: Path) -> Path:
    """Copy tables and views into a new database, with their schemas, and return its path."""
    reason = None
    try:
        with closing(connect(target, python_enable_replacements=False)) as connection:
            attach = ("ATTACH", text(str(path)).sql(dialect=DIALECT), "AS", ident(_SOURCE).sql(dialect=DIALECT))
            connection.execute(" ".join((*attach, "(READ_ONLY)")))
            for schema, name in _found(connection, allow):
                if schema != "main":
                    made = exp.Create(this=table(schema), kind="SCHEMA", exists=True)
                    connection.execute(made.sql(dialect=DIALECT))
                rows = exp.select("*").from_(table(name, schema=schema, catalog=_SOURCE))
                into = exp.Create(this=table(name, schema=schema), kind="TABLE", expression=rows)
                connection.execute(into.sql(dialect=DIALECT))
    except DatabaseError as error:
        reason = clean_reason(error)
    if reason is not None:
        raise EngineError(f"The tables of {path.name!r} cannot be copied. {reason}")
    return target


def _found(connection: Any, allow: Sequence[str]) -> list[tuple[str, str]]:
    """Return (schema, name) of the tables and views that are allowed; a name that is not there is an error."""
    there: list[tuple[str, str]] = []
    for function, column in (("duckdb_tables", "table_name"), ("duckdb_views", "view_name")):
        query = exp.select("schema_name", column).from_(exp.Table(this=call(function)))
        query = query.where(exp.EQ(this=exp.column("database_name"), expression=text(_SOURCE))).where("NOT internal")
        there += [(str(s), str(n)) for s, n in connection.execute(query.sql(dialect=DIALECT)).fetchall()]
    names = {f"{schema}.{name}".lower(): (schema, name) for schema, name in there}
    names |= {name.lower(): (schema, name) for schema, name in there if schema == "main"}
    for one in allow:
        if one.lower() not in names:
            raise DataError(f"The database has no table or view {one!r}.{did_you_mean(one, names)}")
    return list(dict.fromkeys(names[one.lower()] for one in allow))


__all__ = ["served"]
