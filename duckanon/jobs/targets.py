"""Where a job's release goes, by what its table [output] says."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.errors import JobError
from duckanon.io.paths import covers
from duckanon.jobs.texts import any_day, day_in, from_environment, is_dated

if TYPE_CHECKING:
    from duckanon.io.sinks import Sink
    from duckanon.io.source import Source

_KINDS = ("path", "database", "postgres")
_PLACE = ("path", "partition_by", "database", "table", "reports_in")
_SERVER = "server"
TEMPLATE = "template"
"""The key of a place for what the job file says of it, with the places of a date in it."""


@dataclass(frozen=True)
class Target:
    """A sink, and how many dated exports of it are kept: those whose path fits ``pattern``.

    ``dated`` is the path as the job has it, with the places of the date in it. ``place`` says where the sink is, in
    words that ``sink_at`` understands: of a server it has a digest only.
    """

    sink: Sink
    keep: int | None = None
    pattern: str | None = None
    dated: str | None = None
    place: Mapping[str, Any] = field(default_factory=dict)

    def prune(self, own: Path) -> list[Path]:
        """Remove the exports that are too many, by the dates in their names; never the one published just now."""
        from duckanon.io.sinks import prune

        if self.keep is None or self.pattern is None or self.dated is None:
            return []
        dated = self.dated
        return prune(self.pattern, keep=self.keep, own=own, day_of=lambda path: day_in(dated, path.as_posix()))

    def collides(self, other: Target) -> bool:
        """Say whether two tables would be written to one place; a database has room for several."""
        mine, theirs = ({p for p in t.sink.paths if p.name.endswith("manifest.json")} for t in (self, other))
        same = (self.sink.name, self.sink.paths[0]) == (other.sink.name, other.sink.paths[0])
        return same or bool(mine & theirs)


def target(table: Mapping[str, Any], written: Mapping[str, Any], name: str, folder: Path, source: Source) -> Target:
    """Return where a release goes; ``written`` is the table as it stands in the file, with nothing filled in."""
    kinds = [kind for kind in _KINDS if kind in table]
    if len(kinds) != 1:
        raise JobError("[output] needs one of path, database and postgres.")
    (kind,) = kinds
    if kind == "path":
        for key in ("table", "reports_in"):
            if key in table:
                raise JobError(f"[output] {key} goes with database or postgres, not with path.")
        sink = _file(table, folder)
    else:
        for key in ("partition_by", "keep"):
            if key in table:
                raise JobError(f"[output] {key} goes with path, not with {kind}.")
        if "table" not in table:
            raise JobError(f"[output] {kind} needs table.")
        sink = _table(kind, table, name, folder)
        if (
            kind == source.kind == "database"
            and (folder / table["database"]).resolve() == Path(source.target).resolve()
        ):
            raise JobError(
                "[output] database is that of [source]: a release does not go into the file of the raw rows."
            )
    patterns = source.target if source.kind == "file" else ()
    for pattern in patterns:
        if any(covers(pattern, path) for path in sink.paths):
            raise JobError("[output] path lies among the files of [source]: the next run would read its own release.")
    found = Target(sink, place=_place(table, written, sink))
    if "keep" not in table:
        return found
    path = from_environment("[output] path", written["path"])
    if not is_dated(path):
        raise JobError("[output] keep needs a path with {date}: there is only one export otherwise.")
    # Written as the folders are found: without "." and double slashes.
    pattern = str(Path(glob.escape(str(folder))) / any_day(path))
    return replace(found, keep=table["keep"], pattern=pattern, dated=Path(path).as_posix())


def sink_at(place: Mapping[str, Any], name: str, folder: Path, now: Target) -> Sink | None:
    """Return the sink of a place that an earlier run wrote down; None where it is on a server that the job left.

    ``now`` is the target of today, whose address is used for another table of the same server.
    """
    if _SERVER not in place:
        return _file(place, folder) if "path" in place else _table("database", place, name, folder)
    if place[_SERVER] != now.place.get(_SERVER):
        return None
    return _table("postgres", {**place, "postgres": now.sink.uri}, name, folder)  # type: ignore[attr-defined]


def _place(table: Mapping[str, Any], written: Mapping[str, Any], sink: Sink) -> dict[str, Any]:
    # No address of a server is written down: it may hold a password.
    found: dict[str, Any] = {key: table[key] for key in _PLACE if key in table}
    found[TEMPLATE] = {key: written[key] for key in _PLACE if key in written}
    return {**found, _SERVER: sink.uri.server} if "postgres" in table else found  # type: ignore[attr-defined]


def _file(table: Mapping[str, Any], folder: Path) -> Sink:
    from duckanon.io.sinks import CsvFile, ParquetFile, ParquetFolder

    given = table["path"]
    path = folder / given
    suffix = path.suffix.lower()
    if table.get("partition_by"):
        if suffix in (".parquet", ".csv"):
            raise JobError(f"[output] path is a folder where partition_by is given, not a file. Got {given!r}.")
        return ParquetFolder(path, partition_by=tuple(table["partition_by"]))
    if suffix == ".csv":
        return CsvFile(path)
    if suffix != ".parquet":
        raise JobError(f"[output] path must end in .parquet or .csv, or needs partition_by. Got {given!r}.")
    return ParquetFile(path)


def _table(kind: str, table: Mapping[str, Any], name: str, folder: Path) -> Sink:
    from duckanon.io.sinks import DuckDBTable

    reports = folder / table.get("reports_in", f"{name}.reports")
    if kind == "database":
        return DuckDBTable(folder / table["database"], table["table"], reports_in=reports)
    from duckanon.io.sinks.postgres import PostgresTable

    return PostgresTable(table["postgres"], table["table"], reports_in=reports)
