"""Tasks in several processes: a bounded number, none of which outlives the study."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any

from duckanon.errors import DuckanonError
from duckanon.studies.base import get_study

if TYPE_CHECKING:
    from duckanon.studies.base import Record, Task


@dataclass(frozen=True)
class Ended:
    """What became of a task."""

    task: Task
    records: list[Record]
    seconds: float
    error: str | None = None


def work(study: str, task: Task) -> Ended:
    """Run one task on one thread; of an error only what cannot quote a value is reported."""
    from threadpoolctl import threadpool_limits

    # Processor time, not wall time: other work on the machine does not count.
    started = time.process_time()
    records: list[Record] = []
    error = None
    try:
        # One thread for each task: the cores are shared by tasks, and sums are added in one order.
        with threadpool_limits(limits=1), warnings.catch_warnings():
            # That a release has nothing left to learn from, which learners complain of, is a result like any other.
            warnings.simplefilter("ignore")
            records = get_study(study).run(task)
    except DuckanonError as unexpected:
        error = f"{type(unexpected).__name__}: {unexpected}"
    except Exception as unexpected:
        error = f"{type(unexpected).__name__} (its message is withheld: it may quote data){_place(unexpected)}"
    return Ended(task, records, time.process_time() - started, error)


def _place(error: BaseException) -> str:
    trace, place = error.__traceback__, ""
    while trace is not None:
        code = trace.tb_frame.f_code
        if "duckanon" in code.co_filename:
            place = f" in {os.path.basename(code.co_filename)}:{trace.tb_lineno}"  # noqa: PTH119 - a text
        trace = trace.tb_next
    return place


def each(study: str, tasks: Sequence[Task], workers: int) -> Iterator[Ended]:
    """Yield the tasks as they end; in this process for one worker, else in that many others."""
    if workers <= 1 or len(tasks) <= 1:
        for task in tasks:
            yield work(study, task)
        return
    yield from _shared(study, list(tasks), min(workers, len(tasks)))


def _shared(study: str, tasks: list[Task], workers: int) -> Iterator[Ended]:
    context = multiprocessing.get_context("spawn")
    waiting = iter(tasks)
    pool: dict[Connection, Any] = {}
    busy: dict[Connection, Task] = {}
    try:
        for _ in range(workers):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(there, study), daemon=True)
            process.start()
            there.close()
            pool[here] = process
            _hand(here, waiting, busy)
        while busy:
            for ready in wait(list(busy)):
                assert isinstance(ready, Connection)
                task = busy.pop(ready)
                try:
                    ended: Ended = ready.recv()
                except EOFError:
                    # The process is gone, for want of memory perhaps: the others go on.
                    pool.pop(ready).join()
                    ended = Ended(task, [], 0.0, "The process of the task ended before it did.")
                else:
                    _hand(ready, waiting, busy)
                yield ended
        for task in waiting:
            yield work(study, task)
    finally:
        for connection, process in pool.items():
            connection.close()
            process.terminate()
            process.join()


def _hand(connection: Connection, waiting: Iterator[Task], busy: dict[Connection, Task]) -> None:
    task = next(waiting, None)
    if task is not None:
        busy[connection] = task
        connection.send(task)


def _serve(connection: Connection, study: str) -> None:
    """Do tasks as they come, until the other side is closed or gone."""
    # Ctrl-C reaches every process of the terminal; the one that started the others ends them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    while True:
        try:
            task = connection.recv()
            connection.send(work(study, task))
        except (EOFError, OSError):
            return
