"""One transaction on a PostgreSQL server, through ADBC and Arrow. Errors reveal nothing of the data.

The server's messages quote cell values, and those of a failed connection quote parts of the URI: they are withheld, and
only the kind of the failure is passed on.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from sqlglot import exp

from duckanon.errors import DataError, DuckanonError, EngineError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
DIALECT = "postgres"
_sql_log = logging.getLogger("duckanon.sql")
_SCHEMES = ("postgresql://", "postgres://")

# Texts are UTF-8 and mean the same whatever the settings of server, role or environment are. Backslashes in literals
# are plain characters. The gate may take long between two statements; locks of others are not awaited for long.
_SETTINGS = (
    "SET LOCAL client_encoding = 'UTF8'",
    "SET LOCAL standard_conforming_strings = on",
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL DateStyle = 'ISO'",
    "SET LOCAL IntervalStyle = 'postgres'",
    "SET LOCAL extra_float_digits = 1",
    "SET LOCAL idle_in_transaction_session_timeout = 0",
    "SET LOCAL lock_timeout = '10s'",
)

# What a SQLSTATE means, by its beginning: the first matching line counts.
_STATES: tuple[tuple[str, type[DuckanonError], str], ...] = (
    ("25006", DataError, "The query wants to write: it must be one SELECT statement"),
    ("42601", DataError, "The query is not one SELECT statement that PostgreSQL understands"),
    ("42P01", DataError, "The query names a table that does not exist"),
    ("42703", DataError, "The query names a column that does not exist"),
    ("42501", EngineError, "The role of the connection may not do that in PostgreSQL: ask for the privilege"),
    ("0A", DataError, "The query does something that PostgreSQL does not allow in a SELECT"),
    ("42", DataError, "PostgreSQL does not understand the query"),
    ("22P05", DataError, "A text has a character that the encoding of the PostgreSQL database does not have"),
    ("22021", DataError, "A text has a character that PostgreSQL cannot hold"),
    ("22", DataError, "PostgreSQL could not read or convert a value"),
    ("21", DataError, "PostgreSQL could not run the query on this data"),
    ("2BP01", EngineError, "Views or other objects depend on the table, whose columns change: drop them first"),
    ("23", EngineError, "The rows break a constraint of the PostgreSQL table"),
    ("40", EngineError, "Another transaction interfered: try again"),
    ("53", EngineError, "PostgreSQL has no space, memory or connection left"),
    (
        "55P03",
        EngineError,
        "Another session has locked the table for over ten seconds: try again when it has ended",
    ),
    ("57014", EngineError, "PostgreSQL cancelled the statement"),
)

# Messages of libpq for failed connections. Only the words on the right are passed on: the rest names hosts and roles.
_REASONS = (
    ("password authentication failed", "the password is not accepted"),
    ("no password supplied", "the server asks for a password"),
    ("pg_hba.conf", "the server does not let this role in from here"),
    ("could not translate host name", "the host is not known"),
    ("Connection refused", "nobody answers there"),
    ("No such file or directory", "nobody answers there"),
    ("timeout expired", "the server did not answer in time"),
    ("SSL", "no encrypted connection could be established"),
    ("percent-encoded", "the URI has a % that begins no escape"),
    ("too many clients", "the server has no connection left"),
    ("remaining connection slots", "the server has no connection left"),
    ("starting up", "the server is starting"),
    ("shutting down", "the server is shutting down"),
)


class Address:
    """A connection URI that is never shown: it may contain a password."""

    __slots__ = ("uri",)

    def __init__(self, uri: str) -> None:
        self.uri = uri

    @property
    def server(self) -> str:
        """A digest of host, port and database, which stays the same when role or password change."""
        try:
            parts = urlsplit(self.uri)
            address = [parts.hostname, parts.port, parts.path]
        except ValueError:
            # For example with several hosts: then the URI is used as it is.
            address = [self.uri]
        return hashlib.sha256(json.dumps(address).encode()).hexdigest()

    def __repr__(self) -> str:
        return "<PostgreSQL URI, not shown>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Address) and self.uri == other.uri

    def __hash__(self) -> int:
        return hash(self.uri)


def is_uri(text: str) -> bool:
    """Return whether a text is a connection URI of PostgreSQL."""
    return text.lower().startswith(_SCHEMES)


def require_uri(uri: object) -> Address:
    """Return the URI as an address; raise a ParameterError that does not quote it if it is none."""
    if isinstance(uri, Address):
        return uri
    if not isinstance(uri, str):
        raise ParameterError(f"uri must be a text such as 'postgresql://host/database'. Got a {type(uri).__name__}.")
    if not is_uri(uri) or "\0" in uri:
        raise ParameterError("uri must begin with postgresql://, as in 'postgresql://host/database' (it is not shown).")
    return Address(uri)


class Session:
    """One transaction. Unless ``commit`` is called, closing rolls everything back.

    Parameters
    ----------
    uri : str or Address
        ``postgresql://role@host/database``. libpq takes what is missing from PGPASSWORD, ~/.pgpass and similar.
    read_only : bool
        Read one snapshot (repeatable read), and let the server refuse to write.
    snapshot : bool
        Whether all statements of a read-only transaction see one state; else each sees what is committed when it
        begins.
    """

    def __init__(self, uri: str | Address, *, read_only: bool, snapshot: bool = True) -> None:
        address = require_uri(uri)
        dbapi = _driver()
        self._connection = _connected(lambda: dbapi.connect(address.uri))
        try:
            level = "REPEATABLE READ" if read_only and snapshot else "READ COMMITTED"
            mode = (level, "READ ONLY" if read_only else "READ WRITE")
            for setting in (" ".join(("SET TRANSACTION ISOLATION LEVEL", *mode)), *_SETTINGS):
                self.run(setting)
        except BaseException:
            self.close()
            raise

    def run(self, statement: exp.Expr | str) -> None:
        """Run a statement that returns nothing."""
        sql = logged(statement)

        def action() -> None:
            with self._connection.cursor() as cursor:
                cursor.execute(sql)

        guarded(action)

    def rows(self, statement: exp.Expr) -> list[tuple[Any, ...]]:
        """Return all rows. For results whose size does not grow with the data."""
        sql = logged(statement)

        def action() -> list[tuple[Any, ...]]:
            with self._connection.cursor() as cursor:
                cursor.execute(sql)
                return list(cursor.fetchall())

        return guarded(action)

    def row(self, statement: exp.Expr) -> tuple[Any, ...]:
        """Return the only row."""
        (only,) = self.rows(statement)
        return only

    def schema(self, sql: str) -> pa.Schema:
        """Return the schema of a query's result; the query is not run."""
        logged(sql)

        def action() -> pa.Schema:
            with self._connection.cursor() as cursor:
                return cursor.adbc_execute_schema(sql)

        return guarded(action)

    def cursor(self) -> contextlib.AbstractContextManager[Any]:
        """Return a cursor of the driver; use it through ``guarded``."""
        return contextlib.closing(guarded(self._connection.cursor))

    def broken(self) -> DuckanonError:
        """Return the error of a stream that ended early, if the driver reports no SQLSTATE.

        The transaction is lost either way. A server that still answers failed to read a row.
        """
        try:
            guarded(self._connection.rollback)
            self.rows(exp.select(exp.Literal.number(1)))
        except DuckanonError:
            return EngineError("The connection to PostgreSQL was lost while it sent rows.")
        return DataError(
            "PostgreSQL stopped while it sent rows: it could not read or compute a value, or was interrupted (its "
            "message is withheld: it may quote data)."
        )

    def commit(self) -> None:
        """Commit, so that others see what was done."""
        guarded(self._connection.commit)

    def close(self) -> None:
        """End the transaction; what was not committed is rolled back."""
        with contextlib.suppress(Exception):
            self._connection.rollback()
        with contextlib.suppress(Exception):
            self._connection.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def logged(statement: exp.Expr | str) -> str:
    """Return the text of a statement, and log it."""
    sql = statement if isinstance(statement, str) else statement.sql(dialect=DIALECT)
    _sql_log.debug("%s", sql)
    return sql


def guarded(action: Callable[[], T]) -> T:
    """Run an action; turn the driver's errors into ours.

    Raised outside the handler, so that the original, which may quote data, is not even left as the error's context.
    """
    try:
        return action()
    except DuckanonError:
        raise
    except Exception as error:
        failure = _clean(error)
    raise failure


def _clean(error: Exception) -> DuckanonError:
    state = getattr(error, "sqlstate", None)
    if not isinstance(state, str) or not state.isalnum():
        return EngineError(f"PostgreSQL: {type(error).__name__} (its message is withheld: it may quote data).")
    for beginning, kind, words in _STATES:
        if state.startswith(beginning):
            return kind(f"{words} (SQLSTATE {state}; its message is withheld: it may quote data).")
    return EngineError(f"PostgreSQL failed (SQLSTATE {state}; its message is withheld: it may quote data).")


def _connected(action: Callable[[], T]) -> T:
    try:
        return action()
    except Exception as error:
        message = str(error)
    reason = next((words for sign, words in _REASONS if sign in message), None)
    if reason is None and "does not exist" in message:
        reason = "there is no such database or role"
    raise EngineError(f"Cannot connect to PostgreSQL: {reason or 'the URI or the server does not allow it'}.")


def _driver() -> Any:
    try:
        import adbc_driver_postgresql.dbapi as dbapi
    except ImportError:
        raise EngineError(
            "PostgreSQL needs the driver adbc-driver-postgresql: pip install 'duckanon[postgres]'."
        ) from None
    return dbapi
