"""Where a release is published, by [output] of the job."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from duckanon.errors import JobError
from duckanon.io.paths import covers
from duckanon.jobs.keys import Output, values_of
from duckanon.jobs.placeholders import any_day, day_in, from_environment, is_dated

if TYPE_CHECKING:
    from duckanon.io.sinks import Sink
    from duckanon.io.source import Source

_PLACE = ("path", "partition_by", "database", "table", "reports_in")
_SERVER = "server"
TEMPLATE = "template"
"""The key of a place for its text in the job file, with placeholders."""


@dataclass(frozen=True)
class Target:
    """A sink, and how many of its dated exports stay: those whose path matches ``pattern``.

    ``dated`` is the path in the job file, with placeholders. ``place`` says where the sink is, for ``sink_at``: of a
    server it has a digest only.
    """

    sink: Sink
    keep: int | None = None
    pattern: str | None = None
    dated: str | None = None
    place: Mapping[str, Any] = field(default_factory=dict)

    def prune(self, current: Path) -> list[Path]:
        """Remove the oldest exports, by the dates in their names, but never the one published now."""
        from duckanon.io.sinks import prune

        if self.keep is None or self.pattern is None or self.dated is None:
            return []
        dated = self.dated
        return prune(self.pattern, keep=self.keep, current=current, day_of=lambda path: day_in(dated, path.as_posix()))

    def collides(self, other: Target) -> bool:
        """Return whether two tables would be written to one place; a database may have several."""
        mine, theirs = ({p for p in t.sink.paths if p.name.endswith("manifest.json")} for t in (self, other))
        same = (self.sink.name, self.sink.paths[0]) == (other.sink.name, other.sink.paths[0])
        return same or bool(mine & theirs)


def target(output: Output, written: Output, name: str, folder: Path, source: Source) -> Target:
    """Return where a release is published; ``written`` is [output] before placeholders were filled in."""
    given = values_of(output)
    kinds = [kind for kind in ("path", "database", "postgres") if kind in given]
    if len(kinds) != 1:
        raise JobError("[output] needs one of path, database and postgres.")
    (kind,) = kinds
    wrong = ("table", "reports_in") if kind == "path" else ("partition_by", "keep")
    for key in wrong:
        if key in given:
            others = "path" if kind != "path" else "database or postgres"
            raise JobError(f"[output] {key} goes with {others}, not with {kind}.")
    if kind != "path" and "table" not in given:
        raise JobError(f"[output] {kind} needs table.")
    sink = _sink(output, name, folder)
    if kind == source.kind == "database" and sink.paths[0].resolve() == Path(source.target).resolve():
        raise JobError("[output] database is that of [source]: a release does not go into the file of the raw rows.")
    for pattern in source.target if source.kind == "file" else ():
        if any(covers(pattern, path) for path in sink.paths):
            raise JobError("[output] path is among the files of [source]: the next run would read its own release.")
    place = _place(output, written, sink)
    if output.keep is UNSET:
        return Target(sink, place=place)
    assert written.path is not UNSET
    path = from_environment("[output] path", written.path)
    if not is_dated(path):
        raise JobError("[output] keep needs a path with {date}: there is only one export otherwise.")
    # Normalised, as paths are found: without "." and double slashes.
    pattern = str(Path(glob.escape(str(folder))) / any_day(path))
    return Target(sink, keep=output.keep, pattern=pattern, dated=Path(path).as_posix(), place=place)


def sink_at(place: Mapping[str, Any], name: str, folder: Path, now: Target) -> Sink | None:
    """Return the sink of a place that an earlier run wrote down; None where it is on a server that the job left.

    ``now`` is the target of this run, whose address is used for another table of the same server.
    """
    output = Output(**{key: place[key] for key in _PLACE if key in place})
    if _SERVER in place:
        if place[_SERVER] != now.place.get(_SERVER):
            return None
        output = msgspec.structs.replace(output, postgres=now.sink.uri)  # type: ignore[attr-defined]
    return _sink(output, name, folder)


def _place(output: Output, written: Output, sink: Sink) -> dict[str, Any]:
    # The address of a server is not stored: it may have a password.
    place, template = ({k: v for k, v in values_of(one).items() if k in _PLACE} for one in (output, written))
    server = {} if output.postgres is UNSET else {_SERVER: sink.uri.server}  # type: ignore[attr-defined]
    return {**place, TEMPLATE: template, **server}


def _sink(output: Output, name: str, folder: Path) -> Sink:
    from duckanon.io.sinks import CsvFile, DuckDBTable, ParquetFile, ParquetFolder

    if output.path is UNSET:
        reports = folder / (f"{name}.reports" if output.reports_in is UNSET else output.reports_in)
        assert output.table is not UNSET
        if output.database is not UNSET:
            return DuckDBTable(folder / output.database, output.table, reports_in=reports)
        from duckanon.io.postgres import require_uri
        from duckanon.io.sinks.postgres import PostgresTable

        assert output.postgres is not UNSET
        return PostgresTable(require_uri(output.postgres), output.table, reports_in=reports)
    path = folder / output.path
    suffix = path.suffix.lower()
    if output.partition_by is not UNSET and output.partition_by:
        if suffix in (".parquet", ".csv"):
            raise JobError(f"[output] path is a folder where partition_by is given, not a file. Got {output.path!r}.")
        return ParquetFolder(path, partition_by=tuple(output.partition_by))
    if suffix == ".csv":
        return CsvFile(path)
    if suffix != ".parquet":
        raise JobError(f"[output] path must end in .parquet or .csv, or needs partition_by. Got {output.path!r}.")
    return ParquetFile(path)
