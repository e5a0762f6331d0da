"""What may come next in a statement: functions, their arguments, tables and columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SOURCES = ("source", "original", "release", "control", "population")
COLUMNS = (
    *("quasi_identifiers", "sensitive", "insensitive", "identifiers", "within", "entity_key"),
    *("columns", "keep", "attribute", "row_id", "known", "key"),
)
COMMANDS = (".help", ".tables", ".mode", ".rows", ".quit")
_MAPPINGS = ("hierarchies", "levels", "min_levels", "max_levels", "weights", "output")
_WORDS = ("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "LIMIT", "COUNT(*)", "CREATE TABLE", "COPY", "DESCRIBE")
_NAME = re.compile(r"\w+\Z")


@dataclass(frozen=True)
class Known:
    """What there is to complete: parameters by function, names of tables, and the columns of a table or file."""

    functions: Mapping[str, Iterable[str]]
    tables: Callable[[], Sequence[str]]
    columns: Callable[[str], Sequence[str]]
    values: Mapping[str, Callable[[], Iterable[str]]] = field(default_factory=dict)
    """Of some arguments, their values."""


@dataclass
class _Frame:
    """An open bracket: of a call, the values so far, the named arguments, the present one, and the first text."""

    name: str = ""
    place: int = 0
    named: list[str] = field(default_factory=list)
    argument: str | None = None
    source: str | None = None


def completions(text: str, known: Known) -> tuple[str, list[str]]:
    """Return what the words that may come next replace, and these words.

    Examples
    --------
    >>> known = Known({"risk": ["source", "quasi_identifiers"]}, lambda: ["visits"], lambda table: ["age", "zip"])
    >>> completions("FROM ri", known)
    ('ri', ['risk('])
    >>> completions("FROM risk('v", known)
    ('v', ['visits'])
    >>> completions("FROM risk('visits', q", known)
    ('q', ['quasi_identifiers := '])
    >>> completions("FROM risk('visits', quasi_identifiers := ['age', 'z", known)
    ('z', ['zip'])
    """
    if text.startswith("."):
        return text, [one for one in COMMANDS if one.startswith(text)]
    frames, quoted = _read(text)
    call = next((frame for frame in reversed(frames) if frame.name in known.functions), None)
    if quoted is not None:
        wanted: Iterable[str] = ()
        if call is not None:
            wanted = _in_quotes(call, known)
        elif re.search(r"\bfrom\s*'[^']*\Z", text, re.IGNORECASE):
            wanted = known.tables()
        return quoted, [word for word in wanted if word.lower().startswith(quoted.lower())]
    found = _NAME.search(text)
    begun = found.group() if found else ""
    if call is not None and call is frames[-1] and call.argument is None:
        names = list(known.functions[call.name])
        free = [name for name in names[call.place :] if name not in call.named]
        return begun, [f"{name} := " for name in free if name.startswith(begun.lower())]
    if call is not None and call.argument is not None:
        return begun, _starting(begun, _in_quotes(call, known) if call.argument in _MAPPINGS else ())
    tables = list(known.tables())
    mentioned = [table for table in tables if re.search(rf"\b{re.escape(table)}\b", text)]
    columns = [column for table in mentioned for column in known.columns(table)]
    functions = [f"{name}(" for name in known.functions]
    return begun, _starting(begun, [*functions, *tables, *columns, *_WORDS])


def _starting(begun: str, words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(word for word in words if word.lower().startswith(begun.lower())))


def _in_quotes(call: _Frame, known: Known) -> Iterable[str]:
    argument = call.argument
    if argument is None:
        names = list(known.functions[call.name])
        argument = names[call.place] if call.place < len(names) else ""
    if argument in known.values:
        return known.values[argument]()
    if argument in SOURCES:
        return known.tables()
    if argument in (*COLUMNS, *_MAPPINGS) and call.source is not None:
        return known.columns(call.source)
    return ()


def _read(text: str) -> tuple[list[_Frame], str | None]:
    """Return the brackets that are open at the end of a text, and what stands in quotes that are open."""
    frames, i = [_Frame()], 0
    while i < len(text):
        here = text[i]
        if here in "'\"":
            end = text.find(here, i + 1)
            if end < 0:
                return frames, text[i + 1 :] if here == "'" else None
            top = frames[-1]
            if here == "'" and top.source is None and (top.argument is None or top.argument in SOURCES):
                top.source = text[i + 1 : end]
            i = end
        elif here in "([{":
            before = _NAME.search(text[:i]) if here == "(" else None
            frames.append(_Frame(before.group().lower() if before else ""))
        elif here in ")]}" and len(frames) > 1:
            frames.pop()
        elif here == ",":
            frames[-1].place += frames[-1].argument is None
            frames[-1].argument = None
        elif text.startswith((":=", "=>"), i):
            before = _NAME.search(text[:i].rstrip())
            if before:
                frames[-1].argument = before.group().lower()
                frames[-1].named.append(before.group().lower())
            i += 1
        i += 1
    return frames, None


def known_of(connection: Callable[[], Any]) -> Known:
    """Return what a connection knows: its tables are asked for when they are needed."""
    from duckanon.algorithms.base import algorithms
    from duckanon.hierarchy import shipped
    from duckanon.interfaces.cli.results import tables
    from duckanon.interfaces.sql.door import PARAMETERS_OF, DatabaseError

    def listed() -> list[str]:
        try:
            return [name if alone else f"{schema}.{name}" for _, schema, name, alone in tables(connection())]
        except DatabaseError:
            return []

    def columns(table: str) -> list[str]:
        from sqlglot import exp

        from duckanon.engine.sql.relations import DIALECT

        path = re.search(r"[./\\]", table) and not re.fullmatch(r"\w+\.\w+", table)
        place = exp.Table(this=exp.to_identifier(table, quoted=True)) if path else exp.to_table(table)
        try:
            return list(connection().sql(exp.select("*").from_(place).limit(0).sql(dialect=DIALECT)).columns)
        except DatabaseError:
            return []

    return Known(
        PARAMETERS_OF,
        listed,
        columns,
        {"algorithm": lambda: algorithms, "spec": shipped},
    )


__all__ = ["Known", "completions", "known_of"]
