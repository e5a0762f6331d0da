"""Retention: old dated exports are removed as a whole, and nothing else ever is."""

from __future__ import annotations

import contextlib
import glob
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from duckanon.engine.process import PrivateFolder, sweep
from duckanon.errors import DataError, ParameterError
from duckanon.io.disk import locked, os_errors, sync
from duckanon.io.sinks.commit import finish
from duckanon.io.sinks.folder import require_replaceable
from duckanon.io.sinks.manifest import FOLDER_MANIFEST, PARTS, read_manifest, release_entry, verify_files
from duckanon.io.sinks.signing import envelope_path


@dataclass(frozen=True)
class _Export:
    created: str
    target: Path
    manifest: Path
    names: tuple[str, ...]


def prune(
    pattern: str | Path, *, keep: int, current: Path | None = None, day_of: Callable[[Path], str | None] | None = None
) -> list[Path]:
    """Remove old exports of one job: all but the newest ``keep`` of those whose names a pattern matches.

    The dates in their names say which are the newest, if ``day_of`` can read them: a wrong clock, or an export of an
    earlier day that is made again, does not matter then. Otherwise the times in their manifests decide.

    Only what one of our manifests lists is removed: the data, its reports, and last the manifest itself, so that the
    next prune finishes one that was killed. The newest intact export always stays, and so does everything that somebody
    else put there. Folders of Parquet files are removed in one step.

    Parameters
    ----------
    pattern : str or Path
        A glob pattern over the targets, such as ``out/people-*.parquet`` or ``out/*/people.parquet``.
    keep : int
        How many to keep, at least 1.
    current : Path, optional
        The export that was published just now. It is never removed, whatever its date.
    day_of : callable, optional
        Returns the day of an export from its path, as a text that sorts by time, or None.

    Returns
    -------
    list of Path
        The targets that were removed, the oldest first.
    """
    if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
        raise ParameterError("The 'keep' parameter of prune must be an int >= 1.")
    place = Path(pattern)
    named = day_of or (lambda _: None)
    exports = sorted(_exports(place), key=lambda e: (named(e.target) or "", e.created, str(e.target)), reverse=True)
    good = next((e for e in exports if not verify_files(e.manifest)), None)
    removed = []
    for export in reversed(exports[keep:]):
        if export is good or good is None or (current is not None and _same(export.target, current)):
            continue
        _remove(export)
        removed.append(export.target)
        if glob.has_magic(str(place.parent)):
            # A folder that is named by a date; if anything else is in it, it stays.
            with contextlib.suppress(OSError):
                export.target.parent.rmdir()
    return removed


def _same(first: Path, second: Path) -> bool:
    return first.absolute() == second.absolute() or (first.exists() and second.exists() and first.samefile(second))


def _exports(pattern: Path) -> list[_Export]:
    """Return the exports that a pattern matches, found by their manifests: their data may be gone already."""
    exports = []
    for folder in map(Path, glob.glob(str(pattern.parent))):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink() and (path / FOLDER_MANIFEST).is_file():
                manifest = path / FOLDER_MANIFEST
            elif path.name.endswith(".manifest.json") and path.is_file():
                manifest = path
            else:
                continue
            with contextlib.suppress(DataError):
                content = read_manifest(manifest)
                entry = release_entry(content)
                if entry is None or (entry["name"] == PARTS) != (manifest.name == FOLDER_MANIFEST):
                    continue
                target = path if entry["name"] == PARTS else folder / entry["name"]
                if fnmatchcase(target.name, pattern.name):
                    names = (envelope_path(manifest).name, *(f["name"] for f in content["files"]))
                    exports.append(_Export(str(content.get("created", "")), target, manifest, names))
    return exports


def _remove(export: _Export) -> None:
    target = export.target
    with os_errors(target), locked(target):
        finish(target)
        if export.manifest.name == FOLDER_MANIFEST:
            require_replaceable(target)
            sweep(target.parent)
            private = PrivateFolder(target.parent)
            target.rename(private.path / "old")
            sync(target.parent)
            private.close()
            return
        for name in export.names:
            (target.parent / name).unlink(missing_ok=True)
        sync(target.parent)
        export.manifest.unlink(missing_ok=True)
        sync(target.parent)


__all__ = ["prune"]
