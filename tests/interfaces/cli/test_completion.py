"""Completion in the shell, what .help lists, and what is said of misspelt arguments."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon.interfaces.cli.completion import Known, completions, known_of
from duckanon.interfaces.cli.shell import help_text
from duckanon.interfaces.sql.door import FUNCTIONS, PARAMETERS_OF
from tests.interfaces.cli.tools import CHECKOUT, COMMAND, call

KNOWN = Known(
    PARAMETERS_OF,
    lambda: ["visits", "wards"],
    lambda table: {"visits": ["age", "zip", "ill"], "wards": ["floor"]}.get(table, []),
    {"algorithm": lambda: ["mdav", "mondrian"]},
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("FROM anonymize_c", ["anonymize_classes("]),
        ("from VIS", ["visits"]),
        ("FROM anonymize('", ["visits", "wards"]),
        ("FROM anonymize(source := 'w", ["wards"]),
        ("FROM attack('visits', 'v", ["visits"]),
        ("FROM anonymize('visits', quasi", ["quasi_identifiers := "]),
        ("FROM anonymize('visits', k := 5, k", []),
        ("FROM anonymize('visits', sensitive := ['ill'], sen", []),
        ("FROM anonymize('visits', quasi_identifiers := ['", ["age", "zip", "ill"]),
        ("FROM anonymize('visits', quasi_identifiers := ['age', 'z", ["zip"]),
        ("FROM anonymize('wards', quasi_identifiers := ['", ["floor"]),
        ("FROM anonymize('visits', hierarchies := {'", ["age", "zip", "ill"]),
        ("FROM anonymize('visits', algorithm := 'm", ["mdav", "mondrian"]),
        ("FROM privacy('visits', population := '", ["visits", "wards"]),
        ("SELECT ag FROM visits WHERE a", ["anonymize(", "anonymize_report(", "anonymize_classes(", "attack(", "age"]),
        ("SELECT floo", []),
        ("FROM anonymize('visits', k := 5) WHERE z", ["zip"]),
        ("FROM visits WHERE z", ["zip"]),
        ("SELECT 'it''s (' || fl FROM wards WHERE fl", ["floor"]),
        ("FROM anonymize('visits',\nquasi_identifiers := ['age'], sens", ["sensitive := "]),
        (".t", [".tables"]),
    ],
)
def test_what_may_come_next(text: str, words: list[str]) -> None:
    assert completions(text, KNOWN)[1] == words


def test_a_connection_is_asked_for_its_tables_and_columns(people: Path) -> None:
    con = duckanon.connect()
    try:
        con.execute("CREATE TABLE visits AS SELECT 1 AS age; CREATE SCHEMA s; CREATE VIEW s.w AS SELECT 2 AS height")
        known = known_of(lambda: con)
        assert completions("FROM v", known)[1] == ["visits"]
        assert completions("FROM risk('s.", known)[1] == ["s.w"]
        assert completions("FROM risk('s.w', quasi_identifiers := ['", known)[1] == ["height"]
        assert completions("FROM risk('people.parquet', quasi_identifiers := ['", known)[1] == ["age", "zip", "ill"]
        assert completions("FROM risk('not there; DROP TABLE visits', quasi_identifiers := ['", known)[1] == []
        assert "mdav" in completions("FROM anonymize('visits', algorithm := 'm", known)[1]
        assert "us_zip5" in completions("FROM hierarchy('us", known)[1]
        assert con.sql("FROM visits").fetchall() == [(1,)]
    finally:
        con.close()


def test_tab_completes_on_a_terminal(in_folder: Path) -> None:
    pytest.importorskip("prompt_toolkit")
    pexpect = pytest.importorskip("pexpect")
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "TERM": "xterm", "NO_COLOR": "1"}
    child = pexpect.spawn(COMMAND[0], [*COMMAND[1:], "sql"], env=environment, encoding="utf8", timeout=30)
    try:
        child.expect("duckanon>")
        child.send("FROM save_h\t")
        child.expect(r"save_hierarchy\(")
        child.send("'made', {'rule': 'mask'});\r")
        child.expect("│ made")
    finally:
        child.close(force=True)


def test_help_lists_every_function() -> None:
    text = help_text()
    assert [name for name in PARAMETERS_OF if not re.search(rf"\b{name}\b", text)] == []
    assert max(len(line) for line in text.splitlines()) <= 100
    assert call("sql", stdin=".help\n").stdout == text + "\n"


def test_help_on_a_function_lists_its_arguments() -> None:
    said = call("sql", stdin=".help anonymize\n").stdout
    assert [p.name for p in FUNCTIONS["anonymize"].parameters if f"  {p.name} " not in said] == []
    wrong = call("sql", stdin=".help anonymise\n")
    assert (wrong.exit_code, "Did you mean 'anonymize'?" in wrong.stderr) == (2, True)


@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if function.parameters])
def test_a_misspelt_argument_of_every_function_gets_a_suggestion(name: str) -> None:
    wanted = FUNCTIONS[name].parameters[-1].name
    first = "'t', " if FUNCTIONS[name].parameters[0].required else ""
    result = call("sql", "-c", f"SELECT * FROM {name}({first}{wanted}x := NULL)")
    assert (result.exit_code, result.stderr) == (
        1,
        f"Error: {name} has no parameter '{wanted}x'. Did you mean {wanted!r}?\n",
    )


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("FROM hierarchies(x := 1)", "hierarchies has no parameter 'x'. It has none."),
        ("FROM risk(quasi_identifiers := ['a'])", "risk needs source, before all that is named."),
        (
            "FROM risk('t', quasi_identifiers := ['a'], entity_key = 'a')",
            "Write entity_key := ..., not entity_key = ...",
        ),
        ("SELECT mondrian_classes([1], 2, 3)", "mondrian_classes has 2 parameters. Got 3 values."),
    ],
)
def test_what_is_wrong_with_a_call_is_said(statement: str, message: str) -> None:
    assert call("sql", "-c", statement).stderr.startswith(f"Error: {message}")


# Ctrl-C


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table on which one call of a kernel takes many seconds."""
    path = tmp_path_factory.mktemp("many") / "many.parquet"
    random = np.random.default_rng(1)
    pq.write_table(pa.table({name: random.random(1_000_000) for name in "abcdef"}), path)
    return path


CALL = "anonymize('{}', quasi_identifiers := ['a', 'b', 'c', 'd', 'e', 'f'], k := 5, algorithm := '{}')"


@pytest.mark.parametrize("algorithm", ["mdav", "mondrian"])
def test_an_interrupted_process_ends_at_once_whatever_runs(many: Path, algorithm: str) -> None:
    """What is interrupted may be a kernel: the wait is compared with that of a query of the database alone."""
    waits = {}
    for statement in ("SELECT count(*) FROM range(1000000000000) t(i) WHERE hash(i) = 5", CALL.format(many, algorithm)):
        with subprocess.Popen(
            [*COMMAND, "sql", "-c", f"SELECT 1; SELECT * FROM {statement}" if statement[0] == "a" else statement],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONUNBUFFERED": "1"},
            text=True,
        ) as process:
            time.sleep(12 if statement[0] == "a" else 6)
            assert process.poll() is None
            begun = time.monotonic()
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
            waits[statement[0]] = time.monotonic() - begun
            assert (process.returncode, said) == (130, "Error: Interrupted.\n")
    assert waits["a"] < max(1.5, waits["S"] + 1.5), waits


def test_a_shell_goes_on_while_a_kernel_that_was_left_behind_ends(many: Path, in_folder: Path) -> None:
    pexpect = pytest.importorskip("pexpect")
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "TERM": "xterm", "NO_COLOR": "1"}
    child = pexpect.spawn(COMMAND[0], [*COMMAND[1:], "sql", "d.duckdb"], env=environment, encoding="utf8", timeout=60)
    try:
        child.expect("duckanon>")
        child.send("CREATE TABLE kept AS SELECT 41 + 1 AS answer;\r")
        child.expect("ok")
        child.expect("duckanon>")
        child.send(f"SELECT count(*) FROM {CALL.format(many, 'mdav')};\r")
        time.sleep(10)
        begun = time.monotonic()
        child.sendintr()
        child.expect("Cancelled")
        assert time.monotonic() - begun < 5  # 0.5 on a quiet machine
        child.expect("duckanon>")
        child.send("FROM kept;\r")
        child.expect("42")
        child.expect("duckanon>")
        child.send("SELECT count(*) + 1 AS n FROM anonymize('kept', quasi_identifiers := ['answer'], k := 1);\r")
        child.expect("│ 2 │")
        child.expect("duckanon>")
        child.send(".quit\r")
        child.expect(pexpect.EOF)
    finally:
        child.close(force=True)
    assert child.exitstatus == 0
    with duckdb.connect("d.duckdb") as con:
        assert con.execute("FROM kept").fetchall() == [(42,)]
