"""The first stage: values become codes, on every level of the hierarchies, and are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.algorithms.base import POPULATION, Problem, Tally
from duckanon.encoding.counting import count_rows, hidden_person
from duckanon.encoding.dictionaries import (
    Coded,
    Dictionary,
    Frequency,
    code_levels,
    dictionaries,
    dictionary,
    frequency,
    published_type,
)
from duckanon.engine.sql.relations import DIALECT, cast, col, named, number, subquery, table, text, union_all
from duckanon.errors import DataError, InfeasibleError, ParameterError
from duckanon.hierarchy import Hierarchy, Levels, auto
from duckanon.hierarchy.auto import Auto
from duckanon.hierarchy.match import Match, match, matched_hierarchy
from duckanon.hierarchy.rules import ColumnType
from duckanon.hierarchy.shuffle import shuffled
from duckanon.models.base import sensitive_of
from duckanon.plan.roles import Attribute, Role
from duckanon.recoding.partition_axes import place_column
from duckanon.release.node_measure import NodeMeasure

if TYPE_CHECKING:
    from duckanon.algorithms.base import Algorithm
    from duckanon.algorithms.partition.partition import OrderedAxis
    from duckanon.engine.base import Engine
    from duckanon.plan.plan import Plan


@dataclass(frozen=True)
class SensitiveValues:
    """The values of a sensitive column, how often each occurs, and the nodes over them where a model needs these."""

    dictionary: Dictionary
    totals: Any
    ancestors: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Encoded:
    """A source whose quasi-identifiers have codes, and the problem for the search."""

    problem: Problem
    levels: tuple[Levels, ...]
    """The hierarchies of the quasi-identifiers, bound to their values."""
    hierarchies: tuple[Hierarchy, ...]
    """The same as they were given, or made."""
    sensitive: dict[str, SensitiveValues]
    domain_nodes: str | None
    """The table of the hierarchies of sensitive columns, where a model measures along them."""
    algorithm: Algorithm
    """The algorithm of the plan; one that applies a stored partition knows its place on the axes now."""
    axes: tuple[OrderedAxis, ...] = field(default=(), repr=False)
    """The quasi-identifiers as axes, where rows are divided."""
    proposals: tuple[tuple[str, Match], ...] = ()
    """Quasi-identifiers without a hierarchy, and the ready-made one that fits."""

    @property
    def coded(self) -> tuple[Coded, ...]:
        """The quasi-identifiers with the codes of their values."""
        return self.problem.frequency.coded

    @property
    def rows(self) -> int:
        """The number of rows of the source."""
        return self.problem.frequency.rows


def with_hierarchies(plan: Plan, engine: Engine) -> Plan:
    """Return the plan with the ready-made hierarchies that fit, where those are asked for; None where none fits."""
    chosen = dict(plan.hierarchies)
    for attribute in plan.roles.quasi_identifiers:
        given = chosen[attribute.name]
        if given is not None and isinstance(given.rule, Auto):
            values = dictionary(engine, plan.relation.query, attribute.name, plan.expression(attribute)).table
            chosen[attribute.name] = matched_hierarchy(engine, attribute.name, attribute.type, values)
            engine.drop(values)
    return replace(plan, hierarchies=chosen)


def encode(plan: Plan, engine: Engine) -> Encoded:
    """Read the source: dictionaries, bound hierarchies, and axes or the counts that a search of the lattice needs."""
    source = plan.relation.query
    rows = count_rows(engine, source)
    _require_rows(plan, rows)
    with engine.progress.step("encode", rows):
        coded, levels, hierarchies, proposals = _encode_columns(plan, engine, source)
        if plan.algorithm.partitions:
            sensitive, domain_nodes = _encode_sensitive(plan, engine, source)
            columns = zip(plan.roles.quasi_identifiers, coded, hierarchies, strict=True)
            axes = tuple(place_column(plan, engine, *column) for column in columns)
            algorithm = plan.algorithm.on_axes(engine, coded, axes)
            # Rows are divided, not tuples: this frequency table is never made.
            counted = Frequency(engine.fresh("frequency"), coded, rows)
            problem = _problem(plan, engine, counted, {})
            return Encoded(problem, levels, hierarchies, sensitive, domain_nodes, algorithm, axes, proposals)
        counted = frequency(engine, source, coded, hidden_person(plan.entity), expected=rows)
        sensitive, domain_nodes = _encode_sensitive(plan, engine, source)
        tallies = _tallies(plan, engine, source, coded, sensitive, rows)
    if counted.rows != rows:
        raise DataError("The source changed while it was read: its number of rows differs between two passes.")
    problem = replace(_problem(plan, engine, counted, tallies), measure=NodeMeasure(plan, engine, counted, levels))
    return Encoded(problem, levels, hierarchies, sensitive, domain_nodes, plan.algorithm, proposals=proposals)


def _require_rows(plan: Plan, rows: int) -> None:
    if rows == 0:
        raise DataError(f"The source {plan.relation.name!r} has no rows.")
    least = max(m.traits.min_class_size for m in plan.models)
    if rows < least:
        raise InfeasibleError(f"The source has {rows} rows: fewer than the {least} that every class must have.")


def _problem(plan: Plan, engine: Engine, counted: Frequency, tallies: dict[str, Tally]) -> Problem:
    names = [a.name for a in plan.roles.quasi_identifiers]
    return Problem(
        engine,
        counted,
        plan.models,
        plan.algorithm.allowed_rows(counted.rows, plan.suppression_limit, plan.models),
        plan.unit,
        tallies,
        plan.search_options.spans(names, [c.height for c in counted.coded]),
        tuple(plan.search_options.weights.get(name, 1.0) for name in names),
    )


# Quasi-identifiers


def _encode_columns(
    plan: Plan, engine: Engine, source: exp.Query
) -> tuple[tuple[Coded, ...], tuple[Levels, ...], tuple[Hierarchy, ...], tuple[tuple[str, Match], ...]]:
    """Return the quasi-identifiers with their codes, their bound hierarchies, these as given or made, and proposals."""
    coded, bound, used, columns, proposals = [], [], [], [], []
    for attribute in plan.roles.quasi_identifiers:
        further = _further_values(plan, engine, attribute)
        if plan.population is not None:
            value = named(plan.population_value(attribute), "value")
            people: exp.Query = exp.select(value).distinct().from_(subquery(plan.population.query, "p"))
            further = people if further is None else union_all([further, people])
        columns.append((attribute.name, plan.expression(attribute), further))
    every = dictionaries(engine, source, columns)
    for attribute, values in zip(plan.roles.quasi_identifiers, every, strict=True):
        hierarchy = plan.hierarchies[attribute.name]
        if hierarchy is None or isinstance(hierarchy.rule, Auto):
            hierarchy = auto(engine, values.table, attribute.name, attribute.type, pairs=plan.algorithm.partitions)
            fitting = _proposal(plan, attribute, values)
            proposals += [(attribute.name, fitting)] if fitting is not None else []
        levels = hierarchy.bind(engine, values.table, attribute.name, attribute.type, plan.on_unknown, values.texts)
        if plan.algorithm.hierarchy_shuffle_seed is not None:
            levels = shuffled(engine, levels, plan.algorithm.hierarchy_shuffle_seed)
        used.append(hierarchy)
        bound.append(levels)
        coded.append(code_hierarchy(engine, values, levels))
    return tuple(coded), tuple(bound), tuple(used), tuple(proposals)


def _proposal(plan: Plan, attribute: Attribute, values: Dictionary) -> Match | None:
    """Return the ready-made hierarchy that fits a column of texts, where its labels would be published."""
    untouched = plan.algorithm.permutes or attribute.name in plan.within
    if values.texts is None or untouched or ColumnType.parse(attribute.type).family != "text":
        return None
    return match(attribute.name, attribute.type, values.texts.to_pylist())


def _further_values(plan: Plan, engine: Engine, attribute: Attribute) -> exp.Query | None:
    """Return ``(value, [first])`` that must have codes; what is published as text has the order of ``first``."""
    values = plan.algorithm.known_values(engine, attribute.name)
    if values is None:
        return None
    kind = published_type(attribute.type)
    query = exp.select(named(cast(col("value", "k"), kind), "value")).from_(subquery(values, "k"))
    if kind != attribute.type and not attribute.type.upper().startswith(("JSON", '"NULL"')):
        own = exp.DataType.build(attribute.type, dialect=DIALECT)
        query = query.select(named(exp.TryCast(this=col("value", "k"), to=own), "first"))
    return query


def code_hierarchy(engine: Engine, values: Dictionary, levels: Levels) -> Coded:
    """Return the codes of the labels of a bound hierarchy."""
    tables = (levels.tree, levels.leaves, levels.height, levels.size, levels.top)
    return code_levels(engine, values, *tables, levels.unknown > 0, levels.arrays)


# Sensitive columns, and the population


def _encode_sensitive(plan: Plan, engine: Engine, source: exp.Query) -> tuple[dict[str, SensitiveValues], str | None]:
    """Number the values of the sensitive columns that models look at.

    The second result is ``domain_nodes``, the hierarchies of sensitive columns, where a model measures along them.
    """
    types = {a.name: a for a in plan.roles.attributes}
    climbing = {getattr(m, "sensitive", None) for m in plan.models if m.needs_hierarchy}
    encoded: dict[str, SensitiveValues] = {}
    nodes: list[exp.Query] = []
    every = plan.roles.named(Role.SENSITIVE) if plan.algorithm.counts_values else []
    for name in dict.fromkeys([*sensitive_of(plan.models), *every]):
        attribute = types[name]
        values = dictionary(engine, source, name, plan.expression(attribute))
        ancestors: tuple[Any, ...] = ()
        if name in climbing:
            levels = plan.sensitive_hierarchies[name].bind(engine, values.table, name, attribute.type, plan.on_unknown)
            own = code_hierarchy(engine, values, levels)
            codes = [col("code"), *(col(f"c{level}") for level in range(1, own.height + 1))]
            climbed = engine.arrow(exp.select(*codes).from_(table(own.levels)).order_by(col("code")))
            ancestors = tuple(column.to_numpy() for column in climbed.columns)
            nodes += node_queries(own)
        counts = engine.arrow(exp.select(col("n")).from_(table(values.table)).order_by(col("code")))
        encoded[name] = SensitiveValues(values, counts.column("n").to_numpy(), ancestors)
    domain_nodes = None
    if nodes:
        domain_nodes = engine.fresh("domain_nodes")
        engine.create(domain_nodes, union_all(nodes))
    return encoded, domain_nodes


def node_queries(coded: Coded) -> list[exp.Query]:
    """Return, level by level, ``(attribute, value, level, node)``: the node over each value of a column."""
    queries: list[exp.Query] = []
    for level in range(coded.height + 1):
        node = col("code", "v") if level == 0 else col(f"c{level}", "k")
        columns = [
            named(text(coded.dictionary.attribute), "attribute"),
            named(col("text", "v"), "value"),
            named(cast(number(level), "BIGINT"), "level"),
            named(cast(node, "BIGINT"), "node"),
        ]
        on = exp.EQ(this=col("code", "v"), expression=col("code", "k"))
        queries.append(
            exp.select(*columns).from_(table(coded.dictionary.table, "v")).join(table(coded.levels, "k"), on=on)
        )
    return queries


def _tallies(
    plan: Plan,
    engine: Engine,
    source: exp.Query,
    coded: Sequence[Coded],
    sensitive: dict[str, SensitiveValues],
    rows: int,
) -> dict[str, Tally]:
    """Count sensitive values and the population by the codes of the quasi-identifiers, as far as models need them."""
    tallies = {
        name: Tally(frequency(engine, source, coded, value=own.dictionary, expected=rows), own.totals, own.ancestors)
        for name, own in sensitive.items()
    }
    if plan.population is not None:
        tallies[POPULATION] = Tally(_population_frequency(plan, engine, coded))
    return tallies


def _population_frequency(plan: Plan, engine: Engine, coded: Sequence[Coded]) -> Frequency:
    """Count the population by the codes of the quasi-identifiers."""
    people = [
        replace(c, dictionary=replace(c.dictionary, expression=plan.population_value(a)))
        for c, a in zip(coded, plan.roles.quasi_identifiers, strict=True)
    ]
    if plan.population is None:
        raise ParameterError("The plan has no population.")
    return replace(frequency(engine, plan.population.query, people), coded=tuple(coded))


__all__ = ["Encoded", "SensitiveValues", "code_hierarchy", "encode", "node_queries", "with_hierarchies"]
