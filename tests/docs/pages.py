"""Pages of the manual as lists of blocks, and the examples among them run in the order in which a reader meets them.

===========  ==========================================================================================
block        what is done with it
===========  ==========================================================================================
``python``   runs in the namespace of the page; what it prints, and its last value, is its output
``sql``      runs in ``duckanon sql``: on a database in memory, or on the one of the last ``duckanon sql DB``
``console``  each line that begins with ``$`` is run by the shell in the folder of the page
``toml``     is written to the file that its first line names (``# job.toml``); without one, it is a
             part of a job file, whose keys and values must be valid
``text``     right below one of these: the output that must come
===========  ==========================================================================================

In an output, ``...`` stands for anything. ``<!-- not run: reason -->`` above a block leaves it out.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
DOCS = CHECKOUT / "docs"
RUN = ("python", "sql", "console", "toml")
SHOWN = ("text", "yaml", "dockerfile", "ini", "bash")
_FENCE = re.compile(r"^( *)(`{3,}|:{3,})(.*)$")
_LEFT_OUT = re.compile(r"^<!-- not run: (.+) -->$")
_FILE = re.compile(r"^# (\S+\.(?:toml|csv|sql))\b")
_MATCHES = doctest.OutputChecker()


@dataclass
class Block:
    """A fenced block: its language, its lines, and where they stand in the page (from 0, fences not included)."""

    language: str
    lines: list[str]
    start: int
    left_out: str | None = None
    output: Block | None = None

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a page; an output belongs to the block right above it."""
    found: list[Block] = []
    lines = text.split("\n")
    fence, current, last_end, comment = "", None, -9, None
    for i, line in enumerate(lines):
        match = _FENCE.match(line)
        if current is None:
            if left_out := _LEFT_OUT.match(line):
                comment = left_out.group(1)
            elif match and match.group(2).startswith("`"):
                fence = match.group(2)
                current = Block(match.group(3).strip(), [], i + 1, comment)
                comment = None
            elif line.strip():
                comment = None
            continue
        if match and match.group(2) == fence and not match.group(3).strip():
            above = found[-1] if found else None
            follows = above is not None and all(not one.strip() for one in lines[last_end + 1 : current.start - 1])
            if current.language == "text" and follows and above is not None and above.language in ("python", "sql"):
                above.output = current
            else:
                found.append(current)
            current, last_end = None, i
            continue
        current.lines.append(line)
    assert current is None, f"a block that begins in line {current.start} has no end"
    return found


def pages() -> list[Path]:
    """Return the pages with examples, this project's README among them."""
    return [CHECKOUT / "README.md", *sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts)]


@dataclass
class Difference(Exception):
    """An output that is not as the page shows it, or an example that fails."""

    line: int
    shown: str
    came: str

    def __str__(self) -> str:
        return f"line {self.line + 1}: the page shows\n{self.shown}\nbut there came\n{self.came}"


@dataclass
class Reader:
    """Somebody who follows a page, in a folder of their own, from its first example to its last."""

    folder: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    database: str = ":memory:"
    connection: Any = None
    repairs: list[tuple[int, int, list[str]]] | None = None
    """Where given, differences do not end the reading, but are noted: lines from, to, and what came."""

    def read(self, text: str) -> int:
        """Run all examples of a page, and return how many there were."""
        ran = 0
        try:
            for block in blocks(text):
                if block.language in RUN and block.left_out is None:
                    getattr(self, f"_{block.language}")(block)
                    ran += 1
        finally:
            self.leave()
        return ran

    def leave(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None
        for value in self.names.values():
            if hasattr(value, "close") and type(value).__module__.split(".")[0] in ("duckdb", "_duckdb", "duckanon"):
                with contextlib.suppress(Exception):
                    value.close()
        self.names.clear()

    def _compare(self, block: Block, came: str) -> None:
        """Compare an output with the one shown below the block, if there is one."""
        if block.output is not None:
            self._expect(block.output.start, block.output.lines, came)

    def _expect(self, start: int, shown: list[str], came: str) -> None:
        lines = [line.rstrip() for line in came.rstrip("\n").split("\n")]
        wanted = "\n".join(line.rstrip() for line in shown)
        if _MATCHES.check_output(wanted + "\n", "\n".join(lines) + "\n", doctest.ELLIPSIS):
            return
        if self.repairs is None:
            raise Difference(start, wanted, "\n".join(lines))
        self.repairs.append((start, start + len(shown), lines))

    def _python(self, block: Block) -> None:
        tree = ast.parse("\n" * block.start + block.text)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(tree, "<example>", "exec"), self.names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), "<example>", "eval"), self.names)
                if value is not None:
                    print(repr(value))
        self._compare(block, said.getvalue())

    def _sql(self, block: Block) -> None:
        from duckanon.interfaces.cli.screen import Screen
        from duckanon.interfaces.cli.shell import Session
        from duckanon.interfaces.sql.door import connect

        if self.connection is None:
            self.connection = connect(self.database, python_enable_replacements=False)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            Session(self.connection, Screen()).script(block.text)
        self._compare(block, said.getvalue())

    def _console(self, block: Block) -> None:
        for start, command, shown in commands(block):
            words = shlex.split(command, comments=True)
            if words[:2] == ["duckanon", "sql"] and len(words) <= 3:
                # The shell is open from here on, and sql blocks are typed into it.
                self.leave()
                self.database = words[2] if len(words) == 3 else ":memory:"
                continue
            if self.connection is not None and self.database != ":memory:":
                # A reader leaves the shell before the file is used from the terminal.
                self.connection.close()
                self.connection = None
            code, said = run(command, self.folder)
            if code != 0 and self.repairs is None:
                raise Difference(start - 1, "exit code 0", f"exit code {code} of {command}\n{said}")
            if code != 0:
                print(f"line {start}: exit code {code} of {command}\n{said}")
            if shown:
                self._expect(start, shown, said)

    def _toml(self, block: Block) -> None:
        content = tomllib.loads(block.text)
        if file := _FILE.match(block.lines[0]):
            path = self.folder / file.group(1)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
            return
        import jsonschema

        from duckanon.jobs.keys import json_schema

        schema = json_schema()
        # A part of a job file need not have what a whole one must have.
        del schema["anyOf"]
        for definition in schema["definitions"].values():
            definition.pop("required", None)
        jsonschema.validate(content, schema)


def commands(block: Block) -> Iterator[tuple[int, str, list[str]]]:
    """Yield each command of a console block, with the lines shown below it and where those begin."""
    found: list[tuple[int, list[str], list[str]]] = []
    for i, line in enumerate(block.lines):
        if line.startswith("$ "):
            found.append((block.start + i + 1, [line[2:]], []))
        elif found and found[-1][1][-1].endswith("\\") and not found[-1][2]:
            start, command, shown = found[-1]
            found[-1] = (start + 1, [*command, line], shown)
        elif found:
            found[-1][2].append(line)
        else:
            raise AssertionError(f"line {block.start + i + 1} of a console block comes before a command")
    for start, command, shown in found:
        while shown and not shown[-1].strip():
            shown.pop()
        yield start, "\n".join(command), shown


def run(command: str, folder: Path) -> tuple[int, str]:
    """Run a command of a reader and return its exit code and all that it wrote; plain calls run in this process."""
    words = shlex.split(command.replace("\\\n", " "), comments=True)
    if words[:1] == ["duckanon"] and not set("|;><&$(*?") & set(command):
        from typer.testing import CliRunner

        from duckanon.interfaces.cli import app

        result = CliRunner().invoke(app, words[1:], prog_name="duckanon")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.output
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, text=True, timeout=600, **streams)
    return done.returncode, done.stdout


def prepare(folder: Path) -> None:
    """Put the invented hospital stays of ``duckanon demo`` into the folder of a reader."""
    from duckanon.testing.hospital import write_hospital

    write_hospital(folder / "hospital.parquet", rows=20_000)


__all__ = ["CHECKOUT", "DOCS", "RUN", "SHOWN", "Block", "Difference", "Reader", "blocks", "pages", "prepare"]
