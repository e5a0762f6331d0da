"""A commit that can be finished by whoever comes next: several files get their names, all of them or none.

The staged files and a journal are complete and synced in a private folder before anything is renamed. One rename makes
that folder the pending commit of its target (``.NAME.commit``); this is the moment at which the new export is decided
on. Then the files get their names one by one, each by an atomic rename, the manifest last. A process that is killed on
the way leaves the pending commit, and ``recover`` carries it out again from the start, which does no harm. At every
instant the data file under its final name is whole, the old one or the new one.

An exception on the way is answered by another commit: the one of the files that were there before.
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
    """What is to be renamed and removed in the folder of a target, in this order.

    ``run`` is set where something else decides, such as a database's own commit: then the files count if and only if
    that run is the published one.
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
        """Return a folder's journal; None where it has none that can be trusted."""
        try:
            content = json.loads((folder / _JOURNAL).read_bytes())
            names, removed, run = (content[k] for k in ("names", "removed", "run"))
            if all(is_plain(n) for n in (*names, *removed)) and (run is None or isinstance(run, str)):
                return cls(tuple(names), tuple(removed), run)
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None


def is_plain(name: Any) -> bool:
    """Say whether a name is that of a file in the same folder."""
    return isinstance(name, str) and name not in {"", ".", ".."} and not set(name) & {"/", "\\", "\0"}


def require_plain(name: str) -> None:
    """Raise a ConfigError for a name that no manifest may list, so that nobody could verify the release."""
    if not is_plain(name):
        raise ConfigError(f"A release cannot have the name {name!r}: choose one without a backslash.")


def pending_path(target: Path) -> Path:
    """Return the folder of a target's commit while it is carried out."""
    return target.with_name(f".{target.name}{_PENDING}")


def aside_path(target: Path) -> Path:
    """Return where a target that is a folder stands for a moment, on systems that cannot swap two folders."""
    return target.with_name(f".{target.name}{_ASIDE}")


def unfinished(folder: Path) -> list[Path]:
    """Return the targets in a folder whose last run was killed while it published."""
    found: dict[Path, None] = {}
    for suffix in (_PENDING, _ASIDE):
        for path in sorted(folder.glob(f".*{suffix}")):
            found[folder / path.name.removeprefix(".").removesuffix(suffix)] = None
    return list(found)


def commit(staged: Path, target: Path, names: Sequence[str], removed: Sequence[str] = ()) -> None:
    """Give the files in ``staged``, all synced, their names beside ``target``; if that fails, put back what was there.

    ``names`` are in the order of the renames; ``removed`` are names that no longer are. ``staged`` is a folder in a
    private one, which also takes what is needed to go back.
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
    """Give the files of the pending commit their names. Doing so twice, or after half of it was done, is the same.

    The pending commit keeps all files by a second name, unless ``moving`` says that there may be no room for that.
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
    """Remove a commit that was carried out, or shall not be."""
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
    """Finish what a killed run left half done under a target's name; say whether there was anything.

    Called at the start of every run, and by ``verify``; where nothing was left, nothing is written. A commit that hangs
    on a database is left to the sink that knows it.
    """
    if not (os.path.lexists(pending_path(target)) or os.path.lexists(aside_path(target))):
        return False
    with os_errors(target), locked(target):
        return finish(target)


def finish(target: Path) -> bool:
    """Do the work of ``recover`` for whoever holds the target's lock."""
    pending, aside = pending_path(target), aside_path(target)
    found = False
    if os.path.lexists(pending):
        _require_ours(pending)
        journal = Journal.read(pending)
        if journal is not None and journal.run is not None:
            return False
        carry_out(target)
        discard(target)
        found = True
    if os.path.lexists(aside):
        _require_ours(aside)
        if os.path.lexists(target):
            shutil.rmtree(aside, ignore_errors=True)
        else:
            aside.rename(target)
            sync(target.parent)
        found = True
    return found


def settle(target: Path, published: str | None) -> bool:
    """Finish a commit that hangs on a database: keep its files if that has the run, else forget them.

    For whoever holds the target's lock; ``published`` is the run whose rows the database has.
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
    """Raise where what a run left belongs to somebody else, or is no folder: it is not trusted."""
    found = path.stat(follow_symlinks=False)
    if path.is_symlink() or not path.is_dir() or found.st_uid != os.getuid():
        raise EngineError(f"{path.name!r} was left by a run of another user: that user has to finish or remove it.")
