"""Run a study: what is not done yet, then the figures and the page of all that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.errors import ParameterError, did_you_mean
from duckanon.progress import Progress
from duckanon.studies.base import Study, Task, get_study
from duckanon.studies.config import Settings, load_settings
from duckanon.studies.store import Results
from duckanon.studies.workers import each

if TYPE_CHECKING:
    from duckanon.progress import Listener

RESULTS = "results.duckdb"
PAGE = "index.html"


@dataclass(frozen=True)
class Outcome:
    """What a run of a study did.

    Attributes
    ----------
    study : str
    folder : Path
        Where results, figures and page are.
    tasks, done, failed, ran : int
        All tasks of the study; those that are done, now or before; those that failed; those that this run did.
    seconds : float
        The processor time of all tasks that are done, added up.
    left : float or None
        An estimate of the processor time that the tasks still open take, added up, from those done; None where none is.
    errors : tuple of str
        Why tasks failed, each reason once.
    left_out : tuple of str
        What the study lacks because an optional package is not installed.
    """

    study: str
    folder: Path
    tasks: int
    done: int
    failed: int
    ran: int
    seconds: float
    left: float | None
    errors: tuple[str, ...]
    page: Path | None = None
    left_out: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain values."""
        names = ("study", "tasks", "done", "failed", "ran", "seconds", "left", "errors", "left_out")
        paths = {"folder": str(self.folder), "page": str(self.page) if self.page else None}
        return {name: getattr(self, name) for name in names} | paths


def run_study(
    name: str,
    *,
    config: str | Path | None = None,
    full: bool = False,
    data: str | Path | None = None,
    out: str | Path | None = None,
    only: Mapping[str, Sequence[str]] | None = None,
    workers: int = 1,
    dry_run: bool = False,
    progress: Listener | None = None,
) -> Outcome:
    """Run one of the studies, or go on with it where an earlier run ended.

    Parameters
    ----------
    name : str
        ``duckanon.studies.names()`` lists them.
    config : path, optional
        A TOML file with what differs from the shipped settings: ``[study]``, ``[full]``, ``[tables.NAME]``.
    full : bool
        As in the paper, which takes hours; by default a small version that takes minutes.
    data : path, optional
        The folder of the papers' tables, by default that of the environment variable DUCKANON_DATA. Without it the
        study runs on a synthetic table.
    out : path, optional
        The folder of results, figures and page; by default ``study-NAME``.
    only : mapping of label to values, optional
        Do only the tasks with one of these values: ``{"table": ["adult"]}``. The page shows all that is done.
    workers : int
        Processes; the results do not depend on their number.
    dry_run : bool
        Run nothing; report what is done, and how long the rest may take.
    progress : callable, optional
        Called with a ``duckanon.progress.Event`` as tasks end.

    Examples
    --------
    >>> import duckanon.studies, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = duckanon.studies.run_study("property-vectors", data=None, out=folder, dry_run=True)
    >>> found.done, found.ran
    (0, 0)
    """
    study = get_study(name)
    settings = load_settings(study, config, full=full, data=data)
    tasks, left_out = study.tasks(settings), tuple(study.left_out(settings))
    wanted = _selected(tasks, only or {})
    folder = Path(out) if out is not None else Path(f"study-{study.name}")
    if not dry_run:
        from duckanon.studies.figures import require_matplotlib

        require_matplotlib()
        folder.mkdir(parents=True, exist_ok=True)
    elif not (folder / RESULTS).exists():
        return Outcome(study.name, folder, len(tasks), 0, 0, 0, 0.0, None, (), left_out=left_out)
    with Results(folder / RESULTS) as results:
        ran = 0
        if not dry_run:
            ended = results.lines(study, tasks)
            missing = [t for t in wanted if ended.get(t.key(study), {}).get("outcome") != "done"]
            ran = _do(name, study, results, missing, workers, Progress(progress))
        lines = results.lines(study, tasks)
        page = None if dry_run else _show(study, settings, results, tasks, lines, folder)
        return replace(_outcome(study, folder, tasks, lines, ran, page), left_out=left_out)


def _do(name: str, study: Study, results: Results, tasks: Sequence[Task], workers: int, progress: Progress) -> int:
    if workers < 1:
        raise ParameterError(f"workers must be at least 1. Got {workers}.")
    with progress.step("tasks", len(tasks), "tasks"):
        for done, ended in enumerate(each(name, tasks, workers), 1):
            results.add(study, ended.task, ended.records, ended.seconds, ended.error)
            progress.advance(done)
    return len(tasks)


def _selected(tasks: Sequence[Task], only: Mapping[str, Sequence[str]]) -> list[Task]:
    labels = {name for task in tasks for name in task.labels}
    tests: list[Callable[[Task], bool]] = []
    for name, values in only.items():
        if name not in labels:
            listed = ", ".join(sorted(labels))
            raise ParameterError(f"Tasks have no label {name!r}.{did_you_mean(name, labels)} They have: {listed}.")
        known_values = {str(task.labels[name]) for task in tasks if name in task.labels}
        for value in values:
            if value not in known_values:
                raise ParameterError(f"No task has {name} {value!r}.{did_you_mean(value, known_values)}")
        wanted = set(values)
        tests.append(lambda task, name=name, wanted=wanted: str(task.labels.get(name)) in wanted)  # type: ignore[misc]
    return [task for task in tasks if all(test(task) for test in tests)]


def _show(
    study: Study,
    settings: Settings,
    results: Results,
    tasks: Sequence[Task],
    lines: Mapping[str, Mapping[str, Any]],
    folder: Path,
) -> Path:
    from duckanon.studies.page import write_page

    records = results.records(study, list(tasks))
    results.publish(study, records)
    failed = _failed(study, tasks, lines)
    done = sum(line["outcome"] == "done" for line in lines.values())
    seconds = sum(line["seconds"] for line in lines.values())
    chapters = study.page(records, settings) if records else []
    facts = {"tasks": len(tasks), "done": done, "failed": failed, "seconds": seconds}
    facts["left_out"] = study.left_out(settings)
    return write_page(folder, study, settings, chapters, facts)


def _failed(study: Study, tasks: Sequence[Task], lines: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Return the reasons of failure and how many tasks have each."""
    reasons: dict[str, int] = {}
    for task in tasks:
        line = lines.get(task.key(study))
        if line is not None and line["outcome"] == "failed":
            reasons[line["error"]] = reasons.get(line["error"], 0) + 1
    return reasons


def _outcome(
    study: Study,
    folder: Path,
    tasks: Sequence[Task],
    lines: Mapping[str, Mapping[str, Any]],
    ran: int,
    page: Path | None,
) -> Outcome:
    done = [t for t in tasks if lines.get(t.key(study), {}).get("outcome") == "done"]
    failed = _failed(study, tasks, lines)
    seconds = sum(lines[t.key(study)]["seconds"] for t in done)
    left = _left(study, tasks, lines)
    return Outcome(
        study.name, folder, len(tasks), len(done), sum(failed.values()), ran, seconds, left, tuple(failed), page
    )


def _left(study: Study, tasks: Sequence[Task], lines: Mapping[str, Mapping[str, Any]]) -> float | None:
    """Return how long the open tasks take: each as those done of the same table and algorithm, or as all do."""
    seconds_of: dict[tuple[Any, ...], list[float]] = {}
    open_tasks = []
    for task in tasks:
        line = lines.get(task.key(study))
        if line is None:
            open_tasks.append(task)
        elif line["outcome"] == "done":
            for group in _groups(task):
                seconds_of.setdefault(group, []).append(line["seconds"])
    if not seconds_of:
        return None
    total = 0.0
    for task in open_tasks:
        like = next(seconds_of[group] for group in _groups(task) if group in seconds_of)
        total += sum(like) / len(like)
    return total


def _groups(task: Task) -> list[tuple[Any, ...]]:
    table, algorithm = task.labels.get("table"), task.labels.get("algorithm")
    return [(table, algorithm), (table,), ()]
