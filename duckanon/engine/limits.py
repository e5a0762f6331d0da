"""The threads and the memory that the work may use."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

from duckanon.errors import ParameterError

T = TypeVar("T")

_allowed: ContextVar[int | None] = ContextVar("duckanon_threads", default=None)


def cores() -> int:
    """Return how many threads or processes may run at a time on this machine."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allowed = _allowed.get()
    return there if allowed is None else min(there, allowed)


def allowed_threads() -> int | None:
    """Return how many threads the work may use; None for no limit."""
    return _allowed.get()


def workers(count: int) -> Executor:
    """Return an executor with so many threads; with one, the calling thread does the work.

    Work runs under the limits of whoever submits it: which paths may be touched, how many threads may be used.
    """
    return _Beside(count) if count > 1 else _Here()


class _Beside(ThreadPoolExecutor):
    """Runs each task in a copy of the context in which it was submitted."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        return super().submit(copy_context().run, fn, *args, **kwargs)


class _Here(Executor):
    """Runs each task when it is submitted."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done


@contextlib.contextmanager
def limited_threads(count: int | None) -> Iterator[None]:
    """Limit the threads of the work inside, and of the libraries that it uses."""
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
            # Installed with the learners only: a release itself needs no linear algebra.
            from threadpoolctl import threadpool_limits

            stack.enter_context(threadpool_limits(count))
        yield


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z%]+)", re.IGNORECASE)
_UNITS = {"b": 1, "bytes": 1, "byte": 1}
for _power, _letter in enumerate("kmgt", start=1):
    _UNITS |= {f"{_letter}b": 1000**_power, f"{_letter}ib": 1024**_power}
_LIBRARIES = 450 * 10**6
"""Memory that is used besides data: the interpreter, libraries and kernels that were just compiled (measured)."""
_LEAST = 300 * 10**6
"""As much as the database needs to sort and count many rows."""
_AMPLE = 2 * 10**9
"""Processes with at least this much need not save on allocators."""


def size_in_bytes(size: str) -> int:
    """Return a size such as "2GB", "512 MiB" or "50%" (of the machine's memory) as a number.

    Examples
    --------
    >>> size_in_bytes("1.5GB"), size_in_bytes("512 MiB")
    (1500000000, 536870912)
    """
    found = _SIZE.fullmatch(size.strip())
    number, unit = (found[1], found[2].lower()) if found is not None else ("", "")
    if unit == "%":
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * float(number) / 100)
    if unit not in _UNITS:
        raise ParameterError(f"A size of memory is a number and a unit, such as '2GB'. Got {size!r}.")
    return int(float(number) * _UNITS[unit])


def share_of_database(whole: int) -> int:
    """Return how much of a process's memory its database gets: what arrays and libraries leave over.

    Of little memory it gets half, up to 300 MB.

    Examples
    --------
    >>> share_of_database(200_000_000), share_of_database(1_000_000_000), share_of_database(8_000_000_000)
    (100000000, 300000000, 5550000000)
    """
    return max(min(whole // 2, _LEAST), whole - whole // 4 - _LIBRARIES)


def keep_little(whole: int) -> None:
    """Make Arrow allocate through the C library where a process may use little memory; it reads this when it is loaded.

    Its own allocator is faster but holds on to freed memory, some 50 MB while a file is written.
    """
    if whole < _AMPLE:
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def give_back() -> None:
    """Return memory that was freed to the operating system.

    The C library keeps it for later otherwise, and the database, which asks for memory by itself, cannot use it.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
