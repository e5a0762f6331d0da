"""What is wrong with the arguments of a call: the database only says that none of its macros takes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from sqlglot import TokenType
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError

from duckanon.errors import did_you_mean
from duckanon.interfaces.sql.door import FUNCTIONS, PARAMETERS_OF

_UNFIT = re.compile(r'Macro "?(\w+)"?\(\) (does not support the supplied arguments|has positional argument)')
_NAMING = (TokenType.COLON_EQ, TokenType.FARROW, TokenType.EQ)
_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)


def about_arguments(message: str, statement: str) -> str | None:
    """Return what is wrong with a call of one of our functions, by the database's message; None where it is not that.

    Examples
    --------
    >>> wrong = "Binder Error: Macro privacy() does not support the supplied arguments."
    >>> about_arguments(wrong, "FROM privacy('t', quasi_identifers := ['a'], k := 2)")
    "privacy has no parameter 'quasi_identifers'. Did you mean 'quasi_identifiers'?"
    >>> about_arguments(wrong, "FROM privacy(k := 2)")
    'privacy needs source, before all that is named.'
    """
    found = _UNFIT.search(message)
    if found is None or found[1] not in PARAMETERS_OF:
        return None
    function = found[1]
    known = PARAMETERS_OF[function]
    for named, positional in _calls(statement, function):
        wrong = _about(function, known, named, positional)
        if wrong is not None:
            return wrong
    return None


def _about(function: str, known: Mapping[str, bool], named: Sequence[tuple[str, bool]], positional: int) -> str | None:
    names = list(known)
    for name, rightly in named:
        if name.lower() not in known:
            listed = f" It has {', '.join(names)}." if names else " It has none."
            hint = did_you_mean(name, known)
            return f"{function} has no parameter {name!r}.{hint or listed}"
        if not rightly:
            return f"Write {name} := ..., not {name} = ..."
        if not known[name.lower()] and function not in FUNCTIONS:
            return f"{function} takes its arguments by their place: {function}({', '.join(names)})."
    if positional > len(names):
        return f"{function} has {len(names)} parameters. Got {positional} values."
    given = {*names[:positional], *(name.lower() for name, _ in named)}
    missing = [name for name, required in known.items() if required and name not in given]
    return f"{function} needs {' and '.join(missing)}, before all that is named." if missing else None


def _calls(statement: str, function: str) -> Iterator[tuple[list[tuple[str, bool]], int]]:
    """Yield of each call the names of its arguments, with whether := or => follows, and how many have no name."""
    try:
        found = DuckDB().tokenize(statement)
    except SqlglotError:
        return
    for i, token in enumerate(found[:-1]):
        if token.text.lower() != function or found[i + 1].token_type != TokenType.L_PAREN:
            continue
        named: list[tuple[str, bool]] = []
        depth, values, begun = 0, 0, False
        for j in range(i + 1, len(found)):
            kind = found[j].token_type
            if depth == 1 and kind not in (TokenType.COMMA, TokenType.R_PAREN) and not begun:
                begun = True
                after = found[j + 1].token_type if j + 1 < len(found) else None
                if after in _NAMING:
                    named.append((found[j].text, after != TokenType.EQ))
                else:
                    values += 1
            if depth == 1 and kind == TokenType.COMMA:
                begun = False
            depth += (kind in _OPEN) - (kind in _CLOSE)
            if depth == 0:
                break
        yield named, values


__all__ = ["about_arguments"]
