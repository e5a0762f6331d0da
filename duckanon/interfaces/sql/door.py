"""In SQL: ``FROM anonymize('patients', quasi_identifiers := ['age', 'zip'], k := 5)`` on a DuckDB connection."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.api import anonymize
from duckanon.engine.duckdb import functions as engine_functions
from duckanon.engine.duckdb.functions import Call, Connection, Function, Parameter
from duckanon.engine.sql.classes import sizes_of_classes
from duckanon.engine.sql.relations import (
    call,
    cast,
    col,
    conjunction,
    hash_of,
    named,
    number,
    same,
    subquery,
    table,
    text,
)
from duckanon.errors import DataError, EngineError, UnsupportedError
from duckanon.hierarchy import Hierarchy, resolve, save, saved, shipped
from duckanon.interfaces.sql.group_classes import CLASSES
from duckanon.interfaces.sql.verbs import verbs
from duckanon.plan.plan import Plan
from duckanon.plan.request import PARAMETERS, Request
from duckanon.plan.roles import Role

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.engine.process import PrivateFolder
    from duckanon.io.source import Relation
    from duckanon.release.release import Release

DatabaseError = engine_functions.DatabaseError
"""What a connection raises where a statement fails."""

_CHANGED = (
    "The rows that this statement sees differ from the committed rows that were anonymized: COMMIT first, or run or "
    "prepare the statement again. Rows that depend on the session (a temporary table, its time zone) must be put "
    "into a table first, and so must those of a table that other connections write to all the time."
)


def install(connection: Connection) -> None:
    """Make ``anonymize`` and its companions callable in the SQL of a DuckDB connection.

    The functions are temporary and belong to the session, so a cursor needs its own ``install``. All other sessions of
    the same database can call them as ``duckanon_sql.anonymize(...)``. The database file is not changed.

    The rows of a release are in a private file. The last 32 are kept until the connection is closed or the process
    ends, so that a statement shows one release however often it is bound. If the source changed, it is made anew.

    Examples
    --------
    >>> import duckanon, duckdb
    >>> con = duckdb.connect()
    >>> _ = con.execute("CREATE TABLE t AS SELECT 30 + i AS age FROM range(10) AS r(i)")
    >>> duckanon.install(con)
    >>> con.execute("FROM anonymize_classes('t', quasi_identifiers := ['age'], k := 5) ORDER BY age").fetchall()
    [('[30, 34]', 5), ('[35, 39]', 5)]
    >>> con.close()
    """
    engine_functions.install(connection, FUNCTIONS.values(), CLASSES)


def connect(path: str | Path = ":memory:", *, read_only: bool = False, **config: Any) -> Connection:
    """Open a DuckDB database with the functions installed. Further keywords are settings of DuckDB.

    Examples
    --------
    >>> import duckanon
    >>> con = duckanon.connect(threads=2)
    >>> con.execute("SELECT count(*) > 0 FROM hierarchies()").fetchall()
    [(True,)]
    >>> con.close()
    """
    connection = engine_functions.connect(str(path), read_only=read_only, config=config)
    try:
        install(connection)
    except BaseException:
        connection.close()
        raise
    return connection


@dataclass(frozen=True)
class _Snapshot:
    """A release whose workspace is closed: its rows in a file, and its report."""

    rows: exp.Query
    keys: tuple[str, ...]
    report: str
    folder: PrivateFolder

    @classmethod
    def of(cls, release: Release) -> _Snapshot:
        # Where groups are not visible, equal rows are not a class.
        keys = () if release.hidden else release.recoding.columns
        return cls(release.query(), keys, release.report("json"), release.folder)

    def close(self) -> None:
        self.folder.close()


@dataclass(frozen=True)
class _Watch:
    """Compares the source at the time of the call with the source that the calling statement reads."""

    plan: Plan

    @property
    def _used(self) -> list[str]:
        unused = (Role.UNLISTED, Role.IDENTIFIER)
        roles = self.plan.roles
        return [a.name for a in roles.attributes if a.role not in unused or a.name == roles.entity_key]

    def fingerprint(self, engine: Engine) -> tuple[Any, ...]:
        """Return a fingerprint of the source: sizes and times of files, else a count and a hash of all rows."""
        return _fingerprint(engine, self.plan.relation, self._used)

    def fingerprint_of_population(self, engine: Engine) -> tuple[Any, ...]:
        """Return a fingerprint of the population, if there is one."""
        people = self.plan.population
        if people is None:
            return ()
        wanted = {a.name.lower() for a in self.plan.roles.quasi_identifiers}
        return _fingerprint(engine, people, [c.name for c in people.columns if c.name.lower() in wanted])

    def guard(self, rows: exp.Select, seen: tuple[Any, ...]) -> exp.Select:
        """Return ``rows`` with a check that the transaction sees the rows of the source that were anonymized."""
        if self.plan.relation.kind == "file":
            return rows
        source = self.plan.relation.outside
        count, total = _sums(self._used)
        total_seen = exp.null() if seen[1] is None else cast(text(str(seen[1])), "HUGEINT")
        as_seen = conjunction([same(count, number(seen[0])), same(total, total_seen)])
        verdict = exp.Case().when(as_seen, exp.true()).else_(call("error", text(_CHANGED)))
        return rows.where(exp.paren(exp.select(verdict).from_(subquery(source, "s"))))


def _sums(columns: Sequence[str]) -> tuple[exp.Expression, exp.Expression]:
    """Two aggregates that do not depend on the order of the rows."""
    return exp.Count(this=exp.Star()), exp.Sum(this=hash_of(*(col(name) for name in columns)))


def _fingerprint(engine: Engine, relation: Relation, columns: Sequence[str]) -> tuple[Any, ...]:
    patterns = [one.name for array in relation.query.find_all(exp.Array) for one in array.expressions]
    if relation.kind == "file":
        files = [
            Path(file)
            for pattern in patterns
            for (file,) in engine.rows(exp.select("file").from_(exp.Table(this=call("glob", text(pattern)))))
        ]
        if files and all(file.is_file() for file in files):
            return tuple((str(f), f.stat().st_size, f.stat().st_mtime_ns) for f in sorted(files))
    query = relation.query
    if relation.statement is None:
        return engine.row(exp.select(*_sums(columns)).from_(subquery(query, "s")))
    name = engine.fresh("seen")
    engine.catalog.create_as(name, relation.statement)
    try:
        return engine.row(exp.select(*_sums(columns)).from_(table(name)))
    finally:
        engine.drop(name)


def _digest(parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _hierarchy_digest(hierarchy: Hierarchy) -> str:
    if hierarchy.levels is None:
        return _digest(hierarchy.to_rule())
    return _digest([column.to_pylist() for column in hierarchy.levels.columns])


def _release(request: Call) -> tuple[_Snapshot, _Watch, tuple[Any, ...]]:
    """Return the release of a call, made now or before, with the fingerprint of the source."""
    engine = request.engine
    arguments = {"quasi_identifiers": [], **request.arguments}
    given = arguments.pop("source")
    plan = Plan.resolve(Request(data=given, **arguments), engine, read=False)
    watch = _Watch(plan)
    seen = watch.fingerprint(engine)
    given_for = {**plan.hierarchies, **plan.sensitive_hierarchies}
    hierarchies = {name: h for name, h in given_for.items() if h is not None}
    columns = [(a.name, a.type) for a in plan.roles.attributes]
    content = {name: _hierarchy_digest(h) for name, h in hierarchies.items()}
    key = _digest(
        [request.search_path, request.arguments, columns, content, seen, watch.fingerprint_of_population(engine)]
    )

    allowed = engine.setting("enable_external_access").lower() == "true"

    def make() -> _Snapshot:
        try:
            release = anonymize(given, engine=engine, **{**arguments, "hierarchies": hierarchies})
        except EngineError:
            if allowed:
                raise
            raise UnsupportedError(
                "The rows of a release go through a private file, and this connection may not touch files "
                "(enable_external_access is false): allow it, or use duckanon.anonymize in Python."
            ) from None
        if watch.fingerprint(engine) != seen:
            release.folder.close()
            raise DataError(
                "The source changed while it was read: a file was written, or the query gives other rows each time "
                "(random(), a sample, LIMIT without ORDER BY). Run it again, or put them into a table first."
            )
        return _Snapshot.of(release)

    return request.memo.get(key, make), watch, seen


def _anonymize(request: Call) -> exp.Query:
    snapshot, watch, seen = _release(request)
    return watch.guard(exp.select("*").from_(subquery(snapshot.rows, "r")), seen)


def _report(request: Call) -> exp.Query:
    snapshot, watch, seen = _release(request)
    return watch.guard(exp.select(named(text(snapshot.report), "report")), seen)


def _classes(request: Call) -> exp.Query:
    snapshot, watch, seen = _release(request)
    if not snapshot.keys:
        raise UnsupportedError(
            "anonymize_classes counts classes, and those of this release are not visible by design: values were "
            "permuted within groups."
        )
    query, _ = sizes_of_classes(snapshot.rows, snapshot.keys)
    return watch.guard(query, seen)


def _list_hierarchies(request: Call) -> exp.Query:
    in_database = saved(request.engine)
    listed = [(name, "saved") for name in in_database] + [
        (name, "shipped") for name in shipped() if name not in in_database
    ]
    rows = exp.values([(text(name), text(origin)) for name, origin in listed], alias="h", columns=["name", "origin"])
    return exp.select("name", "origin").from_(rows)


def _save_hierarchy(request: Call) -> exp.Query:
    name, spec = request.arguments["name"], request.arguments["spec"]
    here = exp.EQ(this=col("database_name"), expression=text(request.engine.catalog.database()))
    databases = exp.Table(this=call("duckdb_databases"))
    ((database, read_only),) = request.engine.rows(exp.select("database_name", "readonly").from_(databases).where(here))
    if read_only:
        raise UnsupportedError(f"The database {database!r} is read-only: no hierarchy can be saved in it.")
    hierarchy = resolve(spec, request.engine)
    save(request.engine, name, hierarchy, replace=request.arguments.get("replace", False))
    height = exp.null() if hierarchy.height is None else number(hierarchy.height)
    return exp.select(named(text(name), "name"), named(cast(height, "INTEGER"), "height"))


_SOURCE = Parameter("source", "text", required=True)
# Quasi-identifiers may stand in ``within`` alone.
_ANONYMIZE = (_SOURCE, *(Parameter(name, p.kind) for name, p in PARAMETERS.items() if name != "data"))

FUNCTIONS = {
    function.name: function
    for function in (
        Function("anonymize", _ANONYMIZE, _anonymize, at_once=True, about="The rows of a verified release."),
        Function(
            "anonymize_report",
            _ANONYMIZE,
            _report,
            at_once=True,
            about="The report of the release that anonymize returns for the same arguments, as JSON.",
        ),
        Function(
            "anonymize_classes",
            _ANONYMIZE,
            _classes,
            at_once=True,
            about="The published classes of that release with their numbers of rows.",
        ),
        Function("hierarchies", (), _list_hierarchies, about="The hierarchies that can be used by name."),
        Function(
            "save_hierarchy",
            (
                Parameter("name", "text", required=True),
                Parameter("spec", "text or mapping", required=True),
                Parameter("replace", "boolean"),
            ),
            _save_hierarchy,
            about="Save a hierarchy in the schema duckanon of the database, to be used by its name.",
        ),
        *verbs(_ANONYMIZE),
    )
}

PARAMETERS_OF = {
    **{name: {p.name: p.required for p in function.parameters} for name, function in FUNCTIONS.items()},
    **{one.name: dict.fromkeys(one.parameters, True) for one in CLASSES},
}
"""Of each function, table functions first, its parameters, and whether they are required."""
