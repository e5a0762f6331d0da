"""The commands about jobs: drafts, validation, the schema, runs with options, history."""

from __future__ import annotations

import json
import logging
import re
import tomllib
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from duckanon.jobs.keys import json_schema
from duckanon.testing.hospital import write_hospital
from tests.interfaces.cli.tools import call, document
from tests.jobs.jobs import PEOPLE, fill, write
from tests.jobs.test_job_tables import SEVERAL, folder  # noqa: F401 - a fixture


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write(fill(tmp_path))


def test_a_draft_is_written_and_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_hospital("stays.parquet", 1000)
    made = call("job", "init", "stays.parquet", "-o", "stays.toml", "-k", "3")
    assert made.exit_code == 0, made.output
    assert "stays.toml: a draft" in made.stdout
    assert tomllib.loads(Path("stays.toml").read_text())["privacy"] == {"k": 3}
    assert json.loads(Path("duckanon.schema.json").read_text()) == json_schema()
    again = call("job", "init", "stays.parquet", "-o", "stays.toml")
    assert (again.exit_code, "exists already" in again.stderr) == (2, True)
    assert call("job", "init", "stays.parquet", "-o", "stays.toml", "--force").exit_code == 0
    good = call("job", "validate", "stays.toml")
    assert good.exit_code == 0, good.output
    assert good.stdout.startswith("ok: stays: ")
    assert call("run", "stays.toml", "--dry-run").exit_code == 0


def test_a_draft_has_few_quasi_identifiers_in_their_rank_an_entity_key_and_every_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_hospital("stays.parquet", 1000)
    assert call("job", "init", "stays.parquet", "-o", "stays.toml").exit_code == 0
    text = Path("stays.toml").read_text()
    roles = tomllib.loads(text)["roles"]
    assert roles["entity_key"] == "patient_id"
    assert roles["quasi_identifiers"] == ["birth_date", "zip", "sex", "country", "admission_date"]
    assert set(roles["identifiers"]) == {"name", "education", "marital_status", "ward", "length_of_stay"}
    assert '    "zip", # birth, sex or place: known of everybody\n' in text
    assert "each further one costs detail in all others" in text
    assert tomllib.loads(text)["hierarchies"] == {"zip": "auto", "country": "auto"}
    assert re.search(r'country = "auto" # countries matches ([0-9]+) of \1 values', text)
    promise = document(call("job", "validate", "stays.toml", "--json"))["tables"][0]["promise"]
    assert promise == ["every combination of quasi-identifiers is shared by at least 5 persons"]


def test_a_draft_of_a_table_of_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_hospital("stays.parquet", 300)
    with duckdb.connect("d.duckdb") as con:
        con.execute("CREATE TABLE stays AS FROM 'stays.parquet'")
    assert call("job", "init", "--database", "d.duckdb", "--table", "stays", "-o", "stays.toml").exit_code == 0
    assert tomllib.loads(Path("stays.toml").read_text())["source"] == {"database": "d.duckdb", "table": "stays"}
    assert call("run", "stays.toml", "--dry-run").exit_code == 0


@pytest.mark.parametrize("uri", ["postgresql://me:canary@host/db", "postgresql://me@host/db?password=canary"])
def test_no_password_is_written_into_a_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str) -> None:
    monkeypatch.chdir(tmp_path)
    result = call("job", "init", "--database", uri, "--table", "stays", "-o", "stays.toml")
    assert (result.exit_code, "canary" in result.output, list(tmp_path.iterdir())) == (2, False, [])


def test_validate_says_what_is_wrong(job: Path) -> None:
    found = document(call("job", "validate", "job.toml", "--json"))
    assert (found["valid"], found["tables"][0]["published"]) == (True, ["age", "town", "ill"])
    write(job.parent, ('["age", "town"]', '["agee", "town"]'))
    wrong = call("job", "validate", "job.toml")
    assert (wrong.exit_code, "'agee'" in wrong.stderr) == (2, True)


def test_schema(job: Path) -> None:
    assert json.loads(call("job", "schema").stdout) == json_schema()
    assert call("job", "schema", "-o", "s.json").exit_code == 0
    assert json.loads(Path("s.json").read_text()) == json_schema()


def test_run_with_options(job: Path) -> None:
    assert call("run", "job.toml").exit_code == 0
    pq.write_table(PEOPLE.slice(0, 10), "people.parquet")
    stopped = call("run", "job.toml")
    assert (stopped.exit_code, "--accept-drift" in stopped.stderr) == (3, True)
    assert call("run", "job.toml", "--accept-drift").exit_code == 0
    bad = call("run", "job.toml", "--date", "yesterday")
    assert bad.exit_code == 2
    told = document(call("history", "job.toml", "--json"))["job"]
    assert [(run["outcome"], run["exit_code"]) for run in told] == [("published", 0), ("failed", 3), ("published", 0)]
    shown = call("history", "job.toml")
    assert "3 runs" in shown.stdout
    assert "1 failed" in shown.stdout


def test_history_before_the_first_run(job: Path) -> None:
    assert call("history", "job.toml").stdout == "job: no run yet\n"
    assert document(call("history", "job.toml", "--json")) == {"job": []}
    assert not Path("job.state").exists()


def test_history_says_why_runs_failed_and_needs_no_secret(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        job.parent,
        ('path = "people.parquet"', 'path = "${PEOPLE}.parquet"'),
        ("[output]", "[expect]\nmin_rows = 99\n[output]"),
    )
    monkeypatch.setenv("PEOPLE", "people")
    assert call("run", "job.toml").exit_code == 3
    monkeypatch.delenv("PEOPLE")
    assert call("job", "validate", "job.toml").exit_code == 2
    shown = call("history", "job.toml")
    assert shown.exit_code == 0, shown.output
    assert "exit code 3, data or schema drift. DataError: The source has 40 rows, expected at least 99." in shown.stdout
    (row,) = document(call("history", "job.toml", "--json"))["job"]
    assert row["reason"] == "The source has 40 rows, expected at least 99."
    unknown = call("history", "job.toml", "--table", "jobb")
    assert (unknown.exit_code, "Did you mean 'job'" in unknown.stderr) == (2, True)


def test_the_failure_page_says_the_next_step(job: Path) -> None:
    write(job.parent, ("[output]", "[expect]\nmin_rows = 99\n[output]"))
    assert call("run", "job.toml").exit_code == 3
    page = (job.parent / "job.state" / "job" / "failure.html").read_text(encoding="utf-8")
    assert "What to do next" in page
    assert "--accept-drift" in page


@pytest.mark.parametrize("key", ["metrics", "lineage"])
def test_validate_finds_a_missing_folder_of_what_a_run_writes_besides(job: Path, key: str) -> None:
    write(job.parent, ("[output]", f'[operations]\n{key} = "monitoring/stays.out"\n[output]'))
    missing = call("job", "validate", "job.toml")
    assert (missing.exit_code, f"[operations] {key}: the folder 'monitoring'" in missing.stderr) == (2, True)
    (job.parent / "monitoring").mkdir()
    assert call("job", "validate", "job.toml").exit_code == 0


def test_log_lines_are_json_without_values(job: Path) -> None:
    result = call("run", "job.toml", "--log", "json")
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in result.stderr.splitlines()]
    assert {line.get("step") for line in lines} >= {"encode", "search", "recode", "gate", "write"}
    assert {line.get("table") for line in lines} == {"job"}
    assert lines[-1]["event"].startswith("published: 40 of 40 rows")
    for cell in ("Zaphod", "Bonn", "gout"):
        assert cell not in result.stderr
    assert not any(isinstance(h, logging.StreamHandler) for h in logging.getLogger("duckanon").handlers), "still logs"


def test_several_tables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811 - the fixture
    monkeypatch.chdir(folder)
    write(folder, text=SEVERAL)
    result = call("run", "job.toml")
    assert result.exit_code == 0, result.output
    assert [line for line in result.stdout.splitlines() if line.startswith("table:")] == [
        "table: people",
        "table: ages",
    ]
    told = document(call("run", "job.toml", "--json"))
    assert [table["table"] for table in told["tables"]] == ["people", "ages"]
    assert call("plan", "job.toml").exit_code == 2
    assert call("plan", "job.toml", "--table", "ages").exit_code == 0
    checked = call("verify", "out", "--accept", "persons")
    assert checked.exit_code == 0, checked.output
    assert checked.stdout.count("as published") == 2
