"""A job: source, roles, promise and target in a TOML file, so that a release can be made again every night."""

from __future__ import annotations

import glob
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon import errors
from duckanon.errors import ConfigError, DuckanonError, JobError, ParameterError, UnsupportedError, did_you_mean
from duckanon.job_keys import REPORTS, RULE, Tables, is_text, kind_of
from duckanon.paths import covers, is_remote
from duckanon.registry import make_from

if TYPE_CHECKING:
    from duckanon.algorithms.base import Algorithm
    from duckanon.engine.base import Engine
    from duckanon.plan import Plan
    from duckanon.progress import Listener
    from duckanon.source import Source

PUBLISHED, FAILED, CONFIGURATION, DATA, INFEASIBLE, VIOLATION, ENVIRONMENT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130

# Read from top to bottom: the first line that fits decides.
_EXITS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], int], ...] = (
    ((errors.DataError, errors.UnlistedColumnError, errors.UnknownValueError), DATA),
    ((ConfigError, errors.HierarchyError, UnsupportedError), CONFIGURATION),
    (errors.InfeasibleError, INFEASIBLE),
    (errors.PrivacyViolation, VIOLATION),
    ((errors.EngineError, OSError, MemoryError), ENVIRONMENT),
    (KeyboardInterrupt, INTERRUPTED),
)


@dataclass(frozen=True)
class Job:
    """A job file, read and checked; no data has been touched."""

    path: Path
    source: Source
    roles: dict[str, Any]
    hierarchies: dict[str, Any]
    privacy: dict[str, Any]
    algorithm: Algorithm | None
    output: Path
    steering: dict[str, Any] = field(default_factory=dict)
    form: dict[str, Any] = field(default_factory=dict)
    reports: tuple[str, ...] = REPORTS
    overwrite: bool = True
    limits: dict[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder of the job file, which its relative paths start from."""
        return self.path.parent

    def anonymize_arguments(self) -> dict[str, Any]:
        """Return the keyword arguments that ``anonymize`` and ``Plan.make`` have in common."""
        named = {"hierarchies": self.hierarchies, "algorithm": self.algorithm}
        return {**self.roles, **self.privacy, **self.steering, **self.form, **named}

    def plan(self, engine: Engine, *, read: bool = True) -> Plan:
        """Resolve the job's names; with ``read=False`` only the schema of the data is looked at."""
        from duckanon.plan import Plan

        return Plan.make(self.source, engine, base=self.folder, read=read, **self.anonymize_arguments())

    def open_engine(self, progress: Listener | None = None) -> Engine:
        """Return a private database within the job's limits."""
        from duckanon.plan import open_engine

        return open_engine(None, progress, **self.limits)


@dataclass(frozen=True)
class JobResult:
    """What a run of a job did. ``written`` is empty for a dry run, else it has release, manifest and reports."""

    job: Job
    summary: dict[str, Any]
    written: dict[str, Any]


def load_job(path: str | Path) -> Job:
    """Read and check a job file; whatever is wrong in it is a JobError that names the table and the key."""
    file = Path(path)
    try:
        return _job(Tables(_read(file)), file.absolute())
    except (ConfigError, UnsupportedError) as error:
        raise JobError(f"{file.name}: {error}") from None


def plan_job(path: str | Path) -> Plan:
    """Return what a job would do; of the data only the schema is touched."""
    job = load_job(path)
    engine = job.open_engine()
    try:
        return job.plan(engine, read=False)
    finally:
        engine.close()


def run_job(path: str | Path, *, progress: Listener | None = None, dry_run: bool = False) -> JobResult:
    """Run a job: make the release, check it, and publish it with its reports and manifest.

    Parameters
    ----------
    path : path
        The job file.
    progress : callable, optional
        Called with a ``duckanon.progress.Event`` while the work goes on.
    dry_run : bool
        Do everything but publish: the summary says what would have been.
    """
    from duckanon.pipeline import make
    from duckanon.sink import made_folder, os_errors, require_writable

    job = load_job(path)
    engine = job.open_engine(progress)
    try:
        if dry_run:
            with make(job.plan(engine), engine) as release:
                return JobResult(job, release.summary(), {})
        _require_free(job)
        plan = job.plan(engine)
        # Staged beside the target, so that publishing is a rename and a full disk shows before, not after, the work.
        with os_errors(job.output), made_folder(job.output.parent):
            require_writable(job.output)
            with make(plan, engine, job.output.parent) as release:
                _require_free(job)
                with engine.progress.step("write", release.rows_published):
                    written = release.write(job.output, report=job.reports)
                return JobResult(job, release.summary(), written)
    finally:
        engine.close()


def exit_code(error: BaseException | None) -> int:
    """Return the exit code that tells a scheduler what happened.

    0 published; 2 configuration; 3 data or schema drift; 4 the promise cannot be kept; 5 the gate refused;
    6 environment; 130 interrupted; 1 anything that nobody foresaw.

    Examples
    --------
    >>> exit_code(None), exit_code(JobError("")), exit_code(errors.DataError(""))
    (0, 2, 3)
    """
    if error is None:
        return PUBLISHED
    return next((code for kind, code in _EXITS if isinstance(error, kind)), FAILED)


def _require_free(job: Job) -> None:
    if not job.overwrite and job.output.exists():
        raise JobError(f"{job.path.name}: [output] {job.output.name!r} is there already, and overwrite = false.")


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise JobError("there is no such job file.") from None
    except OSError as error:
        raise JobError(f"the job file cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise JobError("the job file is not UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        raise JobError(f"not valid TOML: {error}.") from None


def _job(tables: Tables, path: Path) -> Job:
    from duckanon.outputs import extended

    folder = path.parent
    for name, needed in (("source", ()), ("roles", ("quasi_identifiers",)), ("privacy", ()), ("output", ("path",))):
        table = tables.get(name)
        for key in needed:
            if key not in table:
                raise JobError(f"[{name}] needs {key}.")
        if not table:
            raise JobError(f"the table [{name}] is missing or empty.")
    roles = {"unlisted": "error", **tables.get("roles")}
    quasi = extended(roles["quasi_identifiers"], roles.get("within", ()))
    output = tables.get("output")
    target = folder / output["path"]
    if target.suffix.lower() != ".parquet":
        raise JobError(f"[output] path must end in .parquet: a release is written as Parquet. Got {output['path']!r}.")
    source, patterns = _source(tables.get("source"), folder)
    for pattern in patterns:
        if covers(pattern, target):
            raise JobError("[output] path lies among the files of [source]: the next run would read its own release.")
    return Job(
        path=path,
        source=source,
        roles=roles,
        hierarchies=_hierarchies(tables, [*quasi, *roles.get("sensitive", [])]),
        privacy=_privacy(tables.get("privacy"), folder),
        algorithm=_algorithm(tables.raw("algorithm")),
        output=target,
        steering=_steering(tables.get("steering"), quasi),
        form=_form_of(output, quasi),
        reports=tuple(dict.fromkeys(output.get("report", REPORTS))),
        overwrite=output.get("overwrite", True),
        limits=_limits(tables.get("limits"), folder),
    )


def _source(table: Mapping[str, Any], folder: Path) -> tuple[Source, list[str]]:
    """Return the source and the paths or patterns of the files that it reads."""
    from duckanon.source import Source

    if ("path" in table) == ("database" in table):
        raise JobError("[source] needs either path or database.")
    if "path" in table:
        if "table" in table or "query" in table:
            raise JobError("[source] table and query go with database, not with path.")
        given = [table["path"]] if isinstance(table["path"], str) else table["path"]
        paths = [_below(folder, p) for p in given]
        return Source.file(*paths, format=table.get("format"), hive=table.get("hive")), paths
    if ("table" in table) == ("query" in table):
        raise JobError("[source] database needs either table or query.")
    for key in ("format", "hive"):
        if key in table:
            raise JobError(f"[source] {key} goes with path, not with database.")
    database = folder / table["database"]
    return Source.database(database, table=table.get("table"), query=table.get("query")), []


def _below(folder: Path, path: str) -> str:
    if is_remote(path) or Path(path).is_absolute():
        return path
    # Brackets in the name of the job's own folder are no pattern.
    base = glob.escape(str(folder)) if glob.has_magic(path) or glob.has_magic(str(folder)) else str(folder)
    return str(Path(base) / path)


def _hierarchies(tables: Tables, columns: Sequence[str]) -> dict[str, Any]:
    lowered = {c.lower() for c in columns}
    table = tables.raw("hierarchies")
    for name in table:
        if name.lower() not in lowered:
            hint = did_you_mean(name, columns)
            raise JobError(f"[hierarchies] {name!r} is no quasi-identifier of [roles] and not sensitive.{hint}")
    return tables.get("hierarchies", dict.fromkeys(table, RULE))


def _privacy(table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Check the promise here already: an error then names the file and the table."""
    from duckanon.promise import Promise
    from duckanon.source import Source

    limit = table.get("suppression_limit", 0.0)
    if not 0 <= limit <= 1:
        raise JobError(f"[privacy] suppression_limit is a fraction between 0 and 1. Got {limit}.")
    found = dict(table)
    try:
        promise = Promise.of(k=table.get("k"), l=table.get("l"), t=table.get("t"), models=table.get("models", ()))
        promise.require_population("population" in table)
    except (ParameterError, UnsupportedError) as error:
        raise JobError(f"[privacy] {error}") from None
    if "population" in table:
        given = [table["population"]] if isinstance(table["population"], str) else table["population"]
        found["population"] = Source.file(*(_below(folder, p) for p in given))
    return found


def _algorithm(table: dict[str, Any]) -> Algorithm | None:
    """Return the algorithm that a job names; None leaves the choice to the plan."""
    from duckanon.algorithms.base import algorithms

    if not table:
        return None
    name = table.pop("name", "mondrian")
    if not is_text(name):
        raise JobError(f"[algorithm] name must be a text. Got {kind_of(name)}.")
    try:
        return make_from(algorithms, name, [], table)
    except DuckanonError as error:
        raise JobError(f"[algorithm] {error}") from None
    except (TypeError, ValueError):
        raise JobError(f"[algorithm] {name} cannot take these parameters: {', '.join(table)}.") from None


def _steering(table: dict[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    from duckanon.steering import Steering

    try:
        Steering.of(columns, **table)
    except ParameterError as error:
        raise JobError(f"[steering] {error}") from None
    return table


def _form_of(table: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """Return the argument ``output``; what the types of the columns allow shows when the source is opened."""
    from duckanon.outputs import named_kinds

    if "form" not in table:
        return {}
    try:
        named_kinds(table["form"], columns)
    except ParameterError as error:
        raise JobError(f"[output] form: {error}") from None
    return {"output": table["form"]}


def _limits(table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "memory" in table:
        found["memory_limit"] = table["memory"].strip()
    if "threads" in table:
        found["threads"] = table["threads"]
    if "temp_directory" in table:
        spill = folder / table["temp_directory"]
        if not spill.is_dir():
            raise JobError("[limits] temp_directory is not a folder.")
        found["temp_directory"] = spill
    return found
