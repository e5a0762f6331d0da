"""Commands: their output, their output streams and their exit codes."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duckanon import __version__, errors
from duckanon.interfaces.cli import app, options
from tests.interfaces.cli.tools import ANSI, CHECKOUT, COMMAND, call, document, terminal

# run, plan, check, verify


def test_run_says_in_plain_lines_what_was_done(people):
    result = call("run", "job.toml")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "promise: every combination of quasi-identifiers is shared by at least 3 rows"
    assert lines[1].startswith("k_anonymity (k=3): holds, 0 of ")
    assert lines[2].startswith("rows: 60 in, ")
    assert "release: out/people.parquet" in lines
    assert "manifest: out/people.manifest.json" in lines
    assert "\x1b" not in result.output
    assert result.stderr == ""


def test_dry_run_writes_nothing(people):
    result = call("run", "job.toml", "--dry-run")
    assert result.exit_code == 0
    assert "dry run: nothing was written" in result.stdout
    assert not Path("out").exists()


def test_run_json(people):
    found = document(call("run", "job.toml", "--json"))
    assert found["summary"]["checks"][0]["holds"] is True
    assert found["written"]["release"] == "out/people.parquet"


def test_json_may_stand_before_the_command(people):
    assert document(call("--json", "run", "job.toml", "--dry-run"))["written"] == {}


def test_plan_explains_the_steps_and_leaves_the_data_alone(people):
    result = call("plan", "job.toml")
    assert result.exit_code == 0
    assert "requirement: every combination of quasi-identifiers is shared by at least 3 rows" in result.stdout
    assert "step 3, search: mondrian: " in result.stdout
    assert "SELECT" not in result.stdout
    found = document(call("plan", "job.toml", "--json"))
    assert [one["step"] for one in found["steps"]] == ["encode", "code", "search", "recode", "gate"]
    assert "statements" not in found
    assert not Path("out").exists()


def test_plan_with_sql_shows_the_statements_that_ran_and_publishes_nothing(people):
    result = call("plan", "job.toml", "--sql")
    assert result.exit_code == 0
    assert "-- encode, and likewise for zip\nCREATE OR REPLACE TEMPORARY TABLE" in result.stdout
    assert "-- gate\n" in result.stdout
    found = document(call("plan", "job.toml", "--sql", "--json"))["statements"]
    assert {one["step"] for one in found} == {"count", "encode", "code", "recode", "gate"}
    assert not Path("out").exists()


def test_a_plan_fits_a_terminal(people):
    code, drawn = terminal("plan", "job.toml")
    assert code == 0
    assert all(len(ANSI.sub("", line)) <= 80 for line in drawn.splitlines())


def test_check_exits_0_or_1_with_numbers(people):
    good = call("check", "people.parquet", "-q", "zip", "-k", "5")
    assert (good.exit_code, good.stdout) == (0, "people.parquet: k_anonymity (k=5) holds in all 12 classes\n")
    bad = call("check", "people.parquet", "--quasi-identifiers", "age, zip", "-k", "5")
    assert bad.exit_code == 1
    assert "does not hold: 60 of 60 classes are too small, with 60 rows in them" in bad.stdout
    found = document(call("check", "people.parquet", "-q", "age", "-q", "zip", "-k", "2", "--json"))
    assert (found["holds"], found["checks"][0]["violating_classes"]) == (False, 60)


def test_check_counts_persons(in_folder):
    pq.write_table(pa.table({"who": [1, 1, 1], "sex": ["F"] * 3}), "t.parquet")
    assert call("check", "t.parquet", "-q", "sex", "-k", "3").exit_code == 0
    result = call("check", "t.parquet", "-q", "sex", "-k", "3", "--entity-key", "who")
    assert result.exit_code == 1
    assert "1 of 1 class" in result.stdout
    assert "1 person" in result.stdout
    (found,) = document(call("check", "t.parquet", "-q", "sex", "-k", "3", "--entity-key", "who", "--json"))["checks"]
    assert (found["violating_rows"], found["unit"]) == (1, "persons")


@pytest.mark.parametrize(
    "words", [("age,zip,ill",), ("age", "zip", "ill"), ("age, zip", "ill")], ids=["commas", "repeated", "both"]
)
def test_columns_are_given_with_commas_or_one_by_one(people, words):
    given = [word for columns in words for word in ("--quasi-identifiers", columns)]
    assert document(call("check", "people.parquet", *given, "-k", "1", "--json"))["checks"][0]["classes"] == 60


def test_check_reads_a_table_of_a_database(people):
    assert call("sql", "x.duckdb", "-c", "CREATE TABLE t AS FROM 'people.parquet'").exit_code == 0
    assert call("check", "--database", "x.duckdb", "--table", "t", "-q", "zip", "-k", "5").exit_code == 0
    assert call("check", "--database", "x.duckdb", "-q", "zip", "-k", "5").exit_code == 2
    assert call("check", "-q", "zip", "-k", "5").exit_code == 2


def test_verify_says_what_cannot_be_checked(people):
    job = Path("job.toml").read_text()
    Path("job.toml").write_text(job.replace("[roles]", '[roles]\nentity_key = "zip"').replace('"age", "zip"', '"age"'))
    assert call("run", "job.toml").exit_code == 0
    result = call("verify", "out")
    assert result.exit_code == 7
    assert "unknown: " in result.stdout
    assert "--accept persons" in result.stdout
    assert document(call("verify", "out", "--json"))["state"] == "not checkable"
    result = call("verify", "out", "--accept", "persons")
    assert result.exit_code == 0
    assert "accepted" in result.stdout
    assert call("verify", "out", "--accept", "nothing").exit_code == 2


def test_verify_takes_promise_and_roles_from_the_job(people):
    call("run", "job.toml")
    found = call("verify", "out", "--job", "job.toml")
    assert (found.exit_code, "is not signed" in found.stdout) == (0, False)
    assert document(call("verify", "out", "--job", "job.toml", "--json"))["exports"][0]["vouched_by"] == ["job"]
    job = Path("job.toml").read_text()
    changes = [("k = 3", "k = 4"), ('"zip"]', "]"), ('sensitive = ["ill"]', 'insensitive = ["ill"]'), ("0.1", "0.2")]
    changes += [
        ("[roles]", '[roles]\nentity_key = "id"'),
        ("k = 3", "k = 3\nl = 2"),
        ("k = 3", "k = 3\nbounds = 'cut'"),
    ]
    for old, new in changes:
        Path("other.toml").write_text(job.replace(old, new))
        Path("other.toml").replace("job.toml")
        result = call("verify", "out", "--job", "job.toml")
        assert (result.exit_code, "of the job" in result.stdout) == (1, True), (old, new, result.output)
    Path("job.toml").rename("people.toml").write_text(job)
    assert "not of the job 'people'" in call("verify", "out", "--job", "people.toml").stdout
    assert call("verify", "out", "--table", "people").exit_code == 2


def test_verify_without_key_and_job_says_that_nobody_vouches_for_the_manifest(people):
    call("run", "job.toml")
    result = call("verify", "out")
    assert result.exit_code == 0
    assert "unknown: the manifest is not signed" in result.stdout
    assert document(call("verify", "out", "--json"))["exports"][0]["vouched_by"] == []


def test_verify_finds_a_changed_file(people):
    call("run", "job.toml")
    manifest = "out/people.manifest.json"
    result = call("verify", manifest)
    assert (result.exit_code, result.stdout[:3]) == (0, "ok:")
    Path("out/people.report.md").write_text("other")
    result = call("verify", manifest)
    assert result.exit_code == 1
    assert "not ok: people.report.md" in result.stdout
    assert document(call("verify", manifest, "--json"))["intact"] is False


# demo and list


def test_demo_makes_a_table_and_a_release(hospital):
    folder, result = hospital
    assert result.exit_code == 0, result.output
    assert f"data: {folder}/hospital.parquet: 2000 rows of invented hospital stays" in result.stdout
    made = ["hospital.parquet", "hospital.state", "hospital.toml", "release"]
    assert sorted(p.name for p in folder.iterdir()) == made
    assert f"release: {folder}/release/hospital.parquet" in result.stdout


def test_plain_numbers_have_no_separators(hospital):
    said = hospital[1].stdout
    numbers = re.search(r"rows: (\d+) in, (\d+) published, (\d+) suppressed\n", said)
    assert numbers is not None, said
    assert int(numbers[1]) == int(numbers[2]) + int(numbers[3]) == 2000
    assert int(re.search(r"discernibility: (\S+)", said)[1]) > 1000


def test_demo_keeps_a_changed_job(in_folder, hospital):
    Path("demo").mkdir()
    job = Path("demo/hospital.toml")
    job.write_text((hospital[0] / job.name).read_text().replace("k = 5", "k = 7"))
    found = document(call("demo", "--rows", "2000", "--json"))
    assert found["job_changed"] is True
    assert found["summary"]["promise"][0]["parameters"] == {"k": 7}


def test_two_demos_in_one_folder_do_not_meet(in_folder, monkeypatch):
    from duckanon import jobs as job
    from duckanon.testing import hospital as demo

    real, met, folders = demo.write_hospital, threading.Barrier(2), []

    def write(path, rows):
        folders.append(path)
        met.wait(30)  # both are writing now
        real(path, rows)

    monkeypatch.setattr(demo, "write_hospital", write)
    # The release has a lock of its own.
    monkeypatch.setattr(job, "run_job", lambda *args, **kwargs: job.JobResult(None, {}, {}))
    monkeypatch.setattr("duckanon.interfaces.cli.run.show_release", lambda *args: None)
    failed = []

    def run():
        try:
            app(["demo", "--rows", "100"], standalone_mode=False)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(set(folders)) == 2
    assert sorted(p.name for p in Path("demo").iterdir()) == ["hospital.parquet", "hospital.toml"]
    assert pq.read_metadata("demo/hospital.parquet").num_rows == 100


def test_demo_that_fails_leaves_no_torn_table(in_folder, monkeypatch):
    def fail(path, rows):
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("duckanon.testing.hospital.write_hospital", fail)
    assert call("demo").exit_code == 6
    assert list(Path("demo").iterdir()) == []


@pytest.mark.parametrize("kind", ["models", "algorithms", "metrics", "hierarchies"])
def test_list_comes_from_the_registries(kind):
    rows = document(call("list", kind, "--json"))
    assert all(row["name"] for row in rows)
    expected = {"models": "k_anonymity", "algorithms": "datafly", "metrics": "loss", "hierarchies": "us_zip5"}
    assert expected[kind] in {row["name"] for row in rows}
    assert f"{expected[kind]}\t" in call("list", kind).stdout


def test_list_shows_direction_and_range():
    assert "precision\t0 to 1\thigher is better" in call("list", "metrics").stdout
    assert set(document(call("list", "--json"))) == {"models", "algorithms", "metrics", "hierarchies"}


# hierarchies


def test_hierarchy_build_validate_show(people):
    words = ("--rule", "intervals", "--width", "10", "--set", "factors=[2]", "-o", "age.csv")
    built = call("hierarchy", "build", "people.parquet", "--column", "age", *words)
    assert (built.exit_code, built.stdout) == (0, "age.csv: height 3; labels 30 -> 3 -> 2 -> 1\n")
    assert Path("age.csv").read_text().splitlines()[0] == "20;[20, 30);[20, 40);*"
    good = call("hierarchy", "validate", "age.csv", "--data", "people.parquet", "--column", "age")
    assert good.exit_code == 0, good.output
    assert "total: yes (0 values without a row)" in good.stdout
    bad = call("hierarchy", "validate", "age.csv", "--data", "people.parquet", "--column", "zip", "--json")
    assert bad.exit_code == 1
    assert (document(bad)["total"], document(bad)["nested"]) == (False, True)
    shown = call("hierarchy", "show", "age.csv", "--limit", "1")
    assert shown.stdout.splitlines()[1:] == ["20;[20, 30);[20, 40);*"]


def test_hierarchy_build_from_a_rule_file(people):
    Path("r.toml").write_text('rule = "prefix"\nlengths = [3]\n')
    words = ("hierarchy", "build", "people.parquet", "-c", "zip", "-o", "zip.csv")
    assert document(call(*words, "--rule-file", "r.toml", "--json"))["height"] == 2
    assert call(*words).exit_code == 2
    assert call(*words, "--rule-file", "r.toml", "--width", "3").exit_code == 2
    wrong = call(*words, "--rule", "interval")
    assert (wrong.exit_code, "Did you mean 'intervals'?" in wrong.stderr) == (2, True)


def test_hierarchy_validate_counts_what_is_wrong(in_folder):
    Path("h.csv").write_text("a;x;*\na;y;*\nb;;*\n")
    result = call("hierarchy", "validate", "h.csv")
    assert result.exit_code == 1
    assert "functional: no (1 repeated leaf, 1 empty cell, 0 ragged lines)" in result.stdout
    assert "total: not checked" in result.stdout
    Path("h.csv").write_text("a;b;*\nb;a;*\nc\n")
    result = call("hierarchy", "validate", "h.csv")
    assert "functional: no (0 repeated leaves, 0 empty cells, 1 ragged line)" in result.stdout
    assert "nested: no (0 labels with several parents, 2 on a loop)" in result.stdout
    assert document(call("hierarchy", "validate", "h.csv", "--json"))["loops"] == 2
    Path("h.csv").write_text("a,b,*\nb,c,*\n")
    result = call("hierarchy", "validate", "h.csv")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (1, "h.csv: 2 leaves, height 0, cannot be used")
    assert "Most lines hold a comma: is the separator ',' and not ';'?" in result.stdout


def test_hierarchy_validate_of_a_rule(people):
    shipped = call("hierarchy", "validate", str(CHECKOUT / "hierarchies" / "us_zip5.toml"))
    assert (shipped.exit_code, shipped.stdout) == (0, "us_zip5.toml: a rule (prefix), height 5, can be used\n")
    assert call("hierarchy", "validate", "us_zip5").stdout == "us_zip5: a rule (prefix), height 5, can be used\n"
    assert call("hierarchy", "validate", "countries").stdout.startswith("countries: 292 leaves, height 3, can be used")
    Path("r.toml").write_text('rule = "prefix"\nlengths = [1]\nthen = "nobody"\n')
    wrong = call("hierarchy", "validate", "r.toml")
    assert wrong.exit_code == 1
    assert wrong.stdout.startswith("r.toml: a rule (prefix), cannot be used\nproblem: Unknown hierarchy 'nobody'")
    Path("r.toml").write_text('rule = "intervals"\nwidth = 5\n')
    data = ("--data", "people.parquet", "--column")
    good = call("hierarchy", "validate", "r.toml", *data, "age")
    assert (good.exit_code, good.stdout.splitlines()[1:]) == (0, ["total: yes (0 values without a row)"])
    unfit = document(call("hierarchy", "validate", "r.toml", *data, "zip", "--json"))
    assert (unfit["usable"], unfit["kind"], unfit["rule"]) == (False, "rule", "intervals")
    assert "needs a number" in unfit["problems"][0]
    unknown = call("hierarchy", "validate", "us_zip")
    assert (unknown.exit_code, "Did you mean 'us_zip5'" in unknown.stderr) == (2, True)


def test_hierarchy_build_keeps_the_old_file_when_the_disk_is_full(people, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    Path("age.csv").write_text("old;*\n")
    before = sorted(Path().iterdir())
    monkeypatch.setattr(os, "fsync", full)
    words = ("people.parquet", "-c", "age", "-o", "age.csv", "--rule", "suppress")
    result = call("hierarchy", "build", *words)
    assert result.exit_code not in (0, 1)
    assert "No space left on device: age.csv" in result.stderr
    assert (Path("age.csv").read_text(), sorted(Path().iterdir())) == ("old;*\n", before)


@pytest.mark.parametrize(
    "words",
    [
        ("--json", "hierarchy", "show", "weekdays"),
        ("hierarchy", "--json", "show", "weekdays"),
        ("hierarchy", "show", "--json", "weekdays"),
        ("hierarchy", "show", "weekdays", "--json"),
    ],
)
def test_json_may_stand_anywhere(words):
    assert document(call(*words))["name"] == "weekdays"
    assert "Build, validate and show" in call("hierarchy", "--help").stdout


def test_hierarchy_show_of_a_rule():
    shown = call("hierarchy", "show", "us_zip5").stdout.splitlines()
    assert shown[0] == 'us_zip5: height 5; a rule: rule = "prefix", lengths = [3], then = "us_zip3"'
    assert shown[1] == "level 1: the first 3 characters"
    assert shown[2].startswith("levels 2 to 5: us_zip3, labels ")
    assert document(call("hierarchy", "show", "us_zip5", "--json"))["steps"] == shown[1:]
    assert document(call("hierarchy", "show", "countries", "--json", "-n", "2"))["labels"][-1] == 1


# errors


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.JobError("x"), 2),
        (errors.RoleError("x"), 2),
        (errors.ParameterError("x"), 2),
        (errors.HierarchyError("x"), 2),
        (errors.UnsupportedError("x"), 2),
        (errors.DataError("x"), 3),
        (errors.InfeasibleError("x"), 4),
        (errors.PrivacyViolation("x"), 5),
        (errors.EngineError("x"), 6),
        (PermissionError(13, "Permission denied", "f"), 6),
        (KeyboardInterrupt(), 130),
        (ZeroDivisionError("Jane Doe"), 1),
    ],
)
@pytest.mark.thinned(3)
def test_exit_codes(monkeypatch, error, code):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr("duckanon.jobs.run_job", fail)
    result = call("run", "job.toml")
    assert result.exit_code == code
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert "Traceback" not in result.stderr
    found = document(call("run", "job.toml", "--json"))["error"]
    assert found["exit_code"] == code
    assert set(found) == {"type", "message", "exit_code"}


def test_an_unexpected_error_quotes_nothing(monkeypatch):
    def fail(*args, **kwargs):
        raise ValueError("Jane Doe")

    monkeypatch.setattr("duckanon.jobs.run_job", fail)
    short, long = call("run", "job.toml"), call("run", "job.toml", "-v")
    assert "ValueError" in short.stderr
    assert "-v" in short.stderr
    assert "in fail" in long.stderr
    assert "Jane" not in short.output + long.output


def test_control_characters_do_not_reach_the_terminal(monkeypatch):
    def fail(*args, **kwargs):
        raise errors.DataError("column '\x1b[2J\n'")

    monkeypatch.setattr("duckanon.jobs.run_job", fail)
    assert "\x1b" not in call("run", "job.toml").stderr


def test_usage_errors_give_a_hint():
    assert "Did you mean" in call("chek").stderr
    wrong = call("check", "x", "--quasi", "a", "-k", "2")
    assert (wrong.exit_code, "--quasi-identifiers" in wrong.stderr) == (2, True)
    found = document(call("check", "x", "--nope", "--json"))["error"]
    assert found["exit_code"] == 2


def test_misspelt_column_gets_a_hint(people):
    result = call("check", "people.parquet", "-q", "agee", "-k", "2")
    assert (result.exit_code, "Did you mean 'age'?" in result.stderr) == (2, True)


def test_missing_files(in_folder):
    assert call("run", "nope.toml").exit_code == 2
    assert call("check", "nope.parquet", "-q", "a", "-k", "2").exit_code == 3
    assert call("verify", "nope.json").exit_code == 3
    assert call("hierarchy", "show", "nope").exit_code == 2


# version, help, log


def test_version_and_help(monkeypatch):
    assert call("--version").stdout == f"duckanon {__version__}\n"
    monkeypatch.setattr("sys.argv", ["duckanon", "--version", "--json"])
    assert document(call("--version", "--json")) == {"duckanon": __version__}
    text = call("--help").stdout
    commands = ("run", "plan", "check", "demo", "verify", "list", "sql", "hierarchy", "--install-completion")
    assert all(word in text for word in commands)


def test_help_imports_nothing_heavy():
    heavy = "{'duckdb', 'sqlglot', 'pyarrow', 'numpy', 'numba'}"
    code = f"import sys, duckanon.interfaces.cli; print(sorted({heavy} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert found.stdout.strip() == "[]"


def test_verbose_shows_sql_on_standard_error(people):
    quiet, loud = call("run", "job.toml"), call("run", "job.toml", "-v")
    assert quiet.stderr == ""
    assert "duckanon.sql: " in loud.stderr
    assert quiet.stdout == loud.stdout
    options.quiet()
    assert logging.getLogger("duckanon").level == logging.NOTSET


def test_completion_knows_the_commands():
    words = {"_DUCKANON_COMPLETE": "complete_bash", "COMP_WORDS": "duckanon ve", "COMP_CWORD": "1"}
    environment = {**os.environ, **words, "PYTHONPATH": str(CHECKOUT)}
    found = subprocess.run(COMMAND, capture_output=True, text=True, env=environment, timeout=600)
    assert found.stdout.split() == ["verify"]
