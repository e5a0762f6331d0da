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
from collections.abc import Iterator
from pathlib import Path

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
