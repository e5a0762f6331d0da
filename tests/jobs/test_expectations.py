"""What stops a job although a release could be made, and what it takes to go on."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duckanon import errors
from duckanon.engine.sql.relations import Column
from duckanon.io.sinks import read_manifest
from duckanon.jobs import Expect, exit_code, load_job, run_job
from duckanon.jobs.expectations import check_rows, check_schema, plain_type
from duckanon.jobs.nights import State
from tests.jobs.jobs import CANARY, PEOPLE, ROWS, STATE, fill, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fill(tmp_path)


def expecting(folder: Path, *lines: str) -> Path:
    return write(folder, ("[output]", "\n".join(["[expect]", *lines, "[output]"])))


def tell(folder: Path) -> None:
    """Let everybody in Bonn have one value: half of the classes are of that town."""
    towns = PEOPLE["town"].to_pylist()
    ills = ["flu" if town == "Bonn" else ill for town, ill in zip(towns, PEOPLE["ill"].to_pylist(), strict=True)]
    pq.write_table(PEOPLE.set_column(4, "ill", pa.array(ills)), folder / "people.parquet")


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("min_rows = 41", 3, "has 40 rows, expected at least 41"),
        ("max_rows = 39", 3, "has 40 rows, expected at most 39"),
        ('types = {age = "INTEGER"}', 3, "'age' is BIGINT, expected INTEGER"),
        ('types = {agee = "BIGINT"}', 3, "'agee', which the source does not have. Did you mean 'age'"),
        ("max_loss = {gcp = 0.0}", 4, "gcp is 0.[0-9]+: more than the 0 of"),
        ("max_loss = {precision = 1.0}", 4, "precision is 0.[0-9]+: less than the 1 of"),
        ("max_homogeneous = 0", 4, r"4 of 8 classes have one value of 'ill' \(50.00%\): more than the 0 of"),
        ("max_homogeneous = 1", 4, "more than the 1 of"),
        ("max_homogeneous = 0.49", 4, "more than the 49.00% of .expect. max_homogeneous. Require l or t"),
        ("max_homogeneous = {ILL = 0.0}", 4, "4 of 8 classes have one value of 'ill'"),
        ("max_homogeneous = {il = 1}", 2, "'il', which is no sensitive column. Did you mean 'ill'"),
        ("max_homogeneous = -1", 2, "a whole number of classes, a share of them such as 0.05"),
    ],
)
def test_expectations_stop_a_job(folder: Path, line: str, code: int, words: str) -> None:
    if "max_homogeneous" in line:
        tell(folder)
    with pytest.raises(errors.DuckanonError, match=words) as caught:
        run_job(expecting(folder, line))
    assert exit_code(caught.value) == code
    assert not (folder / "out").exists()


@pytest.mark.parametrize("bound", ["4", "0.5", "1.0", "{ill = 4}"])
def test_classes_that_tell_are_warned_of_and_kept_in_the_history(
    folder: Path, bound: str, caplog: pytest.LogCaptureFixture
) -> None:
    tell(folder)
    path = expecting(folder, f"max_homogeneous = {bound}")
    with caplog.at_level("WARNING", "duckanon"):
        run_job(path)
    assert "4 of 8 classes have one value of 'ill'" in caplog.text
    job = load_job(path)
    assert State.open(job.state / "job").history().column("homogeneous").to_pylist() == [4]
    page = (folder / "out" / "people.report.html").read_text(encoding="utf-8")
    assert page.count("4 of 8 classes have one value of") == 1


def test_no_classes_to_count_and_no_sensitive_column(folder: Path) -> None:
    hidden = ('[algorithm]\nname = "datafly"\nstop = "limit"\n', '[algorithm]\nname = "probabilistic"\n')
    expected = ("[output]", "[expect]\nmax_homogeneous = 5\n[output]")
    with pytest.raises(errors.InfeasibleError, match="max_homogeneous is not verified"):
        run_job(write(folder, hidden, expected, ("suppression_limit = 0.1\n", "")))
    with pytest.raises(errors.JobError, match=r"is about sensitive columns, and \[roles\] has none"):
        load_job(write(folder, expected, ('sensitive = ["ill"]', 'insensitive = ["ill"]')))


def test_expectations_that_hold(folder: Path) -> None:
    lines = ["min_rows = 40", "max_rows = 40", 'types = {age = "bigint"}', "max_loss = {gcp = 1.0}"]
    assert run_job(expecting(folder, *lines, "max_suppressed = 1.0")).written


def test_more_suppressed_than_expected(folder: Path) -> None:
    # One town has a row too few, and may be left out by the promise, but not by the expectation.
    towns = ["Bonn"] * 37 + ["Lyon"] * 3
    pq.write_table(PEOPLE.set_column(3, "town", pa.array(towns)), folder / "people.parquet")
    steering = "[steering]\nlevels = {age = 2, town = 0}\n[output]"
    found = run_job(write(folder, ("[output]", steering)), dry_run=True)
    assert found.summary["found"]["rows_suppressed"] == 3
    with pytest.raises(errors.InfeasibleError, match=r"3 of 40 rows \(7\.50%\) would be suppressed") as caught:
        run_job(write(folder, ("[output]", f"[expect]\nmax_suppressed = 0.05\n{steering}")))
    assert exit_code(caught.value) == 4


def halve(folder: Path) -> None:
    pq.write_table(PEOPLE.slice(0, ROWS // 2 - 1), folder / "people.parquet")


def test_drift_is_accepted_once(folder: Path) -> None:
    path = write(folder)
    run_job(path)
    halve(folder)
    with pytest.raises(errors.DataError, match=r"19 rows and had 40 in the last published run.*--accept-drift"):
        run_job(path)
    assert run_job(path, accept_drift=True).summary["found"]["rows_in"] == 19
    # From now on this is what is usual.
    assert run_job(path).summary["found"]["rows_in"] == 19


def test_how_far_rows_may_fall_and_grow(folder: Path) -> None:
    path = expecting(folder, "rows_may_fall = 0.6", "rows_may_grow = 0.5")
    halve(folder)
    run_job(path)
    pq.write_table(PEOPLE, folder / "people.parquet")
    with pytest.raises(errors.DataError, match="it grew by more than 50%"):
        run_job(path)
    assert run_job(path, accept_drift=True).written
    halve(folder)
    assert run_job(path).written


def test_a_failed_run_is_not_what_later_runs_are_compared_with(folder: Path) -> None:
    path = write(folder)
    run_job(path)
    halve(folder)
    for _ in range(2):
        with pytest.raises(errors.DataError, match="had 40"):
            run_job(path)


def test_types_may_change_where_the_job_says_so(folder: Path) -> None:
    path = expecting(folder, 'schema = "any"')
    run_job(path)
    pq.write_table(PEOPLE.set_column(2, "age", PEOPLE["age"].cast(pa.int16())), folder / "people.parquet")
    assert run_job(path).written
    pq.write_table(PEOPLE, folder / "people.parquet")
    with pytest.raises(errors.DataError, match="'age' was SMALLINT and is BIGINT"):
        run_job(write(folder))


def test_values_of_enumerations_are_not_told() -> None:
    before = {"columns": {"c": plain_type("ENUM('secret', 'it''s)')")}}
    assert before == {"columns": {"c": "ENUM"}}
    check_schema([Column("c", "ENUM('other')")], Expect(), before, ["c"])
    with pytest.raises(errors.DataError, match="'c' was ENUM and is VARCHAR"):
        check_schema([Column("c", "VARCHAR")], Expect(), before, ["c"])


def test_a_column_that_nobody_named_may_go() -> None:
    before = {"columns": {"c": "VARCHAR", "d": "VARCHAR"}}
    check_schema([Column("c", "VARCHAR")], Expect(), before, ["c"])
    with pytest.raises(errors.DataError, match="'d' is missing"):
        check_schema([Column("c", "VARCHAR")], Expect(), before, ["c", "D"])


def test_exactly_half_may_go() -> None:
    check_rows(20, Expect(), {"rows_in": 40})
    with pytest.raises(errors.DataError):
        check_rows(19, Expect(), {"rows_in": 40})


def test_the_state_has_no_value_and_is_private(folder: Path) -> None:
    written = run_job(write(folder)).written
    state = folder / STATE
    assert state.stat().st_mode & 0o777 == 0o700
    texts = [p for p in state.rglob("*") if p.is_file() and p.suffix in (".json", ".jsonl")]
    assert texts
    for path in texts:
        for cell in (CANARY, "Bonn", "Lyon", "flu", "7301007"):
            assert cell not in path.read_text()
    (line,) = (state / "job" / "history.jsonl").read_text().splitlines()
    row = json.loads(line)
    assert (row["outcome"], row["exit_code"], row["rows_in"]) == ("published", 0, ROWS)
    assert read_manifest(written["manifest"])["run"]["run"] == row["run"]


def test_failures_are_in_the_history(folder: Path) -> None:
    path = expecting(folder, "min_rows = 100")
    with pytest.raises(errors.DataError):
        run_job(path)
    (line,) = (folder / STATE / "job" / "history.jsonl").read_text().splitlines()
    row = json.loads(line)
    assert (row["outcome"], row["exit_code"], row["error"], row["rows_in"]) == ("failed", 3, "DataError", None)
    page = (folder / STATE / "job" / "failure.html").read_text()
    assert "expected at least 100" in page
    assert CANARY not in page
    run_job(write(folder))
    assert not (folder / STATE / "job" / "failure.html").exists()


def test_time_is_up(folder: Path) -> None:
    rows = pa.table({c: pa.concat_arrays([PEOPLE[c].combine_chunks()] * 5000) for c in PEOPLE.column_names})
    pq.write_table(rows, folder / "people.parquet")
    path = write(folder, ("[output]", '[limits]\ntime = "0s"\n[output]'))
    with pytest.raises(errors.EngineError, match=r"longer than the 0 s of \[limits\] time") as caught:
        run_job(path)
    assert exit_code(caught.value) == 6
    assert not (folder / "out").exists()
    assert load_job(write(folder, ("[output]", '[limits]\ntime = "90min"\n[output]'))).seconds == 5400
