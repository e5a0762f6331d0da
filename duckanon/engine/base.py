"""What the package asks of a database, and the one place where an engine is chosen and opened."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from duckanon.errors import ParameterError
from duckanon.progress import Listener, Progress

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

    from duckanon.engine.sql.relations import Column, Dialect, TableName

    Statement = exp.Expr
    Params = Mapping[str, Any]


class Engine(Protocol):
    """One private workspace in a database: temporary tables that nobody else sees, and nothing left behind."""

    name: str
    version: str
    dialect: Dialect
    progress: Progress
    writes_used_texts: bool
    """Whether a row group has only those texts of an enumeration that its rows use."""

    def run(self, statement: Statement, params: Params | None = None) -> None:
        """Run a statement and forget its result."""

    def rows(self, statement: Statement, params: Params | None = None) -> list[tuple[Any, ...]]:
        """Return all rows. For results whose size does not grow with the data."""

    def attempt(self, statement: Statement) -> list[tuple[Any, ...]] | None:
        """Return all rows of a statement about what is committed, or None where it fails."""

    def row(self, statement: Statement, params: Params | None = None) -> tuple[Any, ...]:
        """Return the only row."""

    def arrow(self, statement: Statement, params: Params | None = None) -> pa.Table:
        """Return the result as an Arrow table."""

    def reader(
        self, statement: Statement, params: Params | None = None, batch: int = 100_000, private: bool = False
    ) -> pa.RecordBatchReader:
        """Return the result as a stream of Arrow batches; one that reads private tables blocks the engine meanwhile."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Return a context in which all statements read one state of the tables; one within another is the same."""

    def create(self, name: str, select: exp.Query, params: Params | None = None) -> int:
        """Create a private table, replacing one of that name; return how many rows it has."""

    def create_file(self, name: str, select: exp.Query, params: Params | None = None) -> int:
        """As ``create``, but the rows lie in a private file: for what grows with the rows. It is read in their order.

        What is text in a private type is text when it is read again.
        """

    def scratch(self) -> Path:
        """Return a folder that only this user can read, and that goes with the engine."""

    def create_view(self, name: str, select: exp.Query) -> None:
        """Create a private view, which runs nothing yet."""

    def create_enum(self, name: str, texts: exp.Query) -> None:
        """Create a private type whose values are the texts of a query."""

    def drop(self, *names: TableName) -> None:
        """Drop private tables that exist."""

    def forgetting(self) -> AbstractContextManager[None]:
        """Return a context after which everything private is dropped that was made in it."""

    def fresh(self, stem: str) -> str:
        """Return a name that no private table of this engine has."""

    def columns(self, relation: exp.Query) -> list[Column]:
        """Return names and types of a query's columns without running it."""

    def register(self, name: str, data: object) -> None:
        """Make an Arrow object, stream or data frame readable under a name."""

    def unregister(self, name: str) -> None:
        """Forget a registered object."""

    def write_parquet(self, select: exp.Query, path: Path, params: Params | None = None) -> None:
        """Write a query to one Parquet file, in the order of the query, without metadata of its own."""

    def parquet(self, paths: Sequence[Path]) -> exp.Query:
        """Return a query over Parquet files."""

    def memory_limit(self) -> int | None:
        """Return how many bytes the engine may use; None where it does not say."""

    def array_limit(self) -> int | None:
        """Return how many bytes arrays outside the engine may take; None for no limit."""

    def is_crowded_by(self, size: int) -> bool:
        """Say whether a table of so many bytes would leave too little memory, so that a file is better."""

    def threads(self) -> int:
        """Return how many threads the engine may use."""

    def keeps_order(self) -> bool:
        """Say whether the rows of a table are read in the order in which they were written."""

    @property
    def catalog(self) -> Catalog:
        """The databases that the caller sees."""

    def cancel(self) -> None:
        """Interrupt the statement that runs now, and let all later ones fail; safe from any thread."""

    def interrupt(self) -> None:
        """End the statement that runs now, if there is one; safe from any thread."""

    def close(self) -> None:
        """Drop everything private."""


class Catalog(Protocol):
    """The databases that a caller sees: their tables, and statements that the caller wrote."""

    def database(self) -> str:
        """Return the name of the database in which the caller's unqualified names are looked up first."""

    def use(self, name: str) -> None:
        """Make an attached database the one in which the caller's unqualified names are looked up."""

    def place(self, name: str) -> exp.Table:
        """Return where a new table of the caller stands whose name is not qualified."""

    def tables(self) -> set[tuple[str, ...]]:
        """Return (name), (schema, name) and (catalog, schema, name) of all tables and views."""

    def find(self, *parts: str) -> exp.Table | None:
        """Return the table or view that the caller means by (name), (schema, name) or (catalog, schema, name)."""

    def has_schema(self, name: str) -> bool:
        """Say whether a database that this engine sees has a schema of a name; quicker than ``tables``."""

    def comment(self, catalog: str, schema: str, name: str) -> str | None:
        """Return the comment of a table, an empty text where it has none; None where there is no such table."""

    def views(self, catalog: str) -> set[tuple[str, str]]:
        """Return (schema, name) of the views of an attached database, and of its tables with generated columns.

        Both contain SQL of their owner, which may call a macro of that database.
        """

    def has_macros(self) -> bool:
        """Say whether the caller's databases have macros."""

    def statement_kind(self, sql: str) -> tuple[int, str]:
        """Return how many statements a text holds, and the kind of the first; nothing is run."""

    def statement_columns(self, sql: str) -> list[str]:
        """Return the column names of the text of one SELECT statement, duplicates included."""

    def create_as(self, name: str, sql: str, empty: bool = False) -> None:
        """Create a private table from the text of one SELECT statement of the caller; an empty one runs nothing."""

    def attach(self, path: Path, name: str, writable: bool = False) -> None:
        """Attach a database file, for reading unless said otherwise."""

    def checkpoint(self, name: str) -> None:
        """Bring what was committed to an attached database from its log into its file."""

    def ask_apart(self, path: Path, sql: str, *, read: bool, check: Callable[[list[str]], None]) -> exp.Query:
        """Return the rows of one SELECT statement, or of a view, of a database file of another owner.

        The statement runs once, in a database of its own that may touch nothing but that file: its views and macros
        could do anything. ``check`` gets the names of the columns, before anything is
        read; without ``read`` there are the columns and no rows.
        """


def open_engine(connection: Any = None, progress: Listener | None = None, **settings: Any) -> Engine:
    """Return an engine on a session of its own beside ``connection``, or on a private database.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection, optional
    progress : callable, optional
        Gets an event whenever something happens.
    **settings
        Limits of the private database, such as ``memory``, ``memory_limit``, ``threads`` and ``temp_directory``.
    """
    from duckanon.engine.duckdb.engine import DuckDBEngine

    if progress is not None and not callable(progress):
        raise ParameterError(f"progress must be callable. Got a {type(progress).__name__}.")
    return DuckDBEngine(connection, progress=Progress(progress), **settings)


@contextmanager
def workspace(connection: Any) -> Iterator[Engine]:
    """Yield an engine: the one given, which its owner closes, or one on a connection that is closed afterwards."""
    if hasattr(connection, "fresh"):
        yield connection
        return
    engine = open_engine(connection)
    try:
        yield engine
    finally:
        engine.close()


_engines: weakref.WeakKeyDictionary[Engine, int] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def remember(engine: Engine) -> None:
    """Register an engine with the thread that opened it, so that ``cancel`` reaches it as long as it lives."""
    with _lock:
        _engines[engine] = threading.get_ident()


def cancel(thread: int | None = None) -> None:
    """Cancel the work of the engines that a thread opened, or of all of this process; safe from any thread.

    What their database does now is interrupted, and each later statement fails: work between two statements, such as a
    kernel, cannot be interrupted, but nothing follows it.
    """
    with _lock:
        engines = [engine for engine, opened in _engines.items() if thread is None or opened == thread]
    for engine in engines:
        engine.cancel()
