"""A job: source, roles, promise and target in a TOML file, so that a release can be made again every night."""

from __future__ import annotations

import glob
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon import errors
from duckanon.errors import ConfigError, DuckanonError, JobError, ParameterError, UnsupportedError, did_you_mean
from duckanon.paths import covers, is_remote
from duckanon.registry import make_from

if TYPE_CHECKING:
    from duckanon.algorithms.base import Algorithm
    from duckanon.engine.base import Engine
    from duckanon.plan import Plan
    from duckanon.progress import Listener
    from duckanon.source import Source

Check = Callable[[Any], str | None]
"""Returns what a value must be, or None if it is that."""

_REPORTS = ("json", "md")
_MEMORY = re.compile(r"\d+(\.\d+)?\s*([KMGT]i?B|B|%)", re.IGNORECASE)

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
    algorithm: Algorithm
    output: Path
    steering: dict[str, Any] = field(default_factory=dict)
    reports: tuple[str, ...] = _REPORTS
    overwrite: bool = True
    limits: dict[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder of the job file, which its relative paths start from."""
        return self.path.parent

    def anonymize_arguments(self) -> dict[str, Any]:
        """Return the keyword arguments that ``anonymize`` and ``Plan.make`` have in common."""
        named = {"hierarchies": self.hierarchies, "algorithm": self.algorithm}
        return {**self.roles, **self.privacy, **self.steering, **named}

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
        return _job(_Tables(_read(file)), file.absolute())
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


def _must(be: str, test: Callable[[Any], bool]) -> Check:
    return lambda value: None if test(value) else be


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(_is_text(v) for v in value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _one_of(*allowed: str) -> Check:
    return _must(" or ".join(repr(a) for a in allowed), lambda value: value in allowed)


_text = _must("a text", _is_text)
_texts = _must("a list of texts", _are_texts)
_paths = _must("a path or a list of paths", lambda v: _is_text(v) or (_are_texts(v) and len(v) > 0))
_flag = _must("true or false", lambda v: isinstance(v, bool))
_number = _must("a number", _is_number)
_whole = _must("a whole number of at least 1", lambda v: _is_number(v) and isinstance(v, int) and v >= 1)
_memory = _must("a size such as '2GB'", lambda v: isinstance(v, str) and bool(_MEMORY.fullmatch(v.strip())))
_rule = _must("a name, a file or a table with a rule", lambda v: _is_text(v) or isinstance(v, dict))
_models = _must(
    "a list of texts such as 'l_diversity(l=3)' or tables such as {model = 'l_diversity', l = 3}",
    lambda v: isinstance(v, list) and all(_is_text(m) or isinstance(m, dict) for m in v),
)
_table = _must("a table of quasi-identifiers and numbers", lambda v: isinstance(v, dict))
_reports = _must("a list of 'json' and 'md'", lambda v: _are_texts(v) and set(v) <= set(_REPORTS))

_KEYS: dict[str, dict[str, Check]] = {
    "source": {"path": _paths, "format": _one_of("parquet", "csv", "json"), "hive": _flag}
    | {"database": _text, "table": _text, "query": _text},
    "roles": {"quasi_identifiers": _texts, "sensitive": _texts, "insensitive": _texts, "identifiers": _texts}
    | {"entity_key": _text, "unlisted": _one_of("error", "drop")},
    "hierarchies": {},
    "privacy": {"k": _whole, "l": _whole, "t": _number, "models": _models, "population": _paths}
    | {"suppression_limit": _number, "on_unknown": _one_of("error", "top")},
    "algorithm": {},
    "steering": {"levels": _table, "min_levels": _table, "max_levels": _table, "weights": _table, "iterative": _flag},
    "output": {"path": _text, "report": _reports, "overwrite": _flag},
    "limits": {"memory": _memory, "threads": _whole, "temp_directory": _text},
}
"""Every table and key of a job file. The keys of hierarchies and algorithm depend on other tables."""


class _Tables:
    """The tables of a job file, each handed out only after its keys and types were checked."""

    def __init__(self, content: dict[str, Any]) -> None:
        for name, table in content.items():
            if name not in _KEYS:
                raise JobError(f"unknown table [{name}].{did_you_mean(name, _KEYS)} Tables: {', '.join(_KEYS)}.")
            if not isinstance(table, dict):
                raise JobError(f"[{name}] must be a table. Got {_kind(table)}.")
        self._content = content

    def get(self, name: str, keys: Mapping[str, Check] | None = None) -> dict[str, Any]:
        """Return a table whose keys are all known and of the right type."""
        table: dict[str, Any] = self._content.get(name, {})
        known = _KEYS[name] if keys is None else keys
        for key, value in table.items():
            if key not in known:
                raise JobError(f"[{name}] has no key {key!r}.{did_you_mean(key, known)} Keys: {', '.join(known)}.")
            wanted = known[key](value)
            if wanted is not None:
                raise JobError(f"[{name}] {key} must be {wanted}. Got {_kind(value)}.")
        return table

    def raw(self, name: str) -> dict[str, Any]:
        """Return a table as it stands."""
        return dict(self._content.get(name, {}))


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | str):
        return repr(value)
    return "a table" if isinstance(value, dict) else f"a {type(value).__name__}"


def _job(tables: _Tables, path: Path) -> Job:
    folder = path.parent
    for name, needed in (("source", ()), ("roles", ("quasi_identifiers",)), ("privacy", ()), ("output", ("path",))):
        table = tables.get(name)
        for key in needed:
            if key not in table:
                raise JobError(f"[{name}] needs {key}.")
        if not table:
            raise JobError(f"the table [{name}] is missing or empty.")
    roles = {"unlisted": "error", **tables.get("roles")}
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
        hierarchies=_hierarchies(tables, [*roles["quasi_identifiers"], *roles.get("sensitive", [])]),
        privacy=_privacy(tables.get("privacy"), folder),
        algorithm=_algorithm(tables.raw("algorithm")),
        output=target,
        steering=_steering(tables.get("steering"), roles["quasi_identifiers"]),
        reports=tuple(dict.fromkeys(output.get("report", _REPORTS))),
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


def _hierarchies(tables: _Tables, columns: Sequence[str]) -> dict[str, Any]:
    lowered = {c.lower() for c in columns}
    table = tables.raw("hierarchies")
    for name in table:
        if name.lower() not in lowered:
            hint = did_you_mean(name, columns)
            raise JobError(f"[hierarchies] {name!r} is no quasi-identifier of [roles] and not sensitive.{hint}")
    return tables.get("hierarchies", dict.fromkeys(table, _rule))


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


def _algorithm(table: dict[str, Any]) -> Algorithm:
    from duckanon.algorithms.base import algorithms

    name = table.pop("name", "datafly")
    if not _is_text(name):
        raise JobError(f"[algorithm] name must be a text. Got {_kind(name)}.")
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
