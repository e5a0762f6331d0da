"""Draft a job file from a table: every column has a suggested role and the reason for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomlkit
from tomlkit.items import Comment, Trivia

from duckanon.errors import DataError
from duckanon.hierarchy import AUTO
from duckanon.jobs.keys import Roles, meaning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tomlkit.items import Array, Table

    from duckanon.io.source import Source

SCHEMA = "duckanon.schema.json"
_ROLES = {
    "quasi_identifiers": ("quasi_identifier",),
    "sensitive": ("sensitive",),
    "insensitive": ("insensitive",),
    "identifiers": ("identifier",),
}
_FEW_VALUES = 2


def draft(source: Source, file: Path, *, k: int = 5, address: str | None = None) -> str:
    """Return the text of a job file for a table, to be read and corrected by a person who knows the data.

    Parameters
    ----------
    source : Source
        Files, a table of a DuckDB file, or one of a PostgreSQL server.
    file : Path
        The path of the job file: paths in it are relative to its folder.
    k : int
        The smallest size of a class.
    address : str, optional
        How the address of a PostgreSQL server is written, such as ``${PATIENTS_URI}``.
    """
    from duckanon.assess.suggest import FEW, suggest

    columns = suggest(source, max_size=2).to_pylist()
    # The first in rank first: that is also the order in which algorithms take them where nothing else decides.
    columns.sort(key=lambda column: column["rank"] or 0)
    spare = [c for c in columns if (c["rank"] or 0) > FEW]
    kept = [c for c in columns if (c["rank"] or 0) <= FEW]
    by_role = {role: [c for c in kept if c["role"] in suggested] for role, suggested in _ROLES.items()}
    if not by_role["quasi_identifiers"]:
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
    _propose_key(roles, columns)
    for role, found in by_role.items():
        roles.add(tomlkit.comment(meaning(Roles, role)))
        roles.add(role, _listed(found, spare if role == "identifiers" else ()))
    hierarchies = tomlkit.table()
    hierarchies.comment("a column without one gets one that is made, and the report says which")
    for one in by_role["quasi_identifiers"]:
        if one["hierarchy"] is not None:
            hierarchies.add(one["column"], tomlkit.item(AUTO).comment(one["hierarchy"]))
    expect = tomlkit.table()
    expect["min_rows"] = tomlkit.item(_round_half(rows)).comment(f"the table has {rows} now")
    tables: dict[str, Any] = {
        "source": _source(source, file.absolute().parent, address),
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


def _source(source: Source, folder: Path, address: str | None) -> dict[str, Any]:
    options = dict(source.options)
    if source.kind == "file":
        paths = [_relative(p, folder) for p in source.target]
        return {"path": paths[0] if len(paths) == 1 else paths}
    named = "table" if options.get("table") is not None else "query"
    if source.kind == "database":
        return {"database": _relative(source.target, folder), named: options[named]}
    if source.kind == "postgres":
        return {"postgres": address or "${DATABASE_URI}", named: options[named]}
    raise DataError("A job is drafted from files, or from a table of a DuckDB file or a PostgreSQL server.")


def _relative(path: str, folder: Path) -> str:
    from duckanon.engine.process import is_remote

    if is_remote(path):
        return path
    return os.path.relpath(Path(path).absolute(), folder)


def _propose_key(roles: Table, columns: list[dict[str, Any]]) -> None:
    """Name the entity key where the key of a person repeats; else propose one as a comment.

    Without it, k counts rows, which promises little where a person has several: so it is named, and to be confirmed.
    """
    keys = [c for c in columns if c["role"] == "entity_key"]
    for one in keys:
        roles.add(tomlkit.comment(_plain(f"{one['reason']}. k then counts persons, not rows.")))
        roles.add("entity_key", one["column"])
    if keys:
        return
    names = [
        c["column"]
        for c in columns
        if c["role"] == "identifier" and c["content"] in (None, "UUID") and c["distinct"] > _FEW_VALUES
    ]
    key = tomlkit.item(names[0] if names else "...").as_string()
    why = "if it identifies a person" if names else "the column that identifies a person, if one may have several rows"
    roles.add(tomlkit.comment(f"entity_key = {key}  # {why}: k then counts persons, not rows"))


def _listed(columns: Sequence[dict[str, Any]], spare: Sequence[dict[str, Any]] = ()) -> Array:
    """Return columns, each on a line of its own with the reason for its role; ``spare`` are not to be published."""
    names = tomlkit.array()
    for one in columns:
        names.add_line(one["column"], indent="    ", comment=_plain(one["reason"]))
    if spare:
        for line in (
            "Quasi-identifiers, too, but each further one costs detail in all others:",
            "not published, unless you move them up.",
        ):
            names.add_line(indent="    ", comment=line)
    for one in spare:
        names.add_line(one["column"], indent="    ", comment=_plain(one["reason"]))
    if columns or spare:
        names.add_line(indent="")
    return names


def _round_half(rows: int) -> int:
    """Return half of the rows, rounded down to two digits."""
    half = max(1, rows // 2)
    step = int(10 ** max(0, len(str(half)) - 2))
    return half // step * step


def _plain(words: str) -> str:
    return "".join(c if c.isprintable() else " " for c in words)
