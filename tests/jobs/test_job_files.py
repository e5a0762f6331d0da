"""Job files: drafted from a table, described to editors."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import duckdb
import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duckanon.errors import DataError
from duckanon.io.source import Source
from duckanon.jobs import load_job, run_job
from duckanon.jobs.draft import draft
from duckanon.jobs.keys import JobKeys, json_schema, schema_text
from duckanon.plan.request import PARAMETERS
from duckanon.testing.hospital import write_hospital
from tests.jobs.jobs import JOB
from tests.jobs.test_job import WRONG
from tests.jobs.test_job_tables import SEVERAL

EXAMPLES = Path(__file__).parents[2] / "examples"


class TestSchema:
    def test_is_a_schema(self) -> None:
        jsonschema.Draft7Validator.check_schema(json_schema())
        assert json.loads(schema_text()) == json_schema()

    @pytest.mark.parametrize("job", [JOB, SEVERAL, *(p.read_text() for p in sorted(EXAMPLES.glob("*.toml")))])
    def test_takes_good_jobs(self, job: str) -> None:
        content = json.loads(json.dumps(tomllib.loads(job), default=str))
        jsonschema.validate(content, json_schema(), jsonschema.Draft7Validator)

    @pytest.mark.parametrize(
        "case",
        [
            *("unknown table", "unknown key", "misspelt role", "text for a list", "numbers in a list", "unlisted"),
            *("k text", "k zero", "on_unknown", "algorithm", "report", "overwrite", "format", "threads"),
            *("expect share", "recoding"),
        ],
    )
    def test_refuses_mistakes(self, case: str) -> None:
        old, new, _ = WRONG[case]
        content = json.loads(json.dumps(tomllib.loads(JOB.replace(old, new)), default=str))
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(content, json_schema(), jsonschema.Draft7Validator)

    def test_every_key_is_explained(self) -> None:
        schema = json_schema()
        assert set(schema["properties"]) == set(JobKeys.__struct_fields__)
        assert schema["properties"]["hierarchies"]["description"]
        for table, content in schema["definitions"].items():
            assert content["description"]
            for key, about in content["properties"].items():
                assert "description" in about or "$ref" in about, (table, key)

    def test_choices_are_those_of_a_request(self) -> None:
        definitions = json_schema()["definitions"]
        for table, key in (("Roles", "unlisted"), ("Privacy", "on_unknown"), ("Privacy", "bounds")):
            assert set(definitions[table]["properties"][key]["enum"]) == set(PARAMETERS[key].choices)


class TestDraft:
    def test_runs_as_it_is(self, tmp_path: Path) -> None:
        write_hospital(tmp_path / "hospital.parquet", 2000)
        file = tmp_path / "jobs" / "stays.toml"
        file.parent.mkdir()
        file.write_text(draft(Source.file(tmp_path / "hospital.parquet"), file, k=3))
        table = load_job(file).table()
        assert "name" in table.request.identifiers
        assert {"birth_date", "sex", "zip"} <= set(table.request.quasi_identifiers)
        assert "diagnosis" in table.request.sensitive
        assert table.expect.min_rows == 1000
        result = run_job(file)
        assert result.written["release"] == file.parent / "release" / "stays.parquet"
        assert result.summary["found"]["class_size"]["min"] >= 3

    def test_odd_names_and_no_cell(self, tmp_path: Path) -> None:
        odd = 'a "b"\\\n\x7fé'
        data = pa.table({odd: ["canary1", "canary2"] * 20, "age": list(range(20, 60)), "x'y": [1.5] * 40})
        pq.write_table(data, tmp_path / "t.parquet")
        file = tmp_path / "job.toml"
        drafted = draft(Source.file(tmp_path / "t.parquet"), file)
        assert "canary" not in drafted
        file.write_text(drafted)
        request = load_job(file).table().request
        roles = (request.identifiers, request.quasi_identifiers, request.sensitive, request.insensitive)
        listed = [name for role in roles for name in role]
        assert sorted(listed) == sorted(data.column_names)

    def test_from_a_database(self, tmp_path: Path) -> None:
        with duckdb.connect(str(tmp_path / "d.duckdb")) as con:
            con.execute("CREATE TABLE t AS SELECT i AS age, i % 7 AS zip FROM range(100) r(i)")
        file = tmp_path / "job.toml"
        file.write_text(draft(Source.database(tmp_path / "d.duckdb", table="t"), file))
        assert run_job(file).summary["found"]["rows_in"] == 100

    def test_nothing_to_recode(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"c": [1] * 9}), tmp_path / "t.parquet")
        with pytest.raises(DataError, match="No column looks like a quasi-identifier"):
            draft(Source.file(tmp_path / "t.parquet"), tmp_path / "job.toml")
