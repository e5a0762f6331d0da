"""The longest that a run may take."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from duckanon.errors import EngineError

if TYPE_CHECKING:
    from duckanon.engine.base import Engine

_AGAIN_SECONDS = 0.2


class Clock:
    """Ends the statements of the engines that it watches when the time is up, and every one that follows.

    What runs outside of the database, such as a kernel, is waited for.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds
        self._engines: list[Engine] = []
        self._done = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Turn what the interruption raises into an EngineError that says why."""
        if self._end is None:
            yield
            return
        watch = threading.Thread(target=self._watch, daemon=True)
        watch.start()
        try:
            yield
        except (EngineError, KeyboardInterrupt):
            # An interrupted statement is told in both ways.
            self.require_time()
            raise
        finally:
            self._done.set()
            watch.join()

    def watch(self, engine: Engine) -> None:
        """Watch one more engine."""
        self._engines.append(engine)

    def require_time(self) -> None:
        """Raise where the time is up: the last look before anything is published."""
        if self._end is not None and time.monotonic() >= self._end:
            raise EngineError(
                f"The run took longer than the {self.seconds:g} s of [limits] time. Nothing was published."
            )

    def stop(self) -> None:
        """Interrupt nothing any more: what is being published is finished."""
        self._done.set()

    def _watch(self) -> None:
        while not self._done.wait(_AGAIN_SECONDS):
            if self._end is not None and time.monotonic() >= self._end:
                for engine in list(self._engines):
                    engine.interrupt()
