"""Hierarchies by name: saved in schema ``duckanon`` of a database, shipped with the package, or in a file."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.base import workspace
from duckanon.engine.process import data_folder
from duckanon.engine.sql.relations import ident, named, table, text
from duckanon.errors import HierarchyError, did_you_mean
from duckanon.hierarchy.files import select_text
from duckanon.hierarchy.table import Hierarchy
from duckanon.io.paths import require_open, require_touchable

if TYPE_CHECKING:
    from duckanon.engine.base import Engine

SCHEMA = "duckanon"
AUTO = "auto"
"""What stands for the hierarchy that fits a column, see ``match``."""
_SHIPPED = re.compile(r"[A-Za-z0-9_-]+")
_LISTED = 30


def save(connection: Any, name: str, hierarchy: Hierarchy, replace: bool = False) -> None:
    """Save a hierarchy under a name; another one of that name is an error unless ``replace`` is set.

    A table of levels becomes table ``duckanon."name"`` with columns ``l0`` to ``lh``; a rule becomes a table of one row
    and one column ``rule`` with JSON. Nothing else is stored, so such tables can also be made by hand. If a saved and a
    shipped hierarchy have the same name, the saved one is used.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection or Engine
    name : str
        Upper and lower case are the same, as for all tables.
    hierarchy : Hierarchy
    replace : bool
        Whether a different hierarchy saved under that name is replaced.
    """
    if not isinstance(name, str) or not name.strip() or "\0" in name:
        raise HierarchyError("A hierarchy is saved under a name of at least one character.")
    with workspace(connection) as engine:
        if not replace and _is_saved(engine, name, hierarchy):
            return
        incoming = engine.fresh("incoming")
        if hierarchy.levels is not None:
            engine.register(incoming, hierarchy.levels)
            content = exp.select("*").from_(table(incoming))
        else:
            content = exp.select(named(text(json.dumps(hierarchy.to_rule())), "rule"))
        target = _place(engine, name)
        schema = exp.Table(db=ident(SCHEMA), catalog=target.args["catalog"].copy())
        engine.run(exp.Create(this=schema, kind="SCHEMA", exists=True))
        engine.run(exp.Create(this=target, kind="TABLE", replace=True, expression=content))
        if hierarchy.levels is not None:
            engine.unregister(incoming)


def _is_saved(engine: Engine, name: str, hierarchy: Hierarchy) -> bool:
    """Return whether this very hierarchy is saved under the name already; another one there is an error."""
    there = next((n for n in saved(engine) if n.lower() == name.lower()), None)
    if there is None:
        return False
    # A SQL statement may be bound several times, and then saves several times.
    with suppress(HierarchyError):
        if there == name and _same(load(engine, there), hierarchy):
            return True
    raise HierarchyError(
        f"Another hierarchy is saved as {there!r} in this database: to replace it, set replace=True "
        "(in SQL: replace := true)."
    )


def _same(one: Hierarchy, other: Hierarchy) -> bool:
    if one.levels is None or other.levels is None:
        return one.rule is not None and other.rule is not None and one.to_rule() == other.to_rule()
    return bool(one.levels.equals(other.levels))


def _place(engine: Engine, name: str) -> exp.Table:
    """Return the full name of a hierarchy's table: a database may have the same name as the schema."""
    return table(name, schema=SCHEMA, catalog=engine.catalog.database())


def saved(connection: Any) -> list[str]:
    """Return the names of all hierarchies saved in the current database."""
    with workspace(connection) as engine:
        # Mostly there is none, and listing all tables and views takes time.
        if not engine.catalog.has_schema(SCHEMA):
            return []
        first = _place(engine, SCHEMA).catalog
        names = engine.catalog.tables()
        return sorted(parts[2] for parts in names if len(parts) == 3 and parts[:2] == (first, SCHEMA))


def load(connection: Any, name: str) -> Hierarchy:
    """Return a saved hierarchy; the order of its columns counts, not their names."""
    with workspace(connection) as engine:
        names = saved(engine)
        if name not in names:
            raise HierarchyError(f"No hierarchy {name!r} is saved in this database.{did_you_mean(name, names)}")
        query = exp.select("*").from_(_place(engine, name))
        columns, levels = engine.columns(query), select_text(engine, query)
    if len(columns) == 1 and columns[0].name.lower() == "rule" and len(levels) == 1:
        try:
            rule = json.loads(levels.column(0)[0].as_py() or "")
        except json.JSONDecodeError:
            raise HierarchyError(f"The saved rule {name!r} is not JSON.") from None
        return Hierarchy.from_rule(rule).named(f"saved: {name}")
    try:
        return Hierarchy.from_table(levels).named(f"saved: {name}")
    except HierarchyError as error:
        raise HierarchyError(f"The saved hierarchy {name!r} cannot be used. {error}") from None


def shipped() -> dict[str, Path]:
    """Return the hierarchies that come with the package, by name."""
    folder = data_folder("hierarchies")
    files = [p for p in sorted(folder.glob("*.*")) if p.suffix in {".csv", ".toml"} and _SHIPPED.fullmatch(p.stem)]
    return {p.stem: p for p in sorted(files, key=lambda p: p.suffix, reverse=True)}


def resolve(
    spec: object, engine: Engine, base: Path | None = None, saved_names: Sequence[str] | None = None
) -> Hierarchy:
    """Return the hierarchy that ``spec`` means.

    Parameters
    ----------
    spec : Hierarchy, mapping, str or Path
        A text is "auto", the name of a saved hierarchy, the name of a shipped one, or a path that ends in .csv or
        .toml, tried in this order: a saved one hides a shipped one of its name.
    engine : Engine
    base : Path, optional
        Folder of relative paths; by default the current one.
    saved_names : sequence of str, optional
        The names of saved hierarchies, if they are known already.
    """
    if isinstance(spec, Hierarchy):
        return spec
    if isinstance(spec, Mapping):
        return Hierarchy.from_rule(spec, base)
    if isinstance(spec, Path):
        return from_path(spec, base)
    if isinstance(spec, str) and spec == AUTO:
        return Hierarchy.auto().named("auto: the ready-made one that fits, else one is made")
    if not isinstance(spec, str):
        raise HierarchyError(f"A hierarchy cannot be made of a {type(spec).__name__}.")
    saved_names = saved(engine) if saved_names is None else saved_names
    if spec in saved_names:
        return load(engine, spec)
    ready = shipped()
    if spec in ready:
        return from_path(ready[spec], None).named(f"shipped: {spec}")
    if spec.lower().endswith((".csv", ".toml")):
        return from_path(Path(spec), base)
    names = sorted({*saved_names, *ready})
    more = f", and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    raise HierarchyError(
        f"Unknown hierarchy {spec!r}.{did_you_mean(spec, names)} It can be a saved or shipped name "
        f"({', '.join(names[:_LISTED])}{more}) or a path that ends in .csv or .toml."
    )


def from_path(path: Path, base: Path | None = None) -> Hierarchy:
    """Return the hierarchy in a file: a rule if its name ends in .toml, else a table."""
    full = path if path.is_absolute() or base is None else base / path
    if full.suffix.lower() != ".toml":
        return Hierarchy.from_csv(full)
    require_touchable(full)
    try:
        rule = tomllib.loads(full.read_text(encoding="utf-8"))
    except OSError as error:
        require_open(full, error)
        raise HierarchyError(f"The rule file {full.name!r} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        where = f": {error}" if isinstance(error, tomllib.TOMLDecodeError) else ""
        raise HierarchyError(f"The rule file {full.name!r} is not TOML{where}.") from None
    return Hierarchy.from_rule(rule, full.parent).named(f"given: file {full.name}")
