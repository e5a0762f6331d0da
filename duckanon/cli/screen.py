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
        from rich.console import Console

        return Console(highlight=False)

    def line(self, text: str = "") -> None:
        """Write one plain line."""
        typer.echo(text)

    def document(self, content: object) -> None:
        """Write the JSON document."""
        typer.echo(json.dumps(plain(content), indent=2, ensure_ascii=False, allow_nan=False))

    def error(self, kind: str, message: str, exit_code: int) -> None:
        """Say what went wrong, in one line, or as the JSON document."""
        if self.as_json:
            self.document({"error": {"type": kind, "message": message, "exit_code": exit_code}})
            return
        # Control characters of a column's or file's name must not reach the terminal.
        shown = "".join(c if c.isprintable() else " " for c in message)
        typer.secho(f"Error: {shown}", fg="red", err=True)


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
