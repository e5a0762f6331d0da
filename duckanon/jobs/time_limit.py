"""The time limit of a run."""

from __future__ import annotations

import faulthandler
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from duckanon.errors import EngineError
from duckanon.jobs.exit_codes import ENVIRONMENT

if TYPE_CHECKING:
    from duckanon.engine.base import Engine

_AGAIN_SECONDS = 0.2
GRACE_SECONDS = 10.0
"""How long a run may take to end by itself when its time is up."""
_LAST_WORDS_SECONDS = 5.0


class TimeLimit:
    """Interrupts the statements of the engines that it watches when the time is up, and all later ones.

    Work outside of the database, such as a kernel or a file system that hangs, is not interrupted: when it returns, the
    run ends with an EngineError. With ``end_process`` the process is ended after a short wait. Before that
    ``last_words`` is called with the error, and has a few seconds.
    """

    def __init__(
        self,
        seconds: float | None,
        last_words: Callable[[EngineError], object] | None = None,
        *,
        end_process: bool = False,
    ) -> None:
        self.seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds
        self._engines: list[Engine] = []
        self._done = threading.Event()
        self._last_words = last_words
        self._may_end = end_process

    @contextmanager
    def running(self) -> Iterator[None]:
        """Turn what the interruption raises into an EngineError that says why."""
        if self._end is None:
            yield
            return
        watch = threading.Thread(target=self._watch, daemon=True)
        watch.start()
        try:
            with self._ended_from_outside() if self._may_end else nullcontext():
                yield
        except (EngineError, KeyboardInterrupt):
            # An interrupted statement raises either.
            self.require_time()
            raise
        finally:
            self.stop()
            watch.join()

    def watch(self, engine: Engine) -> None:
        """Watch one more engine."""
        self._engines.append(engine)

    def require_time(self) -> None:
        """Raise where the time is up: the last check before anything is published."""
        if self._end is not None and time.monotonic() >= self._end:
            raise self._too_long()

    def stop(self) -> None:
        """Interrupt nothing from now on: publishing is completed."""
        self._done.set()
        if self._end is not None and self._may_end:
            faulthandler.cancel_dump_traceback_later()

    def _too_long(self) -> EngineError:
        return EngineError(f"The run took longer than the {self.seconds:g} s of [limits] time. Nothing was published.")

    def _watch(self) -> None:
        while not self._done.wait(_AGAIN_SECONDS):
            if self._end is None or time.monotonic() < self._end:
                continue
            if self._may_end and time.monotonic() >= self._end + GRACE_SECONDS:
                self._end_process()
            for engine in list(self._engines):
                engine.interrupt()

    def _end_process(self) -> None:
        """End the process although a thread hangs; its locks end with it, and the next run removes its files."""
        if self._last_words is not None:
            # In a thread of its own: it may wait for a lock of the one that hangs.
            last = threading.Thread(target=self._last_words, args=(self._too_long(),), daemon=True)
            last.start()
            last.join(_LAST_WORDS_SECONDS)
        if not self._done.is_set():
            os._exit(ENVIRONMENT)

    @contextmanager
    def _ended_from_outside(self) -> Iterator[None]:
        """End the process also where native code never releases the interpreter lock."""
        assert self.seconds is not None
        latest = self.seconds + GRACE_SECONDS + 2 * _LAST_WORDS_SECONDS
        with Path(os.devnull).open("w", encoding="ascii") as nowhere:
            faulthandler.dump_traceback_later(latest, exit=True, file=nowhere)
            try:
                yield
            finally:
                faulthandler.cancel_dump_traceback_later()
