"""A table to be assessed, made by duckanon or not, and the class relations that models, risk and attacks read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.encoding.counting import ENTITY, count_classes, count_domain, count_rows, count_values, place_population
from duckanon.encoding.dictionaries import canonical, dictionary, published_type
from duckanon.engine.base import workspace
from duckanon.engine.sql.relations import cast, col, named, subquery, table, union_all
from duckanon.errors import DataError, ParameterError, RoleError, did_you_mean
from duckanon.hierarchy import Hierarchy, resolve
from duckanon.hierarchy.rules import ColumnType
from duckanon.io.source import Relation, Source
from duckanon.plan.plan import open_population
from duckanon.plan.roles import Role, Roles, column_names
from duckanon.release.release import Release
from duckanon.release.stages.encode import code_hierarchy, node_queries

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.engine.sql.relations import RelationTables


@dataclass(frozen=True)
class AssessedTable:
    """A table in an engine: its rows, and its columns as they are counted (canonical, NULL being a value).

    ``counted`` is what members are counted on. It is the table itself, or for a release that counts persons the
    owner's private copy that still identifies them. ``hierarchies`` are those of sensitive columns, ``population`` the
    people from whom the table was drawn, its quasi-identifiers written as in the table. ``whole`` is what frequencies
    in the whole table are counted on, with its sensitive columns: the table itself, or what a release was made from.
    """

    engine: Engine
    name: str
    query: exp.Query
    quasi: dict[str, exp.Expr]
    types: dict[str, str]
    sensitive: dict[str, exp.Expr]
    counted: exp.Query
    roles: Roles
    entity: exp.Expr | None = None
    collated: bool = False
    hierarchies: dict[str, Hierarchy] = field(default_factory=dict)
    population: Relation | None = None
    whole: tuple[exp.Query, dict[str, exp.Expr]] | None = None
    release_relations: RelationTables | None = None
    """Relations that the release already has; they are never dropped here."""

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

    def relations(self, wanted: Collection[str], shared: bool = False) -> dict[str, str]:
        """Create ``classes`` and those of the relations named that the table has: sensitive columns, a population.

        With ``shared`` those that a release has of itself are taken; its ``classes`` have no keys.
        """
        if shared and self.release_relations is not None and self.population is None:
            values = [
                name
                for name in ("class_values", "domain_values")
                if name in wanted and self.release_relations.has(name)
            ]
            relations = self.release_relations.tables("classes", *values)
            if self.hierarchies and "domain_nodes" in wanted:
                relations["domain_nodes"] = self._domain_nodes()
            return relations
        relations = {"classes": self.classes()}
        if self.sensitive and "class_values" in wanted:
            columns = list(self.quasi.values())
            relations["class_values"] = count_values(
                self.engine, self.query, columns, self.sensitive, relations["classes"]
            )
        if self.sensitive and "domain_values" in wanted:
            relations["domain_values"] = count_domain(self.engine, *(self.whole or (self.query, self.sensitive)))
        if self.hierarchies and "domain_nodes" in wanted:
            relations["domain_nodes"] = self._domain_nodes()
        if self.population is not None and "population_classes" in wanted:
            relations["population_classes"] = self._population_classes(relations["classes"], self.population)
        return relations

    def drop(self, relations: Mapping[str, str]) -> None:
        """Drop relations that were created for this assessment."""
        shared = (
            set()
            if self.release_relations is None
            else {self.release_relations.table(name) for name in relations if self.release_relations.has(name)}
        )
        self.engine.drop(*(name for name in relations.values() if name not in shared))

    def _domain_nodes(self) -> str:
        """Create ``domain_nodes(attribute, value, level, node)`` of the sensitive columns with a hierarchy."""
        parts: list[exp.Query] = []
        whole, expressions = self.whole or (self.query, self.sensitive)
        for name, hierarchy in self.hierarchies.items():
            values = dictionary(self.engine, whole, name, expressions[name])
            levels = hierarchy.bind(self.engine, values.table, name, self.type_of(name), "error")
            parts += node_queries(code_hierarchy(self.engine, values, levels))
        created = self.engine.fresh("domain_nodes")
        self.engine.create(created, union_all(parts))
        return created

    def _population_classes(self, classes: str, population: Relation) -> str:
        """Create ``population_classes(class_id, n)``; classes without a row of the table have ids below zero."""
        counted = exp.select().from_(subquery(population.query, "p"))
        keys = exp.select(col("class_id"))
        for j, name in enumerate(self.quasi):
            column = next(c for c in population.columns if c.name.lower() == name.lower())
            sides = [canonical(col(column.name), column.type, population.collated), col(f"q_{j}")]
            if not comparable(column.type, self.type_of(name)):
                sides = [cast(side, "VARCHAR") for side in sides]
            counted, keys = counted.select(named(sides[0], f"k_{j}")), keys.select(named(sides[1], f"q_{j}"))
        counted = counted.select(named(exp.Count(this=exp.Star()), "n")).group_by(exp.var("ALL"))
        people, keys_table = self.engine.fresh("population"), self.engine.fresh("keys")
        self.engine.create(people, counted)
        self.engine.create(keys_table, keys.from_(table(classes)))
        placed = place_population(self.engine, keys_table, people, [f"k_{j}" for j in range(len(self.quasi))])
        self.engine.drop(people, keys_table)
        return placed


def comparable(first: str, second: str) -> bool:
    """Return whether the database compares values of two types exactly, without rounding or errors.

    Labels and values are compared as texts: reading a label as a number would fail, or give another number.

    Examples
    --------
    >>> comparable("BIGINT", "DOUBLE"), comparable("BIGINT", "VARCHAR"), comparable("BIGINT", "HUGEINT")
    (True, False, False)
    """
    if first == second:
        return True
    kinds = {ColumnType.parse(published_type(t)).kind for t in (first, second)}
    return len(kinds) == 1 and "category" not in kinds


@contextmanager
def assessed(
    data: object,
    *,
    quasi_identifiers: Sequence[str] | None,
    sensitive: Sequence[str] = (),
    entity_key: str | None = None,
    connection: Any = None,
    hierarchies: Mapping[str, Any] | None = None,
    population: object = None,
) -> Iterator[AssessedTable]:
    """Open a table or a release to be assessed."""
    if isinstance(data, Release):
        data.require_visible("This")
        yield of_release(data, quasi_identifiers, sensitive, hierarchies=hierarchies, population=population)
        return
    with workspace(connection) as engine:
        yield of_table(
            engine, data, quasi_identifiers, sensitive, entity_key, hierarchies=hierarchies, population=population
        )


def of_table(
    engine: Engine,
    data: object,
    quasi_identifiers: Sequence[str] | None,
    sensitive: Sequence[str] = (),
    entity_key: str | None = None,
    *,
    hierarchies: Mapping[str, Any] | None = None,
    population: object = None,
) -> AssessedTable:
    """Return any table, one that is open already included, as an assessed table."""
    if quasi_identifiers is None:
        raise RoleError("Name the quasi-identifiers: only a release of duckanon knows its own.")
    relation = data if isinstance(data, Relation) else Source.of(data).open(engine)
    roles = Roles.resolve(
        relation.columns, quasi_identifiers=quasi_identifiers, sensitive=sensitive, entity_key=entity_key
    )

    def counted(name: str) -> exp.Expr:
        return canonical(col(name), relation.type_of(name), relation.collated)

    return AssessedTable(
        engine=engine,
        name=relation.name,
        query=relation.query,
        quasi={a.name: counted(a.name) for a in roles.quasi_identifiers},
        types={c.name: c.type for c in relation.columns},
        sensitive={name: counted(name) for name in roles.named(Role.SENSITIVE)},
        counted=relation.query,
        roles=roles,
        entity=counted(roles.entity_key) if roles.entity_key is not None else None,
        collated=relation.collated,
        hierarchies=_sensitive_hierarchies(engine, roles, hierarchies or {}),
        population=open_population(population, roles, engine) if population is not None else None,
    )


def of_release(
    release: Release,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: Sequence[str] = (),
    *,
    hierarchies: Mapping[str, Any] | None = None,
    population: object = None,
) -> AssessedTable:
    """Return a release as an assessed table, with its own roles unless others are given."""
    roles = release.plan.roles
    published = list(release.recoding.columns)
    names = published_columns(release, quasi_identifiers) if quasi_identifiers is not None else published
    resolved = Roles.resolve(
        release.columns, quasi_identifiers=names, sensitive=sensitive or roles.named(Role.SENSITIVE), nested=True
    )
    names = [a.name for a in resolved.quasi_identifiers]
    counted, entity = release.query(), None
    persons = release.persons
    if persons is not None and set(names) <= set(published):
        counted, entity = release.engine.parquet([persons]), col(ENTITY)
    hidden = resolved.named(Role.SENSITIVE)
    original = {a.name: release.plan.expression(a) for a in roles.attributes if a.name in hidden}
    as_made = (
        not release.hidden
        and entity is None
        and set(names) == set(published)
        and set(hidden) == set(roles.named(Role.SENSITIVE))
    )
    return AssessedTable(
        engine=release.engine,
        name=release.path.name,
        query=release.query(),
        quasi={name: col(name) for name in names},
        types={c.name: c.type for c in release.columns},
        sensitive={name: col(name) for name in hidden},
        counted=counted,
        roles=resolved,
        entity=entity,
        hierarchies=_sensitive_hierarchies(release.engine, resolved, hierarchies or {}),
        population=open_population(population, resolved, release.engine) if population is not None else None,
        whole=(release.plan.relation.query, original),
        release_relations=release.relations if as_made else None,
    )


def published_columns(release: Release, names: Sequence[str]) -> list[str]:
    """Return the columns under which quasi-identifiers are published: one may be published as its two bounds."""
    published_as = {name.lower(): columns for name, columns in release.plan.published_as.items()}
    given = column_names(names, "quasi_identifiers")
    return [column for name in given for column in published_as.get(name.lower(), (name,))]


def originals(release: Release, names: Sequence[str]) -> list[str]:
    """Return the columns of the source that published columns were made of."""
    made_of = {column: name for name, columns in release.plan.published_as.items() for column in columns}
    return list(dict.fromkeys(made_of.get(name, name) for name in names))


def _sensitive_hierarchies(engine: Engine, roles: Roles, given: Mapping[str, Any]) -> dict[str, Hierarchy]:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ParameterError(f"hierarchies must be a mapping of columns. Got a {type(given).__name__}.")
    names = {n.lower(): n for n in roles.named(Role.SENSITIVE)}
    for name in given:
        if name.lower() not in names:
            raise RoleError(
                f"A hierarchy is given for {name!r}, which is no sensitive column.{did_you_mean(name, names.values())}"
            )
    return {names[name.lower()]: resolve(spec, engine, None) for name, spec in given.items()}
