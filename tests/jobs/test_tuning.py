"""Tuning: candidates, the front, resuming, the job file, and rows that nothing is chosen by."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon.errors import ConfigError, InfeasibleError, ParameterError
from duckanon.jobs import load_job, run_job
from duckanon.jobs.tuning import search
from duckanon.jobs.tuning.candidates import Candidate, candidates, weights_of
from duckanon.jobs.tuning.results import front, write_job
from tests.datasets import earners as people

JOB = """
# a remark
[source]
path = "people.parquet"
[roles]
entity_key = "person"
identifiers = ["id"]
quasi_identifiers = ["age", "trade"]
insensitive = ["hours", "pay"]
[hierarchies]
age = { rule = "intervals", width = 5, factors = [2, 2] }
[privacy]
k = 4
[output]
path = "release/people.parquet"
form = { age = "midpoint" }
"""
FAST = {"target": "pay", "learner": "decision_tree", "seeds": 1, "score": "accuracy"}
WAYS = ["datafly", "optimal(metric='loss')"]


@pytest.fixture
def job(tmp_path: Path) -> Path:
    table = people(600)
    table = table.append_column("person", [list(range(600))])
    pq.write_table(table, tmp_path / "people.parquet")
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path / "job.toml"


@pytest.mark.slow
def test_the_best_job_can_be_run(job: Path) -> None:
    found = duckanon.tuning.tune(job, algorithms=WAYS, k=[4, 12], **FAST)
    assert {
        (line["setting"]["algorithm"], line["k"], line["setting"]["suppression_limit"]) for line in found.lines
    } == {(a, k, limit) for a in ("datafly", "optimal") for k in (4, 12) for limit in (0.0, 0.05)}
    assert found.zero_rule < found.raw
    assert found.best["score"] == max(line["score"] for line in found.tried)
    made = found.write(job.with_name("best.toml"))
    text = made.read_text()
    content = tomllib.loads(text)
    assert text.startswith("# ")
    assert content["privacy"]["k"] == found.best["k"] >= 4
    assert content["algorithm"]["name"] == found.best["setting"]["algorithm"]
    assert content["source"] == {"path": "people.parquet"}
    assert "form" not in content["output"], "columns on levels have no regions"
    result = run_job(made)
    assert result.summary["promise"][0]["parameters"]["k"] == found.best["k"]
    assert found.final is not None
    assert found.final.test_rows == 120
    assert found.to_arrow().column("on_front").to_pylist().count(True) == len(found.front)
    assert found.to_dict()["best"]["label"] == found.best["label"]
    pytest.importorskip("matplotlib")
    assert found.plot(job.with_name("front.svg")).read_text().startswith("<?xml")
    with pytest.raises(ParameterError, match="picture"):
        found.plot(job.with_name("front.txt"))


def test_no_candidate_sees_the_rows_of_the_last_word(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[int]] = []
    kept = search.anonymizer

    def spying(loaded, table, progress=None):
        make = kept(loaded, table, progress)

        def anonymize(rows: pa.Table):
            seen.append(set(rows.column("id").to_pylist()))
            return make(rows)

        return anonymize

    monkeypatch.setattr(search, "anonymizer", spying)
    found = duckanon.tuning.tune(job, algorithms=WAYS[:1], k=[4], **FAST)
    *tried, last = seen
    assert len(tried) == len(found.lines) == 2
    assert all(rows == tried[0] for rows in tried)
    assert tried[0] < last
    assert (len(tried[0]), len(last)) == (384, 480)


def test_what_was_tried_is_not_tried_again(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = job.with_name("results.duckdb")
    first = duckanon.tuning.tune(job, algorithms=WAYS[:1], k=[4], budget=0.000001, results=results, **FAST)
    assert (len(first.lines), first.left) == (1, 1), "the first is tried whatever the budget"
    calls = []
    kept = search._tried
    monkeypatch.setattr(search, "_tried", lambda *a: calls.append(1) or kept(*a))
    second = duckanon.tuning.tune(job, algorithms=WAYS[:1], k=[4], results=results, **FAST)
    assert (len(second.lines), len(calls)) == (2, 1)
    assert second.lines[0]["score"] == first.lines[0]["score"]
    third = duckanon.tuning.tune(job, algorithms=WAYS[:1], k=[4], results=results, **FAST)
    assert len(calls) == 1
    assert third.lines == second.lines
    other = duckanon.tuning.tune(job, algorithms=WAYS[:1], k=[4], results=results, **{**FAST, "seed": 3})
    assert (len(calls), len(other.lines)) == (3, 2), "other rows are another question"


def test_the_same_seed_finds_the_same(job: Path) -> None:
    found = [duckanon.tuning.tune(job, algorithms=WAYS[1:], k=[4], workers=w, **FAST) for w in (1, 2)]
    assert [line["score"] for line in found[0].lines] == [line["score"] for line in found[1].lines]
    assert found[0].final.to_arrow().equals(found[1].final.to_arrow())


def test_candidates_keep_the_promise_of_the_job(job: Path) -> None:
    table = load_job(job).table()
    rows = pq.read_table(job.with_name("people.parquet"))
    found = candidates(table, rows, "pay")
    assert {c.k for c in found} == {4, 8, 20, 40}
    assert found[0].k == 4
    assert {"mondrian", "optimal", "ola", "datafly", "tdg", "mdav", "knn_clustering"} == {c.algorithm for c in found}
    weighted = next(c for c in found if c.weights)
    assert set(weighted.weights) == {"age", "trade"}
    assert weighted.applied(table).request.weights == weighted.weights
    assert all(c.suppression_limit in (0.0, 0.05) for c in found)
    with pytest.raises(ParameterError, match="k = 4: 3 is less"):
        candidates(table, rows, "pay", ks=[3])


def test_columns_that_tell_more_weigh_more() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 1000, 5000)
    table = pa.table(
        {
            "tells": x,
            "little": np.where(rng.random(5000) < 0.6, x > 500, rng.random(5000) < 0.5).astype(str),
            "nothing": rng.integers(0, 5, 5000).astype(str),
            "y": np.where(x > 500, "a", "b"),
        }
    )
    found = weights_of(table, ["tells", "little", "nothing"], "y")
    assert found["tells"] == 1.1
    assert 0.12 < found["little"] < 1.0
    assert found["nothing"] < 0.11


@pytest.mark.parametrize("seed", range(20))
def test_the_front_is_what_nobody_beats(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lines = [{"score": float(s), "average_risk": float(r)} for s, r in rng.integers(0, 6, (12, 2))]

    def beaten(line: dict) -> bool:
        return any(
            o["score"] >= line["score"] and o["average_risk"] <= line["average_risk"] and o != line for o in lines
        )

    found = [lines[i] for i in front(lines)]
    assert [(x["average_risk"], x["score"]) for x in found] == sorted(
        {(x["average_risk"], x["score"]) for x in lines if not beaten(x)}
    )


def test_the_job_of_a_candidate_has_the_comments_and_the_order_of_the_job(job: Path) -> None:
    job.write_text(JOB.replace("k = 4", "k = 4  # four\nsuppression_limit = 0.1\n[steering.weights]\ntrade = 2"))
    candidate = Candidate("optimal", 8, 0.05, {"metric": "loss"}, {"age": 1.1, "trade": 0.1})
    made = write_job(job, job.with_name("best.toml"), candidate, "chosen\ntoday")
    changes = [
        ("k = 4", "k = 8  # four\nsuppression_limit = 0.05\n[steering.weights]\nage = 1.1\ntrade = 0.1"),
        ('form = { age = "midpoint" }\n', ""),
        ('"release/people.parquet"', '"release/people-best.parquet"'),
    ]
    wanted = JOB
    for old, new in changes:
        wanted = wanted.replace(old, new)
    text = made.read_text()
    before, algorithm = text.split("[algorithm]")
    assert algorithm.strip() == 'name = "optimal"\nmetric = "loss"'
    assert [line for line in before.splitlines() if line] == ["# chosen", "# today", *wanted.split("\n")[1:-1]]


def test_the_job_of_a_candidate_for_the_only_one_of_tables(job: Path) -> None:
    shared, _, own = JOB.partition("[hierarchies]")
    own = own.replace("[privacy]", "[tables.privacy]").replace("[output]", "[tables.output]")
    job.write_text(f'{shared}[[tables]]\nname = "people"\n[tables.hierarchies]{own}')
    made = write_job(job, job.with_name("best.toml"), Candidate("datafly", 8), "x")
    table = load_job(made).table()
    assert (table.request.algorithm.name, table.request.k, table.request.output) == ("datafly", 8, "interval")


@pytest.mark.parametrize(
    ("output", "written"),
    [
        ('path = "out/a-{date}.csv"', {"path": "out/a-{date}-the-best.csv"}),
        ('path = "out/parts"\npartition_by = ["hours"]', {"path": "out/parts-the-best"}),
        ('database = "d.duckdb"\ntable = "x.a"', {"table": "x.a_the_best", "database": "d.duckdb"}),
        ('database = "d.duckdb"\ntable = "a"\nreports_in = "r"', {"table": "a_the_best", "reports_in": "r-the-best"}),
    ],
)
def test_the_job_of_a_candidate_replaces_nothing_of_the_job(job: Path, output: str, written: dict[str, str]) -> None:
    job.write_text(JOB.replace('path = "release/people.parquet"', output) + '[nights]\nstate = "kept"\n')
    made = write_job(job, job.with_name("the-best.toml"), Candidate("mondrian", 8), "x")
    content = tomllib.loads(made.read_text())
    assert {key: content["output"][key] for key in written} == written
    assert content["nights"]["state"] == "kept-the-best"
    before, after = load_job(job), load_job(made)
    assert before.state != after.state
    assert not before.table().target.collides(after.table().target)


def test_what_makes_no_sense_is_refused(job: Path, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="score"):
        duckanon.tuning.tune(job, **{**FAST, "score": "beauty"})
    with pytest.raises(ParameterError, match="budget"):
        duckanon.tuning.tune(job, budget="soon", **FAST)
    with pytest.raises(ParameterError, match="published unchanged"):
        duckanon.tuning.tune(job, **{**FAST, "target": "trade"})
    found = duckanon.tuning.Tuning(
        [{"key": "x", "state": "failed", "reason": "no class is large enough"}], job, "pay", "knn", "f1", "m", 0.0, 0.0
    )
    with pytest.raises(InfeasibleError, match="no class is large enough"):
        _ = found.best
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for target in (elsewhere / "best.toml", job):
        with pytest.raises(ConfigError):
            write_job(job, target, Candidate("datafly", 4), "x")
