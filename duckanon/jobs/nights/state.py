"""What a job keeps from night to night for one table, in a folder that only its user can read.

``last.json`` has facts about the run that is published, ``pending.json`` those of a run that is about to be;
``place.json`` says where the last run was to publish; ``history.jsonl`` has one line for each run; ``runs/<run>`` the
Parquet files of single runs; ``key`` a secret.

No value of a cell stands in a JSON file: names, types, counts and positions only. A frozen recoding needs more: the
labels of hierarchies that were made from the data, and the ends of regions. They lie in Parquet files below ``runs``,
as raw as the source: whoever may not read the source may not read this folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.errors import DataError, EngineError, ParameterError
from duckanon.io.disk import replacing, sync
from duckanon.jobs.nights.history import flat, read_history

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1
_LAST, _PENDING, _PLACE = "last.json", "pending.json", "place.json"
_HISTORY, _RUNS, _KEY = "history.jsonl", "runs", "key"
_FACTS = frozenset({"run", "stored", "nights"})
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_KEY_BYTES = 32
MARKER = ".duckanon-state"
"""Stands in every folder that is ours."""
_ABOUT = "duckanon keeps here what a job needs to know from run to run.\n"


@dataclass(frozen=True)
class State:
    """The private folder of one table of a job. One run at a time may use it: the lock is the job's."""

    folder: Path

    @classmethod
    def open(cls, folder: str | Path) -> State:
        """Make the folder where there is none (mode 0700); an EngineError where it is not ours, or others could write.

        An empty folder of the user's own is taken as it is. One that has other things in it is somebody else's: no
        rights are changed there, and nothing is removed.
        """
        path = Path(folder)
        with _os_errors(path):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            _require_ours(path)
            runs = path / _RUNS
            runs.mkdir(mode=0o700, exist_ok=True)
            _require_private(runs)
            sync(path)
        return cls(path)

    # The run that is published, and the one that is about to be

    def last(self) -> Mapping[str, Any] | None:
        """Return the facts of the last published run, ``run`` among them; None before the first."""
        return self._read(_LAST, _FACTS)

    def pending(self) -> Mapping[str, Any] | None:
        """Return the facts of a run that was prepared and not settled."""
        return self._read(_PENDING, _FACTS)

    def run_folder(self, run: str) -> Path:
        """Return the folder for the Parquet files of a run, made where there is none."""
        path = self.folder / _RUNS / _named(run)
        with _os_errors(path):
            path.mkdir(mode=0o700, exist_ok=True)
        return path

    def prepare(
        self, run: str, facts: Mapping[str, Any], *, recoding: str | None = None, nights: Sequence[str] = ()
    ) -> None:
        """Write down, before a run publishes, what will be known of it when it has.

        Parameters
        ----------
        run : str
            The run's id, which its manifest carries.
        facts : mapping
            Plain values; no cell is among them.
        recoding : str, optional
            The run whose stored recoding is in force: this one, or an earlier one.
        nights : sequence of str
            The runs whose persons later nights are compared with, the newest first; this one among them where its
            file was written.
        """
        kept = [_named(r) for r in (*nights, *([recoding] if recoding is not None else []))]
        for other in kept:
            if not (self.folder / _RUNS / other).is_dir():
                raise ParameterError(f"The state has no folder of the run {other!r}.")
        known = {"format": FORMAT, **facts, "run": _named(run), "stored": recoding, "nights": list(nights)}
        with _os_errors(self.folder):
            own = self.folder / _RUNS / run
            if own.is_dir():
                for file in sorted(own.iterdir()):
                    file.chmod(0o600)
                    sync(file)
                sync(own)
            sync(self.folder / _RUNS)
            self._replace(_PENDING, json.dumps(known, sort_keys=True, allow_nan=False))

    def settle(self, published: str | None) -> bool:
        """Make the pending run the last one if it is the published one, else forget it; say which.

        To be called after publishing and at the beginning of the next run, with the run id in the manifest that is
        there, or None where there is none. Killed at any point, the next call finds the state as it was, or done.
        """
        pending = self.pending()
        done = pending is not None and pending["run"] == published
        with _os_errors(self.folder):
            if done:
                (self.folder / _PENDING).replace(self.folder / _LAST)
            elif pending is not None:
                (self.folder / _PENDING).unlink()
            sync(self.folder)
            self._sweep()
        return done

    def forget(self) -> None:
        """Remove what a run that published nothing, such as a dry run, left in its folder."""
        with _os_errors(self.folder):
            self._sweep()

    def _sweep(self) -> None:
        """Remove the files of runs that nothing refers to, and what a killed run left half written."""
        kept: set[str] = set()
        for known in (self.last(), self.pending()):
            if known is not None:
                kept |= {known["run"], *known["nights"], *([known["stored"]] if known["stored"] else [])}
        for path in (self.folder / _RUNS).iterdir():
            if path.name not in kept:
                shutil.rmtree(path, ignore_errors=True)
        for path in self.folder.glob(".duckanon-*.tmp"):
            path.unlink(missing_ok=True)

    # Where the last run was to publish

    def place(self) -> Mapping[str, Any] | None:
        """Return where the last run was to publish, in the job's own words; None before the first."""
        found = self._read(_PLACE, {"output"})
        if found is not None and not isinstance(found["output"], dict):
            raise _damaged(_PLACE)
        return found["output"] if found is not None else None

    def begin(self, place: Mapping[str, Any]) -> None:
        """Write down where this run is to publish, once what was left where the last one did is settled."""
        with _os_errors(self.folder):
            self._replace(_PLACE, json.dumps({"format": FORMAT, "output": dict(place)}, sort_keys=True))

    # The history

    def append(self, record: Mapping[str, Any]) -> None:
        """Add the line of a run, published or failed, to the history; a torn last line is cut off first."""
        line = json.dumps(flat(record), allow_nan=False).encode() + b"\n"
        with _os_errors(self.folder):
            descriptor = os.open(self.folder / _HISTORY, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "r+b") as file:
                size = file.seek(0, os.SEEK_END)
                file.truncate(_whole_lines(file, size))
                file.seek(0, os.SEEK_END)
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            sync(self.folder)

    @property
    def history_path(self) -> Path:
        """The file of the history: JSON lines, which DuckDB's ``read_json`` reads."""
        return self.folder / _HISTORY

    def history(self) -> pa.Table:
        """Return the runs so far, one row each, the oldest first; see ``nights.history`` for the columns."""
        with _os_errors(self.folder):
            return read_history(self.history_path)

    # The secret

    def key(self) -> str:
        """Return the key by which persons and classes are hashed, drawn from the operating system on first use."""
        path = self.folder / _KEY
        with _os_errors(path):
            with contextlib.suppress(FileNotFoundError):
                found = path.read_text(encoding="ascii", errors="replace").strip()
                if not re.fullmatch(rf"[0-9a-f]{{{2 * _KEY_BYTES}}}", found):
                    raise DataError("The key in the state folder is damaged: remove the folder to begin anew.")
                return found
            made = secrets.token_hex(_KEY_BYTES)
            self._replace(_KEY, made)
        return made

    # Files

    def _read(self, name: str, keys: Set[str]) -> dict[str, Any] | None:
        path = self.folder / name
        with _os_errors(path):
            try:
                found = json.loads(path.read_text(encoding="utf-8"))
            except FileNotFoundError:
                return None
            except ValueError:
                found = None
        if not isinstance(found, dict) or not keys <= found.keys():
            raise _damaged(name)
        if found.get("format") != FORMAT:
            raise DataError(f"{name!r} in the state folder was written by another version of duckanon.")
        return found

    def _replace(self, name: str, content: str) -> None:
        with replacing(self.folder / name, 0o600) as staged:
            staged.write_text(content, encoding="utf-8")


def _damaged(name: str) -> DataError:
    return DataError(f"{name!r} in the state folder is damaged: remove the folder to begin anew.")


def _named(run: str) -> str:
    if not isinstance(run, str) or not _RUN.fullmatch(run):
        raise ParameterError("The id of a run has letters, digits, dots, dashes and underscores, at most 128 of them.")
    return run


def _require_ours(path: Path) -> None:
    """Raise unless a folder is a state, or is empty and may become one."""
    marked = _is_marked(path)
    if not marked and path.is_dir() and not path.is_symlink() and any(path.iterdir()):
        raise EngineError(
            f"The folder {path.name!r} is not empty and holds no state of duckanon: name another one with [nights] "
            "state. Nothing in it was changed."
        )
    _require_private(path, made=marked)
    if not marked:
        descriptor = os.open(path / MARKER, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(_ABOUT)


def _is_marked(path: Path) -> bool:
    try:
        found = (path / MARKER).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def _require_private(path: Path, *, made: bool = True) -> None:
    """Raise unless nobody else can change what is in a folder; ``made`` says that it is ours, and so are its rights."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise EngineError(f"The state folder {path.name!r} is a link or a file, not a folder.")
    if found.st_uid != os.geteuid():
        raise EngineError(f"The state folder {path.name!r} belongs to another user.")
    if found.st_mode & 0o022:
        raise EngineError(
            f"The state folder {path.name!r} can be written to by others, who could change what is published: "
            "take their rights away (chmod 700), or name another folder."
        )
    if found.st_mode & 0o077 and not made:
        raise EngineError(
            f"The state folder {path.name!r} can be read by others, and was not made by duckanon: take their rights "
            "away (chmod 700), or name a folder that does not exist yet."
        )
    if found.st_mode & 0o077:
        path.chmod(0o700)


def _whole_lines(file: Any, size: int) -> int:
    """Return how many bytes of a file are whole lines."""
    end = size
    while end > 0:
        start = max(0, end - 65536)
        file.seek(start)
        at = file.read(end - start).rfind(b"\n")
        if at >= 0:
            return int(start + at + 1)
        end = start
    return 0


@contextlib.contextmanager
def _os_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno is not None else type(error).__name__
        raise EngineError(f"{reason}: the state of the job ({path.name!r}) cannot be read or written.") from None


__all__ = ["State"]
