"""Where compiled kernels are stored. They are code, so nobody else may be able to write into the folder."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import shutil
import stat
import sys
import time
from pathlib import Path

from duckanon.engine.process import PrivateFolder

SETTING = "NUMBA_CACHE_DIR"
"""Numba's setting: where it is set, compiled kernels are stored below this folder."""
SHARED = "DUCKANON_KERNELS"
"""A folder of compiled kernels that several users read, and somebody they trust fills with ``duckanon warmup``."""
_UNUSED_DAYS = 30
"""Kernels of other versions that nobody has used for so long are removed."""
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
            new = not folder.is_dir()
            _make(folder)
            os.utime(folder)
            if new:
                sweep(folder)
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


def shared_folder(compiler: str) -> Path | None:
    """Return the folder of kernels that ``DUCKANON_KERNELS`` names, for reading; None without one that can be trusted.

    Its owner, and who can write into it and to each of its files, are looked at as those of the user's own cache are.
    """
    given = os.environ.get(SHARED)
    if not given:
        return None
    try:
        folder = Path(given).absolute() / _content(compiler)
        if not folder.is_dir():
            return None
        problem = writable_by_others(folder)
        for path in () if problem else folder.iterdir():
            about = path.lstat()
            if about.st_uid not in (0, os.getuid()) or about.st_mode & 0o022 or not stat.S_ISREG(about.st_mode):
                problem = f"{path.name} can be written to by others"
    except OSError as error:
        problem = f"it cannot be looked at ({type(error).__name__})"
    if problem is None:
        return folder
    _log.warning("%s is not used: %s.", SHARED, problem)
    return None


def fill_shared(compiler: str, own: Path) -> Path | None:
    """Copy the kernels of a folder to where ``DUCKANON_KERNELS`` points, readable by all; None where it is not set."""
    given = os.environ.get(SHARED)
    if not given:
        return None
    top = Path(given).absolute()
    top.mkdir(parents=True, exist_ok=True)
    if (problem := writable_by_others(top)) is not None:
        raise PermissionError(f"{SHARED} is not filled: {problem}.")
    folder = top / _content(compiler)
    if folder == own:
        return folder
    folder.mkdir(mode=0o755, exist_ok=True)
    folder.chmod(0o755)
    # What an index names must be there first.
    for path in sorted((p for p in own.iterdir() if p.suffix in (".nbc", ".nbi")), key=lambda p: p.suffix):
        staged = folder / f".{path.name}.{os.getpid()}"
        shutil.copyfile(path, staged)
        staged.chmod(0o644)
        staged.replace(folder / path.name)
    return folder


def sweep(folder: Path, days: float = _UNUSED_DAYS) -> None:
    """Remove what was compiled of other versions and has not been used for some time, beside a folder of kernels."""
    for other in folder.parent.iterdir():
        with contextlib.suppress(OSError):
            about = other.lstat()
            mine = about.st_uid == os.getuid() and stat.S_ISDIR(about.st_mode)
            if other != folder and mine and re.fullmatch("[0-9a-f]{16}", other.name):
                if time.time() - about.st_mtime > days * 86_400:
                    shutil.rmtree(other, ignore_errors=True)


def _usual() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if not base.parent.is_dir():
        # A home folder that does not exist is not created.
        raise FileNotFoundError
    return base.absolute() / "duckanon" / "kernels"


def _content(compiler: str) -> str:
    """Return a name that depends on the source of all kernels and on the compiler, not on where they are installed.

    Kernels call each other across files, so a change of any of them begins a new folder. Numba itself tells processors
    apart within the folder.
    """
    digest = hashlib.sha256(f"{compiler} {sys.implementation.cache_tag}".encode())
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


__all__ = ["SETTING", "SHARED", "fill_shared", "kernel_folder", "shared_folder", "sweep", "writable_by_others"]
