"""The command line on a table of a server: what is suggested, a draft that runs, and one line to a release."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from duckanon.interfaces.cli import app
from tests.postgres.conftest import PASSWORD, Server

pytestmark = pytest.mark.postgres

PLACE = ["--database", "${STAYS}", "--table", "stays"]


@pytest.fixture
def stays(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, and a server with a table whose address is in a variable."""
    server.run(
        "CREATE TABLE stays AS SELECT i AS id, 'person ' || i AS name, 20 + i % 40 AS age, "
        "CASE WHEN i % 2 = 0 THEN 'f' ELSE 'm' END AS sex, (10000 + i % 7 * 1000)::text AS zip, "
        "'illness ' || i % 5 AS diagnosis FROM generate_series(1, 2000) AS t(i)"
    )
    monkeypatch.setenv("STAYS", server.uri)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str) -> Result:
    result = CliRunner().invoke(app, list(arguments))
    assert PASSWORD not in result.output + result.stderr
    assert result.exit_code == 0, result.output + result.stderr
    return result


def test_roles_are_suggested(stays: Path) -> None:
    rows = json.loads(call("suggest", *PLACE, "--json").stdout)
    found = json.dumps(rows)
    assert all(f'"{name}"' in found for name in ("id", "age", "sex", "zip"))
    assert "person 1" not in found


def test_a_draft_is_valid_and_runs(stays: Path) -> None:
    call("job", "init", *PLACE, "-o", "job.toml")
    text = (stays / "job.toml").read_text()
    assert PASSWORD not in text
    roles = tomllib.loads(text)["roles"]
    assert roles["quasi_identifiers"]
    assert "name" not in roles["quasi_identifiers"]
    call("job", "validate", "job.toml")
    call("run", "job.toml")
    (written,) = stays.rglob("*.parquet")
    assert pq.read_table(written).num_rows > 0
    assert "name" not in pq.read_table(written).column_names


def test_one_line_makes_a_release(stays: Path) -> None:
    call("anonymize", *PLACE, "-q", "age,sex,zip", "-s", "diagnosis", "-k", "5", "-o", "out.parquet")
    released = pq.read_table(stays / "out.parquet")
    assert released.column_names == ["age", "sex", "zip", "diagnosis"]
    groups = released.group_by(["age", "sex", "zip"]).aggregate([("diagnosis", "count")])
    assert min(groups["diagnosis_count"].to_pylist()) >= 5
