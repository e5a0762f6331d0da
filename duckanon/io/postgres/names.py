"""Names of tables on a server, with or without a schema and with any characters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.engine.sql.relations import call, col, conjunction, table, text
from duckanon.errors import DataError, ParameterError, did_you_mean

if TYPE_CHECKING:
    from duckanon.io.postgres.session import Session

_PART = r'(?:"(?:[^"]|"")+"|[^".]+)'
_DOTTED = re.compile(rf"{_PART}(?:\.{_PART})*")
_BYTES = 63
"""PostgreSQL truncates longer names without an error."""
_KINDS = {"r": "table", "p": "partitioned table", "v": "view", "m": "materialized view", "f": "foreign table"}


def split(name: str) -> tuple[str, ...]:
    """Return the parts of a name; a part with a dot in it is in double quotes.

    Examples
    --------
    >>> split('clinic.patients'), split('clinic."a.b"'), split('odd"name')
    (('clinic', 'patients'), ('clinic', 'a.b'), ('odd"name',))
    """
    if not _DOTTED.fullmatch(name):
        return (name,)
    parts = re.findall(_PART, name)
    return tuple(p[1:-1].replace('""', '"') if p.startswith('"') else p for p in parts)


def require_short(kind: str, name: str) -> None:
    """Raise if PostgreSQL would truncate a name, or cannot store it."""
    if not name or "\0" in name:
        raise ParameterError(f"PostgreSQL cannot hold the name of the {kind} {name!r}.")
    if len(name.encode()) > _BYTES:
        raise ParameterError(f"The name of the {kind} {name!r} has more than {_BYTES} bytes: PostgreSQL would cut it.")


@dataclass(frozen=True)
class TableName:
    """A table of a schema."""

    schema: str
    name: str
    kind: str = "table"

    def node(self) -> exp.Table:
        """Return the quoted reference."""
        return table(self.name, schema=self.schema)


@dataclass(frozen=True)
class KnownTables:
    """The tables and views that a session can name; ``visible`` are those that need no schema."""

    tables: tuple[TableName, ...]
    visible: frozenset[TableName]

    @classmethod
    def of(cls, session: Session) -> KnownTables:
        """Ask the server; its own catalogs are left out."""
        kinds = exp.In(this=col("relkind", "c"), expressions=[text(k) for k in _KINDS])
        system = exp.Or(
            this=exp.EQ(this=col("nspname", "n"), expression=text("information_schema")),
            expression=exp.EQ(this=call("left", col("nspname", "n"), exp.Literal.number(3)), expression=text("pg_")),
        )
        seen = call("pg_table_is_visible", col("oid", "c"))
        query = exp.select(col("nspname", "n"), col("relname", "c"), col("relkind", "c"), seen)
        on = exp.EQ(this=col("oid", "n"), expression=col("relnamespace", "c"))
        query = query.from_(table("pg_class", "c", schema="pg_catalog"))
        query = query.join(table("pg_namespace", "n", schema="pg_catalog"), on=on)
        query = query.where(conjunction([kinds, exp.Not(this=exp.Paren(this=system))]))
        rows = [(TableName(s, n, _KINDS[k]), bool(visible)) for s, n, k, visible in session.rows(query)]
        return cls(tuple(t for t, _ in rows), frozenset(t for t, visible in rows if visible))

    def find(self, name: str) -> TableName | None:
        """Return the table that a name means: as it is, else split at dots, else ignoring case.

        If several tables match when case is ignored, the result is None.
        """
        candidates = dict.fromkeys([(name,), split(name)])
        for parts in candidates:
            for candidate in self.tables:
                if self._names(candidate, parts, candidate.name, candidate.schema):
                    return candidate
        for parts in candidates:
            lowered = tuple(p.lower() for p in parts)
            close = [t for t in self.tables if self._names(t, lowered, t.name.lower(), t.schema.lower())]
            if len(close) == 1:
                return close[0]
        return None

    def _names(self, candidate: TableName, parts: tuple[str, ...], name: str, schema: str) -> bool:
        return parts == (schema, name) or (parts == (name,) and candidate in self.visible)

    def require(self, name: str) -> TableName:
        """Return the table that a name means, or raise a DataError with the closest name."""
        existing = self.find(name)
        if existing is None:
            names = [t.name if t in self.visible else f"{t.schema}.{t.name}" for t in self.tables]
            raise DataError(f"PostgreSQL has no table or view {name!r}.{did_you_mean(name, names)}")
        return existing
