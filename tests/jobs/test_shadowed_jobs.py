"""Macros in the databases of a job (source, output, results) change nothing of what is published, checked or kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

import duckanon
from duckanon import Source
from duckanon.jobs import run_job
from duckanon.jobs.tuning.search import Store
from duckanon.release.verify import verify_export
from duckanon.studies.base import Task, get_study
from duckanon.studies.store import Results
from tests.datasets import PATIENTS
from tests.interfaces.sql.test_shadowed import hostile, shadow

JOB = """
[source]
database = "source.duckdb"
{what}

[roles]
{person}
quasi_identifiers = ["age", "zip", "sex"]
sensitive = ["diagnosis"]

[privacy]
k = 4
suppression_limit = 0.2

[algorithm]
name = "{algorithm}"

[nights]
recoding = "frozen"
intersection = "stop"

[output]
database = "out.duckdb"
table = "released"
reports_in = "reports"
"""
WHATS = {"table": 'table = "patients"', "query": 'query = "SELECT * FROM patients"'}


def nights(folder: Path, *, odd: bool, **given: str) -> list[Any]:
    """Run a job on two nights between which rows come and go; return what was published, and what is said of it."""
    folder.mkdir()
    with duckdb.connect(folder / "source.duckdb") as con:
        con.execute(PATIENTS)
    (folder / "job.toml").write_text(JOB.format(**given))
    found: list[Any] = []
    for night in range(2):
        for name in ("source", "out") if odd and not night else ():
            with duckdb.connect(folder / f"{name}.duckdb") as con:
                assert shadow(con) > 300
                hostile(con, "s")
                assert con.execute("SELECT floor(1.5), 1 + 1").fetchall() == [(42, 42)]
        run_job(folder / "job.toml")
        with duckdb.connect(folder / "out.duckdb", read_only=True) as con:
            found.append(sorted(map(repr, con.execute("FROM released").fetchall())))
        verified = verify_export(folder / "reports" / "released.manifest.json", database=folder / "out.duckdb")
        found.append([list(e.problems) for e in verified.exports])
        with duckdb.connect(folder / "source.duckdb") as con:
            con.execute("DELETE FROM patients WHERE id IN (3, 5, 8)")
    history = (folder / "job.state" / "job" / "history.jsonl").read_text().splitlines()
    told = ("outcome", "rows_in", "rows_published", "rows_suppressed", "held_back", "classes", "class_size_min")
    return [*found, *({name: json.loads(line)[name] for name in told} for line in history)]


@pytest.mark.parametrize(("what", "algorithm"), [("query", "datafly"), ("table", "mondrian")])
def test_nights_from_one_database_into_another(tmp_path: Path, what: str, algorithm: str) -> None:
    given = {"what": WHATS[what], "algorithm": algorithm, "person": 'entity_key = "id"'}
    assert nights(tmp_path / "odd", odd=True, **given) == nights(tmp_path / "plain", odd=False, **given)


@pytest.mark.parametrize("how", ["connection", "database", "SQL"])
def test_generated_columns_have_the_values_that_their_owner_sees(tmp_path: Path, how: str) -> None:
    file = tmp_path / "t.duckdb"
    with duckanon.connect(file) as con:
        con.execute("CREATE MACRO floor(a) AS 42")
        con.execute("CREATE MACRO doubled(a) AS 2 * a")
        con.execute("CREATE TABLE t (a INTEGER, b INTEGER AS (floor(a)), c INTEGER AS (doubled(a)))")
        con.execute("INSERT INTO t SELECT i % 3 FROM range(30) AS r(i)")
        wanted = sorted(con.execute("SELECT b, c FROM t").fetchall())
        given: dict[str, Any] = {"quasi_identifiers": ["b", "c"], "k": 5}
        if how == "SQL":
            found = con.execute("FROM anonymize('t', quasi_identifiers := ['b', 'c'], k := 5)").fetchall()
        elif how == "connection":
            with duckanon.anonymize("t", connection=con, **given) as release:
                found = [tuple(row.values()) for row in release.to_arrow().to_pylist()]
    if how == "database":
        with duckanon.anonymize(Source.database(file, table="t"), **given) as release:
            found = [tuple(row.values()) for row in release.to_arrow().to_pylist()]
    assert sorted((int(b), int(c)) for b, c in found) == wanted


def test_temporary_macros_of_a_session_change_nothing() -> None:
    rows = []
    for odd in (False, True):
        with duckanon.connect() as con:
            con.execute(PATIENTS)
            if odd:
                for name in ("floor", "hash", "count", "query", "+", "current_setting", "read_parquet", "to_json"):
                    con.execute(f'CREATE TEMP MACRO "{name}"(a) AS 42')
                con.execute("CREATE TEMP MACRO read_parquet(a) AS TABLE SELECT 42 AS x")
            with duckanon.anonymize(
                "patients", connection=con, quasi_identifiers=["age", "zip"], k=5, seed=1
            ) as release:
                rows.append(release.to_arrow().to_pylist())
            found = con.execute("FROM anonymize('patients', quasi_identifiers := ['age', 'zip'], k := 5)").fetchall()
            rows.append(sorted(map(repr, found)))
    assert rows[:2] == rows[2:]


def test_results_of_tuning_are_kept_beside_macros(tmp_path: Path) -> None:
    file = tmp_path / "results.duckdb"
    with duckdb.connect(file) as con:
        shadow(con)
    line = {"key": "a", "label": "b", "setting": {"k": 5}, "state": "done", "reason": None, "score": 0.5}
    line |= dict.fromkeys(("deviation", "average_risk", "maximum_risk", "suppressed", "seconds"), 0.25)
    line |= dict.fromkeys(("k", "classes", "rows"), 7)
    for score in (0.5, 0.75):
        Store(file).add({**line, "score": score})
    assert Store(file).get("a") == {**line, "score": 0.75}


def test_results_of_a_study_are_kept_beside_macros(tmp_path: Path) -> None:
    file = tmp_path / "results.duckdb"
    with duckdb.connect(file) as con:
        shadow(con)
    study, task = get_study("property-vectors"), Task({"k": 5})
    with Results(file) as results:
        results.add(study, task, [{"value": 0.75}], 1.0)
    with Results(file) as results:
        assert results.records(study, [task]) == [{"k": 5, "value": 0.75}]
