"""Files and folders on disk: replaced in one step, by one writer at a time, and synced."""

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
    """Turn errors of the operating system while ``target`` is written into an EngineError."""
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
    """Create a folder and its missing parents; remove them again if the work inside fails."""
    made: list[Path] = []
    try:
        for path in reversed((folder, *folder.parents)):
            if not path.is_dir():
                # Another process may create the same folder at this moment: then it is not ours to remove.
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
    """Be the only writer of a target; raise at once if there is another one."""
    path = target.with_name(f".{target.name}.lock")
    handle = _lock(path, target)
    try:
        yield
    finally:
        # Removed while it is held: another process that has opened it sees that the name is gone and tries again.
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
def replacing(path: Path, mode: int | None = None, follow: bool = True) -> Iterator[Path]:
    """Yield the path of a new file that takes the place of ``path`` when the work inside is done.

    Readers of ``path`` see the old file or the new one, complete. If the work fails, nothing changes. The new file has
    the permissions ``mode``, else those of the old file; until it is complete only its owner can read it, unless it is
    new and no ``mode`` is given. A link stays, and what it points to is replaced. A pipe or a device has no content to
    keep: it is written to directly. Without ``follow`` the new file takes the place of a link, pipe or device, too.
    """
    target = path.resolve() if follow else path.absolute()
    if follow and target.exists() and not target.is_file():
        yield target
        return
    # Programs that collect files by suffix must not pick up one that is still being written.
    staged = target.with_name(f".duckanon-{secrets.token_hex(8)}.tmp")
    if mode is None and target.exists():
        mode = target.stat().st_mode & 0o777
    try:
        if mode is not None:
            staged.touch(0o600, exist_ok=False)
        yield staged
        if mode is not None:
            staged.chmod(mode)
        sync(staged)
        staged.replace(target)
    except BaseException as error:
        staged.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (str(staged), None):
            # The message names the target, not the temporary file.
            raise type(error)(error.errno, error.strerror, str(path)) from None
        raise
    with contextlib.suppress(OSError):
        sync(target.parent)


def replace_folder(staged: Path, target: Path, aside: Path) -> None:
    """Let a folder take the place of ``target``; what was there ends up at ``staged``.

    If the system cannot swap two folders, the old one is at ``aside`` for a moment.
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
    """Give a file a second name, or copy it if that is not possible; symbolic links stay links."""
    try:
        os.link(path, name, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _SHARED:
            raise
        shutil.copy2(path, name, follow_symlinks=False)
        if not name.is_symlink():
            sync(name)


def bring(staged: Path, work: Path) -> None:
    """Bring a file into the folder of its target: as a second name if possible, else as a copy."""
    # A file that was published once has two names already: a further target gets a copy, so that changing one of them
    # in place does not change the other.
    if staged.stat().st_nlink == 1:
        try:
            os.link(staged, work)
        except OSError as error:
            if error.errno not in _SHARED:
                raise
    if not work.exists():
        shutil.copyfile(staged, work)
    # A new file shows what the umask allows: reading the umask itself would change it for other threads.
    probe = work.with_name(".mode")
    probe.touch(mode=0o666)
    work.chmod(probe.stat().st_mode & 0o777)
    probe.unlink()


def keep_rights(work: Path, before: Path, instead: Path | None = None) -> None:
    """Restrict the permissions of a new file to those of the file that it will replace.

    Permissions are only removed. The group is that of the old file; if the system does not allow that, the new file's
    group gets no more than everybody. If there is no old file, those of ``instead`` are used.
    """
    for path in (before, *([instead] if instead is not None else [])):
        with contextlib.suppress(FileNotFoundError):
            status = path.stat(follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                take_rights(work, status.st_mode, status.st_gid)
            return


def keep_rights_of_folder(staged: Path, before: Path) -> None:
    """Restrict the permissions of a folder and all below it to those of the folder that it will replace.

    Names below differ between releases: what any of the old files or folders allowed is allowed for all.
    """
    if before.is_symlink() or not before.is_dir():
        return
    modes = {True: 0, False: 0}
    for path in before.rglob("*"):
        status = path.stat(follow_symlinks=False)
        modes[stat.S_ISDIR(status.st_mode)] |= status.st_mode
    top = before.stat()
    for path in staged.rglob("*"):
        mode = modes[path.is_dir()]
        if mode:
            take_rights(path, mode, top.st_gid)
    take_rights(staged, top.st_mode, top.st_gid)


def take_rights(work: Path, mode: int, group: int) -> None:
    """Remove all permissions that ``mode`` does not have from a file or folder, and set its group."""
    status = work.stat()
    wanted = stat.S_IMODE(status.st_mode) & stat.S_IMODE(mode) & 0o777
    if wanted == stat.S_IMODE(status.st_mode) & 0o777 and group == status.st_gid:
        return
    if group != status.st_gid:
        try:
            os.chown(work, -1, group)
        except OSError:
            everybody = wanted & 0o007
            wanted &= 0o707 | everybody << 3
    work.chmod(wanted)
    sync(work)


def exchange(first: Path, second: Path) -> bool:
    """Swap two existing paths in one atomic step; return False if the system cannot do that."""
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
