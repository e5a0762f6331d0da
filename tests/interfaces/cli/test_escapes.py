"""Names cannot control the terminal: no control character reaches it, a log or a report."""

from __future__ import annotations

import io
import json
import logging
import os
import pty
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duckanon.interfaces.cli.screen import console, visible

CHECKOUT = Path(__file__).resolve().parents[3]
EVIL = "a\x1b]0;x\x07\x1b[2J\x9b31m\x7f\rok: \u202ee"
CONTROLS = [chr(c) for c in (*range(0x20), 0x7F, *range(0x80, 0xA0)) if chr(c) not in "\n\t"]


@pytest.fixture
def job(tmp_path: Path) -> Path:
    table = pa.table({EVIL: [1, 1, 2, 2] * 5, f"s{EVIL}": ["x", "y"] * 10, f"n\n{EVIL}": ["p"] * 20})
    pq.write_table(table, tmp_path / f"rows{EVIL}.parquet")
    text = json.dumps
    (tmp_path / f"job{EVIL}.toml").write_text(
        f"[source]\npath = {text(f'rows{EVIL}.parquet')}\n[roles]\nquasi_identifiers = [{text(EVIL)}]\n"
        f"sensitive = [{text(f's{EVIL}')}]\ninsensitive = [{text(f'n{chr(10)}{EVIL}')}]\n[privacy]\nk = 2\nl = 2\n"
        f"[output]\npath = {text(f'out/r{EVIL}.parquet')}\n".replace("\x7f", "\\u007f"),
        encoding="utf-8",
    )
    return tmp_path / f"job{EVIL}.toml"


def run(arguments: list[str], terminal: bool, folder: Path) -> str:
    command = [sys.executable, "-m", "duckanon", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "TERM": "dumb", "NO_COLOR": "1"}
    if not terminal:
        done = subprocess.run(command, capture_output=True, cwd=folder, env=environment, check=False, timeout=120)
        return (done.stdout + done.stderr).decode()
    leader, follower = pty.openpty()
    process = subprocess.Popen(command, stdout=follower, stderr=follower, cwd=folder, env=environment)
    os.close(follower)
    found = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:
            break
        if not piece:
            break
        found += piece
    process.wait()
    os.close(leader)
    # The terminal's own line ends.
    return found.decode().replace("\r\n", "\n")


def test_nothing_on_screen_in_logs_or_reports_steers_a_terminal(job: Path) -> None:
    name = job.name
    commands = [
        (["job", "validate", name], True),
        (["run", name, "--log", "human", "-v"], False),
        (["history", name], True),
        (["run", name, "--json"], True),
        (["run", f"{name}{EVIL}"], True),
        (["check", f"rows{EVIL}.parquet", EVIL, "-q", EVIL], True),
    ]
    for arguments, terminal in commands:
        shown = run(arguments, terminal, job.parent)
        # Bars are moved and colours are set by sequences of our own: none of them has what a name has.
        assert not [c for c in CONTROLS if c in shown and c != "\x1b"], (arguments, shown)
        assert "\x1b]0" not in shown
        assert "\x1b[2J" not in shown
        assert "\u202e" not in shown
    reports = [p for p in (job.parent / "out").iterdir() if p.suffix in (".md", ".html")]
    assert len(reports) == 2
    for report in reports:
        text = report.read_text(encoding="utf-8")
        assert not [c for c in (*CONTROLS, "\u202e") if c in text], report.suffix


def test_texts_of_tables_on_a_terminal_are_shown() -> None:
    from rich.table import Table
    from rich.text import Text

    out = io.StringIO()
    table = Table()
    table.add_column(Text(EVIL))
    table.add_row(Text(f"{EVIL}\nsecond"), style="bold")
    console(file=out, force_terminal=True, width=200).print(table)
    written = out.getvalue()
    assert "\x1b[2J" not in written
    assert not [c for c in CONTROLS if c in written and c != "\x1b"]
    assert "second" in written


def test_lines_are_told_apart_from_names() -> None:
    assert visible("a\nb") == "a\\nb"
    assert visible("a\nb\tc\x00", but="\n\t") == "a\nb\tc\\x00"
    assert visible("plain ü") == "plain ü"


def test_statements_of_the_log_are_shown() -> None:
    from duckanon.interfaces.cli.options import _Plain

    record = logging.LogRecord("duckanon.sql", logging.DEBUG, "", 0, "SELECT %s", (EVIL,), None)
    assert "\x1b" not in _Plain("%(name)s: %(message)s").format(record)
