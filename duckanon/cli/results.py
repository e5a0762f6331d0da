"""Results of SQL statements as a box, CSV or JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from duckanon.cli.screen import Screen, plain

if TYPE_CHECKING:
    from rich.console import JustifyMethod as Justify

MODES = ("box", "csv", "json")
_NARROWEST = 12


@dataclass(frozen=True)
class Result:
    """The rows of a statement: the first of them, and how many there are."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    total: int
    exact: bool = True
    """Whether ``total`` is the number of rows; else there are more."""
    changed: bool = False
    """Whether ``total`` counts rows that were written, and there is nothing to show."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows as mappings; of columns with the same name all but the first get a number."""
        names: list[str] = []
        for name in self.columns:
            again = sum(n == name or n.startswith(f"{name}_") for n in names)
            names.append(name if name not in names else f"{name}_{again}")
        return [dict(zip(names, (jsonable(v) for v in row), strict=True)) for row in self.rows]


def jsonable(value: Any) -> Any:
    """Return a value as JSON holds it: numbers stay numbers, the rest becomes text."""
    if isinstance(value, dict):
        return {str(k): jsonable(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(v) for v in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return plain(value)


def cell(value: Any) -> str:
    """Return a value as one line of text.

    Examples
    --------
    >>> cell(None), cell(True), cell([1, None]), cell({"a": "x"})
    ('NULL', 'true', '[1, NULL]', "{'a': x}")
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(cell(v) for v in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {cell(v)}" for k, v in value.items()) + "}"
    if isinstance(value, bytes | bytearray | memoryview):
        return "\\x" + bytes(value).hex().upper()
    shown = str(value)
    # A control character in the data must not command the terminal.
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown)


def write(screen: Screen, result: Result, mode: str, width: int | None = None) -> None:
    """Write a result."""
    if mode == "json":
        screen.document(result.to_dicts())
    elif mode == "csv":
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(result.columns)
        for row in result.rows:
            writer.writerow(["" if v is None else v if isinstance(v, str) else cell(v) for v in row])
        screen.line(buffer.getvalue().removesuffix("\n"))
    elif result.columns == ("explain_key", "explain_value"):
        for _, drawing in result.rows:
            screen.line(str(drawing))
    else:
        _box(result, width)


def _box(result: Result, width: int | None) -> None:
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, width=width)
    texts = [[cell(v) for v in row] for row in result.rows]
    heads = [cell(name) for name in result.columns]
    widths = [max(map(cell_len, (head, *(row[i] for row in texts)))) for i, head in enumerate(heads)]
    # Nothing is cut in a file or a pipe.
    cut = console.is_terminal or width is not None
    limits, kept = fit(widths, console.width) if cut else (widths, list(range(len(widths))))
    if not cut:
        console = Console(highlight=False, width=max(80, sum(widths) + 3 * len(widths) + 1))
    gap = next((i for i, (a, b) in enumerate(pairwise(kept), 1) if b != a + 1), None)
    table = Table(box=box.SQUARE, header_style="bold")
    for place, i in enumerate(kept):
        if place == gap:
            table.add_column("…", no_wrap=True)
        right: Justify = "right" if _numeric([row[i] for row in result.rows]) else "left"
        table.add_column(Text(heads[i]), justify=right, no_wrap=True, width=limits[i], overflow="ellipsis")
    for row, values in zip(texts, result.rows, strict=True):
        cells = [Text(row[i], style="dim" if values[i] is None else "") for i in kept]
        if gap is not None:
            cells.insert(gap, Text("…", style="dim"))
        table.add_row(*cells)
    console.print(table)
    hidden = len(widths) - len(kept)
    columns = f", {len(kept)} of {len(widths)} columns" if hidden else ""
    console.print(Text(_counted(result) + columns, style="dim"))


def fit(widths: Sequence[int], available: int) -> tuple[list[int], list[int]]:
    """Return the width of each column, and which columns are shown: those in the middle give way first.

    Examples
    --------
    >>> fit([4, 50], 40)
    ([4, 29], [0, 1])
    >>> fit([12, 12, 12, 12], 40)[1]
    [0, 3]
    """

    def needed(limits: Sequence[int], kept: Sequence[int]) -> int:
        gap = 4 if len(kept) < len(widths) else 0
        return sum(limits[i] + 3 for i in kept) + 1 + gap

    kept = list(range(len(widths)))
    limits = list(widths)
    for cap in range(max(widths, default=0), _NARROWEST - 1, -1):
        limits = [min(w, cap) for w in widths]
        if needed(limits, kept) <= available:
            return limits, kept
    while len(kept) > 1 and needed(limits, kept) > available:
        kept.pop(len(kept) // 2)
    return limits, kept


def _numeric(values: Sequence[Any]) -> bool:
    known = [v for v in values if v is not None]
    return bool(known) and all(isinstance(v, int | float | Decimal) and not isinstance(v, bool) for v in known)


def _counted(result: Result) -> str:
    total = f"{result.total:,} row{'' if result.total == 1 and result.exact else 's'}"
    if not result.exact:
        return f"{len(result.rows):,} shown of more than {total}"
    return total if len(result.rows) == result.total else f"{len(result.rows):,} shown of {total}"
