"""The settings of a study: a shipped file for each, and whatever a file of the user's changes in it."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from duckanon.engine.process import file_digest
from duckanon.errors import ConfigError, did_you_mean
from duckanon.studies.base import Study

_TABLE_KEYS = (
    *("path", "hospital", "target", "quasi_identifiers", "unordered", "hierarchies"),
    *("rows", "train", "part", "above", "ls"),
)
DATA = "DUCKANON_DATA"


@dataclass(frozen=True)
class Settings:
    """What a study runs with.

    Attributes
    ----------
    values : mapping
        ``[study]``, with ``[full]`` on top for a full run.
    tables : mapping of name to mapping
        The tables, with absolute paths and digests, as ``duckanon.studies.tables`` reads them.
    full : bool
    synthetic : bool
        Whether the shipped synthetic table replaces those of the paper, which are missing.
    """

    values: Mapping[str, Any]
    tables: Mapping[str, Mapping[str, Any]]
    full: bool = False
    synthetic: bool = False
    changed: tuple[str, ...] = field(default=())

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value, or the default."""
        return self.values.get(name, default)


def load_settings(
    study: Study, config: str | Path | None = None, *, full: bool = False, data: str | Path | None = None
) -> Settings:
    """Return the settings of a study.

    Parameters
    ----------
    study : Study
    config : path, optional
        A TOML file: what is in its ``[study]`` and ``[full]`` replaces what is shipped, key by key; its
        ``[tables]`` replace all tables.
    full : bool
        Whether ``[full]`` counts: the study as in the paper.
    data : path, optional
        The folder of the papers' tables; by default the value of the environment variable DUCKANON_DATA. Without
        either, and without tables in ``config``, a synthetic table is used.
    """
    base = _read(study.shipped())
    changes = _read(Path(config)) if config is not None else {}
    _check(study, changes)
    values = {**base.get("study", {}), **changes.get("study", {})}
    if full:
        values |= {k: v for k, v in base.get("full", {}).items() if k not in changes.get("study", {})}
        values |= changes.get("full", {})
    folder = data if data is not None else os.environ.get(DATA)
    synthetic = False
    if "tables" in changes:
        place = Path(config).absolute().parent if config is not None else Path.cwd()
        tables = changes["tables"]
    elif folder is not None:
        place, tables = Path(folder).absolute(), base["tables"]
        if not place.is_dir():
            raise ConfigError(f"There is no data folder {str(folder)!r}.")
    else:
        place, tables, synthetic = Path.cwd(), base["synthetic"], True
    changed = tuple(sorted({*changes.get("study", {}), *(changes.get("full", {}) if full else {})}))
    resolved = {name: _table(name, dict(given), place) for name, given in tables.items()}
    return Settings(values, resolved, full, synthetic, changed)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"There is no file {path.name!r}.") from None
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"{path.name} cannot be read as UTF-8 text.") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path.name} is not valid TOML: {error}.") from None


def _check(study: Study, changes: Mapping[str, Any]) -> None:
    for part in changes:
        if part not in ("study", "full", "tables"):
            hint = did_you_mean(part, ("study", "full", "tables"))
            raise ConfigError(f"Settings of a study have no [{part}].{hint} They have: study, full, tables.")
    for part in ("study", "full"):
        for key, value in changes.get(part, {}).items():
            wanted = study.keys.get(key)
            if wanted is None:
                hint = did_you_mean(key, study.keys)
                names = ", ".join(sorted(study.keys))
                raise ConfigError(f"[{part}] of {study.name} has no key {key!r}.{hint} Known: {names}.")
            fits = isinstance(value, wanted) or (wanted is float and isinstance(value, int))
            if not fits or (isinstance(value, bool) and wanted is not bool):
                raise ConfigError(f"[{part}] {key} must be a {wanted.__name__}, not a {type(value).__name__}.")
    if "tables" in changes and not changes["tables"]:
        raise ConfigError("[tables] is empty.")


def _table(name: str, given: dict[str, Any], place: Path) -> dict[str, Any]:
    """Return the settings of a table with absolute paths, and the digest of its file."""
    for key in given:
        if key not in _TABLE_KEYS:
            raise ConfigError(f"[tables.{name}] has no key {key!r}.{did_you_mean(key, _TABLE_KEYS)}")
    for key in ("target", "quasi_identifiers"):
        if not given.get(key):
            raise ConfigError(f"[tables.{name}] needs the key {key!r}.")
    if ("path" in given) == ("hospital" in given):
        raise ConfigError(f"[tables.{name}] needs one of the keys 'path' and 'hospital'.")
    spec = {**given, "name": name}
    if "path" in given:
        path = place / given["path"]
        if not path.is_file():
            raise ConfigError(f"[tables.{name}] path: there is no file {given['path']!r} in the data folder.")
        spec |= {"path": str(path), "digest": file_digest(path)}
    hierarchies = given.get("hierarchies")
    if isinstance(hierarchies, str):
        folder = place / hierarchies
        if not folder.is_dir():
            raise ConfigError(f"[tables.{name}] hierarchies: there is no folder {hierarchies!r}.")
        files = {q: folder / f"{q}.csv" for q in given["quasi_identifiers"]}
        spec["hierarchies"] = {q: {"file": str(f), "digest": file_digest(f)} for q, f in files.items() if f.is_file()}
    elif hierarchies is not None:
        spec["hierarchies"] = {q: _rule(rule, place) for q, rule in hierarchies.items()}
    return spec


def _rule(rule: Any, place: Path) -> Any:
    if isinstance(rule, str) and (place / rule).is_file():
        return {"file": str(place / rule), "digest": file_digest(place / rule)}
    return rule
