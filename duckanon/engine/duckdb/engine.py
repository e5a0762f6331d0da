"""DuckDB: a cursor of its own on the caller's database, or a private database in memory that spills to disk."""

from __future__ import annotations

import contextlib
import itertools
import logging
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
from sqlglot import exp

from duckanon.engine.base import remember
from duckanon.engine.duckdb.catalog import DuckDBCatalog, cursor_of, guarded
from duckanon.engine.process import (
    PrivateFolder,
    allowed_threads,
    data_folder,
    is_within,
    keep_little,
    share_of_database,
    size_in_bytes,
    sweep,
)
from duckanon.engine.sql.relations import DIALECT, Column, builtin, copy_to, create_table, ident, scan, table, text
from duckanon.errors import DataError, DuckanonError, ParameterError, ResourceError, UnsupportedError
from duckanon.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.sql.relations import Dialect, TableName

T = TypeVar("T")
_sql_log = logging.getLogger("duckanon.sql")
_POLL_SECONDS = 0.2
_ROW_GROUP = 122_880

# Values compare by their bytes and days are cut in UTC, whatever the caller's session says, and no Python variable is
# taken for a table.
_SESSION: dict[str, str | bool] = {
    "default_collation": "",
    "TimeZone": "UTC",
    "python_enable_replacements": False,
    "enable_progress_bar": True,
    "enable_progress_bar_print": False,
}
_PROGRESS = ("enable_progress_bar", "enable_progress_bar_print")
_NEEDED = {"default_collation": {""}, "TimeZone": {"UTC", "Etc/UTC"}}
"""What must hold where settings are locked and cannot be set."""

_BEGIN = (
    "BEGIN TRANSACTION",
    exp.select(builtin("txid_current")).sql(dialect=DIALECT),
    exp.select(exp.Literal.number(1)).from_(exp.Table(this=builtin("duckdb_schemas"))).sql(dialect=DIALECT),
)
"""Begin a transaction, and read from the first database and then from all."""


class DuckDBDialect:
    """Statements as DuckDB writes them: they are built with its own functions."""

    name = DIALECT

    def sql(self, statement: exp.Expr) -> str:
        """Return the text of a statement."""
        return statement.sql(dialect=DIALECT, copy=False)


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
    at_once : bool
        Read the caller's tables as they are now, all in one state; an open transaction of the connection is not
        refused.
    memory : str, optional
        What the whole process may use, such as "1GB": the private database gets a part of it, arrays another.
    """

    name = "duckdb"
    dialect: Dialect = DuckDBDialect()
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
        at_once: bool = False,
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
        self._settings: dict[str, str] | None = None
        self._catalog: DuckDBCatalog | None = None
        self._apart: DuckDBEngine | None = None
        self._cancelled = False
        self._depth = 0
        self._taken: set[str] | None = None
        path = ""
        if connection is None:
            sweep(temp_directory or Path(tempfile.gettempdir()))
            self._spill = PrivateFolder(temp_directory)
            config: dict[str, Any] = {
                "temp_directory": str(self._spill.path),
                "python_enable_replacements": False,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            }
            if int(duckdb.__version__.split(".")[0]) >= 2:
                # DuckDB 2.0.0 now and then waits for ever for its own writers when a COPY is interrupted.
                config["async_threads"] = 0
            if memory_limit is None and self._whole is not None:
                memory_limit = f"{share_of_database(self._whole)}B"
            if memory_limit is not None:
                config["memory_limit"] = memory_limit
            threads = threads if threads is not None else allowed_threads()
            if threads is not None:
                config["threads"] = threads
            self._connection = guarded(lambda: duckdb.connect(":memory:", config=config))
        else:
            if at_once:
                self._connection = guarded(connection.cursor)
                self._start()
            else:
                caller = cursor_of(connection)
                self._connection, path = caller.cursor, caller.search_path
        remember(self)
        try:
            self._settle(path, shared=connection is not None)
        except BaseException:
            self.close()
            raise

    def _settle(self, path: str, shared: bool) -> None:
        """Set up the session: values compare by their bytes, and names mean the database's own functions."""
        (locked,) = self.row(exp.select(builtin("current_setting", text("lock_configuration"))))
        for name, value in _SESSION.items():
            self._set(name, value, bool(locked))
        # Known before it attaches anything: if it is interrupted, the engine detaches it.
        self._catalog = DuckDBCatalog(self, path, shared)
        self._catalog.make_home()

    @property
    def catalog(self) -> DuckDBCatalog:
        """The databases that the caller sees."""
        assert self._catalog is not None
        return self._catalog

    def _set(self, name: str, value: str | bool, locked: bool) -> None:
        setting = exp.EQ(this=exp.var(name), expression=exp.convert(value))
        if not locked:
            # In a notebook without ipywidgets DuckDB has no progress bar, and refuses to set one up or to hide it.
            refused = contextlib.suppress(DataError) if name in _PROGRESS else contextlib.nullcontext()
            with refused:
                self.run(exp.Set(expressions=[exp.SetItem(this=setting)]))
        elif name in _NEEDED and self.setting(name) not in _NEEDED[name]:
            raise UnsupportedError(
                f"The settings of this database are locked (lock_configuration), and the work needs {name} = "
                f"{value!r}: set that before they are locked, or anonymize the rows elsewhere."
            )

    def run(self, statement: exp.Expr, params: Mapping[str, Any] | None = None) -> None:
        self._execute(statement, params, _nothing)

    def rows(self, statement: exp.Expr, params: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        return self._execute(statement, params, lambda result: result.fetchall())

    def row(self, statement: exp.Expr, params: Mapping[str, Any] | None = None) -> tuple[Any, ...]:
        (only,) = self.rows(statement, params)
        return only

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement that is a text, and return its rows."""
        return self._execute(sql, None, lambda result: result.fetchall())

    def parsed(self, sql: str) -> list[duckdb.Statement]:
        """Return the statements of a text; nothing is run."""
        return guarded(lambda: self._connection.extract_statements(sql))

    @contextlib.contextmanager
    def apart(self) -> Iterator[DuckDBEngine]:
        """Yield an engine on a private database with the same limits, which is interrupted with this one."""
        limit = self.memory_limit()
        apart = DuckDBEngine(
            progress=self.progress,
            memory_limit=f"{limit}B" if limit is not None else None,
            threads=self.threads(),
            temp_directory=self.scratch(),
        )
        with contextlib.closing(apart):
            self._apart = apart
            try:
                yield apart
            finally:
                self._apart = None

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
        cursor = self._connection if private else self._beside()
        sql = self._logged(statement)
        return guarded(lambda: cursor.sql(sql, params=dict(params or {})).to_arrow_reader(batch))

    def _beside(self) -> duckdb.DuckDBPyConnection:
        """Return another cursor, which sees no private tables, and no function of the caller either."""
        cursor = guarded(self._connection.cursor)
        use = " ".join(("USE", ident(self.catalog.home).sql(dialect=DIALECT)))
        guarded(lambda: cursor.execute(use).fetchall())
        return cursor

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        if self._depth:
            # Within another one: the same state, and its end decides.
            yield
            return
        self._start()
        self._settings = {}
        try:
            yield
        except BaseException:
            with contextlib.suppress(DuckanonError):
                self._execute("ROLLBACK", None, _nothing)
                self.catalog.look_up_in(None)
            raise
        finally:
            self._settings, self._depth = None, 0
        self._execute("COMMIT", None, _nothing)

    def _start(self) -> None:
        """Begin a transaction and read from every database: DuckDB shows each as it was when first read."""
        # Nothing in between: what is committed meanwhile would be seen by us and not by the calling statement.
        for words in _BEGIN:
            guarded(lambda words=words: self._connection.execute(words).fetchall())  # type: ignore[misc]
        self._depth = 1

    def create(self, name: str, select: exp.Query, params: Mapping[str, Any] | None = None) -> int:
        (rows,) = self.row(create_table(name, select), params)
        return int(rows)

    def create_file(self, name: str, select: exp.Query, params: Mapping[str, Any] | None = None) -> int:
        path = self.scratch() / f"{name}.parquet"
        # Written once, read a few times, with little memory: in small groups, packed fast rather than tight.
        how: dict[str, str | int] = {"format": "parquet", "row_group_size": _ROW_GROUP // 4, "compression": "lz4_raw"}
        (rows,) = self.row(copy_to(select, str(path), how), params)
        self.create_view(name, self.parquet([path]))
        self._files[name] = path
        return int(rows)

    def scratch(self) -> Path:
        if self._spill is None:
            self._spill = PrivateFolder()
        return self._spill.path

    def create_view(self, name: str, select: exp.Query) -> None:
        words = ("CREATE OR REPLACE TEMPORARY VIEW", ident(name).sql(dialect=DIALECT), "AS")
        self._views.add(name)
        self._execute(" ".join((*words, select.sql(dialect=DIALECT))), None, _nothing)

    def create_enum(self, name: str, texts: exp.Query) -> None:
        words = (
            "CREATE TEMPORARY TYPE",
            ident(name).sql(dialect=DIALECT),
            "AS ENUM (",
            texts.sql(dialect=DIALECT),
            ")",
        )
        self._execute(" ".join(words), None, _nothing)

    def drop(self, *names: TableName) -> None:
        for one in names:
            if not isinstance(one, str) and not one.is_made:
                continue
            name = one if isinstance(one, str) else one.name
            if name in self._registered:
                self.unregister(name)
                continue
            kind = "VIEW" if name in self._views else "TABLE"
            private = table(name, catalog="temp", schema="main").sql(dialect=DIALECT)
            self._execute(" ".join(("DROP", kind, "IF EXISTS", private)), None, _nothing)
            self._views.discard(name)
            if name in self._files:
                self._files.pop(name).unlink(missing_ok=True)

    @contextlib.contextmanager
    def forgetting(self) -> Iterator[None]:
        kept, registered, files = self._private(), set(self._registered), set(self._files)
        try:
            yield
        finally:
            # Of a session that was cancelled, everything goes when it is closed.
            with contextlib.suppress(DuckanonError):
                made = {name: kind for name, kind in self._private().items() if name not in kept}
                # A transaction that was rolled back leaves objects and files without their views.
                rest = {*self._registered, *self._files} - registered - files - set(made)
                self.drop(*rest, *(name for name, kind in made.items() if kind != "TYPE"))
                # Types come last: columns of tables have them.
                for name in (name for name, kind in made.items() if kind == "TYPE"):
                    private = table(name, catalog="temp", schema="main").sql(dialect=DIALECT)
                    self._execute(" ".join(("DROP TYPE IF EXISTS", private)), None, _nothing)

    def _private(self) -> dict[str, str]:
        """Return the private views, tables and types of this engine, and which of these each is."""
        kinds = {"VIEW": "view", "TABLE": "table", "TYPE": "type"}
        made: dict[str, str] = {}
        for kind, word in kinds.items():
            own = exp.EQ(this=exp.column("database_name"), expression=text("temp"))
            names = exp.select(f"{word}_name").from_(exp.Table(this=builtin(f"duckdb_{word}s")))
            where = exp.and_(own, exp.Not(this=exp.column("internal")))
            made |= {str(name): kind for (name,) in self.rows(names.where(where))}
        return made

    def fresh(self, stem: str) -> str:
        if self._taken is None:
            # A statement of the caller would read a private table instead of one of its own with that name.
            self._taken = {name.lower() for (name,) in (t for t in self.catalog.tables() if len(t) == 1)}
        while (name := f"duckanon_{stem}_{next(self._counter)}") in self._taken:
            pass
        return name

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

    def may_touch(self, path: str) -> bool:
        if self.setting("enable_external_access").lower() in ("true", "1"):
            return True
        names = ("allowed_directories", "allowed_paths")
        folders, files = self.row(exp.select(*(builtin("current_setting", text(name)) for name in names)))
        # Everybody may read the hierarchies of the package.
        return is_within(path, [*(folders or ()), str(data_folder("hierarchies"))], list(files or ()))

    def attempt(self, statement: exp.Expr) -> list[tuple[Any, ...]] | None:
        # A statement that fails would end the transaction of a snapshot.
        sql = self._logged(statement)
        try:
            with contextlib.closing(self._beside()) as cursor:
                return guarded(lambda: cursor.execute(sql).fetchall())
        except ResourceError:
            raise
        except DuckanonError:
            return None

    def setting(self, name: str) -> str:
        """Return the value of a setting; within a snapshot it is asked for once."""
        known = {} if self._settings is None else self._settings
        if name not in known:
            (value,) = self.row(exp.select(builtin("current_setting", text(name))))
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

    def cancel(self) -> None:
        self._cancelled = True
        self.interrupt()
        apart = self._apart
        if apart is not None:
            apart.cancel()

    def interrupt(self) -> None:
        with contextlib.suppress(duckdb.Error):
            self._connection.interrupt()
        apart = self._apart
        if apart is not None:
            apart.interrupt()

    def close(self) -> None:
        with contextlib.suppress(duckdb.Error):
            for name in self._registered:
                self._connection.unregister(name)
        if self._catalog is not None:
            for words in self._catalog.attached_words():
                with contextlib.suppress(duckdb.Error):
                    self._connection.execute(" ".join(words))
            with contextlib.suppress(duckdb.Error):
                self._connection.rollback()
            with contextlib.suppress(duckdb.Error):
                for words in self._catalog.home_words():
                    self._connection.execute(" ".join(words)).fetchall()
        with contextlib.suppress(duckdb.Error):
            self._connection.close()
        if self._spill is not None:
            self._spill.close()

    def _logged(self, statement: exp.Expr | str) -> str:
        sql = statement if isinstance(statement, str) else self.dialect.sql(statement)
        _sql_log.debug("%s", sql)
        return sql

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
        if self._cancelled:
            raise ResourceError("DuckDB: interrupted.")
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

        # A listener sees the limits of the work, such as its threads.
        thread = threading.Thread(target=copy_context().run, args=(poll,), daemon=True)
        try:
            # An interruption may come while the thread starts: it must not continue on a connection that stays open.
            thread.start()
            yield
        finally:
            done.set()
            with contextlib.suppress(RuntimeError):
                thread.join()


def _nothing(result: duckdb.DuckDBPyConnection) -> None:
    """Run a statement to its end; its result is not needed."""
    result.fetchall()


def _literal_path(path: Path) -> str:
    """Return a path in which no character is taken for a pattern."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in str(path))
