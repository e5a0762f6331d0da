"""Relations by name, such as those that describe a release: the table of each is created when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

if TYPE_CHECKING:
    from duckanon.engine.base import Engine


class relation:  # noqa: N801 - a decorator
    """Marks a method of ``RelationTables`` as the definition of the relation that has its name.

    The method returns the query of the relation, or the name of a table that it has created.
    """

    def __init__(self, define: Callable[[Any], exp.Query | str]) -> None:
        self.define = define


class RelationTables:
    """The tables of relations: ``tables`` are there already, subclasses define others by methods.

    Examples
    --------
    >>> class Doubled(RelationTables):
    ...     @relation
    ...     def doubled(self):
    ...         return exp.select("n * 2 AS n").from_(self.table("numbers"))
    >>> from duckanon.engine.open import workspace
    >>> with workspace(None) as engine:
    ...     engine.create("numbers", exp.select("1 AS n"))
    ...     relations = Doubled(engine, {"numbers": "numbers"})
    ...     relations.has("doubled"), relations.has("halved"), relations.made()
    ...     engine.rows(exp.select("n").from_(relations.table("doubled")))
    1
    (True, False, ['numbers'])
    [(2,)]
    """

    def __init__(self, engine: Engine, tables: Mapping[str, str] | None = None) -> None:
        self.engine = engine
        self._tables = dict(tables or {})

    def lacks(self, name: str) -> bool:
        """Return whether a relation that is defined cannot be made of these data."""
        return False

    def has(self, name: str) -> bool:
        """Return whether there is such a relation, whether or not its table was created yet."""
        return name in self._tables or (isinstance(getattr(type(self), name, None), relation) and not self.lacks(name))

    def made(self) -> list[str]:
        """Return the names of the relations that have tables by now."""
        return list(self._tables)

    def table(self, name: str) -> str:
        """Return the table of a relation, which is created now if it is not there yet."""
        if name not in self._tables:
            if not self.has(name):
                raise KeyError(name)
            made = getattr(type(self), name).define(self)
            if not isinstance(made, str):
                query, made = made, self.engine.fresh(name)
                self.engine.create(made, query)
            self._tables[name] = made
        return self._tables[name]

    def tables(self, *names: str) -> dict[str, str]:
        """Return the tables of several relations by their names."""
        return {name: self.table(name) for name in names}

    def add(self, name: str, table: str) -> None:
        """Let a table be that of a relation."""
        self._tables[name] = table

    def drop(self, *keep: str) -> None:
        """Drop the tables that were created, except those of the relations named."""
        self.engine.drop(*(made for name, made in self._tables.items() if name not in keep))


__all__ = ["RelationTables", "relation"]
