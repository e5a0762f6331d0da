"""The release of one run, by a stored or a new recoding, compared with those of earlier runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from duckanon.errors import ParameterError, UnsupportedError, did_you_mean
from duckanon.jobs.expectations import plain_type
from duckanon.jobs.keys import IntersectionPolicy
from duckanon.jobs.nights.frozen import Stored, freeze, frozen_plan, remembering, require_recoding
from duckanon.jobs.nights.intersection import Intersection, check_intersection, hold_back, kept_nights
from duckanon.jobs.nights.stored_algorithms import StoredLevels, StoredRegions
from duckanon.release import pipeline

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.jobs.nights.state import State
    from duckanon.plan.plan import Plan
    from duckanon.release.release import Release

INTERSECTIONS: tuple[str, ...] = get_args(IntersectionPolicy)
"""What happens where two releases together break k: they are not compared; there is a warning; nothing is published; or
persons are held back until enough of them have changed together."""


@dataclass
class Night:
    """A release that passed the gate, and what the state stores when it is published.

    ``stored`` is the run whose recoding is in force, ``nights`` are the runs to compare later nights with.
    ``held_back`` rows are among those that the release counts as suppressed.
    """

    release: Release
    run: str
    recoding: str
    stored: str | None = None
    held_back: int = 0
    intersection: Intersection | None = None
    nights: tuple[str, ...] = ()
    warnings: list[str] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        """Return the names, types and numbers that later runs are compared with."""
        summary = self.release.summary()
        found = summary["found"]
        return {
            "columns": {c.name: plain_type(c.type) for c in self.release.plan.relation.columns},
            "rows_in": found["rows_in"],
            "rows_published": found["rows_published"],
            "suppressed_share": found["suppressed_share"],
            "held_back": self.held_back,
            "classes": found["classes"],
            "class_size": {name: _number(value) for name, value in found["class_size"].items()},
            "loss": {m["metric"]: _number(m["value"]) for m in summary["loss"] if m["attribute"] is None},
            "recoding": self.recoding,
        }

    def prepare(self, state: State) -> None:
        """Store what will be published; ``State.settle`` follows when it is."""
        state.prepare(self.run, self.facts(), recoding=self.stored, nights=self.nights)


def _number(value: Any) -> float | int | None:
    if value is None or isinstance(value, int):
        return value
    return float(value) if math.isfinite(value) else None


def make_night(
    plan: Plan,
    engine: Engine,
    state: State,
    run: str,
    *,
    recoding: str = "fresh",
    intersection: str = "off",
    keep: int = 3,
    stage: Path | None = None,
) -> Night:
    """Make the release of one run. Nothing is published here, and the state is not settled.

    Parameters
    ----------
    plan : Plan
        Of the job.
    engine : Engine
    state : State
        Settled: ``State.settle`` was called with the run that is published.
    run : str
        The id of this run.
    recoding : {"fresh", "frozen", "refresh"}
        Search anew and store nothing; apply the stored recoding, or search and store where there is none; search anew
        and store the result in place of the old one, once this run is published.
    intersection : {"off", "warn", "stop", "hold"}
        What to do where this release and one of the last ``keep`` together break k, see ``nights.intersection``. "stop"
        is about persons in both; about persons who came or went there is a warning. "hold" leaves out as many persons
        of either kind as it takes, and needs a stored recoding.
    keep : int
        With how many published releases this one is compared.
    stage : Path, optional
        As of ``pipeline.run``.
    """
    require_recoding(recoding)
    if intersection not in INTERSECTIONS:
        hint = did_you_mean(str(intersection), INTERSECTIONS)
        raise ParameterError(f"intersection must be one of {', '.join(INTERSECTIONS)}.{hint}")
    if isinstance(keep, bool) or not isinstance(keep, int) or keep < 1:
        raise ParameterError("keep must be a number of runs of at least 1.")
    if intersection != "off" and plan.entity is None:
        raise ParameterError(
            f"intersection = {intersection!r} needs an entity_key, which identifies the persons in both releases."
        )
    if intersection != "off" and plan.algorithm.permutes:
        raise UnsupportedError(
            f"intersection = {intersection!r} compares the classes of two releases, and those of {plan.algorithm.name} "
            "are not published."
        )
    if intersection == "hold" and recoding == "fresh":
        raise ParameterError("intersection = 'hold' needs recoding = 'frozen': a new search would move all classes.")
    if recoding != "fresh":
        plan = remembering(plan)
    last = state.last()
    stored = last["stored"] if last is not None and recoding == "frozen" else None
    applied = plan if stored is None else frozen_plan(plan, Stored.load(state.run_folder(stored)))
    release = pipeline.run(applied, engine, stage)
    try:
        if recoding != "fresh" and stored is None:
            stored = run
            freeze(release, state.run_folder(run))
        night = Night(release, run, recoding, stored)
        if intersection != "off":
            night = _compare(night, plan, engine, state, intersection, keep, stage)
    except BaseException:
        release.folder.close()
        raise
    if isinstance(night.release.plan.algorithm, StoredLevels | StoredRegions):
        night.held_back = night.release.rows_suppressed
    return night


def _compare(
    night: Night, plan: Plan, engine: Engine, state: State, policy: str, keep: int, stage: Path | None
) -> Night:
    release, run = night.release, night.run
    intersection = check_intersection(engine, release, state, run, keep=keep)
    nights = tuple(kept_nights(state, run, keep))
    if policy == "hold" and not intersection.holds:
        assert night.stored is not None
        applied = frozen_plan(plan, Stored.load(state.run_folder(night.stored)))
        rest, rows = hold_back(engine, applied, state, run, keep=keep)
        release.folder.close()
        release = pipeline.run(rest, engine, stage)
        try:
            # Those held back are rows of the source, too.
            release.rows_in += rows
            release.rows_suppressed += rows
            intersection = check_intersection(engine, release, state, run, keep=keep)
            intersection.require(delta=True)
        except BaseException:
            release.folder.close()
            raise
    elif policy == "stop":
        intersection.require()
    return replace(night, release=release, intersection=intersection, nights=nights, warnings=intersection.warnings())


__all__ = ["INTERSECTIONS", "Night", "make_night"]
