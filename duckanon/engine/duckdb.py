"""DuckDB: a cursor of its own on the caller's database, or a private database in memory that spills to disk."""

from __future__ import annotations

import contextlib
import itertools
import logging
import re
import secrets
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
from sqlglot import exp

from duckanon.engine.guard import guarded
from duckanon.engine.sizes import keep_little, share_of_database, size_in_bytes
from duckanon.errors import DataError, DuckanonError, ParameterError
from duckanon.progress import Progress
from duckanon.resources import PrivateFolder, allowed_threads, sweep
from duckanon.sqlgen.relations import DIALECT, Column, copy_to, create_table, ident, scan, table, text

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
_sql_log = logging.getLogger("duckanon.sql")
_POLL_SECONDS = 0.2
_ROW_GROUP = 122_880
_PRIVATE = re.compile(r"duckanon_\w+")
_THEIRS, _COPY, _ROWS = "duckanon_theirs", "duckanon_copy", "rows"

# Values compare by their bytes and days are cut in UTC, whatever the caller's session says, and no Python variable is
# taken for a table.
_SESSION = (
    "SET SESSION default_collation = ''",
    "SET SESSION TimeZone = 'UTC'",
    "SET SESSION python_enable_replacements = false",
    "SET enable_progress_bar = true",
    "SET enable_progress_bar_print = false",
)

_live: weakref.WeakSet[DuckDBEngine] = weakref.WeakSet()
_live_lock = threading.Lock()


class DuckDBEngine:
    """A private workspace on a DuckDB database.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection, optional
        The caller's connection; the work happens on a cursor of it, so temporary tables and session settings stay ours.
        Without one, a database in memory is opened that spills into a private folder.
    progress : Progress, optional
    memory_limit, threads : optional
        Settings of the private database; a shared one keeps its own.
    memory : str, optional
        What the whole process may use, such as "1GB": the private database gets a part of it, arrays another.
    """

    name = "duckdb"
    version: str = duckdb.__version__
    writes_used_texts = int(duckdb.__version__.split(".")[0]) >= 2

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection | None = None,
        *,
        progress: Progress | None = None,
        memory_limit: str | None = None,
        threads: int | None = None,
        temp_directory: Path | None = None,
        memory: str | None = None,
    ) -> None:
        self.progress = progress or Progress()
        self._spill: PrivateFolder | None = None
        self._files: dict[str, Path] = {}
        self._views: set[str] = set()
        self._whole = size_in_bytes(memory) if memory is not None else None
        if self._whole is not None:
            keep_little(self._whole)
        self._counter = itertools.count()
        self._registered: list[str] = []
        self._later: dict[str, Callable[[], object]] = {}
        self._settings: dict[str, str] | None = None
        self._making = threading.RLock()
        self._attached: list[str] = []
        self._apart: DuckDBEngine | None = None
        if connection is None:
            sweep(temp_directory or Path(tempfile.gettempdir()))
            self._spill = PrivateFolder(temp_directory)
            config: dict[str, Any] = {
                "temp_directory": str(self._spill.path),
                "python_enable_replacements": False,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            }
            if memory_limit is None and self._whole is not None:
                memory_limit = f"{share_of_database(self._whole)}B"
            if memory_limit is not None:
                config["memory_limit"] = memory_limit
            threads = threads if threads is not None else allowed_threads()
            if threads is not None:
                config["threads"] = threads
            self._connection = guarded(lambda: duckdb.connect(":memory:", config=config))
        else:
            if not isinstance(connection, duckdb.DuckDBPyConnection):
                raise ParameterError(f"connection must be a DuckDB connection. Got a {type(connection).__name__}.")
            _refuse_transaction(connection)
            self._connection = guarded(connection.cursor)
        with _live_lock:
            _live.add(self)
        for setting in _SESSION:
            self._execute(setting, None, _nothing)

    def attach(self, path: Path, name: str, writable: bool = False) -> None:
        mode = "(READ_WRITE)" if writable else "(READ_ONLY)"
        words = ("ATTACH", text(str(path)).sql(dialect=DIALECT), "AS", ident(name).sql(dialect=DIALECT), mode)
        self._execute(" ".join(words), None, _nothing)
        self._attached.append(name)

    def views(self, catalog: str) -> set[tuple[str, str]]:
        listing = exp.Table(this=exp.Anonymous(this="duckdb_views"))
        here = exp.EQ(this=exp.column("database_name"), expression=text(catalog))
        found = self.rows(exp.select("schema_name", "view_name").from_(listing).where("NOT internal").where(here))
        return {(str(schema), str(name)) for schema, name in found}

    def ask_apart(self, path: Path, sql: str, *, read: bool, check: Callable[[list[str]], None]) -> exp.Query:
        # Other sessions of the caller's database see what is attached, and other engines name theirs in the same way.
        name = f"{self.fresh('rows')}_{secrets.token_hex(4)}"
        file = self.scratch() / f"{name}.duckdb"
        limit = self.memory_limit()
        apart = DuckDBEngine(
            progress=self.progress,
            memory_limit=f"{limit}B" if limit is not None else None,
            threads=self.threads(),
            temp_directory=self.scratch(),
        )
        # A database file, not Arrow or Parquet: no type of a column is changed on the way.
        with contextlib.closing(apart):
            self._apart = apart
            try:
                apart.attach(path, _THEIRS)
                apart.attach(file, _COPY, writable=True)
                apart.confine()
                apart.use(_THEIRS)
                check(apart.statement_columns(sql))
                apart.copy_rows(sql, read=read)
            finally:
                self._apart = None
        self.attach(file, name)
        return exp.select("*").from_(table(_ROWS, schema="main", catalog=name))

    def confine(self) -> None:
        """Let no further file be touched but those that are attached and the spill; this cannot be taken back."""
        # DuckDB adds both to what is allowed when it is told so: in any other order they would be shut out.
        self._execute("SET enable_external_access = false", None, _nothing)

    def copy_rows(self, sql: str, *, read: bool) -> None:
        """Copy the rows of a statement into the attached copy, or its columns alone."""
        (statement,) = guarded(lambda: self._connection.extract_statements(sql))
        place = table(_ROWS, schema="main", catalog=_COPY).sql(dialect=DIALECT)
        words = ("CREATE TABLE", place, "AS", statement.query, *(() if read else ("WITH NO DATA",)))
        self._execute(" ".join(words), None, _nothing)

    def use(self, name: str) -> None:
        self._execute(" ".join(("USE", ident(name).sql(dialect=DIALECT))), None, _nothing)

    def run(self, statement: exp.Expr, params: Mapping[str, Any] | None = None) -> None:
        self._execute(statement, params, _nothing)

    def rows(self, statement: exp.Expr, params: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        return self._execute(statement, params, lambda result: result.fetchall())

    def row(self, statement: exp.Expr, params: Mapping[str, Any] | None = None) -> tuple[Any, ...]:
        (only,) = self.rows(statement, params)
        return only

    def arrow(self, statement: exp.Expr, params: Mapping[str, Any] | None = None) -> pa.Table:
        sql = self._logged(statement)
        with self._watched():
            return guarded(lambda: self._connection.sql(sql, params=dict(params or {})).to_arrow_table())

    def reader(
        self,
        statement: exp.Expr,
        params: Mapping[str, Any] | None = None,
        batch: int = 100_000,
        private: bool = False,
    ) -> pa.RecordBatchReader:
        # A cursor of its own: a stream that is read half would block this connection. But it sees no private tables.
        cursor = self._connection if private else guarded(self._connection.cursor)
        sql = self._logged(statement)
        return guarded(lambda: cursor.sql(sql, params=dict(params or {})).to_arrow_reader(batch))

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        self._execute("BEGIN TRANSACTION", None, _nothing)
        self._settings = {}
        try:
            yield
        except BaseException:
            with contextlib.suppress(DuckanonError):
                self._execute("ROLLBACK", None, _nothing)
            raise
        finally:
            self._settings = None
        self._execute("COMMIT", None, _nothing)

    def create(self, name: str, select: exp.Query, params: Mapping[str, Any] | None = None) -> int:
        (rows,) = self.row(create_table(name, select), params)
        return int(rows)

    def create_file(self, name: str, select: exp.Query, params: Mapping[str, Any] | None = None) -> int:
        path = self.scratch() / f"{name}.parquet"
        # Written once, read a few times, with little memory: in small groups, packed fast rather than tight.
        how: dict[str, str | int] = {"format": "parquet", "row_group_size": _ROW_GROUP // 4, "compression": "lz4_raw"}
        (rows,) = self.row(copy_to(select, str(path), how), params)
        self.create_as(name, self.parquet([path]).sql(dialect=DIALECT), view=True)
        self._files[name] = path
        return int(rows)

    def scratch(self) -> Path:
        if self._spill is None:
            self._spill = PrivateFolder()
        return self._spill.path

    def create_enum(self, name: str, texts: exp.Query) -> None:
        words = (
            "CREATE TEMPORARY TYPE",
            ident(name).sql(dialect=DIALECT),
            "AS ENUM (",
            texts.sql(dialect=DIALECT),
            ")",
        )
        self._execute(" ".join(words), None, _nothing)

    def later(self, name: str, make: Callable[[], object]) -> None:
        self._later[name] = make

    def drop(self, *names: str) -> None:
        for name in names:
            if self._later.pop(name, None) is not None:
                continue
            kind = "VIEW" if name in self._views else "TABLE"
            private = table(name, catalog="temp", schema="main").sql(dialect=DIALECT)
            self._execute(" ".join(("DROP", kind, "IF EXISTS", private)), None, _nothing)
            self._views.discard(name)
            if name in self._files:
                self._files.pop(name).unlink(missing_ok=True)

    def fresh(self, stem: str) -> str:
        return f"duckanon_{stem}_{next(self._counter)}"

    def columns(self, relation: exp.Query) -> list[Column]:
        return [Column(row[0], row[1]) for row in self.rows(exp.Describe(this=relation))]

    def register(self, name: str, data: object) -> None:
        guarded(lambda: self._connection.register(name, data))
        self._registered.append(name)

    def unregister(self, name: str) -> None:
        guarded(lambda: self._connection.unregister(name))
        self._registered.remove(name)

    def write_parquet(self, select: exp.Query, path: Path, params: Mapping[str, Any] | None = None) -> None:
        self.run(copy_to(select, str(path), {"format": "parquet", "row_group_size": _ROW_GROUP}), params)

    def parquet(self, paths: Sequence[Path]) -> exp.Query:
        source = scan("read_parquet", [_literal_path(p) for p in paths], {"hive_partitioning": False})
        return exp.select("*").from_(source)

    def tables(self) -> set[tuple[str, ...]]:
        found: set[tuple[str, ...]] = set()
        for function, column in (("duckdb_tables", "table_name"), ("duckdb_views", "view_name")):
            listing = exp.Table(this=exp.Anonymous(this=function))
            query = exp.select("database_name", "schema_name", column).from_(listing).where("NOT internal")
            for catalog, schema, name in self.rows(query):
                found |= {(name,), (schema, name), (catalog, name), (catalog, schema, name)}
        return found

    def statement_kind(self, sql: str) -> tuple[int, str]:
        statements = guarded(lambda: self._connection.extract_statements(sql))
        return len(statements), statements[0].type.name if statements else ""

    def statement_columns(self, sql: str) -> list[str]:
        (statement,) = guarded(lambda: self._connection.extract_statements(sql))
        words = ("DESCRIBE", statement.query)
        return [str(row[0]) for row in self._execute(" ".join(words), None, lambda result: result.fetchall())]

    def create_as(self, name: str, sql: str, view: bool = False) -> None:
        (statement,) = guarded(lambda: self._connection.extract_statements(sql))
        kind = "VIEW" if view else "TABLE"
        self._views |= {name} if view else set()
        words = ("CREATE OR REPLACE TEMPORARY", kind, ident(name).sql(dialect=DIALECT), "AS", statement.query)
        self._execute(" ".join(words), None, _nothing)

    def setting(self, name: str) -> str:
        """Return the value of a setting; within a snapshot it is asked for once."""
        known = {} if self._settings is None else self._settings
        if name not in known:
            asked = exp.Anonymous(this="current_setting", expressions=[exp.Literal.string(name)])
            (value,) = self.row(exp.select(asked))
            known[name] = str(value)
        return known[name]

    def memory_limit(self) -> int | None:
        try:
            return size_in_bytes(self.setting("memory_limit"))
        except ParameterError:
            return None

    def array_limit(self) -> int | None:
        whole = self._whole if self._whole is not None else self.memory_limit()
        return None if whole is None else whole // 4

    def is_crowded_by(self, size: int) -> bool:
        limit = self.memory_limit()
        return limit is not None and size > limit // 4 and self.keeps_order()

    def threads(self) -> int:
        return max(1, int(self.setting("threads")))

    def keeps_order(self) -> bool:
        return self.setting("preserve_insertion_order").lower() in ("true", "1")

    def interrupt(self) -> None:
        with contextlib.suppress(duckdb.Error):
            self._connection.interrupt()
        apart = self._apart
        if apart is not None:
            apart.interrupt()

    def close(self) -> None:
        self._later.clear()
        with contextlib.suppress(duckdb.Error):
            for name in self._registered:
                self._connection.unregister(name)
        # What is attached is seen by all sessions of the caller's database.
        for name in self._attached:
            with contextlib.suppress(duckdb.Error):
                self._connection.execute(" ".join(("DETACH", ident(name).sql(dialect=DIALECT))))
        with contextlib.suppress(duckdb.Error):
            self._connection.close()
        if self._spill is not None:
            self._spill.close()

    def _logged(self, statement: exp.Expr | str) -> str:
        sql = statement if isinstance(statement, str) else statement.sql(dialect=DIALECT, copy=False)
        if self._later:
            self._make(_PRIVATE.findall(sql))
        _sql_log.debug("%s", sql)
        return sql

    def _make(self, names: Sequence[str]) -> None:
        """Make those tables that were left for later."""
        with self._making:
            for name in names:
                make = self._later.pop(name, None)
                if make is None:
                    continue
                try:
                    make()
                except BaseException:
                    self._later[name] = make
                    raise

    def _execute(
        self,
        statement: exp.Expr | str,
        params: Mapping[str, Any] | None,
        fetch: Callable[[duckdb.DuckDBPyConnection], T],
    ) -> T:
        sql = self._logged(statement)
        with self._watched():
            return guarded(lambda: fetch(self._connection.execute(sql, dict(params) if params else None)))

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Report the database's own progress from a second thread while a statement runs."""
        if self.progress.listener is None:
            yield
            return
        done = threading.Event()

        def poll() -> None:
            while not done.wait(_POLL_SECONDS):
                with contextlib.suppress(duckdb.Error):
                    percent = self._connection.query_progress()
                    if percent > 0:
                        self.progress.fraction(percent / 100)

        thread = threading.Thread(target=poll, daemon=True)
        try:
            # An interruption may come while it starts, too: it must not go on with a connection that nobody closes.
            thread.start()
            yield
        finally:
            done.set()
            with contextlib.suppress(RuntimeError):
                thread.join()


def _refuse_transaction(connection: duckdb.DuckDBPyConnection) -> None:
    """Raise where the caller has a transaction open: a cursor does not see what it wrote.

    Outside of one, every statement is a transaction of its own and has another id.
    """
    query = exp.select(exp.Anonymous(this="txid_current")).sql(dialect=DIALECT)
    first, second = (guarded(lambda: connection.execute(query).fetchall()) for _ in range(2))
    if first == second:
        raise DataError(
            "The connection has an open transaction, and only committed rows are anonymized: COMMIT or ROLLBACK first."
        )


def interrupt_all() -> None:
    """Interrupt the statements that engines of this process run now; safe from any thread."""
    with _live_lock:
        engines = list(_live)
    for engine in engines:
        engine.interrupt()


def _nothing(result: duckdb.DuckDBPyConnection) -> None:
    """Finish a statement whose result nobody wants."""
    result.fetchall()


def _literal_path(path: Path) -> str:
    """Return a path in which no character is taken for a pattern."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in str(path))
