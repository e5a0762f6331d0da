"""One table in one run of a job: its release is made, checked and published, and the run is recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from duckanon.encoding.counting import count_rows
from duckanon.engine.process import sweep
from duckanon.errors import EngineError, JobError
from duckanon.io.sinks import made_folder, os_errors
from duckanon.jobs.expectations import check_rows, check_schema, check_use, plain_type
from duckanon.jobs.monitoring import peak_memory
from duckanon.jobs.nights import Night, drift, make_night
from duckanon.jobs.targets import TEMPLATE, sink_at
from duckanon.report import page

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.engine.sql.relations import Column
    from duckanon.io.sinks import Sink
    from duckanon.jobs.job import Job, JobTable
    from duckanon.jobs.nights import State
    from duckanon.release.release import Release

FAILURE = "failure.html"
"""The file in the state with the page about the last run that failed."""
_ROLES = ("quasi_identifiers", "sensitive", "insensitive", "identifiers", "within")


@dataclass
class TableRun:
    """One table in one run."""

    job: Job
    table: JobTable
    run: str
    state: State
    dry_run: bool = False
    accept_drift: bool = False
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    warnings: list[str] = field(default_factory=list)
    columns: tuple[Column, ...] = ()
    night: Night | None = None
    summary: dict[str, Any] | None = None
    written: dict[str, Any] = field(default_factory=dict)
    _begun: float = field(default_factory=time.monotonic)

    def make(self, engine: Engine, stack: ExitStack, watch: Callable[[Engine], object]) -> None:
        """Make the release, or raise where it must not be published; ``stack`` closes what the release needs.

        ``watch`` is called with every further engine that is opened, so that the time limit holds for it, too.
        """
        sink, expect = self.table.target.sink, self.table.expect
        if not self.dry_run:
            stack.enter_context(os_errors(sink.paths[0]))
            if sink.stage is not None:
                stack.enter_context(made_folder(sink.stage))
            if self.job.signer is not None:
                self.job.signer.require_usable()
            self._require_free()
            sink.require_writable()
            self._settle()
        last = None if self.accept_drift else self.state.last()
        self.columns = self._columns(watch)
        check_schema(self.columns, expect, last, self._named())
        plan = self.table.plan(engine)
        check_rows(count_rows(engine, plan.relation.query), expect, last)
        self.night = make_night(
            plan,
            engine,
            self.state,
            self.run,
            recoding=self.job.recoding,
            intersection=self.job.intersection or ("off" if plan.entity is None or plan.algorithm.permutes else "warn"),
            stage=None if self.dry_run else sink.stage,
        )
        release = stack.enter_context(self.night.release)
        if self.night.held_back:
            number = self.night.held_back
            rows = "1 row is" if number == 1 else f"{number} rows are"
            release.remarks = (f"{rows} held back until there are enough in the class.",)
        self.warnings += self.night.warnings
        check_use(release, expect)
        self.summary = release.summary()
        self.warnings += drift(self.state.history(), self.record("published"))

    def _settle(self) -> None:
        """Find out whether the last run was killed before or after it published.

        It may have published elsewhere: its path has a date in it, or the job was changed since.
        """
        state, target = self.state, self.table.target
        place, sink = state.place(), target.sink
        if place is not None and place != target.place:
            sink = self._finished(place)
        left = place is not None and sink is not target.sink and place[TEMPLATE] != target.place[TEMPLATE]
        if state.settle(sink.published_run()) and left:
            self.warnings.append(
                f"The last run was ended once it had published {sink.name!r}, which [output] does not name any more: "
                "it stays there, and this run is compared with it."
            )
        if place != target.place:
            state.begin(target.place)

    def _finished(self, place: Mapping[str, Any]) -> Sink:
        """Finish what a killed run left at another place, remove what is private of it, and return the sink there."""
        target, pending = self.table.target, self.state.pending() is not None
        sink = sink_at(place, self.table.name, self.table.folder, target)
        if sink is None:
            sweep(self.table.folder / place.get("reports_in", f"{self.table.name}.reports"))
            if not pending:
                return target.sink
            raise JobError(
                f"{self.job.path.name}: the last run was ended while it wrote the table {place['table']!r} of a server "
                "that [output] does not name any more, and only that server knows whether it was published. Run once "
                "with the former [output] postgres; where that server is gone for good, remove 'pending.json' from the "
                "state folder: that run then counts as not published."
            )
        folders = {path.parent for path in sink.paths} | ({sink.stage} if sink.stage is not None else set())
        for folder in folders:
            # The folders of this run are swept when they are written to.
            sweep(folder)
        if pending and any(folder.is_dir() for folder in folders):
            try:
                sink.require_writable()
            except EngineError as error:
                raise EngineError(
                    f"The last run was ended while it published {sink.name!r}, which [output] does not name any more, "
                    f"and what it left there cannot be finished: {error}"
                ) from None
        return target.sink if (sink.name, sink.paths) == (target.sink.name, target.sink.paths) else sink

    def publish(self) -> None:
        """Publish the release, and make it the last one in the state."""
        if self.night is None:
            raise JobError("There is nothing to publish: make() comes first.")
        night, state, target = self.night, self.state, self.table.target
        self._require_free()
        columns = {c.name: plain_type(c.type) for c in self.columns}
        facts = {**night.facts(), "columns": columns}
        state.prepare(self.run, facts, recoding=night.stored, nights=night.nights)
        release = night.release
        with release.engine.progress.step("write", release.rows_published):
            names = {"run": self.run, "job": self.job.name, "table": self.table.name}
            self.written = target.sink.publish(release, reports=self._reports(release), run=names)
        state.settle(self.run)
        if target.keep is not None:
            target.prune(self.written["release"])

    def record(self, outcome: str, exit_code: int = 0, error: BaseException | None = None) -> dict[str, Any]:
        """Return the record of the run, for history, logs and metrics: names and counts, never a cell."""
        failure, night = None, self.night
        if error is not None:
            # The message of an unexpected error may quote data.
            words = str(error) if type(error).__module__ == "duckanon.errors" else "withheld: it may quote data"
            failure = {"type": type(error).__name__, "message": words}
        return {
            "run": self.run,
            "job": self.job.name,
            "table": self.table.name,
            "started": self.started.isoformat(timespec="seconds"),
            "ended": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - self._begun, 3),
            "outcome": outcome,
            "exit_code": exit_code,
            "error": failure,
            "warnings": list(self.warnings),
            "summary": self.summary,
            "written": self._written_names() if self.written else None,
            "peak_memory": peak_memory(),
            "recoding": self.job.recoding,
            "held_back": night.held_back if night is not None else 0,
            "intersection": _intersection_figures(night),
            "source": {"kind": self.table.source.kind, "name": self.table.source.name},
            "columns": [{"name": c.name, "type": plain_type(c.type)} for c in self.columns],
        }

    def _written_names(self) -> dict[str, Any]:
        """Return what was written as texts."""
        written = self.written
        return {
            **{k: str(written[k]) for k in ("release", "manifest")},
            "reports": [str(p) for p in written["reports"]],
        }

    def _planned(self) -> dict[str, str]:
        """Return the names that release and manifest will have."""
        sink = self.table.target.sink
        return {"release": sink.name, "manifest": next(p.name for p in sink.paths if p.name.endswith("manifest.json"))}

    def write_failure_page(self, record: Mapping[str, Any]) -> None:
        """Write a page about a run that failed into the state, not into the folder of exports."""
        history = self.state.history().to_pylist()
        path = self.state.folder / FAILURE
        path.touch(mode=0o600)
        path.write_text(page(None, record=record, history=history), encoding="utf-8")

    def remove_failure_page(self) -> None:
        """Remove the page about an earlier run that failed."""
        (self.state.folder / FAILURE).unlink(missing_ok=True)

    def _require_free(self) -> None:
        sink = self.table.target.sink
        if not self.table.overwrite and sink.exists():
            raise JobError(f"{self.job.path.name}: [output] {sink.name!r} exists, and overwrite = false.")

    def _columns(self, watch: Callable[[Engine], object]) -> tuple[Column, ...]:
        """Read the schema in a separate database, so that nothing stays open in that of the run."""
        with closing(self.job.open_engine()) as engine:
            watch(engine)
            return self.table.source.open(engine, read=False).columns

    def _named(self) -> list[str]:
        request = self.table.request
        columns = [name for role in _ROLES for name in getattr(request, role)]
        return columns if request.entity_key is None else [*columns, request.entity_key]

    def _reports(self, release: Release) -> dict[str, str]:
        reports = {kind: release.report(kind) for kind in self.table.reports if kind != "html"}
        if "html" in self.table.reports:
            history = self.state.history().to_pylist()
            record = {**self.record("published"), "written": self._planned()}
            reports["html"] = page(release.summary(), record=record, history=history)
        return reports


def _intersection_figures(night: Night | None) -> dict[str, Any] | None:
    """Return three figures of the comparison with earlier releases; None where there was none."""
    intersection = night.intersection if night is not None else None
    if intersection is None or not intersection.compared:
        return None
    return {
        "persons_in_both": intersection.persons_in_both,
        "smallest": intersection.smallest,
        "persons_below": intersection.persons_below,
    }
