"""Progress of long work, as events that anybody may listen to; in a notebook as a bar below the cell."""

from __future__ import annotations

import logging
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from importlib import import_module
from typing import Any


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
COMPILING = "compiling kernels (first use on this machine)"
"""The step in which compiled loops are made that are found in the cache from then on."""
_watched: weakref.WeakSet[Progress] = weakref.WeakSet()
_lock = threading.Lock()
_log = logging.getLogger("duckanon.kernels")
_begun: list[float] = []
_told: list[bool] = []


def compiling() -> None:
    """Say that a kernel is compiled now: to all who watch work, or else to a person at a terminal or notebook, once."""
    with _lock:
        _begun.append(time.perf_counter())
        first = not _told
    if not _tell(Event(COMPILING, unit="kernels")) and first:
        _told.append(True)
        _log.info(COMPILING)
        if sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules):
            sys.stderr.write(f"duckanon: {COMPILING} ...\n")
            sys.stderr.flush()


def compiled() -> None:
    """Say that it is compiled."""
    with _lock:
        begun = _begun.pop() if _begun else time.perf_counter()
        ended = not _begun
    if ended:
        _tell(Event(COMPILING, unit="kernels", elapsed=time.perf_counter() - begun, finished=True))


def _tell(event: Event) -> bool:
    """Hand an event to everybody whose step is under way; return whether there is anybody."""
    watching = [progress for progress in list(_watched) if progress.running]
    for progress in watching:
        if progress.listener is not None:
            progress.listener(event)
    return bool(watching)


class Progress:
    """Hands events to a listener; without one it does nothing."""

    def __init__(self, listener: Listener | None = None) -> None:
        self.listener = listener
        self.seconds: dict[str, float] = {}
        self._step = ""
        self._total: float | None = None
        self._unit = "rows"
        self._start = time.perf_counter()
        if listener is not None:
            _watched.add(self)

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

    @property
    def running(self) -> bool:
        """Whether a step is under way."""
        return bool(self._step)

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


DELAY = 1.0
"""Seconds before a notebook shows a bar: what is quick needs none."""
_PAUSE = 0.2


@contextmanager
def watched(listener: Listener | None) -> Iterator[Listener | None]:
    """Yield a listener: the one given, else one that draws a bar where the caller is a notebook, else None.

    Examples
    --------
    >>> with watched(None) as listener:
    ...     listener is None
    True
    """
    if listener is not None or not _in_notebook():
        yield listener
        return
    bar = NotebookBar()
    try:
        yield bar
    finally:
        bar.close()


def _in_notebook() -> bool:
    """Return whether the interpreter is the kernel of a notebook; IPython is never imported for that."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


class NotebookBar:
    """A listener that draws the present step as a bar below the cell, and takes it away in the end."""

    def __init__(self) -> None:
        self._begun = time.perf_counter()
        self._drawn = 0.0
        self._closed = False
        self._display: Any = None

    def __call__(self, event: Event) -> None:
        """Draw the step, unless the work is young, or was drawn just now."""
        now = time.perf_counter()
        if self._closed or now - self._begun < DELAY or now - self._drawn < _PAUSE or event.finished:
            return
        self._drawn = now
        self._show(_bar(event, now - self._begun))

    def close(self) -> None:
        """Take the bar away."""
        # A release keeps its listener: what it does later draws nothing.
        self._closed = True
        if self._display is not None:
            self._show("")

    def _show(self, html: str) -> None:
        screen: Any = import_module("IPython.display")
        if self._display is None:
            self._display = screen.display(screen.HTML(html), display_id=True)
        else:
            self._display.update(screen.HTML(html))


def _bar(event: Event, seconds: float) -> str:
    """Return the bar of a step as HTML.

    Examples
    --------
    >>> print(_bar(Event("search", 30, 120, "nodes"), 4.2))
    <progress max="1" value="0.25"></progress> search: 30 of 120 nodes, 4 s
    """
    known = event.total is not None and event.total > 0
    share = min(max(event.done / event.total, 0.0), 1.0) if known and event.total else None
    value = "" if share is None else f' value="{share:.4g}"'
    counts = f"{event.done:,.0f} of {event.total:,.0f} {event.unit}" if known and event.done else "..."
    return f'<progress max="1"{value}></progress> {escape(event.step)}: {escape(counts)}, {seconds:.0f} s'
