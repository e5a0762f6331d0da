"""The engines of this process, so that all of them can be interrupted."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckanon.engine.base import Engine

_engines: weakref.WeakSet[Engine] = weakref.WeakSet()
_lock = threading.Lock()


def remember(engine: Engine) -> None:
    """Have an engine interrupted with the others for as long as it lives."""
    with _lock:
        _engines.add(engine)


def interrupt_all() -> None:
    """Interrupt the statements that engines of this process run now; safe from any thread."""
    with _lock:
        engines = list(_engines)
    for engine in engines:
        engine.interrupt()


__all__ = ["interrupt_all", "remember"]
