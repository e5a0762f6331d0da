"""Tables: the rows go into a database in one transaction, manifest and reports into a folder."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon._version import __version__
from duckanon.engine.base import open_engine
from duckanon.engine.process import PrivateFolder, sweep
from duckanon.engine.sql.relations import col, table, text
from duckanon.errors import ConfigError, DataError, EngineError
from duckanon.io.disk import keep_rights, locked, made_folder, os_errors, write_text
from duckanon.io.sinks.base import require_apart
from duckanon.io.sinks.commit import Journal, carry_out, discard, is_plain, pending_path, propose, settle
from duckanon.io.sinks.content import require_same_rows
from duckanon.io.sinks.manifest import compose, file_entry, read_manifest, report_names
from duckanon.io.sinks.signing import Signer, envelope_path, signed

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.io.sinks.base import Publishable

_TARGET = "duckanon_target"


def run_of(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of a run, with a new id if it has none."""
    return {**run, "run": run.get("run") or secrets.token_hex(16)}


def table_comment(run: Mapping[str, Any]) -> str:
    """Return the comment of a published table, which names the run of its rows."""
    about_run = {key: str(run[key]) for key in ("run", "job") if run.get(key) is not None}
    return json.dumps({"duckanon": __version__, **about_run}, ensure_ascii=False)


def run_in_comment(comment: str | None) -> str | None:
    """Return the run that a table's comment names, or None if the comment is not one of ours.

    Examples
    --------
    >>> run_in_comment(table_comment({"run": "7f"})), run_in_comment("patients"), run_in_comment(None)
    ('7f', None, None)
    """
    try:
        content = json.loads(comment or "")
    except ValueError:
        return None
    return content.get("run") if isinstance(content, dict) and "duckanon" in content else None


@dataclass(frozen=True)
class TableReports:
    """Manifest and reports of a table, in a folder of their own: ``people.manifest.json``, ``people.report.*``.

    For every sink whose rows go into a database. The database's commit decides: the files are complete and synced
    before it (``prepared``) and get their names after it (``finished``). What a killed run left is kept if the
    database has that run, else discarded (``settled``).

    Parameters
    ----------
    folder : Path
        Where they go; created if missing.
    table : str
        The table's name, which is also theirs.
    signer : Signer, optional
        Signs the manifest.
    """

    folder: Path
    table: str
    signer: Signer | None = None

    def __post_init__(self) -> None:
        if not is_plain(self.table) or self.table.startswith("."):
            raise ConfigError(f"The table's name {self.table!r} cannot be the name of a file, as its manifest needs.")

    @property
    def target(self) -> Path:
        """The path that locks and pending commits are named after."""
        return self.folder / self.table

    @property
    def manifest(self) -> Path:
        return self.folder / f"{self.table}.manifest.json"

    def paths(self) -> tuple[Path, ...]:
        """Return what may be written there."""
        names = report_names(self.table, ("json", "md", "html"))
        return (self.manifest, envelope_path(self.manifest), *(self.folder / n for n in names.values()))

    def prepared(
        self,
        private: PrivateFolder,
        *,
        summary: Mapping[str, Any],
        reports: Mapping[str, str],
        run: Mapping[str, Any],
        target: Mapping[str, Any],
    ) -> list[Path]:
        """Write and sync the files and make them the pending commit; return the paths of the reports.

        ``target`` says where the rows are (``kind``, ``database``, ``table``) with their ``rows`` and ``content``.
        """
        staged = private.path / "new"
        staged.mkdir(mode=0o700)
        names = report_names(self.table, list(reports))
        for kind, name in names.items():
            write_text(staged / name, reports[kind])
        files = [file_entry(staged / name, "report") for name in names.values()]
        text = compose(summary, files, run, target=dict(target))
        write_text(staged / self.manifest.name, text)
        finals = (*names.values(), *signed(self.signer, text, staged / self.manifest.name), self.manifest.name)
        for name in finals:
            keep_rights(staged / name, self.folder / name, self.manifest)
        stale = tuple(n for n in (*self._reports_before(), envelope_path(self.manifest).name) if n not in finals)
        propose(staged, self.target, Journal(finals, stale, run["run"]))
        return [self.folder / name for name in names.values()]

    def finished(self) -> None:
        """Give the files their names: the database has the rows."""
        carry_out(self.target)
        discard(self.target)

    def settled(self, published: Callable[[], str | None]) -> bool:
        """Finish or discard what a killed run left; ``published`` asks the database for its run, if necessary."""
        return settle(self.target, published()) if pending_path(self.target).exists() else False

    def _reports_before(self) -> list[str]:
        try:
            before = read_manifest(self.manifest)
        except DataError:
            return []
        prefix = f"{self.table}.report."
        return [f["name"] for f in before["files"] if f["role"] == "report" and f["name"].startswith(prefix)]


@dataclass(frozen=True)
class DuckDBTable:
    """A table in a DuckDB database file: replaced in one transaction, with the run in its comment.

    The rows are copied from the release only, by a connection that has seen nothing else, so that no raw value gets
    into that file or its log. Within the transaction they are read back and checked by the gate; then the old table is
    replaced. Readers see the old rows or the new ones. The blocks of the old table stay in the file until they are
    reused: these are rows that were published before.

    Parameters
    ----------
    path : Path
        The database file; created if missing. No other process may have it open.
    table : str
        The table's name.
    reports_in : Path
        The folder of its manifest and reports.
    schema : str
        The schema, which must exist.
    signer : Signer, optional
        Signs the manifest.
    """

    path: Path
    table: str
    reports_in: Path
    schema: str = "main"
    signer: Signer | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        TableReports(self.reports_in, self.table)

    @property
    def name(self) -> str:
        return f"{self.path.name}: {self.table}"

    @property
    def stage(self) -> Path | None:
        return self.path.parent

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.path, *self._reports.paths())

    @property
    def _reports(self) -> TableReports:
        return TableReports(self.reports_in, self.table, self.signer)

    def exists(self) -> bool:
        return self.path.exists() and self._comment() is not None

    def published_run(self) -> str | None:
        return run_in_comment(self._comment())

    def require_writable(self) -> None:
        with os_errors(self._reports.target), made_folder(self.reports_in), locked(self._reports.target):
            self._reports.settled(self.published_run)
            PrivateFolder(self.reports_in).close()
            if self.path.exists():
                self._opened(writable=True).close()
            else:
                PrivateFolder(self.path.parent).close()

    def publish(self, release: Publishable, *, reports: Mapping[str, str], run: Mapping[str, Any]) -> dict[str, Any]:
        require_apart(self, release.sources)
        about_run, summary, target = run_of(run), release.described(), self._reports.target
        with (
            os_errors(target),
            made_folder(self.reports_in),
            made_folder(self.path.parent),
            locked(target),
        ):
            self._reports.settled(self.published_run)
            sweep(self.reports_in)
            folder, new = PrivateFolder(self.reports_in), not self.path.exists()
            try:
                release.verify(release.path)
                engine = open_database(self.path, writable=True, like=release.engine)
                try:
                    written = self._replace(engine, release, folder, summary, reports, about_run)
                    engine.catalog.checkpoint(_TARGET)
                finally:
                    engine.close()
                self._reports.finished()
            except BaseException:
                self._take_back(new, about_run["run"])
                raise
            finally:
                folder.close()
        return {"release": self.name, "manifest": self._reports.manifest, "reports": written}

    def _replace(
        self,
        engine: Engine,
        release: Publishable,
        folder: PrivateFolder,
        summary: Mapping[str, Any],
        reports: Mapping[str, str],
        run: Mapping[str, Any],
    ) -> list[Path]:
        """Replace the table in one transaction, which also decides on the manifest and the reports."""
        columns = [c.name for c in release.columns]
        place = table(self.table, schema=self.schema, catalog=_TARGET)
        rows, again = engine.parquet([release.path]), exp.select(*(col(c) for c in columns)).from_(place.copy())
        with engine.snapshot():
            engine.run(exp.Create(this=place.copy(), kind="TABLE", replace=True, expression=rows.copy()))
            content = require_same_rows(engine, rows, again, columns)
            # The gate runs in the engine of the release, which knows the source: it gets what the table now holds.
            back = folder.path / "again.parquet"
            engine.write_parquet(again.copy(), back)
            release.verify_rows(release.engine.parquet([back]))
            comment = text(table_comment(run))
            engine.run(exp.Comment(this=place.copy(), kind="TABLE", expression=comment))
            place_of = {"kind": "duckdb", "database": self.path.name, "schema": self.schema, "table": self.table}
            return self._reports.prepared(folder, summary=summary, reports=reports, run=run, target=place_of | content)

    def _take_back(self, new: bool, run: str) -> None:
        """After a failure, keep or discard the files by what the database has; remove a new database without rows."""
        try:
            published = self.published_run() if self.path.exists() else None
        except (EngineError, DataError):
            return  # The next run asks again.
        self._reports.settled(lambda: published)
        if new and self.path.exists() and published != run and self._is_empty():
            self.path.unlink(missing_ok=True)

    def _opened(self, writable: bool = False) -> Engine:
        return open_database(self.path, writable=writable)

    def _comment(self) -> str | None:
        """Return the table's comment, an empty text if it has none, or None if there is no such table."""
        if not self.path.exists():
            return None
        engine = self._opened()
        try:
            return table_comment_in(engine, self.schema, self.table)
        finally:
            engine.close()

    def _is_empty(self) -> bool:
        engine = self._opened()
        try:
            return not any(len(parts) == 3 and parts[0] == _TARGET for parts in engine.catalog.tables())
        finally:
            engine.close()


def open_database(
    path: Path, *, writable: bool = False, like: Engine | None = None, memory: str | None = None
) -> Engine:
    """Return a new engine in which a database file is attached; raise an EngineError if another process has it open.

    It is limited to the memory and threads of ``like``, or to the ``memory`` of a process.
    """
    limit = like.memory_limit() if like is not None else None
    engine = open_engine(
        memory_limit=f"{limit}B" if limit is not None else None,
        threads=like.threads() if like is not None else None,
        memory=memory,
    )
    try:
        engine.catalog.attach(path, _TARGET, writable)
    except EngineError as error:
        engine.close()
        if "lock" in str(error).lower() or "already" in str(error).lower():
            raise EngineError(f"The database {path.name!r} is in use by another process.") from None
        raise EngineError(f"The database {path.name!r} cannot be opened: {error}") from None
    except BaseException:
        engine.close()
        raise
    return engine


def table_comment_in(engine: Engine, schema: str, name: str) -> str | None:
    """Return the comment of a table of the attached database, or None if there is no such table."""
    return engine.catalog.comment(_TARGET, schema, name)


def table_rows(schema: str, name: str, columns: list[str]) -> exp.Query:
    """Return a query over a table of the attached database."""
    return exp.select(*(col(c) for c in columns)).from_(table(name, schema=schema, catalog=_TARGET))


__all__ = ["DuckDBTable", "TableReports", "open_database", "run_in_comment", "run_of", "table_comment", "table_rows"]
