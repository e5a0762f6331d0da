"""Where a release goes: written beside its target, synced, checked, and renamed; a manifest with hashes comes last.

Whatever fails on the way, what stood under the target's name before still stands there, and nothing is left behind. A
process that is killed can leave a private folder (swept by the next run) or, between two renames, files that do not
belong to the manifest beside them (which ``verify_files`` finds, and the next run repairs).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import math
import os
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from duckanon._version import __version__
from duckanon.errors import ConfigError, DataError, EngineError
from duckanon.resources import PrivateFolder, file_digest, sweep

_SUFFIX = ".parquet"
_FORMAT = 1
_KEPT = (
    "unit",
    "promise",
    "checks",
    "algorithm",
    "suppression_limit",
    "roles",
    "hierarchies",
    "found",
    "bounds",
    "output",
    "within",
    "seeded",
    "notes",
)
"""What a manifest takes from a summary: named one by one, so that nothing new slips in."""
_SECRETS = {"seed", "key", "secret"}
_SHARED = (errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_FULL = (errno.ENOSPC, errno.EDQUOT)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_FOLDER = (errno.ENOTDIR, errno.EEXIST)


def publish(
    staged: Path,
    target: Path,
    *,
    summary: Mapping[str, Any],
    reports: Mapping[str, str],
    verify: Callable[[Path], None],
) -> dict[str, Any]:
    """Put a staged file, its reports and its manifest under the target's name, all or nothing.

    Parameters
    ----------
    staged : Path
        A complete Parquet file that nobody else can see; it is not changed.
    target : Path
        The name under which to publish; its folder is made where there is none.
    summary : mapping
        What the release promises and what was found; the manifest takes its entries from it.
    reports : mapping of str to str
        The text of each report by its format, which is also its suffix.
    verify : callable
        Reads the synced file again and raises where a promise is broken.

    Returns
    -------
    dict
        ``release`` and ``manifest``: Path; ``reports``: list of Path.
    """
    require_target(target)
    names = {kind: f"{target.stem}.report.{kind}" for kind in reports}
    manifest = manifest_path(target)
    with os_errors(target), made_folder(target.parent), locked(target):
        for name in (target.name, *names.values(), manifest.name):
            if (target.parent / name).is_dir():
                raise ConfigError(f"{name!r} is a folder: a file cannot be published under its name.")
        sweep(target.parent)
        folder = PrivateFolder(target.parent)
        try:
            work = folder.path / target.name
            _stage(staged, work)
            _sync(work)
            files = [_entry(work, "release")]
            verify(work)
            for kind, name in names.items():
                _write_text(folder.path / name, reports[kind])
                files.append(_entry(folder.path / name, "report"))
            _write_text(folder.path / manifest.name, _sealed(_manifest(summary, files)))
            _rename(folder.path, target.parent, [target.name, *names.values()], _stale(target, names), manifest.name)
        finally:
            folder.close()
    return {"release": target, "manifest": manifest, "reports": [target.parent / n for n in names.values()]}


def require_target(target: Path) -> None:
    """Raise a ConfigError unless a release can be written under this name."""
    if target.suffix.lower() != _SUFFIX or not target.stem:
        raise ConfigError(f"A release is written as Parquet: the name {target.name!r} must end in {_SUFFIX}.")


def require_writable(target: Path) -> None:
    """Raise unless the target's folder can be written to and nobody else is writing there; for use before long work."""
    require_target(target)
    with os_errors(target), locked(target):
        PrivateFolder(target.parent).close()


def manifest_path(target: Path) -> Path:
    """Return the place of a release's manifest."""
    return target.with_name(f"{target.stem}.manifest.json")


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
                    _sync(path.parent)
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


def _stage(staged: Path, work: Path) -> None:
    """Bring the file into the folder of its target: by a second name where that is possible, else by a copy."""
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


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
    _sync(path)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _rename(source: Path, folder: Path, names: list[str], stale: list[str], last: str) -> None:
    """Rename the files in their order, the manifest last; if that fails halfway, put back what was there."""
    kept = source / ".before"
    kept.mkdir(mode=0o700)
    for name in (*names, *stale, last):
        if os.path.lexists(folder / name):
            _keep(folder / name, kept / name)
    try:
        for name in names:
            (source / name).replace(folder / name)
        for name in stale:
            (folder / name).unlink(missing_ok=True)
        (source / last).replace(folder / last)
        _sync(folder)
    except BaseException:
        for name in (*names, *stale, last):
            with contextlib.suppress(OSError):
                if os.path.lexists(kept / name):
                    (kept / name).replace(folder / name)
                elif not (source / name).exists():
                    (folder / name).unlink(missing_ok=True)
        raise


def _keep(path: Path, copy: Path) -> None:
    """Give a file that is about to be replaced a second name; symbolic links are kept as links."""
    try:
        os.link(path, copy, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _SHARED:
            raise
        shutil.copy2(path, copy, follow_symlinks=False)


def _stale(target: Path, names: Mapping[str, str]) -> list[str]:
    """Return reports of the release that is replaced, by its own manifest, that the new one does not have."""
    try:
        before = read_manifest(manifest_path(target))
    except DataError:
        return []
    prefix = f"{target.stem}.report."
    reports = [f["name"] for f in before["files"] if f["role"] == "report" and f["name"].startswith(prefix)]
    return [n for n in reports if n not in names.values()]


def _entry(path: Path, role: str) -> dict[str, Any]:
    return {"name": path.name, "role": role, "bytes": path.stat().st_size, "sha256": file_digest(path)}


def _manifest(summary: Mapping[str, Any], files: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "manifest": _FORMAT,
        "duckanon": summary.get("duckanon", __version__),
        "engine": summary.get("engine"),
        "python": platform.python_version(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        **{key: _public(summary[key]) for key in _KEPT if key in summary},
        "files": files,
    }


def _public(value: Any) -> Any:
    """Return plain values without seeds and keys, and without numbers that JSON cannot hold."""
    if isinstance(value, Mapping):
        return {str(k): _public(v) for k, v in value.items() if str(k).lower() not in _SECRETS}
    if isinstance(value, list | tuple):
        return [_public(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _sealed(content: Mapping[str, Any]) -> str:
    """Return the manifest's text; its own hash stands in it, so that a changed manifest gives itself away."""
    seal = hashlib.sha256(_text(content).encode()).hexdigest()
    return _text({**content, "sha256": seal})


def _text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n"


def read_manifest(path: str | Path) -> dict[str, Any]:
    """Return a manifest; a DataError says that there is none, or that it was changed."""
    path = Path(path)
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"There is no manifest {path.name!r}.") from None
    except OSError as error:
        raise DataError(f"The manifest {path.name!r} cannot be read: {os.strerror(error.errno or 0)}.") from None
    try:
        content = json.loads(raw)
        seal = content.pop("sha256")
        files = content["files"]
        plain = all(_is_file_entry(f) for f in files) and len(files) > 0
        unchanged = isinstance(seal, str) and _sealed(content).encode() == raw
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError(f"{path.name!r} is not a manifest, or was damaged.") from None
    if not unchanged:
        raise DataError(f"The manifest {path.name!r} was changed: it does not have its own SHA-256.")
    if not plain:
        raise DataError(f"The manifest {path.name!r} names a file outside of its folder, or in an unknown way.")
    return dict(content)


def _is_file_entry(entry: Any) -> bool:
    name = entry["name"]
    inside = isinstance(name, str) and name not in {"", ".", ".."} and not set(name) & {"/", "\\", "\0"}
    return inside and all(isinstance(entry[k], t) for k, t in (("role", str), ("bytes", int), ("sha256", str)))


def verify_files(manifest: str | Path) -> list[str]:
    """Return what is wrong with the files that a manifest lists; an empty list says that all are as published."""
    path = Path(manifest)
    try:
        content = read_manifest(path)
    except DataError as error:
        return [str(error)]
    problems = []
    for entry in content["files"]:
        file = path.parent / entry["name"]
        try:
            if file.is_symlink() or not file.is_file():
                problems.append(f"{entry['name']}: missing")
            elif file.stat().st_size != entry["bytes"]:
                problems.append(f"{entry['name']}: {file.stat().st_size} bytes instead of {entry['bytes']}")
            elif file_digest(file) != entry["sha256"]:
                problems.append(f"{entry['name']}: its SHA-256 differs from the manifest")
        except OSError as error:
            problems.append(f"{entry['name']}: {os.strerror(error.errno or 0)}")
    return problems
