"""The one place where an engine is chosen and opened."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from duckanon.errors import ParameterError
from duckanon.progress import Listener, Progress

if TYPE_CHECKING:
    from duckanon.engine.base import Engine


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


_engines: weakref.WeakSet[Engine] = weakref.WeakSet()
_lock = threading.Lock()


def remember(engine: Engine) -> None:
    """Register an engine, so that ``interrupt_all`` reaches it as long as it lives."""
    with _lock:
        _engines.add(engine)


def interrupt_all() -> None:
    """Interrupt the statements that engines of this process run now; safe from any thread."""
    with _lock:
        engines = list(_engines)
    for engine in engines:
        engine.interrupt()


__all__ = ["interrupt_all", "open_engine", "remember", "workspace"]
