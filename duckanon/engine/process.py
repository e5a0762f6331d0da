"""What this process may use: threads and memory, the paths that it may touch, and private folders."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from glob import has_magic
from pathlib import Path
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


_REMOTE = re.compile(r"^[a-z][a-z0-9+.-]+://")


def is_remote(path: str) -> bool:
    """Say whether a path names something on another machine, such as ``s3://bucket/x.parquet``."""
    return _REMOTE.match(path) is not None


_decides: ContextVar[Callable[[str], bool] | None] = ContextVar("decides", default=None)


@contextmanager
def touching_only(allowed: Callable[[str], bool]) -> Iterator[None]:
    """Let only those paths be touched within the context that a function allows."""
    token = _decides.set(allowed)
    try:
        yield
    finally:
        _decides.reset(token)


def is_limited() -> bool:
    """Say whether only some paths may be touched."""
    return _decides.get() is not None


def may_touch(path: str | Path) -> bool:
    """Say whether a path or pattern may be touched. Ask first: whether a forbidden path exists is not revealed."""
    decides = _decides.get()
    return decides is None or decides(str(path))


def is_within(path: str, folders: Sequence[str], files: Sequence[str]) -> bool:
    """Say whether a path is one of some files or lies in one of some folders, links and ``..`` followed.

    A pattern is judged by what stands before its first special character; no ``..`` may come after it.

    Examples
    --------
    >>> is_within("/data/x/../a.csv", ["/data"], []), is_within("/data/../etc/passwd", ["/data"], [])
    (True, False)
    """
    if is_remote(path):
        inside = any(path.startswith(f.rstrip("/") + "/") for f in folders) and ".." not in path.split("/")
        return inside or path in files
    try:
        place = _fixed(path) if has_magic(path) else Path(path).resolve()
        if place is None:
            return False
        known = [Path(f).resolve() for f in folders if f and not is_remote(f)]
        named = [] if has_magic(path) else [Path(f).resolve() for f in files if f and not is_remote(f)]
    except (OSError, ValueError, RuntimeError):
        return False
    return place in named or any(place.is_relative_to(folder) for folder in known)


def _fixed(pattern: str) -> Path | None:
    """Return the folder in which all that a pattern matches lies, where there is one."""
    parts = Path(pattern).parts
    first = next(i for i, part in enumerate(parts) if has_magic(part))
    return None if ".." in parts[first:] else Path(*parts[:first]).resolve()


_PACKAGE = Path(__file__).resolve().parents[1]


def data_folder(name: str) -> Path:
    """Return the folder ``sql``, ``hierarchies`` or ``examples``: in the installed package, else in the checkout."""
    packaged = _PACKAGE / "_data" / name
    return packaged if packaged.is_dir() else _PACKAGE.parent / name


_PREFIX = ".duckanon-"
_LOCK = "lock"
_BIRTH_SECONDS = 60
"""A new folder is locked within this time, or never."""
_live: weakref.WeakSet[PrivateFolder] = weakref.WeakSet()


class PrivateFolder:
    """A folder that only this user can read, removed when it is closed or the process ends.

    A lock inside says that its process lives, so that ``sweep`` can remove what a killed one left behind.
    """

    def __init__(self, beside: Path | None = None) -> None:
        parent = beside if beside is not None else Path(tempfile.gettempdir())
        # Made beside its final name and renamed once locked: no sweep ever sees it without its lock.
        made = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}new-", dir=parent))
        try:
            lock = _locked(made / _LOCK)
        except OSError:
            made.rmdir()
            raise
        self.path = made.rename(made.with_name(made.name.replace(f"{_PREFIX}new-", f"{_PREFIX}run-")))
        self._close = weakref.finalize(self, _remove, self.path, lock)
        _live.add(self)

    def close(self) -> None:
        """Remove the folder and all that is in it."""
        self._close()


def sweep(folder: Path) -> int:
    """Remove private folders that processes now dead left in ``folder``; return how many."""
    removed = 0
    found: list[Path] = []
    with contextlib.suppress(OSError):
        found = sorted(folder.glob(f"{_PREFIX}*-*"))
    for path in found:
        # One that cannot be removed, or that another sweep removes now, does not keep the others.
        with contextlib.suppress(OSError):
            removed += _swept(path)
    return removed


def _swept(path: Path) -> bool:
    """Remove a private folder if its process is dead; say whether it is gone."""
    about = path.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
        return False
    if path.name.startswith(f"{_PREFIX}new-") and time.time() - about.st_mtime < _BIRTH_SECONDS:
        return False
    lock = _locked(path / _LOCK)
    if lock is None:
        return False
    _remove(path, lock)
    return not path.exists()


def _locked(path: Path) -> int | None:
    """Return a descriptor that holds an exclusive lock on ``path``, or None if another process holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _remove(path: Path, lock: int | None) -> None:
    shutil.rmtree(path, ignore_errors=True)
    if lock is not None:
        os.close(lock)


@atexit.register
def remove_private_folders() -> None:
    """Remove all private folders of this process: it ends."""
    for folder in list(_live):
        folder.close()


@contextlib.contextmanager
def no_core_dumps() -> Iterator[None]:
    """Write no core dump if the process crashes inside: it would have raw values."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
