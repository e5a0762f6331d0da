"""Ways to run the command line: in this process, in another, and on a terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from duckanon.interfaces.cli import app

CHECKOUT = Path(__file__).resolve().parents[3]
COMMAND = [sys.executable, "-c", "from duckanon.interfaces.cli import main; main()"]
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


def call(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(words), input=stdin)


def spawn(*words: str, **kwargs) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "NO_COLOR": "1"}
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, env=environment, timeout=600, **kwargs)


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
    return process.wait(timeout=600), drawn.decode(errors="replace")


def document(result: Result) -> dict | list:
    return json.loads(result.stdout)
