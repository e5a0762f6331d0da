"""Statements of clients: each on a cursor of its own, within its limits, and cancelled when nobody waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duckanon.engine.base import cancel
from duckanon.engine.duckdb.functions import DatabaseError, clean_reason
from duckanon.errors import DuckanonError, EngineError, ParameterError, ResourceError, UnsupportedError
from duckanon.interfaces.sql.arguments import about_arguments
from duckanon.interfaces.sql.door import install

if TYPE_CHECKING:
    import pyarrow as pa

READING = frozenset({"SELECT", "EXPLAIN"})
"""Kinds of statements that change nothing: ``FROM save_hierarchy(...)`` is one, too, but fails without the right."""
BATCH = 50_000
_POLL_SECONDS = 0.1


_WAIT_SECONDS = 10.0
"""How long a statement waits for another one to end where as many run as may."""


class TimeLimitError(ResourceError):
    """A statement ran for longer than statements may."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What statements may do, for how many seconds, and how many run at the same time."""

    read_only: bool
    seconds: float | None
    at_once: int


class Statements:
    """Runs statements on cursors of one connection; a cursor is used again when its statement has ended."""

    def __init__(self, connection: Any, limits: Limits) -> None:
        self._connection = connection
        self.limits = limits
        self._free: list[Any] = []
        self._lock = threading.Lock()
        self._running = threading.BoundedSemaphore(limits.at_once)
        self._closed = threading.Event()

    def close(self) -> None:
        """Cancel what runs, and close all cursors that are not in use."""
        self._closed.set()
        with self._lock:
            free, self._free = self._free, []
        for cursor in free:
            cursor.close()

    def kinds(self, query: str) -> tuple[str, Sequence[str]]:
        """Return the kind of the one statement of a text, and the names of its parameters."""
        with self._cursor() as cursor:
            parsed = _explained(lambda: cursor.extract_statements(query))
        if len(parsed) != 1:
            raise ParameterError(f"One statement at a time. Got {len(parsed)}.")
        (statement,) = parsed
        kind = statement.type.name
        if self.limits.read_only and kind not in READING:
            raise UnsupportedError(f"The server only reads, and this is a statement of the kind {kind}.")
        if "SET" in kind.split("_"):
            raise UnsupportedError("The settings of the server cannot be changed by its clients.")
        return kind, sorted(statement.named_parameters, key=lambda name: (len(name), name))

    def schema(self, query: str, values: Sequence[Any], waited_for: Callable[[], bool]) -> pa.Schema:
        """Return the columns of a statement. It is bound, so a call of ``anonymize`` in it makes its release."""
        with self._cursor() as cursor, self._watched(cursor, waited_for):
            relation = _explained(lambda: _relation(cursor, query, values), query)
            if relation is None:
                return _none()
            schema: pa.Schema = _explained(lambda: relation.limit(0).to_arrow_table().schema)
            return schema

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return all rows of a small result."""
        with self._cursor() as cursor:
            found: list[tuple[Any, ...]] = _explained(lambda: cursor.sql(query).fetchall())
            return found

    def batches(
        self, query: str, values: Sequence[Any], waited_for: Callable[[], bool]
    ) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Return the columns and the rows of a statement; closing the iterator ends it."""
        stream = self._stream(query, values, waited_for)
        return next(stream), stream

    def _stream(self, query: str, values: Sequence[Any], waited_for: Callable[[], bool]) -> Iterator[Any]:
        with self._cursor() as cursor, self._watched(cursor, waited_for):
            reader = _explained(lambda: _reader(cursor, query, values), query)
            yield reader.schema if reader is not None else _none()
            while reader is not None:
                batch = _explained(lambda: next(reader, None))
                if batch is None:
                    return
                yield batch

    def change(self, query: str, values: Sequence[Any], waited_for: Callable[[], bool]) -> int:
        """Run a statement that writes, and return how many rows it changed; -1 where nobody knows."""
        with self._cursor() as cursor, self._watched(cursor, waited_for):
            reader = _explained(lambda: _reader(cursor, query, values), query)
            if reader is None:
                return -1
            rows = _explained(lambda: reader.read_all())
        counted = rows.column_names == ["Count"] and rows.num_rows == 1
        return int(rows.column(0)[0].as_py()) if counted else -1

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        if not self._running.acquire(timeout=_WAIT_SECONDS):
            raise ResourceError(f"{self.limits.at_once} statements run already: try again later.")
        try:
            with self._lock:
                cursor = self._free.pop() if self._free else None
            if cursor is None:
                cursor = self._connection.cursor()
                install(cursor)
            try:
                yield cursor
            except BaseException:
                # It may still be at work, or in a transaction that failed.
                with suppress(DatabaseError):
                    cursor.close()
                raise
            with self._lock:
                if not self._closed.is_set():
                    self._free.append(cursor)
        finally:
            self._running.release()

    @contextmanager
    def _watched(self, cursor: Any, waited_for: Callable[[], bool]) -> Iterator[None]:
        """Cancel the statement when its time is up or nobody waits for it any more."""
        done, why, thread = threading.Event(), list[ResourceError](), threading.get_ident()
        end = None if self.limits.seconds is None else time.monotonic() + self.limits.seconds

        def watch() -> None:
            while not done.wait(_POLL_SECONDS):
                if self._closed.is_set():
                    why.append(ResourceError("The server is shutting down."))
                elif not waited_for():
                    why.append(ResourceError("The client has cancelled the statement."))
                elif end is not None and time.monotonic() > end:
                    told = f"The statement ran for more than {self.limits.seconds:g} s and was cancelled."
                    why.append(TimeLimitError(told))
                else:
                    continue
                with suppress(DatabaseError):
                    cursor.interrupt()
                cancel(thread)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        failure: DuckanonError | None = None
        try:
            yield
        except DuckanonError as error:
            failure = why[0] if why else error
        finally:
            done.set()
            watcher.join()
        if failure is not None:
            raise failure


def _relation(cursor: Any, query: str, values: Sequence[Any]) -> Any:
    return cursor.sql(query, params=list(values)) if values else cursor.sql(query)


def _reader(cursor: Any, query: str, values: Sequence[Any]) -> pa.RecordBatchReader | None:
    relation = _relation(cursor, query, values)
    return relation.to_arrow_reader(BATCH) if relation is not None else None


def _none() -> pa.Schema:
    import pyarrow as pa

    return pa.schema([])


def _explained(action: Callable[[], Any], query: str = "") -> Any:
    """Run an action; turn errors of the database, also those that Arrow passes on, into ones without data."""
    import pyarrow as pa

    failure: DuckanonError
    try:
        return action()
    except DatabaseError as error:
        failure = EngineError(about_arguments(str(error), query) or clean_reason(error))
    except (pa.ArrowException, OSError, RuntimeError):
        failure = EngineError(
            "The statement failed while its rows were read (the message is withheld: it may quote data)."
        )
    raise failure


__all__ = ["BATCH", "READING", "Limits", "Statements", "TimeLimitError"]
