"""Progress of long work: nothing for two seconds, then a line for each step with rows and time left."""

from __future__ import annotations

import threading
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING

from duckanon.interfaces.cli import screen
from duckanon.interfaces.cli.screen import count

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from duckanon.progress import Event

DELAY = 2.0


class Bars:
    """A listener for progress events that draws on standard error, or ``console``; nothing with ``shown`` off."""

    def __init__(self, shown: bool = True, delay: float = DELAY, console: Console | None = None) -> None:
        self._shown = shown
        self._console = console
        self._delay = delay
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._done: dict[str, float] = {}
        self._passes: dict[str, int] = {}
        self._last: dict[str, Event] = {}

    def __enter__(self) -> Bars:
        if self._shown:
            self._timer = threading.Timer(self._delay, self._start)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._shown = False
            if self._progress is not None:
                self._progress.stop()

    def __call__(self, event: Event) -> None:
        """Take an event; called from several threads."""
        with self._lock:
            if not self._shown:
                return
            self._last[event.step] = event
            if self._progress is not None:
                self._draw(event)

    def _start(self) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        with self._lock:
            if not self._shown:
                return
            self._progress = Progress(
                SpinnerColumn(finished_text="[green]✓"),
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=20),
                TextColumn("{task.fields[amount]}", justify="right"),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}", style="cyan"),
                console=self._console or screen.console(stderr=True),
                transient=True,
            )
            self._progress.start()
            for event in list(self._last.values()):
                self._draw(event)

    def _draw(self, event: Event) -> None:
        progress = self._progress
        if progress is None:
            return
        step = event.step
        if step not in self._tasks:
            self._tasks[step] = progress.add_task(step, total=event.total, amount="", left="")
            self._passes[step] = 1
        elif event.done < self._done.get(step, 0) and not event.finished:
            # A step may read the rows several times: each time the database counts from the beginning.
            self._passes[step] += 1
            progress.reset(self._tasks[step], total=event.total)
        self._done[step] = event.done
        total = event.total
        if event.finished and total is None:
            total = max(event.done, 1)
        label = step if self._passes[step] == 1 or event.finished else f"{step}, pass {self._passes[step]}"
        done = total if event.finished and total is not None else event.done
        task = self._tasks[step]
        progress.update(task, description=label, completed=done, total=total, amount=_amount(event))
        remaining = progress.tasks[progress.task_ids.index(task)].time_remaining
        left = "" if event.finished or remaining is None else f"{timedelta(seconds=int(remaining))} left"
        progress.update(task, left=left)


def _amount(event: Event) -> str:
    if event.total is None:
        return count(event.done, event.unit, grouped=True) if event.done else ""
    done = event.total if event.finished else event.done
    return f"{done:,.0f} of {count(event.total, event.unit, grouped=True)}"
