"""A table that is looked at, made by duckanon or not, and the class relations that models, risk and attacks read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.encode import canonical, dictionary_query
from duckanon.errors import DataError, RoleError
from duckanon.gate import ENTITY, count_classes, count_rows
from duckanon.plan import open_engine
from duckanon.release import Release
from duckanon.roles import Role, Roles
from duckanon.source import Source
from duckanon.sqlgen.relations import (
    cast,
    col,
    conjunction,
    named,
    qualified,
    same,
    subquery,
    table,
    text,
    union_all,
)

if TYPE_CHECKING:
    from duckanon.engine.base import Engine


@dataclass(frozen=True)
class Subject:
    """A table in an engine: its rows, and its columns as they are counted (canonical, NULL being a value).

    ``counted`` is what members are counted on. It is the table itself, or for a release that promises persons the
    owner's private copy that still tells them apart.
    """

    engine: Engine
    name: str
    query: exp.Query
    quasi: dict[str, exp.Expr]
    types: dict[str, str]
    sensitive: dict[str, exp.Expr]
    counted: exp.Query
    entity: exp.Expr | None = None
    collated: bool = False

    def type_of(self, name: str) -> str:
        """Return the type of a column; case is ignored."""
        return next(t for n, t in self.types.items() if n.lower() == name.lower())

    def column(self, name: str) -> exp.Expr:
        """Return the value of any column as it is counted; case is ignored."""
        return canonical(col(name), self.type_of(name), self.collated)

    @property
    def unit(self) -> str:
        """What is counted."""
        return "rows" if self.entity is None else "persons"

    def rows(self) -> int:
        """Return the number of rows."""
        return count_rows(self.engine, self.query)

    def classes(self) -> str:
        """Create ``classes(class_id, n, suppressed, q_0, ...)`` and return its name; no rows are an error."""
        name = count_classes(self.engine, self.counted, list(self.quasi.values()), self.entity, keys=True)
        (classes,) = self.engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(name)))
        if not classes:
            raise DataError(f"The source {self.name!r} has no rows: there is nothing to measure.")
        return name

    def class_values(self, classes: str) -> str:
        """Create ``class_values(class_id, attribute, value, n)``: how often a class has a sensitive value."""
        keys = [same(qualified(e, "s"), col(f"q_{j}", "c")) for j, e in enumerate(self.quasi.values())]
        parts: list[exp.Query] = [
            exp.select(
                col("class_id", "c"),
                named(text(name), "attribute"),
                named(cast(qualified(expression, "s"), "VARCHAR"), "value"),
                named(exp.Count(this=exp.Star()), "n"),
            )
            .from_(subquery(self.query, "s"))
            .join(table(classes, "c"), on=conjunction([k.copy() for k in keys]))
            .group_by(exp.var("ALL"))
            for name, expression in self.sensitive.items()
        ]
        name = self.engine.fresh("class_values")
        self.engine.create(name, union_all(parts))
        return name

    def domain_values(self) -> str:
        """Create ``domain_values(attribute, value, ord, n)``: sensitive values of the whole table, in their order."""
        parts: list[exp.Query] = [
            exp.select(
                named(text(name), "attribute"), named(col("text"), "value"), named(col("code"), "ord"), col("n")
            ).from_(subquery(dictionary_query(self.query, expression.copy()), "v"))
            for name, expression in self.sensitive.items()
        ]
        name = self.engine.fresh("domain_values")
        self.engine.create(name, union_all(parts))
        return name

    def relations(self, wanted: Sequence[str]) -> dict[str, str]:
        """Create the relations named, of those that a sensitive column needs only where there is one."""
        found = {"classes": self.classes()}
        if self.sensitive and "class_values" in wanted:
            found["class_values"] = self.class_values(found["classes"])
        if self.sensitive and "domain_values" in wanted:
            found["domain_values"] = self.domain_values()
        return found


@contextmanager
def opened(connection: Any) -> Iterator[Engine]:
    """Open an engine and close it again."""
    engine = open_engine(connection)
    try:
        yield engine
    finally:
        engine.close()


@contextmanager
def looked_at(
    data: object,
    *,
    quasi_identifiers: Sequence[str] | None,
    sensitive: Sequence[str] = (),
    entity_key: str | None = None,
    connection: Any = None,
) -> Iterator[Subject]:
    """Open a table or a release to be looked at."""
    if isinstance(data, Release):
        yield of_release(data, quasi_identifiers, sensitive)
        return
    with opened(connection) as engine:
        yield of_table(engine, data, quasi_identifiers, sensitive, entity_key)


def of_table(
    engine: Engine,
    data: object,
    quasi_identifiers: Sequence[str] | None,
    sensitive: Sequence[str] = (),
    entity_key: str | None = None,
) -> Subject:
    """Return a table of anybody's as a subject."""
    if quasi_identifiers is None:
        raise RoleError("Name the quasi-identifiers: only a release of duckanon knows its own.")
    relation = Source.of(data).open(engine)
    roles = Roles.resolve(
        relation.columns, quasi_identifiers=quasi_identifiers, sensitive=sensitive, entity_key=entity_key
    )

    def counted(name: str) -> exp.Expr:
        return canonical(col(name), relation.type_of(name), relation.collated)

    return Subject(
        engine=engine,
        name=relation.name,
        query=relation.query,
        quasi={a.name: counted(a.name) for a in roles.quasi_identifiers},
        types={c.name: c.type for c in relation.columns},
        sensitive={name: counted(name) for name in roles.named(Role.SENSITIVE)},
        counted=relation.query,
        entity=counted(roles.entity_key) if roles.entity_key is not None else None,
        collated=relation.collated,
    )


def of_release(
    release: Release, quasi_identifiers: Sequence[str] | None = None, sensitive: Sequence[str] = ()
) -> Subject:
    """Return a release as a subject, with its own roles unless others are given; persons where it counts them."""
    roles = release.plan.roles
    own = [a.name for a in roles.quasi_identifiers]
    names = list(quasi_identifiers) if quasi_identifiers is not None else own
    resolved = Roles.resolve(
        release.columns, quasi_identifiers=names, sensitive=sensitive or roles.named(Role.SENSITIVE)
    )
    names = [a.name for a in resolved.quasi_identifiers]
    counted, entity = release.query(), None
    proof = release.relations.get("proof")
    if proof is not None and set(names) <= set(own):
        counted, entity = release.engine.parquet([Path(proof)]), col(ENTITY)
    return Subject(
        engine=release.engine,
        name=release.path.name,
        query=release.query(),
        quasi={name: col(name) for name in names},
        types={c.name: c.type for c in release.columns},
        sensitive={name: col(name) for name in resolved.named(Role.SENSITIVE)},
        counted=counted,
        entity=entity,
    )
