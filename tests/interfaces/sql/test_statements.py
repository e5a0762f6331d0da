"""Where in a statement a call may stand, and that one statement shows one release."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

import duckanon
from tests.datasets import PATIENTS

from .conftest import CALL, fetch, reason

Con = duckdb.DuckDBPyConnection


def smallest_class(rows: list[tuple[Any, ...]]) -> int:
    return min(Counter(row[:3] for row in rows).values())


def test_rows_are_published_and_anonymous(con: Con) -> None:
    result = con.execute(f"SELECT * FROM {CALL}")
    assert [d[0] for d in result.description or []] == ["age", "zip", "sex", "diagnosis"]
    rows = result.fetchall()
    assert len(rows) == 600
    assert smallest_class(rows) >= 5


def test_the_same_release_as_in_python(con: Con) -> None:
    arguments: dict[str, Any] = {"quasi_identifiers": ["age", "zip", "sex"], "sensitive": ["diagnosis"], "k": 5}
    with duckanon.anonymize("patients", connection=con, **arguments) as release:
        expected = sorted(map(tuple, (row.values() for row in release.to_arrow().to_pylist())))
    assert sorted(fetch(con, f"FROM {CALL}")) == expected


def test_every_parameter(con: Con) -> None:
    rows = fetch(
        con,
        """
        FROM anonymize('SELECT *, id // 2 AS person FROM patients',
            quasi_identifiers := ['age', 'zip'], sensitive := ['diagnosis'], identifiers := ['id'],
            insensitive := ['sex'], unlisted := 'error', entity_key := 'person',
            hierarchies := {'zip': {'rule': 'mask'}, 'age': {'rule': 'intervals', 'width': 10, 'levels': 2}},
            k := 3, algorithm := 'datafly', suppression_limit := 0.1, on_unknown := 'top', seed := 1)
        """,
    )
    assert 540 <= len(rows) <= 600
    assert all(row[0] == "*" or row[0].startswith("[") for row in rows)


@pytest.mark.parametrize(
    "hierarchies",
    [
        "{'zip': 'us_zip5'}",
        "MAP {'zip': 'us_zip5'}",
        "{'zip': {'rule': 'mask', 'side': 'right'}}",
        "MAP {'zip': {'rule': 'mask', 'side': 'right'}, 'age': {'rule': 'suppress', 'side': NULL}}",
        "{'ZIP': 'us_zip5', 'age': NULL}",
    ],
)
@pytest.mark.thinned(2)
def test_hierarchies_by_name_map_or_rule(con: Con, hierarchies: str) -> None:
    call = (
        f"('patients', quasi_identifiers := ['zip', 'age'], k := 5, hierarchies := {hierarchies}, on_unknown := 'top')"
    )
    assert len(fetch(con, f"FROM anonymize{call}")) == 600
    ((report,),) = fetch(con, f"FROM anonymize_report{call}")
    origin = next(h["origin"] for h in json.loads(report)["hierarchies"] if h["attribute"] == "zip")
    assert origin == ("shipped: us_zip5" if "us_zip5" in hierarchies else "given: rule mask")


def test_source_can_be_a_view_a_qualified_name_a_file_a_glob_or_a_query(con: Con, tmp_path: Path) -> None:
    con.execute("CREATE VIEW adults AS FROM patients WHERE age > 30")
    con.execute("CREATE SCHEMA s")
    con.execute("CREATE TABLE s.people AS FROM patients LIMIT 100")
    for i in range(2):
        con.execute(f"COPY (FROM patients WHERE id % 2 = {i}) TO '{tmp_path}/p{i}.parquet'")
    con.execute(f"COPY patients TO '{tmp_path}/p.csv'")

    def count(source: str) -> int:
        quoted = source.replace("'", "''")
        ((n,),) = fetch(con, f"SELECT count(*) FROM anonymize('{quoted}', quasi_identifiers := ['age'], k := 2)")
        return int(n)

    assert count("adults") == fetch(con, "SELECT count(*) FROM adults")[0][0]
    assert count("s.people") == count("memory.s.people") == 100
    assert count(f"{tmp_path}/p0.parquet") == 300
    assert count(f"{tmp_path}/p*.parquet") == count(f"{tmp_path}/p.csv") == 600
    assert count("SELECT * FROM patients WHERE sex = 'f' -- 'half'") == 300
    assert count("WITH a AS (FROM patients) FROM a;") == 600


def test_join_cte_subquery_and_aggregate(con: Con) -> None:
    con.execute(
        "CREATE TABLE costs AS SELECT * FROM (VALUES ('flu', 1), ('cold', 2), ('gout', 3)) AS c(diagnosis, cost)"
    )
    assert fetch(con, f"SELECT count(*), sum(cost) FROM {CALL} JOIN costs USING (diagnosis)") == [(600, 1200)]
    assert fetch(con, f"WITH a AS (FROM {CALL}), b AS (FROM a) SELECT count(*) FROM b") == [(600,)]
    assert fetch(con, f"SELECT (SELECT count(*) FROM {CALL}), EXISTS (FROM {CALL})") == [(600, True)]
    assert fetch(con, f"SELECT 'flu' IN (SELECT diagnosis FROM {CALL})") == [(True,)]
    assert fetch(con, f"SELECT diagnosis FROM {CALL} WHERE diagnosis = 'flu' LIMIT 1") == [("flu",)]


def test_create_table_and_insert(con: Con) -> None:
    con.execute(f"CREATE TABLE released AS FROM {CALL}")
    con.execute(f"INSERT INTO released FROM {CALL}")
    rows = fetch(con, "FROM released")
    assert len(rows) == 1200
    assert Counter(rows) == Counter({row: 2 * n for row, n in Counter(fetch(con, f"FROM {CALL}")).items()})


def test_copy_to_parquet(con: Con, tmp_path: Path) -> None:
    con.execute(f"COPY (FROM {CALL}) TO '{tmp_path}/x.parquet'")
    assert pq.read_table(tmp_path / "x.parquet").num_rows == 600


def test_views_also_persistent_ones(tmp_path: Path) -> None:
    file = tmp_path / "d.duckdb"
    with duckanon.connect(file) as con:
        con.execute(PATIENTS)
        con.execute(f"CREATE VIEW released AS SELECT * FROM {CALL}")
        con.execute("CREATE SCHEMA s")
        con.execute(f"CREATE VIEW s.released AS SELECT * FROM {CALL}")
        assert fetch(con, "FROM released") == fetch(con, "FROM released") == fetch(con, "FROM s.released")
    with duckanon.connect(file, read_only=True) as con:
        assert len(fetch(con, "FROM released")) == 600
    with duckdb.connect(file) as con:
        assert "anonymize" in reason(con, "FROM released")
        assert fetch(con, "SELECT count(*) FROM duckdb_functions() WHERE NOT internal") == [(0,)]
        assert fetch(con, "SELECT count(*) FROM patients") == [(600,)]


def test_prepared_statements(con: Con) -> None:
    con.execute(f"PREPARE p AS SELECT count(*) FROM {CALL} WHERE diagnosis = $1")
    assert fetch(con, "EXECUTE p('flu')") == fetch(con, "EXECUTE p('cold')") == [(200,)]
    assert fetch(con, f"SELECT count(*) FROM {CALL} WHERE diagnosis = ?", ["flu"]) == [(200,)]
    inside = "SELECT count(*) FROM anonymize($source, quasi_identifiers := ['age'], k := $k)"
    assert fetch(con, inside, {"source": "patients", "k": 2}) == [(600,)]


def test_twice_in_one_statement(con: Con, made: list[Any]) -> None:
    assert fetch(con, f"SELECT count(*) FROM {CALL} AS a JOIN {CALL} AS b USING (age, zip, sex)")[0][0] > 600
    assert len(made) == 1
    assert fetch(con, f"SELECT count(*) FROM (FROM {CALL} EXCEPT ALL FROM {CALL})") == [(0,)]
    other = CALL.replace("k := 5", "k := 9")
    both = fetch(con, f"SELECT 5, * FROM {CALL} UNION ALL SELECT 9, * FROM {other}")
    assert [smallest_class([row[1:] for row in both if row[0] == k]) >= k for k in (5, 9)] == [True, True]
    assert len(made) == 2


def test_relations_bind_often_and_show_one_release(con: Con, made: list[Any]) -> None:
    relation = con.sql(f"FROM {CALL}")
    first = relation.fetchall()
    assert str(relation).startswith("┌")
    assert relation.filter("sex = 'f'").count("*").fetchall()[0][0] <= 600
    assert con.sql(f"FROM {CALL}").fetchall() == first
    assert relation.to_arrow_table().num_rows == 600
    assert len(made) == 1


def test_report_and_classes(con: Con, made: list[Any]) -> None:
    ((text,),) = fetch(con, CALL.replace("anonymize(", "FROM anonymize_report("))
    report = json.loads(text)
    assert report["found"]["rows_published"] == 600
    assert all(check["holds"] for check in report["checks"])
    result = con.execute(CALL.replace("anonymize(", "FROM anonymize_classes("))
    assert [d[0] for d in result.description or []] == ["age", "zip", "sex", "n"]
    classes = result.fetchall()
    assert sum(row[3] for row in classes) == 600
    assert {row[:3]: row[3] for row in classes} == Counter(row[:3] for row in fetch(con, f"FROM {CALL}"))
    assert len(made) == 1


def test_classes_of_a_column_called_n(con: Con) -> None:
    result = con.execute(
        "FROM anonymize_classes('SELECT age AS N, sex FROM patients', quasi_identifiers := ['n', 'sex'], k := 5)"
    )
    assert [d[0] for d in result.description or []] == ["N", "sex", "n_"]


NAMES = [
    'a"b; DROP TABLE patients; --',
    "sélect",
    "with spaces",
    "new\nline",
    "'quoted'",
    "таблица 🦆",
    "a.b",
    "select",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thinned(3)
def test_names_with_anything_in_them(con: Con, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    column = '"' + name.replace('"', '""') + ' c"'
    con.execute(f"CREATE TABLE {quoted} AS SELECT age AS {column}, sex FROM patients")
    parameters = [name, [name + " c"], ["sex"]]
    result = con.execute("FROM anonymize(?, quasi_identifiers := ?, sensitive := ?, k := 5)", parameters)
    assert [d[0] for d in result.description or []] == [name + " c", "sex"]
    assert len(result.fetchall()) == 600
    literal = [p.replace("'", "''") for p in (name, name + " c")]
    call = f"anonymize('{literal[0]}', quasi_identifiers := ['{literal[1]}'], k := 5, hierarchies := "
    assert len(fetch(con, f"FROM {call} {{'{literal[1]}': {{'rule': 'intervals', 'width': 10}}}})")) == 600
    source = f"SELECT * FROM {quoted}"
    assert len(fetch(con, "FROM anonymize(?, quasi_identifiers := ?, k := 5)", [source, [name + " c"]])) == 600
    con.execute(f"INSERT INTO {quoted} SELECT 50, 'f'")
    assert len(fetch(con, "FROM anonymize(?, quasi_identifiers := ?, k := 5)", [name, [name + " c"]])) == 601
    assert fetch(con, "SELECT count(*) FROM patients") == [(600,)]
