"""The state of a job between nights: after a kill at any point it fits what is published."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from duckanon.errors import DataError, EngineError, ParameterError
from duckanon.jobs import exit_code
from duckanon.jobs.nights import State
from duckanon.jobs.nights.history import COLUMNS
from duckanon.jobs.nights.state import MARKER

FACTS: dict[str, Any] = {"rows_in": 10, "columns": {"age": "INTEGER"}}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_folder_is_the_users_own(tmp_path: Path) -> None:
    state = State.open(tmp_path / "a" / "state")
    state.prepare("r1", FACTS)
    state.append({"run": "r1", "outcome": "failed"})
    assert len(state.key()) == 64
    assert mode(state.folder) == 0o700
    assert mode(state.folder / "runs") == 0o700
    assert {mode(p) for p in state.folder.iterdir() if p.is_file()} == {0o600}


def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    for rights in (0o770, 0o702):
        folder.chmod(rights)
        with pytest.raises(EngineError, match="written to by other users") as caught:
            State.open(folder)
        assert exit_code(caught.value) == 6


def test_rights_are_changed_only_of_folders_that_duckanon_made(tmp_path: Path) -> None:
    own = State.open(tmp_path / "own").folder
    own.chmod(0o755)
    State.open(own)
    assert mode(own) == 0o700
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o755)
    theirs.chmod(0o755)
    with pytest.raises(EngineError, match="can be read by other users") as caught:
        State.open(theirs)
    assert exit_code(caught.value) == 6
    assert mode(theirs) == 0o755
    theirs.chmod(0o700)
    assert State.open(theirs).last() is None


@pytest.mark.parametrize("rights", [0o700, 0o755])
def test_a_folder_with_other_things_in_it_stays_as_it_is(tmp_path: Path, rights: int) -> None:
    folder = tmp_path / "etc"
    (folder / "runs").mkdir(parents=True)
    (folder / "runs" / "theirs").write_text("x")
    folder.chmod(rights)
    with pytest.raises(EngineError, match="was not made by duckanon") as caught:
        State.open(folder)
    assert exit_code(caught.value) == 6
    assert mode(folder) == rights
    assert sorted(p.name for p in folder.rglob("*")) == ["runs", "theirs"]


def test_a_marker_that_is_a_link_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o755)
    (tmp_path / "elsewhere").write_text("x")
    (folder / MARKER).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EngineError, match="was not made by duckanon"):
        State.open(folder)


def test_a_link_or_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").write_text("")
    for name in ("link", "file"):
        with pytest.raises(EngineError):
            State.open(tmp_path / name)


def test_before_the_first_night_nothing_is_known(tmp_path: Path) -> None:
    state = State.open(tmp_path / "state")
    assert state.last() is None
    assert state.pending() is None
    assert not state.settle(None)
    assert state.history().num_rows == 0
    assert state.history().column_names == list(COLUMNS)


def test_a_pending_run_that_was_published_becomes_the_last(tmp_path: Path) -> None:
    state = State.open(tmp_path / "state")
    state.prepare("r1", FACTS)
    # Killed after publishing: the next run finds the manifest of r1.
    again = State.open(tmp_path / "state")
    assert again.last() is None
    assert again.settle("r1")
    last = again.last()
    assert last is not None
    assert (last["run"], last["rows_in"], last["columns"]) == ("r1", 10, {"age": "INTEGER"})
    assert again.pending() is None
    assert not again.settle("r1")
    assert again.last() == last


def test_a_pending_run_that_was_not_published_is_forgotten(tmp_path: Path) -> None:
    state = State.open(tmp_path / "state")
    (state.run_folder("r1") / "persons.parquet").write_bytes(b"1")
    state.prepare("r1", FACTS, nights=["r1"])
    state.settle("r1")
    (state.run_folder("r2") / "persons.parquet").write_bytes(b"2")
    state.prepare("r2", {"rows_in": 99}, recoding="r2", nights=["r2", "r1"])
    # Killed before publishing: the manifest is still that of r1.
    assert not state.settle("r1")
    last = state.last()
    assert last is not None
    assert last["run"] == "r1"
    assert [p.name for p in (state.folder / "runs").iterdir()] == ["r1"]


def test_files_of_runs_go_when_nothing_refers_to_them(tmp_path: Path) -> None:
    state = State.open(tmp_path / "state")
    for i in range(1, 5):
        (state.run_folder(f"r{i}") / "persons.parquet").write_bytes(b"1")
        nights = [f"r{j}" for j in range(i, max(0, i - 2), -1)]
        state.prepare(f"r{i}", FACTS, recoding="r1", nights=nights)
        state.settle(f"r{i}")
    # r1 has the recoding in force, r4 and r3 are compared with.
    assert sorted(p.name for p in (state.folder / "runs").iterdir()) == ["r1", "r3", "r4"]


def test_a_run_that_is_not_there_cannot_be_referred_to(tmp_path: Path) -> None:
    state = State.open(tmp_path / "state")
    with pytest.raises(ParameterError):
        state.prepare("r1", FACTS, recoding="r0")
    for odd in ("", "../r1", "a/b", ".", "x" * 200):
        with pytest.raises(ParameterError):
            state.run_folder(odd)


def test_what_a_killed_run_left_half_written_is_swept(tmp_path: Path) -> None:
    state = State.open(tmp_path / "state")
    (state.folder / ".duckanon-0.tmp").write_text('{"run": ')
    state.run_folder("dead")
    state.settle(None)
    assert sorted(p.name for p in state.folder.iterdir()) == [MARKER, "runs"]
    assert not list((state.folder / "runs").iterdir())


@pytest.mark.parametrize("content", ["", "{", "[]", '{"run": "r1"}', "\0\0"])
def test_a_damaged_file_is_said_to_be_damaged(tmp_path: Path, content: str) -> None:
    state = State.open(tmp_path / "state")
    (state.folder / "last.json").write_text(content)
    with pytest.raises(DataError, match="damaged") as caught:
        state.last()
    assert exit_code(caught.value) == 3


def test_a_damaged_key_is_not_replaced(tmp_path: Path) -> None:
    state = State.open(tmp_path / "state")
    assert state.key() == state.key()
    (state.folder / "key").write_text("short")
    with pytest.raises(DataError, match="damaged"):
        state.key()


_KILLED = """
import os, signal, sys
from duckanon.jobs.nights import State
state, point = State.open(sys.argv[1]), int(sys.argv[2])
count = 0
def stop(*_):
    global count
    count += 1
    if count == point:
        os.kill(os.getpid(), signal.SIGKILL)
for name in ("fsync", "rename", "replace"):
    own = getattr(os, name)
    setattr(os, name, lambda *a, own=own, **k: (stop(), own(*a, **k))[1])
state.settle("r1")
(state.run_folder("r2") / "persons.parquet").write_bytes(b"2")
state.prepare("r2", {"rows_in": 2}, recoding="r2", nights=["r2", "r1"])
open(sys.argv[3], "w").write("r2")
state.settle("r2")
state.append({"run": "r2", "outcome": "published"})
"""


def test_killed_at_any_point_the_state_fits_what_is_published(tmp_path: Path) -> None:
    finished = False
    for point in range(1, 40):
        folder, manifest = tmp_path / f"s{point}", tmp_path / f"m{point}"
        state = State.open(folder)
        (state.run_folder("r1") / "persons.parquet").write_bytes(b"1")
        state.prepare("r1", {"rows_in": 1}, recoding="r1", nights=["r1"])
        state.settle("r1")
        manifest.write_text("r1")
        arguments = [sys.executable, "-c", _KILLED, str(folder), str(point), str(manifest)]
        done = subprocess.run(arguments, env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}, check=False)
        state = State.open(folder)
        there = manifest.read_text()
        state.settle(there)
        last = state.last()
        assert last is not None
        assert (last["run"], last["rows_in"]) == (there, int(there[1:]))
        kept = {last["stored"], *last["nights"]}
        assert {p.name for p in (folder / "runs").iterdir()} == kept
        assert all((state.run_folder(run) / "persons.parquet").read_bytes() for run in kept)
        state.history()
        if done.returncode == 0:
            finished = True
            break
    assert finished, "there are more points than were tried"
    assert point > 8


def record(run: str, **changes: Any) -> dict[str, Any]:
    return {"run": run, "started": "2026-01-01T02:00:00Z", "seconds": 1.5, "outcome": "published", **changes}


def test_a_torn_last_line_is_passed_over_and_cut_off(tmp_path: Path) -> None:
    state = State.open(tmp_path / "state")
    state.append(record("r1"))
    state.append(record("r2"))
    whole = state.history_path.read_bytes()
    torn = len(whole.splitlines(keepends=True)[0])
    for length in (torn + 1, len(whole) - 1):
        state.history_path.write_bytes(whole[:length])
        assert state.history().column("run").to_pylist() == ["r1"]
        state.append(record("r3"))
        assert state.history().column("run").to_pylist() == ["r1", "r3"]
        json.loads(state.history_path.read_text().splitlines()[1])
        state.history_path.write_bytes(whole)


def test_duckdb_reads_the_history(tmp_path: Path) -> None:
    state = State.open(tmp_path / "state")
    error = {"type": "DataError", "message": "Too few rows."}
    state.append(record("r1", outcome="failed", exit_code=3, error=error))
    state.append(record("r2", held_back=4, recoding="frozen"))
    query = "SELECT run, outcome, error, held_back, rows_in FROM read_json(?) ORDER BY run"
    with duckdb.connect() as connection:
        found = connection.execute(query, [str(state.history_path)]).fetchall()
    assert found == [("r1", "failed", "DataError", None, None), ("r2", "published", None, 4, None)]
    assert json.loads(state.history_path.read_text().splitlines()[0])["reason"] == "Too few rows."
