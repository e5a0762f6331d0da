"""One table in one run of a job: made, looked at, published, told."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from duckanon.errors import InfeasibleError, JobError
from duckanon.gate import count_rows
from duckanon.job.guards import check_rows, check_schema, check_use, plain_type
from duckanon.nights import State, Stored, check_intersection, drift, freeze, frozen_plan, keep_persons, require_freezable
from duckanon.operations import peak_memory
from duckanon.pipeline import make
from duckanon.report import page
from duckanon.sink import made_folder, os_errors, prune

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.job.base import Job, JobTable
    from duckanon.plan import Plan
    from duckanon.release import Release
    from duckanon.sqlgen.relations import Column


@dataclass
class Night:
    """One table in one run.

    ``state`` is None for a dry run of a job that has never run: nothing is kept of it.
    """

    job: Job
    table: JobTable
    run: str
    state: State | None
    dry_run: bool = False
    accept_drift: bool = False
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    warnings: list[str] = field(default_factory=list)
    summary: dict[str, Any] | None = None
    written: dict[str, Any] = field(default_factory=dict)
    columns: tuple[Column, ...] = ()
    release: Release | None = None
    held_back: int = 0
    intersection: dict[str, Any] | None = None
    stored: str | None = None
    """The run whose recoding is in force, where recodings are kept."""
    _begun: float = field(default_factory=time.monotonic)

    def make(self, engine: Engine, stack: ExitStack) -> None:
        """Make the release, and stop where it must not be published; ``stack`` holds what it needs until then."""
        sink, expect = self.table.target.sink, self.table.expect
        if not self.dry_run:
            stack.enter_context(os_errors(sink.paths[0]))
            if sink.stage is not None:
                stack.enter_context(made_folder(sink.stage))
            self._require_free()
            sink.require_writable()
        if self.state is not None and not self.dry_run:
            self.state.settle(sink.published_run())
        last = self.state.last() if self.state is not None else None
        before = None if self.accept_drift else last
        self.columns = self._columns()
        check_schema(self.columns, expect, before, self._named())
        plan = self.table.plan(engine)
        check_rows(count_rows(engine, plan.relation.query), expect, before)
        plan = self._frozen(plan, last)
        release = stack.enter_context(make(plan, engine, None if self.dry_run else sink.stage))
        if self.stored not in (None, self.run):
            self.held_back = release.rows_suppressed
        check_use(release, expect)
        self._intersect(release)
        self.release, self.summary = release, release.summary()
        if self.state is not None:
            self.warnings += drift(self.state.history().to_pylist(), self.record("published"))

    def publish(self) -> None:
        """Publish the release; state and history follow."""
        release, state, sink = self.release, self.state, self.table.target.sink
        if release is None or state is None or self.summary is None:
            raise JobError("There is nothing to publish: make() comes first.")
        self._require_free()
        if self.stored == self.run:
            freeze(release, state.run_folder(self.run))
        nights = keep_persons(release, state, self.run) if release.plan.entity is not None else ()
        state.prepare(self.run, self._facts(release), recoding=self.stored, nights=nights)
        with release.engine.progress.step("write", release.rows_published):
            told = {"run": self.run, "job": self.job.name, "table": self.table.name}
            self.written = sink.publish(release, reports=self._reports(release, state), run=told)
        state.settle(self.run)
        keep, pattern = self.table.target.keep, self.table.target.pattern
        if keep is not None and pattern is not None:
            prune(pattern, keep=keep)

    def record(self, outcome: str, exit_code: int = 0, error: BaseException | None = None) -> dict[str, Any]:
        """Return what is told of the run: names, counts and words, and no cell."""
        told = None
        if error is not None:
            # A message that nobody of us wrote may quote data.
            words = str(error) if type(error).__module__ == "duckanon.errors" else "withheld: it may quote data"
            told = {"type": type(error).__name__, "message": words}
        return {
            "run": self.run,
            "job": self.job.name,
            "table": self.table.name,
            "started": self.started.isoformat(timespec="seconds"),
            "ended": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - self._begun, 3),
            "outcome": outcome,
            "exit_code": exit_code,
            "error": told,
            "warnings": list(self.warnings),
            "summary": self.summary,
            "written": self._shown() if self.written else None,
            "peak_memory": peak_memory(),
            "recoding": self.job.recoding,
            "held_back": self.held_back,
            "intersection": self.intersection,
            "columns": [{"name": c.name, "type": plain_type(c.type)} for c in self.columns],
        }

    def _shown(self) -> dict[str, Any]:
        """Return what was written as texts."""
        written = self.written
        return {**{k: str(written[k]) for k in ("release", "manifest")}, "reports": [str(p) for p in written["reports"]]}

    def _require_free(self) -> None:
        sink = self.table.target.sink
        if not self.table.overwrite and sink.exists():
            raise JobError(f"{self.job.path.name}: [output] {sink.name!r} is there already, and overwrite = false.")

    def _columns(self) -> tuple[Column, ...]:
        """Look at the schema in a database of its own: what is opened there does not stand in the way of the work."""
        with closing(self.job.open_engine()) as engine:
            return self.table.source.open(engine, read=False).columns

    def _named(self) -> list[str]:
        roles = self.table.roles
        listed = [name for role in ("quasi_identifiers", "sensitive", "insensitive", "identifiers", "within")
                  for name in roles.get(role, ())]
        return [*listed, *([roles["entity_key"]] if "entity_key" in roles else [])]

    def _frozen(self, plan: Plan, last: Mapping[str, Any] | None) -> Plan:
        """Return the plan that applies the stored recoding, where there is one and it is to be kept."""
        if self.job.recoding == "fresh":
            return plan
        known = last["stored"] if last is not None else None
        if self.job.recoding == "frozen" and known is not None and self.state is not None:
            self.stored = known
            return frozen_plan(plan, Stored.load(self.state.run_folder(known)))
        require_freezable(plan)
        self.stored = self.run
        return plan

    def _intersect(self, release: Release) -> None:
        """Compare with the releases of earlier nights, where persons are known and somebody wants to know."""
        if self.job.intersection == "ignore" or self.state is None or release.plan.entity is None:
            return
        found = check_intersection(release, self.state)
        if found is None:
            return
        self.intersection = found.to_dict()
        if not found.holds:
            words = found.describe()
            if self.job.intersection == "stop":
                raise InfeasibleError(words)
            self.warnings.append(words)

    def _facts(self, release: Release) -> dict[str, Any]:
        found = release.summary()["found"]
        return {
            "columns": {c.name: plain_type(c.type) for c in self.columns},
            "rows_in": release.rows_in,
            "suppressed_share": found["suppressed_share"],
            "class_size": found["class_size"],
            "published": datetime.now(UTC).isoformat(timespec="seconds"),
            "recoding": self.job.recoding,
        }

    def _reports(self, release: Release, state: State) -> dict[str, str]:
        reports = {}
        for kind in self.table.reports:
            if kind == "html":
                history = state.history().to_pylist()
                reports[kind] = page(release.summary(), record=self.record("published"), history=history)
            else:
                reports[kind] = release.report(kind)
        return reports
