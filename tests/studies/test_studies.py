"""Studies from the command line: small ones of each kind on synthetic rows, results, pages, and resuming."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from duckanon.errors import ConfigError, ParameterError, UnsupportedError
from duckanon.interfaces.cli import app
from duckanon.studies import Task, get_study, names, run_study
from duckanon.studies.config import load_settings
from duckanon.studies.private_bayes import has_opendp
from duckanon.studies.store import Results
from duckanon.studies.tables import ROW, codes, divide
from duckanon.testing.hospital import hospital

CHECKOUT = Path(__file__).resolve().parents[2]
CANARY = "zebra-canary"
TABLE = """
[tables.ward]
path = "people.parquet"
target = "long"
quasi_identifiers = ["length_of_stay", "sex", "marital_status"]
"""
TINY = {
    "metrics-vs-utility": """
        algorithms = ["datafly", "mondrian"]
        versions = 2
        trees = 3
        repeats = 1
    """,
    "k-anonymity-in-practice": """
        algorithms = ["ola", "knn_clustering"]
        ks = [3]
        learners = ["knn"]
        ola_tables = ["ward"]
        ola_metrics = ["height"]
        ola_limits = [0.03]
        ola_ks = [3]
        ola_learners = ["knn"]
    """,
    "proportional-representation": """
        encodings = ["proportional", "one_class"]
        ks = [3]
        trained = [1, 3]
        seeds = 1
        epochs = 3
    """,
    "probabilistic-k-anonymity": """
        methods = ["gower", "k_anonymity"]
        quasi = ["full"]
        ks = [3]
        learners = ["decision_tree"]
        attacks = []
    """,
    "property-vectors": """
        algorithms = ["ola", "mondrian"]
        ks = [3]
    """,
}


SLOW = ("metrics-vs-utility", "k-anonymity-in-practice")
"""More releases and panels than a default run has time for."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a small table, in which one value must never be seen again."""
    table = hospital(150)
    long = pa.array([CANARY if n > 3 else "short" for n in table["length_of_stay"].to_pylist()])
    pq.write_table(table.append_column("long", long), tmp_path / "people.parquet")
    for name, keys in TINY.items():
        (tmp_path / f"{name}.toml").write_text(f"[study]\n{keys}\n{TABLE}")
    return tmp_path


def call(*words: object):
    return CliRunner().invoke(app, [str(w) for w in words])


def results(path: Path, study: str) -> list[dict]:
    with Results(path / "results.duckdb") as found:
        table = found._engine.arrow(_whole(study.replace("-", "_")))
    return sorted((dict(r) for r in table.to_pylist()), key=lambda r: json.dumps(r, sort_keys=True, default=str))


def _whole(name: str):
    from sqlglot import exp

    from duckanon.studies.store import _place

    return exp.select("*").from_(_place(name))


@pytest.mark.parametrize("study", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in TINY])
@pytest.mark.thinned(3)
def test_a_study_runs_and_says_no_value(study: str, folder: Path) -> None:
    out = folder / "out"
    said = call("study", study, "--config", folder / f"{study}.toml", "-o", out, "-w", 1, "--json")
    assert said.exit_code == 0, said.output
    found = json.loads(said.output)
    assert found["done"] == found["tasks"] == found["ran"] > 0
    assert found["failed"] == 0
    page = (out / "index.html").read_text()
    assert get_study(study).title in page
    assert "<svg" in page
    drawn = {p.stem for p in (out / "figures").iterdir()}
    assert drawn
    assert all((out / "figures" / f"{name}.{kind}").stat().st_size for name in drawn for kind in ("png", "svg"))
    for path in [p for p in out.rglob("*") if p.is_file()]:
        assert CANARY.encode() not in path.read_bytes(), path.name


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "duckanon", "study", TOY, *(str(w) for w in words)]


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
TOY = "tests.studies.toy:Toy"


def test_two_workers_find_what_one_does(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    run_study(TOY, out=one)
    subprocess.run(command("-o", two, "-w", 2), check=True, env=ENVIRONMENT, cwd=CHECKOUT, capture_output=True)
    assert len(results(one, "toy")) == 12
    assert results(one, "toy") == results(two, "toy")


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_killed_study_goes_on(workers: int, tmp_path: Path) -> None:
    out, config = tmp_path / "out", tmp_path / "slow.toml"
    config.write_text("[study]\nseconds = 0.3\n")
    words = command("-o", out, "-w", workers, "--config", config)
    process = subprocess.Popen(words, env=ENVIRONMENT, cwd=CHECKOUT, stdout=subprocess.DEVNULL)
    study = get_study(TOY)
    tasks = study.tasks(load_settings(study, config))
    for _ in range(600):
        time.sleep(0.1)
        wal = out / "results.duckdb.wal"
        if wal.exists() and wal.stat().st_size > 1500:
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with Results(out / "results.duckdb") as found:
        done = len(found.lines(study, tasks))
    assert 0 < done < len(tasks)
    went_on = run_study(TOY, config=config, out=out)
    assert (went_on.done, went_on.ran) == (len(tasks), len(tasks) - done)
    run_study(TOY, config=config, out=tmp_path / "whole")
    assert results(out, "toy") == results(tmp_path / "whole", "toy")


def test_nothing_is_done_twice(tmp_path: Path) -> None:
    assert run_study(TOY, out=tmp_path).ran == 12
    again = run_study(TOY, out=tmp_path)
    assert (again.ran, again.done, again.left) == (0, 12, 0.0)


def test_only_some_tasks_and_the_time_left(tmp_path: Path) -> None:
    found = run_study(TOY, out=tmp_path, only={"number": ["3", "4"]})
    assert (found.ran, found.done, found.tasks) == (2, 2, 12)
    assert found.left is not None
    assert found.left == pytest.approx(found.seconds * 5)
    assert "10 of 12 tasks are not in these results" in (tmp_path / "index.html").read_text()
    dry = call("study", TOY, "-o", tmp_path, "--dry-run")
    assert "toy: 2 of 12 tasks done" in dry.output
    assert "left: about" in dry.output
    with pytest.raises(ParameterError, match=r"no label 'numbre'\. Did you mean 'number'"):
        run_study(TOY, out=tmp_path, only={"numbre": ["1"]})
    with pytest.raises(ParameterError, match="No task has number '77'"):
        run_study(TOY, out=tmp_path, only={"number": ["77"]})


def test_failed_tasks_are_told_without_values_and_tried_again(tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    config.write_text("[study]\nbroken = [2, 5]\n")
    said = call("study", TOY, "--config", config, "-o", tmp_path, "-w", 1)
    assert said.exit_code == 1
    assert "10 of 12 tasks done" in said.output
    assert "failed: InfeasibleError: number 2 cannot be done" in said.output
    assert "failed: ValueError (its message is withheld" in said.output
    page = (tmp_path / "index.html").read_text()
    assert "1 failed: InfeasibleError" in page
    assert CANARY not in page + said.output
    assert CANARY.encode() not in (tmp_path / "results.duckdb").read_bytes()
    assert run_study(TOY, config=config, out=tmp_path).ran == 2


def test_a_worker_that_dies_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    config.write_text("[study]\ndeadly = [1, 7]\n")
    said = subprocess.run(
        command("--config", config, "-o", tmp_path, "-w", 3),
        env=ENVIRONMENT,
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
    )
    assert said.returncode == 1
    assert "10 of 12 tasks done" in said.stdout
    assert "ended before it did" in said.stdout


def test_settings_are_checked(folder: Path) -> None:
    study = get_study("property-vectors")
    own = folder / "own.toml"
    for text, words in (
        ("[study]\nrowz = 2", "has no key 'rowz'. Did you mean 'rows'"),
        ("[study]\nks = 2", "ks must be a list, not a int"),
        ("[studdy]\nks = [2]", r"no \[studdy\]. Did you mean 'study'"),
        ("[tables.x]\npath = 'no.parquet'\ntarget = 'a'\nquasi_identifiers = ['b']", "there is no file 'no.parquet'"),
        ("[tables.x]\npath = 'people.parquet'\ntarget = 'a'", "needs the key 'quasi_identifiers'"),
        ("[study", "not valid TOML"),
    ):
        own.write_text(text)
        with pytest.raises(ConfigError, match=words):
            load_settings(study, own)
    with pytest.raises(ParameterError, match="Unknown study"):
        get_study("tests.studies.toy:Nothing")
    with pytest.raises(ParameterError, match=r"Unknown study 'property-vector'\. Did you mean 'property-vectors'"):
        get_study("property-vector")


def test_full_is_the_paper_unless_the_file_says_otherwise(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DUCKANON_DATA", raising=False)
    study = get_study("metrics-vs-utility")
    assert load_settings(study)["versions"] < 200
    assert load_settings(study).synthetic
    assert load_settings(study, full=True)["versions"] == 200
    own = folder / "own.toml"
    own.write_text(f"[study]\nversions = 7\n{TABLE}")
    settings = load_settings(study, own, full=True)
    assert (settings["versions"], settings["rows"], settings.changed) == (7, 0, ("versions",))


@pytest.mark.parametrize("study", names())
def test_shipped_settings_fit_the_study(study: str, data: Path) -> None:
    found = get_study(study)
    for full in (False, True):
        settings = load_settings(found, full=full, data=data)
        assert set(settings.values) == set(found.keys)
        tasks = found.tasks(settings)
        keys = {task.key(found) for task in tasks}
        assert len(keys) == len(tasks) > 10
        json.dumps([dict(t.given) for t in tasks[:5]])


def test_full_studies_are_those_of_the_papers(data: Path) -> None:
    def tasks(name: str) -> list[Task]:
        return get_study(name).tasks(load_settings(get_study(name), full=True, data=data))

    def some(name: str, **labels: object) -> list[Task]:
        return [t for t in tasks(name) if all(t.labels.get(n) == v for n, v in labels.items())]

    every = list(range(2, 101))
    assert len(some("metrics-vs-utility", table="ring", algorithm="datafly_shuffled")) == 200
    assert len(tasks("metrics-vs-utility")) == 4 * 3 * 200 + 4
    curve = some("k-anonymity-in-practice", part="algorithms", table="mgm", algorithm="tdg")
    assert [t.labels["k"] for t in curve] == every
    close = some("k-anonymity-in-practice", part="ola", metric="precision", table="adult")
    assert sorted({t.labels["limit"] for t in close}) == [0.0, 0.03, 0.06, 0.09]
    assert len(tasks("k-anonymity-in-practice")) == 4 + 4 * 5 * 99 + 4 * 4 * 99
    network = tasks("proportional-representation")
    assert len(network) == 2 * (1 + 4) * 10
    assert (len(network[0].given["ks"]), network[0].given["layers"]) == (14, [5, 2])
    study = "probabilistic-k-anonymity"
    assert [t.labels["level"] for t in some(study, table="german", method="gower", quasi="full", trial=4)] == [
        5,
        50,
        100,
        200,
    ]
    # No target is asked to be more diverse than it has values.
    diverse = {t.labels["table"]: t.labels["level"] for t in some(study, method="l_diversity")}
    assert diverse["contraceptive"] == 3
    assert diverse["cardiotocography"] == 5
    assert {diverse[n] for n in ("adult", "german", "heart", "mammographic")} == {2}
    assert [t.labels["k"] for t in some("property-vectors", table="cmc")] == every


@pytest.mark.parametrize("study", names())
def test_shipped_settings_name_what_there_is(study: str) -> None:
    from duckanon.algorithms.base import algorithms
    from duckanon.assess.attacks.base import attackers
    from duckanon.assess.utility.learners import LEARNERS

    text = tomllib.loads(get_study(study).shipped().read_text())
    known = {"algorithms": {*algorithms, "datafly_shuffled"}, "learners": set(LEARNERS)}
    known |= {"attacks": set(attackers), "ola_learners": set(LEARNERS)}
    for part in ("study", "full"):
        for key, values in text[part].items():
            assert set(values) <= known[key] if key in known else True, key


def test_without_the_private_learner_the_rest_goes_on(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    config = folder / "probabilistic-k-anonymity.toml"
    config.write_text(config.read_text().replace('"k_anonymity"]', '"differential_privacy"]'))
    study = get_study("probabilistic-k-anonymity")
    settings = load_settings(study, config)
    assert "differential_privacy" in {t.labels["method"] for t in study.tasks(settings)} or not has_opendp()
    monkeypatch.setattr("duckanon.studies.private_bayes.find_spec", lambda name: None)
    assert {t.labels["method"] for t in study.tasks(settings)} == {"none", "gower"}
    said = call("study", study.name, "--config", config, "-o", folder / "out", "-w", 1)
    assert said.exit_code == 0, said.output
    assert "pip install 'duckanon[dp]'" in said.output
    assert "pip install" in (folder / "out" / "index.html").read_text()


def test_authors_may_say_which_rows_they_learn_from(folder: Path) -> None:
    given = {"name": "ward", "path": str(folder / "people.parquet"), "target": "long", "quasi_identifiers": ["sex"]}
    table, parts = divide({**given, "train": 100}, 0, 0.3, 1)
    assert (table.num_rows, parts.train.num_rows, parts.test.num_rows) == (150, 100, 50)
    assert parts.train.column(ROW).to_pylist() == list(range(100))
    drawn, some = divide({**given, "train": 100}, 60, 0.3, 1)
    whole = pq.read_table(folder / "people.parquet", columns=["sex", "long"])
    assert some.train.num_rows + some.test.num_rows == drawn.num_rows == 60
    first = {tuple(r.values()) for r in whole.slice(0, 100).to_pylist()}
    assert {(r["sex"], r["long"]) for r in some.train.to_pylist()} <= first
    assert divide(given, 0, 0.3, 1)[1].test.num_rows == 45


def test_keys_depend_on_all_that_decides() -> None:
    study, other = get_study("property-vectors"), get_study("metrics-vs-utility")
    task = Task({"k": 2}, {"rows": 5})
    found = {
        task.key(study),
        task.key(other),
        Task({"k": 3}, {"rows": 5}).key(study),
        Task({"k": 2}, {"rows": 6}).key(study),
    }
    assert len(found) == 4
    assert task.key(study) == Task({"k": 2}, {"rows": 5}).key(study)
    assert task.seed() == Task({"k": 2}).seed() != task.seed("other")


def test_a_changed_table_is_another_task(folder: Path) -> None:
    study = get_study("property-vectors")
    config = folder / "property-vectors.toml"
    before = [t.key(study) for t in study.tasks(load_settings(study, config))]
    pq.write_table(pq.read_table(folder / "people.parquet").slice(1), folder / "people.parquet")
    after = [t.key(study) for t in study.tasks(load_settings(study, config))]
    assert not set(before) & set(after)


def test_the_example_fits_the_study() -> None:
    study = get_study("k-anonymity-in-practice")
    settings = load_settings(study, CHECKOUT / "examples" / "studies" / "own.toml")
    assert not settings.synthetic
    assert len(study.tasks(settings)) == 1 + 2 * 4


def test_list_names_every_study() -> None:
    said = call("study", "list")
    assert said.exit_code == 0
    assert [line for line in said.output.splitlines() if not line.startswith(" ")] == names()


def test_codes_are_bins_of_the_same_width() -> None:
    found, size = codes(pa.chunked_array([list(range(100)), [None]]), 20)
    assert size == 21
    assert found.tolist() == [i * 20 // 99 if i < 99 else 19 for i in range(100)] + [20]
    assert codes(pa.chunked_array([["b", "a", "b"]]), 20)[0].tolist() == [1, 0, 1]


def test_matplotlib_is_asked_for_before_any_work(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UnsupportedError, match=r"duckanon\[plots\]"):
        run_study("property-vectors", config=folder / "property-vectors.toml", out=folder / "out")
    assert not (folder / "out").exists()
