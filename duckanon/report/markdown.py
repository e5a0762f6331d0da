"""The report as Markdown: one page that reads well as plain text, too."""

from __future__ import annotations

import re

from duckanon.report.phrases import SEEDED
from duckanon.report.sections import Block, Bullets, Grid, Lines, Loud, Summary, sections, source

_MARKUP = re.compile(r"([\\`*\[\]<>|&~#$])")


def markdown(summary: Summary) -> str:
    """Return the report of a release as Markdown."""
    head = ["# Report of a release", ""]
    if summary.get("seeded"):
        head += [f"**{SEEDED}**", ""]
    parts = ["\n".join([*head, escape(source(summary))])]
    for section in sections(summary):
        parts += [f"## {section.title}", *("\n".join(_block(block)) for block in section.blocks)]
    return "\n\n".join(parts) + "\n"


def escape(value: object) -> str:
    r"""Return text that Markdown shows as it is, in one line, in a table as well as outside of one.

    Examples
    --------
    >>> print(escape("a|b`c"))
    a\|b\`c
    >>> print(escape("two\nlines"))
    two\\nlines
    """
    # Line breaks and control characters, which could begin a new row or steer a terminal, are shown as escapes.
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value))
    shown = _MARKUP.sub(r"\\\1", shown)
    # Within a word an underscore is itself; at its ends it would be emphasis.
    return re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", shown)


def _block(block: Block) -> list[str]:
    if isinstance(block, Lines):
        return [escape(line) for line in block.lines]
    if isinstance(block, Bullets):
        return [f"- {escape(item)}" for item in block.items]
    return _table(block)


def _table(grid: Grid) -> list[str]:
    marks = ["---:" if i in grid.right else "---" for i in range(len(grid.header))]
    rows = [[_cell(cell) for cell in row] for row in (grid.header, *grid.rows)]
    return [f"| {' | '.join(row)} |" for row in (rows[0], marks, *rows[1:])]


def _cell(text: str) -> str:
    return f"**{escape(text)}**" if isinstance(text, Loud) else escape(text)
