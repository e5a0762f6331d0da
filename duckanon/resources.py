"""Files that ship with the package, and private temporary folders."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

_PACKAGE = Path(__file__).resolve().parent


def data_folder(name: str) -> Path:
    """Return the folder ``sql``, ``hierarchies`` or ``examples``: in the installed package, else in the checkout."""
    packaged = _PACKAGE / "_data" / name
    return packaged if packaged.is_dir() else _PACKAGE.parent / name


_PREFIX = ".duckanon-"
_LOCK = "lock"
_BIRTH_SECONDS = 60
"""Within this time a folder is made and locked; one that has no lock after it never will have one."""
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


@contextlib.contextmanager
def no_core_dumps() -> Iterator[None]:
    """Let a crash inside leave no image of the memory, which holds raw values, on the disk."""
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
