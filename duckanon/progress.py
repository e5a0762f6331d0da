"""Progress of long work, as events that anybody may listen to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    """Something happened in a step.

    ``done`` and ``total`` count ``unit`` (rows, nodes, ...); ``total`` is None while it is not known.
    """

    step: str
    done: float = 0
    total: float | None = None
    unit: str = "rows"
    elapsed: float = 0.0
    finished: bool = False


Listener = Callable[[Event], None]


class Progress:
    """Hands events to a listener; without one it does nothing."""

    def __init__(self, listener: Listener | None = None) -> None:
        self.listener = listener
        self.seconds: dict[str, float] = {}
        self._step = ""
        self._total: float | None = None
        self._unit = "rows"
        self._start = time.perf_counter()

    @contextmanager
    def step(self, name: str, total: float | None = None, unit: str = "rows") -> Iterator[None]:
        """Run a named step; its time is kept in ``seconds``."""
        self._step, self._total, self._unit, self._start = name, total, unit, time.perf_counter()
        self._emit(0)
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - self._start
            self._emit(total or 0, finished=True)
            self._step = ""

    def advance(self, done: float) -> None:
        """Say how much of the present step is done."""
        self._emit(done)

    def fraction(self, share: float) -> None:
        """Say which share of the present statement the database has done."""
        if self._step and self._total is not None and self._unit == "rows":
            self._emit(share * self._total)

    def _emit(self, done: float, finished: bool = False) -> None:
        if self.listener is not None:
            elapsed = time.perf_counter() - self._start
            self.listener(Event(self._step, done, self._total, self._unit, elapsed, finished))
