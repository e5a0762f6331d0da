"""The database's errors as ours: none of them quotes data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import duckdb

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
        # Ours can be parsed: this is somebody's query.
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
    """Run an action; turn the database's errors into ours.

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


__all__ = ["clean_error", "guarded"]
