"""The terminal: where output goes, how numbers and tables look there, and progress of long work."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress, TaskID
    from rich.table import Table

    from duckanon.progress import Event


JSON = "duckanon.json"
"""Key in the context of a command line: whether JSON was asked for."""
_SINGULAR = {"classes": "class", "leaves": "leaf"}
Row = Mapping[str, Any]
RIGHT = {"justify": "right", "no_wrap": True}
WHOLE = {"no_wrap": True}
WIDEST = 100
DELAY = 2.0


class Screen:
    """Standard output and standard error of one command."""

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json

    @classmethod
    def of(cls, context: typer.Context) -> Screen:
        """Return the screen that the options of a command ask for."""
        return cls(bool(context.meta.get(JSON)))

    @property
    def rich(self) -> bool:
        """Whether output is for a person: a terminal, and no JSON."""
        return not self.as_json and sys.stdout.isatty()

    @property
    def watched(self) -> bool:
        """Whether progress may be drawn: both outputs are terminals."""
        return self.rich and sys.stderr.isatty()

    @property
    def out(self) -> Console:
        """Standard output of a terminal."""
        return console()

    def line(self, text: str = "") -> None:
        """Write one plain line: what is not printable in it, line breaks included, is shown as escapes."""
        typer.echo(visible(text, but="\t"))

    def text(self, text: str) -> None:
        """Write several plain lines."""
        typer.echo(visible(text, but="\t\n"))

    def data(self, text: str) -> None:
        """Write text for programs as it is; on a terminal, unprintable characters are shown as escapes."""
        typer.echo(visible(text, but="\t\n") if sys.stdout.isatty() else text)

    def document(self, content: object) -> None:
        """Write the JSON document."""
        written = json.dumps(json_value(content), indent=2, ensure_ascii=False, allow_nan=False)
        typer.echo("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in written))

    def error(self, kind: str, message: str, exit_code: int) -> None:
        """Write what went wrong, as one line or as the JSON document."""
        if self.as_json:
            self.document({"error": {"type": kind, "message": message, "exit_code": exit_code}})
            return
        # Control characters of a column's or file's name must not reach the terminal.
        shown = "".join(c if c.isprintable() else " " for c in message)
        typer.secho(f"Error: {shown}", fg="red", err=True)


def visible(text: str, but: str = "") -> str:
    r"""Return a text in which control characters are shown as escapes, except those of ``but``.

    Names of columns, tables and files are not under our control: they could clear the screen or begin a new line.

    Examples
    --------
    >>> print(visible("age" + chr(27) + "[2J"))
    age\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in but else c.encode("unicode_escape").decode() for c in text)


def console(**settings: Any) -> Console:
    """Return a console whose own escapes are sent to the terminal, while those in texts are shown."""
    from rich.console import Console
    from rich.segment import Segment

    class Safe(Console):
        """A console whose texts cannot control the terminal."""

        def render(self, renderable: Any, options: Any = None) -> Any:
            """Yield the pieces of what is drawn."""
            for piece in super().render(renderable, options):
                if piece.control or piece.text.isprintable() or piece.text == "\n":
                    yield piece
                else:
                    shown = "".join(c if c.isprintable() or c == "\n" else _picture(c) for c in piece.text)
                    yield Segment(shown, piece.style, piece.control)

    return Safe(**{"highlight": False, **settings})


def _picture(character: str) -> str:
    """Return one printable character for one that is not, so that columns stay aligned."""
    code = ord(character)
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else " " if character.isspace() else "\ufffd"


def json_value(value: Any) -> Any:
    """Return a value that JSON can hold: paths as texts, and numbers that are not finite as null."""
    if isinstance(value, Mapping):
        return {str(k): json_value(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(v) for v in value]
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return shown_path(value) if isinstance(value, Path) else str(value)


def shown_path(path: Path) -> str:
    """Return a path relative to the current folder if it is in it."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def whole(number: float, grouped: bool | None = None) -> str:
    """Return a whole number: with separators where a person looks at a terminal, without where a program may read.

    Examples
    --------
    >>> whole(20000, grouped=True), whole(20000, grouped=False)
    ('20,000', '20000')
    """
    if grouped is None:
        grouped = sys.stdout.isatty()
    return f"{number:,.0f}" if grouped else f"{number:.0f}"


def count(number: float, unit: str = "", grouped: bool | None = None) -> str:
    """Return a count and its unit; ``grouped`` as in ``whole``.

    Examples
    --------
    >>> count(20000, "rows", True), count(1, "rows"), count(2, "classes"), count(1, "classes")
    ('20,000 rows', '1 row', '2 classes', '1 class')
    """
    if number == 1:
        unit = _SINGULAR.get(unit, unit.removesuffix("s"))
    return f"{whole(number, grouped)} {unit}".strip()


def share(fraction: float) -> str:
    """Return a fraction as a percentage, a small one not as zero.

    Examples
    --------
    >>> share(0.05), share(0.0448), share(0), share(0.00001)
    ('5 %', '4.48 %', '0 %', '< 0.01 %')
    """
    percent = 100 * fraction
    if 0 < percent < 0.01:
        return "< 0.01 %"
    return f"{percent:.2f}".rstrip("0").rstrip(".") + " %"


def figure(value: float | None, grouped: bool | None = None) -> str:
    """Return a measured value; ``grouped`` as in ``whole``.

    Examples
    --------
    >>> figure(0.46125), figure(1234567.0, grouped=True), figure(None)
    ('0.461', '1,234,567', '-')
    """
    if value is None:
        return "-"
    return whole(value, grouped) if abs(value) >= 1000 else f"{value:.3g}" if abs(value) >= 1 else f"{value:.3f}"


def grid(*columns: Mapping[str, Any]) -> Table:
    """Return a table without lines; each mapping holds the settings of a column."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for column in columns:
        table.add_column(**column)
    return table


def headed(*columns: tuple[str, Mapping[str, Any]]) -> Table:
    """Return a table with a line under its header."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False)
    for name, settings in columns:
        table.add_column(name, **settings)
    return table


def sections(screen: Screen, parts: Sequence[tuple[str, RenderableType]]) -> None:
    """Write headings with what stands below them."""
    from rich.padding import Padding
    from rich.text import Text

    out = screen.out
    width = min(out.width, WIDEST)
    for title, body in parts:
        out.print(Text(title, style="bold cyan"))
        out.print(Padding(body, (0, 0, 1, 2)), width=width)


def parameters(given: Mapping[str, Any]) -> str:
    """Return parameters as they are written in a call."""
    return ", ".join(f"{k}={v}" for k, v in given.items())


class Bars:
    """A listener for progress events that draws on standard error, or ``console``; nothing with ``shown`` off."""

    def __init__(self, shown: bool = True, delay: float = DELAY, console: Console | None = None) -> None:
        self._shown = shown
        self._console = console
        self._delay = delay
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._done: dict[str, float] = {}
        self._passes: dict[str, int] = {}
        self._last: dict[str, Event] = {}

    def __enter__(self) -> Bars:
        if self._shown:
            self._timer = threading.Timer(self._delay, self._start)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._shown = False
            if self._progress is not None:
                self._progress.stop()

    @property
    def listener(self) -> Bars | None:
        """The listener for progress events, or None if nothing is drawn."""
        return self if self._shown else None

    def __call__(self, event: Event) -> None:
        """Take an event; called from several threads."""
        with self._lock:
            if not self._shown:
                return
            self._last[event.step] = event
            if self._progress is not None:
                self._draw(event)

    def _start(self) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        with self._lock:
            if not self._shown:
                return
            self._progress = Progress(
                SpinnerColumn(finished_text="[green]✓"),
                TextColumn("{task.description}", markup=False),
                BarColumn(bar_width=20),
                TextColumn("{task.fields[amount]}", justify="right"),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}", style="cyan"),
                console=self._console or console(stderr=True),
                transient=True,
            )
            self._progress.start()
            for event in list(self._last.values()):
                self._draw(event)

    def _draw(self, event: Event) -> None:
        progress = self._progress
        if progress is None:
            return
        step = event.step
        if step not in self._tasks:
            self._tasks[step] = progress.add_task(step, total=event.total, amount="", left="")
            self._passes[step] = 1
        elif event.done < self._done.get(step, 0) and not event.finished:
            # A step may read the rows several times: each time the database counts from the beginning.
            self._passes[step] += 1
            progress.reset(self._tasks[step], total=event.total)
        self._done[step] = event.done
        total = event.total
        if event.finished and total is None:
            total = max(event.done, 1)
        label = step if self._passes[step] == 1 or event.finished else f"{step}, pass {self._passes[step]}"
        done = total if event.finished and total is not None else event.done
        task = self._tasks[step]
        progress.update(task, description=label, completed=done, total=total, amount=_amount(event))
        remaining = progress.tasks[progress.task_ids.index(task)].time_remaining
        left = "" if event.finished or remaining is None else f"{timedelta(seconds=int(remaining))} left"
        progress.update(task, left=left)


def _amount(event: Event) -> str:
    if event.total is None:
        return count(event.done, event.unit, grouped=True) if event.done else ""
    done = event.total if event.finished else event.done
    return f"{done:,.0f} of {count(event.total, event.unit, grouped=True)}"
