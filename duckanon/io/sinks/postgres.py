"""A table of a PostgreSQL server: replaced in one transaction of the server, and checked as the server holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.process import PrivateFolder, sweep
from duckanon.engine.sql.relations import table as named_table
from duckanon.errors import DuckanonError
from duckanon.io.disk import locked, made_folder, os_errors
from duckanon.io.postgres import published_comment, require_uri, require_writable, write_table
from duckanon.io.postgres.session import Address
from duckanon.io.sinks.base import require_apart
from duckanon.io.sinks.content import fingerprint
from duckanon.io.sinks.signing import Signer
from duckanon.io.sinks.tables import TableReports, run_in_comment, run_of, table_comment

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.io.sinks.base import Publishable


@dataclass(frozen=True)
class PostgresTable:
    """A table of a PostgreSQL server, with the run in its comment.

    Within the transaction that replaces the rows, they are read back and checked by the gate. Readers see the old rows
    or the new ones. Only a table that an earlier run wrote is replaced.

    Parameters
    ----------
    uri : Address
        ``postgresql://role@host/database``; it is shown nowhere.
    table : str
        ``table`` or ``schema.table``.
    reports_in : Path
        The folder of manifest and reports.
    signer : Signer, optional
        Signs the manifest.
    """

    uri: Address
    table: str
    reports_in: Path
    signer: Signer | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "uri", require_uri(self.uri))
        TableReports(self.reports_in, self.table)

    @property
    def name(self) -> str:
        return f"postgres: {self.table}"

    @property
    def stage(self) -> Path | None:
        return self.reports_in

    @property
    def paths(self) -> tuple[Path, ...]:
        return self._reports.paths()

    @property
    def _reports(self) -> TableReports:
        return TableReports(self.reports_in, self.table, self.signer)

    def exists(self) -> bool:
        return self.published_run() is not None

    def published_run(self) -> str | None:
        return run_in_comment(published_comment(self.uri, self.table))

    def _settled_run(self) -> str | None:
        """Return the published run once no writer is active: the server may still be committing for a killed run."""
        return run_in_comment(published_comment(self.uri, self.table, settled=True))

    def require_writable(self) -> None:
        with os_errors(self._reports.target), made_folder(self.reports_in), locked(self._reports.target):
            self._reports.settled(self._settled_run)
            PrivateFolder(self.reports_in).close()
            require_writable(self.uri, self.table, replace=True)

    def publish(self, release: Publishable, *, reports: Mapping[str, str], run: Mapping[str, Any]) -> dict[str, Any]:
        require_apart(self, release.sources)
        about_run, target = run_of(run), self._reports.target
        with os_errors(target), made_folder(self.reports_in), locked(target):
            self._reports.settled(self._settled_run)
            sweep(self.reports_in)
            folder = PrivateFolder(self.reports_in)
            try:
                release.verify(release.path)
                written = self._replace(release, folder, reports, about_run)
                self._reports.finished()
            except BaseException:
                self._take_back()
                raise
            finally:
                folder.close()
        return {"release": self.name, "manifest": self._reports.manifest, "reports": written}

    def _replace(
        self, release: Publishable, folder: PrivateFolder, reports: Mapping[str, str], run: Mapping[str, Any]
    ) -> list[Path]:
        """Replace the rows; manifest and reports become the pending commit just before the server commits."""
        engine, written = release.engine, list[Path]()

        def verify(rows: pa.RecordBatchReader) -> None:
            name, back = engine.fresh("again"), folder.path / "again.parquet"
            engine.register(name, rows)
            try:
                engine.write_parquet(exp.select("*").from_(named_table(name)), back)
            finally:
                engine.unregister(name)
            release.verify_rows(engine.parquet([back]))
            content = fingerprint(engine, engine.parquet([back]), [c.name for c in release.columns])
            where = {"kind": "postgres", "table": self.table, **content}
            written.extend(
                self._reports.prepared(folder, summary=release.described(), reports=reports, run=run, target=where)
            )

        rows = engine.reader(engine.parquet([release.path]))
        comment = table_comment(run)
        write_table(self.uri, self.table, rows, replace=True, comment=comment, verify=verify, progress=engine.progress)
        return written

    def _take_back(self) -> None:
        """After a failure, keep or discard manifest and reports by what the server has, if it can be asked."""
        try:
            self._reports.settled(self._settled_run)
        except DuckanonError:
            return  # The next run asks again.


__all__ = ["PostgresTable"]
