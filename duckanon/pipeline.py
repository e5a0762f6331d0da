"""Carry out a plan: encode, search, recode, materialise, and let the gate decide."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.algorithms.base import POPULATION, Problem, Tally
from duckanon.algorithms.nodes import Node
from duckanon.encode import Coded, Dictionary, Frequency, code_levels, dictionary, frequency, published_type
from duckanon.errors import DataError, InfeasibleError, ParameterError, PrivacyViolation
from duckanon.facts import class_relations
from duckanon.gate import ENTITY, Reference, check_release, count_domain, count_rows, sensitive_of
from duckanon.hierarchy import Levels, auto
from duckanon.recoding import Recoding
from duckanon.release import Release
from duckanon.resources import PrivateFolder, sweep
from duckanon.roles import Role
from duckanon.sqlgen.recode import Cell, published_texts, recoded_counts, released_rows, shuffled_rows
from duckanon.sqlgen.relations import call, cast, col, named, number, param, subquery, table, text, union_all

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.plan import Plan

# Beyond this many texts in a column, an enumeration costs more to look up in than its short codes save in the sort.
_ENUM_LIMIT = 50_000


def make(plan: Plan, engine: Engine, stage: Path | None = None) -> Release:
    """Carry out a plan: encode, search, recode, materialise, and let the gate decide.

    ``stage`` is a folder on the file system of the later target, so that publishing is a rename. All passes over a
    table read one snapshot of it.
    """
    with engine.snapshot():
        return _carry_out(plan, engine, stage)


def _carry_out(plan: Plan, engine: Engine, stage: Path | None) -> Release:
    progress = engine.progress
    source = plan.relation.query
    rows = count_rows(engine, source)
    _require_rows(plan, rows)
    with progress.step("encode", rows):
        coded, bound = _encode(plan, engine, source)
        counted = frequency(engine, source, coded, plan.entity)
        tallies, nodes = _tallies(plan, engine, source, coded)
    if counted.rows != rows:
        raise DataError("The source changed while it was read: its number of rows differs between two passes.")
    allowed = plan.algorithm.allowed_rows(rows, plan.suppression_limit, plan.models)
    problem = Problem(engine, counted, plan.models, allowed, plan.unit, tallies)
    with progress.step("search", unit="nodes"):
        node = plan.algorithm.search(problem)
    if node.outlier_rows == rows:
        raise InfeasibleError(
            f"All {rows} rows would be suppressed: no class has {problem.min_size} {plan.unit}. Lower the suppression "
            "limit so that values are generalized instead."
        )
    engine.drop(*(tally.frequency.table for tally in tallies.values()))
    return _materialise(plan, engine, counted, bound, node, problem, nodes, stage)


def _materialise(
    plan: Plan,
    engine: Engine,
    counted: Frequency,
    bound: tuple[Levels, ...],
    node: Node,
    problem: Problem,
    nodes: str | None,
    stage: Path | None,
) -> Release:
    if stage is not None:
        sweep(stage)
    folder = PrivateFolder(stage)
    try:
        cells = _cells(plan, engine, counted, bound, node)
        path = folder.path / "release.parquet"
        relations = class_relations(engine, counted, node, cells, plan, path)
        with engine.progress.step("recode", counted.rows):
            _write_rows(plan, engine, cells, relations, path)
        written = engine.parquet([path])
        published = count_rows(engine, written)
        with engine.progress.step("gate", published):
            reference = _reference(plan, engine, cells, nodes)
            if plan.entity is not None:
                relations["proof"] = str(folder.path / "proof.parquet")
                _write_proof(plan, engine, cells, relations)
            if published + node.outlier_rows != counted.rows:
                raise PrivacyViolation("The gate refused the release: rows in are not rows published plus suppressed.")
            checks = check_release(
                engine, written, plan.roles, plan.models, plan.unit, published, relations.get("proof"), reference
            )
    except BaseException:
        folder.close()
        raise
    levels = {c.name: c.level for c in cells}
    recoding = Recoding(levels, plan, cells, engine, problem.min_size, None if problem.size_only else relations)
    columns = tuple(engine.columns(written))
    return Release(
        plan=plan,
        engine=engine,
        path=path,
        columns=columns,
        rows_in=counted.rows,
        rows_published=published,
        rows_suppressed=node.outlier_rows,
        checks=checks,
        recoding=recoding,
        levels=bound,
        relations=relations,
        folder=folder,
        reference=reference,
    )


def _require_rows(plan: Plan, rows: int) -> None:
    if rows == 0:
        raise DataError(f"The source {plan.relation.name!r} has no rows.")
    least = max(m.traits.min_class_size for m in plan.models)
    if rows < least:
        raise InfeasibleError(f"The source has {rows} rows: fewer than the {least} that every class must have.")


def _encode(plan: Plan, engine: Engine, source: exp.Query) -> tuple[list[Coded], tuple[Levels, ...]]:
    coded, bound = [], []
    for attribute in plan.roles.quasi_identifiers:
        further = None
        if plan.population is not None:
            value = named(plan.population_value(attribute), "value")
            further = exp.select(value).distinct().from_(subquery(plan.population.query, "p"))
        values = dictionary(engine, source, attribute.name, plan.expression(attribute), further)
        hierarchy = plan.hierarchies[attribute.name]
        if hierarchy is None:
            hierarchy = auto(engine, values.table, attribute.name, attribute.type)
        levels = hierarchy.bind(engine, values.table, attribute.name, attribute.type, plan.on_unknown)
        bound.append(levels)
        coded.append(code_hierarchy(engine, values, levels))
    return coded, tuple(bound)


def _tallies(
    plan: Plan, engine: Engine, source: exp.Query, coded: Sequence[Coded]
) -> tuple[dict[str, Tally], str | None]:
    """Count sensitive values and the population by the codes of the quasi-identifiers, as far as models need them.

    The second result is ``domain_nodes``, the hierarchies of sensitive columns, where a model measures along them.
    """
    types = {a.name: a for a in plan.roles.attributes}
    climbing = {getattr(m, "sensitive", None) for m in plan.models if m.needs_hierarchy}
    tallies: dict[str, Tally] = {}
    nodes: list[exp.Query] = []
    for name in sensitive_of(plan.models):
        attribute = types[name]
        values = dictionary(engine, source, name, plan.expression(attribute))
        ancestors: tuple[Any, ...] = ()
        if name in climbing:
            levels = plan.sensitive_hierarchies[name].bind(engine, values.table, name, attribute.type, plan.on_unknown)
            own = code_hierarchy(engine, values, levels)
            codes = [col("code"), *(col(f"c{level}") for level in range(1, own.height + 1))]
            found = engine.arrow(exp.select(*codes).from_(table(own.levels)).order_by(col("code")))
            ancestors = tuple(column.to_numpy() for column in found.columns)
            nodes += node_queries(own)
        counts = engine.arrow(exp.select(col("n")).from_(table(values.table)).order_by(col("code")))
        tallies[name] = Tally(frequency(engine, source, coded, value=values), counts.column("n").to_numpy(), ancestors)
    if plan.population is not None:
        tallies[POPULATION] = Tally(_population_frequency(plan, engine, coded))
    domain_nodes = None
    if nodes:
        domain_nodes = engine.fresh("domain_nodes")
        engine.create(domain_nodes, union_all(nodes))
    return tallies, domain_nodes


def code_hierarchy(engine: Engine, values: Dictionary, levels: Levels) -> Coded:
    """Give the labels of a bound hierarchy their codes."""
    return code_levels(
        engine, values, levels.tree, levels.leaves, levels.height, levels.size, levels.top, levels.unknown > 0
    )


def node_queries(coded: Coded) -> list[exp.Query]:
    """Return, level by level, ``(attribute, value, level, node)``: the node over each value of a column."""
    found: list[exp.Query] = []
    for level in range(coded.height + 1):
        node = col("code", "v") if level == 0 else col(f"c{level}", "k")
        columns = [
            named(text(coded.dictionary.attribute), "attribute"),
            named(col("text", "v"), "value"),
            named(cast(number(level), "BIGINT"), "level"),
            named(cast(node, "BIGINT"), "node"),
        ]
        on = exp.EQ(this=col("code", "v"), expression=col("code", "k"))
        found.append(
            exp.select(*columns).from_(table(coded.dictionary.table, "v")).join(table(coded.levels, "k"), on=on)
        )
    return found


def _population_frequency(plan: Plan, engine: Engine, coded: Sequence[Coded]) -> Frequency:
    """Count the population by the codes of the quasi-identifiers."""
    people = [
        replace(c, dictionary=replace(c.dictionary, expression=plan.population_value(a)))
        for c, a in zip(coded, plan.roles.quasi_identifiers, strict=True)
    ]
    if plan.population is None:
        raise ParameterError("The plan has no population.")
    return replace(frequency(engine, plan.population.query, people), coded=tuple(coded))


def _reference(plan: Plan, engine: Engine, cells: Sequence[Cell], nodes: str | None) -> Reference:
    """Return what the gate compares the release with: the source's sensitive values, and the population recoded."""
    types = {a.name: a for a in plan.roles.attributes}
    sensitive = {name: plan.expression(types[name]) for name in sensitive_of(plan.models)}
    values = count_domain(engine, plan.relation.query, sensitive) if sensitive else None
    population = None
    if plan.population is not None:
        expressions = [plan.population_value(a) for a in plan.roles.quasi_identifiers]
        population = engine.fresh("population")
        engine.create(population, recoded_counts(plan.population.query, cells, expressions))
    return Reference(values, nodes, population)


def _cells(plan: Plan, engine: Engine, counted: Frequency, bound: Sequence[Levels], node: Node) -> list[Cell]:
    """Return how each quasi-identifier is recoded at the levels of a node."""
    cells = []
    for attribute, coded, levels, level in zip(
        plan.roles.quasi_identifiers, counted.coded, bound, node.levels, strict=True
    ):
        values = coded.dictionary
        cell = Cell(
            name=attribute.name,
            expression=values.expression,
            values=values.table,
            levels=coded.levels,
            labels=coded.labels,
            level=level,
            size=coded.sizes[level],
            constant=level == coded.height,
            typed=level == 0 and not coded.masked,
            top=levels.top,
        )
        is_text = not cell.typed or published_type(attribute.type) == "VARCHAR"
        if is_text and not cell.constant and cell.size <= _ENUM_LIMIT:
            cell = replace(cell, enum=engine.fresh("enum"))
            engine.create_enum(str(cell.enum), published_texts(cell))
        cells.append(cell)
    return cells


def _write_rows(plan: Plan, engine: Engine, cells: Sequence[Cell], relations: dict[str, str], path: Path) -> None:
    quasi = {c.name: f"q_{j}" for j, c in enumerate(cells)}
    passed = [a for a in plan.roles.published if a.role is not Role.QUASI_IDENTIFIER]
    kept_columns = [(a.name, plan.expression(a)) for a in passed]
    inner = {a.name: f"p_{i}" for i, a in enumerate(passed)}
    rows = engine.fresh("rows")
    select = shuffled_rows(plan.relation.query, cells, relations["class_map"], kept_columns)
    engine.create(rows, select, _shuffle_keys(plan.seed))
    columns = [(a.name, quasi.get(a.name) or inner[a.name]) for a in plan.roles.published]
    engine.write_parquet(released_rows(rows, cells, columns), path)
    engine.drop(rows)


def _write_proof(plan: Plan, engine: Engine, cells: Sequence[Cell], relations: dict[str, str]) -> None:
    """Write the published quasi-identifiers with the entity key, for the gate alone."""
    entity = plan.entity
    if entity is None:
        return
    rows = engine.fresh("rows")
    # A keyed hash in place of the key itself: a collision could only make two persons one, never one person two.
    hidden = call("hash", param("key0"), param("key1"), entity)
    masked = exp.case().when(exp.Is(this=entity.copy(), expression=exp.null()), exp.null()).else_(hidden)
    select = shuffled_rows(plan.relation.query, cells, relations["class_map"], [(ENTITY, masked)])
    engine.create(rows, select, _shuffle_keys(plan.seed))
    columns = [(c.name, f"q_{j}") for j, c in enumerate(cells)]
    query = released_rows(rows, cells, [*columns, (ENTITY, "p_0")])
    engine.write_parquet(query, Path(relations["proof"]))
    engine.drop(rows)


def _shuffle_keys(seed: int | None) -> dict[str, int]:
    """Return two secret words from the operating system, or words derived from a seed."""
    if seed is None:
        raw = secrets.token_bytes(16)
    else:
        raw = hashlib.sha256(b"duckanon-shuffle" + str(seed).encode()).digest()[:16]
    return {f"key{i}": int.from_bytes(raw[8 * i : 8 * i + 8], "big") for i in range(2)}
