"""The command line: what it prints, where, and how it ends."""

from __future__ import annotations

import io
import json
import logging
import os
import re
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


@pytest.fixture
def people(in_folder):
    rows = 60
    table = {
        "age": [20 + i % 30 for i in range(rows)],
        "zip": [f"97{i % 4}0{i % 3}" for i in range(rows)],
        "ill": ["abc"[i % 3] for i in range(rows)],
    }
    pq.write_table(pa.table(table), "people.parquet")
    Path("job.toml").write_text(JOB)
    return in_folder


def call(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(words), input=stdin)


def spawn(*words: str, **kwargs) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "NO_COLOR": "1"}
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, env=environment, timeout=120, **kwargs)


def terminal(*words: str, columns: int = 80, feed: str = "", wait: float = 0) -> tuple[int, str]:
    """Run a command on a pseudo-terminal and return its exit code and all that it drew."""
    pty = pytest.importorskip("pty")
    main, side = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "COLUMNS": str(columns), "TERM": "xterm", "NO_COLOR": "1"}
    process = subprocess.Popen(
        [*COMMAND, *words], stdin=side, stdout=side, stderr=side, env=environment, start_new_session=True
    )
    os.close(side)
    if feed:
        time.sleep(wait)
        os.write(main, feed.encode())
    drawn = b""
    try:
        while piece := os.read(main, 65536):
            drawn += piece
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
    assert lines[0].startswith("k_anonymity (k=3): holds, 0 of ")
    assert lines[1].startswith("rows: 60 in, ")
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


def test_demo_makes_a_table_and_a_release(in_folder):
    result = call("demo", "--rows", "2000", "--folder", "d")
    assert result.exit_code == 0, result.output
    assert "data: d/hospital.parquet: 2,000 rows of invented hospital stays" in result.stdout
    assert sorted(p.name for p in Path("d").iterdir()) == ["hospital.parquet", "hospital.toml", "release"]
    assert "release: d/release/hospital.parquet" in result.stdout


def test_demo_keeps_a_changed_job(in_folder):
    call("demo", "--rows", "2000")
    job = Path("demo/hospital.toml")
    job.write_text(job.read_text().replace("k = 5", "k = 7"))
    found = document(call("demo", "--rows", "2000", "--json"))
    assert found["job_changed"] is True
    assert found["summary"]["promise"][0]["parameters"] == {"k": 7}


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
    assert "functional: no (1 repeated leaves, 1 empty cells, 0 ragged lines)" in result.stdout
    assert "total: not checked" in result.stdout


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


def test_version_and_help():
    assert call("--version").stdout == f"duckanon {__version__}\n"
    assert json.loads(spawn("--version", "--json").stdout) == {"duckanon": __version__}
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
    assert spawn("sql", input="SELECT nope;").returncode == 1


def test_sql_refuses_what_is_no_database(in_folder):
    Path("x.duckdb").write_text("this is not a database at all, only some words" * 100)
    result = call("sql", "x.duckdb", "-c", "SELECT 1")
    assert result.exit_code != 0
    assert len(result.stderr.splitlines()) == 1


def test_sql_json_gives_all_rows_and_a_box_the_first(people):
    assert len(document(call("sql", "--json", "-c", "FROM range(500)"))) == 500
    assert "40 shown of 500 rows" in call("sql", "-c", "FROM range(500)").stdout
    assert "more than 100,000 rows" in call("sql", "-c", "FROM range(200000)").stdout


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
    wide = results.Result(tuple(f"column_{i}" for i in range(20)), [tuple(range(20))], 1)
    results.write(screen.Screen(), wide, "box", width=80)
    drawn = capsys.readouterr().out
    assert max(len(line) for line in drawn.splitlines()) <= 80
    assert "column_0" in drawn
    assert "column_19" in drawn
    assert "of 20 columns" in drawn
    results.write(screen.Screen(), results.Result(("n",), [(1,), (100,)], 2), "box")
    assert "│   1 │" in capsys.readouterr().out


def test_box_shows_control_characters_as_escapes(capsys):
    results.write(screen.Screen(), results.Result(("t",), [("\x1b[2J",)], 1), "box", width=80)
    assert "\x1b" not in capsys.readouterr().out


def test_csv_mode(capsys):
    results.write(screen.Screen(), results.Result(("a", "b"), [(1, "x,y"), (None, True)], 2), "csv")
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


def test_shell_on_a_terminal(in_folder):
    feed = ".mode xml\rSELECT 40 +\r2 AS answer;\rSELCT;\r.tabels\rCREATE TABLE t (a INT);\r.tables\r.quit\r"
    code, drawn = terminal("sql", feed=feed, wait=3)
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
