"""The state of one table of a job: what later runs need, in a private folder.

``last.json`` is about the run that is published, ``pending.json`` about one that is about to be; ``place.json`` says
where the last run was to publish; ``history.jsonl`` has a line for each run; ``runs/<run>`` the Parquet files of a run;
``key`` a secret.

JSON files have names, types, counts and positions, never a cell. A frozen recoding needs more: the labels of
hierarchies that were made from the data, and the ends of regions. They are in Parquet files below ``runs`` and are as
confidential as the source: whoever may not read the source may not read this folder.
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
"""The file that marks a folder as made by duckanon, or given to it."""
_ABOUT = "duckanon stores here what later runs of a job need.\n"


@dataclass(frozen=True)
class State:
    """The private folder of one table of a job. The lock of the job lets one run at a time use it."""

    folder: Path

    @classmethod
    def open(cls, folder: str | Path) -> State:
        """Make the folder if there is none (mode 0700), or raise an EngineError where it is not safe to use.

        An empty folder of the user's is used as it is. In a folder with other files no permissions are changed, and
        nothing is removed.
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
        """Store, before a run publishes, what later runs need to know about it.

        Parameters
        ----------
        run : str
            The run's id, which its manifest carries.
        facts : mapping
            Plain values, none of them a cell.
        recoding : str, optional
            The run whose stored recoding is used: this one or an earlier one.
        nights : sequence of str
            The runs that later ones are compared with, the newest first; this one is among them if it has a file of
            persons.
        """
        needed = [_named(r) for r in (*nights, *([recoding] if recoding is not None else []))]
        for other in needed:
            if not (self.folder / _RUNS / other).is_dir():
                raise ParameterError(f"The state has no folder of the run {other!r}.")
        content = {"format": FORMAT, **facts, "run": _named(run), "stored": recoding, "nights": list(nights)}
        with _os_errors(self.folder):
            files = self.folder / _RUNS / run
            if files.is_dir():
                for file in sorted(files.iterdir()):
                    file.chmod(0o600)
                    sync(file)
                sync(files)
            sync(self.folder / _RUNS)
            self._replace(_PENDING, json.dumps(content, sort_keys=True, allow_nan=False))

    def settle(self, published: str | None) -> bool:
        """Make the pending run the last one if it is the published one, else forget it; return which.

        It is called after publishing and at the start of the next run, with the run id in the published manifest, or
        None where there is none. If the process is killed at any point, the next call completes it.
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
        """Remove the files of a run that published nothing, such as a dry run."""
        with _os_errors(self.folder):
            self._sweep()

    def _sweep(self) -> None:
        """Remove the files of runs that are no longer needed, and partly written files of a killed run."""
        needed: set[str] = set()
        for facts in (self.last(), self.pending()):
            if facts is not None:
                needed |= {facts["run"], *facts["nights"], *([facts["stored"]] if facts["stored"] else [])}
        for path in (self.folder / _RUNS).iterdir():
            if path.name not in needed:
                shutil.rmtree(path, ignore_errors=True)
        # The second is what earlier versions called them.
        for pattern in (".duckanon-*.tmp", ".new-*"):
            for path in self.folder.glob(pattern):
                path.unlink(missing_ok=True)

    # Where the last run was to publish

    def place(self) -> Mapping[str, Any] | None:
        """Return where the last run was to publish, as the job file says it; None before the first run."""
        content = self._read(_PLACE, {"output"})
        if content is not None and not isinstance(content["output"], dict):
            raise _damaged(_PLACE)
        return content["output"] if content is not None else None

    def begin(self, place: Mapping[str, Any]) -> None:
        """Store where this run is to publish, after what the last run left elsewhere is settled."""
        with _os_errors(self.folder):
            self._replace(_PLACE, json.dumps({"format": FORMAT, "output": dict(place)}, sort_keys=True))

    # The history

    def append(self, record: Mapping[str, Any]) -> None:
        """Add the line of a run, published or failed, to the history; an incomplete last line is cut off first."""
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
        """Return the key that persons and classes are hashed with; it is drawn at random on first use."""
        path = self.folder / _KEY
        with _os_errors(path):
            with contextlib.suppress(FileNotFoundError):
                stored = path.read_text(encoding="ascii", errors="replace").strip()
                if not re.fullmatch(rf"[0-9a-f]{{{2 * _KEY_BYTES}}}", stored):
                    raise DataError("The key in the state folder is damaged: remove the folder to start anew.")
                return stored
            drawn = secrets.token_hex(_KEY_BYTES)
            self._replace(_KEY, drawn)
        return drawn

    # Files

    def _read(self, name: str, keys: Set[str]) -> dict[str, Any] | None:
        path = self.folder / name
        with _os_errors(path):
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
            except FileNotFoundError:
                return None
            except ValueError:
                content = None
        if not isinstance(content, dict) or not keys <= content.keys():
            raise _damaged(name)
        if content.get("format") != FORMAT:
            raise DataError(f"{name!r} in the state folder was written by another version of duckanon.")
        return content

    def _replace(self, name: str, content: str) -> None:
        with replacing(self.folder / name, 0o600, follow=False) as staged:
            staged.write_text(content, encoding="utf-8")
        # What is pending must be on the disk before anything is published.
        sync(self.folder)


def _damaged(name: str) -> DataError:
    return DataError(f"{name!r} in the state folder is damaged: remove the folder to start anew.")


def _named(run: str) -> str:
    if not isinstance(run, str) or not _RUN.fullmatch(run):
        raise ParameterError("The id of a run has letters, digits, dots, dashes and underscores, at most 128 of them.")
    return run


def _require_ours(path: Path) -> None:
    """Raise unless a folder is a state, or is empty."""
    marked = _is_marked(path)
    if not marked and path.is_dir() and not path.is_symlink() and any(path.iterdir()):
        raise EngineError(
            f"The folder {path.name!r} is not empty and was not made by duckanon: name another one with [nights] "
            "state. Nothing in it was changed."
        )
    _require_private(path, made=marked)
    if not marked:
        descriptor = os.open(path / MARKER, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(_ABOUT)


def _is_marked(path: Path) -> bool:
    try:
        status = (path / MARKER).lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


def _require_private(path: Path, *, made: bool = True) -> None:
    """Raise where other users can change a folder. One made by duckanon, ``made``, is made private again."""
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise EngineError(f"The state folder {path.name!r} is a link or a file, not a folder.")
    if status.st_uid != os.geteuid():
        raise EngineError(f"The state folder {path.name!r} belongs to another user.")
    if status.st_mode & 0o022:
        raise EngineError(
            f"The state folder {path.name!r} can be written to by other users, who could change what is published: "
            "remove their permissions (chmod 700), or name another folder."
        )
    if status.st_mode & 0o077 and not made:
        raise EngineError(
            f"The state folder {path.name!r} can be read by other users, and was not made by duckanon: remove their "
            "permissions (chmod 700), or name a folder that does not exist yet."
        )
    if status.st_mode & 0o077:
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
