"""A commit of several files that the next run can finish: all of them get their names, or none.

The staged files and a journal are complete and synced in a private folder before anything is renamed. One rename makes
that folder the pending commit of its target (``.NAME.commit``): from then on, the new export counts. Then the files get
their names one by one, each by an atomic rename, the manifest last. If the process is killed, the pending commit stays
and ``recover`` carries it out again from the start, which is safe. The data file under its final name is always
complete: the old one or the new one.

If an exception is raised on the way, the files that were there before are committed again.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from duckanon.errors import ConfigError, EngineError
from duckanon.io.disk import exchange, locked, os_errors, second_name, sync, write_text

_JOURNAL = "journal.json"
_NEXT = ".next"
_PENDING, _ASIDE = ".commit", ".aside"


@dataclass(frozen=True)
class Journal:
    """The files to rename and then to remove in the folder of a target.

    ``run`` is set if a database's own commit decides: the files count if and only if that run is the published one.
    """

    names: tuple[str, ...]
    removed: tuple[str, ...] = ()
    run: str | None = None

    def write(self, folder: Path) -> None:
        """Write the journal into the folder that has the files."""
        content = {"names": self.names, "removed": self.removed, "run": self.run}
        write_text(folder / _JOURNAL, json.dumps(content))

    @classmethod
    def read(cls, folder: Path) -> Journal | None:
        """Return a folder's journal, or None if it has no valid one."""
        try:
            content = json.loads((folder / _JOURNAL).read_bytes())
            names, removed, run = (content[k] for k in ("names", "removed", "run"))
            if all(is_plain(n) for n in (*names, *removed)) and (run is None or isinstance(run, str)):
                return cls(tuple(names), tuple(removed), run)
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None


def is_plain(name: Any) -> bool:
    """Return whether a name is a plain file name, without a path."""
    return isinstance(name, str) and name not in {"", ".", ".."} and not set(name) & {"/", "\\", "\0"}


def require_plain(name: str) -> None:
    """Raise a ConfigError for a name that a manifest cannot list, so that the release could not be verified."""
    if not is_plain(name):
        raise ConfigError(f"A release cannot have the name {name!r}: choose one without a backslash.")


def pending_path(target: Path) -> Path:
    """Return the folder of a target's commit while it is carried out."""
    return target.with_name(f".{target.name}{_PENDING}")


def aside_path(target: Path) -> Path:
    """Return where the old folder stands for a moment, on systems that cannot swap two folders."""
    return target.with_name(f".{target.name}{_ASIDE}")


def unfinished(folder: Path) -> list[Path]:
    """Return the targets in a folder whose last run was killed while publishing."""
    targets: dict[Path, None] = {}
    for suffix in (_PENDING, _ASIDE):
        for path in sorted(folder.glob(f".*{suffix}")):
            targets[folder / path.name.removeprefix(".").removesuffix(suffix)] = None
    return list(targets)


def commit(staged: Path, target: Path, names: Sequence[str], removed: Sequence[str] = ()) -> None:
    """Give the files in ``staged``, all synced, their names beside ``target``; if that fails, restore the old files.

    Files are renamed in the order of ``names``, then those in ``removed`` are deleted. ``staged`` is a folder in a
    private one, which also takes what is needed to restore the old files.
    """
    before = staged.with_name("before")
    before.mkdir(mode=0o700)
    there = [n for n in (*names, *removed) if os.path.lexists(target.parent / n)]
    for name in there:
        second_name(target.parent / name, before / name)
    Journal(tuple(there), tuple(n for n in names if n not in there)).write(before)
    try:
        propose(staged, target, Journal(tuple(names), tuple(removed)))
        carry_out(target)
    except BaseException:
        with contextlib.suppress(OSError):
            _put_back(before, target)
        raise
    discard(target)


def propose(staged: Path, target: Path, journal: Journal) -> None:
    """Make a folder of staged files the pending commit of a target."""
    journal.write(staged)
    sync(staged)
    staged.rename(pending_path(target))
    sync(target.parent)


def carry_out(target: Path, *, moving: bool = False) -> None:
    """Give the files of the pending commit their names. It is safe to do so twice, or again after half of it.

    The pending commit keeps all files by a second name, unless ``moving`` allows to move them if the disk is full.
    """
    pending, folder = pending_path(target), target.parent
    journal = Journal.read(pending)
    if journal is None:
        return
    for name in journal.names:
        if os.path.lexists(pending / name):
            _place(pending, folder, name, moving)
    for name in journal.removed:
        (folder / name).unlink(missing_ok=True)
    sync(folder)


def _place(pending: Path, folder: Path, name: str, moving: bool) -> None:
    following = pending / _NEXT
    following.unlink(missing_ok=True)
    try:
        second_name(pending / name, following)
    except OSError:
        if not moving:
            raise
        following = pending / name
    following.replace(folder / name)
    if following.name == _NEXT:
        # A rename between two names of one file does nothing.
        following.unlink(missing_ok=True)


def discard(target: Path) -> None:
    """Remove a pending commit, whether it was carried out or not."""
    shutil.rmtree(pending_path(target), ignore_errors=True)


def _put_back(before: Path, target: Path) -> None:
    pending = pending_path(target)
    if not pending.exists():
        return
    # In one step the commit of the old files takes the place of the new one: killed here, the next run finishes this.
    if not exchange(before, pending):
        pending.rename(before.with_name("undone"))
        before.rename(pending)
    carry_out(target, moving=True)
    discard(target)


def recover(target: Path) -> bool:
    """Finish what a killed run left half done at a target; return whether there was anything.

    Called at the start of every run and by ``verify``. A commit that depends on a database is left to its sink.
    """
    if not (os.path.lexists(pending_path(target)) or os.path.lexists(aside_path(target))):
        return False
    with os_errors(target), locked(target):
        return finish(target)


def finish(target: Path) -> bool:
    """Do the work of ``recover`` while the caller holds the target's lock."""
    pending, aside = pending_path(target), aside_path(target)
    was_unfinished = False
    if os.path.lexists(pending):
        _require_ours(pending)
        journal = Journal.read(pending)
        if journal is not None and journal.run is not None:
            return False
        carry_out(target)
        discard(target)
        was_unfinished = True
    if os.path.lexists(aside):
        _require_ours(aside)
        if os.path.lexists(target):
            shutil.rmtree(aside, ignore_errors=True)
        else:
            aside.rename(target)
            sync(target.parent)
        was_unfinished = True
    return was_unfinished


def settle(target: Path, published: str | None) -> bool:
    """Finish a commit that depends on a database: keep its files if the database has the run, else discard them.

    The caller holds the target's lock; ``published`` is the run whose rows the database has.
    """
    pending = pending_path(target)
    if not os.path.lexists(pending):
        return False
    _require_ours(pending)
    journal = Journal.read(pending)
    if journal is not None and journal.run == published:
        carry_out(target)
    discard(target)
    return True


def _require_ours(path: Path) -> None:
    """Raise unless what a run left is a folder of this user: anything else is not trusted."""
    status = path.stat(follow_symlinks=False)
    if path.is_symlink() or not path.is_dir() or status.st_uid != os.getuid():
        raise EngineError(f"{path.name!r} was left by a run of another user: that user has to finish or remove it.")
