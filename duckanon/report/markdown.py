"""A report as Markdown: one page that reads well as plain text, too."""

from __future__ import annotations

import re

from duckanon.report.model import Block, Bullets, Cell, Command, Grid, Lines, Report, Trends
from duckanon.report.text import visible

_MARKUP = re.compile(r"([\\`*\[\]<>|&~#$])")


def markdown(report: Report) -> str:
    """Return a report as Markdown."""
    parts = [f"# {escape(report.kind)}"]
    parts += [f"**{report.stamp}**"] if report.stamp else []
    parts += [escape(report.title)] if not any(report.title in fact for fact in report.facts) else []
    parts += ["\n".join(escape(fact) for fact in report.facts)]
    if report.verdict:
        parts.append(f"**{escape(report.verdict.title)}.** {escape(report.verdict.text)}")
    for section in report.sections:
        parts += [f"## {section.title}", *("\n".join(_block(block)) for block in section.blocks)]
    return "\n\n".join(part for part in parts if part) + "\n"


def escape(value: object) -> str:
    r"""Return text that Markdown shows as it is, in one line, in a table as well as outside of one.

    Examples
    --------
    >>> print(escape("a|b`c"))
    a\|b\`c
    >>> print(escape("two\nlines"))
    two\\nlines
    """
    shown = _MARKUP.sub(r"\\\1", visible(value))
    # Within a word an underscore is itself; at its ends it would be emphasis.
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", shown)


def _block(block: Block) -> list[str]:
    if isinstance(block, Lines):
        return [escape(line) for line in block.lines]
    if isinstance(block, Bullets):
        return [f"- {escape(item)}" for item in block.items]
    if isinstance(block, Command):
        return [f"    {visible(block.text)}"]
    if isinstance(block, Trends):
        return _table(block.grid())
    # The figures of a picture are in the table beside it.
    return _table(block) if isinstance(block, Grid) else []


def _table(grid: Grid) -> list[str]:
    marks = ["---:" if i in grid.right else "---" for i in range(len(grid.header))]
    rows = [[_cell(cell) for cell in row] for row in (grid.header, *grid.rows)]
    return [f"| {' | '.join(row)} |" for row in (rows[0], marks, *rows[1:])]


def _cell(cell: str | Cell) -> str:
    if not isinstance(cell, Cell):
        return escape(cell)
    text = f"**{escape(cell.text)}**" if cell.mark == "bad" else escape(cell.text)
    return f"{text} ({escape(cell.aside)})" if cell.aside else text
