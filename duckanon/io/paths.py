"""Paths and patterns of files."""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase
from glob import glob, has_magic, iglob
from pathlib import Path

from duckanon.engine.process import is_limited, is_remote, may_touch
from duckanon.errors import DataError, ResourceError

_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)


def stat_of(path: str | Path) -> os.stat_result | None:
    """Return the status of a path, following links; None if it does not exist.

    A text that cannot be a file name, such as a query, does not exist. A ResourceError is raised if the file system
    refuses to answer, as for a folder without access.
    """
    try:
        return Path(path).stat()
    except ValueError:
        return None
    except OSError as error:
        require_open(Path(path), error)
        return None


def require_open(path: Path, error: OSError) -> None:
    """Raise a ResourceError unless an error means that a path does not exist."""
    if error.errno not in (*_NOT_THERE, errno.EISDIR):
        raise ResourceError(f"{path.name!r} cannot be read: {error.strerror or type(error).__name__}.") from None


def is_there(path: str | Path) -> bool:
    """Return whether a path exists; see ``stat_of``.

    Examples
    --------
    >>> is_there("."), is_there("SELECT " + "a, " * 500)
    (True, False)
    """
    return stat_of(path) is not None


def is_folder(path: str | Path) -> bool:
    """Return whether a path is a folder; see ``stat_of``."""
    about = stat_of(path)
    return about is not None and stat.S_ISDIR(about.st_mode)


def is_file(path: str | Path) -> bool:
    """Return whether a path is a regular file; see ``stat_of``."""
    about = stat_of(path)
    return about is not None and stat.S_ISREG(about.st_mode)


def require_regular(path: Path) -> None:
    """Raise a DataError unless a path is a regular file: a pipe or a device could block the reader for ever."""
    about = stat_of(path)
    if about is None:
        raise DataError(f"No file matches {str(path)!r}.")
    if not stat.S_ISREG(about.st_mode):
        raise DataError(f"{path.name!r} is not a regular file, but a folder, a pipe, a socket or a device.")


def require_listable(pattern: str) -> None:
    """Raise a ResourceError if it is unknown what a pattern matches, because its folder cannot be read."""
    parts = Path(pattern).parts
    folder = Path(*parts[: next((i for i, part in enumerate(parts) if has_magic(part)), len(parts))])
    try:
        os.scandir(folder).close()
    except PermissionError as error:
        raise ResourceError(f"The folder {folder.name!r} cannot be read: {error.strerror}.") from None
    except OSError:
        return


def covers(pattern: str, target: Path) -> bool:
    """Return whether a file, folder or glob pattern covers a path, through links and ignoring case.

    Some file systems distinguish names by case and some do not: here, they never differ by case.

    Examples
    --------
    >>> covers("visits/*.parquet", Path("visits/2024.parquet")), covers("visits/*.parquet", Path("out/2024.parquet"))
    (True, False)
    >>> covers("visits/a/../*.parquet", Path("VISITS/2024.parquet"))
    True
    """
    if is_remote(pattern):
        return False
    names = names_of(target)
    if not has_magic(pattern):
        given = Path(pattern)
        if same_file(given, target):
            return True
        below = names_of(given)
        return _may_be_folder(given) and any(name[: len(parts)] == parts for parts in below for name in names)
    absolute = Path(pattern).absolute().parts
    first = next(i for i, part in enumerate(absolute) if has_magic(part))
    # The part before the pattern may be a link, or lead through one.
    forms = {_folded(absolute), _folded((*Path(*absolute[:first]).resolve().parts, *absolute[first:]))}
    if any(_matches(form, name) for form in forms for name in names):
        return True
    return _has_twins(target) and any(same_file(Path(p), target) for p in iglob(pattern, recursive=True))


def _may_be_folder(path: Path) -> bool:
    try:
        return is_folder(path)
    except ResourceError:
        return True


def same_file(one: Path, other: Path) -> bool:
    """Return whether two paths are, or would be, the same file: through links and hard links, ignoring case."""
    if names_of(one) & names_of(other):
        return True
    try:
        return one.samefile(other)
    except OSError:
        return False


_names: ContextVar[dict[Path, frozenset[tuple[str, ...]]] | None] = ContextVar("names", default=None)


@contextmanager
def names_remembered() -> Iterator[None]:
    """Look up the links of each path once: to compare all paths of a job, every one of them is looked at often."""
    token = _names.set({})
    try:
        yield
    finally:
        _names.reset(token)


def names_of(path: Path) -> frozenset[tuple[str, ...]]:
    """Return the parts of a path as it stands and with its links resolved, in lower case."""
    remembered = _names.get()
    if remembered is None:
        return _names_of(path)
    if path not in remembered:
        remembered[path] = _names_of(path)
    return remembered[path]


def _names_of(path: Path) -> frozenset[tuple[str, ...]]:
    try:
        resolved = path.resolve()
    except (OSError, RuntimeError):
        # A link to itself.
        resolved = path.absolute()
    return frozenset(_folded(p.parts) for p in (resolved, path.parent.resolve() / path.name, path.absolute()))


def _has_twins(path: Path) -> bool:
    """Return whether a file may have another name."""
    try:
        return path.is_symlink() or path.stat().st_nlink > 1
    except OSError:
        return False


def _folded(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(unicodedata.normalize("NFC", part).casefold() for part in parts)


def require_touchable(path: str | Path) -> None:
    """Raise if a path, or one that a pattern matches, is not allowed."""
    given = str(path)
    if not may_touch(given) or (
        is_limited()
        and not is_remote(given)
        and has_magic(given)
        and not all(map(may_touch, glob(given, recursive=True)))
    ):
        raise DataError(
            "This connection may not touch the files that were named: its settings (enable_external_access, "
            "allowed_directories, allowed_paths) do not allow it."
        )


def _matches(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    if not pattern or not parts:
        return not pattern and not parts
    if pattern[0] == "**":
        return any(_matches(pattern[1:], parts[i:]) for i in range(len(parts)))
    return fnmatchcase(parts[0], pattern[0]) and _matches(pattern[1:], parts[1:])
