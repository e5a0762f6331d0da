"""The statements in ``sql/``: one file, one statement, with a header that a test compares with its parse tree."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp

from duckanon.engine.process import data_folder
from duckanon.engine.sql.relations import DIALECT, ident, table

_FIELD = re.compile(r"^--\s*(reads|params|returns):\s*(.*)$")
_READ = re.compile(r"(\w+)\(([^)]*)\)")


@dataclass(frozen=True)
class SqlFile:
    """A statement and its header."""

    name: str
    title: str
    reads: dict[str, tuple[str, ...]]
    params: tuple[str, ...]
    returns: tuple[str, ...]
    text: str

    def tree(self) -> exp.Query:
        """Return the statement as a fresh expression."""
        return _parsed(self.text).copy()

    def bind(self, relations: Mapping[str, str | exp.Table | exp.Subquery]) -> exp.Query:
        """Return the statement with the relations it reads replaced by the tables, or queries, that hold them."""
        tree = self.tree()
        for node in list(tree.find_all(exp.Table)):
            if node.name in self.reads:
                alias = node.alias or node.name
                held = relations[node.name]
                source = table(held) if isinstance(held, str) else held.copy()
                source.set("alias", exp.TableAlias(this=ident(alias)))
                node.replace(source)
        return tree


def load(name: str) -> SqlFile:
    """Return the statement ``sql/<name>.sql``."""
    return _read(name, data_folder("sql") / f"{name}.sql")


def load_of(folder: str, member: type[Any]) -> SqlFile:
    """Return the statement of a registered class: ``sql/<folder>/<its name>.sql``, or that file beside its module."""
    name = f"{folder}/{member.name}"
    shipped = data_folder("sql") / f"{name}.sql"
    if shipped.is_file():
        return _read(name, shipped)
    return _read(name, Path(inspect.getfile(member)).with_name(f"{member.name}.sql"))


@cache
def _read(name: str, path: Path) -> SqlFile:
    source = path.read_text(encoding="utf-8")
    header = [line for line in source.splitlines() if line.startswith("--")]
    fields: dict[str, str] = {}
    for line in header:
        match = _FIELD.match(line)
        if match:
            fields[match.group(1)] = match.group(2).strip()
    title = header[0].removeprefix("--").strip() if header else ""
    return SqlFile(
        name=name,
        title=title,
        reads={m.group(1): _words(m.group(2)) for m in _READ.finditer(fields.get("reads", ""))},
        params=tuple(p.removeprefix("$") for p in _words(fields.get("params", ""))),
        returns=_words(fields.get("returns", "")),
        text=source,
    )


def names(folder: str) -> list[str]:
    """Return the names of all statements in ``sql/<folder>``, without the suffix."""
    root = data_folder("sql")
    return sorted(p.relative_to(root).with_suffix("").as_posix() for p in (root / folder).rglob("*.sql"))


@cache
def _parsed(source: str) -> exp.Query:
    return sqlglot.parse_one(source, dialect=DIALECT).assert_is(exp.Query)


def _words(line: str) -> tuple[str, ...]:
    return tuple(word for word in re.split(r"[,\s]+", line.strip()) if word)
