"""Which paths may be touched: all, or those that the caller's connection allows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from glob import has_magic
from pathlib import Path

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
