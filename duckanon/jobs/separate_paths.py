"""What a job reads and writes is separate: no run replaces its source, its job file, or another of its outputs."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.engine.process import is_remote
from duckanon.errors import JobError
from duckanon.io.paths import covers, is_file, names_of, names_remembered, same_file

if TYPE_CHECKING:
    from duckanon.jobs.job import Job, JobTable


@dataclass(frozen=True)
class Place:
    """A path of a job: the key that names it, and how it is used.

    ``whole`` is a folder that is replaced or swept as a whole: nothing else may be in it. ``shared`` names what several
    tables may write to, such as a database. A place that is only read may be a pattern.
    """

    key: str
    path: str
    written: bool = False
    whole: bool = False
    shared: str | None = None


def require_apart(job: Job) -> None:
    """Raise a JobError where something that the job writes is, contains or is part of something else that it names."""
    with names_remembered():
        for one, other in combinations(dict.fromkeys(_places(job)), 2):
            if not (one.written or other.written) or (one.shared is not None and one.shared == other.shared):
                continue
            problem = _problem(one, other)
            if problem is not None:
                raise JobError(problem)


def _problem(one: Place, other: Place) -> str | None:
    name = Path(other.path).name
    for reads, writes in ((one, other), (other, one)):
        if reads.written:
            continue
        path = Path(writes.path)
        if reads.key.endswith("[source] path") and covers(reads.path, path):
            return f"{writes.key} is among the files of {reads.key}: the next run would read what this one writes."
        if covers(reads.path, path):
            return f"{writes.key} and {reads.key} are the same file: the run would replace what it reads."
        if writes.whole and any(_lies_in(given, path) for given in _expanded(reads.path)):
            return f"{reads.key} is in the folder of {writes.key}, which is the job's own: name another folder."
        return None
    if same_file(Path(one.path), Path(other.path)):
        return f"{one.key} and {other.key} are the same file, {name!r}: each needs its own."
    for inner, outer in ((one, other), (other, one)):
        if outer.whole and _lies_in(Path(inner.path), Path(outer.path)):
            return f"{inner.key} is in the folder of {outer.key}, which is the job's own: name another place."
    return None


def _lies_in(path: Path, folder: Path) -> bool:
    """Return whether a path is below a folder, also through links and other names of it."""
    below = [names_of(parent) for parent in (path, *path.resolve().parents, *path.absolute().parents)]
    wanted = names_of(folder)
    if any(wanted & names for names in below):
        return True
    try:
        status = folder.stat()
    except OSError:
        return False
    for parent in (*path.resolve().parents, *path.absolute().parents):
        try:
            if os.path.samestat(parent.stat(), status):
                return True
        except OSError:
            continue
    return False


def _expanded(pattern: str) -> Iterator[Path]:
    if not glob.has_magic(pattern):
        yield Path(pattern)
        return
    yield from map(Path, glob.iglob(pattern, recursive=True))


def _places(job: Job) -> Iterator[Place]:
    yield Place("the job file", glob.escape(str(job.path)))
    yield Place("[nights] state", str(job.state), written=True, whole=True)
    for key, path in (("[operations] metrics", job.metrics), ("[operations] lineage", job.lineage)):
        if path is not None:
            yield Place(key, str(path), written=True)
    if job.signer is not None:
        yield Place("[operations] signing_key", glob.escape(str(job.signer.key)))
    if "temp_directory" in job.limits:
        yield Place("[limits] temp_directory", str(job.limits["temp_directory"]), written=True)
    several = len(job.tables) > 1
    for table in job.tables:
        where = f"[[tables]] {table.name}: " if several else ""
        yield from _of_table(table, where)


def _of_table(table: JobTable, where: str) -> Iterator[Place]:
    source = table.source
    if source.kind == "file":
        yield from (Place(f"{where}[source] path", p) for p in source.target if not is_remote(p))
    elif source.kind == "database":
        for end in ("", ".wal"):
            yield Place(f"{where}[source] database", glob.escape(f"{source.target}{end}"))
    population = table.parameters.get("population")
    if population is not None:
        yield from (Place(f"{where}[privacy] population", p) for p in population.target if not is_remote(p))
    for file in _hierarchy_files(table.parameters["hierarchies"], table.folder):
        yield Place(f"{where}[hierarchies]", glob.escape(str(file)))
    yield from _of_target(table, where)


def _of_target(table: JobTable, where: str) -> Iterator[Place]:
    from duckanon.io.sinks import DuckDBTable, ParquetFolder

    sink = table.target.sink
    if isinstance(sink, ParquetFolder):
        yield Place(f"{where}[output] path", str(sink.path), written=True, whole=True)
        return
    paths = list(sink.paths)
    if isinstance(sink, DuckDBTable):
        database = paths.pop(0)
        for end in ("", ".wal"):
            yield Place(
                f"{where}[output] database", f"{database}{end}", written=True, shared=f"{database.resolve()}{end}"
            )
    for path in paths:
        named = "path" if path == getattr(sink, "path", None) else f"file {path.name!r}"
        yield Place(f"{where}[output] {named}", str(path), written=True)


def _hierarchy_files(given: Mapping[str, Any] | Sequence[Any] | Any, folder: Path) -> Iterator[Path]:
    """Return the files among the texts of [hierarchies]; a text may also name a ready-made hierarchy."""
    if isinstance(given, str):
        path = folder / given
        if is_file(path):
            yield path
    elif isinstance(given, Mapping):
        for one in given.values():
            yield from _hierarchy_files(one, folder)
    elif isinstance(given, list | tuple):
        for one in given:
            yield from _hierarchy_files(one, folder)


__all__ = ["Place", "require_apart"]
