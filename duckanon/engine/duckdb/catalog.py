"""The caller's connection: its state, errors without data, where names are looked up, and which tables there are."""

from __future__ import annotations

import contextlib
import re
import secrets
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import duckdb
from sqlglot import exp

from duckanon.engine.sql.relations import DIALECT, builtin, ident, table, text
from duckanon.errors import AccessError, DataError, DuckanonError, EngineError, ParameterError, ResourceError

if TYPE_CHECKING:
    from duckanon.engine.duckdb.engine import DuckDBEngine


T = TypeVar("T")

# Errors whose text names files, tables and columns only; every other text may quote a cell and is withheld.
_OPEN_ERRORS = (
    duckdb.CatalogException,
    duckdb.BinderException,
    duckdb.IOException,
    duckdb.ConnectionException,
)


def clean_error(error: duckdb.Error) -> DuckanonError:
    """Return an error that says what failed without quoting data."""
    kind = type(error).__name__
    if isinstance(error, duckdb.ConnectionException) and "closed" in str(error):
        return EngineError(
            "The connection is closed: a release, or the database it works in, cannot be used after that."
        )
    if isinstance(error, duckdb.IOException) and "No space left" in str(error):
        return ResourceError("No space left on device. Nothing was published.")
    if isinstance(error, duckdb.OutOfMemoryException) or str(error).startswith("Out of Memory Error"):
        return ResourceError(f"DuckDB: {str(error).strip().splitlines()[0]}")
    if isinstance(error, duckdb.PermissionException):
        # The path that was asked for may come from a cell.
        return AccessError(
            "The statement reads or writes a file, an address or another database that the settings of its database "
            "(enable_external_access, allowed_paths) do not allow."
        )
    if isinstance(error, _OPEN_ERRORS):
        first = str(error).strip().splitlines()[0]
        return EngineError(f"DuckDB: {first}")
    if isinstance(error, duckdb.ParserException | duckdb.SyntaxException):
        # Our own statements can be parsed: this is the user's query.
        return ParameterError(
            "The query is not SQL that DuckDB can parse (its message is withheld: it may quote data)."
        )
    if isinstance(error, duckdb.InterruptException):
        return ResourceError("DuckDB: interrupted.")
    if isinstance(error, duckdb.ConversionException | duckdb.InvalidInputException | duckdb.OutOfRangeException):
        return DataError(
            f"DuckDB could not read or convert a value ({kind}; its message is withheld: it may quote data)."
        )
    return EngineError(f"DuckDB: {kind} (its message is withheld: it may quote data).")


def guarded(action: Callable[[], T]) -> T:
    """Run an action; turn the database's errors into those of ``errors``.

    Raised outside the handler, so that the original, which may quote data, is not even left as the error's context.
    """
    try:
        return action()
    except duckdb.Error as error:
        failure: BaseException = clean_error(error)
    except RuntimeError as error:
        # What the client raises when Ctrl-C arrives while a statement runs.
        if str(error) != "Query interrupted":
            raise
        failure = KeyboardInterrupt()
    raise failure


_IDLE = str(2**64 - 1)
_PARTS = re.compile(r'"((?:[^"]|"")*)"|([^",.]+)|([,.])')
# One connection may be used by several threads: one at a time asks and takes a cursor.
_asking = threading.Lock()


@dataclass(frozen=True)
class Caller:
    """A cursor of the caller's connection, and where the caller's unqualified names are looked up."""

    cursor: duckdb.DuckDBPyConnection
    search_path: str


def cursor_of(connection: object) -> Caller:
    """Return a cursor of a connection; a transaction that is open on it is refused, as a cursor does not see its rows.

    The state is read from the column names of a statement that is bound and never run, so that a half-read result of
    the caller is not lost. While there is one, DuckDB does not distinguish its own transaction from one that the caller
    began, and committed rows are read.
    """
    if not isinstance(connection, duckdb.DuckDBPyConnection):
        raise ParameterError(f"connection must be a DuckDB connection. Got a {type(connection).__name__}.")
    with _asking:
        try:
            first, second = _state(connection), _state(connection)
        except EngineError as error:
            if "TransactionException" not in str(error):
                raise
            raise DataError("The connection has an open transaction that failed: ROLLBACK first.") from None
        if first[:2] == second[:2] and second[1] == _IDLE:
            raise DataError(
                "The connection has an open transaction, and only committed rows are anonymized: COMMIT or ROLLBACK "
                "first."
            )
        return Caller(guarded(connection.cursor), bytes.fromhex(second[2]).decode())


def _state(connection: duckdb.DuckDBPyConnection) -> tuple[str, str, str]:
    """Return the ids of transaction and query, and the search path in hexadecimal digits."""
    path = builtin("hex", builtin("current_setting", text("search_path")))
    asked = [builtin("current_transaction_id"), text(" "), builtin("current_query_id"), text(" "), path]
    answer = builtin("concat", text('SELECT 1 AS "'), *asked, text('"'))
    query = exp.select("*").from_(exp.Table(this=builtin("query", answer))).sql(dialect=DIALECT)
    (name,) = guarded(lambda: connection.sql(query).columns)
    transaction, number, digits = name.split(" ")
    return transaction, number, digits


def write_path(entries: Iterable[Sequence[str]]) -> str:
    """Return the search path of (catalog, schema) pairs."""
    return ",".join(".".join(ident(part).sql(dialect=DIALECT) for part in entry) for entry in entries)


def parse_path(setting: str) -> list[tuple[str, ...]]:
    """Return the entries of a search path as DuckDB writes it: (catalog, schema), or one of the two.

    Examples
    --------
    >>> parse_path('memory."a, ""b",other.main')
    [('memory', 'a, "b'), ('other', 'main')]
    """
    entries: list[list[str]] = [[]]
    for quoted, plain, mark in _PARTS.findall(setting):
        if mark == ",":
            entries.append([])
        elif not mark:
            entries[-1].append(plain or quoted.replace('""', '"'))
    return [tuple(entry) for entry in entries if entry]


MACROS = "duckanon_sql"
"""The database of the macros that duckanon itself makes."""
_FOREIGN, _COPY, _ROWS = "duckanon_foreign", "duckanon_copy", "rows"


class DuckDBCatalog:
    """What an engine knows of the databases that its caller sees.

    ``path`` is the caller's search path. ``shared`` says that the database is the caller's: unqualified names are then
    looked up in an empty database of the engine's own, so that no macro of the caller is taken for a function.
    """

    def __init__(self, engine: DuckDBEngine, path: str, shared: bool) -> None:
        # The engine owns its catalog: without a cycle, an engine that was not closed is freed with its last reference.
        self._engine: DuckDBEngine = weakref.proxy(engine)
        self._shared = shared
        self._attached: list[str] = []
        (database,) = engine.row(exp.select(builtin("current_database")))
        self._first = str(database)
        self.search_path(path)
        self.home = self._first
        """The database in which statements of the engine look up unqualified names."""

    def make_home(self) -> None:
        """Look up unqualified names in an empty database if the database is shared: ``home_words`` detaches it."""
        if self._shared:
            self.home = f"duckanon_{secrets.token_hex(8)}"
            self._engine.execute(" ".join(("ATTACH ':memory:' AS", _quoted(self.home), "(READ_WRITE)")))
        self.look_up_in(None)

    # Names

    def search_path(self, setting: str) -> None:
        """Look up the caller's names where a search path says, as DuckDB writes it; an empty one is the usual place."""
        listing = exp.Table(this=builtin("duckdb_schemas"))
        rows = self._engine.rows(exp.select("database_name", "schema_name").from_(listing))
        schemas = {(str(catalog), str(schema)) for catalog, schema in rows}
        entries = []
        for parts in parse_path(setting):
            # One name is a schema of the first database, or another database.
            whole = parts if len(parts) > 1 else (self._first, *parts)
            entries.append(whole if len(parts) > 1 or whole in schemas else (*parts, "main"))
        self._path = write_path(entries or [(self._first, "main")])

    def look_up_in(self, path: str | None) -> None:
        """Look up unqualified names where a search path says; without one, in the engine's own database."""
        given = path or write_path([(self.home, "main")])
        setting = exp.EQ(this=exp.var("search_path"), expression=text(given))
        self._engine.run(exp.Set(expressions=[exp.SetItem(this=setting)]))

    @contextlib.contextmanager
    def _as_caller(self) -> Iterator[None]:
        """Look up the names in a statement of the caller where their connection does."""
        self.look_up_in(self._path)
        try:
            yield
        finally:
            # Nothing can be set in a failed transaction: the rollback sets it.
            with contextlib.suppress(DuckanonError):
                self.look_up_in(None)

    def use(self, name: str) -> None:
        self._path = write_path([(name, "main")])

    def database(self) -> str:
        return parse_path(self._path)[0][0]

    def place(self, name: str) -> exp.Table:
        catalog, schema = parse_path(self._path)[0][:2]
        return table(name, schema=schema, catalog=catalog)

    # Tables

    def tables(self) -> set[tuple[str, ...]]:
        found: set[tuple[str, ...]] = set()
        for function, column in (("duckdb_tables", "table_name"), ("duckdb_views", "view_name")):
            query = exp.select("database_name", "schema_name", column).from_(_listing(function)).where("NOT internal")
            for catalog, schema, name in self._engine.rows(query):
                found |= {(name,), (schema, name), (catalog, name), (catalog, schema, name)}
        return found

    def find(self, *parts: str) -> exp.Table | None:
        by_lower_case = {_lowered(names): names for names in self.tables() if len(names) == 3}
        path = parse_path(self._path)
        places: list[tuple[str, ...]] = []
        if len(parts) == 1:
            places = [(*entry, *parts) for entry in path]
        elif len(parts) == 2:
            catalogs = dict.fromkeys([*(entry[0] for entry in path), self._first])
            places = [(catalog, *parts) for catalog in catalogs]
            whole = (parts[0], "main", parts[1])
            if any(_lowered(place) in by_lower_case for place in places) and _lowered(whole) in by_lower_case:
                raise DataError(f"{'.'.join(parts)!r} means two tables: give its database, its schema and its name.")
            places.append(whole)
        elif len(parts) == 3:
            places = [parts]
        for place in places:
            names = by_lower_case.get(_lowered(place))
            if names is not None:
                catalog, schema, name = names
                return table(name, schema=schema, catalog=catalog)
        return None

    def has_schema(self, name: str) -> bool:
        schemas = exp.select("schema_name").from_(_listing("duckdb_schemas"))
        return bool(self._engine.rows(schemas.where(_is("schema_name", name))))

    def comment(self, catalog: str, schema: str, name: str) -> str | None:
        query = exp.select("comment").from_(_listing("duckdb_tables"))
        for column, value in (("database_name", catalog), ("schema_name", schema), ("table_name", name)):
            query = query.where(_is(column, value))
        rows = self._engine.rows(query)
        return str(rows[0][0] or "") if rows else None

    def views(self, catalog: str) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        for function, column, which in (
            ("duckdb_views", "view_name", "NOT internal"),
            ("duckdb_tables", "table_name", "sql LIKE '% GENERATED ALWAYS AS%'"),
        ):
            query = exp.select("schema_name", column).from_(_listing(function)).where(which)
            rows = self._engine.rows(query.where(_is("database_name", catalog)))
            found |= {(str(schema), str(name)) for schema, name in rows}
        return found

    def has_macros(self) -> bool:
        query = exp.select(exp.Count(this=exp.Star())).from_(_listing("duckdb_functions"))
        query = query.where("NOT internal AND function_type LIKE '%macro'")
        ours = [exp.Literal.string(name) for name in (MACROS, "temp")]
        theirs = exp.Not(this=exp.In(this=exp.column("database_name"), expressions=ours))
        (count,) = self._engine.row(query.where(theirs))
        return bool(count)

    # Statements of the caller

    def statement_kind(self, sql: str) -> tuple[int, str]:
        statements = self._engine.parsed(sql)
        return len(statements), statements[0].type.name if statements else ""

    def statement_columns(self, sql: str) -> list[str]:
        (statement,) = self._engine.parsed(sql)
        with self._as_caller():
            return [str(row[0]) for row in self._engine.execute(" ".join(("DESCRIBE", statement.query)))]

    def create_as(self, name: str, sql: str, empty: bool = False) -> None:
        self._create(("CREATE OR REPLACE TEMPORARY TABLE", _quoted(name)), sql, empty)

    def _create(self, words: tuple[str, ...], sql: str, empty: bool) -> None:
        (statement,) = self._engine.parsed(sql)
        # The statement may end in a comment.
        query = "\n".join((statement.query.rstrip().removesuffix(";"), "WITH NO DATA" if empty else ""))
        with self._as_caller():
            self._engine.execute(" ".join((*words, "AS", query)))

    # Databases

    def attach(self, path: Path, name: str, writable: bool = False) -> None:
        mode = "(READ_WRITE)" if writable else "(READ_ONLY)"
        self._engine.execute(" ".join(("ATTACH", text(str(path)).sql(dialect=DIALECT), "AS", _quoted(name), mode)))
        self._attached.append(name)

    def checkpoint(self, name: str) -> None:
        self._engine.run(exp.Command(this="CHECKPOINT", expression=_quoted(name)))

    def ask_apart(self, path: Path, sql: str, *, read: bool, check: Callable[[list[str]], None]) -> exp.Query:
        engine = self._engine
        # Other sessions of the caller's database see what is attached, and other engines name theirs in the same way.
        name = f"{engine.fresh('rows')}_{secrets.token_hex(4)}"
        file = engine.scratch() / f"{name}.duckdb"
        # A database file, not Arrow or Parquet: no type of a column is changed on the way.
        with engine.apart() as apart:
            catalog = apart.catalog
            catalog.attach(path, _FOREIGN)
            catalog.attach(file, _COPY, writable=True)
            # Attached files stay accessible; in the other order they could not be attached.
            apart.execute("SET enable_external_access = false")
            catalog.use(_FOREIGN)
            check(catalog.statement_columns(sql))
            place = table(_ROWS, schema="main", catalog=_COPY).sql(dialect=DIALECT)
            catalog._create(("CREATE TABLE", place), sql, empty=not read)
        self.attach(file, name)
        return exp.select("*").from_(table(_ROWS, schema="main", catalog=name))

    def attached_words(self) -> list[tuple[str, ...]]:
        """Return the statements that detach what was attached: all sessions of the caller's database see it."""
        return [("DETACH", _quoted(name)) for name in self._attached]

    def home_words(self) -> list[tuple[str, ...]]:
        """Return the last statements of a session, which detach the engine's own database from the caller's."""
        if not self._shared:
            return []
        # A database in use, and be it by this session, cannot be detached.
        return [("USE", _quoted(self._first)), ("DETACH DATABASE IF EXISTS", _quoted(self.home))]


def _quoted(name: str) -> str:
    return ident(name).sql(dialect=DIALECT)


def _listing(function: str) -> exp.Table:
    return exp.Table(this=exp.Anonymous(this=function))


def _is(column: str, value: str) -> exp.Expr:
    return exp.EQ(this=exp.column(column), expression=text(value))


def _lowered(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.lower() for part in parts)


__all__ = ["MACROS", "Caller", "DuckDBCatalog", "clean_error", "cursor_of", "guarded", "parse_path", "write_path"]
