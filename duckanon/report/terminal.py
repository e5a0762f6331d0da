"""Sections of a report on a terminal, and as plain lines for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from duckanon.report.model import Block, Bullets, Cell, Command, Grid, Lines, Report, Section, Trends
from duckanon.report.text import visible

if TYPE_CHECKING:
    from rich.console import RenderableType

_STYLES = {"good": "green", "warn": "yellow", "bad": "bold red", "": ""}


def drawn(section: Section) -> RenderableType:
    """Return the blocks of a section, for rich to print."""
    from rich.console import Group

    return Group(*(_block(block) for block in _shown(section)))


def plain(section: Section) -> list[str]:
    """Return a section as lines, each with its title before it."""
    return [f"{section.title}: {line}" for block in _shown(section) for line in _lines(block)]


_WIDTH = 110
_MOST_ROWS = 30


def as_text(report: Report) -> str:
    """Return a report as lines of text, as they look on a terminal; of long tables the first rows.

    Examples
    --------
    >>> grid = Grid(("Column", "Loss"), [("age", "0.25"), ("zip", "1")], right=(1,))
    >>> print(as_text(Report("people", "Loss", [Section("By column", [grid])])))
    Loss: people
    By column
     Column   Loss
     ─────────────
     age      0.25
     zip         1
    """
    import io

    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(file=io.StringIO(), width=_WIDTH, color_system=None, force_terminal=False, force_jupyter=False)

    def line(text: str) -> None:
        console.print(Text(visible(text)), soft_wrap=True)

    line(f"{report.kind}: {report.title}" if report.title != report.kind else report.kind)
    if report.facts:
        line("; ".join(report.facts))
    if report.verdict:
        line(f"{report.verdict.shown_sign} {report.verdict.title}. {report.verdict.text}".rstrip())
    for section in report.sections:
        if section.brief:
            line(section.title)
            for block in _shown(section):
                console.print(Padding(_block(_first(block)), (0, 0, 0, 1)))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(one.rstrip() for one in text.splitlines())


def _first(block: Lines | Bullets | Grid | Command) -> Lines | Bullets | Grid | Command:
    """Return the first rows of a long table."""
    if not isinstance(block, Grid) or len(block.rows) <= _MOST_ROWS:
        return block
    left = len(block.rows) - _MOST_ROWS
    more = [f"... {left:,} more", *[""] * (len(block.header) - 1)]
    return replace(block, rows=[*block.rows[:_MOST_ROWS], more])


def _shown(section: Section) -> list[Lines | Bullets | Grid | Command]:
    """Return the blocks that are not pictures: the figures of a picture are in the table beside it."""
    blocks: Sequence[Block] = [b.grid() if isinstance(b, Trends) else b for b in section.blocks]
    return [b for b in blocks if isinstance(b, Lines | Bullets | Grid | Command)]


def _block(block: Lines | Bullets | Grid | Command) -> RenderableType:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    if isinstance(block, Grid):
        headed = any(block.header)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", show_edge=False, show_header=headed)
        for position, name in enumerate(block.header):
            table.add_column(Text(visible(name)), justify="right" if position in block.right else "left")
        for row in block.rows:
            marks = [cell.mark if isinstance(cell, Cell) else "" for cell in row]
            table.add_row(*(Text(visible(c), style=_STYLES[m]) for c, m in zip(row, marks, strict=True)))
        return table
    return Text("\n".join(_lines(block)), style="dim" if isinstance(block, Lines) and block.aside else "")


def _lines(block: Lines | Bullets | Grid | Command) -> list[str]:
    if isinstance(block, Lines):
        return [visible(line) for line in block.lines]
    if isinstance(block, Bullets):
        return [f"- {visible(item)}" for item in block.items]
    if isinstance(block, Command):
        return [visible(block.text)]
    return ["\t".join(visible(cell) for cell in row) for row in block.rows]
