"""The history in numbers: drift in words, and a chart for the terminal."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from duckanon.jobs.nights import State, chart, chart_table, drift
from duckanon.jobs.nights.history import flat, spark


def record(run: int, rows: int = 1000, outcome: str = "published", **changes: Any) -> dict[str, Any]:
    size = {"min": 5, "q25": 6, "median": 7, "mean": 7.5, "q75": 9, "max": 20}
    found = {"rows_in": rows, "rows_published": rows - 10, "rows_suppressed": 10, "suppressed_share": 10 / rows}
    loss = changes.pop("loss", 0.3)
    summary = {
        "duckanon": "1",
        "engine": {"name": "duckdb", "version": "2.0"},
        "found": {**found, "classes": 100, "class_size": size},
        "loss": [
            {"metric": "loss", "attribute": "age", "value": 9.0},
            {"metric": "loss", "attribute": None, "value": loss},
            {"metric": "gcp", "attribute": None, "value": float("nan")},
        ],
    }
    given = {"run": f"r{run}", "started": f"2026-01-{run % 28 + 1:02}T02:00:00Z", "seconds": 2.0, "outcome": outcome}
    return {**given, "summary": summary if outcome == "published" else None, "held_back": 3, **changes}


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State.open(tmp_path / "state")


def filled(state: State, *rows: int) -> State:
    for i, n in enumerate(rows):
        state.append(record(i, n))
    return state


def test_a_record_becomes_one_row() -> None:
    row = flat(record(1))
    assert row["loss"] == 0.3
    assert row["ncp"] is None, "not a number is no figure"
    assert (row["class_size_min"], row["class_size_mean"], row["engine"]) == (5, 7.5, "duckdb 2.0")
    assert set(flat({}).values()) == {None}


def test_a_run_like_the_others_is_not_worth_a_word(state: State) -> None:
    filled(state, *range(1000, 1014))
    assert drift(state.history(), record(20, 1020)) == []
    assert drift(state.history(), record(20, 1090)) == [], "far by MAD, but within a tenth"


def test_half_the_rows_and_more_loss_are_said(state: State) -> None:
    filled(state, *range(1000, 1014))
    found = drift(state.history(), record(20, 500, loss=0.5))
    assert any(w.startswith("rows of the source: 500, far less than usual") for w in found)
    assert any(w.startswith("loss: 0.5000, far more") for w in found)
    assert not any(w.startswith("smallest class") for w in found)


def test_a_table_that_is_never_twice_the_same_may_move(state: State) -> None:
    filled(state, *(1000 + 300 * (-1) ** i for i in range(14)))
    assert not [w for w in drift(state.history(), record(20, 1500)) if w.startswith("rows of the source")]


def test_some_odd_runs_do_not_hide_another(state: State) -> None:
    filled(state, *[1000] * 9, *[9] * 5)
    assert any("rows of the source: 9" in w for w in drift(state.history(), record(20, 9)))


def test_a_few_runs_tell_nothing_and_failed_ones_do_not_count(state: State) -> None:
    filled(state, *[1000] * 4)
    for i in range(5, 9):
        state.append(record(i, outcome="failed"))
    assert drift(state.history(), record(20, 10)) == []
    state.append(record(9))
    assert drift(state.history(), record(20, 10))
    assert drift(state.history(), record(21, outcome="failed", held_back=None)) == []


def test_lines_of_bars() -> None:
    assert spark([]) == ""
    assert spark([None, None]) == "··"
    assert spark([0, 7]) == "▁█"


def test_the_chart_has_a_bar_for_each_run(state: State) -> None:
    assert chart(state.history()) == "no runs yet"
    filled(state, *range(1000, 1040))
    state.append(record(41, outcome="failed"))
    lines = chart(state.history()).splitlines()
    assert lines[0] == "30 runs from 2026-01-12 to 2026-01-14, 1 failed"
    rows = next(line for line in lines if line.startswith("rows of the source"))
    assert rows.split()[4] == spark([*range(1011, 1040), None])
    assert rows.split()[5:] == ["1,011", "1,039", "1,039"]
    assert not any(line.startswith("NCP") for line in lines), "no run has it"
    assert max(map(len, lines)) <= 80


def test_the_table_for_rich_fits_a_terminal(state: State) -> None:
    filled(state, *range(1_000_000, 1_000_040))
    screen = io.StringIO()
    Console(file=screen, width=90).print(chart_table(state.history()))
    text = screen.getvalue()
    assert "…" not in text
    assert "1,000,039" in text
    assert spark(list(range(30))) in text
