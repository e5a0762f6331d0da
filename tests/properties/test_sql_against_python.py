"""``FROM anonymize(...)`` in SQL is ``duckanon.anonymize(...)`` in Python: the same rows, or the same reason."""

from __future__ import annotations

from typing import Any

import duckdb
from hypothesis import given
from hypothesis import strategies as st

import duckanon
from duckanon.errors import DuckanonError
from duckanon.sqlgen.relations import ident
from tests.effort import share

NAMES = st.sampled_from(("t", "a b", 'q"q', "select", "x.y", "Ä", "main"))
ALGORITHMS = ("mondrian", "datafly", "mdav", "optimal", "k_member", "nothing")


def quoted(name: str) -> str:
    return ident(name).sql(dialect="duckdb")


def literal(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


@st.composite
def requests(draw: st.DrawFn) -> tuple[list[tuple[Any, ...]], str, str, str, dict[str, Any]]:
    """Rows, a schema, a table, how it is named as the source, and the arguments."""
    row = st.tuples(st.integers(0, 9) | st.none(), st.sampled_from("abcd"), st.sampled_from(("x", "y", None)))
    rows = draw(st.lists(row, min_size=1, max_size=40))
    schema, name = draw(st.sampled_from(("main", "s 1"))), draw(NAMES)
    kind = draw(st.sampled_from(("table", "query", "view")))
    arguments: dict[str, Any] = {
        "quasi_identifiers": draw(st.sampled_from((["n"], ["n", "c"], ["c"], ["nobody"], []))),
        "k": draw(st.integers(0, 6)),
        "algorithm": draw(st.sampled_from(ALGORITHMS)),
        "seed": draw(st.integers(0, 3)),
    }
    if draw(st.booleans()):
        arguments |= {"sensitive": ["s"], "l": draw(st.integers(1, 3))}
    if draw(st.booleans()):
        arguments["suppression_limit"] = draw(st.sampled_from((0, 0.1, 0.5, 2)))
    if draw(st.booleans()):
        arguments["output"] = draw(st.sampled_from(("interval", "set", "mean", "odd")))
    return rows, schema, name, kind, arguments


@given(request=requests())
@share(1)
def test_same_rows_and_same_reasons(
    request: tuple[list[tuple[Any, ...]], str, str, str, dict[str, Any]],
) -> None:
    rows, schema, name, kind, arguments = request
    with duckanon.connect() as con:
        con.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}")
        full = ".".join((quoted(schema), quoted(name)))
        con.execute(f"CREATE TABLE {full} (n INTEGER, c VARCHAR, s VARCHAR)")
        con.executemany(f"INSERT INTO {full} VALUES (?, ?, ?)", rows)
        con.execute(f"CREATE VIEW {quoted(schema)}.seen AS FROM {full}")
        source = {"table": full, "query": f"FROM {full}", "view": f"{quoted(schema)}.seen"}[kind]
        try:
            with duckanon.anonymize(source, connection=con, **arguments) as release:
                table = release.to_arrow()
                wanted: Any = sorted(map(repr, zip(*(c.to_pylist() for c in table.columns), strict=True)))
        except DuckanonError as error:
            wanted = str(error).splitlines()[0]
        listed = ", ".join(f"{key} := {literal(value)}" for key, value in arguments.items())
        try:
            found: Any = sorted(map(repr, con.execute(f"FROM anonymize({literal(source)}, {listed})").fetchall()))
        except duckdb.Error as error:
            found = str(error).splitlines()[0].removeprefix("Invalid Input Error: ")
    assert found == wanted
