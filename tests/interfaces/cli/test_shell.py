"""The SQL shell, terminals, progress and signals."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import sqlglot
from rich.console import Console

from duckanon.interfaces.cli import results, screen, shell
from duckanon.interfaces.cli.screen import Bars
from duckanon.progress import Event
from tests.interfaces.cli.tools import ANSI, CHECKOUT, COMMAND, JOB, call, document, spawn, terminal

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
    assert shell.split(text) == (complete, rest)


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
    from duckanon.algorithms.full_domain.datafly import Datafly

    begun = []

    def forever(self, problem):
        # Sent once the release is in the making, however long that took.
        begun.append(time.monotonic())
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        problem.engine.run(sqlglot.parse_one("SELECT count(*) FROM range(1000000) a, range(1000000) b"))

    monkeypatch.setattr(Datafly, "search", forever)
    query = "FROM anonymize('people.parquet', quasi_identifiers := ['zip'], k := 5, algorithm := 'datafly')"
    result = call("sql", "-c", query)
    assert (result.exit_code, result.stderr) == (130, "Error: Interrupted.\n")
    assert time.monotonic() - begun[0] < 60  # the statement itself would take longer


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
@pytest.mark.thinned(2)
def test_a_stopped_run_leaves_nothing_behind(people, temp_folder, name, code):
    job = Path("job.toml")
    job.write_text(job.read_text().replace("people.parquet", "many.parquet", 1))
    # It takes long enough to be met at work.
    call("sql", "-c", "COPY (SELECT p.* FROM 'people.parquet' p, range(30000)) TO 'many.parquet'")
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    process = subprocess.Popen([*COMMAND, "run", "job.toml"], env=environment, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 600
    while not list(Path("out").glob(".duckanon-*/*.parquet")) and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(getattr(signal, name))
    _, said = process.communicate(timeout=600)
    word = {143: "Terminated", 130: "Interrupted"}[code]
    assert (process.returncode, said) == (code, f"Error: {word}.\n")
    assert not Path("out").exists()
    assert list(temp_folder.iterdir()) == []


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
@pytest.mark.parametrize("place", ["main", "make_context"])
@pytest.mark.thinned
def test_a_late_signal_still_gets_an_answer(name, code, place):
    # It comes when the command is done: while the parser cleans up, or when nothing is left that would catch it.
    late = f"""
import os, signal, sys
from duckanon.interfaces.cli import main
from duckanon.interfaces.cli.app import _Commands
real = getattr(_Commands, "{place}")
def done(*args, **kwargs):
    try:
        return real(*args, **kwargs)
    finally:
        os.kill(os.getpid(), signal.{name})
setattr(_Commands, "{place}", done)
sys.argv = ["duckanon", "list", "models"]
main()
"""
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    found = subprocess.run([sys.executable, "-c", late], capture_output=True, text=True, env=environment, timeout=600)
    assert found.returncode == code, found.stderr
    assert found.stderr in ("Error: Terminated.\n", "Error: Interrupted.\n")


def test_shell_on_a_terminal(in_folder):
    feed = ".mode xml\rSELECT 40 +\r2 AS answer;\rSELCT;\r.tabels\rCREATE TABLE t (a INT);\r.tables\r.quit\r"
    code, drawn = terminal("sql", feed=feed, after="Ctrl-D leaves")
    assert code == 0
    for text in (".mode is one of", "42", "syntax error", "Did you mean '.tables'?", "ok ("):
        assert text in drawn
    assert "Traceback" not in drawn


# terminals and progress


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize(
    ("algorithm", "how"), [("", "regions, as interval"), ('[algorithm]\nname = "datafly"\n', "of 1")]
)
@pytest.mark.thinned(2)
def test_summary_on_a_terminal(people, columns, algorithm, how):
    Path("job.toml").write_text(JOB + algorithm)
    code, drawn = terminal("run", "job.toml", columns=columns)
    assert code == 0, drawn
    for heading in ("What is promised", "Verification", "What was found", "What was done to each column", "Files"):
        assert heading in drawn
    for text in ("✓", "holds in all", "suppressed", how, "as it is (sensitive)", "out/people.parquet"):
        assert text in drawn
    assert max(len(line) for line in re.split(r"[\r\n]+", ANSI.sub("", drawn))) <= columns


def test_no_progress_without_a_terminal(people, monkeypatch):
    seen = []
    from duckanon import jobs as job

    real = job.run_job

    def listen(path, *, progress=None, **options):
        seen.append(progress)
        return real(path, progress=progress, **options)

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
        end = time.monotonic() + 200
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
