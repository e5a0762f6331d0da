"""Draft a job file from a table: a role for every column, guessed, with the reason beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.errors import DataError

if TYPE_CHECKING:
    from duckanon.io.source import Source

SCHEMA = "duckanon.schema.json"
_ROLES = {
    "identifier": ("identifiers", "never published"),
    "quasi_identifier": ("quasi_identifiers", "what somebody else may know of a person: recoded"),
    "sensitive": ("sensitive", "what must not be linked to a person: published as it is"),
    "insensitive": ("insensitive", "published as it is"),
}
_FEW = 2


def draft(source: Source, file: Path, *, k: int = 5) -> str:
    """Return the text of a job file for a table, to be read and corrected by somebody who knows the data.

    Parameters
    ----------
    source : Source
        Files, or a table of a database.
    file : Path
        Where the job file will stand: its paths are relative to that folder.
    k : int
        The least size of a class.
    """
    from duckanon.assess.suggest import suggest

    columns = suggest(source, max_size=2).to_pylist()
    by_role: dict[str, list[dict[str, Any]]] = {role: [c for c in columns if c["role"] == role] for role in _ROLES}
    if not by_role["quasi_identifier"]:
        raise DataError("No column looks like a quasi-identifier: write the job by hand, or name the columns yourself.")
    rows = int(columns[0]["rows"])
    lines = [
        f"#:schema {SCHEMA}",
        "# Drafted by `duckanon job init`. Roles are guesses, each with its reason: read every line, correct it, and",
        f"# try `duckanon run {file.name} --dry-run` before the first night.",
        "",
        "[source]",
        *_source(source, file.absolute().parent),
        "",
        "[roles]",
        *_key(by_role["identifier"]),
    ]
    for role, found in by_role.items():
        name, meaning = _ROLES[role]
        lines += [f"{name} = [  # {meaning}", *_listed(found), "]"] if found else [f"{name} = []"]
    stem = file.stem if file.stem else "release"
    lines += [
        "",
        "[hierarchies]  # a column that has none here gets one, and the report says which",
        "",
        "[privacy]",
        f"k = {k}",
        "",
        "[output]",
        f"path = {_text(f'release/{stem}.parquet')}",
        "",
        "[expect]",
        f"min_rows = {_round_half(rows)}  # the table has {rows} now",
        "",
    ]
    return "\n".join(lines)


def _source(source: Source, folder: Path) -> list[str]:
    options = dict(source.options)
    if source.kind == "file":
        paths = [_relative(p, folder) for p in source.target]
        return [f"path = {_text(paths[0]) if len(paths) == 1 else _texts(paths)}"]
    if source.kind == "database":
        named = "table" if options["table"] is not None else "query"
        return [f"database = {_text(_relative(source.target, folder))}", f"{named} = {_text(options[named])}"]
    raise DataError("A job is drafted from files or from a table of a DuckDB database.")


def _relative(path: str, folder: Path) -> str:
    from duckanon.engine.permitted_paths import is_remote

    if is_remote(path):
        return path
    return os.path.relpath(Path(path).absolute(), folder)


def _key(identifiers: list[dict[str, Any]]) -> list[str]:
    """Propose the entity key as a comment: only somebody who knows the data can say what names a person."""
    keys = [c["column"] for c in identifiers if c["content"] is None and c["distinct"] > _FEW]
    if not keys:
        return ['# entity_key = "..."  # the column that tells persons apart, if a person may have several rows']
    return [f"# entity_key = {_text(keys[0])}  # if it tells persons apart: k counts persons then, not rows"]


def _listed(columns: list[Mapping[str, Any]] | list[dict[str, Any]]) -> list[str]:
    return [f"    {_text(c['column'])},  # {_plain(c['reason'])}" for c in columns]


def _round_half(rows: int) -> int:
    """Return half of the rows, rounded down to two digits."""
    half = max(1, rows // 2)
    step = int(10 ** max(0, len(str(half)) - 2))
    return half // step * step


def _text(value: str) -> str:
    # What JSON escapes is escaped alike in TOML, but for the delete character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _texts(values: list[str]) -> str:
    return f"[{', '.join(_text(v) for v in values)}]"


def _plain(words: str) -> str:
    return "".join(c if c.isprintable() else " " for c in words)
