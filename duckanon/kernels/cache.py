"""Where compiled kernels are stored. They are code, so nobody else may be able to write into the folder."""

from __future__ import annotations

import hashlib
import logging
import os
import stat
from pathlib import Path

from duckanon.engine.process import PrivateFolder

SETTING = "NUMBA_CACHE_DIR"
"""Numba's setting: where it is set, compiled kernels are stored below this folder."""
_log = logging.getLogger("duckanon.kernels")
_private: list[PrivateFolder] = []


def kernel_folder(compiler: str) -> Path:
    """Return a folder for compiled kernels: below the one that is set, in the user's cache, or a new one.

    ``compiler`` says with what they are compiled. Nobody but the user can write into the folder. Without a home, or
    where somebody else could put code into the cache, kernels are compiled into a private temporary folder, which
    is removed when the process ends.
    """
    given = os.environ.get(SETTING)
    try:
        folder = Path(given).absolute() if given else _usual()
        _make(folder)
        problem = writable_by_others(folder)
        folder = folder / _content(compiler)
        if problem is None:
            _make(folder)
    except (OSError, RuntimeError, AttributeError) as error:
        problem = f"it cannot be made or looked at ({type(error).__name__})"
        folder = None
    if problem is None and folder is not None:
        return folder
    if given:
        _log.warning("%s is not used: %s. Kernels are compiled anew in each process.", SETTING, problem)
    made = PrivateFolder()
    _private.append(made)
    return made.path


def _usual() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if not base.parent.is_dir():
        # A home folder that does not exist is not created.
        raise FileNotFoundError
    return base.absolute() / "duckanon" / "kernels"


def _content(compiler: str) -> str:
    """Return a name that depends on the source of all kernels and on the compiler, not on where they are installed.

    Kernels call each other across files, so a change of any of them begins a new folder. Numba itself tells versions
    of Python and processors apart within the folder.
    """
    digest = hashlib.sha256(compiler.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        text = path.read_bytes()
        digest.update(f"{path.name} {len(text)} ".encode())
        digest.update(text)
    return digest.hexdigest()[:16]


def _make(folder: Path) -> None:
    """Make a folder and what is missing above it, readable by its user only."""
    missing = [folder]
    while not missing[-1].exists():
        missing.append(missing[-1].parent)
    for path in reversed(missing[:-1]):
        path.mkdir(mode=0o700, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError


def writable_by_others(folder: Path) -> str | None:
    """Return the folder through which somebody else could change what is in this one; None if nobody can.

    Every folder up to the root is checked, along the path as given and with links resolved.
    """
    for path in dict.fromkeys(p for start in (folder, folder.resolve()) for p in (start, *start.parents)):
        about = path.stat()
        if about.st_uid not in (0, os.getuid()):
            return f"{path} belongs to another user"
        # In a folder such as /tmp everybody may create files, but not replace those of others.
        sticky = about.st_mode & stat.S_ISVTX and path != folder and path != folder.resolve()
        if about.st_mode & 0o002 and not sticky:
            return f"{path} can be written to by everybody"
        if about.st_mode & 0o020 and not sticky and not _own_group(about.st_gid):
            return f"{path} can be written to by its group"
    return None


def _own_group(number: int) -> bool:
    """Return whether a group has no members but this user and root."""
    import grp
    import pwd

    if number == 0:
        return True
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
        group = grp.getgrgid(number)
    except KeyError:
        return False
    return group.gr_name == user and set(group.gr_mem) <= {user}


__all__ = ["SETTING", "kernel_folder", "writable_by_others"]
