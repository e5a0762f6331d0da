"""The manifest: what was promised, what was found, and which bytes were published. No cell value is in it."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from duckanon._version import __version__
from duckanon.engine.process import file_digest
from duckanon.errors import DataError
from duckanon.io.sinks.commit import is_plain
from duckanon.io.sinks.signing import envelope_path

FOLDER_MANIFEST = "_manifest.json"
"""The manifest of a release that is a folder lies in it."""
PARTS = "**/*.parquet"
"""The name under which a manifest lists the files of a folder: their own names contain cell values."""
_SUFFIX = ".manifest.json"
_FORMAT = 1
_FROM_SUMMARY = (
    "unit",
    "promise",
    "checks",
    "algorithm",
    "suppression_limit",
    "roles",
    "columns",
    "hierarchies",
    "found",
    "bounds",
    "output",
    "within",
    "seeded",
    "notes",
)
"""What a manifest takes from a summary: listed one by one, so that nothing else gets in."""
_RUN = ("run", "job", "table")
_SECRETS = {"seed", "key", "secret"}


def manifest_path(target: Path) -> Path:
    """Return the place of a release's manifest."""
    return target.with_name(f"{target.stem}{_SUFFIX}")


def report_names(stem: str, kinds: Sequence[str]) -> dict[str, str]:
    """Return the file name of each report beside a release."""
    return {kind: f"{stem}.report.{kind}" for kind in kinds}


def file_entry(path: Path, role: str) -> dict[str, Any]:
    """Return what a manifest says of one file."""
    return {"name": path.name, "role": role, "bytes": path.stat().st_size, "sha256": file_digest(path)}


def parts_entry(folder: Path) -> dict[str, Any]:
    """Return what a manifest says of all Parquet files below a folder: how many, how long, and one hash of all.

    The hash is that of the sorted list of relative path, size and SHA-256 of each.
    """
    parts = sorted((p.relative_to(folder).as_posix(), p) for p in folder.rglob("*.parquet"))
    whole, total = hashlib.sha256(), 0
    for name, path in parts:
        size = path.stat().st_size
        total += size
        whole.update(json.dumps([name, size, file_digest(path)]).encode() + b"\n")
    return {"name": PARTS, "role": "release", "files": len(parts), "bytes": total, "sha256": whole.hexdigest()}


def compose(
    summary: Mapping[str, Any],
    files: Sequence[Mapping[str, Any]],
    run: Mapping[str, Any] | None = None,
    **more: Any,
) -> str:
    """Return the text of a manifest; ``more`` says how the rows are stored, such as ``partition_by``."""
    about_run = {key: str(run[key]) for key in _RUN if run is not None and run.get(key) is not None}
    return sealed(
        {
            "manifest": _FORMAT,
            "duckanon": summary.get("duckanon", __version__),
            "engine": summary.get("engine"),
            "python": platform.python_version(),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            **({"run": about_run} if about_run else {}),
            **{key: _public(summary[key]) for key in _FROM_SUMMARY if key in summary},
            **more,
            "files": list(files),
        }
    )


def _public(value: Any) -> Any:
    """Return plain values without seeds and keys, and without numbers that JSON cannot hold."""
    if isinstance(value, Mapping):
        return {str(k): _public(v) for k, v in value.items() if str(k).lower() not in _SECRETS}
    if isinstance(value, list | tuple):
        return [_public(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def sealed(content: Mapping[str, Any]) -> str:
    """Return the manifest's text. It contains its own hash, so that a change is detected."""
    seal = hashlib.sha256(_text(content).encode()).hexdigest()
    return _text({**content, "sha256": seal})


def _text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n"


def read_manifest(path: str | Path) -> dict[str, Any]:
    """Return a manifest; raise a DataError if there is none, or if it was changed."""
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
        plain = all(_is_file_entry(f) for f in files) and (len(files) > 0 or _is_table(content.get("target")))
        unchanged = isinstance(seal, str) and sealed(content).encode() == raw
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError(f"{path.name!r} is not a manifest, or was damaged.") from None
    if not unchanged:
        raise DataError(f"The manifest {path.name!r} was changed: it does not have its own SHA-256.")
    if not plain:
        raise DataError(f"The manifest {path.name!r} names a file outside of its folder, or in an unknown way.")
    return dict(content)


def published_run(path: Path) -> str | None:
    """Return the run that a manifest names, or None if there is no manifest or it names none."""
    try:
        run = read_manifest(path).get("run")
    except DataError:
        return None
    return run.get("run") if isinstance(run, dict) else None


def release_entry(content: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the manifest's entry of the data, or None if the rows are in a database."""
    return next((dict(f) for f in content["files"] if f["role"] == "release"), None)


def _is_file_entry(entry: Any) -> bool:
    inside = is_plain(entry["name"]) or (entry["name"] == PARTS and isinstance(entry["files"], int))
    return inside and all(isinstance(entry[k], t) for k, t in (("role", str), ("bytes", int), ("sha256", str)))


def _is_table(target: Any) -> bool:
    return isinstance(target, dict) and isinstance(target.get("table"), str)


def verify_files(manifest: str | Path) -> list[str]:
    """Return what is wrong with the files that a manifest lists; an empty list if all are as published."""
    path = Path(manifest)
    try:
        content = read_manifest(path)
    except DataError as error:
        return [str(error)]
    problems = []
    for entry in content["files"]:
        try:
            check = _parts_problem if entry["name"] == PARTS else _file_problem
            problem = check(path.parent, entry)
        except OSError as error:
            problem = os.strerror(error.errno or 0)
        if problem is not None:
            problems.append(f"{entry['name']}: {problem}")
    if any(entry["name"] == PARTS for entry in content["files"]):
        problems += _strangers(path, content)
    return problems


def _file_problem(folder: Path, entry: Mapping[str, Any]) -> str | None:
    file = folder / entry["name"]
    if file.is_symlink() or not file.is_file():
        return "missing"
    if file.stat().st_size != entry["bytes"]:
        return f"{file.stat().st_size} bytes instead of {entry['bytes']}"
    if file_digest(file) != entry["sha256"]:
        return "its SHA-256 differs from the manifest"
    return None


def _parts_problem(folder: Path, entry: Mapping[str, Any]) -> str | None:
    if any(p.is_symlink() for p in folder.rglob("*")):
        return "symbolic links among the files"
    parts = parts_entry(folder)
    for key, unit in (("files", "files"), ("bytes", "bytes")):
        if parts[key] != entry[key]:
            return f"{parts[key]} {unit} instead of {entry[key]}"
    return "their SHA-256 differs from the manifest" if parts["sha256"] != entry["sha256"] else None


def _strangers(manifest: Path, content: Mapping[str, Any]) -> list[str]:
    """Return a problem if a folder has files that its manifest does not list, which readers would take for data."""
    listed = {manifest.name, envelope_path(manifest).name, *(f["name"] for f in content["files"])}
    others = [p for p in manifest.parent.rglob("*") if p.is_file() and p.suffix != ".parquet"]
    strange = [p for p in others if p.parent != manifest.parent or p.name not in listed]
    return [f"{len(strange)} files that the manifest does not list"] if strange else []
