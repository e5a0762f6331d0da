"""The command line: what it prints, where, and how it ends."""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot
from rich.console import Console
from typer.testing import CliRunner, Result

from duckanon import __version__, errors
from duckanon.cli import app, options, results, screen, shell, statements
from duckanon.cli.bars import Bars
from duckanon.progress import Event

CHECKOUT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-c", "from duckanon.cli import main; main()"]
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
JOB = """
[source]
path = "people.parquet"
[roles]
quasi_identifiers = ["age", "zip"]
sensitive = ["ill"]
[privacy]
k = 3
suppression_limit = 0.1
[output]
path = "out/people.parquet"
"""


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yield tmp_path
    options.quiet()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    rows = 60
    table = {
        "age": [20 + i % 30 for i in range(rows)],
        "zip": [f"97{i % 4}0{i % 3}" for i in range(rows)],
        "ill": ["abc"[i % 3] for i in range(rows)],
    }
    folder = tmp_path_factory.mktemp("people")
    pq.write_table(pa.table(table), folder / "people.parquet")
    (folder / "job.toml").write_text(JOB)
    return folder


@pytest.fixture
def people(in_folder, made):
    shutil.copytree(made, in_folder, dirs_exist_ok=True)
    return in_folder


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    """A demo's whole folder, and what the command said."""
    folder = tmp_path_factory.mktemp("hospital") / "demo"
    return folder, call("demo", "--rows", "2000", "--folder", str(folder))


def call(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(words), input=stdin)


def spawn(*words: str, **kwargs) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "NO_COLOR": "1"}
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, env=environment, timeout=120, **kwargs)


def terminal(*words: str, columns: int = 80, feed: str = "", after: str = "") -> tuple[int, str]:
    """Run a command on a pseudo-terminal and return its exit code and all that it drew."""
    pty = pytest.importorskip("pty")
    main, side = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "COLUMNS": str(columns), "TERM": "xterm", "NO_COLOR": "1"}
    process = subprocess.Popen(
        [*COMMAND, *words], stdin=side, stdout=side, stderr=side, env=environment, start_new_session=True
    )
    os.close(side)
    drawn = b""
    try:
        while piece := os.read(main, 65536):
            drawn += piece
            if feed and after.encode() in drawn:
                os.write(main, feed.encode())
                feed = ""
    except OSError:
        pass  # Linux says EIO when the other side is closed
    os.close(main)
    return process.wait(timeout=120), drawn.decode(errors="replace")


def document(result: Result) -> dict | list:
    return json.loads(result.stdout)


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


def test_plan_leaves_the_data_alone(people):
    result = call("plan", "job.toml")
    assert result.exit_code == 0
    assert "promise: every combination of quasi-identifiers is shared by at least 3 rows" in result.stdout
    assert "-- frequency table" in result.stdout
    assert "GROUP BY" in result.stdout
    assert not Path("out").exists()
    assert document(call("plan", "job.toml", "--json"))["statements"]


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
    assert sorted(p.name for p in folder.iterdir()) == ["hospital.parquet", "hospital.toml", "release"]
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
    from duckanon import demo, job

    real, met, folders = demo.write_hospital, threading.Barrier(2), []

    def write(path, rows):
        folders.append(path)
        met.wait(30)  # both are writing now
        real(path, rows)

    monkeypatch.setattr(demo, "write_hospital", write)
    # The release has a lock of its own.
    monkeypatch.setattr(job, "run_job", lambda *args, **kwargs: job.JobResult(None, {}, {}))
    monkeypatch.setattr("duckanon.cli.show.show_release", lambda *args: None)
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

    monkeypatch.setattr("duckanon.demo.write_hospital", fail)
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
    assert 'rule = "prefix"' in call("hierarchy", "show", "us_zip5").stdout
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
def test_exit_codes(monkeypatch, error, code):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr("duckanon.job.run_job", fail)
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

    monkeypatch.setattr("duckanon.job.run_job", fail)
    short, long = call("run", "job.toml"), call("run", "job.toml", "-v")
    assert "ValueError" in short.stderr
    assert "-v" in short.stderr
    assert "in fail" in long.stderr
    assert "Jane" not in short.output + long.output


def test_control_characters_do_not_reach_the_terminal(monkeypatch):
    def fail(*args, **kwargs):
        raise errors.DataError("column '\x1b[2J\n'")

    monkeypatch.setattr("duckanon.job.run_job", fail)
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
    assert call("verify", "nope.json").exit_code == 1
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
    code = f"import sys, duckanon.cli; print(sorted({heavy} & set(sys.modules)))"
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
    found = subprocess.run(COMMAND, capture_output=True, text=True, env=environment, timeout=60)
    assert found.stdout.split() == ["verify"]


# the SQL shell


def test_sql_command(people):
    result = call("sql", "-c", "SELECT 1 AS a, 'x' AS b; SELECT NULL AS c")
    assert result.exit_code == 0, result.output
    assert "│ a │ b │" in result.stdout
    assert "NULL" in result.stdout
    assert result.stdout.count("1 row") == 2


def test_sql_functions_are_installed(people):
    query = "SELECT count(*) AS n FROM anonymize('people.parquet', quasi_identifiers := ['zip'], k := 5)"
    assert document(call("sql", "--json", "-c", query)) == [{"n": 60}]


def test_sql_errors_are_one_line(people):
    result = call("sql", "-c", "SELECT 1; SELCT 2; SELECT 3")
    assert result.exit_code == 1
    assert result.stderr == 'Error: Parser Error: syntax error at or near "SELCT"\n'
    assert "│ 3 │" not in result.stdout
    assert document(call("sql", "--json", "-c", "FROM nope"))["error"]["type"] == "StatementError"


def test_sql_reads_a_script_from_standard_input(people):
    result = spawn("sql", input="SELECT 40 + 2 AS answer;\n-- done\n")
    assert (result.returncode, "42" in result.stdout, result.stderr) == (0, True, "")
    assert call("sql", stdin="SELECT nope;").exit_code == 1


def test_dot_commands_work_in_a_script():
    script = (
        "-- first\n.mode json\nSELECT 1 AS a;\n.mode csv\nBEGIN; CREATE TABLE t (a INT); CREATE SCHEMA s;\n"
        "CREATE VIEW s.v AS FROM t; CREATE TEMP TABLE u (a INT);\n.tables\nSELECT 2 +\n.5 AS b;\n.quit\nSELECT 3;"
    )
    result = call("sql", stdin=script)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert "".join(line.strip() for line in lines[:5]) == '[{"a": 1}]'
    assert lines[5:] == ["t", "memory.s.v", "u", "b", "2.5"]
    assert document(call("sql", "--json", stdin="CREATE TABLE t (a INT);\n.mode csv\n.help\n.tables")) == [
        {"database": "memory", "schema": "main", "name": "t"}
    ]
    wrong = call("sql", "-c", ".tabels")
    assert (wrong.exit_code, wrong.stderr) == (2, "Error: There is no .tabels. Did you mean '.tables'? Try .help.\n")


ODD = {
    "TIMESTAMPTZ '2020-01-01 00:00:00+00'": ("2020-01-01 00:00:00+00", "2020-01-01 00:00:00+00"),
    "'infinity'::DATE": ("infinity", "infinity"),
    "DATE '20000-01-01'": ("20000-01-01", "20000-01-01"),
    "170141183460469231731687303715884105727::HUGEINT": (str(2**127 - 1), 2**127 - 1),
    "(2::UHUGEINT ** 0 * 7)::UHUGEINT": ("7", 7),
    "'inf'::DOUBLE": ("inf", "inf"),
    "'-inf'::FLOAT": ("-inf", "-inf"),
    "'nan'::DOUBLE": ("nan", "nan"),
    "1.50::DECIMAL(10, 2)": ("1.50", 1.5),
    "INTERVAL '1 month 2 days 3 seconds'": ("1 month 2 days 00:00:03", "1 month 2 days 00:00:03"),
    r"'\xAB\x00a'::BLOB": (r"\xAB\x00a", r"\xAB\x00a"),
    "{'a': [1, NULL, 'nan'::DOUBLE]}": ("{'a': [1.0, NULL, nan]}", {"a": [1.0, None, "nan"]}),
    "MAP {'k': DATE 'infinity'}": ("{k=infinity}", {"k": "infinity"}),
    "true": ("true", True),
    "'NULL'": ("NULL", "NULL"),
    "NULL": ("NULL", None),
}


def test_values_that_python_does_not_know_show_right(monkeypatch):
    monkeypatch.setitem(sys.modules, "pytz", None)
    query = f"SET TimeZone = 'UTC'; SELECT {', '.join(f'{value} AS v{i}' for i, value in enumerate(ODD))}"
    box = call("sql", "-c", query)
    assert box.exit_code == 0, box.output
    shown = [cell.strip() for cell in box.stdout.splitlines()[3].strip("│").split("│")]
    assert shown == [text for text, _ in ODD.values()]
    (row,) = document(call("sql", "--json", "-c", query))
    assert list(row.values()) == [value for _, value in ODD.values()]
    lines = call("sql", stdin=f".mode csv\n{query}").stdout.splitlines()
    assert next(csv.reader(lines[1:])) == ["" if value is None else text for text, value in ODD.values()]


def test_what_statements_return_shows_right():
    script = "CREATE TABLE t (a TIMESTAMPTZ); SET TimeZone = 'UTC';\nINSERT INTO t VALUES ('2020-01-01') RETURNING a;"
    assert document(call("sql", "--json", stdin=script)) == [{"a": "2020-01-01 00:00:00+00"}]
    assert document(call("sql", "--json", "-c", "PIVOT (SELECT 'x' AS a, 2 AS b) ON a USING sum(b)")) == [{"x": 2}]
    assert document(call("sql", "--json", "-c", "SELECT 1 AS a, 2 AS a")) == [{"a": 1, "a_1": 2}]
    assert document(call("sql", "--json", "-c", "CHECKPOINT; BEGIN; COMMIT")) == []
    assert "Projection" in call("sql", "-c", "EXPLAIN SELECT 1").stdout.title()


def test_no_variable_of_the_program_is_a_table():
    assert call("sql", "-c", "FROM parsed").exit_code == 1


def test_json_of_several_results_is_an_array_of_arrays():
    found = document(call("sql", "--json", "-c", "SELECT 1 AS a; CREATE TABLE t (a INT); SELECT 2 AS b"))
    assert found == [[{"a": 1}], [{"b": 2}]]


def test_sql_refuses_what_is_no_database(in_folder):
    Path("x.duckdb").write_text("this is not a database at all, only some words" * 100)
    result = call("sql", "x.duckdb", "-c", "SELECT 1")
    assert result.exit_code != 0
    assert len(result.stderr.splitlines()) == 1


def test_sql_json_gives_all_rows_and_a_box_the_first(people):
    assert len(document(call("sql", "--json", "-c", "FROM range(500)"))) == 500
    assert "40 shown of 500 rows" in call("sql", "-c", "FROM range(500)").stdout
    assert "more than 100000 rows" in call("sql", "-c", "FROM range(200000)").stdout


def test_sql_says_nothing_where_there_are_no_rows(people):
    assert call("sql", "-c", "CREATE TABLE t (a INT); INSERT INTO t VALUES (1)").stdout == ""
    assert document(call("sql", "--json", "-c", "CREATE TABLE t (a INT)")) == []


@pytest.mark.parametrize(
    ("text", "complete", "rest"),
    [
        ("SELECT 1", [], "SELECT 1"),
        ("SELECT 1; SELECT 2;", ["SELECT 1", "SELECT 2"], ""),
        ("SELECT 'a;b''c;';", ["SELECT 'a;b''c;'"], ""),
        ('SELECT ";";', ['SELECT ";"'], ""),
        ("SELECT 1 -- no; end\n;", ["SELECT 1 -- no; end"], ""),
        ("/* ; */ SELECT 1;", ["/* ; */ SELECT 1"], ""),
        ("SELECT $$;$$;", ["SELECT $$;$$"], ""),
        ("SELECT $a$;$$;$a$;", ["SELECT $a$;$$;$a$"], ""),
        (r"SELECT E'\';';", [r"SELECT E'\';'"], ""),
        ("SELECT 'open;", [], "SELECT 'open;"),
        ("/* open;", [], "/* open;"),
        ("SELECT $1; SELECT", ["SELECT $1"], "SELECT"),
        (";;", [], ""),
    ],
)
def test_statements_end_at_semicolons(text, complete, rest):
    assert statements.split(text) == (complete, rest)


def test_box_aligns_numbers_and_drops_middle_columns(capsys):
    wide = results.Result(tuple(f"column_{i}" for i in range(20)), [tuple(str(i) for i in range(20))], 1)
    results.write(screen.Screen(), wide, "box", width=80)
    drawn = capsys.readouterr().out
    assert max(len(line) for line in drawn.splitlines()) <= 80
    assert "column_0" in drawn
    assert "column_19" in drawn
    assert "of 20 columns" in drawn
    results.write(screen.Screen(), results.Result(("n",), [("1",), ("100",)], 2, numeric=(True,)), "box")
    assert "│   1 │" in capsys.readouterr().out


def test_box_shows_control_characters_as_escapes(capsys):
    results.write(screen.Screen(), results.Result(("t",), [("\x1b[2J",)], 1), "box", width=80)
    assert "\x1b" not in capsys.readouterr().out


def test_csv_mode(capsys):
    results.write(screen.Screen(), results.Result(("a", "b"), [("1", "x,y"), (None, "true")], 2), "csv")
    assert capsys.readouterr().out == 'a,b\n1,"x,y"\n,true\n'


def test_json_mode_keeps_columns_of_the_same_name(capsys):
    results.write(screen.Screen(), results.Result(("a", "a"), [(1, 2)], 1), "json")
    assert json.loads(capsys.readouterr().out) == [{"a": 1, "a_1": 2}]


def test_history_is_private(in_folder):
    path = shell.history_file()
    assert path == in_folder / "state" / "duckanon" / "history"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_ctrl_c_cancels_a_statement():
    stopped = threading.Event()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            shell.cancellable(lambda: stopped.wait(20) and None, stopped.set)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert stopped.is_set()


def test_ctrl_c_reaches_a_release_in_the_making(people, monkeypatch):
    # The engine of the call works on a cursor of its own, which only it can interrupt.
    from duckanon.algorithms.datafly import Datafly

    def forever(self, problem):
        problem.engine.run(sqlglot.parse_one("SELECT count(*) FROM range(1000000) a, range(1000000) b"))

    monkeypatch.setattr(Datafly, "search", forever)
    timer = threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    result = call("sql", "-c", "FROM anonymize('people.parquet', quasi_identifiers := ['zip'], k := 5)")
    timer.join()
    assert (result.exit_code, result.stderr) == (130, "Error: Interrupted.\n")
    assert time.monotonic() - start < 10


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_stopped_run_leaves_nothing_behind(people, temp_folder, name, code):
    job = Path("job.toml")
    job.write_text(job.read_text().replace("people.parquet", "many.parquet", 1))
    # It takes long enough to be met at work.
    call("sql", "-c", "COPY (SELECT p.* FROM 'people.parquet' p, range(30000)) TO 'many.parquet'")
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    process = subprocess.Popen([*COMMAND, "run", "job.toml"], env=environment, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not list(Path("out").glob(".duckanon-*")) and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(getattr(signal, name))
    _, said = process.communicate(timeout=60)
    word = {143: "Terminated", 130: "Interrupted"}[code]
    assert (process.returncode, said) == (code, f"Error: {word}.\n")
    assert not Path("out").exists()
    assert list(temp_folder.iterdir()) == []


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_late_signal_still_gets_an_answer(name, code):
    # It comes when the command is done, and nothing is left that would catch it.
    late = f"""
import os, signal, sys
from duckanon.cli import main
from duckanon.cli.app import _Commands
real = _Commands.main
def done(*args, **kwargs):
    try:
        real(*args, **kwargs)
    except SystemExit:
        os.kill(os.getpid(), signal.{name})
_Commands.main = done
sys.argv = ["duckanon", "--version"]
main()
"""
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    found = subprocess.run([sys.executable, "-c", late], capture_output=True, text=True, env=environment, timeout=60)
    assert (found.returncode, found.stdout) == (code, f"duckanon {__version__}\n")
    assert len(found.stderr.splitlines()) == 1


def test_shell_on_a_terminal(in_folder):
    feed = ".mode xml\rSELECT 40 +\r2 AS answer;\rSELCT;\r.tabels\rCREATE TABLE t (a INT);\r.tables\r.quit\r"
    code, drawn = terminal("sql", feed=feed, after="Ctrl-D leaves")
    assert code == 0
    for text in (".mode is one of", "42", "syntax error", "Did you mean '.tables'?", "ok ("):
        assert text in drawn
    assert "Traceback" not in drawn


# terminals and progress


@pytest.mark.parametrize("columns", [80, 120])
def test_summary_on_a_terminal(people, columns):
    code, drawn = terminal("run", "job.toml", columns=columns)
    assert code == 0, drawn
    for heading in ("Promised", "Proved", "Found", "Columns", "Files"):
        assert heading in drawn
    for text in ("✓", "holds in all", "suppressed", "of 1", "as it is (sensitive)", "out/people.parquet"):
        assert text in drawn
    assert max(len(line) for line in re.split(r"[\r\n]+", ANSI.sub("", drawn))) <= columns


def test_no_progress_without_a_terminal(people, monkeypatch):
    seen = []
    from duckanon import job

    real = job.run_job

    def listen(path, *, progress=None, dry_run=False):
        seen.append(progress)
        return real(path, progress=progress, dry_run=dry_run)

    monkeypatch.setattr(job, "run_job", listen)
    call("run", "job.toml")
    assert seen == [None]


def test_progress_waits_and_then_shows_rows():
    drawn = io.StringIO()
    console = Console(file=drawn, force_terminal=True, width=100)
    with Bars(delay=60, console=console) as early:
        early(Event("encode", 1, 10))
    assert drawn.getvalue() == ""
    with Bars(delay=0, console=console) as bars:
        end = time.monotonic() + 20
        while "encode" not in drawn.getvalue() and time.monotonic() < end:
            bars(Event("encode", 900, 1000))
            time.sleep(0.05)
        bars(Event("encode", 50, 1000))
        bars(Event("search", 3, None, "nodes"))
        time.sleep(0.3)
        bars(Event("encode", 1000, 1000, finished=True))
    text = ANSI.sub("", drawn.getvalue())
    for part in ("900 of 1,000 rows", "encode, pass 2", "3 nodes", "1,000 of 1,000 rows"):
        assert part in text
