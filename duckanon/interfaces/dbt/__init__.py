"""dbt: a plugin for dbt-duckdb that makes ``anonymize()`` callable in models, and a dbt package with generic tests.

In ``profiles.yml``: ``plugins: [{module: duckanon.interfaces.dbt}]``. A model is then a table made by

    select * from anonymize('{{ ref("patients") }}', quasi_identifiers := ['age', 'zip'], k := 5)

The tests ``k_anonymous`` and ``l_diverse`` are plain SQL in a dbt package, whose folder
``python -m duckanon.interfaces.dbt`` prints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.errors import UnsupportedError

if TYPE_CHECKING:
    from sqlglot import exp

    from duckanon.engine.duckdb.functions import Call, Connection, Function

_RELEASES = ("anonymize", "anonymize_report", "anonymize_classes")
_INLINED = "__dbt__cte__"
_CHECKED = ("table", "external", "ephemeral")
_REASONS = {
    "view": "would make another release whenever it is read, and cannot be read where duckanon is not installed",
    "incremental": "would add one release to another, and nothing checks them together",
    "snapshot": "would add one release to another, and nothing checks them together",
}


def package_folder() -> Path:
    """Return the folder of the dbt package with the generic tests, for ``packages.yml``: ``- local: <folder>``.

    Examples
    --------
    >>> sorted(file.name for file in package_folder().glob("*.yml"))
    ['dbt_project.yml']
    """
    return Path(__file__).parent / "package"


def refuse_materialization(node: Mapping[str, Any]) -> None:
    """Raise if dbt would keep a release of ``node`` in a way that is not one checked table.

    ``node`` is what dbt reports about the work of a thread. An ephemeral model is not stored: it is part of others.

    Examples
    --------
    >>> refuse_materialization({"resource_type": "model", "materialized": "table"})
    >>> refuse_materialization({"resource_type": "model", "materialized": "view"})
    Traceback (most recent call last):
        ...
    duckanon.errors.UnsupportedError: A view would make another release whenever it is read, and cannot be read where \
duckanon is not installed: materialize the model as a table.
    """
    kind = node.get("materialized") or ""
    if node.get("resource_type") not in ("model", "snapshot") or kind in _CHECKED:
        return
    what = {"view": "A view", "incremental": "An incremental model", "snapshot": "A snapshot"}
    reason = _REASONS.get(kind, "may not be one table that is made anew and checked")
    raise UnsupportedError(f"{what.get(kind, 'Its materialization')} {reason}: materialize the model as a table.")


def functions_of(node: Callable[[], Mapping[str, Any]]) -> list[Function]:
    """Return duckanon's functions for sessions of dbt, whose ``node`` is what the calling thread works on."""
    from duckanon.interfaces.sql.door import FUNCTIONS

    def guarded(function: Function) -> Function:
        def answer(request: Call) -> exp.Query:
            if function.name in _RELEASES:
                # DuckDB binds a statement in the thread that runs it, so this is the thread of the model.
                refuse_materialization(node())
            if str(request.arguments.get("source", "")).startswith(_INLINED):
                raise UnsupportedError(
                    f"{function.name} reads tables and views, and an ephemeral model is neither: materialize the model "
                    "that it reads as a table or a view."
                )
            return function.handler(request)

        return replace(function, handler=answer)

    return [guarded(function) for function in FUNCTIONS.values()]


@cache
def _plugin() -> type:
    try:
        base: Any = import_module("dbt.adapters.duckdb.plugins").BasePlugin
        get_node_info = import_module("dbt_common.events.contextvars").get_node_info
    except ImportError:
        raise UnsupportedError("The dbt plugin needs dbt-duckdb: pip install 'duckanon[dbt]'.") from None

    class Plugin(base):  # type: ignore[misc]
        """The functions of duckanon in dbt."""

        def configure_connection(self, conn: Connection) -> None:
            """Register the functions once, before dbt's threads begin."""
            self._install(conn)

        def configure_cursor(self, cursor: Connection) -> None:
            """Give a session its own macros: they are temporary, and each of dbt's threads has a session."""
            self._install(cursor)

        def _install(self, connection: Connection) -> None:
            from duckanon.engine.duckdb import functions as engine_functions
            from duckanon.interfaces.sql.group_classes import CLASSES

            engine_functions.install(connection, functions_of(get_node_info), CLASSES)

    return Plugin


def __getattr__(name: str) -> Any:
    if name == "Plugin":
        return _plugin()
    raise AttributeError(f"module 'duckanon.interfaces.dbt' has no attribute {name!r}")
