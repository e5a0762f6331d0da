"""The longest that a run may take."""

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
    """Ends the statements of the engines that it watches when the time is up, and every one that follows.

    What runs outside of the database, such as a kernel or a read of a file system that hangs, is waited for, and when
    it returns the run ends with an EngineError. With ``end_process`` it is waited for a little only, and then the
    process is ended: ``last_words`` is called with the error before, for as long as it takes no longer than a few
    seconds.
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
            # An interrupted statement is told in both ways.
            self.require_time()
            raise
        finally:
            self.stop()
            watch.join()

    def watch(self, engine: Engine) -> None:
        """Watch one more engine."""
        self._engines.append(engine)

    def require_time(self) -> None:
        """Raise where the time is up: the last look before anything is published."""
        if self._end is not None and time.monotonic() >= self._end:
            raise self._too_long()

    def stop(self) -> None:
        """Interrupt nothing any more: what is being published is finished."""
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
        """Leave without asking the thread that hangs; its locks go with the process, and the next run sweeps."""
        if self._last_words is not None:
            # In a thread of its own, for it may need what the other one holds.
            said = threading.Thread(target=self._last_words, args=(self._too_long(),), daemon=True)
            said.start()
            said.join(_LAST_WORDS_SECONDS)
        if not self._done.is_set():
            os._exit(ENVIRONMENT)

    @contextmanager
    def _ended_from_outside(self) -> Iterator[None]:
        """End the process, too, where native code never lets another thread of Python run."""
        assert self.seconds is not None
        latest = self.seconds + GRACE_SECONDS + 2 * _LAST_WORDS_SECONDS
        with Path(os.devnull).open("w", encoding="ascii") as nowhere:
            faulthandler.dump_traceback_later(latest, exit=True, file=nowhere)
            try:
                yield
            finally:
                faulthandler.cancel_dump_traceback_later()
