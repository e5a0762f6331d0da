"""A folder of Parquet files, one folder below it for each value of the columns by which it is partitioned."""

from __future__ import annotations

import contextlib
import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from sqlglot import exp

from duckanon.engine.private_files import PrivateFolder, sweep
from duckanon.engine.sql.relations import (
    Column,
    cast,
    col,
    conjunction,
    copy_to,
    ident,
    named,
    same,
    scan,
    subquery,
    table,
)
from duckanon.errors import ConfigError, DataError
from duckanon.io.disk import (
    keep_rights_of_folder,
    locked,
    made_folder,
    os_errors,
    replace_folder,
    sync,
    sync_tree,
    write_text,
)
from duckanon.io.sinks.base import require_apart
from duckanon.io.sinks.commit import aside_path, finish, require_plain
from duckanon.io.sinks.content import require_same_rows
from duckanon.io.sinks.manifest import FOLDER_MANIFEST, compose, file_entry, parts_entry, published_run
from duckanon.io.sinks.signing import Signer, envelope_path, signed

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.io.sinks.base import Publishable

MOST_PARTS = 10_000
"""The most partitions: more are a mistake in the choice of columns, and small classes in small files."""
NOTHING = "__HIVE_DEFAULT_PARTITION__"
"""What stands for NULL in the name of a folder, for Hive, Spark, Arrow and DuckDB alike."""
_ODD = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{}\[\]^<>|]""")
_PLAIN_COLUMN = re.compile(r"[^\W_][\w .-]*")
_LONGEST = 255
_PART, _FILE = "duckanon_part", "duckanon file"
_OWN = (FOLDER_MANIFEST, envelope_path(Path(FOLDER_MANIFEST)).name)
_NESTED = ("STRUCT", "MAP", "UNION", "BLOB")


@dataclass(frozen=True)
class ParquetFolder:
    """Hive-partitioned Parquet: ``people/sex=F/part-0.parquet``, ``people/_manifest.json``, ``people/_report.md``.

    The whole folder is staged beside its target, synced file by file, read again and put through the gate, and takes
    the target's place by one atomic step. Where the system cannot swap two folders (anything but Linux, and some
    network file systems), the old folder is set aside and the new one renamed: killed between the two, the next run or
    ``verify`` puts the old one back. Whoever lists the folder before the step and reads after it misses files: readers
    that take long should copy, or be told by the scheduler.

    The target is replaced as a whole, so it must be new, empty, or a release of this form: a folder that has anything
    else in it is refused. NULL is ``__HIVE_DEFAULT_PARTITION__``; an empty text and that word itself cannot be told
    from it by every reader and are refused. The manifest has no names of these files, for they have values in them.

    Parameters
    ----------
    path : Path
        The folder.
    partition_by : sequence of str
        Published columns; at least one column must be left for the files.
    signer : Signer, optional
        Signs the manifest.
    """

    path: Path
    partition_by: tuple[str, ...]
    signer: Signer | None = None

    def __init__(self, path: Path, partition_by: Sequence[str], *, signer: Signer | None = None) -> None:
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "signer", signer)
        object.__setattr__(self, "partition_by", tuple(partition_by))
        if not self.partition_by:
            raise ConfigError("partition_by must name at least one published column.")
        if len({name.lower() for name in self.partition_by}) < len(self.partition_by):
            raise ConfigError("partition_by names a column twice.")
        if not path.name or path.name.startswith((".", "_")):
            raise ConfigError(f"A folder of Parquet files needs a name, without a dot or underscore first: {path}.")
        require_plain(path.name)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def stage(self) -> Path | None:
        return self.path.parent

    @property
    def paths(self) -> tuple[Path, ...]:
        # A pattern such as out/**/*.parquet takes in what will lie below the folder, not the folder itself.
        below = [self.path]
        for column in self.partition_by:
            below.append(below[-1] / f"{column}=x")
        return (self.path, self.path / FOLDER_MANIFEST, self.path / "part-0.parquet", below[-1] / "part-0.parquet")

    def exists(self) -> bool:
        return self.path.exists()

    def published_run(self) -> str | None:
        return published_run(self.path / FOLDER_MANIFEST)

    def require_writable(self) -> None:
        with os_errors(self.path), locked(self.path):
            finish(self.path)
            require_replaceable(self.path)
            PrivateFolder(self.path.parent).close()

    def publish(self, release: Publishable, *, reports: Mapping[str, str], run: Mapping[str, Any]) -> dict[str, Any]:
        require_apart(self, release.sources)
        _require_outside(self.path, release.sources)
        engine, target = release.engine, self.path
        by = _matched(self.partition_by, release.columns)
        summary = release.described()
        with os_errors(target), made_folder(target.parent), locked(target):
            finish(target)
            require_replaceable(target)
            sweep(target.parent)
            folder = PrivateFolder(target.parent)
            try:
                staged = folder.path / "new"
                staged.mkdir()
                release.verify(release.path)
                rows = engine.parquet([release.path])
                _write_parts(engine, rows, release.columns, by, folder.path / "parts", staged)
                sync_tree(staged)
                release.inspect(staged)
                with part_rows(engine, staged, release.columns, by) as again:
                    require_same_rows(engine, rows, again, [c.name for c in release.columns])
                    release.verify_rows(again)
                files = [parts_entry(staged)]
                for kind, content in reports.items():
                    write_text(staged / f"_report.{kind}", content)
                    files.append(file_entry(staged / f"_report.{kind}", "report"))
                text = compose(summary, files, run, partition_by=by)
                write_text(staged / FOLDER_MANIFEST, text)
                signed(self.signer, text, staged / FOLDER_MANIFEST)
                keep_rights_of_folder(staged, target)
                sync(staged)
                replace_folder(staged, target, aside_path(target))
            finally:
                folder.close()
        return {
            "release": target,
            "manifest": target / FOLDER_MANIFEST,
            "reports": [target / f"_report.{kind}" for kind in reports],
        }


def require_replaceable(target: Path) -> None:
    """Raise a ConfigError where a folder holds anything that is not of a release, for all of it will be replaced."""
    if not os.path.lexists(target):
        return
    if target.is_symlink() or not target.is_dir():
        raise ConfigError(f"{target.name!r} is no folder: a folder of Parquet files cannot be published there.")
    ours = (target / FOLDER_MANIFEST).is_file()
    for path in target.rglob("*"):
        depth = len(path.relative_to(target).parts)
        if path.is_dir() and not path.is_symlink():
            known = "=" in path.name
        elif depth == 1:
            known = path.name in _OWN or path.name.startswith("_report.")
        else:
            known = path.suffix == ".parquet"
        if not known or not ours or path.is_symlink():
            raise ConfigError(
                f"The folder {target.name!r} has files in it that are not of a release, and all of it would be "
                "replaced: choose a folder of its own."
            )


def _require_outside(target: Path, patterns: Sequence[str]) -> None:
    place = target.resolve()
    if any(Path(p).resolve().is_relative_to(place) for p in patterns if not glob.has_magic(p)):
        raise ConfigError(f"Files of the source lie in {target.name!r}: a release never replaces them.")


def _matched(wanted: Sequence[str], columns: Sequence[Column]) -> list[str]:
    """Return the columns' own names; whatever cannot be the name of a folder is a ConfigError."""
    lowered = {c.name.lower(): c for c in columns}
    found = []
    for name in wanted:
        column = lowered.get(name.lower())
        if column is None:
            raise ConfigError(f"partition_by names {name!r}, which is no published column.")
        if not _PLAIN_COLUMN.fullmatch(column.name):
            raise ConfigError(f"partition_by names {name!r}: readers do not agree on folders of such a name.")
        if column.type.endswith("]") or column.type.upper().startswith(_NESTED):
            raise ConfigError(f"partition_by names {name!r}, which has a type that cannot be the name of a folder.")
        found.append(column.name)
    if len(found) == len(columns):
        raise ConfigError("partition_by names all published columns: at least one must be left for the files.")
    return found


def _write_parts(
    engine: Engine, rows: exp.Query, columns: Sequence[Column], by: Sequence[str], work: Path, folder: Path
) -> None:
    """Write one file, or a few, for each partition, under names of our own making."""
    parts = engine.fresh("parts")
    values = [f"v_{i}" for i in range(len(by))]
    distinct = exp.select(*(named(col(c), v) for c, v in zip(by, values, strict=True))).distinct()
    numbered = named(exp.Window(this=exp.RowNumber()), _PART)
    try:
        distinct = distinct.from_(subquery(rows.copy(), "r"))
        count = engine.create(parts, exp.select(numbered, *(col(v) for v in values)).from_(subquery(distinct, "d")))
        if count > MOST_PARTS:
            raise ConfigError(
                f"partition_by would make {count:,} folders, and at most {MOST_PARTS:,} are written: choose columns "
                "with fewer values."
            )
        texts = [cast(col(v), "VARCHAR") for v in values]
        names = {int(part): _folder_name(by, found) for part, *found in engine.rows(_select(parts, texts))}
        kept = [col(c.name, "r") for c in columns if c.name not in by]
        on = conjunction([same(col(c, "r"), col(v, "p")) for c, v in zip(by, values, strict=True)])
        joined = exp.select(*kept, col(_PART, "p")).from_(subquery(rows.copy(), "r")).join(table(parts, "p"), on=on)
        by_part = exp.Tuple(expressions=[ident(_PART)])
        engine.run(copy_to(joined, str(work), {"format": "parquet", "partition_by": by_part}))
    finally:
        engine.drop(parts)
    for part, name in names.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for i, path in enumerate(sorted((work / f"{_PART}={part}").iterdir())):
            path.rename(folder / name / f"part-{i}.parquet")


def _select(parts: str, texts: Sequence[exp.Expr]) -> exp.Query:
    return exp.select(col(_PART), *texts).from_(table(parts))


def _folder_name(by: Sequence[str], values: Sequence[str | None]) -> Path:
    found = []
    for column, value in zip(by, values, strict=True):
        if value is not None and value in ("", NOTHING):
            raise DataError(
                f"A value of {column!r} cannot be told from NULL in the name of a folder: partition by another column."
            )
        name = f"{column}={NOTHING if value is None else _ODD.sub(_escaped, value)}"
        if len(os.fsencode(name)) > _LONGEST:
            raise DataError(f"A value of {column!r} is too long for the name of a folder: partition by another column.")
        found.append(name)
    return Path(*found)


def _escaped(match: re.Match[str]) -> str:
    return f"%{ord(match[0]):02X}"


@contextlib.contextmanager
def part_rows(engine: Engine, folder: Path, columns: Sequence[Column], by: Sequence[str]) -> Iterator[exp.Query]:
    """Give a query over all files below a folder, with the columns in their names, in the published order and types.

    The names are taken apart here, not by the database, which would take in those of the folders above, too.
    """
    import pyarrow as pa

    paths = sorted(p for p in folder.rglob("*.parquet") if p.is_file())
    if not paths:
        raise DataError(f"There are no Parquet files in {folder.name!r}.")
    values: dict[str, list[str | None]] = {c: [] for c in by}
    for path in paths:
        told = dict(_pair(part) for part in path.relative_to(folder).parts[:-1])
        if list(told) != list(by):
            raise DataError(f"The folders in {folder.name!r} are not those of the columns {', '.join(by)}.")
        for column, value in told.items():
            values[column].append(value)
    listing = {"file": [str(p) for p in paths], **{f"v_{i}": values[c] for i, c in enumerate(by)}}
    schema = pa.schema([(name, pa.string()) for name in listing])
    registered = engine.fresh("files")
    engine.register(registered, pa.table(listing, schema=schema))
    try:
        listed = [glob.escape(str(p)) for p in paths]
        files = exp.select("*").from_(scan("read_parquet", listed, {"hive_partitioning": False, "filename": _FILE}))
        shown = [
            named(cast(col(f"v_{by.index(c.name)}", "f"), c.type) if c.name in by else col(c.name, "r"), c.name)
            for c in columns
        ]
        on = exp.EQ(this=col(_FILE, "r"), expression=col("file", "f"))
        yield exp.select(*shown).from_(subquery(files, "r")).join(table(registered, "f"), on=on)
    finally:
        engine.unregister(registered)


def _pair(name: str) -> tuple[str, str | None]:
    column, _, value = name.partition("=")
    return column, None if value == NOTHING else unquote(value)


__all__ = ["MOST_PARTS", "NOTHING", "ParquetFolder", "part_rows", "require_replaceable"]
