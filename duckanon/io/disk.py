"""Files and folders on disk: replaced in one step, one writer at a time, synced; errors of the operating system."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from duckanon.errors import EngineError

_SHARED = (errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_FOLDER = (errno.ENOTDIR, errno.EEXIST)
_NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM)
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@contextlib.contextmanager
def os_errors(target: Path) -> Iterator[None]:
    """Turn what the operating system says while ``target`` is written into an EngineError."""
    try:
        yield
    except OSError as error:
        folder = target.parent.name or str(target.parent)
        if error.errno in _FULL:
            message = f"No space left on device while writing {target.name!r}. Nothing was published."
        elif error.errno in _DENIED:
            message = f"The folder {folder!r} is not writable: {target.name!r} was not published."
        elif error.errno in _NO_FOLDER:
            message = f"{folder!r} is not a folder, or lies below a file: {target.name!r} was not published."
        else:
            reason = os.strerror(error.errno) if error.errno is not None else type(error).__name__
            message = f"{reason} while writing {target.name!r}. Nothing was published."
        raise EngineError(message) from None


@contextlib.contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Make a folder and its parents where they are missing, and remove those again if the work inside fails."""
    made: list[Path] = []
    try:
        for path in reversed((folder, *folder.parents)):
            if not path.is_dir():
                # Another process may make the same folder at this moment: then it is not ours to remove.
                with contextlib.suppress(FileExistsError):
                    path.mkdir()
                    made.append(path)
                    sync(path.parent)
                if not path.is_dir():
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        yield
    except BaseException:
        for path in reversed(made):
            with contextlib.suppress(OSError):
                path.rmdir()
        raise


@contextlib.contextmanager
def locked(target: Path) -> Iterator[None]:
    """Be the only writer of a target; where another one is at work, raise at once."""
    path = target.with_name(f".{target.name}.lock")
    handle = _lock(path, target)
    try:
        yield
    finally:
        # Removed while it is held: whoever opened it meanwhile sees that the name is gone and begins anew.
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(handle)


def _lock(path: Path, target: Path) -> int:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = os.fstat(handle)
            with contextlib.suppress(FileNotFoundError):
                named = path.stat(follow_symlinks=False)
                if (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino):
                    return handle
        except BlockingIOError:
            os.close(handle)
            raise EngineError(f"Another run is writing {target.name!r}: try again when it has ended.") from None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's names, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Sync every file below a folder, then every folder from the bottom up."""
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync(Path(parent) / name)
        sync(Path(parent))


def write_text(path: Path, text: str) -> None:
    """Write a text file and sync it."""
    path.write_text(text, encoding="utf-8", newline="\n")
    sync(path)


@contextlib.contextmanager
def replacing(path: Path, mode: int | None = None) -> Iterator[Path]:
    """Yield the path of a new file that takes the place of ``path`` when the work inside is done.

    Whoever reads ``path`` sees the old file or the new one, whole. If the work fails, nothing changes. The new file has
    the permissions ``mode``, else those of the old file. A link stays, and what it points to is replaced. A pipe or a
    device has no content to keep: it is written to directly.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        yield target
        return
    # No program that collects files by their suffix picks up one that is still being written.
    staged = target.with_name(f".duckanon-{secrets.token_hex(8)}.tmp")
    try:
        yield staged
        if mode is not None or target.exists():
            staged.chmod(target.stat().st_mode & 0o777 if mode is None else mode)
        sync(staged)
        staged.replace(target)
    except BaseException as error:
        staged.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (str(staged), None):
            # Named by the file that was asked for, not by the one beside it.
            raise type(error)(error.errno, error.strerror, str(path)) from None
        raise
    with contextlib.suppress(OSError):
        sync(target.parent)


def replace_folder(staged: Path, target: Path, aside: Path) -> None:
    """Let a folder take the place of ``target``; what was there ends up at ``staged``.

    Where the system cannot swap two folders, the old one stands at ``aside`` for a moment.
    """
    if not target.exists():
        staged.rename(target)
    elif exchange(staged, target):
        try:
            sync(target.parent)
        except BaseException:
            exchange(staged, target)
            raise
    else:
        target.rename(aside)
        try:
            staged.rename(target)
            sync(target.parent)
        except BaseException:
            if target.exists():
                target.rename(staged)
            aside.rename(target)
            raise
        aside.rename(staged)
    sync(target.parent)


def second_name(path: Path, name: Path) -> None:
    """Give a file a second name, or a copy where that is not possible; symbolic links stay links."""
    try:
        os.link(path, name, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _SHARED:
            raise
        shutil.copy2(path, name, follow_symlinks=False)
        if not name.is_symlink():
            sync(name)


def bring(staged: Path, work: Path) -> None:
    """Bring a file into the folder of its target: by a second name where that is possible, else by a copy."""
    # A file that has been published once has two names already: a further target gets bytes of its own, so that whoever
    # changes one of them in place does not change the other.
    if staged.stat().st_nlink == 1:
        try:
            os.link(staged, work)
        except OSError as error:
            if error.errno not in _SHARED:
                raise
    if not work.exists():
        shutil.copyfile(staged, work)
    # What the umask allows is asked of a new file, for reading the umask itself would change it for other threads.
    probe = work.with_name(".mode")
    probe.touch(mode=0o666)
    work.chmod(probe.stat().st_mode & 0o777)
    probe.unlink()


def keep_rights(work: Path, before: Path, instead: Path | None = None) -> None:
    """Let a file that will take another's place be closed to whom its owner has shut out of that one.

    Rights are only taken away: what the umask does not allow is not given, either. The group is that of the file
    before; where the system does not let us say so, the new file's group gets no more than everybody. Where there is no
    file before, ``instead`` is looked at.
    """
    for path in (before, *([instead] if instead is not None else [])):
        with contextlib.suppress(FileNotFoundError):
            found = path.stat(follow_symlinks=False)
            if stat.S_ISREG(found.st_mode):
                take_rights(work, found.st_mode, found.st_gid)
            return


def keep_rights_of_folder(staged: Path, before: Path) -> None:
    """Do for a folder and all below it what ``keep_rights`` does for a file.

    Names below differ from one time to the next: what one of the files or folders before allowed is allowed to all.
    """
    if before.is_symlink() or not before.is_dir():
        return
    modes = {True: 0, False: 0}
    for path in before.rglob("*"):
        found = path.stat(follow_symlinks=False)
        modes[stat.S_ISDIR(found.st_mode)] |= found.st_mode
    top = before.stat()
    for path in staged.rglob("*"):
        mode = modes[path.is_dir()]
        if mode:
            take_rights(path, mode, top.st_gid)
    take_rights(staged, top.st_mode, top.st_gid)


def take_rights(work: Path, mode: int, group: int) -> None:
    """Take from a file or folder of ours all rights that ``mode`` does not give, and give it a group."""
    found = work.stat()
    wanted = stat.S_IMODE(found.st_mode) & stat.S_IMODE(mode) & 0o777
    if wanted == stat.S_IMODE(found.st_mode) & 0o777 and group == found.st_gid:
        return
    if group != found.st_gid:
        try:
            os.chown(work, -1, group)
        except OSError:
            everybody = wanted & 0o007
            wanted &= 0o707 | everybody << 3
    work.chmod(wanted)
    sync(work)


def exchange(first: Path, second: Path) -> bool:
    """Let two existing paths swap their names in one atomic step; False says that the system cannot do that."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    names = [os.fsencode(first.absolute()), os.fsencode(second.absolute())]
    if rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NO_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), str(first))
