"""Releases made by ``dbt build``: checked tables, tests that pass on them and fail on the raw rows, and refusals."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest

import duckanon

from .conftest import ROOT, Project, with_patients

pytestmark = pytest.mark.dbt

CALL = (
    "select * from anonymize('{{ ref(\"SOURCE\") }}', quasi_identifiers := ['age', 'zip'], "
    "sensitive := ['diagnosis'], algorithm := 'datafly', k := 5, models := ['entropy_l_diversity(l=2)'])"
)
RELEASE = CALL.replace("SOURCE", "staged")
TESTS = """
models:
  - name: released
    data_tests:
      - duckanon.k_anonymous:
          name: released_k
          arguments: {quasi_identifiers: [age, zip], k: 5}
      - duckanon.l_diverse:
          name: released_l
          arguments: {quasi_identifiers: [age, zip], sensitive: diagnosis, l: 2}
      - duckanon.l_diverse:
          name: released_entropy
          arguments: {quasi_identifiers: [age, zip], sensitive: diagnosis, l: 2, kind: entropy}
  - name: staged
    data_tests:
      - duckanon.k_anonymous:
          name: staged_k
          arguments: {quasi_identifiers: [age, zip], k: 5}
          config: {store_failures: true, severity: warn}
      - duckanon.l_diverse:
          name: staged_l
          arguments: {quasi_identifiers: [age, zip], sensitive: diagnosis, l: 2}
          config: {store_failures: true, severity: warn}
      - duckanon.k_anonymous:
          name: staged_k_of_few
          arguments: {quasi_identifiers: [age], k: 5}
          config: {where: "age = 20", severity: warn}
"""


def holds(project: Project, table: str, *, quasi_identifiers: tuple[str, ...] = ("age", "zip")) -> bool:
    with duckdb.connect(str(project.database)) as con:
        found = duckanon.check(table, quasi_identifiers=quasi_identifiers, k=5, connection=con)
    return all(one.holds for one in found)


def test_build_and_build_again(project: Project) -> None:
    project.deps()
    project.model("looked_at", "select * from {{ ref('staged') }}", materialized="view")
    project.model("released", RELEASE)
    project.model("of_a_view", CALL.replace("SOURCE", "looked_at"))
    project.model("of_a_source", CALL.replace('{{ ref("SOURCE") }}', '{{ source("hospital", "patients") }}'))
    project.model("filed", RELEASE, materialized="external", location="filed.parquet")
    project.model("within", "select * from {{ ref('released') }} where diagnosis <> 'x'", materialized="view")
    project.write("models/tests.yml", TESTS)

    found = project.dbt("build")
    assert {name: one.status for name, one in found.items() if one.status not in ("success", "pass")} == {
        "staged_k": "warn",
        "staged_l": "warn",
    }, project.output
    assert len(found) == 13
    for name in ("released", "of_a_view", "of_a_source"):
        assert holds(project, f"main.{name}")
        assert project.query(f"SELECT count(*) FROM main.{name}") == [(300,)]
    assert not holds(project, "main.staged")
    assert all(c.holds for c in duckanon.check(project.folder / "filed.parquet", quasi_identifiers=["age", "zip"], k=5))

    # What is stored of failures are counts: one row for each class that fails, and nothing of its cells.
    sizes = project.query("SELECT count(*) AS n FROM main.staged GROUP BY age, zip HAVING n < 5 ORDER BY n")
    stored = project.query('FROM "main_dbt_test__audit"."staged_k" ORDER BY ALL')
    assert stored == sizes
    assert found["staged_k"].failures == len(sizes)
    assert [row[0] for row in project.query('DESCRIBE "main_dbt_test__audit"."staged_l"')] == [
        "class_size",
        "different_values",
    ]
    assert project.canaries() == []

    # The next night: the rows changed, and the release is of the rows as they are now.
    project.query('DELETE FROM hospital."Patient Rows" WHERE id % 10 < 3')
    (kept,) = project.query('SELECT count(*) FROM hospital."Patient Rows"')
    again = project.dbt("build")
    assert {one.status for one in again.values()} == {"success", "pass", "warn"}, project.output
    for name in ("released", "of_a_view", "of_a_source"):
        assert project.query(f"SELECT count(*) FROM main.{name}") == [kept]
        assert holds(project, f"main.{name}")
    assert project.canaries() == []
    # Nothing of duckanon stays in the database.
    functions = "SELECT count(*) FROM duckdb_functions() WHERE database_name = current_database()"
    assert project.query(functions) == [(0,)]


def test_many_models_at_once(project: Project) -> None:
    names = [f"r{i}" for i in range(8)]
    for i, name in enumerate(names):
        project.model(f"s{i}", f"select * from {{{{ ref('staged') }}}} where id % 8 <> {i}")
        project.model(name, CALL.replace("SOURCE", f"s{i}"))
    project.write("packages.yml", "")
    for _ in range(2):
        found = project.dbt("run")
        assert {one.status for one in found.values()} == {"success"}, project.output
        assert len(found) == 17
    for i, name in enumerate(names):
        assert holds(project, f"main.{name}")
        assert project.query(f"SELECT count(*) FROM main.{name}") == project.query(f"SELECT count(*) FROM main.s{i}")


def test_what_is_refused(project: Project) -> None:
    project.write("packages.yml", "")
    project.model("released", RELEASE)
    assert {one.status for one in project.dbt("run").values()} == {"success"}, project.output
    before = project.query("FROM main.released ORDER BY ALL")

    project.model("released", RELEASE.replace("k := 5", "k := 301"))
    project.model("viewed", RELEASE, materialized="view")
    project.model("grown", RELEASE, materialized="incremental")
    project.model("inlined", "select * from {{ ref('staged') }}", materialized="ephemeral")
    project.model("of_inlined", CALL.replace("SOURCE", "inlined"))
    project.model("by_hook", RELEASE, pre_hook="update {{ ref('staged') }} set age = 99 where age = 27")
    project.model(
        "new", CALL.replace('{{ ref("SOURCE") }}', "just_made"), pre_hook="create table just_made as select 1 a"
    )
    project.model("unknown", RELEASE.replace("'zip'", "'zipp'"))
    (project.folder / "snapshots").mkdir()
    project.write(
        "snapshots/kept.sql",
        "{% snapshot kept %}{{ config(strategy='check', unique_key='age', check_cols='all') }}"
        + RELEASE
        + "{% endsnapshot %}",
    )
    found = project.dbt("build")
    said = {name: one.message for name, one in found.items() if one.status == "error"}
    expected = {
        "released": "The source has 300 rows: fewer than the 301 that every class must have.",
        "viewed": "A view would make another release whenever it is read",
        "grown": "An incremental model would add one release to another",
        "kept": "A snapshot would add one release to another",
        "of_inlined": "an ephemeral model is neither: materialize the model that it reads as a table or a view.",
        "by_hook": "The rows that this statement sees differ from the committed rows that were anonymized",
        "new": "There is no table or view 'just_made'.",
        "unknown": "Did you mean 'zip'?",
    }
    assert sorted(said) == sorted(expected), project.output
    for name, words in expected.items():
        assert words in said[name]
    assert project.canaries() == []
    # The last good release stays, and nothing else was made.
    assert project.query("FROM main.released ORDER BY ALL") == before
    made = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' ORDER BY ALL"
    assert project.query(made) == [("released",), ("staged",)]
    assert project.query("SELECT count(*) FROM main.staged WHERE age = 99") == [(0,)]


def test_one_thread_a_contract_and_python(tmp_path: Path) -> None:
    project = Project.make(tmp_path / "clinic", threads=1, package=False)
    with_patients(project)
    project.model("released", RELEASE)
    project.write(
        "models/python.py",
        "def model(dbt, session):\n"
        "    dbt.config(materialized='table')\n"
        "    dbt.ref('staged')\n"
        "    return session.sql(\"from anonymize('main.staged', quasi_identifiers := ['age'], \"\n"
        "                       \"algorithm := 'datafly', k := 5)\")\n",
    )
    project.write(
        "models/contract.yml",
        """
models:
  - name: released
    config: {contract: {enforced: true}}
    columns:
      - {name: age, data_type: varchar}
      - {name: zip, data_type: varchar}
      - {name: diagnosis, data_type: varchar}
""",
    )
    found = project.dbt("build")
    assert {name: one.status for name, one in found.items()} == dict.fromkeys(
        ("staged", "released", "python"), "success"
    )
    assert holds(project, "main.released")
    assert holds(project, "main.python", quasi_identifiers=("age",))


def test_the_example(tmp_path: Path) -> None:
    folder = tmp_path / "example"
    ignored = shutil.ignore_patterns("target", "logs", "dbt_packages", "*.duckdb", "package-lock.yml")
    shutil.copytree(ROOT / "examples" / "dbt", folder, ignore=ignored)
    project = Project(folder, folder / "hospital.duckdb")
    project.deps()
    for _ in range(2):
        found = project.dbt("build")
        assert {one.status for one in found.values()} == {"success", "pass"}, project.output
    keys = ("birth_date", "sex", "zip")
    assert holds(project, "main.patients_anonymous", quasi_identifiers=keys)
    columns = [row[0] for row in project.query("DESCRIBE main.patients_anonymous")]
    assert columns == [*keys, "diagnosis"]
