"""The lattice in SQL, and search options in SQL."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import duckanon
from duckanon.interfaces.sql.verbs import _nested_query

from .conftest import fetch, reason

Con = duckdb.DuckDBPyConnection
ROLES = "quasi_identifiers := ['age', 'zip'], sensitive := ['diagnosis']"
GIVEN: dict[str, Any] = {"quasi_identifiers": ["age", "zip"], "sensitive": ["diagnosis"]}


def levels_of(con: Con, arguments: str) -> dict[str, int]:
    ((report,),) = fetch(con, f"FROM anonymize_report('patients', {ROLES}, k := 5, {arguments})")
    return {h["attribute"]: h["level"] for h in json.loads(report)["hierarchies"]}


def test_a_table_with_structs_becomes_a_query_of_the_same_types(con: Con) -> None:
    table = pa.table(
        {
            "s": pa.array([{"a b": 1, "ä\"'": None}, None], pa.struct([("a b", pa.int64()), ("ä\"'", pa.int64())])),
            "x": pa.array([0.1, 1e-300], pa.float64()),
            "b": [True, None],
            "t": ["it's", "ü\n"],
        }
    )
    relation = con.sql(_nested_query(table).sql(dialect="duckdb"))
    assert [str(t) for t in relation.types][1:] == ["DOUBLE", "BOOLEAN", "VARCHAR"]
    assert relation.to_arrow_table().to_pylist() == table.to_pylist()
    none = con.sql(_nested_query(table.slice(0, 0)).sql(dialect="duckdb"))
    assert (none.columns, none.fetchall(), none.types) == (relation.columns, [], relation.types)


@pytest.mark.parametrize("more", [{}, {"pareto": True}, {"l": 2, "suppression_limit": 0.1, "entity_key": "id"}])
@pytest.mark.thinned(2)
def test_the_lattice_is_the_one_of_python(con: Con, more: dict[str, Any]) -> None:
    names = ["loss", "precision"]
    expected = duckanon.lattice("patients", **GIVEN, k=5, metrics=names, connection=con, **more)
    written = ", ".join(f"{key} := {value!r}" for key, value in more.items())
    call = f"lattice('patients', {ROLES}, k := 5, metrics := ['loss', 'precision'], {written or 'pareto := NULL'})"
    found = con.sql(f"FROM {call}")
    assert found.columns == expected.to_arrow().column_names
    assert found.to_arrow_table().to_pylist() == expected.to_pylist()
    assert len(expected) > 3


def test_a_node_is_looked_up_and_applied(con: Con) -> None:
    call = f"lattice('patients', {ROLES}, k := 5, min_levels := {{'age': 1}}, max_levels := MAP {{'zip': 3}})"
    ((age, zips, classes),) = fetch(
        con, f"SELECT levels.age, levels.zip, classes_published FROM {call} WHERE anonymous ORDER BY loss LIMIT 1"
    )
    chosen = f"levels := {{'age': {age}, 'ZIP': {zips}}}"
    assert levels_of(con, chosen) == {"age": age, "zip": zips}
    counted = f"SELECT count(*) FROM anonymize_classes('patients', {ROLES}, k := 5, {chosen})"
    assert fetch(con, counted) == [(classes,)]


def test_a_search_is_steered(con: Con) -> None:
    assert levels_of(con, "algorithm := 'optimal'") == levels_of(con, "algorithm := 'optimal(metric=loss)'")
    light = levels_of(con, "algorithm := 'optimal', weights := {'zip': 0.01}")
    heavy = levels_of(con, "algorithm := 'optimal', weights := {'zip': 100}")
    assert light["zip"] > heavy["zip"]
    assert levels_of(con, "algorithm := 'optimal', min_levels := {'age': 3}")["age"] >= 3
    arguments = f"'patients', {ROLES}, k := 12, algorithm := 'optimal', suppression_limit := 0.1"
    ((once,),) = fetch(con, f"SELECT count(*) FROM anonymize({arguments})")
    ((again,),) = fetch(con, f"SELECT count(*) FROM anonymize({arguments}, iterative := true)")
    assert again >= once


def test_compare_releases_are_steered_too(con: Con) -> None:
    releases = "{'a': {'levels': {'age': 4, 'zip': 3}}, 'b': {'algorithm': 'optimal', 'weights': {'age': 3}}}"
    found = fetch(
        con,
        f"SELECT release, highest_risk FROM compare_releases('patients', {ROLES}, k := 5, releases := {releases})",
    )
    assert [name for name, risk in sorted(found, key=lambda row: row[1])] == ["a", "b"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("lattice('nobody', quasi_identifiers := ['age'], k := 2)", "There is no table or view 'nobody'"),
        ("lattice('patients', k := 2)", "Name at least one quasi-identifier"),
        (f"lattice('patients', {ROLES})", "No privacy model is given"),
        (f"lattice('patients', {ROLES}, k := 5, metrics := ['los'])", "Did you mean 'loss'"),
        (f"lattice('patients', {ROLES}, k := 5, metrics := 'loss')", "metrics must be a list of texts"),
        (f"lattice('patients', {ROLES}, k := 5, most := 9)", "more than the 9 that are listed"),
        (f"lattice('patients', {ROLES}, k := 5, pareto := 1)", "pareto must be a boolean"),
        (f"anonymize('patients', {ROLES}, k := 5, levels := {{'agee': 1}})", "Did you mean 'age'"),
        (f"anonymize('patients', {ROLES}, k := 5, levels := {{'age': 99}})", "has the levels 0 to"),
        (f"anonymize('patients', {ROLES}, k := 5, levels := {{'age': 'x'}})", "a whole number of at least 0"),
        (f"anonymize('patients', {ROLES}, k := 5, levels := 3)", "levels must be a struct or map"),
        (f"anonymize('patients', {ROLES}, k := 5, weights := {{'age': -1}})", "a number above 0"),
        (f"anonymize('patients', {ROLES}, k := 5, iterative := 'yes')", "iterative must be a boolean"),
        (f"anonymize('patients', {ROLES}, k := 5, algorithm := 'optimal(metric=precison)')", "'precision'"),
        (f"anonymize('patients', {ROLES}, k := 5, algorithm := 'optimal(metrik=loss)')", "Did you mean 'metric'"),
        (f"anonymize('patients', {ROLES}, k := 5, algorithm := 'optimal(')", "its name with parameters"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(shared: Con, call: str, message: str) -> None:
    assert message in reason(shared, f"FROM {call}")
