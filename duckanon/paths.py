"""Paths and patterns of files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from glob import has_magic
from pathlib import Path

_REMOTE = re.compile(r"^[a-z][a-z0-9+.-]+://")


def is_remote(path: str) -> bool:
    """Say whether a path names something on another machine, such as ``s3://bucket/x.parquet``."""
    return _REMOTE.match(path) is not None


def covers(pattern: str, target: Path) -> bool:
    """Say whether a file, folder or glob pattern takes in a path.

    Examples
    --------
    >>> covers("visits/*.parquet", Path("visits/2024.parquet")), covers("visits/*.parquet", Path("out/2024.parquet"))
    (True, False)
    """
    if is_remote(pattern):
        return False
    place = target.parent.resolve() / target.name
    if not has_magic(pattern):
        given = Path(pattern).resolve()
        return given == place or (given.is_dir() and place.is_relative_to(given))
    absolute = Path(pattern).absolute().parts
    return _matches(absolute, target.absolute().parts) or _matches(absolute, place.parts)


def _matches(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    if not pattern or not parts:
        return not pattern and not parts
    if pattern[0] == "**":
        return any(_matches(pattern[1:], parts[i:]) for i in range(len(parts)))
    return fnmatchcase(parts[0], pattern[0]) and _matches(pattern[1:], parts[1:])
