"""The verbs in SQL return what they return in Python, and refuse in one line."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import duckanon
from duckanon.assess.disclosure import identifying_sets
from duckanon.interfaces.sql.verbs import as_query

from .conftest import CALL, fetch, reason

Con = duckdb.DuckDBPyConnection
QUASI = ["age", "sex"]
ROLES = "quasi_identifiers := ['age', 'sex']"
CANARY = "Canary-Q7-Doe"


def dicts(con: Con, sql: str) -> list[dict[str, Any]]:
    result = con.execute(sql)
    names = [d[0] for d in result.description or []]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def test_a_table_becomes_a_query_of_the_same_types(con: Con) -> None:
    table = pa.table(
        {
            'a"b': pa.array([1, None, 2**60], pa.int64()),
            "x": pa.array([0.1, math.inf, None], pa.float64()),
            "s": ["it's", None, "; DROP TABLE patients --"],
            "b": [True, None, False],
            "l": pa.array([["a", "b'"], [], None], pa.list_(pa.string())),
            "ll": pa.array([[["a"], ["b", "c"]], [], [[]]], pa.list_(pa.list_(pa.string()))),
            "nothing": pa.array([None] * 3, pa.string()),
        }
    )
    relation = con.sql(as_query(table).sql(dialect="duckdb"))
    assert [str(t) for t in relation.types] == [
        "BIGINT", "DOUBLE", "VARCHAR", "BOOLEAN", "VARCHAR[]", "VARCHAR[][]", "VARCHAR",
    ]  # fmt: skip
    assert relation.to_arrow_table().to_pylist() == table.to_pylist()
    none = con.sql(as_query(table.slice(0, 0)).sql(dialect="duckdb"))
    assert (none.columns, none.fetchall(), none.types) == (relation.columns, [], relation.types)
    exact = [math.pi, 1e-300, 1 / 3, 123456789.123456789, 1e22]
    assert fetch(con, as_query(pa.table({"x": exact})).sql(dialect="duckdb")) == [(x,) for x in exact]


def test_privacy(con: Con) -> None:
    found = dicts(con, f"FROM privacy('patients', {ROLES}, sensitive := ['diagnosis'])")
    expected = duckanon.privacy("patients", quasi_identifiers=QUASI, sensitive=["diagnosis"], connection=con)
    assert Counter(str(sorted(row.items())) for row in found) == Counter(
        str(sorted(row.items())) for row in expected.to_pylist()
    )
    assert list(found[0])[:6] == ["model", "attribute", "parameter", "value", "holds", "threshold"]
    assert fetch(con, f"SELECT value FROM privacy('patients', {ROLES}) WHERE model = 'k_anonymity'") == [(10.0,)]


def test_privacy_beside_what_was_asked_for(con: Con) -> None:
    asked = "k := 11, l := 3, models := ['entropy_l_diversity(l=1)', 't_closeness(t=0.9)']"
    call = f"privacy('patients', {ROLES}, sensitive := ['diagnosis'], {asked})"
    found = fetch(con, f"SELECT model, holds, violating_rows FROM {call} WHERE holds IS NOT NULL ORDER BY model")
    assert found == [
        ("entropy_l_diversity", True, 0),
        ("k_anonymity", False, 600),
        ("l_diversity", False, 600),
        ("t_closeness", True, 0),
    ]
    assert "Did you mean 'l_diversity'" in reason(
        con, f"FROM privacy('patients', {ROLES}, models := ['l_diversty(2)'])"
    )


def test_risk(con: Con) -> None:
    found = dict(fetch(con, f"SELECT measure, value FROM risk('patients', {ROLES}, threshold := 0.05)"))
    assert (found["members"], found["classes"], found["smallest_class"]) == (600, 60, 10)
    assert (found["prosecutor_at_risk"], found["prosecutor_maximum"], found["marketer_average"]) == (1.0, 0.1, 0.1)
    con.execute("CREATE TABLE everybody AS FROM patients UNION ALL FROM patients")
    with_people = dict(fetch(con, f"SELECT measure, value FROM risk('patients', {ROLES}, population := 'everybody')"))
    assert (with_people["journalist_maximum"], with_people["population_uniqueness"]) == (0.05, 0.0)
    one = "SELECT measure, value FROM risk('patients', quasi_identifiers := ['age', 'zip'], population_size := 6000)"
    assert dict(fetch(con, one))["population_uniqueness_pitman"] == 1.0


def test_rows_with_risk(con: Con) -> None:
    rows = dicts(con, f"FROM with_risk('patients', {ROLES})")
    sizes = Counter((row["age"], row["sex"]) for row in rows)
    assert len(rows) == 600
    assert all(row["_ec_size"] == sizes[row["age"], row["sex"]] and row["_risk"] == 1 / row["_ec_size"] for row in rows)
    con.execute(f"CREATE TABLE kept AS FROM with_risk('patients', {ROLES}) WHERE _risk <= 0.2")
    assert fetch(con, "SELECT count(*) FROM kept") == [(600,)]
    con.execute(f"CREATE VIEW v AS FROM with_risk('patients', {ROLES}, entity_key := 'id')")
    con.execute("INSERT INTO patients SELECT * REPLACE (id + 600 AS id) FROM patients")
    assert fetch(con, "SELECT DISTINCT _ec_size FROM v") == [(20,)]


def test_rows_with_risk_are_what_the_transaction_sees(con: Con) -> None:
    con.execute("BEGIN")
    con.execute("DELETE FROM patients WHERE id >= 60")
    assert fetch(con, f"SELECT count(*), max(_ec_size) FROM with_risk('patients', {ROLES})") == [(60, 1)]
    con.execute("ROLLBACK")


def test_rows_with_risk_of_a_query_and_of_a_file(con: Con, tmp_path: Path) -> None:
    half = "SELECT age, sex FROM patients WHERE sex = ''f''"
    assert fetch(con, f"SELECT count(*), sum(_risk) FROM with_risk('{half}', {ROLES})") == [(300, pytest.approx(30))]
    # A query that gives other rows each time is run once.
    drawn = "SELECT (random() * 5)::INTEGER AS age FROM range(500) AS r(i)"
    found = f"SELECT age, _ec_size, count(*) FROM with_risk('{drawn}', quasi_identifiers := ['age']) GROUP BY ALL"
    assert all(size == n for _, size, n in fetch(con, found))
    con.execute(f"COPY patients TO '{tmp_path}/p.parquet'")
    assert fetch(con, f"SELECT max(_ec_size) FROM with_risk('{tmp_path}/p.parquet', {ROLES})") == [(10,)]


def test_suggest_and_identifying_sets(con: Con) -> None:
    found = dicts(con, "FROM suggest('patients')")
    assert found == duckanon.suggest("patients", connection=con).to_pylist()
    assert {row["column"]: row["role"] for row in found}["id"] == "identifier"
    sets = dicts(con, "FROM identifying_sets('patients', columns := ['age', 'zip', 'sex'], threshold := 0.9)")
    expected = identifying_sets("patients", columns=["age", "zip", "sex"], threshold=0.9, connection=con).to_pylist()
    assert sets == expected
    assert [row["columns"] for row in sets] == [["age", "zip"]]
    assert fetch(con, "SELECT count(*) FROM suggest('patients', max_size := 0) WHERE minimal_sets <> []") == [(0,)]


def test_information_loss(con: Con) -> None:
    con.execute(f"CREATE TABLE released AS FROM {CALL}")
    call = "information_loss('patients', 'released', quasi_identifiers := ['age', 'zip', 'sex'], metrics := {})"
    found = dicts(con, "FROM " + call.format("['discernibility', 'average_class_size']"))
    expected = duckanon.measure(
        "patients",
        "released",
        quasi_identifiers=["age", "zip", "sex"],
        metrics=["discernibility", "average_class_size"],
        connection=con,
    )
    assert {(r["metric"], r["value"]) for r in found} == {(m.metric, m.value) for m in expected}
    assert len(found) == 2
    assert "Unknown metric 'los'" in reason(con, "FROM " + call.format("['los']"))


def test_query_errors(con: Con) -> None:
    con.execute(f"CREATE TABLE released AS FROM {CALL}")
    call = "query_errors('patients', 'released', columns := ['age', 'sex'], n := 50, seed := 3)"
    (found,) = dicts(con, f"FROM {call}")
    assert (found["kind"], found["queries"]) == ("count", 50)
    asked = duckanon.utility.queries("patients", "released", columns=["age", "sex"], n=50, seed=3, connection=con)
    assert found == asked.summary().to_pylist()[0]


COMPARE = """
    compare_releases('patients', quasi_identifiers := ['age', 'zip'], sensitive := ['diagnosis'],
        releases := {{'loose': {{'k': 5}}, 'strict': {{'k': 40, 'suppression_limit': 0.05}}}}, {})
"""


def test_compare_releases(con: Con) -> None:
    standing = dicts(con, "FROM " + COMPARE.format("metrics := []"))
    assert [(r["release"], r["front"], r["dominated_by"]) for r in standing] == [
        ("loose", True, []),
        ("strict", True, []),
    ]
    assert standing[0]["loss"] < standing[1]["loss"]
    assert standing[0]["average_risk"] > standing[1]["average_risk"]
    tournament = dicts(con, "FROM " + COMPARE.format("what := 'tournament', properties := ['class_size']"))
    assert {r["release"]: r["place"] for r in tournament if r["index"] is None} == {"strict": 1, "loose": 2}
    indices = dicts(con, "FROM " + COMPARE.format("what := 'indices', by := ['coverage', 'spread']"))
    with (
        duckanon.anonymize("patients", quasi_identifiers=["age", "zip"], k=5, connection=con) as loose,
        duckanon.anonymize(
            "patients", quasi_identifiers=["age", "zip"], k=40, suppression_limit=0.05, connection=con
        ) as strict,
    ):
        expected = duckanon.compare({"loose": loose, "strict": strict}, by=["coverage", "spread"])
    assert indices == expected.indices.to_pylist()
    metrics = dicts(con, "FROM " + COMPARE.format("what := 'metrics', metrics := ['loss']"))
    assert metrics == [r for r in expected.metrics.to_pylist() if r["metric"] == "loss"]
    gains = fetch(con, "SELECT rows_better FROM " + COMPARE.format("what := 'gains'"))
    assert gains == [(g["rows_better"],) for g in expected.gains.to_pylist()]


def test_compare_releases_leaves_no_file(con: Con, temp_folder: Path) -> None:
    fetch(con, "FROM " + COMPARE.format("what := 'bias'"))
    assert list(temp_folder.iterdir()) == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("privacy('nobody', quasi_identifiers := ['age'])", "There is no table or view 'nobody'"),
        ("privacy('patients')", "Name the quasi-identifiers"),
        ("privacy('patients', quasi_identifiers := ['agee'])", "Did you mean 'age'"),
        ("privacy('patients', quasi_identifiers := 'age')", "quasi_identifiers must be a list of texts"),
        ("risk('patients', quasi_identifiers := ['age'], threshold := 2)", "threshold"),
        ("risk('patients', quasi_identifiers := ['age'], sampling_fraction := 0.0)", "sampling_fraction"),
        ("risk('patients', quasi_identifiers := ['age'], population := 'patients', threshold := 'x')", "a number"),
        ("with_risk('patients')", "Name the quasi-identifiers"),
        ("with_risk('patients', quasi_identifiers := ['age'], entity_key := 'idd')", "idd"),
        ("suggest('nobody')", "There is no table or view 'nobody'"),
        ("suggest('patients', by := 'unique')", "Did you mean 'uniqueness'"),
        ("identifying_sets('patients', columns := ['agee'])", "Did you mean 'age'"),
        ("information_loss('patients', 'nobody', quasi_identifiers := ['age'])", "There is no table or view 'nobody'"),
        (COMPARE.format("what := 'tournamnt'"), "Did you mean 'tournament'"),
        (COMPARE.format("by := 'coverag'"), "coverage"),
        (COMPARE.format("properties := ['size']"), "class_size"),
        ("compare_releases('patients', quasi_identifiers := ['age'], k := 2)", "two releases or more"),
        ("compare_releases('patients', quasi_identifiers := ['age'], releases := {'a': {'k': 2}})", "two releases"),
        ("compare_releases('patients', releases := {'a': {'kk': 2}})", "release 'a': there is no parameter 'kk'"),
        ("compare_releases('patients', releases := {'a': {'source': 't'}})", "no parameter 'source'"),
        ("compare_releases('patients', releases := {'a': {'k': 'x'}})", "release 'a': k must be an integer"),
        ("compare_releases('patients', releases := {'a': 5})", "give its arguments as a struct"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(shared: Con, call: str, message: str) -> None:
    assert message in reason(shared, f"FROM {call}")


def test_no_error_quotes_a_value(con: Con) -> None:
    con.execute(f"CREATE TABLE t AS SELECT CASE WHEN i = 9 THEN '{CANARY}' ELSE '1' END AS a FROM range(10) r(i)")
    con.execute("CREATE VIEW broken AS SELECT a::INTEGER AS a FROM t")
    for call in (
        "privacy('broken', quasi_identifiers := ['a'])",
        "risk('broken', quasi_identifiers := ['a'])",
        "suggest('broken')",
        "identifying_sets('broken')",
        "compare_releases('broken', quasi_identifiers := ['a'], releases := {'a': {'k': 1}, 'b': {'k': 2}})",
    ):
        assert CANARY not in reason(con, f"FROM {call}")
    assert CANARY not in json.dumps(fetch(con, "FROM suggest('t')"))


def test_other_sessions_find_them(con: Con) -> None:
    with con.cursor() as other:
        found = fetch(other, f"SELECT value FROM duckanon_sql.risk('patients', {ROLES}) WHERE measure = 'classes'")
    assert found == [(60.0,)]


def test_attack(con: Con) -> None:
    con.execute("CREATE TABLE others AS SELECT * FROM patients LIMIT 20")
    names = "attacks := ['distance_linkage', 'homogeneity'], control := 'others'"
    found = dicts(con, f"FROM attack('patients', 'patients', {ROLES}, sensitive := ['diagnosis'], {names})")
    assert {row["attack"] for row in found} == {"distance_linkage", "homogeneity"}
    for row in found:
        assert row["success_low"] <= row["success"] <= row["success_high"]
        assert row["verdict"]
