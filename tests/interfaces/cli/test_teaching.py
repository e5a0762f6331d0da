"""The commands about tasks: utility and tune."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import duckanon
from tests.datasets import earners as people
from tests.interfaces.cli.tools import ANSI, call, document, terminal

JOB = """
[source]
path = "people.parquet"
[roles]
identifiers = ["id"]
quasi_identifiers = ["age", "trade"]
insensitive = ["hours", "pay"]
[hierarchies]
age = { rule = "intervals", width = 5, factors = [2, 2] }
[privacy]
k = 4
[algorithm]
name = "datafly"
[output]
path = "release/people.parquet"
"""
LEARN = ("--target", "pay", "--learner", "decision_tree", "--seeds", "2")


@pytest.fixture
def earners(in_folder: Path) -> Path:
    pq.write_table(people(600), "people.parquet")
    Path("job.toml").write_text(JOB)
    return in_folder


def test_utility_of_a_job_holds_rows_out_first(earners):
    result = call("utility", "people.parquet", "job.toml", *LEARN, "--queries", "50", "--average", "hours")
    assert result.exit_code == 0, result.stderr
    assert "job.toml: predicting pay, 120 held-out rows" in result.stdout
    assert "decision_tree, trained on release (midpoint), tested on release: accuracy" in result.stdout
    assert "zero_rule, trained on raw rows, tested on raw: accuracy 0.5" in result.stdout
    assert "count queries: median error" in result.stdout
    assert "in-sample" not in result.stdout
    assert not Path("release").exists(), "nothing is published"


def test_utility_json_is_the_one_of_python(earners):
    found = document(call("utility", "people.parquet", "job.toml", *LEARN, "--seed", "3", "--json"))
    parts = duckanon.utility.split("people.parquet", target="pay", seed=3)
    wanted = duckanon.utility.trial(
        parts,
        lambda rows: duckanon.anonymize(
            rows,
            quasi_identifiers=["age", "trade"],
            insensitive=["hours", "pay"],
            hierarchies={"age": {"rule": "intervals", "width": 5, "factors": [2, 2]}},
            k=4,
            algorithm="datafly",
        ),
        learners=["decision_tree"],
        seeds=2,
    )
    assert found["summary"] == wanted.summary().to_pylist()
    assert (found["in_sample"], found["train_rows"], found["test_rows"]) == (False, 480, 120)


def test_a_released_file_is_in_sample_unless_its_rows_were_held_out(earners):
    assert call("run", "job.toml").exit_code == 0
    told = call("utility", "people.parquet", "release/people.parquet", "--job", "job.toml", *LEARN)
    assert "120 rows tested (in-sample)" in told.stdout
    assert "note: in-sample" in told.stdout
    parts = duckanon.utility.split("people.parquet", target="pay")
    pq.write_table(parts.train, "people.parquet")
    pq.write_table(parts.test, "held.parquet")
    assert call("run", "job.toml").exit_code == 0
    words = ("utility", "people.parquet", "release/people.parquet", "--job", "job.toml", "--test", "held.parquet")
    honest = document(call(*words, *LEARN, "--queries", "20", "--html", "page.html", "--json"))
    assert honest["in_sample"] is False
    assert honest["queries"]["summary"][0]["queries"] == 20
    page = Path("page.html").read_text()
    assert "Predicting pay" in page
    assert "Range queries" in page


def test_utility_on_a_terminal(earners):
    code, drawn = terminal("utility", "people.parquet", "job.toml", *LEARN, "--queries", "20", columns=100)
    text = ANSI.sub("", drawn)
    assert code == 0
    assert "predicting pay, cells read by midpoint" in text
    assert "Kept of the gain from raw rows" in text
    assert "…" not in text


def test_utility_needs_what_it_cannot_guess(earners):
    assert call("utility", "people.parquet", "job.toml").exit_code == 2
    assert call("utility", "people.parquet", "job.toml", "--job", "job.toml", *LEARN).exit_code == 2
    wrong = call("utility", "people.parquet", "job.toml", "--target", "pai")
    assert (wrong.exit_code, "Did you mean 'pay'" in wrong.stderr) == (2, True)
    bare = call("utility", "people.parquet", "people.parquet", *LEARN, "--queries", "5")
    assert (bare.exit_code, "needs --job" in bare.stderr) == (2, True)


def test_tune_writes_a_job_that_runs(earners):
    words = ("tune", "job.toml", "--target", "pay", "--learner", "decision_tree", "--seeds", "1", "-k", "4,12")
    result = call(*words, "--algorithm", "datafly", "-o", "best.toml", "--picture", "f.png")
    assert result.exit_code == 0, result.stderr
    assert "4 candidates tried" in result.stdout
    assert "on rows held out from the search" in result.stdout
    assert "job: best.toml" in result.stdout
    assert Path("f.png").read_bytes().startswith(b"\x89PNG")
    assert tomllib.loads(Path("best.toml").read_text())["privacy"]["k"] in (4, 12)
    assert call("run", "best.toml").exit_code == 0


@pytest.mark.slow
def test_tune_goes_on_and_says_what_is_left(earners):
    words = ("tune", "job.toml", "--target", "pay", "--learner", "decision_tree", "--seeds", "1", "-k", "4")
    found = document(call(*words, "--algorithm", "datafly", "--results", "tune.duckdb", "--json"))
    assert (len(found["candidates"]), found["left"]) == (2, 0)
    code, drawn = terminal(*words, "--algorithm", "datafly", "--results", "tune.duckdb", columns=100)
    text = ANSI.sub("", drawn)
    assert code == 0
    assert "Front of utility and risk: F1 of decision_tree predicting pay" in text


def test_tune_says_before_the_work_what_cannot_be_written(earners):
    words = ("tune", "job.toml", "--target", "pay")
    assert call(*words, "--picture", "front.txt").exit_code == 2
    Path("other").mkdir()
    far = call(*words, "-o", "other/best.toml")
    assert (far.exit_code, "beside 'job.toml'" in far.stderr) == (2, True)
    assert call(*words, "-k", "many").exit_code == 2
    assert call(*words, "-k", "2").exit_code == 2
