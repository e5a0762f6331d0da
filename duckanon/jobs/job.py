"""A job: what its file says, read and checked."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.errors import JobError, did_you_mean
from duckanon.jobs.keys import Expect

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.io.sinks import Signer
    from duckanon.io.source import Source
    from duckanon.jobs.targets import Target
    from duckanon.plan.plan import Plan
    from duckanon.plan.request import Request
    from duckanon.progress import Listener
    from duckanon.release.agreement import Expected


_SIZE = re.compile(r"([\d.]+)\s*(\D+)")


@dataclass(frozen=True)
class JobTable:
    """One table of a job: its source, the request, and where the release is published."""

    name: str
    folder: Path
    source: Source
    parameters: dict[str, Any]
    target: Target
    reports: tuple[str, ...] = ()
    overwrite: bool = True
    expect: Expect = field(default_factory=Expect)

    @property
    def request(self) -> Request:
        """What the job asks for; ``parameters`` are those of it that the job file names."""
        from duckanon.plan.request import Request

        return Request(data=self.source, **self.parameters)

    def expected(self, job: str) -> Expected:
        """Return what a manifest of this table's releases must agree with; ``job`` is the name of the job."""
        from duckanon.algorithms.base import Algorithm
        from duckanon.plan.plan import Requirements, extended
        from duckanon.release.agreement import Expected

        request = self.request
        asked: Any = {"k": request.k, "l": request.l, "t": request.t, "models": request.models}
        hidden = isinstance(request.algorithm, Algorithm) and request.algorithm.permutes
        roles = ("sensitive", "insensitive", "identifiers", "entity_key")
        return Expected(
            requirements=Requirements.of_hidden(**asked) if hidden else Requirements.of(**asked),
            roles={
                "quasi_identifiers": extended(request.quasi_identifiers, request.within),
                **{role: getattr(request, role) for role in roles},
            },
            hierarchies=tuple(request.hierarchies or ()),
            settings={name: getattr(request, name) for name in ("suppression_limit", "bounds", "within")},
            job=job,
            table=self.name,
        )

    def plan(self, engine: Engine, *, read: bool = True) -> Plan:
        """Resolve the names; with ``read=False`` only the schema of the data is looked at."""
        from duckanon.plan.plan import Plan

        return Plan.resolve(self.request, engine, base=self.folder, read=read)


@dataclass(frozen=True)
class Job:
    """A job file, read and checked; no data has been touched."""

    path: Path
    tables: tuple[JobTable, ...]
    day: date
    state: Path
    limits: dict[str, Any] = field(default_factory=dict)
    seconds: int | None = None
    recoding: str = "fresh"
    intersection: str | None = None
    metrics: Path | None = None
    lineage: Path | None = None
    signer: Signer | None = None

    @property
    def name(self) -> str:
        """What the job is called: its file."""
        return self.path.stem

    @property
    def folder(self) -> Path:
        """The folder of the job file, which its relative paths start from."""
        return self.path.parent

    def table(self, name: str | None = None) -> JobTable:
        """Return the table of that name; without one, the only table."""
        names = [table.name for table in self.tables]
        if name is None:
            if len(names) > 1:
                raise JobError(f"{self.path.name}: the job has several tables, name one: {', '.join(names)}.")
            return self.tables[0]
        if name not in names:
            raise JobError(f"{self.path.name}: there is no table {name!r}.{did_you_mean(name, names)}")
        return self.tables[names.index(name)]

    def require_folders(self) -> None:
        """Raise where metrics or lineage go into a folder that is not there: it would be known after the work."""
        for key in ("metrics", "lineage"):
            path: Path | None = getattr(self, key)
            if path is not None and not path.parent.is_dir():
                raise JobError(
                    f"{self.path.name}: [operations] {key}: the folder {path.parent.name!r} of {path.name!r} does not "
                    "exist. Make it, or name another."
                )

    def open_engine(self, progress: Listener | None = None, *, share: int = 1) -> Engine:
        """Return a private database within the job's limits; several that are open at a time share the memory."""
        from duckanon.engine.base import open_engine

        limits = dict(self.limits)
        if share > 1 and "memory" in limits:
            number, unit = _SIZE.fullmatch(limits["memory"]).groups()  # type: ignore[union-attr]
            limits["memory"] = f"{float(number) / share:.6f}{unit}"
        return open_engine(None, progress, **limits)
