"""Read a job file: errors name table and key, before any data is read."""

from __future__ import annotations

import glob
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import UNSET

from duckanon.engine.process import is_remote
from duckanon.errors import ConfigError, DuckanonError, JobError, ParameterError, UnsupportedError, did_you_mean
from duckanon.hierarchy import AUTO
from duckanon.io.paths import covers
from duckanon.jobs import keys
from duckanon.jobs.job import Job, JobTable
from duckanon.jobs.placeholders import dated, from_environment
from duckanon.jobs.separate_paths import require_apart
from duckanon.jobs.targets import target
from duckanon.registry import make_from

if TYPE_CHECKING:
    from duckanon.algorithms.base import Algorithm
    from duckanon.io.sinks import Signer
    from duckanon.io.source import Source

SIGNING_KEY = "DUCKANON_SIGNING_KEY"
"""The environment variable that names the signing key of a job which names none."""
_OF_PATHS, _OF_DATABASES = ("format", "hive"), ("table", "query")
_K = TypeVar("_K", bound=keys.Keys)


def load_job(path: str | Path, day: date | None = None) -> Job:
    """Read and check a job file; whatever is wrong in it is a JobError that names the table and the key.

    ``day`` is what stands for ``{date}`` in paths: by default today, in UTC.
    """
    file = Path(path)
    try:
        return _job(_read(file), file.absolute(), day or datetime.now(UTC).date())
    except (ConfigError, UnsupportedError) as error:
        raise JobError(f"{file.name}: {error}") from None
    except RecursionError:
        pass
    # Raised outside the handler: thousands of frames would hang on it.
    raise JobError(f"{file.name}: tables or lists are nested too deeply.")


def state_folders(path: str | Path) -> dict[str, Path]:
    """Return the folder of the state of each table of a job, by name.

    Only the names in the file are read: a history can be looked at without the secrets that a run needs.
    """
    file = Path(path)
    try:
        content = _read(file)
        entries, nights = content.get("tables"), content.get("nights", {})
        named = entries if isinstance(entries, list) else [{"name": file.stem}]
        names = [str(one["name"]) for one in named if isinstance(one, dict) and _is_file_name(one.get("name"))]
        state = nights.get("state") if isinstance(nights, dict) else None
        folder = f"{file.stem}.state" if state is None else str(from_environment("[nights] state", state))
    except ConfigError as error:
        raise JobError(f"{file.name}: {error}") from None
    return {name: file.absolute().parent / folder / name for name in names}


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


def _job(content: dict[str, Any], path: Path, day: date) -> Job:
    entries = content.pop("tables", None)
    keys.require_tables(keys.JobKeys, content)
    folder, name = path.parent, path.stem
    limits = keys.read(keys.Limits, "limits", content.get("limits", {}))
    nights = _filled(keys.read(keys.Nights, "nights", content.get("nights", {})), "nights", day, "state")
    operations = _filled(
        keys.read(keys.Operations, "operations", content.get("operations", {})),
        "operations",
        day,
        *("metrics", "lineage", "signing_key"),
    )
    tables = [_table(content, name, folder, day)] if entries is None else _several(entries, content, folder, day)
    state = folder / (f"{name}.state" if nights.state is UNSET else nights.state)
    for table in tables:
        # The state has Parquet files of its own.
        persons = state / table.name / "runs" / "run" / "persons.parquet"
        if table.source.kind == "file" and any(covers(pattern, persons) for pattern in table.source.target):
            raise JobError("[source] path includes the state of the job: name another folder with [nights] state.")
    signer = _signer(operations, folder)
    if signer is not None:
        tables = [_signing(table, signer) for table in tables]
    job = Job(
        path=path,
        tables=tuple(tables),
        day=day,
        limits=_limits(limits, folder),
        seconds=None if limits.time is UNSET else keys.seconds_of(limits.time),
        state=state,
        recoding=nights.recoding,
        intersection=None if nights.intersection is UNSET else nights.intersection,
        metrics=None if operations.metrics is UNSET else folder / operations.metrics,
        lineage=None if operations.lineage is UNSET else folder / operations.lineage,
        signer=signer,
    )
    require_apart(job)
    return job


def _signer(operations: keys.Operations, folder: Path) -> Signer | None:
    """Return who signs manifests: the key that the job names, else that of the environment."""
    from duckanon.io.sinks import Signer

    if operations.signing_key is not UNSET:
        return Signer(folder / operations.signing_key)
    named = os.environ.get(SIGNING_KEY)
    return Signer(Path(named).absolute()) if named else None


def _signing(table: JobTable, signer: Signer) -> JobTable:
    """Return a table whose sink signs; a key among what is published is a JobError."""
    sink = table.target.sink
    folders = {path.parent for path in sink.paths if path.name.endswith("manifest.json")}
    for folder in (*folders, *([sink.stage] if sink.stage is not None else [])):
        signer.require_outside(folder)
    signing: Any = replace(sink, signer=signer)  # type: ignore[type-var]
    return replace(table, target=replace(table.target, sink=signing))


def _several(entries: Any, content: Mapping[str, Any], folder: Path, day: date) -> list[JobTable]:
    """Return the tables of a job that has several: each has what is shared, overridden by its own keys."""
    if not isinstance(entries, list) or not entries or not all(isinstance(e, dict) for e in entries):
        raise JobError("[[tables]] must be a list of tables, each with a name.")
    shared = {name: table for name, table in content.items() if name in keys.SHARED}
    tables: list[JobTable] = []
    used: set[str] = set()
    for number, entry in enumerate(entries, 1):
        own = dict(entry)
        name = own.pop("name", None)
        if (
            not isinstance(name, str)
            or not name.strip()
            or not name.isprintable()
            or name.startswith(".")
            or set(name) & set("/\\")
        ):
            raise JobError(f"[[tables]] number {number} needs a name, which is part of file names.")
        if name.lower() in {table.name.lower() for table in tables}:
            raise JobError(f"[[tables]] has {name!r} twice.")
        try:
            keys.require_tables(keys.TableEntry, own)
            table = _table(_merged(shared, own, used), name, folder, day)
        except (ConfigError, UnsupportedError) as error:
            raise JobError(f"[[tables]] {name}: {error}") from None
        if any(table.target.collides(other.target) for other in tables):
            raise JobError(f"[[tables]] {name}: another table has the same [output].")
        tables.append(table)
    unused = sorted(set(shared.get("hierarchies", {})) - used) if shared.get("hierarchies") != AUTO else []
    if unused:
        raise JobError(f"[hierarchies] {unused[0]!r} is no quasi-identifier of any table and not sensitive.")
    return tables


def _is_file_name(name: Any) -> bool:
    if not isinstance(name, str) or not name.strip():
        return False
    return name.isprintable() and not name.startswith(".") and not set(name) & set("/\\")


def _merged(shared: Mapping[str, Any], own: Mapping[str, Any], used: set[str]) -> dict[str, Any]:
    """Merge a table's own keys into the shared ones; of shared hierarchies it gets those of its columns."""
    merged = {}
    for name in keys.SHARED:
        mine = own.get(name, {})
        # The parameters of one algorithm are not those of another.
        if name != "hierarchies":
            merged[name] = mine if name == "algorithm" and mine else {**shared.get(name, {}), **mine}
    listed = [merged["roles"].get(role, []) for role in ("quasi_identifiers", "within", "sensitive")]
    columns = {str(c).lower() for some in listed if isinstance(some, list) for c in some}
    given, theirs = own.get("hierarchies", {}), shared.get("hierarchies", {})
    if theirs == AUTO:
        quasi = [c for some in listed[:2] if isinstance(some, list) for c in some]
        theirs = dict.fromkeys(map(str, quasi), AUTO)
    fitting = [name for name in theirs if name.lower() in columns]
    used.update(fitting)
    merged["hierarchies"] = given if given == AUTO else {**{n: theirs[n] for n in fitting}, **given}
    return merged


def _table(content: Mapping[str, Any], name: str, folder: Path, day: date) -> JobTable:
    from duckanon.plan.plan import extended

    source = _needed(keys.Source, "source", content)
    roles = _needed(keys.Roles, "roles", content)
    if roles.quasi_identifiers is UNSET:
        raise JobError("[roles] needs quasi_identifiers.")
    privacy = _needed(keys.Privacy, "privacy", content)
    output = _needed(keys.Output, "output", content)
    quasi = extended(roles.quasi_identifiers, () if roles.within is UNSET else roles.within)
    sensitive = [] if roles.sensitive is UNSET else roles.sensitive
    rows = _source(_filled(source, "source", day, "path", "database"), folder)
    filled = _filled(output, "output", day, "path", "database", "reports_in")
    parameters = {
        **keys.values_of(roles),
        **_privacy(privacy, folder),
        **_steering(keys.read(keys.Steering, "steering", content.get("steering", {})), quasi),
        **_form(output, quasi),
        "hierarchies": _hierarchies(content.get("hierarchies", {}), quasi, [*quasi, *sensitive]),
        "algorithm": _algorithm(dict(content.get("algorithm", {}))),
    }
    return JobTable(
        name=name,
        folder=folder,
        source=rows,
        parameters=parameters,
        target=target(filled, output, name, folder, rows),
        reports=tuple(dict.fromkeys(output.report)),
        overwrite=output.overwrite,
        expect=_expect(keys.read(keys.Expect, "expect", content.get("expect", {})), sensitive),
    )


def _needed(kind: type[_K], name: str, content: Mapping[str, Any]) -> _K:
    if not content.get(name):
        raise JobError(f"the table [{name}] is missing or empty.")
    return keys.read(kind, name, content[name])


def _filled(given: _K, table: str, day: date, *paths: str) -> _K:
    """Fill in variables of the environment, and the date in paths."""
    filled = {}
    for key, value in keys.values_of(given).items():
        where = f"[{table}] {key}"
        # A query is the database's: a dollar may mean something there.
        filled[key] = value if key == "query" else from_environment(where, value)
        if key in paths:
            filled[key] = dated(where, filled[key], day)
    return msgspec.structs.replace(given, **filled)


def _source(table: keys.Source, folder: Path) -> Source:
    from duckanon.io.source import Source

    asked = keys.values_of(table)
    kinds = [kind for kind in ("path", "database", "postgres") if kind in asked]
    if len(kinds) != 1:
        raise JobError("[source] needs one of path, database and postgres.")
    (kind,) = kinds
    if table.path is not UNSET:
        if any(key in asked for key in _OF_DATABASES):
            raise JobError("[source] table and query go with database or postgres, not with path.")
        return Source.file(*_below(folder, table.path), format=asked.get("format"), hive=asked.get("hive"))
    if ("table" in asked) == ("query" in asked):
        raise JobError(f"[source] {kind} needs either table or query.")
    for key in _OF_PATHS:
        if key in asked:
            raise JobError(f"[source] {key} goes with path, not with {kind}.")
    named = {"table": asked.get("table"), "query": asked.get("query")}
    if table.postgres is not UNSET:
        return Source.postgres(table.postgres, **named)
    return Source.database(folder / asked["database"], **named)


def _below(folder: Path, paths: str | list[str]) -> list[str]:
    """Return paths that start from the folder of the job file."""
    found = []
    for path in [paths] if isinstance(paths, str) else paths:
        if is_remote(path) or Path(path).is_absolute():
            found.append(path)
            continue
        # Brackets in the name of the job's own folder are no pattern.
        base = glob.escape(str(folder)) if glob.has_magic(path) or glob.has_magic(str(folder)) else str(folder)
        found.append(str(Path(base) / path))
    return found


def _hierarchies(rules: Mapping[str, Any] | str, quasi: Sequence[str], columns: Sequence[str]) -> dict[str, Any]:
    if isinstance(rules, str):
        return dict.fromkeys(quasi, rules)
    lowered = {c.lower() for c in columns}
    for name, rule in rules.items():
        if name.lower() not in lowered:
            hint = did_you_mean(name, columns)
            raise JobError(f"[hierarchies] {name!r} is no quasi-identifier of [roles] and not sensitive.{hint}")
        keys.require(f"[hierarchies] {name}", rule, keys.Rule)
    return dict(rules)


def _privacy(table: keys.Privacy, folder: Path) -> dict[str, Any]:
    """Check the requirements, so that an error names the file and the table."""
    from duckanon.io.source import Source
    from duckanon.plan.plan import Requirements

    asked = keys.values_of(table)
    try:
        parameters = {key: asked[key] for key in ("k", "l", "t", "models") if key in asked}
        requirements = Requirements.of(**parameters)
        requirements.require_population("population" in asked)
    except (ParameterError, UnsupportedError) as error:
        raise JobError(f"[privacy] {error}") from None
    if table.population is not UNSET:
        asked["population"] = Source.file(*_below(folder, table.population))
    return asked


def _algorithm(table: dict[str, Any]) -> Algorithm | None:
    """Return the algorithm that a job names; None leaves the choice to the plan."""
    from duckanon.algorithms.base import algorithms

    if not table:
        return None
    name = table.pop("name", "mondrian")
    keys.require("[algorithm] name", name, keys.Text)
    try:
        return make_from(algorithms, name, [], table)
    except DuckanonError as error:
        raise JobError(f"[algorithm] {error}") from None
    except (TypeError, ValueError):
        raise JobError(f"[algorithm] {name} cannot take these parameters: {', '.join(table)}.") from None


def _steering(table: keys.Steering, columns: Sequence[str]) -> dict[str, Any]:
    from duckanon.plan.plan import SearchOptions

    asked = keys.values_of(table)
    try:
        SearchOptions.of(columns, **asked)
    except ParameterError as error:
        raise JobError(f"[steering] {error}") from None
    return asked


def _form(table: keys.Output, columns: Sequence[str]) -> dict[str, Any]:
    """Return the argument ``output``; what the types of the columns allow is checked when the source is opened."""
    from duckanon.plan.plan import named_kinds

    if table.form is UNSET:
        return {}
    try:
        named_kinds(table.form, columns)
    except ParameterError as error:
        raise JobError(f"[output] form: {error}") from None
    return {"output": table.form}


def _expect(table: keys.Expect, sensitive: Sequence[str]) -> keys.Expect:
    from duckanon.metrics.base import metrics

    if table.max_homogeneous is not UNSET:
        if not sensitive:
            raise JobError("[expect] max_homogeneous is about sensitive columns, and [roles] has none.")
        lowered = {name.lower() for name in sensitive}
        for name in table.max_homogeneous if isinstance(table.max_homogeneous, dict) else ():
            if name.lower() not in lowered:
                hint = did_you_mean(name, sensitive)
                raise JobError(f"[expect] max_homogeneous names {name!r}, which is no sensitive column.{hint}")
    for name in {} if table.max_loss is UNSET else table.max_loss:
        if name not in metrics:
            raise JobError(f"[expect] max_loss names {name!r}, which is no metric.{did_you_mean(name, metrics)}")
    if table.min_rows is not UNSET and table.max_rows is not UNSET and table.min_rows > table.max_rows:
        raise JobError("[expect] min_rows is larger than max_rows.")
    if table.rows_may_grow is not UNSET and table.rows_may_grow < 0:
        raise JobError("[expect] rows_may_grow must not be negative.")
    return table


def _limits(table: keys.Limits, folder: Path) -> dict[str, Any]:
    """Return the limits of the database."""
    limits: dict[str, Any] = {}
    if table.memory is not UNSET:
        limits["memory"] = table.memory.strip()
    if table.threads is not UNSET:
        limits["threads"] = table.threads
    if table.temp_directory is not UNSET:
        limits["temp_directory"] = folder / table.temp_directory
        if not limits["temp_directory"].is_dir():
            raise JobError("[limits] temp_directory is not a folder.")
    return limits
