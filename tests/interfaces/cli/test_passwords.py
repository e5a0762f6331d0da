"""A password is read from the environment and appears in no message."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from duckanon.interfaces.cli.app import app
from duckanon.jobs import run_job

SECRET = "hunter2-canary"
JOB = """
[source]
path = "people.parquet"
[roles]
quasi_identifiers = ["age"]
[privacy]
k = 2
[output]
database = "release.duckdb"
table = "people"
reports_in = "reports"
"""


@pytest.mark.parametrize("as_json", [(), ("--json",)])
@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://me:{SECRET}@localhost:1",
        f"postgresql://me:pw/{SECRET}@localhost:1",
        f"host=localhost port=1 password={SECRET}",
    ],
)
def test_the_address_of_a_server_is_in_no_message(tmp_path: Path, address: str, as_json: tuple[str, ...]) -> None:
    pq.write_table(pa.table({"age": [1, 1, 2, 2]}), tmp_path / "people.parquet")
    (tmp_path / "job.toml").write_text(JOB)
    run_job(tmp_path / "job.toml")
    export = str(tmp_path / "reports")
    for arguments, environment in ((["--database", address], {}), ([], {"DUCKANON_DATABASE": address})):
        result = CliRunner().invoke(app, ["verify", export, *arguments, *as_json], env=environment)
        assert result.exit_code != 0
        assert SECRET not in result.output
        assert "Traceback" not in result.output
    told = CliRunner().invoke(app, ["verify", "--help"], env={"DUCKANON_DATABASE": address, "COLUMNS": "200"}).output
    assert "DUCKANON_DATABASE" in told
    assert SECRET not in told
