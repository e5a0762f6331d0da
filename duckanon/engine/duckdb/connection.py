"""The caller's connection: its state, and the database's errors without data."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import duckdb
from sqlglot import exp

from duckanon.engine.sql.relations import DIALECT, builtin, ident, text
from duckanon.errors import AccessError, DataError, DuckanonError, EngineError, ParameterError, ResourceError

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


__all__ = ["Caller", "clean_error", "cursor_of", "guarded", "parse_path", "write_path"]
