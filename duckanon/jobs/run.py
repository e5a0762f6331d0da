"""Run a job: make the releases of all its tables, check them, and publish them."""

from __future__ import annotations

import contextlib
import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.engine.process import PrivateFolder, limited_threads, no_core_dumps, remove_private_folders
from duckanon.errors import DuckanonError, EngineError
from duckanon.io.sinks import locked
from duckanon.io.source import Source
from duckanon.jobs.exit_codes import exit_code
from duckanon.jobs.job import Job, JobTable
from duckanon.jobs.monitoring import about, log_run, peak_memory, write_events, write_textfile
from duckanon.jobs.nights import State, require_recoding
from duckanon.jobs.read import load_job
from duckanon.jobs.table_run import TableRun
from duckanon.jobs.time_limit import TimeLimit
from duckanon.release import pipeline

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.plan.plan import Plan
    from duckanon.progress import Listener
    from duckanon.release.explain import Statement
    from duckanon.release.release import Release

_log = logging.getLogger("duckanon.job")


@dataclass(frozen=True)
class TableResult:
    """What a run did with one table. ``written`` has release, manifest and reports; a dry run writes nothing."""

    name: str
    summary: dict[str, Any]
    written: dict[str, Any]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobResult:
    """What a run of a job did."""

    job: Job
    run: str
    tables: tuple[TableResult, ...]
    peak_memory: int | None = None
    """The largest resident size of the process, in bytes; interpreter and libraries are included."""

    @property
    def summary(self) -> dict[str, Any]:
        """Requirements, checks and loss of the only table."""
        return self._only.summary

    @property
    def written(self) -> dict[str, Any]:
        """The files of the only table."""
        return self._only.written

    @property
    def _only(self) -> TableResult:
        name = self.job.table().name
        return next(table for table in self.tables if table.name == name)


def plan_job(path: str | Path, table: str | None = None) -> Plan:
    """Return what a job would do with a table; only the schema of the data is read."""
    job = load_job(path)
    with limited_threads(job.limits.get("threads")), no_core_dumps(), contextlib.closing(job.open_engine()) as engine:
        return job.table(table).plan(engine, read=False)


def job_statements(path: str | Path, table: str | None = None, progress: Listener | None = None) -> list[Statement]:
    """Make the release of a table, throw it away, and return the statements over rows that ran for it."""
    from duckanon.release.explain import statements

    job = load_job(path)
    threads = limited_threads(job.limits.get("threads"))
    with threads, no_core_dumps(), contextlib.closing(job.open_engine(progress)) as engine:
        return statements(job.table(table).plan(engine), engine)


def anonymizer(job: Job, table: JobTable, progress: Listener | None = None) -> Callable[[pa.Table], Release]:
    """Return a function that makes the release of any rows as a job would; nothing is published."""

    def anonymize(rows: pa.Table) -> Release:
        engine = job.open_engine(progress)
        try:
            return pipeline.run(replace(table, source=Source.arrow(rows)).plan(engine), engine)
        except BaseException:
            engine.close()
            raise

    return anonymize


def run_job(
    path: str | Path,
    *,
    progress: Listener | None = None,
    dry_run: bool = False,
    day: date | None = None,
    recoding: str | None = None,
    accept_drift: bool = False,
    end_process: bool = False,
) -> JobResult:
    """Run a job: make the releases of its tables, check them, and publish them with their reports and manifests.

    All tables are made and checked before the first is published.

    Parameters
    ----------
    path : path
        The job file.
    progress : callable, optional
        Called with a ``duckanon.progress.Event`` while the work goes on.
    dry_run : bool
        Do everything but publish: the summary says what would have been published, and the run leaves no trace.
    day : date, optional
        What stands for ``{date}`` in paths; by default today, in UTC.
    recoding : {"fresh", "frozen", "refresh"}, optional
        In place of what the job says.
    accept_drift : bool
        Publish although types, columns or the number of rows changed since the last published run.
    end_process : bool
        What happens when ``[limits] time`` is up and something that cannot be interrupted, such as a file system that
        hangs, has not returned after ten seconds. By default the run waits for it and then raises an EngineError: the
        process is the caller's. With True the process is ended with exit code 6, as the command line does.
    """
    job = load_job(path, day)
    with limited_threads(job.limits.get("threads")), no_core_dumps():
        return _run(job, progress, dry_run, recoding, accept_drift, end_process)


def _run(
    job: Job,
    progress: Listener | None,
    dry_run: bool,
    recoding: str | None,
    accept_drift: bool,
    end_process: bool,
) -> JobResult:
    if recoding is not None:
        job = replace(job, recoding=require_recoding(recoding))
    run = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}"
    with _states(job, dry_run) as states:
        runs = [
            TableRun(job, table, run, state, dry_run=dry_run, accept_drift=accept_drift)
            for table, state in zip(job.tables, states, strict=True)
        ]
        try:
            _carry_out(job, runs, progress, end_process)
        except BaseException as error:
            _record_runs(job, runs, error)
            raise
        _record_runs(job, runs)
    results = [TableResult(one.table.name, one.summary or {}, one.written, tuple(one.warnings)) for one in runs]
    return JobResult(job, run, tuple(results), peak_memory())


def _carry_out(job: Job, runs: list[TableRun], progress: Listener | None, end_process: bool) -> None:
    """Make the releases of all tables, and then publish them one after the other."""
    limit = TimeLimit(job.seconds, lambda error: _end(job, runs, error), end_process=end_process)
    with limit.running(), ExitStack() as stack:
        for one in runs:
            engine = stack.enter_context(contextlib.closing(job.open_engine(progress, share=len(runs))))
            limit.watch(engine)
            with about(run=one.run, job=job.name, table=one.table.name):
                one.make(engine, stack, limit.watch)
        limit.require_time()
        limit.stop()
        for one in runs:
            with about(run=one.run, job=job.name, table=one.table.name):
                if not one.dry_run:
                    one.publish()


def _end(job: Job, runs: list[TableRun], error: EngineError) -> None:
    """Record the failure and remove private files before the process is ended, while one of its threads still hangs."""
    _log.error("%s The process is ended: something that cannot be interrupted did not return.", error)
    remove_private_folders()
    _record_runs(job, runs, error)


@contextlib.contextmanager
def _states(job: Job, dry_run: bool) -> Iterator[list[State]]:
    """Open the state of each table, for one run at a time; a dry run does not change it."""
    with ExitStack() as stack:
        if dry_run and not job.state.is_dir():
            folder = PrivateFolder()
            stack.callback(folder.close)
            yield [State.open(folder.path / table.name) for table in job.tables]
            return
        State.open(job.state)
        try:
            stack.enter_context(locked(job.state / "run"))
        except EngineError:
            raise EngineError(f"Another run of {job.path.name!r} is under way: try again when it has ended.") from None
        states = [State.open(job.state / table.name) for table in job.tables]
        yield states
        if dry_run:
            for state in states:
                state.forget()


def _record_runs(job: Job, runs: list[TableRun], error: BaseException | None = None) -> None:
    """Write history, metrics and lineage. If that fails there is a warning: what was published stays published."""
    records = []
    for one in runs:
        # Another table's failure does not undo what this one published.
        failed = None if one.written else error
        outcome = "failed" if failed is not None else "dry_run" if one.dry_run else "published"
        records.append(one.record(outcome, exit_code(failed), failed))
        log_run(records[-1])
    if any(one.dry_run for one in runs):
        return
    steps: list[tuple[Callable[..., object], tuple[Any, ...]]] = [
        (one.state.append, (record,)) for one, record in zip(runs, records, strict=True)
    ]
    for one, record in zip(runs, records, strict=True):
        if record["outcome"] == "failed":
            steps.append((one.write_failure_page, (record,)))
        else:
            steps.append((one.remove_failure_page, ()))
    if job.metrics is not None:
        steps.append((write_textfile, (job.metrics, records)))
    if job.lineage is not None:
        steps += [(write_events, (job.lineage, record)) for record in records]
    for step, arguments in steps:
        try:
            step(*arguments)
        except (DuckanonError, OSError) as problem:
            reason = str(problem) if isinstance(problem, DuckanonError) else type(problem).__name__
            _log.warning("%s could not be written: %s", step.__name__, reason)
            for one in runs:
                one.warnings.append(f"History, metrics or lineage could not be written: {reason}")
