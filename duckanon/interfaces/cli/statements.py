"""Where an SQL statement ends: at a semicolon outside of texts, names and comments."""

from __future__ import annotations

import re
from collections.abc import Iterator

# What may hold a semicolon that ends nothing. A branch without its end takes all that follows.
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


def split(text: str) -> tuple[list[str], str]:
    """Return the complete statements of a text, and what is left after the last semicolon.

    Examples
    --------
    >>> split("SELECT ';'; SELECT 2; SELECT")
    (["SELECT ';'", 'SELECT 2'], 'SELECT')
    >>> split("SELECT 'open;")
    ([], "SELECT 'open;")
    """
    found: list[str] = []
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
                found.append(text[start:position].strip())
                start = position + 1
            position += 1
    return [s for s in found if not blank(s)], text[start:].strip()


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
