"""DuckDB: a cursor of its own on the caller's database, or a private database in memory that spills to disk."""

from __future__ import annotations

import contextlib
import itertools
import logging
import re
import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
from sqlglot import exp

from duckanon.engine.duckdb.caller import cursor_of, parse_path, write_path
from duckanon.engine.duckdb.guard import guarded
from duckanon.engine.live import remember
from duckanon.engine.memory import keep_little, share_of_database, size_in_bytes
from duckanon.engine.permitted_paths import is_within
from duckanon.engine.private_files import PrivateFolder, data_folder, sweep
from duckanon.engine.sql.relations import DIALECT, Column, builtin, copy_to, create_table, ident, scan, table, text
from duckanon.engine.threads import allowed_threads
from duckanon.errors import DataError, DuckanonError, ParameterError, ResourceError, UnsupportedError
from duckanon.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.sql.relations import TableName

T = TypeVar("T")
_sql_log = logging.getLogger("duckanon.sql")
_POLL_SECONDS = 0.2
_ROW_GROUP = 122_880
_PRIVATE = re.compile(r"duckanon_\w+")
_THEIRS, _COPY, _ROWS = "duckanon_theirs", "duckanon_copy", "rows"

# Values compare by their bytes and days are cut in UTC, whatever the caller's session says, and no Python variable is
# taken for a table.
_SESSION: dict[str, str | bool] = {
    "default_collation": "",
    "TimeZone": "UTC",
    "python_enable_replacements": False,
    "enable_progress_bar": True,
    "enable_progress_bar_print": False,
}
_FUNCTIONS = "duckanon_sql"
_NEEDED = {"default_collation": {""}, "TimeZone": {"UTC", "Etc/UTC"}}
"""What must hold where settings are locked and cannot be set."""

_BEGIN = (
    "BEGIN TRANSACTION",
    exp.select(builtin("txid_current")).sql(dialect=DIALECT),
    exp.select(exp.Literal.number(1)).from_(exp.Table(this=builtin("duckdb_schemas"))).sql(dialect=DIALECT),
)
"""Begin a transaction, and look into the first database and then into all."""


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
        Whether everything that the engine reads of the caller's tables is of one state, that of now; the connection is
        not asked for its transaction.
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
        self._later: dict[str, Callable[[], object]] = {}
        self._settings: dict[str, str] | None = None
        self._making = threading.RLock()
        self._attached: list[str] = []
        self._apart: DuckDBEngine | None = None
        self._depth = 0
        self._taken: set[str] | None = None
        self._shared = connection is not None
        self._home: str | None = None
        self._path = ""
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
                self._connection, self._path = caller.cursor, caller.search_path
        remember(self)
        try:
            self._settle()
        except BaseException:
            self.close()
            raise

    def _settle(self) -> None:
        """Let values compare by their bytes and names mean the database's own functions, whatever the caller made."""
        (locked,) = self.row(exp.select(builtin("current_setting", text("lock_configuration"))))
        for name, value in _SESSION.items():
            self._set(name, value, bool(locked))
        (database,) = self.row(exp.select(builtin("current_database")))
        self._first = str(database)
        self.search_path(self._path)
        if self._shared:
            # Unqualified names of functions are looked up in a database of our own, in which there are none, and then
            # among those of DuckDB: a macro of the caller, or an operator of theirs, is not seen.
            home = f"duckanon_{secrets.token_hex(8)}"
            name = ident(home).sql(dialect=DIALECT)
            self._execute(" ".join(("ATTACH ':memory:' AS", name, "(READ_WRITE)")), None, _nothing)
            self._home = home
        else:
            self._home = str(database)
        self._look_up_in(None)

    def _set(self, name: str, value: str | bool, locked: bool) -> None:
        setting = exp.EQ(this=exp.var(name), expression=exp.convert(value))
        if not locked:
            self.run(exp.Set(expressions=[exp.SetItem(this=setting)]))
        elif name in _NEEDED and self.setting(name) not in _NEEDED[name]:
            raise UnsupportedError(
                f"The settings of this database are locked (lock_configuration), and the work needs {name} = "
                f"{value!r}: set that before they are locked, or anonymize the rows elsewhere."
            )

    def _look_up_in(self, path: str | None) -> None:
        """Look up unqualified names where a search path says; without one, in the engine's own database."""
        assert self._home is not None
        given = path or write_path([(self._home, "main")])
        setting = exp.EQ(this=exp.var("search_path"), expression=text(given))
        self.run(exp.Set(expressions=[exp.SetItem(this=setting)]))

    @contextlib.contextmanager
    def _as_caller(self) -> Iterator[None]:
        """Look up the names in a statement of the caller where their connection does."""
        self._look_up_in(self._path)
        try:
            yield
        finally:
            # In a transaction that failed nothing can be set: whoever rolls it back sets it.
            with contextlib.suppress(DuckanonError):
                self._look_up_in(None)

    def search_path(self, setting: str) -> None:
        """Look up the caller's names where a search path says, as DuckDB writes it; an empty one is the usual place."""
        listing = exp.Table(this=builtin("duckdb_schemas"))
        schemas = {(str(c), str(s)) for c, s in self.rows(exp.select("database_name", "schema_name").from_(listing))}
        entries = []
        for parts in parse_path(setting):
            # One name is a schema of the first database, or another database.
            whole = parts if len(parts) > 1 else (self._first, *parts)
            entries.append(whole if len(parts) > 1 or whole in schemas else (*parts, "main"))
        self._path = write_path(entries or [(self._first, "main")])

    def database(self) -> str:
        return parse_path(self._path)[0][0]

    def attach(self, path: Path, name: str, writable: bool = False) -> None:
        mode = "(READ_WRITE)" if writable else "(READ_ONLY)"
        words = ("ATTACH", text(str(path)).sql(dialect=DIALECT), "AS", ident(name).sql(dialect=DIALECT), mode)
        self._execute(" ".join(words), None, _nothing)
        self._attached.append(name)

    def checkpoint(self, name: str) -> None:
        self.run(exp.Command(this="CHECKPOINT", expression=ident(name).sql(dialect=DIALECT)))

    def views(self, catalog: str) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        for function, column, which in (
            ("duckdb_views", "view_name", "NOT internal"),
            ("duckdb_tables", "table_name", "sql LIKE '% GENERATED ALWAYS AS%'"),
        ):
            listing = exp.Table(this=exp.Anonymous(this=function))
            here = exp.EQ(this=exp.column("database_name"), expression=text(catalog))
            rows = self.rows(exp.select("schema_name", column).from_(listing).where(which).where(here))
            found |= {(str(schema), str(name)) for schema, name in rows}
        return found

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
        # The statement may end in a comment.
        query = "\n".join((statement.query.rstrip().removesuffix(";"), "" if read else "WITH NO DATA"))
        with self._as_caller():
            self._execute(" ".join(("CREATE TABLE", place, "AS", query)), None, _nothing)
        self._taken = None

    def use(self, name: str) -> None:
        self._path = write_path([(name, "main")])

    def place(self, name: str) -> exp.Table:
        catalog, schema = parse_path(self._path)[0][:2]
        return table(name, schema=schema, catalog=catalog)

    def find(self, *parts: str) -> exp.Table | None:
        known = {tuple(p.lower() for p in found): found for found in self.tables() if len(found) == 3}
        path = parse_path(self._path)
        places: list[tuple[str, ...]] = []
        if len(parts) == 1:
            places = [(*entry, *parts) for entry in path]
        elif len(parts) == 2:
            catalogs = dict.fromkeys([*(entry[0] for entry in path), self._first])
            places = [(catalog, *parts) for catalog in catalogs]
            whole = (parts[0], "main", parts[1])
            if any(tuple(p.lower() for p in place) in known for place in places) and _lowered(whole) in known:
                raise DataError(f"{'.'.join(parts)!r} means two tables: give its database, its schema and its name.")
            places.append(whole)
        elif len(parts) == 3:
            places = [parts]
        for place in places:
            found = known.get(_lowered(place))
            if found is not None:
                catalog, schema, name = found
                return table(name, schema=schema, catalog=catalog)
        return None

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
        cursor = self._connection if private else self._beside()
        sql = self._logged(statement)
        return guarded(lambda: cursor.sql(sql, params=dict(params or {})).to_arrow_reader(batch))

    def _beside(self) -> duckdb.DuckDBPyConnection:
        """Return another cursor, which sees no private tables, and no function of the caller either."""
        assert self._home is not None
        cursor = guarded(self._connection.cursor)
        use = " ".join(("USE", ident(self._home).sql(dialect=DIALECT)))
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
                self._look_up_in(None)
            raise
        finally:
            self._settings, self._depth = None, 0
        self._execute("COMMIT", None, _nothing)

    def _start(self) -> None:
        """Begin a transaction, and look into all databases: one is seen as it was at the first look."""
        # Nothing between them: what is committed meanwhile is seen by us and not by a statement that called us.
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

    def later(self, name: str, make: Callable[[], object]) -> None:
        self._later[name] = make

    def drop(self, *names: TableName) -> None:
        for one in names:
            if not isinstance(one, str) and not one.is_made:
                continue
            name = one if isinstance(one, str) else one.name
            if self._later.pop(name, None) is not None:
                continue
            if name in self._registered:
                self.unregister(name)
                continue
            kind = "VIEW" if name in self._views else "TABLE"
            private = table(name, catalog="temp", schema="main").sql(dialect=DIALECT)
            self._execute(" ".join(("DROP", kind, "IF EXISTS", private)), None, _nothing)
            self._views.discard(name)
            if name in self._files:
                self._files.pop(name).unlink(missing_ok=True)

    def fresh(self, stem: str) -> str:
        if self._taken is None:
            # A statement of the caller would read a private table instead of one of its own with that name.
            self._taken = {name.lower() for (name,) in (t for t in self.tables() if len(t) == 1)}
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

    def tables(self) -> set[tuple[str, ...]]:
        found: set[tuple[str, ...]] = set()
        for function, column in (("duckdb_tables", "table_name"), ("duckdb_views", "view_name")):
            listing = exp.Table(this=exp.Anonymous(this=function))
            query = exp.select("database_name", "schema_name", column).from_(listing).where("NOT internal")
            for catalog, schema, name in self.rows(query):
                found |= {(name,), (schema, name), (catalog, name), (catalog, schema, name)}
        return found

    def has_schema(self, name: str) -> bool:
        schemas = exp.select("schema_name").from_(exp.Table(this=exp.Anonymous(this="duckdb_schemas")))
        return bool(self.rows(schemas.where(exp.EQ(this=exp.column("schema_name"), expression=text(name)))))

    def comment(self, catalog: str, schema: str, name: str) -> str | None:
        query = exp.select("comment").from_(exp.Table(this=exp.Anonymous(this="duckdb_tables")))
        for column, value in (("database_name", catalog), ("schema_name", schema), ("table_name", name)):
            query = query.where(exp.EQ(this=exp.column(column), expression=text(value)))
        found = self.rows(query)
        return str(found[0][0] or "") if found else None

    def statement_kind(self, sql: str) -> tuple[int, str]:
        statements = guarded(lambda: self._connection.extract_statements(sql))
        return len(statements), statements[0].type.name if statements else ""

    def statement_columns(self, sql: str) -> list[str]:
        (statement,) = guarded(lambda: self._connection.extract_statements(sql))
        words = ("DESCRIBE", statement.query)
        with self._as_caller():
            return [str(row[0]) for row in self._execute(" ".join(words), None, lambda result: result.fetchall())]

    def may_touch(self, path: str) -> bool:
        if self.setting("enable_external_access").lower() in ("true", "1"):
            return True
        names = ("allowed_directories", "allowed_paths")
        folders, files = self.row(exp.select(*(builtin("current_setting", text(name)) for name in names)))
        # The hierarchies of the package are everybody's.
        return is_within(path, [*(folders or ()), str(data_folder("hierarchies"))], list(files or ()))

    def has_macros(self) -> bool:
        listing = exp.Table(this=exp.Anonymous(this="duckdb_functions"))
        found = (
            exp.select(exp.Count(this=exp.Star())).from_(listing).where("NOT internal AND function_type LIKE '%macro'")
        )
        ours = [exp.Literal.string(name) for name in (_FUNCTIONS, "temp")]
        (count,) = self.row(found.where(exp.Not(this=exp.In(this=exp.column("database_name"), expressions=ours))))
        return bool(count)

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

    def create_as(self, name: str, sql: str, empty: bool = False) -> None:
        (statement,) = guarded(lambda: self._connection.extract_statements(sql))
        # The statement may end in a comment.
        query = "\n".join((statement.query.rstrip().removesuffix(";"), "WITH NO DATA" if empty else ""))
        words = ("CREATE OR REPLACE TEMPORARY TABLE", ident(name).sql(dialect=DIALECT), "AS", query)
        with self._as_caller():
            self._execute(" ".join(words), None, _nothing)

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
            self._leave_home()
        with contextlib.suppress(duckdb.Error):
            self._connection.close()
        if self._spill is not None:
            self._spill.close()

    def _leave_home(self) -> None:
        """Detach the database that was attached for unqualified names; the last statement of the session."""
        if not self._shared or self._home is None:
            return
        home, self._home = ident(self._home).sql(dialect=DIALECT), None
        with contextlib.suppress(duckdb.Error):
            self._connection.rollback()
        # A database in use, and be it by this session, cannot be detached.
        for words in (("USE", ident(self._first).sql(dialect=DIALECT)), ("DETACH DATABASE IF EXISTS", home)):
            self._connection.execute(" ".join(words)).fetchall()

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


def _lowered(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.lower() for part in parts)


def _nothing(result: duckdb.DuckDBPyConnection) -> None:
    """Finish a statement whose result nobody wants."""
    result.fetchall()


def _literal_path(path: Path) -> str:
    """Return a path in which no character is taken for a pattern."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in str(path))
