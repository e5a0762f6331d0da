"""Small files that others read while they are written: by one writer at a time, in whole lines."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from duckanon.errors import EngineError


def append_lines(path: Path, lines: Iterable[str]) -> None:
    """Append whole lines to a file, one writer at a time; lines that cannot be written completely are removed again."""
    data = "".join(f"{line}\n" for line in lines).encode("utf-8")
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        length = os.fstat(handle).st_size
        # A killed process may have left an incomplete line: it is ended, so that it does not spoil the next one.
        torn = length > 0 and os.pread(handle, 1, length - 1) != b"\n"
        try:
            _write(handle, b"\n" + data if torn else data)
            os.fsync(handle)
        except BaseException:
            os.ftruncate(handle, length)
            raise
    finally:
        os.close(handle)


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; other holders wait."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def os_errors(what: str, path: Path) -> Iterator[None]:
    """Turn what the operating system says into an EngineError that names the file."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno is not None else type(error).__name__
        raise EngineError(f"The {what} {path.name!r} cannot be written: {reason}.") from None


def _write(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
