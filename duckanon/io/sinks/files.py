"""One file with its reports and its manifest beside it: Parquet or CSV."""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.process import PrivateFolder, cores, sweep, workers
from duckanon.engine.sql.relations import Column, copy_to, ident, scan, text
from duckanon.errors import ConfigError, DataError, PrivacyViolation
from duckanon.io.disk import bring, keep_rights, locked, made_folder, os_errors, sync, write_text
from duckanon.io.file_rows import LONG_LINES
from duckanon.io.sinks.base import require_apart
from duckanon.io.sinks.commit import commit, finish, require_plain
from duckanon.io.sinks.content import require_same_rows
from duckanon.io.sinks.csv_reading import require_names, require_told_apart
from duckanon.io.sinks.manifest import (
    compose,
    file_entry,
    manifest_path,
    published_run,
    read_manifest,
    release_entry,
    report_names,
)
from duckanon.io.sinks.signing import Signer, envelope_path, signed

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.io.sinks.base import Publishable

_PARQUET, _CSV = ".parquet", ".csv"


def publish(
    staged: Path,
    target: Path,
    *,
    summary: Mapping[str, Any],
    reports: Mapping[str, str],
    verify: Callable[[Path], None],
    run: Mapping[str, Any] | None = None,
    signer: Signer | None = None,
) -> dict[str, Any]:
    """Put a staged file, its reports and its manifest under the target's name, all or nothing.

    Parameters
    ----------
    staged : Path
        A complete private Parquet file; it is not changed.
    target : Path
        Where to publish; a missing folder is created.
    summary : mapping
        The privacy requirements and the results; the manifest takes its entries from it.
    reports : mapping of str to str
        The text of each report by its format, which is also its suffix.
    verify : callable
        Reads the synced file again and raises if it does not meet the requirements.
    run : mapping, optional
        What the manifest says of the run: ``run``, ``job`` and ``table``.
    signer : Signer, optional
        Signs the manifest.

    Returns
    -------
    dict
        ``release`` and ``manifest``: Path; ``reports``: list of Path.
    """
    require_target(target)
    return _put(target, lambda work: bring(staged, work), verify, summary, reports, run, signer)


def _put(
    target: Path,
    write: Callable[[Path], None],
    verify: Callable[[Path], Any],
    summary: Mapping[str, Any],
    reports: Mapping[str, str],
    run: Mapping[str, Any] | None,
    signer: Signer | None,
) -> dict[str, Any]:
    names = report_names(target.stem, list(reports))
    manifest = manifest_path(target)
    with os_errors(target), made_folder(target.parent), locked(target):
        finish(target)
        for name in (target.name, *names.values(), manifest.name):
            if (target.parent / name).is_dir():
                raise ConfigError(f"{name!r} is a folder: a file cannot be published under its name.")
        stale = [*_stale(target, names), *([envelope_path(manifest).name] if signer is None else [])]
        sweep(target.parent)
        folder = PrivateFolder(target.parent)
        try:
            staged = folder.path / "new"
            staged.mkdir(mode=0o700)
            work = staged / target.name
            write(work)
            sync(work)
            with workers(min(2, cores())) as pool:
                entry = pool.submit(file_entry, work, "release")
                verify(work)
                files = [entry.result()]
            for kind, name in names.items():
                write_text(staged / name, reports[kind])
                files.append(file_entry(staged / name, "report"))
            text = compose(summary, files, run)
            write_text(staged / manifest.name, text)
            finals = [target.name, *names.values(), *signed(signer, text, staged / manifest.name), manifest.name]
            for name in finals:
                keep_rights(staged / name, target.parent / name, target)
            commit(staged, target, finals, stale)
        finally:
            folder.close()
    return {"release": target, "manifest": manifest, "reports": [target.parent / n for n in names.values()]}


def require_target(target: Path, suffix: str = _PARQUET) -> None:
    """Raise a ConfigError unless a release can be written under this name."""
    if target.suffix.lower() != suffix or not target.stem:
        kind = "Parquet" if suffix == _PARQUET else "CSV"
        raise ConfigError(f"A release is written as {kind}: the name {target.name!r} must end in {suffix}.")
    require_plain(target.name)


def require_writable(target: Path, suffix: str = _PARQUET) -> None:
    """Raise unless the target can be written and no other run is writing it: to be called before a long run."""
    require_target(target, suffix)
    with os_errors(target), locked(target):
        finish(target)
        PrivateFolder(target.parent).close()


def _stale(target: Path, names: Mapping[str, str]) -> list[str]:
    """Return the reports listed in the manifest of the old release that the new one does not have."""
    try:
        before = read_manifest(manifest_path(target))
    except DataError:
        return []
    data = release_entry(before)
    if data is not None and data["name"] != target.name:
        raise ConfigError(
            f"{manifest_path(target).name!r} belongs to {data['name']!r}: two exports in a folder need names that "
            "differ in more than their suffix."
        )
    prefix = f"{target.stem}.report."
    reports = [f["name"] for f in before["files"] if f["role"] == "report" and f["name"].startswith(prefix)]
    return [n for n in reports if n not in names.values()]


@dataclass(frozen=True)
class _File:
    """What sinks of a single file share."""

    path: Path
    signer: Signer | None = field(default=None, kw_only=True)
    """Signs the manifests, if given."""

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def stage(self) -> Path | None:
        return self.path.parent

    @property
    def paths(self) -> tuple[Path, ...]:
        manifest = manifest_path(self.path)
        return (self.path, manifest, envelope_path(manifest), *(self.path.with_name(n) for n in _reports(self.path)))

    def exists(self) -> bool:
        return self.path.exists()

    def published_run(self) -> str | None:
        return published_run(manifest_path(self.path))


def _reports(path: Path) -> list[str]:
    return list(report_names(path.stem, ("json", "md", "html")).values())


@dataclass(frozen=True)
class ParquetFile(_File):
    """One Parquet file: ``people.parquet``, ``people.report.*`` and ``people.manifest.json``.

    Examples
    --------
    >>> ParquetFile(Path("out/people.parquet")).name
    'people.parquet'
    """

    def __post_init__(self) -> None:
        require_target(self.path)

    def require_writable(self) -> None:
        require_writable(self.path)

    def publish(self, release: Publishable, *, reports: Mapping[str, str], run: Mapping[str, Any]) -> dict[str, Any]:
        require_apart(self, release.sources)
        described = release.described()
        return publish(
            release.path,
            self.path,
            summary=described,
            reports=reports,
            verify=release.verify,
            run=run,
            signer=self.signer,
        )


@dataclass(frozen=True)
class CsvFile(_File):
    """One CSV file by RFC 4180: UTF-8, a header, commas, lines that end in CR LF, quotes doubled within quotes.

    Texts are always quoted, everything else only where necessary, so that an empty text (``""``) and NULL (nothing
    between two commas) differ. Most readers read both as the same, and also words such as NA or numbers with leading
    zeros (checked for pandas, DuckDB and Arrow with their defaults). If a class would then have fewer values of a
    sensitive column than required, the release is refused. So are column names that readers would change: those with
    line breaks, or with white space around them.

    A text that a spreadsheet program reads as a formula (it begins with ``=``, ``+``, ``-`` or ``@``) is written as it
    is: changing it would publish other values than those that were checked. Open such a file as data, or remove such
    texts from the source.

    The staged file is read again as text and compared with the rows that passed the gate: their number and content. In
    a release of one column, NULL is an empty line, which many readers skip.
    """

    def __post_init__(self) -> None:
        require_target(self.path, _CSV)

    def require_writable(self) -> None:
        require_writable(self.path, _CSV)

    def publish(self, release: Publishable, *, reports: Mapping[str, str], run: Mapping[str, Any]) -> dict[str, Any]:
        require_apart(self, release.sources)
        engine, columns = release.engine, [c.name for c in release.columns]
        require_names(self.name, columns)
        rows, described = engine.parquet([release.path]), release.described()
        require_told_apart(engine, rows, release.columns, described)

        def write(work: Path) -> None:
            release.verify(release.path)
            _write_csv(engine, rows, release.columns, work)

        def verify(work: Path) -> None:
            require_same_header(engine, work, columns)
            release.inspect(work)
            require_same_rows(engine, rows, csv_rows(engine, work, columns), columns)

        return _put(self.path, write, verify, described, reports, run, self.signer)


def _write_csv(engine: Engine, rows: exp.Query, columns: tuple[Column, ...], path: Path) -> None:
    texts = [c.name for c in columns if c.type == "VARCHAR"]
    options: dict[str, str | int | exp.Expr] = {
        "format": "csv",
        "header": 1,
        "delimiter": text(","),
        "quote": text('"'),
        "escape": text('"'),
        "nullstr": text(""),
        "new_line": text("\\r\\n"),
    }
    if texts:
        options["force_quote"] = exp.Tuple(expressions=[ident(name) for name in texts])
    engine.run(copy_to(rows.copy(), str(path), options))


def require_same_header(engine: Engine, path: Path, columns: list[str]) -> None:
    """Raise unless the first line of a CSV file has the names of the columns."""
    header = csv_rows(engine, path, [f"column{i}" for i in range(len(columns))], header=False).limit(1)
    (names,) = engine.rows(header)
    if list(names) != columns:
        raise PrivacyViolation(
            "The gate refused the release: read again, the file has other names of columns. Nothing was published."
        )


def csv_rows(engine: Engine, path: Path, columns: list[str], header: bool = True) -> exp.Query:
    """Return a query over a CSV file that this sink wrote; all columns are texts."""
    options: dict[str, bool | str | int | exp.Expr] = {
        "auto_detect": False,
        "header": header,
        "delim": ",",
        "quote": '"',
        "escape": '"',
        "nullstr": "",
        "allow_quoted_nulls": False,
        "null_padding": False,
        "strict_mode": True,
        **LONG_LINES,
        "columns": exp.Struct(
            expressions=[exp.PropertyEQ(this=ident(name), expression=text("VARCHAR")) for name in columns]
        ),
    }
    return exp.select("*").from_(scan("read_csv", [glob.escape(str(path))], options))
