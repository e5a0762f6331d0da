"""Verify: an export checked again from its manifest and its files alone, without the source.

Two questions: are the files as they were published, and does what they hold keep the promise? Not every promise can be
checked from the files: t-closeness compares with the source, k-map with a population, and persons cannot be counted
where their key was never published. Such a promise is said to be "not checkable", with the reason, never to hold.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.errors import DataError, DuckanonError, EngineError, ParameterError
from duckanon.gate import check_models, count_classes, count_rows, count_values, sensitive_of
from duckanon.models.base import CheckResult, Model, models
from duckanon.plan import open_engine
from duckanon.registry import make_from
from duckanon.sink.commit import pending_path, recover, unfinished
from duckanon.sink.content import fingerprint
from duckanon.sink.disk import locked, os_errors
from duckanon.sink.files import csv_rows
from duckanon.sink.folder import part_rows
from duckanon.sink.manifest import (
    FOLDER_MANIFEST,
    PARTS,
    manifest_path,
    read_manifest,
    release_entry,
    verify_files,
)
from duckanon.sink.tables import TableReports, open_database, run_in_comment, table_comment_in, table_rows
from duckanon.sqlgen.files import load
from duckanon.sqlgen.relations import Column, col, subquery

if TYPE_CHECKING:
    from duckanon.engine.base import Engine

HOLDS, BROKEN, NOT_CHECKABLE = "holds", "broken", "not checkable"
_MISSING = {
    "permuted_blocks": "which rows were permuted together cannot be seen in the release, and must not be",
    "domain_values": "it compares with the frequencies of the whole source, which is not published",
    "domain_nodes": "it measures along the hierarchy of a sensitive column, which is not published",
    "population_classes": "it compares with a population, which is not published",
}
_OLD = "the manifest is of an older version and does not list the published columns"
_OF_ROWS = {"l_diversity", "entropy_l_diversity", "recursive_c_l_diversity"}
"""Models that count rows with sensitive values, whatever the unit: exact where persons are promised, too."""


@dataclass(frozen=True)
class Rechecked:
    """What the files say of one promise: it ``holds``, is ``broken``, or is ``not checkable`` from the files alone."""

    model: str
    parameters: dict[str, Any]
    text: str
    state: str
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        return {k: getattr(self, k) for k in ("model", "parameters", "text", "state", "reason")}


@dataclass(frozen=True)
class VerifiedExport:
    """What was found of one export; without ``problems`` all is as published, and no promise was found broken."""

    manifest: Path
    files: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    promises: tuple[Rechecked, ...] = ()
    run: str | None = None
    created: str | None = None

    @property
    def intact(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        return {
            "manifest": str(self.manifest),
            "intact": self.intact,
            "run": self.run,
            "created": self.created,
            "files": list(self.files),
            "problems": list(self.problems),
            "promises": [p.to_dict() for p in self.promises],
        }


@dataclass(frozen=True)
class Verified:
    """What was found of all exports under a path."""

    exports: tuple[VerifiedExport, ...]

    @property
    def intact(self) -> bool:
        """Whether there is an export, and nothing is wrong with any."""
        return bool(self.exports) and all(e.intact for e in self.exports)

    @property
    def problems(self) -> list[str]:
        """What is wrong, each with the name of its manifest where there are several."""
        many = len(self.exports) > 1
        return [f"{e.manifest.name}: {p}" if many else p for e in self.exports for p in e.problems]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        return {"intact": self.intact, "exports": [e.to_dict() for e in self.exports]}


def verify_export(path: str | Path, *, database: str | Path | None = None, memory: str | None = None) -> Verified:
    """Check exports again from their manifests and files alone.

    What a killed run left half published is finished first, as the next run would do.

    Parameters
    ----------
    path : path
        A manifest, a data file, a folder of Parquet files, or a folder with exports in it (of which all are checked).
    database : path, optional
        The database file of a table, where it lies neither beside its manifest nor one folder above; of a table of
        PostgreSQL, the address of the server, which is shown nowhere.
    memory : str, optional
        What the process may use, such as "1GB"; the database gets at least the half of it, and spills.

    Returns
    -------
    Verified
        ``intact``, ``problems``, and for each export what was found of each promise. A path under which there is no
        manifest is a DataError.
    """
    place, given = Path(path), str(database) if database is not None else None
    pending = _recover(place, given)
    found = [_verified(m, given, memory) for m in _manifests(place)]
    return Verified(tuple(replace(e, problems=(*pending, *e.problems)) for e in found))


def _manifests(path: Path) -> list[Path]:
    if path.is_dir():
        own = [path / FOLDER_MANIFEST] if (path / FOLDER_MANIFEST).is_file() else []
        found = own or sorted([*path.glob("*.manifest.json"), *path.glob(f"*/{FOLDER_MANIFEST}")])
        if not found:
            raise DataError(f"There is no manifest in the folder {path.name!r}.")
        return found
    if path.name == FOLDER_MANIFEST or path.name.endswith(".manifest.json"):
        return [path]
    if not path.exists() and not manifest_path(path).exists():
        raise DataError(f"There is no {path.name!r}.")
    return [manifest_path(path)]


def _recover(path: Path, database: str | None) -> list[str]:
    """Finish what a killed run left; return what could not be finished, for want of the right to write."""
    if path.name == FOLDER_MANIFEST:
        path = path.parent
    folder = path if path.is_dir() and not (path / FOLDER_MANIFEST).exists() else path.parent
    problems = []
    for target in unfinished(folder):
        if folder != path and not _belongs(target, path):
            continue
        try:
            recover(target)
            if os.path.lexists(pending_path(target)):
                _settle(target, database)
        except EngineError as error:
            if "Another run" in str(error) or "in use" in str(error):
                raise
            problems.append("a run that was killed has to be finished first, by a user who may write here")
    return problems


def _settle(target: Path, database: str | None) -> None:
    """Finish what a killed run left of a table's manifest and reports: the database says which run it has."""
    reports = TableReports(target.parent, target.name)
    where = read_manifest(pending_path(target) / reports.manifest.name)["target"]

    def published() -> str | None:
        if where["kind"] == "postgres":
            from duckanon.postgres import published_comment

            return run_in_comment(published_comment(_server(where, database), where["table"], settled=True))
        engine = open_database(_database(reports.manifest, where, database))
        try:
            return run_in_comment(table_comment_in(engine, where["schema"], where["table"]))
        finally:
            engine.close()

    with os_errors(target), locked(target):
        reports.settled(published)


def _belongs(target: Path, path: Path) -> bool:
    return target.name == path.name or f"{target.stem}.manifest.json" == path.name or target.stem == path.stem


def _verified(manifest: Path, database: str | None, memory: str | None = None) -> VerifiedExport:
    try:
        content = read_manifest(manifest)
    except DataError as error:
        return VerifiedExport(manifest, problems=(str(error),))
    run, created = content.get("run"), content.get("created")
    found = VerifiedExport(
        manifest,
        files=tuple(f["name"] for f in content["files"]),
        run=run.get("run") if isinstance(run, dict) else None,
        created=created if isinstance(created, str) else None,
    )
    problems = verify_files(manifest)
    if problems:
        # What was changed is not worth a second look: nothing in it can be trusted.
        return replace(found, problems=tuple(problems))
    if not {"columns", "found", "promise"} <= content.keys():
        return replace(found, promises=tuple(_told(p, NOT_CHECKABLE, _OLD) for p in content.get("promise", [])))
    try:
        with _opened(manifest, content, database, memory) as (engine, rows):
            problems, promises = _rechecked(engine, rows, content)
    except DuckanonError as error:
        return replace(found, problems=(str(error),))
    except (KeyError, TypeError):
        return replace(found, problems=(f"{manifest.name!r} does not say what is needed to check it.",))
    return replace(found, problems=tuple(problems), promises=tuple(promises))


def _database(manifest: Path, where: Mapping[str, Any], given: str | None) -> Path:
    if given is not None:
        return Path(given)
    name = str(where["database"])
    places = [folder / name for folder in (manifest.parent, manifest.absolute().parent.parent)]
    found = next((p for p in places if Path(name).name == name and p.is_file()), None)
    if found is None:
        raise DataError(f"The database {Path(name).name!r} is not beside the manifest: say where it is.")
    return found


def _server(where: Mapping[str, Any], address: str | None) -> str:
    if address is None:
        raise DataError(f"The table {where['table']!r} is in PostgreSQL: give the address of the server as database.")
    return address


def _of_server(
    where: Mapping[str, Any], address: str | None, names: list[str], memory: str | None
) -> tuple[Engine, str | None, exp.Query]:
    """Read a table of PostgreSQL; return an engine that has its rows, and the run that its comment tells of."""
    from duckanon.postgres import published_comment
    from duckanon.source import Source

    address = _server(where, address)
    run = run_in_comment(published_comment(address, where["table"]))
    engine = open_engine(memory=memory)
    try:
        relation = Source.postgres(address, table=where["table"]).open(engine)
    except BaseException:
        engine.close()
        raise
    return engine, run, exp.select(*(col(c) for c in names)).from_(subquery(relation.query, "t"))


@contextlib.contextmanager
def _opened(
    manifest: Path, content: Mapping[str, Any], database: str | None, memory: str | None
) -> Iterator[tuple[Engine, exp.Query]]:
    """Give an engine and the rows of an export, read from where they were published."""
    columns, entry = _columns(content), release_entry(content)
    names = [c.name for c in columns]
    if entry is None:
        where = content["target"]
        if where.get("kind") == "postgres":
            engine, run, rows = _of_server(where, database, names, memory)
        else:
            engine = open_database(_database(manifest, where, database), memory=memory)
            run = run_in_comment(table_comment_in(engine, where["schema"], where["table"]))
            rows = table_rows(where["schema"], where["table"], names)
        try:
            if run != (content.get("run") or {}).get("run"):
                raise DataError(f"The table {where['table']!r} is missing, or of another run than its manifest.")
            if fingerprint(engine, rows, names) != {k: where[k] for k in ("rows", "content")}:
                raise DataError(f"The table {where['table']!r} does not hold the rows that were published.")
            yield engine, rows
        finally:
            engine.close()
        return
    engine = open_engine(memory=memory)
    try:
        if entry["name"] == PARTS:
            with part_rows(engine, manifest.parent, columns, content["partition_by"]) as rows:
                yield engine, rows
        elif entry["name"].lower().endswith(".csv"):
            yield engine, csv_rows(engine, manifest.parent / entry["name"], names)
        else:
            yield engine, engine.parquet([manifest.parent / entry["name"]])
    finally:
        engine.close()


def _columns(content: Mapping[str, Any]) -> list[Column]:
    return [Column(c["name"], c["type"]) for c in content["columns"]]


def _rechecked(engine: Engine, rows: exp.Query, content: Mapping[str, Any]) -> tuple[list[str], list[Rechecked]]:
    """Return problems, and for each promise what the rows say of it."""
    problems, listed = [], [c.name for c in _columns(content)]
    if [c.name for c in engine.columns(rows)] != listed:
        return ["the columns are not those that the manifest lists"], []
    published = content["found"]["rows_published"]
    counted = count_rows(engine, rows)
    if counted != published:
        problems.append(f"{counted} rows instead of {published}")
    keys = [col(c["name"]) for c in content["columns"] if c["role"] == "quasi_identifier"]
    unit = content.get("unit", "rows")
    made = [_model(p) for p in content["promise"]]
    sensitive = sensitive_of([m for m in made if m is not None])
    relations = {"classes": count_classes(engine, rows, keys, keys=bool(sensitive))}
    if sensitive:
        values = {s: col(s) for s in sensitive}
        relations["class_values"] = count_values(engine, rows, keys, values, relations["classes"])
    promises = []
    for promise, model in zip(content["promise"], made, strict=True):
        checked = _recheck(engine, relations, promise, model, unit)
        if checked.state == BROKEN:
            problems.append(f"the promise is broken: {checked.text} ({checked.reason})")
        promises.append(checked)
    hidden = {m.name for m in made if m is not None and m.hidden}
    classes = {c.get("classes") for c in content.get("checks", []) if c.get("model") not in hidden}
    (total,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(exp.to_table(relations["classes"])))
    if classes and classes != {int(total)}:
        problems.append("the number of classes differs from the manifest")
    engine.drop(*relations.values())
    return problems, promises


def _model(promise: Mapping[str, Any]) -> Model | None:
    """Return the model that was promised; None where it is not known here."""
    try:
        return make_from(models, promise["model"], [], promise["parameters"])
    except ParameterError:
        return None


def _recheck(
    engine: Engine, relations: Mapping[str, str], promise: Mapping[str, Any], model: Model | None, unit: str
) -> Rechecked:
    if model is None:
        return _told(promise, NOT_CHECKABLE, "the model is not known to this installation")
    missing = [name for name in load(f"models/{model.name}").reads if name not in relations]
    if missing:
        return _told(promise, NOT_CHECKABLE, _MISSING.get(missing[0], "it needs what is not published"))
    (check,) = check_models(engine, relations, [model], unit)
    if not check.holds:
        # Persons are at most as many as rows: what rows break, persons break.
        return _told(promise, BROKEN, _broken(check))
    if unit == "persons" and model.name not in _OF_ROWS:
        return _told(promise, NOT_CHECKABLE, "persons cannot be counted without their key; counted in rows it holds")
    return _told(promise, HOLDS)


def _told(promise: Mapping[str, Any], state: str, reason: str = "") -> Rechecked:
    return Rechecked(promise["model"], dict(promise["parameters"]), promise["text"], state, reason)


def _broken(check: CheckResult) -> str:
    return f"by {check.violating_classes} of {check.classes} classes, {check.violating_rows} rows"


__all__ = ["BROKEN", "HOLDS", "NOT_CHECKABLE", "Rechecked", "Verified", "VerifiedExport", "verify_export"]
