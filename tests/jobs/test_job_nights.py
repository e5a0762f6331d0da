"""A job over several nights: recodings that are kept, rows that wait, and releases compared."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duckanon import errors
from duckanon.engine.process import data_folder
from duckanon.io.sinks import ParquetFile
from duckanon.jobs import exit_code, run_job
from duckanon.jobs.nights import State
from duckanon.testing.hospital import write_hospital
from tests.jobs.jobs import PEOPLE, ROWS, STATE, files, fill, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fill(tmp_path)


def nightly(folder: Path, *lines: str, k: int = 4) -> Path:
    return write(folder, ("[output]", "\n".join(["[nights]", *lines, "[output]"])), ("k = 4", f"k = {k}"))


def levels(result) -> dict[str, int]:
    return {h["attribute"]: h["level"] for h in result.summary["hierarchies"]}


def arrived(folder: Path) -> None:
    """One person comes who is alone in a town that the others are not in."""
    one = pa.table({"id": [9], "name": ["x"], "age": [20], "town": ["Graz"], "ill": ["flu"]})
    pq.write_table(pa.concat_tables([PEOPLE, one]), folder / "people.parquet")
    (folder / "town.csv").write_text("Bonn;DE;*\nLyon;FR;*\nGraz;AT;*\n")


def test_a_frozen_recoding_holds_back_what_is_too_small(folder: Path) -> None:
    path = nightly(folder, 'recoding = "frozen"')
    first = run_job(path)
    arrived(folder)
    second = run_job(path)
    assert levels(first) == levels(second)
    assert second.summary["found"]["rows_published"] == ROWS
    assert any("1 row is held back" in note for note in second.summary["notes"])
    assert "1 row is held back" in (folder / "out" / "people.report.md").read_text()
    history = (folder / STATE / "job" / "history.jsonl").read_text().splitlines()
    assert [json.loads(line)["held_back"] for line in history] == [0, 1]


def test_refresh_finds_a_new_one(folder: Path) -> None:
    path = nightly(folder, 'recoding = "frozen"')
    run_job(path)
    arrived(folder)
    third = run_job(path, recoding="refresh")
    # The one who came may be suppressed, but nothing is held back.
    assert not any("held back" in note for note in third.summary["notes"])
    assert levels(run_job(path)) == levels(third)


def test_a_dry_run_keeps_nothing(folder: Path) -> None:
    path = nightly(folder, 'recoding = "frozen"')
    run_job(path)
    state = {p: p.read_bytes() for p in (folder / STATE).rglob("*") if p.is_file() and p.suffix != ".lock"}
    arrived(folder)
    assert run_job(path, dry_run=True).summary["found"]["rows_suppressed"] == 1
    assert {p: p.read_bytes() for p in (folder / STATE).rglob("*") if p.is_file() and p.suffix != ".lock"} == state


def test_two_releases_that_break_k_together(folder: Path) -> None:
    path = nightly(folder, 'intersection = "stop"')
    run_job(path)
    # Ages move by one: everybody's class is another, in groups of few.
    moved = PEOPLE.set_column(2, "age", pa.array([20 + (i * 7) % 20 for i in range(ROWS)]))
    pq.write_table(moved, folder / "people.parquet")
    before = files(folder)
    with pytest.raises(errors.InfeasibleError, match="persons in both are in groups of fewer than 4") as caught:
        run_job(path)
    assert exit_code(caught.value) == 4
    assert files(folder) == before
    warned = run_job(write(folder))
    assert any("in groups of fewer than 4" in w for w in warned.tables[0].warnings)
    assert run_job(nightly(folder, 'intersection = "off"')).tables[0].warnings == ()


def test_two_runs_exclude_each_other(folder: Path) -> None:
    from duckanon.io.sinks import locked

    path = write(folder)
    run_job(path)
    with (
        locked(folder / STATE / "run"),
        pytest.raises(errors.EngineError, match=r"Another run of 'job\.toml'") as caught,
    ):
        run_job(path)
    assert exit_code(caught.value) == 6


def test_a_state_that_others_can_write_to(folder: Path) -> None:
    (folder / STATE).mkdir()
    (folder / STATE).chmod(0o777)
    with pytest.raises(errors.EngineError, match="can be written to by other users") as caught:
        run_job(write(folder))
    assert exit_code(caught.value) == 6


@pytest.mark.parametrize("algorithm", ['name = "mdav"', 'name = "mondrian"\nrelaxed = true'])
def test_what_cannot_be_frozen_is_said(folder: Path, algorithm: str) -> None:
    path = nightly(folder, 'recoding = "frozen"')
    path.write_text(path.read_text().replace('name = "datafly"\nstop = "limit"', algorithm))
    with pytest.raises(errors.UnsupportedError, match="cannot be frozen") as caught:
        run_job(path)
    assert exit_code(caught.value) == 2


@pytest.mark.parametrize("persons", [True, False])
def test_the_demo_is_published_again_as_it_was(tmp_path: Path, persons: bool) -> None:
    write_hospital(tmp_path / "hospital.parquet", 3000)
    stop = "intersection = 'stop'" if persons else ""
    text = (data_folder("examples") / "hospital.toml").read_text()
    text = text.replace("[output]", f"[nights]\nrecoding = 'frozen'\n{stop}\n[output]")
    if not persons:
        text = text.replace('entity_key = "patient_id"', "").replace('= ["name",', '= ["patient_id", "name",')
    path = tmp_path / "hospital.toml"
    path.write_text(text)
    released = []
    for _ in range(2):
        result = run_job(path)
        table = pq.read_table(tmp_path / "release" / "hospital.parquet")
        released.append(sorted(str(row) for row in table.to_pylist()))
        assert result.tables[0].warnings == ()
    assert released[0] == released[1]


class Killed(BaseException):
    """What a run cannot answer."""


def kill(patch: pytest.MonkeyPatch, at: str) -> None:
    def dying(*given: object) -> None:
        raise Killed

    if at == "published":
        settle = State.settle
        patch.setattr(State, "settle", lambda own, run: dying() if own.pending() is not None else settle(own, run))
    else:
        patch.setattr("duckanon.io.sinks.commit.carry_out", dying)
        patch.setattr("duckanon.io.sinks.commit._put_back", lambda *given: None)


FILE = 'path = "out/people.parquet"'
DATED = {
    "file": 'path = "out/{date}/people.parquet"',
    "folder": 'path = "out/{date}/people"\npartition_by = ["town"]',
    "database": 'database = "people-{date}.duckdb"\ntable = "people"',
}


@pytest.mark.parametrize(
    ("where", "at"), [("file", "published"), ("file", "half done"), ("folder", "published"), ("database", "published")]
)
def test_a_run_killed_once_it_had_published_counts_on_the_next_day(
    folder: Path, monkeypatch: pytest.MonkeyPatch, where: str, at: str
) -> None:
    path = nightly(folder, 'recoding = "frozen"', 'intersection = "stop"')
    path.write_text(path.read_text().replace(FILE, DATED[where]))
    with monkeypatch.context() as patch:
        kill(patch, at)
        with pytest.raises(Killed):
            run_job(path, day=date(2026, 3, 1))
    state = State.open(folder / STATE / "job")
    killed = state.pending()
    assert killed is not None
    assert state.last() is None
    arrived(folder)
    assert run_job(path, day=date(2026, 3, 2)).summary["found"]["rows_published"] == ROWS
    last = state.last()
    assert last is not None
    assert last["stored"] == killed["run"]
    assert last["nights"][1:] == [killed["run"]]


TABLE = 'database = "people.duckdb"\ntable = "people"'
ELSEWHERE = 'path = "elsewhere/people.parquet"'


@pytest.mark.parametrize(
    ("before", "after", "at"),
    [
        (FILE, ELSEWHERE, "half done"),
        (FILE, TABLE, "published"),
        (TABLE, FILE, "published"),
        (TABLE, 'database = "people.duckdb"\ntable = "others"', "published"),
        (DATED["file"], 'path = "elsewhere/{date}/people.parquet"', "published"),
    ],
)
def test_a_run_killed_once_it_had_published_counts_although_the_output_was_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str, at: str
) -> None:
    path = nightly(folder, 'recoding = "frozen"', 'intersection = "stop"')
    path.write_text(path.read_text().replace(FILE, before))
    with monkeypatch.context() as patch:
        kill(patch, at)
        with pytest.raises(Killed):
            run_job(path, day=date(2026, 3, 1))
    state = State.open(folder / STATE / "job")
    killed = state.pending()
    assert killed is not None
    path.write_text(path.read_text().replace(before, after))
    arrived(folder)
    (told,) = run_job(path, day=date(2026, 3, 2)).tables
    (warning,) = [w for w in told.warnings if "[output] does not name any more" in w]
    assert "it stays there" in warning
    last = state.last()
    assert last is not None
    assert last["stored"] == killed["run"]
    assert last["nights"][1:] == [killed["run"]]
    # What was published is whole, and nothing is left to be finished.
    assert not list(folder.rglob(".*.commit"))
    if "path" in before:
        (manifest,) = (folder / "out").rglob("people.manifest.json")
        assert json.loads(manifest.read_text())["run"]["run"] == killed["run"]
        assert manifest.with_name("people.parquet").is_file()
    # On the night after there is nothing to be said of it.
    assert not [w for w in run_job(path, day=date(2026, 3, 3)).tables[0].warnings if "any more" in w]


def test_what_is_private_of_a_killed_run_is_removed_where_the_next_one_does_not_write(folder: Path) -> None:
    path = nightly(folder, 'recoding = "frozen"')
    path.write_text(path.read_text().replace(FILE, DATED["file"]))
    run_job(path, day=date(2026, 3, 1))
    left = folder / "out" / "2026-03-01" / ".duckanon-run-killed"
    left.mkdir(mode=0o700)
    (left / "raw.parquet").write_text("private")
    run_job(path, day=date(2026, 3, 2), dry_run=True)
    assert left.is_dir()
    run_job(path, day=date(2026, 3, 2))
    assert not left.exists()
    assert (folder / "out" / "2026-03-01" / "people.parquet").is_file()


def test_a_run_killed_on_a_server_that_was_left_is_asked_for(folder: Path) -> None:
    path = nightly(folder, 'recoding = "frozen"')
    run_job(path)
    before = files(folder)
    state = State.open(folder / STATE / "job")
    state.begin({"table": "people", "server": "of another address", "template": {"table": "people"}})
    state.prepare("killed", {})
    with pytest.raises(errors.JobError, match=r"former \[output\] postgres.*pending\.json") as caught:
        run_job(path)
    assert exit_code(caught.value) == 2
    assert files(folder) == before
    assert state.pending() is not None
    (state.folder / "pending.json").unlink()
    assert run_job(path).written


def test_what_cannot_be_finished_at_a_former_place_stops_the_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = nightly(folder, 'recoding = "frozen"')
    with monkeypatch.context() as patch:
        kill(patch, "half done")
        with pytest.raises(Killed):
            run_job(path)
    path.write_text(path.read_text().replace(FILE, ELSEWHERE))

    def full(own: ParquetFile) -> None:
        if "elsewhere" not in str(own.path):
            raise errors.EngineError("No space left on device.")

    with monkeypatch.context() as patch:
        patch.setattr(ParquetFile, "require_writable", full)
        with pytest.raises(errors.EngineError, match=r"cannot be finished: No space left"):
            run_job(path)
    assert not (folder / "elsewhere").exists()
    assert State.open(folder / STATE / "job").pending() is not None
    assert run_job(path).written


def test_a_run_killed_before_it_published_does_not_count_on_the_next_day(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = nightly(folder, 'recoding = "frozen"')
    path.write_text(path.read_text().replace(FILE, DATED["file"]))
    with monkeypatch.context() as patch:
        patch.setattr("duckanon.io.sinks.files.publish", lambda *given, **more: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            run_job(path, day=date(2026, 3, 1))
    result = run_job(path, day=date(2026, 3, 2))
    last = State.open(folder / STATE / "job").last()
    assert last is not None
    assert last["stored"] == last["run"] == result.run
    assert not list((folder / "out").glob("2026-03-01/*.parquet"))
