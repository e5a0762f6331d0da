"""Read a job file and check all that can be checked before any data is touched."""

from __future__ import annotations

import glob
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.engine.permitted_paths import is_remote
from duckanon.errors import ConfigError, DuckanonError, JobError, ParameterError, UnsupportedError, did_you_mean
from duckanon.io.paths import covers
from duckanon.jobs.apart import require_apart
from duckanon.jobs.base import Expect, Job, JobTable
from duckanon.jobs.keys import KEYS, MANY, PER_TABLE, RULE, Tables, is_text, kind_of, seconds_of
from duckanon.jobs.targets import target
from duckanon.jobs.texts import dated, from_environment
from duckanon.registry import make_from

if TYPE_CHECKING:
    from duckanon.algorithms.base import Algorithm
    from duckanon.io.sinks import Signer
    from duckanon.io.source import Source

SIGNING_KEY = "DUCKANON_SIGNING_KEY"
"""The variable of the environment that names the signing key of a job which names none."""
REPORTS = ("json", "md", "html")
_NEEDED = {"source": (), "roles": ("quasi_identifiers",), "privacy": (), "output": ()}
_OF_PATHS, _OF_DATABASES = ("format", "hive"), ("table", "query")
_KINDS = ("path", "database", "postgres")


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
    several = content.pop(MANY, None)
    shared = Tables(content)
    folder, name = path.parent, path.stem
    limits = shared.get("limits")
    nights, operations = (
        _filled(t, shared.get(t), ("state", "metrics", "lineage", "signing_key"), day) for t in ("nights", "operations")
    )
    tables = [_table(shared, name, folder, day)] if several is None else _several(several, content, folder, day)
    state = folder / nights.get("state", f"{name}.state")
    for table in tables:
        # The state has Parquet files of its own.
        kept = state / table.name / "runs" / "run" / "persons.parquet"
        if table.source.kind == "file" and any(covers(pattern, kept) for pattern in table.source.target):
            raise JobError("[source] path takes in the state of the job: name another folder with [nights] state.")
    signer = _signer(operations, folder)
    if signer is not None:
        tables = [_signing(table, signer) for table in tables]
    job = Job(
        path=path,
        tables=tuple(tables),
        day=day,
        limits=_limits(limits, folder),
        seconds=seconds_of(limits["time"]) if "time" in limits else None,
        state=state,
        recoding=nights.get("recoding", "fresh"),
        intersection=nights.get("intersection"),
        metrics=folder / operations["metrics"] if "metrics" in operations else None,
        lineage=folder / operations["lineage"] if "lineage" in operations else None,
        signer=signer,
    )
    require_apart(job)
    return job


def _signer(operations: Mapping[str, Any], folder: Path) -> Signer | None:
    """Return who signs manifests: the key that the job names, else that of the environment."""
    from duckanon.io.sinks import Signer

    if "signing_key" in operations:
        return Signer(folder / operations["signing_key"])
    given = os.environ.get(SIGNING_KEY)
    return Signer(Path(given).absolute()) if given else None


def _signing(table: JobTable, signer: Signer) -> JobTable:
    """Return a table whose sink signs; a key among what is published is a JobError."""
    sink = table.target.sink
    folders = {path.parent for path in sink.paths if path.name.endswith("manifest.json")}
    for folder in (*folders, *([sink.stage] if sink.stage is not None else [])):
        signer.require_outside(folder)
    signing: Any = replace(sink, signer=signer)  # type: ignore[type-var]
    return replace(table, target=replace(table.target, sink=signing))


def _several(entries: Any, content: Mapping[str, Any], folder: Path, day: date) -> list[JobTable]:
    """Return the tables of a job that has several: each has what is shared, and its own on top of it."""
    if not isinstance(entries, list) or not entries or not all(isinstance(e, dict) for e in entries):
        raise JobError("[[tables]] must be a list of tables, each with a name.")
    shared = {name: table for name, table in content.items() if name in PER_TABLE}
    found: list[JobTable] = []
    used: set[str] = set()
    for number, entry in enumerate(entries, 1):
        own = dict(entry)
        name = own.pop("name", None)
        if not is_text(name) or not name.isprintable() or name.startswith(".") or set(name) & set("/\\"):
            raise JobError(f"[[tables]] number {number} needs a name, which is part of file names.")
        if name.lower() in {table.name.lower() for table in found}:
            raise JobError(f"[[tables]] has {name!r} twice.")
        try:
            table = _table(_merged(shared, Tables(own, {t: KEYS[t] for t in PER_TABLE}), used), name, folder, day)
        except (ConfigError, UnsupportedError) as error:
            raise JobError(f"[[tables]] {name}: {error}") from None
        if any(table.target.collides(other.target) for other in found):
            raise JobError(f"[[tables]] {name}: another table has the same [output].")
        found.append(table)
    unused = sorted(set(shared.get("hierarchies", {})) - used)
    if unused:
        raise JobError(f"[hierarchies] {unused[0]!r} is no quasi-identifier of any table and not sensitive.")
    return found


def _merged(shared: Mapping[str, Any], own: Tables, used: set[str]) -> Tables:
    """Lay a table's own keys over those that are shared; of shared hierarchies it takes those of its own columns."""
    merged = {}
    for name in PER_TABLE:
        mine = own.raw(name)
        # An algorithm's keys are those of one algorithm: another one has others.
        merged[name] = mine if name == "algorithm" and mine else {**shared.get(name, {}), **mine}
    roles = merged["roles"]
    known = [roles.get(r, []) for r in ("quasi_identifiers", "within", "sensitive")]
    columns = {str(c).lower() for some in known if isinstance(some, list) for c in some}
    fitting = [name for name in shared.get("hierarchies", {}) if name.lower() in columns]
    used.update(fitting)
    merged["hierarchies"] = {**{n: shared["hierarchies"][n] for n in fitting}, **own.raw("hierarchies")}
    return Tables({name: table for name, table in merged.items() if table})


def _table(tables: Tables, name: str, folder: Path, day: date) -> JobTable:
    from duckanon.plan.publication import extended

    for table, needed in _NEEDED.items():
        found = tables.get(table)
        for key in needed:
            if key not in found:
                raise JobError(f"[{table}] needs {key}.")
        if not found:
            raise JobError(f"the table [{table}] is missing or empty.")
    roles = {"unlisted": "error", **tables.get("roles")}
    quasi = extended(roles["quasi_identifiers"], roles.get("within", ()))
    output = tables.get("output")
    source = _source(_filled("source", tables.get("source"), ("path", "database"), day), folder)
    filled = _filled("output", output, ("path", "database", "reports_in"), day)
    return JobTable(
        name=name,
        folder=folder,
        source=source,
        roles=roles,
        hierarchies=_hierarchies(tables, [*quasi, *roles.get("sensitive", [])]),
        privacy=_privacy(tables.get("privacy"), folder),
        algorithm=_algorithm(tables.raw("algorithm")),
        target=target(filled, output, name, folder, source),
        steering=_steering(tables.get("steering"), quasi),
        form=_form_of(output, quasi),
        reports=tuple(dict.fromkeys(output.get("report", REPORTS))),
        overwrite=output.get("overwrite", True),
        expect=_expect(tables.get("expect")),
    )


def _filled(table: str, content: Mapping[str, Any], paths: Sequence[str], day: date) -> dict[str, Any]:
    """Fill in variables of the environment, and the date in paths."""
    found = {}
    for key, value in content.items():
        where = f"[{table}] {key}"
        # A query is the database's: a dollar may mean something there.
        filled = value if key == "query" else from_environment(where, value)
        found[key] = dated(where, filled, day) if key in paths else filled
    return found


def _source(table: Mapping[str, Any], folder: Path) -> Source:
    from duckanon.io.source import Source

    kinds = [kind for kind in _KINDS if kind in table]
    if len(kinds) != 1:
        raise JobError("[source] needs one of path, database and postgres.")
    (kind,) = kinds
    if kind == "path":
        for key in _OF_DATABASES:
            if key in table:
                raise JobError("[source] table and query go with database or postgres, not with path.")
        given = [table["path"]] if isinstance(table["path"], str) else table["path"]
        return Source.file(*(_below(folder, p) for p in given), format=table.get("format"), hive=table.get("hive"))
    if ("table" in table) == ("query" in table):
        raise JobError(f"[source] {kind} needs either table or query.")
    for key in _OF_PATHS:
        if key in table:
            raise JobError(f"[source] {key} goes with path, not with {kind}.")
    named = {"table": table.get("table"), "query": table.get("query")}
    if kind == "postgres":
        return Source.postgres(table["postgres"], **named)
    return Source.database(folder / table["database"], **named)


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
    from duckanon.io.source import Source
    from duckanon.plan.requirements import Requirements

    limit = table.get("suppression_limit", 0.0)
    if not 0 <= limit <= 1:
        raise JobError(f"[privacy] suppression_limit is a fraction between 0 and 1. Got {limit}.")
    found = dict(table)
    try:
        promise = Requirements.of(k=table.get("k"), l=table.get("l"), t=table.get("t"), models=table.get("models", ()))
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
    from duckanon.plan.search_options import SearchOptions

    try:
        SearchOptions.of(columns, **table)
    except ParameterError as error:
        raise JobError(f"[steering] {error}") from None
    return table


def _form_of(table: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """Return the argument ``output``; what the types of the columns allow shows when the source is opened."""
    from duckanon.plan.publication import named_kinds

    if "form" not in table:
        return {}
    try:
        named_kinds(table["form"], columns)
    except ParameterError as error:
        raise JobError(f"[output] form: {error}") from None
    return {"output": table["form"]}


def _expect(table: dict[str, Any]) -> Expect:
    from duckanon.metrics.base import metrics

    for name in table.get("max_loss", {}):
        if name not in metrics:
            raise JobError(f"[expect] max_loss names {name!r}, which is no metric.{did_you_mean(name, metrics)}")
    least, most = table.get("min_rows"), table.get("max_rows")
    if least is not None and most is not None and least > most:
        raise JobError("[expect] min_rows is larger than max_rows.")
    if table.get("rows_may_grow", 0) < 0:
        raise JobError("[expect] rows_may_grow must not be negative.")
    return Expect(**table)


def _limits(table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "memory" in table:
        found["memory"] = table["memory"].strip()
    if "threads" in table:
        found["threads"] = table["threads"]
    if "temp_directory" in table:
        spill = folder / table["temp_directory"]
        if not spill.is_dir():
            raise JobError("[limits] temp_directory is not a folder.")
        found["temp_directory"] = spill
    return found
