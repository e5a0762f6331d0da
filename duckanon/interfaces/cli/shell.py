"""``duckanon sql``: a shell on a DuckDB database with duckanon's functions."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from duckanon.errors import DuckanonError, ParameterError, did_you_mean
from duckanon.interfaces.cli import signals
from duckanon.interfaces.cli.options import MORE
from duckanon.interfaces.cli.results import MODES, Result, cell, fetch, tables, write
from duckanon.interfaces.cli.screen import Screen, count

SHOWN = 40
COUNTED = 100_000
_POLL_SECONDS = 0.1
_INTERRUPT_SECONDS = 0.02
_PATIENCE_SECONDS = 0.5
"""How long a cancelled statement may take to end: work outside of the database, such as a kernel, takes its time."""
_HELP = """\
.tables             list tables and views
.mode box|csv|json  how results look
.rows N             how many rows of a result a box shows
.help FUNCTION      the arguments of a function
.help  .quit        Tab completes, Ctrl-C cancels a statement, Ctrl-D leaves"""
_GROUPS = {
    "Make releases": ("anonymize", "anonymize_report", "anonymize_classes"),
    "Assess tables": ("suggest", "identifying_sets", "privacy", "risk", "with_risk"),
    "Assess releases": ("information_loss", "query_errors", "attack", "compare_releases", "lattice", "encoded"),
    "Hierarchies": ("hierarchies", "hierarchy", "save_hierarchy"),
}
# Parts in which a semicolon does not end a statement.
_CLOSED = re.compile(
    r"""
      [eE]'(?:[^'\\]|\\.|'')*'        # text with escapes
    | '(?:[^']|'')*'                  # text
    | "(?:[^"]|"")*"                  # name
    | --[^\n]*(?:\n|\Z)               # comment to the end of the line
    | /\*.*?\*/                       # comment
    | (\$[A-Za-z_0-9]*\$).*?\1        # text between dollars
    """,
    re.VERBOSE | re.DOTALL,
)
_OPENING = ("'", '"', "/*")
_DOLLAR = re.compile(r"\$[A-Za-z_]?[A-Za-z_0-9]*\$")


class Abandoned(KeyboardInterrupt):
    """A statement was cancelled, and its thread still works: the session goes on without it."""


class StatementError(DuckanonError):
    """A statement of the user failed. The database's own message is shown: it is the user's own data."""


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sql", rich_help_panel=MORE)(sql)


def sql(
    ctx: typer.Context,
    database: Annotated[
        Path | None, typer.Argument(metavar="DB", help="A DuckDB database. By default one in memory.")
    ] = None,
    command: Annotated[str | None, typer.Option("-c", "--command", help="Run these statements and exit.")] = None,
) -> None:
    """Open an SQL shell with anonymize() and its companions.

    With --json, rows are an array of objects; several results are an array
    of such arrays. Infinite numbers are written as text, and null is NULL.
    """
    screen = Screen.of(ctx)
    with closing(Session(_opened(database), screen)) as session:
        if command is None and sys.stdin.isatty():
            session.talk()
            return
        session.script(command if command is not None else sys.stdin.read())


def _opened(database: Path | None) -> Any:
    from duckanon.interfaces.sql.door import connect

    with _explained():
        # Variables of this program must not be readable as tables.
        return connect(database if database is not None else ":memory:", python_enable_replacements=False)


@contextlib.contextmanager
def _explained(statement: str = "") -> Iterator[None]:
    """Turn an error of the database into a StatementError with one line."""
    from duckanon.interfaces.sql.arguments import about_arguments
    from duckanon.interfaces.sql.door import DatabaseError

    failure: StatementError | None = None
    try:
        yield
    except DatabaseError as error:
        failure = StatementError(about_arguments(str(error), statement) or one_line(str(error)))
    if failure is not None:
        raise failure


def one_line(message: str) -> str:
    r"""Return the first paragraph of a message of the database, as one line.

    Examples
    --------
    >>> one_line("Parser Error: syntax error at or near \"SELCT\"\n\nLINE 1: SELCT 1\n        ^")
    'Parser Error: syntax error at or near "SELCT"'
    """
    lines = [line.strip() for line in message.strip().splitlines()]
    first = [line for line in lines[: lines.index("")] if line] if "" in lines else lines
    return " ".join(first) or "The database gave no reason."


class Session:
    """Statements on one connection, and how their results are shown."""

    def __init__(self, connection: Any, screen: Screen) -> None:
        self._opened = connection
        self._busy = False
        self._screen = screen
        self.mode = "json" if screen.as_json else "box"
        self.shown = SHOWN

    def close(self) -> None:
        """Close the connection, unless a thread that was left behind works with it."""
        if not self._busy:
            self._opened.close()

    def script(self, text: str) -> None:
        """Run all statements and dot commands of a text; the first that fails ends it."""
        results: list[Result] = []
        for part in parts(text):
            if part.startswith("."):
                if not self._dot(part, results):
                    break
                continue
            result = self.run(part)
            if result is not None and not result.changed:
                self._give(result, results)
        if self._screen.as_json:
            documents = [r.to_dicts() for r in results]
            self._screen.document(documents if len(documents) > 1 else documents[0] if documents else [])

    def _give(self, result: Result, results: list[Result]) -> None:
        """Write a result of a script, or keep it for the one JSON document."""
        if self._screen.as_json:
            results.append(result)
        else:
            write(self._screen, result, self.mode)

    def run(self, statement: str) -> Result | None:
        """Run one statement; Ctrl-C cancels it. None if it gives no rows."""

        def work() -> Result | None:
            if self.mode != "box":
                # Programs get all rows.
                return fetch(self._connection, statement, as_json=self.mode == "json")
            result = fetch(self._connection, statement, limit=COUNTED + 1)
            if result is None or result.changed:
                return result
            exact = result.total <= COUNTED
            total = result.total if exact else COUNTED
            return replace(result, rows=result.rows[: self.shown], total=total, exact=exact)

        with _explained(statement):
            try:
                return cancellable(work, self._interrupt)
            except Abandoned:
                signals.leave_behind()
                self._busy = True
                raise

    @property
    def _connection(self) -> Any:
        """The connection; another one to the database where a thread that was left behind works with the last."""
        if self._busy:
            from duckanon.interfaces.sql.door import install

            self._opened, self._busy = self._opened.cursor(), False
            install(self._opened)
        return self._opened

    def _interrupt(self) -> None:
        from duckanon.engine.base import cancel

        self._opened.interrupt()
        # A call of anonymize() works on other cursors.
        cancel()

    def talk(self) -> None:
        """Read statements from a terminal until Ctrl-D."""
        self._say(f"duckanon {_version()}. Statements end with ';', .help helps, Ctrl-D leaves.")
        from duckanon.interfaces.cli.completion import completions, known_of

        pending, known = "", known_of(lambda: self._connection)
        read = reader(lambda line: completions(f"{pending}\n{line}" if pending else line, known))
        while True:
            try:
                line = read("     ...> " if pending else "duckanon> ")
            except KeyboardInterrupt:
                if signals.terminated():
                    raise
                pending = ""
                continue
            except EOFError:
                self._say("")
                return
            if not pending and line.strip().startswith("."):
                try:
                    if not self._dot(line.strip(), []):
                        return
                except DuckanonError as error:
                    Screen().error(type(error).__name__, str(error), 2)
                continue
            statements, pending = split(f"{pending}\n{line}" if pending else line)
            if blank(pending):
                pending = ""
            for statement in statements:
                if not self._answer(statement):
                    break

    def _answer(self, statement: str) -> bool:
        """Run a statement and show its result, or what is wrong with it."""
        start = time.perf_counter()
        try:
            result = self.run(statement)
            if result is not None and not result.changed:
                write(self._screen, result, self.mode)
            else:
                changed = f", {count(result.total, 'rows')}" if result is not None else ""
                self._say(f"ok{changed} ({time.perf_counter() - start:.2f} s)")
        except KeyboardInterrupt as stopped:
            if signals.terminated():
                raise
            typer.secho("Cancelled.", fg="yellow", err=True)
            if isinstance(stopped, Abandoned):
                self._say("What it computes ends by itself. This is a new session, without temporary tables.")
            return False
        except (DuckanonError, OSError) as error:
            Screen().error(type(error).__name__, str(error), 1)
            return False
        return True

    def _say(self, text: str) -> None:
        typer.secho(text, dim=True)

    def _dot(self, line: str, results: list[Result]) -> bool:
        """Run a dot command. Return False to leave the shell."""
        word, *rest = line.rstrip(";").split()
        commands = (".help", ".tables", ".mode", ".rows", ".quit", ".exit")
        if word in (".quit", ".exit"):
            return False
        if word == ".help":
            typer.echo(_help_of(rest[0]) if rest else help_text(), err=self._screen.as_json)
        elif word == ".tables":
            self._tables(results)
        elif word == ".mode" and len(rest) == 1 and rest[0] in MODES:
            # --json on the command line has precedence.
            self.mode = rest[0] if not self._screen.as_json else "json"
        elif word == ".mode":
            raise ParameterError(f".mode is one of {', '.join(MODES)}; now it is {self.mode}.")
        elif word == ".rows" and len(rest) == 1 and rest[0].isdecimal():
            self.shown = int(rest[0])
        elif word == ".rows":
            raise ParameterError(f".rows needs a number; now it is {self.shown}.")
        else:
            raise ParameterError(f"There is no {word}.{did_you_mean(word, commands)} Try .help.")
        return True

    def _tables(self, results: list[Result]) -> None:

        with _explained():
            listed = tables(self._connection)
        if self._screen.as_json:
            results.append(Result(("database", "schema", "name"), [row[:3] for row in listed], len(listed)))
            return
        if not listed and self._screen.rich:
            self._say("no tables")
        for database, schema, name, alone in listed:
            self._screen.line(cell(name if alone else f"{database}.{schema}.{name}"))


def help_text() -> str:
    """Return what the shell can do, with every function: those in no group are listed as functions of values."""
    from duckanon.interfaces.sql.door import PARAMETERS_OF

    grouped = {name for names in _GROUPS.values() for name in names}
    groups = {**_GROUPS, "Values": tuple(name for name in PARAMETERS_OF if name not in grouped)}
    lines = [
        "Statements end with a semicolon and may have several lines:",
        "  FROM anonymize('t', quasi_identifiers := ['age', 'zip'], k := 5);",
        "  FROM privacy('people.parquet', quasi_identifiers := ['age', 'zip'], sensitive := ['ill']);",
        "Functions:",
        *(f"  {title + ':':<17}{', '.join(names)}" for title, names in groups.items()),
    ]
    return "\n".join([*lines, _HELP])


def _help_of(name: str) -> str:
    from duckanon.interfaces.sql.door import FUNCTIONS, PARAMETERS_OF

    function = name.lower().removesuffix("(")
    if function not in PARAMETERS_OF:
        raise ParameterError(f"There is no function {name!r}.{did_you_mean(function, PARAMETERS_OF)} Try .help.")
    if function not in FUNCTIONS:
        return f"{function}({', '.join(PARAMETERS_OF[function])})"
    from duckanon.plan.request import PARAMETERS

    lines = []
    for parameter in FUNCTIONS[function].parameters:
        about = PARAMETERS[parameter.name].about if parameter.name in PARAMETERS else ""
        kind = f"{parameter.kind}{', required' if parameter.required else ''}"
        lines.append(f"  {parameter.name:<18} {kind:<16} {about}".rstrip())
    return "\n".join([f"FROM {function}(...)", *lines])


def cancellable(work: Callable[[], Result | None], interrupt: Callable[[], None]) -> Result | None:
    """Do the work in a thread, so that Ctrl-C arrives here while the database is busy, and interrupts it.

    Raises Abandoned, a KeyboardInterrupt, where the thread does not end soon: a kernel cannot be interrupted.
    """
    done = threading.Event()
    outcome: list[Result | None] = []
    failed: list[BaseException] = []

    def body() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            failed.append(error)
        finally:
            done.set()

    threading.Thread(target=body, daemon=True).start()
    cancelled: float | None = None
    while not done.is_set():
        try:
            done.wait(_POLL_SECONDS if cancelled is None else _INTERRUPT_SECONDS)
            if cancelled is not None:
                # Repeatedly, because an interrupt between two steps of a statement is lost.
                interrupt()
                if time.monotonic() > cancelled + _PATIENCE_SECONDS and not done.is_set():
                    raise Abandoned
        except Abandoned:
            raise
        except KeyboardInterrupt:
            cancelled = cancelled or time.monotonic()
    if cancelled is not None:
        raise KeyboardInterrupt
    if failed:
        raise failed[0]
    return outcome[0]


def _version() -> str:
    from duckanon._version import __version__

    return __version__


def history_file() -> Path | None:
    """Return the file of past statements, readable by its owner only. None if it cannot be created."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    path = Path(state) / "duckanon" / "history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600, exist_ok=True)
        path.chmod(0o600)
    except OSError:
        return None
    return path


Complete = Callable[[str], tuple[str, list[str]]]
"""Returns, of a line as far as the cursor, what the words that may come next replace, and these words."""


def reader(complete: Complete) -> Callable[[str], str]:
    """Return a function that reads a line: from prompt_toolkit if it is installed, else Python's own."""
    path = history_file()
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import Completer, Completion
        from prompt_toolkit.history import FileHistory, InMemoryHistory
    except ImportError:
        return _plain_reader(path, complete)

    class Words(Completer):
        """Completes at Tab."""

        def get_completions(self, document: Any, event: Any) -> Iterator[Any]:
            """Yield the words that may come next."""
            begun, words = complete(document.text_before_cursor)
            for word in words:
                yield Completion(word, start_position=-len(begun))

    session: Any = PromptSession(
        history=FileHistory(str(path)) if path is not None else InMemoryHistory(),
        completer=Words(),
        complete_while_typing=False,
    )

    def read(prompt: str) -> str:
        return str(session.prompt(prompt))

    return read


def _plain_reader(path: Path | None, complete: Complete) -> Callable[[str], str]:
    try:
        import readline
    except ImportError:
        return input

    def word(begun: str, number: int) -> str | None:
        replaced, words = complete(readline.get_line_buffer()[: readline.get_endidx()])
        # Readline replaces what stands after its last delimiter.
        return begun[: len(begun) - len(replaced)] + words[number] if number < len(words) else None

    readline.set_completer(word)
    readline.set_completer_delims(" \t\n'\"([{,;")
    readline.parse_and_bind("tab: complete")
    if path is not None:
        with contextlib.suppress(OSError):
            readline.read_history_file(path)
        readline.set_history_length(1000)

    def read(prompt: str) -> str:
        line = input(prompt)
        if path is not None:
            with contextlib.suppress(OSError):
                readline.write_history_file(path)
                path.chmod(0o600)
        return line

    return read


def split(text: str) -> tuple[list[str], str]:
    """Return the complete statements of a text, and what is left after the last semicolon.

    Examples
    --------
    >>> split("SELECT ';'; SELECT 2; SELECT")
    (["SELECT ';'", 'SELECT 2'], 'SELECT')
    >>> split("SELECT 'open;")
    ([], "SELECT 'open;")
    """
    statements: list[str] = []
    start = position = 0
    while position < len(text):
        closed = _CLOSED.match(text, position)
        # The e of a name such as "value'..." does not begin a text with escapes.
        if (
            closed
            and text[position] in "eE"
            and position
            and (text[position - 1].isalnum() or text[position - 1] == "_")
        ):
            closed = None
        if closed:
            position = closed.end()
        elif text.startswith(_OPENING, position) or _DOLLAR.match(text, position):
            break
        else:
            if text[position] == ";":
                statements.append(text[start:position].strip())
                start = position + 1
            position += 1
    return [s for s in statements if not blank(s)], text[start:].strip()


def parts(text: str) -> Iterator[str]:
    r"""Yield the statements of a script, and its lines with a leading dot that stand between statements.

    Examples
    --------
    >>> list(parts(".mode csv\nSELECT 1\n.5; SELECT 2 -- the end"))
    ['.mode csv', 'SELECT 1\n.5', 'SELECT 2 -- the end']
    """
    pending = ""
    for line in text.splitlines(keepends=True):
        if not line.lstrip().startswith(".") or not blank(pending):
            pending += line
            if ";" in line:
                statements, pending = split(pending)
                yield from statements
            continue
        pending = ""
        yield line.strip()
    if not blank(pending):
        yield pending.strip()


def blank(text: str) -> bool:
    """Say whether a text holds nothing but space and comments.

    Examples
    --------
    >>> blank(" -- no statement"), blank("SELECT 1")
    (True, False)
    """
    return not re.sub(r"--[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL).strip()
