"""How many threads the work may use, and the threads that do it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

T = TypeVar("T")

_allowed: ContextVar[int | None] = ContextVar("duckanon_threads", default=None)


def cores() -> int:
    """Return how many threads or processes of this one can run at a time, and may."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = _allowed.get()
    return there if allowed is None else min(there, allowed)


def allowed_threads() -> int | None:
    """Return how many threads the work may use; None where nobody said."""
    return _allowed.get()


def workers(count: int) -> Executor:
    """Return what does work beside this thread: so many threads, or with one this thread itself.

    What holds for whoever hands the work in (which paths may be touched, how many threads may be used) holds for it.
    """
    return _Beside(count) if count > 1 else _Here()


class _Beside(ThreadPoolExecutor):
    """Does each piece of work in a copy of the context in which it is handed in."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        return super().submit(copy_context().run, fn, *args, **kwargs)


class _Here(Executor):
    """Does each piece of work when it is handed in."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done


@contextlib.contextmanager
def limited_threads(count: int | None) -> Iterator[None]:
    """Let the work inside, and the libraries that it uses, have no more threads than these."""
    if count is None:
        yield
        return
    import pyarrow as pa

    token, before = _allowed.set(count), (pa.cpu_count(), pa.io_thread_count())
    with contextlib.ExitStack() as stack:
        stack.callback(_allowed.reset, token)
        stack.callback(pa.set_cpu_count, before[0])
        stack.callback(pa.set_io_thread_count, before[1])
        pa.set_cpu_count(min(count, before[0]))
        pa.set_io_thread_count(min(count, before[1]))
        with contextlib.suppress(ImportError):
            # It comes with the learners; a release itself needs no linear algebra.
            from threadpoolctl import threadpool_limits

            stack.enter_context(threadpool_limits(count))
        yield
