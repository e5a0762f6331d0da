"""The lattice on the terminal, and the report of a search."""

from __future__ import annotations

from pathlib import Path

import pytest

import duckanon
from tests.interfaces.cli.tools import ANSI, JOB, call, document, terminal

OPTIMAL = "[algorithm]\nname = 'optimal'\nmetric = 'precision'\n"


def lines(result):
    assert result.exit_code == 0, result.output
    assert (result.stderr, "\x1b" in result.stdout) == ("", False)
    return result.stdout.splitlines()


def expected(**more):
    given = {"quasi_identifiers": ["age", "zip"], "sensitive": ["ill"], "k": 3, "suppression_limit": 0.1}
    return duckanon.lattice("people.parquet", **given, **more).to_pylist()


def test_the_best_come_first(people):
    rows = expected()
    good = sorted((row for row in rows if row["anonymous"]), key=lambda row: row["loss"])
    found = lines(call("lattice", "job.toml", "--top", "3"))
    assert found[0] == f"people.parquet: {len(rows)} nodes, {len(good)} of them anonymous"
    assert [line.split()[0] for line in found[1:]] == [row["node"] for row in good[:3]]
    assert found[1].startswith(f"{good[0]['node']} (")
    assert f": loss {good[0]['loss']:.3f}, risk " in found[1]
    assert len(lines(call("lattice", "job.toml", "--top", "0"))) == 1 + len(good)


def test_json_and_the_front(people):
    told = document(call("lattice", "job.toml", "--pareto", "-m", "precision,loss", "--json"))
    front = expected(metrics=["precision", "loss"], pareto=True)
    assert told["best"] == front
    assert (told["metrics"], told["pareto"], told["nodes"]) == (["precision", "loss"], True, len(expected()))


def test_none_is_anonymous(people):
    limits = "[steering]\nmax_levels = {age = 0, zip = 0}\n"
    Path("bad.toml").write_text(JOB + limits)
    found = lines(call("lattice", "bad.toml"))
    assert found[0] == "people.parquet: 1 node, 0 of them anonymous"
    assert found[1].startswith("0,0 (all as they are): loss ")
    assert lines(call("lattice", "bad.toml", "--pareto"))[1:] == []


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("job.toml", "--metric", "los"), 2, "Did you mean 'loss'"),
        (("job.toml", "--most", "2"), 2, "more than the 2 that are listed"),
        (("none.toml",), 2, "no such job file"),
    ],
)
def test_errors(people, words, code, message):
    result = call("lattice", *words)
    assert (result.exit_code, message in result.stderr) == (code, True), result.output


def test_a_run_says_how_the_search_went(people):
    Path("best.toml").write_text(JOB + OPTIMAL)
    told = document(call("run", "best.toml", "--json", "--dry-run"))["summary"]["search"]
    assert (told["metric"], told["optimal"]) == ("precision", True)
    found = lines(call("run", "best.toml", "--dry-run"))
    (line,) = [line for line in found if line.startswith("search: ")]
    assert line.startswith(f"search: {told['visited']} of {told['nodes']} nodes visited; precision ")
    assert line.endswith(", and no node is better")
    Path("plain.toml").write_text(JOB + '[algorithm]\nname = "datafly"\n')
    (plain,) = [line for line in lines(call("run", "plain.toml", "--dry-run")) if line.startswith("search: ")]
    assert plain.endswith(" nodes visited")


@pytest.mark.parametrize(
    ("columns", "words", "title"),
    [(60, (), "Best first by loss"), (80, ("--pareto",), "The front of risk and loss")],
)
@pytest.mark.thinned(2)
def test_screens_fit_the_terminal(people, columns, words, title):
    code, drawn = terminal("lattice", "job.toml", "--top", "1", *words, columns=columns)
    assert code == 0, drawn
    text = ANSI.sub("", drawn)
    assert all(len(line) <= columns for line in text.splitlines())
    assert title in text
    assert "more (--top 0 shows all)" in " ".join(text.split())


def test_a_run_on_a_terminal(people):
    Path("best.toml").write_text(JOB + OPTIMAL)
    code, drawn = terminal("run", "best.toml", "--dry-run")
    assert code == 0, drawn
    assert "nodes visited; precision" in " ".join(ANSI.sub("", drawn).split())
