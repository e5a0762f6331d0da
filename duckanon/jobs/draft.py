"""Draft a job file from a table: every column has a suggested role and the reason for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomlkit
from tomlkit.items import Comment, Trivia

from duckanon.errors import DataError
from duckanon.jobs.keys import Roles, meaning

if TYPE_CHECKING:
    from tomlkit.items import Array, Table

    from duckanon.io.source import Source

SCHEMA = "duckanon.schema.json"
_ROLES = {
    "identifier": "identifiers",
    "quasi_identifier": "quasi_identifiers",
    "sensitive": "sensitive",
    "insensitive": "insensitive",
}
_FEW = 2


def draft(source: Source, file: Path, *, k: int = 5) -> str:
    """Return the text of a job file for a table, to be read and corrected by a person who knows the data.

    Parameters
    ----------
    source : Source
        Files, or a table of a database.
    file : Path
        The path of the job file: paths in it are relative to its folder.
    k : int
        The smallest size of a class.
    """
    from duckanon.assess.suggest import suggest

    columns = suggest(source, max_size=2).to_pylist()
    by_role: dict[str, list[dict[str, Any]]] = {role: [c for c in columns if c["role"] == role] for role in _ROLES}
    if not by_role["quasi_identifier"]:
        raise DataError("No column looks like a quasi-identifier: write the job by hand, or name the columns yourself.")
    rows = int(columns[0]["rows"])
    document = tomlkit.document()
    for line in (
        f"#:schema {SCHEMA}",
        "# Drafted by `duckanon job init`. Roles are guesses, each with its reason: read every line, correct it, and",
        f"# try `duckanon run {file.name} --dry-run` before the first run.",
    ):
        document.add(Comment(Trivia(comment=line)))
    roles = tomlkit.table()
    _propose_key(roles, by_role["identifier"])
    for role, found in by_role.items():
        roles.add(tomlkit.comment(meaning(Roles, _ROLES[role])))
        roles.add(_ROLES[role], _listed(found))
    hierarchies = tomlkit.table().comment("a column without one gets one that is made, and the report says which")
    expect = tomlkit.table()
    expect["min_rows"] = tomlkit.item(_round_half(rows)).comment(f"the table has {rows} now")
    tables: dict[str, Any] = {
        "source": _source(source, file.absolute().parent),
        "roles": roles,
        "hierarchies": hierarchies,
        "privacy": {"k": k},
        "output": {"path": f"release/{file.stem or 'release'}.parquet"},
        "expect": expect,
    }
    for name, table in tables.items():
        document.add(tomlkit.nl())
        document.add(name, tomlkit.item(table))
    return tomlkit.dumps(document)


def _source(source: Source, folder: Path) -> dict[str, Any]:
    options = dict(source.options)
    if source.kind == "file":
        paths = [_relative(p, folder) for p in source.target]
        return {"path": paths[0] if len(paths) == 1 else paths}
    if source.kind == "database":
        named = "table" if options["table"] is not None else "query"
        return {"database": _relative(source.target, folder), named: options[named]}
    raise DataError("A job is drafted from files or from a table of a DuckDB database.")


def _relative(path: str, folder: Path) -> str:
    from duckanon.engine.process import is_remote

    if is_remote(path):
        return path
    return os.path.relpath(Path(path).absolute(), folder)


def _propose_key(roles: Table, identifiers: list[dict[str, Any]]) -> None:
    """Propose the entity key as a comment: only a person who knows the data can say what identifies somebody."""
    names = [c["column"] for c in identifiers if c["content"] is None and c["distinct"] > _FEW]
    key = tomlkit.item(names[0] if names else "...").as_string()
    why = "if it identifies a person" if names else "the column that identifies a person, if one may have several rows"
    roles.add(tomlkit.comment(f"entity_key = {key}  # {why}: k then counts persons, not rows"))


def _listed(columns: list[dict[str, Any]]) -> Array:
    """Return columns, each on a line of its own with the reason for its role."""
    names = tomlkit.array()
    for one in columns:
        names.add_line(one["column"], indent="    ", comment=_plain(one["reason"]))
    if columns:
        names.add_line(indent="")
    return names


def _round_half(rows: int) -> int:
    """Return half of the rows, rounded down to two digits."""
    half = max(1, rows // 2)
    step = int(10 ** max(0, len(str(half)) - 2))
    return half // step * step


def _plain(words: str) -> str:
    return "".join(c if c.isprintable() else " " for c in words)
