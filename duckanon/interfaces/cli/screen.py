"""Where output goes: a terminal, a file or pipe in plain text, or one JSON document."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

JSON = "duckanon.json"
"""Key in the context of a command line: whether JSON was asked for."""

_SINGULAR = {"classes": "class", "leaves": "leaf"}


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
        """Whether a person is looking: a terminal, and no JSON."""
        return not self.as_json and sys.stdout.isatty()

    @property
    def watched(self) -> bool:
        """Whether progress may be drawn: neither output goes elsewhere."""
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
        """Write what a program reads, as it is; a terminal is shown escapes."""
        typer.echo(visible(text, but="\t\n") if sys.stdout.isatty() else text)

    def document(self, content: object) -> None:
        """Write the JSON document."""
        written = json.dumps(plain(content), indent=2, ensure_ascii=False, allow_nan=False)
        typer.echo("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in written))

    def error(self, kind: str, message: str, exit_code: int) -> None:
        """Say what went wrong, in one line, or as the JSON document."""
        if self.as_json:
            self.document({"error": {"type": kind, "message": message, "exit_code": exit_code}})
            return
        # Control characters of a column's or file's name must not reach the terminal.
        shown = "".join(c if c.isprintable() else " " for c in message)
        typer.secho(f"Error: {shown}", fg="red", err=True)


def visible(text: str, but: str = "") -> str:
    r"""Return a text in which what could steer a terminal is shown as escapes, apart from some characters.

    Names of columns, tables and files are other people's: they may clear a screen, or begin a line of their own.

    Examples
    --------
    >>> print(visible("age" + chr(27) + "[2J"))
    age\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in but else c.encode("unicode_escape").decode() for c in text)


def console(**settings: Any) -> Console:
    """Return a console that draws with escapes of its own, and shows those in texts."""
    from rich.console import Console
    from rich.segment import Segment

    class Safe(Console):
        """A console whose texts cannot steer the terminal."""

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
    """Return one printable character for another one, so that columns stay in line."""
    code = ord(character)
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else " " if character.isspace() else "\ufffd"


def plain(value: Any) -> Any:
    """Return what JSON can hold: paths as texts, and numbers that are not finite as null."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return shown_path(value) if isinstance(value, Path) else str(value)


def shown_path(path: Path) -> str:
    """Return a path as seen from the current folder where it lies below it."""
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
