"""Reads and runs `.test` files: DuckDB's sqllogictest style, with statements of `sql/` by name.

    require duckdb 2.0                     skip the file on an older version
    statement ok                           the SQL below, up to a blank line, must run
    statement error                        ... must fail; below `----` a regular expression that the message matches
    query [TYPES] [rowsort | nosort]       ... must give the rows below `----`, tab separated
    query model NAME [p=v ...] [...]       returns the classes that violate a model with these parameters, from
                                           sql/models/NAME.sql on tables named like the relations it reads
    query metric NAME [...]                runs sql/metrics/NAME.sql on such tables

TYPES has a letter for each column: T text, I integer, B boolean, R number, compared to a relative 1e-9. NULL is `NULL`,
the empty text `(empty)`. Lines that begin with `#` are comments.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import duckdb
from sqlglot import exp

from duckanon.engine.sql.relations import RelationTables
from duckanon.metrics import Metric, metrics
from duckanon.metrics.base import CellMetric
from duckanon.models import models
from duckanon.models.base import violations

_TYPES = re.compile(r"^[TIBR]+$")
_SORTS = ("rowsort", "nosort")


class SqlLogicError(Exception):
    """A directive did not do what the file says, or cannot be understood."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")
        self.path, self.line = path, line


class Skip(Exception):
    """The file asks for something that is not here."""


@dataclass
class Directive:
    """One block of a file."""

    line: int
    kind: str
    words: list[str]
    sql: str = ""
    expected: list[str] | None = None
    types: str = ""
    sort: str = "nosort"
    parameters: dict[str, Any] = field(default_factory=dict)
    metric: type[Metric] | None = None


def parse(path: Path, text: str) -> Iterator[Directive]:
    """Yield the directives of a file."""
    block: list[tuple[int, str]] = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.startswith("#"):
            continue
        if line.strip():
            block.append((number, line))
        elif block:
            yield _directive(path, block)
            block = []


def _directive(path: Path, block: list[tuple[int, str]]) -> Directive:
    (line, head), *rest = block
    words = head.split()
    if words[0] not in ("require", "statement", "query"):
        raise SqlLogicError(path, line, f"unknown directive {words[0]!r}")
    body = [text for _, text in rest]
    cut = body.index("----") if "----" in body else None
    found = Directive(line, words[0], words[1:], "\n".join(body[:cut]), body[cut + 1 :] if cut is not None else None)
    if found.kind == "query":
        _query(path, found)
    if found.kind == "statement" and found.words not in (["ok"], ["error"]):
        raise SqlLogicError(path, line, "statement is followed by ok or error")
    return found


def _query(path: Path, found: Directive) -> None:
    if found.expected is None:
        raise SqlLogicError(path, found.line, "a query needs ---- and the rows expected")
    options = found.words
    if options and options[0] in ("model", "metric"):
        kind, name, *options = options
        if found.sql:
            raise SqlLogicError(path, found.line, f"query {kind} has no SQL of its own")
        given = {key: ast.literal_eval(value) for key, value in (o.split("=", 1) for o in options if "=" in o)}
        query: exp.Query
        if kind == "model":
            takes = tuple(f.name for f in fields(models.get(name)))  # type: ignore[arg-type]
        else:
            file = metrics.get(name).statement()
            takes, query = file.params, file.bind({relation: relation for relation in file.reads})
        if set(given) != set(takes):
            raise SqlLogicError(path, found.line, f"{name} takes the parameters {list(takes)}")
        found.parameters = given
        if kind == "model":
            query, found.parameters = violations(models.get(name)(**given))
        found.sql = query.sql(dialect="duckdb")
        if kind == "metric" and issubclass(metrics.get(name), CellMetric):
            found.metric = metrics.get(name)
        options = [o for o in options if "=" not in o]
    for option in options:
        if option in _SORTS:
            found.sort = option
        elif _TYPES.match(option):
            found.types = option
        else:
            raise SqlLogicError(path, found.line, f"unknown option {option!r}")


def run(path: Path, text: str) -> int:
    """Run a file on a database of its own and return the number of directives; an error says what failed where."""
    count = 0
    with duckdb.connect(":memory:") as connection:
        for directive in parse(path, text):
            _run(path, directive, connection)
            count += 1
    return count


def _run(path: Path, directive: Directive, connection: duckdb.DuckDBPyConnection) -> None:
    if directive.kind == "require":
        _require(path, directive)
        return
    rows: list[tuple[Any, ...]] = []
    message = None
    try:
        if directive.metric is not None:
            rows = _measured(connection, directive.metric, len(directive.types))
        else:
            rows = connection.execute(directive.sql, directive.parameters or None).fetchall()
    except duckdb.Error as error:
        message = str(error)
    fails = directive.kind == "statement" and directive.words == ["error"]
    if fails:
        pattern = "\n".join(directive.expected or [])
        if message is None:
            raise SqlLogicError(path, directive.line, "the statement was to fail, and ran")
        if not re.search(pattern, message):
            raise SqlLogicError(path, directive.line, f"the error does not match {pattern!r}: {message}")
    elif message is not None:
        raise SqlLogicError(path, directive.line, message)
    elif directive.kind == "query":
        _compare(path, directive, rows)


class _Engine:
    """A connection that answers like an engine."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

    def rows(self, query: exp.Query) -> list[tuple[Any, ...]]:
        return self.connection.execute(query.sql(dialect="duckdb")).fetchall()

    def row(self, query: exp.Query) -> tuple[Any, ...]:
        (row,) = self.rows(query)
        return row


def _measured(connection: duckdb.DuckDBPyConnection, metric: type[Metric], columns: int) -> list[tuple[Any, ...]]:
    """Return the values of a metric of cells, which it works out from its statement."""
    published = "FROM classes AS c JOIN class_cells AS x ON x.class_id = c.class_id WHERE NOT c.suppressed"
    connection.execute(f"CREATE VIEW IF NOT EXISTS cell_rows AS SELECT x.*, c.n {published}")
    engine: Any = _Engine(connection)
    relations = RelationTables(engine, {name: name for name in ("classes", "cell_rows", "domain")})
    return [tuple(row[:columns]) for row in metric.rows(engine, relations, {})]


def _require(path: Path, directive: Directive) -> None:
    if len(directive.words) != 2 or directive.words[0] != "duckdb":
        raise SqlLogicError(path, directive.line, "require duckdb VERSION")
    wanted, have = (tuple(int(p) for p in v.split(".")[:2]) for v in (directive.words[1], duckdb.__version__))
    if have < wanted:
        raise Skip(f"needs duckdb {directive.words[1]}")


def _compare(path: Path, directive: Directive, rows: list[tuple[Any, ...]]) -> None:
    found = [[_shown(v) for v in row] for row in rows]
    wanted = [line.split("\t") for line in directive.expected or []]
    if directive.sort == "rowsort":
        found, wanted = sorted(found), sorted(wanted)
    types = directive.types
    for row in (*found, *wanted):
        if types and len(row) != len(types):
            raise SqlLogicError(path, directive.line, f"{len(types)} columns expected, a row has {len(row)}: {row}")
    if len(found) != len(wanted) or not all(_same(f, w, types) for f, w in zip(found, wanted, strict=True)):
        shown = ["\n".join("    " + "\t".join(row) for row in side) or "    (no rows)" for side in (wanted, found)]
        raise SqlLogicError(path, directive.line, f"rows differ\n  expected:\n{shown[0]}\n  found:\n{shown[1]}")


def _shown(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value) or "(empty)"


def _same(found: list[str], wanted: list[str], types: str) -> bool:
    if len(found) != len(wanted):
        return False
    for f, w, kind in zip(found, wanted, types or "T" * len(found), strict=True):
        if kind == "R" and "NULL" not in (f, w):
            if not math.isclose(float(f), float(w), rel_tol=1e-9, abs_tol=1e-12):
                return False
        elif f != w:
            return False
    return True
