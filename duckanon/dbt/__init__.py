"""dbt: a plugin for dbt-duckdb that makes ``anonymize()`` callable in models, and a dbt package with generic tests.

In ``profiles.yml``: ``plugins: [{module: duckanon.dbt}]``. A model is then a table made by

    select * from anonymize('{{ ref("patients") }}', quasi_identifiers := ['age', 'zip'], k := 5)

The tests ``k_anonymous`` and ``l_diverse`` are plain SQL in a dbt package, whose folder ``python -m duckanon.dbt`` prints.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckanon.errors import UnsupportedError

if TYPE_CHECKING:
    from sqlglot import exp

    from duckanon.engine.functions import Call, Connection

_COMMENT = re.compile(r"/\*.*?\*/|--[^\n]*", re.DOTALL)
_CREATE = re.compile(r"\s*create\s+(?:or\s+replace\s+)?(?:(temp|temporary)\s+)?(?:recursive\s+)?(table|view)\b", re.I)
_RELEASES = ("anonymize", "anonymize_report", "anonymize_classes")


def package_folder() -> Path:
    """Return the folder of the dbt package with the generic tests, for ``packages.yml``: ``- local: <folder>``.

    Examples
    --------
    >>> sorted(file.name for file in package_folder().glob("*.yml"))
    ['dbt_project.yml']
    """
    return Path(__file__).parent / "package"


def refuse_kept_calls(statement: str) -> None:
    """Raise where a statement of dbt would keep the call of ``anonymize``, or add one release to another.

    Examples
    --------
    >>> refuse_kept_calls("create table x as (select * from anonymize('patients', k := 5))")
    >>> refuse_kept_calls("create view x as (select * from anonymize('patients', k := 5))")
    Traceback (most recent call last):
        ...
    duckanon.errors.UnsupportedError: A view would make another release ... materialize the model as a table.
    """
    created = _CREATE.match(_COMMENT.sub(" ", statement))
    if created is None:
        return
    temporary, kind = created.groups()
    if kind.lower() == "view":
        raise UnsupportedError(
            "A view would make another release whenever it is read, and cannot be read where duckanon is not "
            "installed: materialize the model as a table."
        )
    if temporary is not None:
        raise UnsupportedError(
            "An incremental model or a snapshot (a temporary table) would add one release to another, and nothing "
            "checks them together: materialize the model as a table."
        )


def install(connection: Connection) -> None:
    """Make duckanon's functions callable in the models of a session of dbt."""
    from duckanon.engine import functions as engine_functions
    from duckanon.group_classes import CLASSES
    from duckanon.sqldoor import FUNCTIONS

    guarded = (replace(f, handler=_guarded(f.handler)) if f.name in _RELEASES else f for f in FUNCTIONS.values())
    engine_functions.install(connection, guarded, CLASSES)


def _guarded(handler: Callable[[Call], exp.Query]) -> Callable[[Call], exp.Query]:
    def answer(request: Call) -> exp.Query:
        refuse_kept_calls(request.statement)
        return handler(request)

    return answer


@cache
def _plugin() -> type:
    try:
        from dbt.adapters.duckdb.plugins import BasePlugin
    except ImportError:
        missing = True
    else:
        missing = False
    if missing:
        raise UnsupportedError("The dbt plugin needs dbt-duckdb: pip install 'duckanon[dbt]'.")

    class Plugin(BasePlugin):  # type: ignore[misc, unused-ignore]
        """The functions of duckanon in dbt: on the connection for all, and in every session by their own names."""

        def configure_connection(self, conn: Connection) -> None:
            install(conn)

        def configure_cursor(self, cursor: Connection) -> None:
            # Temporary macros belong to a session, and each of dbt's threads has one of its own.
            install(cursor)

    return Plugin


def __getattr__(name: str) -> Any:
    if name == "Plugin":
        return _plugin()
    raise AttributeError(f"module 'duckanon.dbt' has no attribute {name!r}")


__all__ = ["Plugin", "install", "package_folder", "refuse_kept_calls"]  # noqa: F822 - Plugin is made when asked for
