"""Commands that only read: their output, its formats and their exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from tests.interfaces.cli.tools import ANSI, JOB, call, document, terminal

QUASI = ("-q", "zip")


def lines(result):
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert "\x1b" not in result.stdout
    return result.stdout.splitlines()


# privacy and check


def test_privacy(people):
    found = lines(call("privacy", "people.parquet", *QUASI, "-s", "ill"))
    assert found[0] == "people.parquet: 12 classes, of 5 to 5 rows; 0 alone in their class"
    assert "k_anonymity: k = 5" in found
    assert any(line.startswith("l_diversity of ill: l = ") for line in found)
    told = document(call("privacy", "people.parquet", *QUASI, "-s", "ill", "--json"))
    assert told["source"] == "people.parquet"
    expected = duckanon.privacy("people.parquet", quasi_identifiers=["zip"], sensitive=["ill"]).to_pylist()
    assert len(told["privacy"]) == len(expected)


def test_privacy_beside_what_was_asked_for(people):
    found = lines(call("privacy", "people.parquet", *QUASI, "-s", "ill", "-k", "5", "--model", "l_diversity(l=3)"))
    assert "k_anonymity: k = 5; holds k = 5" in found
    assert "l_diversity of ill: l = 1; breaks l = 3: 12 classes, 60 rows" in found


def test_check_takes_every_model(people):
    good = call("check", "people.parquet", *QUASI, "-s", "ill", "-k", "5", "-l", "1", "-t", "1")
    assert good.exit_code == 0, good.output
    assert "l_diversity (l=1, sensitive=ill) holds in all 12 classes" in good.stdout
    bad = call("check", "people.parquet", *QUASI, "-s", "ill", "--model", "l_diversity(l=3)", "-k", "5")
    assert bad.exit_code == 1
    assert "k_anonymity (k=5) holds" in bad.stdout
    assert "l_diversity (l=3, sensitive=ill) does not hold: 12 of 12 classes break it" in bad.stdout
    found = document(call("check", "people.parquet", *QUASI, "-s", "ill", "-l", "3", "--json"))
    assert (found["holds"], found["checks"][0]["model"]) == (False, "l_diversity")


def test_check_needs_a_promise(people):
    result = call("check", "people.parquet", *QUASI)
    assert (result.exit_code, "-k, -l, -t or --model" in result.stderr) == (2, True)
    unknown = call("check", "people.parquet", *QUASI, "--model", "l_diversty(l=3)")
    assert (unknown.exit_code, "Did you mean 'l_diversity'" in unknown.stderr) == (2, True)


# risk


def test_risk(people):
    found = lines(call("risk", "people.parquet", *QUASI, "--threshold", "0.1"))
    assert found[0] == "table: people.parquet"
    assert "classes: 12" in found
    assert "prosecutor_at_risk: 1" in found
    assert "prosecutor_maximum: 0.200" in found
    assert not any("journalist" in line or "population" in line for line in found)


def test_risk_json_is_the_one_of_python(people):
    pq.write_table(pa.concat_tables([pq.read_table("people.parquet")] * 3), "everybody.parquet")
    told = document(call("risk", "people.parquet", *QUASI, "--population", "everybody.parquet", "--json"))
    expected = duckanon.risk("people.parquet", quasi_identifiers=["zip"], population="everybody.parquet").to_dict()
    assert told == {"source": "people.parquet", **expected}
    sampled = document(call("risk", "people.parquet", "-q", "age,zip", "--population-size", "600", "--json"))
    assert sampled["uniqueness"]["sampling_fraction"] == 0.1
    assert sampled["uniqueness"]["dankar"] == 1.0


def test_risk_beside_a_previous_release(people):
    given = ("--previous", "people.parquet", "-k", "2")
    found = lines(call("risk", "people.parquet", *QUASI, *given, "--original", "people.parquet"))
    assert "previous_k: 2" in found
    told = document(call("risk", "people.parquet", *QUASI, *given, "--json"))
    assert told["composition"]["tied_by"] == "overlap"


def test_risk_counts_persons_and_reads_databases(people):
    call("sql", "x.duckdb", "-c", "CREATE TABLE t AS FROM 'people.parquet'")
    found = document(call("risk", "--database", "x.duckdb", "--table", "t", *QUASI, "--entity-key", "age", "--json"))
    assert (found["unit"], found["smallest"]) == ("persons", 5)
    assert call("risk", *QUASI).exit_code == 2
    assert call("risk", "people.parquet", "--database", "x.duckdb", *QUASI).exit_code == 2


# suggest


def test_suggest(people):
    found = lines(call("suggest", "people.parquet"))
    assert found[0] == "age: quasi_identifier 1 (birth, sex or place: known of everybody)"
    assert "identifying set: age, zip" in found
    told = document(call("suggest", "people.parquet", "--json"))
    assert [row["column"] for row in told["columns"]] == ["age", "zip", "ill"]
    none = lines(call("suggest", "people.parquet", "--max-size", "0"))
    assert not any("identifying set" in line for line in none)


# measure


def test_measure(people):
    rows = pq.read_table("people.parquet").num_rows
    pq.write_table(pa.table({"zip": ["97***"] * rows}), "released.parquet")
    words = ("measure", "people.parquet", "released.parquet", *QUASI)
    found = lines(call(*words, "-m", "discernibility,average_class_size"))
    assert found[0].startswith("discernibility: 3600")
    assert found[1].startswith("average_class_size: 60")
    told = document(call(*words, "--metric", "discernibility", "--json"))
    assert (told["release"], told["loss"][0]["value"]) == ("released.parquet", 3600.0)
    wrong = call(*words, "--hierarchy", "zip")
    assert (wrong.exit_code, "COLUMN=NAME_OR_FILE" in wrong.stderr) == (2, True)


def test_measure_by_a_job(people):
    call("run", "job.toml")
    words = (
        "measure",
        "people.parquet",
        "out/people.parquet",
        "--json",
        "-m",
        "discernibility,average_class_size_lefevre",
    )
    told = document(call(*words, "--job", "job.toml"))
    assert [row["metric"] for row in told["loss"]] == ["discernibility", "average_class_size_lefevre"]
    assert call(*words).exit_code == 2
    assert call(*words, "--job", "none.toml").exit_code == 2


@pytest.mark.parametrize("hierarchies", ["", '[hierarchies]\nzip = {rule = "mask"}\nill = {rule = "mask"}\n'])
def test_measure_by_a_job_is_the_loss_in_its_report(people, hierarchies):
    """Without hierarchies the automatic ones are meant, and one of a sensitive column is for its models."""
    Path("job.toml").write_text(JOB + hierarchies)
    call("run", "job.toml")
    reported = json.loads(Path("out/people.report.json").read_text())["loss"]
    found = call(
        "measure", "people.parquet", "out/people.parquet", "--job", "job.toml", "-m", "loss,precision", "--json"
    )
    told = {(row["metric"], row["attribute"]): row["value"] for row in document(found)["loss"]}
    for row in reported:
        if row["metric"] in ("loss", "precision"):
            assert told[row["metric"], row["attribute"]] == pytest.approx(row["value"]), row
    fewer = call("measure", "people.parquet", "out/people.parquet", "--job", "job.toml", "-q", "age", "-m", "loss")
    assert fewer.exit_code == 0, fewer.output


# compare


@pytest.fixture
def jobs(people):
    Path("strict.toml").write_text(JOB.replace("k = 3", "k = 20"))
    return people


def test_compare_publishes_nothing(jobs):
    before = sorted(Path().iterdir())
    found = lines(call("compare", "job.toml", "strict.toml", "--by", "coverage,spread"))
    assert found[0].startswith("No release wins: less risk costs more loss. Least risk: strict (average risk ")
    assert any(line.startswith("job: average risk 30 %, highest 33.33 %, loss 0.204") for line in found)
    assert any(line.startswith("coverage of class_size, job against strict: ") for line in found)
    assert any(line.startswith("risk of strict: Gini ") for line in found)
    assert any(line.startswith("loss: ") for line in found)
    assert sorted(Path().iterdir()) == before


def test_compare_json(jobs):
    found = document(call("compare", "job.toml", "strict.toml", "-p", "class_size", "-p", "loss", "--json"))
    assert found["winner"] is None
    assert found["front"] == ["job", "strict"]
    assert {row["property"] for row in found["indices"]} == {"class_size", "loss"}
    assert found["picture"] is None


def test_compare_refuses(jobs):
    assert call("compare", "job.toml").exit_code == 2
    assert call("compare", "job.toml", "none.toml").exit_code == 2
    assert call("compare", "job.toml", "strict.toml", "--picture", "x.gif").exit_code == 2
    wrong = call("compare", "job.toml", "strict.toml", "--by", "coverag")
    assert (wrong.exit_code, "coverage" in wrong.stderr) == (2, True)


def test_compare_draws_a_picture(jobs):
    pytest.importorskip("matplotlib")
    assert "picture: out.png" in lines(call("compare", "job.toml", "strict.toml", "--picture", "out.png"))
    assert Path("out.png").read_bytes()[:4] == b"\x89PNG"


def test_jobs_of_the_same_name_are_told_apart(jobs):
    Path("other").mkdir()
    shutil.copy("people.parquet", "other/people.parquet")
    Path("other/job.toml").write_text(JOB)
    assert set(document(call("compare", "job.toml", "other/job.toml", "--json"))["front"]) == {"job", "other/job"}


# Errors and screens


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("risk", "none.parquet", "-q", "zip"), 3, "No file matches"),
        (("risk", "people.parquet", "-q", "zap"), 2, "Did you mean 'zip'"),
        (("risk", "people.parquet", "-q", "zip", "--sampling-fraction", "3"), 2, "sampling_fraction"),
        (("privacy", "people.parquet", "-q", "zip", "-s", "il"), 2, "Did you mean 'ill'"),
        (("suggest", "none.parquet"), 3, "No file matches"),
        (("suggest", "people.parquet", "--by", "unique"), 2, "uniqueness"),
        (("measure", "people.parquet", "none.parquet", "-q", "zip"), 3, "No file matches"),
    ],
)
def test_errors_are_one_line_and_an_exit_code(people, words, code, message):
    result = call(*words)
    assert (result.exit_code, message in result.stderr) == (code, True), result.output
    assert document(call(*words, "--json"))["error"]["exit_code"] == code


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize(
    "words",
    [
        ("risk", "people.parquet", "-q", "age,zip", "--sampling-fraction", "0.1"),
        ("suggest", "people.parquet"),
        ("privacy", "people.parquet", "-q", "zip", "-s", "ill"),
    ],
    ids=lambda words: words[0],
)
@pytest.mark.thinned
def test_screens_fit_the_terminal(people, words, columns):
    code, drawn = terminal(*words, columns=columns)
    assert code == 0, drawn
    assert all(len(line) <= columns for line in ANSI.sub("", drawn).splitlines())
    assert "people.parquet" in drawn


# attack


def test_attack(people, tmp_path):
    names = (*QUASI, "-s", "ill", "-a", "distance_linkage,linkage,homogeneity", "--control", "people.parquet")
    found = lines(call("attack", "people.parquet", "people.parquet", *names, "--html", str(tmp_path / "page.html")))
    assert found[0].startswith("people.parquet: ")
    assert any(line.startswith("distance_linkage of ill (all quasi-identifiers known): ") for line in found)
    assert any("controls" in line and "base rate" in line for line in found)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Attacks on people.parquet" in page
    assert "On controls" in page
    told = document(call("attack", "people.parquet", "people.parquet", *names, "--json"))
    assert {f["attack"] for f in told["findings"]} == {"distance_linkage", "linkage", "homogeneity"}
    assert told["controls"] == 60
    assert all(f["verdict"] for f in told["findings"])


def test_attack_on_a_terminal(people):
    names = (*QUASI, "-s", "ill", "-a", "distance_linkage")
    code, shown = terminal("attack", "people.parquet", "people.parquet", *names)
    assert code == 0
    assert "Sensitive values: is the guess right?" in ANSI.sub("", shown)


def test_attack_wants_quasi_identifiers(people):
    assert call("attack", "people.parquet", "people.parquet").exit_code == 2
