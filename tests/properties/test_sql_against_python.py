"""``FROM anonymize(...)`` in SQL is ``duckanon.anonymize(...)`` in Python: same rows, classes, report, or same reason.

Tables lie in the database of the connection or in one that is attached, under names that must be quoted, and are named
in full or, after USE, by their name alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import duckanon
from duckanon.engine.sql.relations import ident
from duckanon.errors import DuckanonError
from tests.effort import share

NAMES = st.sampled_from(("t", "a b", 'q"q', "select", "x.y", "Ä", "main"))
PLACES = st.sampled_from(("memory.main", "memory.s 1", "other db.main", "other db.s"))
ALGORITHMS = ("mondrian", "datafly", "mdav", "optimal", "k_member", "probabilistic", "nothing")
OUTPUTS = ("interval", "bounds", "set", "mean", "median", "midpoint", "odd")
OF_THE_RUN = ("seconds",)
"""What differs between two runs of the same: it is not compared."""
NOT_VISIBLE = "not visible by design"


@dataclass(frozen=True)
class Request:
    """Rows, the database and schema of their table, its name, how the source is given, and the arguments."""

    rows: list[tuple[Any, ...]]
    place: str
    name: str
    kind: str
    used: bool
    arguments: dict[str, Any]

    def source(self, con: duckdb.DuckDBPyConnection) -> str:
        """Make the table, and a view of it; return what is given as the source."""
        con.execute("ATTACH ':memory:' AS \"other db\"")
        schema = ".".join(map(quoted, self.place.split(".")))
        con.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        con.execute(f"CREATE TABLE {schema}.{quoted(self.name)} (n INTEGER, c VARCHAR, s VARCHAR, e INTEGER)")
        con.executemany(f"INSERT INTO {schema}.{quoted(self.name)} VALUES (?, ?, ?, ?)", self.rows)
        con.execute(f"CREATE VIEW {schema}.seen AS FROM {schema}.{quoted(self.name)}")
        if self.used:
            con.execute(f"USE {schema}")
        before = "" if self.used else f"{schema}."
        table = before + quoted(self.name)
        return {"table": table, "query": f"FROM {table}", "view": f"{before}seen"}[self.kind]


def quoted(name: str) -> str:
    return ident(name).sql(dialect="duckdb")


def literal(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    row = st.tuples(
        st.integers(0, 9) | st.none(), st.sampled_from("abcd"), st.sampled_from(("x", "y", None)), st.integers(0, 20)
    )
    arguments: dict[str, Any] = {
        "quasi_identifiers": draw(st.sampled_from((["n"], ["n", "c"], ["c"], ["N"], ["nobody"], []))),
        "k": draw(st.integers(0, 6)),
        "algorithm": draw(st.sampled_from(ALGORITHMS)),
        "seed": draw(st.integers(0, 3)),
    }
    more: dict[str, Any] = {
        "sensitive": draw(st.sampled_from((["s"], ["S", "n"]))),
        "entity_key": "e",
        "insensitive": draw(st.sampled_from((["s"], ["c"]))),
        "suppression_limit": draw(st.sampled_from((0, 0.1, 0.5, 2))),
        "output": draw(st.sampled_from((*OUTPUTS, {"n": "mean"}, {"nobody": "set"}))),
        "within": draw(st.sampled_from((["c"], ["n"], ["x"]))),
        "hierarchies": draw(st.sampled_from(({"c": {"mask": 1}}, {"n": "us_zip5"}, {"c": {"auto": True}}))),
        "models": draw(st.sampled_from((["k_map(k=2)"], ["nothing(x=1)"], [{"model": "k_anonymity", "k": 3}]))),
    }
    chosen = draw(st.sets(st.sampled_from(sorted(more)), max_size=3))
    arguments |= {name: more[name] for name in sorted(chosen)}
    if "sensitive" in chosen:
        arguments["l"] = draw(st.integers(1, 3))
    return Request(
        draw(st.lists(row, min_size=1, max_size=40)),
        draw(PLACES),
        draw(NAMES),
        draw(st.sampled_from(("table", "query", "view"))),
        draw(st.booleans()),
        arguments,
    )


def in_python(con: duckdb.DuckDBPyConnection, source: str, arguments: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return the rows, the classes and the report; three times the reason where there is no release."""
    try:
        with duckanon.anonymize(source, connection=con, **arguments) as release:
            classes = NOT_VISIBLE if release.hidden else rows_of(release.classes())
            return rows_of(release.to_arrow()), classes, lasting(release.report("json"))
    except DuckanonError as error:
        return (str(error).splitlines()[0],) * 3


def in_sql(con: duckdb.DuckDBPyConnection, function: str, source: str, arguments: dict[str, Any]) -> Any:
    """Return what a function gives: its rows, or the reason why there are none."""
    listed = ", ".join(f"{key} := {literal(value)}" for key, value in arguments.items())
    try:
        found = con.execute(f"FROM {function}({literal(source)}, {listed})").fetchall()
    except duckdb.Error as error:
        reason = str(error).splitlines()[0].removeprefix("Invalid Input Error: ")
        return NOT_VISIBLE if NOT_VISIBLE in reason else reason
    if function == "anonymize_report":
        return lasting(found[0][0])
    return [column[0] for column in con.description], sorted(map(repr, found))


def rows_of(found: pa.Table) -> tuple[list[str], list[str]]:
    """Return the names of the columns and the rows, whatever their order."""
    columns = [column.to_pylist() for column in found.columns]
    return found.column_names, sorted(map(repr, zip(*columns, strict=True)))


def lasting(report: str) -> dict[str, Any]:
    """Return a report without what differs from run to run."""
    return {key: value for key, value in json.loads(report).items() if key not in OF_THE_RUN}


def about(value: Any) -> Any:
    """Return what equals a value but for the last digits of its floats: the order of a sum decides on those."""
    if isinstance(value, dict):
        return {key: about(one) for key, one in value.items()}
    if isinstance(value, list):
        return [about(one) for one in value]
    return pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True) if isinstance(value, float) else value


@given(request=requests())
@share(0.75)
def test_same_rows_and_same_reasons(request: Request) -> None:
    with duckanon.connect() as con:
        source = request.source(con)
        rows, classes, report = in_python(con, source, request.arguments)
        assert in_sql(con, "anonymize", source, request.arguments) == rows
        assert in_sql(con, "anonymize_classes", source, request.arguments) == classes
        assert in_sql(con, "anonymize_report", source, request.arguments) == about(report)
