"""Verify: an export is checked again from its manifest and files alone, without the source.

Three questions: are the files as they were published, is the manifest consistent, and do the files keep the promise?
Whatever is missing, unknown or not listed is a problem. Not every promise can be checked from the files: t-closeness
compares with the source, k-map with a population, and persons cannot be counted because their key is never published.
Such a promise is "not checkable", with the reason, and the export is not "ok" unless the user accepts that.

A manifest's own hash finds damage, but not manipulation: whoever can write data and manifest can renew it. Only the job
or a signature shows for certain what was promised.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.encoding.counting import count_classes, count_rows, count_values
from duckanon.engine.base import open_engine
from duckanon.engine.sql.relations import Column, call, col, number, subquery
from duckanon.errors import DataError, DuckanonError, EngineError, ParameterError
from duckanon.io.disk import locked, os_errors
from duckanon.io.paths import is_file, is_folder, is_there
from duckanon.io.sinks.commit import pending_path, recover, unfinished
from duckanon.io.sinks.content import fingerprint
from duckanon.io.sinks.csv_reading import taken_for_one
from duckanon.io.sinks.files import csv_rows
from duckanon.io.sinks.folder import part_rows
from duckanon.io.sinks.manifest import (
    FOLDER_MANIFEST,
    PARTS,
    manifest_path,
    read_manifest,
    release_entry,
    report_names,
    verify_files,
)
from duckanon.io.sinks.signing import PublicKey, envelope_problems
from duckanon.io.sinks.tables import TableReports, open_database, run_in_comment, table_comment_in, table_rows
from duckanon.models.base import CheckResult, Model, sensitive_of, statement_of
from duckanon.release.agreement import Expected, disagreements, model_of, size_problems
from duckanon.release.gate import check_models
from duckanon.report import formats

if TYPE_CHECKING:
    from duckanon.engine.base import Engine

HOLDS, BROKEN, NOT_CHECKABLE = "holds", "broken", "not checkable"
OK = "ok"
PERSONS, SOURCE, POPULATION, GROUPS = "persons", "source", "population", "groups"
UNCHECKABLE = {
    PERSONS: "persons cannot be counted without their key",
    SOURCE: "it compares with the source, which is not published",
    POPULATION: "it compares with a population, which is not published",
    GROUPS: "it is about groups that must not be seen in the release",
}
"""Why a promise cannot be checked from the files alone: what may be accepted."""
_MISSING = {
    "permuted_blocks": (GROUPS, "which rows were permuted together cannot be seen in the release, and must not be"),
    "domain_values": (SOURCE, "it compares with the frequencies of the whole source, which is not published"),
    "domain_nodes": (SOURCE, "it measures along the hierarchy of a sensitive column, which is not published"),
    "population_classes": (POPULATION, "it compares with a population, which is not published"),
}
_DATA = (".parquet", ".csv")

_ADDRESS = re.compile(r"://|\b(host|hostaddr|dbname|user|password)\s*=")


@dataclass(frozen=True)
class Rechecked:
    """The result for one promise: it ``holds``, is ``broken``, or is ``not checkable`` from the files alone."""

    model: str
    parameters: dict[str, Any]
    text: str
    state: str
    reason: str = ""
    kind: str | None = None
    """Why it is not checkable, in a word: one of ``UNCHECKABLE``."""
    accepted: bool = False
    """Whether the user accepts that it is not checkable."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        keys = ("model", "parameters", "text", "state", "reason", "kind", "accepted")
        return {k: getattr(self, k) for k in keys}


@dataclass(frozen=True)
class VerifiedExport:
    """What was found of one export.

    It is "ok" where there is no problem and every promise was verified, or is accepted as not checkable.
    """

    manifest: Path
    files: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    promises: tuple[Rechecked, ...] = ()
    run: str | None = None
    created: str | None = None
    signed: bool | None = None
    """Whether the manifest is signed with the key that was given; None without a key."""
    vouched_by: tuple[str, ...] = ()
    """What shows that the manifest is the publisher's: "key", "job", both, or nothing."""

    @property
    def intact(self) -> bool:
        """Whether nothing was found to be wrong; a promise may still be not checkable."""
        return not self.problems

    @property
    def state(self) -> str:
        """Return "ok", "broken" where there is a problem, or "not checkable"."""
        if self.problems:
            return BROKEN
        open_ones = [p for p in self.promises if p.state != HOLDS and not p.accepted]
        return NOT_CHECKABLE if open_ones or not self.promises else OK

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        return {
            "manifest": str(self.manifest),
            "state": self.state,
            "intact": self.intact,
            "run": self.run,
            "created": self.created,
            "signed": self.signed,
            "vouched_by": list(self.vouched_by),
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
        """Whether there is an export, and nothing was found to be wrong with any."""
        return bool(self.exports) and all(e.intact for e in self.exports)

    @property
    def state(self) -> str:
        """Return "ok" if all exports are, "broken" where one has a problem, else "not checkable"."""
        states = {e.state for e in self.exports}
        return OK if states == {OK} else BROKEN if BROKEN in states or not states else NOT_CHECKABLE

    @property
    def ok(self) -> bool:
        """Whether every export is as published and every promise verified, or accepted as not checkable."""
        return self.state == OK

    @property
    def problems(self) -> list[str]:
        """What is wrong, each with the name of its manifest where there are several."""
        many = len(self.exports) > 1
        return [f"{e.manifest.name}: {p}" if many else p for e in self.exports for p in e.problems]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        return {"state": self.state, "intact": self.intact, "exports": [e.to_dict() for e in self.exports]}


def verify_export(
    path: str | Path,
    *,
    database: str | Path | None = None,
    memory: str | None = None,
    accept: Collection[str] = (),
    expected: Expected | None = None,
    key: PublicKey | None = None,
) -> Verified:
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
    accept : collection of {"persons", "source", "population", "groups"}
        The reasons for which a promise may be not checkable and the export still be "ok".
    expected : Expected, optional
        What a job says: the manifest must agree.
    key : PublicKey, optional
        The manifest must be signed with its other half.

    Returns
    -------
    Verified
        ``state``, ``problems``, and for each export what was found of each promise. A path under which there is no
        manifest is a DataError.

    Examples
    --------
    >>> import tempfile, duckanon, pyarrow as pa
    >>> table = pa.table({"age": [31, 32, 33, 34]})
    >>> with tempfile.TemporaryDirectory() as folder, duckanon.anonymize(table, quasi_identifiers=["age"], k=2) as made:
    ...     _ = made.write(f"{folder}/people.parquet")
    ...     verify_export(folder).ok
    True
    """
    for kind in accept:
        if kind not in UNCHECKABLE:
            raise ParameterError(f"accept has {kind!r}, which is none of {', '.join(UNCHECKABLE)}.")
    place, given = Path(path), str(database) if database is not None else None
    pending = _recover(place, given)
    found = []
    for manifest in _manifests(place):
        export = _verified(manifest, given, memory, expected, key)
        promises = tuple(replace(p, accepted=p.kind is not None and p.kind in accept) for p in export.promises)
        vouched = [("key", export.signed), ("job", expected is not None and export.intact)]
        vouched_by = tuple(name for name, agrees in vouched if agrees)
        found.append(replace(export, problems=(*pending, *export.problems), promises=promises, vouched_by=vouched_by))
    strange = _unlisted(place, found)
    if strange and any(e.files for e in found):
        found[0] = replace(found[0], problems=(*found[0].problems, *strange))
    return Verified(tuple(found))


def _unlisted(place: Path, exports: Sequence[VerifiedExport]) -> list[str]:
    """Return a problem for each data file, given by name or in a given folder, that no manifest lists."""
    if not is_folder(place):
        asked = [] if _is_manifest(place) else [place]
    elif is_file(place / FOLDER_MANIFEST):
        return []  # The folder is one release, and was checked for other files already.
    else:
        asked = sorted(p for p in place.iterdir() if p.suffix.lower() in _DATA and p.is_file() and p.name[0] != ".")
    listed = {name for e in exports for name in e.files}
    return [f"{p.name}: the manifest beside it does not list it" for p in asked if p.name not in listed]


def _is_manifest(path: Path) -> bool:
    return path.name == FOLDER_MANIFEST or path.name.endswith(".manifest.json")


def _manifests(path: Path) -> list[Path]:
    if is_folder(path):
        own = [path / FOLDER_MANIFEST] if is_file(path / FOLDER_MANIFEST) else []
        found = own or sorted([*path.glob("*.manifest.json"), *path.glob(f"*/{FOLDER_MANIFEST}")])
        if not found:
            raise DataError(f"There is no manifest in the folder {path.name!r}.")
        return found
    if _is_manifest(path):
        return [path]
    if not is_there(path) and not is_there(manifest_path(path)):
        raise DataError(f"There is no {path.name!r}.")
    return [manifest_path(path)]


def _recover(path: Path, database: str | None) -> list[str]:
    """Finish what a killed run left; return what could not be finished without the right to write."""
    if path.name == FOLDER_MANIFEST:
        path = path.parent
    folder = path if is_folder(path) and not is_there(path / FOLDER_MANIFEST) else path.parent
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
            from duckanon.io.postgres import published_comment

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


def _verified(
    manifest: Path,
    database: str | None,
    memory: str | None = None,
    expected: Expected | None = None,
    key: PublicKey | None = None,
) -> VerifiedExport:
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
    signing = envelope_problems(manifest) if key is None else key.problems(manifest)
    found = replace(found, signed=None if key is None else not signing)
    problems = [
        *signing,
        *verify_files(manifest),
        *disagreements(content, manifest.name),
        *_reports_besides(manifest, content),
    ]
    if not problems and expected is not None:
        problems = expected.problems(content)
    if problems:
        # Nothing in a changed export can be trusted: its rows are not read.
        return replace(found, problems=tuple(problems))
    try:
        with _opened(manifest, content, database, memory) as (engine, rows):
            problems, promises = _rechecked(engine, rows, content)
    except DuckanonError as error:
        return replace(found, problems=(str(error),))
    except (KeyError, TypeError):
        return replace(found, problems=(f"{manifest.name!r} does not say what is needed to check it.",))
    return replace(found, problems=tuple(problems), promises=tuple(promises))


def _reports_besides(manifest: Path, content: Mapping[str, Any]) -> list[str]:
    """Return a problem for each report of an export that its manifest does not list."""
    if manifest.name == FOLDER_MANIFEST:
        return []  # The folder of a release was checked for other files already.
    stem, listed = manifest.name.removesuffix(".manifest.json"), {f["name"] for f in content["files"]}
    there = [name for name in report_names(stem, formats()).values() if (manifest.parent / name).exists()]
    return [f"{name}: the manifest does not list it" for name in there if name not in listed]


def _database(manifest: Path, where: Mapping[str, Any], given: str | None) -> Path:
    if given is not None and _ADDRESS.search(given):
        # It may have a password, and a part of it would be taken for a file's name.
        raise DataError("The table is in a DuckDB file, and the database that was given is the address of a server.")
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
    from duckanon.io.postgres import published_comment
    from duckanon.io.source import Source

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
    """Yield an engine and the rows of an export, read from where they were published."""
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
    """Return problems, and the result for each promise; the manifest is consistent."""
    problems, listed = [], _columns(content)
    there = engine.columns(rows)
    if [c.name for c in there] != [c.name for c in listed]:
        return ["the columns are not those that the manifest lists"], []
    if _typed(content) and [c.type for c in there] != [c.type for c in listed]:
        problems.append("the types of the columns are not those that the manifest lists")
    published = content["found"]["rows_published"]
    counted = count_rows(engine, rows)
    if counted != published:
        problems.append(f"{counted} rows instead of {published}")
    keys = [col(c["name"]) for c in content["columns"] if c["role"] == "quasi_identifier"]
    made = [_model(p) for p in content["promise"]]
    sensitive = sensitive_of(made)
    relations = {"classes": count_classes(engine, rows, keys, keys=bool(sensitive))}
    if sensitive:
        values = {s: col(s) for s in sensitive}
        relations["class_values"] = count_values(engine, rows, keys, values, relations["classes"])
    promises = []
    for promise, model in zip(content["promise"], made, strict=True):
        checked = _recheck(engine, relations, promise, model, content["unit"])
        if checked.state == BROKEN:
            problems.append(f"the promise is broken: {checked.text} ({checked.reason})")
        promises.append(checked)
    if not any(m.hidden for m in made):
        total, sizes = _class_sizes(engine, relations["classes"])
        if {c["classes"] for c in content["checks"]} != {total}:
            problems.append("the number of classes differs from the manifest")
        elif counted == published:
            problems += size_problems(content, sizes, total)
    engine.drop(*relations.values())
    entry = release_entry(content)
    if entry is not None and entry["name"].lower().endswith(".csv"):
        merged = taken_for_one(engine, rows, [c.name for c in listed], content)
        problems += [
            f"the promise is broken: readers of CSV take different values of {name!r} for one" for name in merged
        ]
    return problems, promises


def _typed(content: Mapping[str, Any]) -> bool:
    """Say whether the rows have the published types where they lie: in CSV all are texts, and servers have others."""
    entry = release_entry(content)
    if entry is None:
        return bool(content["target"]["kind"] == "duckdb")
    return not entry["name"].lower().endswith(".csv")


def _class_sizes(engine: Engine, classes: str) -> tuple[int, dict[str, Any]]:
    """Return the number of classes and their sizes, in the form of a manifest."""
    quantiles = [call("quantile_disc", col("n"), number(q)) for q in (0.25, 0.5, 0.75)]
    smallest, largest, mean = exp.Min(this=col("n")), exp.Max(this=col("n")), exp.Avg(this=col("n"))
    columns = [exp.Count(this=exp.Star()), smallest, quantiles[0], quantiles[1], mean, quantiles[2], largest]
    total, *found = engine.row(exp.select(*columns).from_(exp.to_table(classes)))
    return int(total), dict(zip(("min", "q25", "median", "mean", "q75", "max"), found, strict=True))


def _model(promise: Mapping[str, Any]) -> Model:
    made = model_of(promise)
    if made is None:
        raise DataError(f"The model {promise['model']!r} is not known here.")
    return made


def _recheck(
    engine: Engine, relations: Mapping[str, str], promise: Mapping[str, Any], model: Model, unit: str
) -> Rechecked:
    missing = [name for name in statement_of(type(model)).reads if name not in relations]
    if missing:
        kind, reason = _MISSING.get(missing[0], (None, "it needs what is not published"))
        return _rechecked_as(promise, NOT_CHECKABLE, reason, kind)
    (check,) = check_models(engine, relations, [model], unit)
    if not check.holds:
        # There are at most as many persons as rows: what rows break, persons break.
        return _rechecked_as(promise, BROKEN, _broken(check))
    if unit == "persons" and model.counts_members:
        return _rechecked_as(promise, NOT_CHECKABLE, f"{UNCHECKABLE[PERSONS]}; counted in rows it holds", PERSONS)
    return _rechecked_as(promise, HOLDS)


def _rechecked_as(promise: Mapping[str, Any], state: str, reason: str = "", kind: str | None = None) -> Rechecked:
    return Rechecked(promise["model"], dict(promise["parameters"]), promise["text"], state, reason, kind)


def _broken(check: CheckResult) -> str:
    return f"by {check.violating_classes} of {check.classes} classes, {check.violating_rows} rows"


__all__ = [
    "BROKEN",
    "HOLDS",
    "NOT_CHECKABLE",
    "OK",
    "UNCHECKABLE",
    "Rechecked",
    "Verified",
    "VerifiedExport",
    "verify_export",
]
