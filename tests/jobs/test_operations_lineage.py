"""OpenLineage events: the shape that the specification asks for, what was masked, and no secret or value anywhere."""

from __future__ import annotations

import json
import multiprocessing
import os
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

import duckanon
from duckanon.errors import EngineError
from duckanon.jobs.monitoring import events, write_events
from duckanon.jobs.monitoring.lineage import without_secrets
from tests.jobs.runs import failed, run
from tests.report.test_report import NAMES, changed

FACET = {"_producer": "uri", "_schemaURL": "uri"}
NAMED = {"namespace": "text", "name": "text"}
FIELDS: dict[str, dict[str, str]] = {
    "event": {"eventTime": "time", "producer": "uri", "schemaURL": "uri", "run": "map", "job": "map"},
    "run": {"runId": "uuid"},
    "job": NAMED,
    "dataset": NAMED,
    "input field": {**NAMED, "field": "text"},
    "transformation": {"type": "text"},
    "schema": FACET,
    "dataSource": FACET,
    "columnLineage": {**FACET, "fields": "map"},
    "outputStatistics": FACET,
    "errorMessage": {**FACET, "message": "text", "programmingLanguage": "text"},
    "processing_engine": {**FACET, "version": "text"},
    "jobType": {**FACET, "processingType": "text", "integration": "text"},
}
"""What the specification requires of each kind of object, and in which form."""


def require(value: Any, kind: str) -> None:
    """Fail unless an object has what the specification requires of its kind."""
    assert isinstance(value, dict)
    for key, form in FIELDS.get(kind, FACET).items():
        assert key in value, f"{kind} needs {key}"
        given = value[key]
        if form == "map":
            assert isinstance(given, dict)
            continue
        assert isinstance(given, str)
        if form == "time":
            assert datetime.fromisoformat(given).tzinfo is not None
        elif form == "uuid":
            assert str(uuid.UUID(given)) == given
        elif form == "uri":
            assert urlsplit(given).scheme
            assert " " not in given


def require_event(event: dict[str, Any]) -> None:
    """Fail unless an event is a RunEvent."""
    require(event, "event")
    assert event["eventType"] in ("START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER")
    assert event["schemaURL"] == "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
    for place in ("run", "job"):
        require(event[place], place)
        for name, facet in event[place].get("facets", {}).items():
            require(facet, name)
    for dataset in (*event["inputs"], *event["outputs"]):
        require(dataset, "dataset")
        for name, facet in {**dataset["facets"], **dataset.get("outputFacets", {})}.items():
            require(facet, name)
        for field in dataset["facets"].get("schema", {}).get("fields", ()):
            assert isinstance(field["name"], str)
        lineage = dataset["facets"].get("columnLineage", {"fields": {}})
        inputs = [f for column in lineage["fields"].values() for f in column["inputFields"]]
        for field in (*inputs, *lineage.get("dataset", ())):
            require(field, "input field")
            for how in field["transformations"]:
                require(how, "transformation")
                assert how["type"] in ("DIRECT", "INDIRECT")
                assert isinstance(how["masking"], bool)
    json.dumps(event, allow_nan=False)


@pytest.mark.parametrize(
    ("record", "kinds"),
    [
        (run(), ["START", "COMPLETE"]),
        (run(outcome="dry_run", written=None), ["START", "COMPLETE"]),
        (failed(), ["START", "FAIL"]),
        (failed(130, error=None), ["START", "ABORT"]),
        (failed(6, columns=[], started="2026-03-02T02:00:07Z"), ["START", "FAIL"]),
        (run(summary=changed(seeded=True, found={"class_size": {"mean": float("nan")}})), ["START", "COMPLETE"]),
    ],
)
def test_events_have_the_shape_of_the_specification(record: dict[str, Any], kinds: list[str]) -> None:
    found = events(record)
    assert [e["eventType"] for e in found] == kinds
    for event in found:
        require_event(event)
    assert found[0]["eventTime"] == record["started"]
    assert found[1]["eventTime"] == record["ended"]
    assert found[0]["run"]["runId"] == found[1]["run"]["runId"]
    assert found[0]["outputs"] == []
    assert len(found[1]["outputs"]) == (record["outcome"] == "published")


def test_what_was_read_and_written() -> None:
    (_, event) = events(run(), namespace="nights")
    assert (event["job"]["namespace"], event["job"]["name"]) == ("nights", "hospital.stays")
    (read,), (wrote,) = event["inputs"], event["outputs"]
    assert (read["namespace"], read["name"]) == ("file", "hospital.parquet")
    assert read["facets"]["schema"]["fields"][0] == {"name": "age", "type": "INTEGER"}
    assert (wrote["namespace"], wrote["name"]) == ("file", "out/stays.parquet")
    assert wrote["outputFacets"]["outputStatistics"]["rowCount"] == 19500
    assert wrote["facets"]["dataSource"]["uri"] == "file:out/stays.parquet"


def test_masked_columns_are_marked() -> None:
    (_, event) = events(run())
    facets = event["outputs"][0]["facets"]
    how = {
        name: [(i["field"], t["subtype"], t["masking"]) for i in column["inputFields"] for t in i["transformations"]]
        for name, column in facets["columnLineage"]["fields"].items()
    }
    assert how == {
        "age": [("age", "TRANSFORMATION", True)],
        "zip": [("zip", "TRANSFORMATION", True)],
        "sex": [("sex", "IDENTITY", False)],
        "diagnosis": [("diagnosis", "IDENTITY", False)],
        "cost": [("cost", "IDENTITY", False)],
    }
    assert [f["field"] for f in facets["columnLineage"]["dataset"]] == ["age", "zip", "sex"]
    # What is never published is in no output.
    assert [f["name"] for f in facets["schema"]["fields"]] == list(how)
    assert {f["name"]: f.get("type") for f in facets["schema"]["fields"]}["cost"] == "DOUBLE"


def test_bounds_are_two_columns() -> None:
    (_, event) = events(run(summary=changed(output={"age": "bounds"})))
    fields = event["outputs"][0]["facets"]["columnLineage"]["fields"]
    assert list(fields)[:3] == ["age_lo", "age_hi", "zip"]
    assert fields["age_lo"]["inputFields"][0]["field"] == "age"


def test_promise_and_proof_are_a_facet_of_their_own() -> None:
    (_, event) = events(run())
    facet = event["outputs"][0]["facets"]["duckanon_anonymity"]
    assert facet["promise"][0]["model"] == "k_anonymity"
    assert facet["proof"] == [
        {
            "model": "k_anonymity",
            "parameters": {"k": 5},
            "holds": True,
            "classes": 321,
            "violatingClasses": 0,
            "violatingRows": 0,
        }
    ]
    assert (facet["unit"], facet["highestRisk"], facet["seeded"]) == ("persons", 0.2, False)
    told = event["run"]["facets"]["duckanon_run"]
    assert (told["exitCode"], told["heldBack"], told["peakMemory"]) == (0, 37, 700 * 2**20)


def test_each_table_of_a_run_has_an_identifier_of_its_own() -> None:
    def identifier(**entries: Any) -> str:
        return str(events(run(**entries))[0]["run"]["runId"])

    assert identifier() == identifier()
    assert len({identifier(), identifier(table="wards"), identifier(run="r-8"), identifier(job="other")}) == 4


def test_a_job_of_one_table_has_one_name() -> None:
    assert events(run(table="hospital"))[0]["job"]["name"] == "hospital"


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:s3cret@db:5432/clinic?sslpassword=s3cret#public.stays",
        "postgresql://me:s3cret/@x@db:5432/clinic",
        "postgresql://me:s3cret#1@db:5432/clinic#public.stays",
        "postgresql://db:5432/clinic?user=me&password=s3cret",
        "postgresql://db?password=s3cret",
        "host=db port=5432 dbname=clinic user=me password=s3cret",
        "host=db password = 's3cret with \\' blanks' dbname=clinic",
        "s3://bucket/x.parquet?X-Amz-Signature=s3cret",
        "https://token:s3cret@files.example/x.parquet",
    ],
)
def test_addresses_lose_their_secrets(address: str) -> None:
    assert "s3cret" not in without_secrets(address)
    summary = changed(source={"kind": "postgres", "name": address})
    found = events(run(summary=summary, written={"release": address}))
    for event in found:
        require_event(event)
    assert "s3cret" not in json.dumps(found)


def test_the_name_of_a_server_is_the_namespace() -> None:
    (_, event) = events(run(written={"release": "postgresql://me:pw@db:5432/clinic#public.stays"}))
    (wrote,) = event["outputs"]
    assert (wrote["namespace"], wrote["name"]) == ("postgresql://db:5432", "clinic#public.stays")


@pytest.mark.parametrize("name", NAMES)
def test_odd_names(tmp_path: Path, name: str) -> None:
    summary = changed(
        roles={**changed()["roles"], "quasi_identifiers": [name]},
        hierarchies=[{**changed()["hierarchies"][0], "attribute": name, "origin": name}],
        source={"kind": "table", "name": name},
    )
    record = run(summary=summary, job=name, table=name, columns=[{"name": name, "type": "VARCHAR"}])
    path = tmp_path / "lineage.jsonl"
    write_events(path, record)
    lines = path.read_text().splitlines()
    assert len(lines) == 2
    for line in lines:
        require_event(json.loads(line))
    assert name in json.loads(lines[1])["outputs"][0]["facets"]["columnLineage"]["fields"]


class TestFile:
    def test_runs_follow_one_another(self, tmp_path: Path) -> None:
        path = tmp_path / "lineage.jsonl"
        write_events(path, run())
        write_events(path, failed())
        kinds = [json.loads(line)["eventType"] for line in path.read_text().splitlines()]
        assert kinds == ["START", "COMPLETE", "START", "FAIL"]

    def test_half_a_line_spoils_no_other(self, tmp_path: Path) -> None:
        path = tmp_path / "lineage.jsonl"
        path.write_text('{"eventType": "STA')
        write_events(path, run())
        first, *rest = path.read_text().splitlines()
        assert first == '{"eventType": "STA'
        assert [json.loads(line)["eventType"] for line in rest] == ["START", "COMPLETE"]

    def test_what_cannot_be_written_whole_is_taken_back(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "lineage.jsonl"
        write_events(path, run())
        old, real = path.read_bytes(), os.write

        def full(handle: int, data: Any) -> int:
            if len(data) < 100:
                raise OSError(28, "No space left on device")
            return real(handle, data[:100])

        monkeypatch.setattr(os, "write", lambda handle, data: full(handle, bytes(data)[: max(len(data) // 2, 1)]))
        with pytest.raises(EngineError, match=r"lineage file 'lineage.jsonl' cannot be written: No space left"):
            write_events(path, failed())
        assert path.read_bytes() == old

    def test_a_folder_that_is_missing(self, tmp_path: Path) -> None:
        with pytest.raises(EngineError, match="No such file or directory"):
            write_events(tmp_path / "none" / "x.jsonl", run())

    def test_many_writers(self, tmp_path: Path) -> None:
        path = tmp_path / "lineage.jsonl"
        context = multiprocessing.get_context("spawn")
        work = [context.Process(target=write_events, args=(path, run(job=f"j{i}"))) for i in range(4)]
        for process in work:
            process.start()
        for process in work:
            process.join(60)
        names = [json.loads(line)["job"]["name"] for line in path.read_text().splitlines()]
        assert sorted(names) == sorted(f"j{i}.stays" for i in range(4) for _ in range(2))
        assert all(names[i] == names[i + 1] for i in range(0, 8, 2))


def test_a_real_release_leaves_no_cell_of_the_data_in_metrics_and_events(tmp_path: Path) -> None:
    from duckanon.jobs.monitoring import textfile

    people = pa.table(
        {"age": [341, 342, 343] * 2, "town": ["Zaphodville", "Marvintown"] * 3, "ill": ["Beeblebrox"] * 6}
    )
    with duckanon.anonymize(people, quasi_identifiers=["age", "town"], sensitive=["ill"], k=3) as release:
        record = run(summary=release.summary(), columns=[])
    (_, event) = events(record)
    require_event(event)
    text = json.dumps(event) + textfile([record])
    for cell in ("341", "343", "Zaphodville", "Marvintown", "Beeblebrox"):
        assert cell not in text
