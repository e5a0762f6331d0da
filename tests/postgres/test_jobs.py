"""Jobs from PostgreSQL to PostgreSQL: published in one transaction, and the last good table stays."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlglot import exp

from duckanon import errors
from duckanon.io.postgres import Session, published_comment
from duckanon.io.postgres.write import _lock_key
from duckanon.io.sinks import read_manifest, verify_files
from duckanon.jobs import exit_code, run_job
from duckanon.release.verify import verify_export
from tests.postgres.conftest import PASSWORD, Server

pytestmark = pytest.mark.postgres

JOB = """
[source]
postgres = "${DUCKANON_TEST_URI}"
table = "people"

[roles]
entity_key = "id"
identifiers = ["name"]
quasi_identifiers = ["age", "town"]
sensitive = ["ill"]

[privacy]
k = 4

[output]
postgres = "${DUCKANON_TEST_URI}"
table = "released"
reports_in = "reports"

[operations]
metrics = "people.prom"
lineage = "lineage.jsonl"
"""
CANARY = "Zaphod Beeblebrox"


@pytest.fixture
def job(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DUCKANON_TEST_URI", server.uri)
    server.run(
        "DROP TABLE IF EXISTS released",
        "DROP TABLE IF EXISTS people",
        "CREATE TABLE people AS SELECT i AS id, "
        f"'{CANARY}'::text AS name, 20 + i % 20 AS age, (ARRAY['Bonn', 'Lyon'])[1 + i % 2] AS town, "
        "(ARRAY['flu', 'gout', 'mumps'])[1 + i % 3] AS ill FROM generate_series(1, 120) i",
    )
    path = tmp_path / "people.toml"
    path.write_text(JOB)
    return path


def test_a_job_that_runs_twice_is_published_and_verified_twice(job: Path, server: Server) -> None:
    runs = []
    for _ in range(2):
        result = run_job(job)
        assert result.written["release"] == "postgres: released"
        manifest = read_manifest(result.written["manifest"])
        assert manifest["target"]["rows"] == 120
        assert verify_files(result.written["manifest"]) == []
        runs.append(manifest["run"]["run"])
        ((smallest,),) = server.rows("SELECT min(n) FROM (SELECT count(*) n FROM released GROUP BY age, town) c")
        assert smallest >= 4
        ((comment,),) = server.rows("SELECT obj_description('released'::regclass)")
        assert runs[-1] in comment
    assert runs[0] != runs[1]
    columns = (
        "SELECT column_name FROM information_schema.columns WHERE table_name = 'released' ORDER BY ordinal_position"
    )
    assert [name for (name,) in server.rows(columns)] == ["age", "town", "ill"]


def test_verify_asks_the_server(job: Path, server: Server) -> None:
    manifest = run_job(job).written["manifest"]
    assert not verify_export(manifest).intact
    found = verify_export(manifest, database=server.uri)
    assert found.intact, found.problems
    server.run("DELETE FROM released WHERE ctid = (SELECT min(ctid) FROM released)")
    changed = verify_export(manifest, database=server.uri)
    assert changed.problems == ["The table 'released' does not hold the rows that were published."]


def test_what_a_killed_run_left_is_finished_by_verify(
    job: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = read_manifest(run_job(job).written["manifest"])["run"]["run"]
    with monkeypatch.context() as patched:

        def die(*_: object) -> None:
            raise KeyboardInterrupt

        patched.setattr("duckanon.io.sinks.tables.TableReports.finished", die)
        patched.setattr("duckanon.io.sinks.postgres.PostgresTable._take_back", lambda _: None)
        with pytest.raises(KeyboardInterrupt):
            run_job(job)
    reports = job.parent / "reports"
    with pytest.raises(errors.DataError, match="give the address of the server"):
        verify_export(reports)
    assert read_manifest(reports / "released.manifest.json")["run"]["run"] == first
    found = verify_export(reports, database=server.uri)
    assert found.intact, found.problems
    assert found.exports[0].run != first
    assert not [p for p in reports.iterdir() if p.name.startswith(".")]


def test_a_server_that_still_commits_is_waited_for(job: Path, server: Server) -> None:
    run_job(job)
    with Session(server.uri, read_only=False) as writer:
        (schema,) = writer.row(exp.select(exp.func("current_schema")))
        key = exp.convert(_lock_key((schema, "released")))
        writer.rows(exp.select(exp.Anonymous(this="pg_advisory_xact_lock", expressions=[key])))
        writer.run("COMMENT ON TABLE released IS 'duckanon release: later'")
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(published_comment, server.uri, "released", settled=True)
            with pytest.raises(TimeoutError):
                asked.result(timeout=0.5)
            assert published_comment(server.uri, "released") != "later"
            writer.commit()
            assert asked.result(timeout=10) == "later"


def test_nothing_secret_is_left(job: Path) -> None:
    run_job(job)
    for path in job.parent.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert PASSWORD.encode() not in content, path
            assert CANARY.encode() not in content, path
    assert (job.parent / "people.prom").read_text()
    assert json.loads((job.parent / "lineage.jsonl").read_text().splitlines()[-1])["eventType"] == "COMPLETE"


def test_the_last_table_stays(job: Path, server: Server) -> None:
    run_job(job)
    before = server.rows("SELECT age, town, ill FROM released ORDER BY 1, 2, 3")
    server.run("ALTER TABLE people ADD COLUMN ssn text")
    with pytest.raises(errors.UnlistedColumnError) as caught:
        run_job(job)
    assert exit_code(caught.value) == 3
    server.run("ALTER TABLE people DROP COLUMN ssn", "DELETE FROM people WHERE id > 10")
    with pytest.raises(errors.DataError, match="10 rows and had 120"):
        run_job(job)
    assert server.rows("SELECT age, town, ill FROM released ORDER BY 1, 2, 3") == before


def test_the_gate_sees_what_the_server_holds(job: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    run_job(job)
    before = server.rows("SELECT age, town, ill FROM released ORDER BY 1, 2, 3")

    def refuse(*_: object) -> None:
        raise errors.PrivacyViolation("no")

    monkeypatch.setattr("duckanon.release.release.Release.verify_rows", refuse)
    with pytest.raises(errors.PrivacyViolation):
        run_job(job)
    assert server.rows("SELECT age, town, ill FROM released ORDER BY 1, 2, 3") == before
    monkeypatch.undo()
    monkeypatch.setenv("DUCKANON_TEST_URI", server.uri)
    assert run_job(job).written


def test_a_table_of_somebody_else_is_not_replaced(job: Path, server: Server) -> None:
    server.run("CREATE TABLE released AS SELECT 1 AS age")
    with pytest.raises(errors.DuckanonError):
        run_job(job)
    assert server.rows("SELECT age FROM released") == [(1,)]
