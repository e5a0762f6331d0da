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

from duckanon.engine.process import PrivateFolder, sweep
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
"""The most partitions. More of them are a mistake in the choice of columns."""
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
    the target's place in one atomic step. If the system cannot swap two folders (anything but Linux, and some network
    file systems), the old folder is set aside and the new one renamed; if the process is killed between the two, the
    next run or ``verify`` restores the old one. A reader that lists the folder before that step and reads after it
    misses files: slow readers should copy the folder first, or run at another time.

    The target is replaced as a whole, so it must be new, empty, or a release of this form: a folder with anything else
    in it is refused. NULL is ``__HIVE_DEFAULT_PARTITION__``; an empty text and that word itself are refused, because
    some readers cannot distinguish them from NULL. The manifest does not name the files: their names contain values.

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
        # A pattern such as out/**/*.parquet covers what will be below the folder, not the folder itself.
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
    """Raise a ConfigError if a folder has anything in it that is not part of a release: all of it will be replaced."""
    if not os.path.lexists(target):
        return
    if target.is_symlink() or not target.is_dir():
        raise ConfigError(f"{target.name!r} is not a folder: a folder of Parquet files cannot be published there.")
    ours = (target / FOLDER_MANIFEST).is_file()
    for path in target.rglob("*"):
        depth = len(path.relative_to(target).parts)
        if path.is_dir() and not path.is_symlink():
            allowed = "=" in path.name
        elif depth == 1:
            allowed = path.name in _OWN or path.name.startswith("_report.")
        else:
            allowed = path.suffix == ".parquet"
        if not allowed or not ours or path.is_symlink():
            raise ConfigError(
                f"The folder {target.name!r} has files in it that are not of a release, and all of it would be "
                "replaced: choose a folder of its own."
            )


def _require_outside(target: Path, patterns: Sequence[str]) -> None:
    place = target.resolve()
    if any(Path(p).resolve().is_relative_to(place) for p in patterns if not glob.has_magic(p)):
        raise ConfigError(f"Files of the source lie in {target.name!r}: a release never replaces them.")


def _matched(wanted: Sequence[str], columns: Sequence[Column]) -> list[str]:
    """Return the columns' own names; raise a ConfigError for what cannot be in the name of a folder."""
    lowered = {c.name.lower(): c for c in columns}
    names = []
    for name in wanted:
        column = lowered.get(name.lower())
        if column is None:
            raise ConfigError(f"partition_by names {name!r}, which is not a published column.")
        if not _PLAIN_COLUMN.fullmatch(column.name):
            raise ConfigError(f"partition_by names {name!r}: readers do not agree on folders of such a name.")
        if column.type.endswith("]") or column.type.upper().startswith(_NESTED):
            raise ConfigError(f"partition_by names {name!r}, which has a type that cannot be the name of a folder.")
        names.append(column.name)
    if len(names) == len(columns):
        raise ConfigError("partition_by names all published columns: at least one must be left for the files.")
    return names


def _write_parts(
    engine: Engine, rows: exp.Query, columns: Sequence[Column], by: Sequence[str], work: Path, folder: Path
) -> None:
    """Write one file, or a few, for each partition, under names without values."""
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
        listed = exp.select(col(_PART), *texts).from_(table(parts))
        names = {int(part): _folder_name(by, texts_of_part) for part, *texts_of_part in engine.rows(listed)}
        left = [col(c.name, "r") for c in columns if c.name not in by]
        on = conjunction([same(col(c, "r"), col(v, "p")) for c, v in zip(by, values, strict=True)])
        joined = exp.select(*left, col(_PART, "p")).from_(subquery(rows.copy(), "r")).join(table(parts, "p"), on=on)
        by_part = exp.Tuple(expressions=[ident(_PART)])
        engine.run(copy_to(joined, str(work), {"format": "parquet", "partition_by": by_part}))
    finally:
        engine.drop(parts)
    for part, name in names.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for i, path in enumerate(sorted((work / f"{_PART}={part}").iterdir())):
            path.rename(folder / name / f"part-{i}.parquet")


def _folder_name(by: Sequence[str], values: Sequence[str | None]) -> Path:
    parts = []
    for column, value in zip(by, values, strict=True):
        if value is not None and value in ("", NOTHING):
            raise DataError(
                f"A value of {column!r} cannot be told from NULL in the name of a folder: partition by another column."
            )
        name = f"{column}={NOTHING if value is None else _ODD.sub(_escaped, value)}"
        if len(os.fsencode(name)) > _LONGEST:
            raise DataError(f"A value of {column!r} is too long for the name of a folder: partition by another column.")
        parts.append(name)
    return Path(*parts)


def _escaped(match: re.Match[str]) -> str:
    return f"%{ord(match[0]):02X}"


@contextlib.contextmanager
def part_rows(engine: Engine, folder: Path, columns: Sequence[Column], by: Sequence[str]) -> Iterator[exp.Query]:
    """Yield a query over all files below a folder, including the columns in their paths, in published order and type.

    The paths are parsed here, because the database would also read the names of the folders above.
    """
    import pyarrow as pa

    paths = sorted(p for p in folder.rglob("*.parquet") if p.is_file())
    if not paths:
        raise DataError(f"There are no Parquet files in {folder.name!r}.")
    values: dict[str, list[str | None]] = {c: [] for c in by}
    for path in paths:
        values_in_path = dict(_pair(part) for part in path.relative_to(folder).parts[:-1])
        if list(values_in_path) != list(by):
            raise DataError(f"The folders in {folder.name!r} are not those of the columns {', '.join(by)}.")
        for column, value in values_in_path.items():
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
