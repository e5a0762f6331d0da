"""Carry out a plan: encode, search, recode, materialise, and let the gate decide."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.algorithms.base import Problem
from duckanon.algorithms.nodes import Node
from duckanon.encode import Coded, Frequency, code_levels, dictionary, frequency, published_type
from duckanon.errors import DataError, InfeasibleError, PrivacyViolation
from duckanon.facts import class_relations
from duckanon.gate import ENTITY, check_release, count_rows
from duckanon.hierarchy import Levels, auto
from duckanon.recoding import Recoding
from duckanon.release import Release
from duckanon.resources import PrivateFolder, sweep
from duckanon.roles import Role
from duckanon.sqlgen.recode import Cell, published_texts, released_rows, shuffled_rows
from duckanon.sqlgen.relations import call, col, param

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
    if counted.rows != rows:
        raise DataError("The source changed while it was read: its number of rows differs between two passes.")
    allowed = plan.algorithm.allowed_rows(rows, plan.suppression_limit, plan.models)
    problem = Problem(engine, counted, plan.models, allowed, plan.unit)
    with progress.step("search", unit="nodes"):
        node = plan.algorithm.search(problem)
    if node.outlier_rows == rows:
        raise InfeasibleError(
            f"All {rows} rows would be suppressed: no class has {problem.min_size} {plan.unit}. Lower the suppression "
            "limit so that values are generalized instead."
        )
    return _materialise(plan, engine, counted, bound, node, problem.min_size, stage)


def _materialise(
    plan: Plan,
    engine: Engine,
    counted: Frequency,
    bound: tuple[Levels, ...],
    node: Node,
    min_size: int,
    stage: Path | None,
) -> Release:
    if stage is not None:
        sweep(stage)
    folder = PrivateFolder(stage)
    try:
        cells = _cells(plan, engine, counted, bound, node)
        relations = class_relations(engine, counted, node, cells, min_size)
        path = folder.path / "release.parquet"
        with engine.progress.step("recode", counted.rows):
            _write_rows(plan, engine, cells, relations, path)
        written = engine.parquet([path])
        published = count_rows(engine, written)
        with engine.progress.step("gate", published):
            if plan.entity is not None:
                relations["proof"] = str(folder.path / "proof.parquet")
                _write_proof(plan, engine, cells, relations)
            if published + node.outlier_rows != counted.rows:
                raise PrivacyViolation("The gate refused the release: rows in are not rows published plus suppressed.")
            checks = check_release(
                engine, written, plan.roles, plan.models, plan.unit, published, relations.get("proof")
            )
    except BaseException:
        folder.close()
        raise
    levels = {c.name: c.level for c in cells}
    recoding = Recoding(levels, plan, cells, engine, min_size)
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
        values = dictionary(engine, source, attribute.name, plan.expression(attribute))
        hierarchy = plan.hierarchies[attribute.name]
        if hierarchy is None:
            hierarchy = auto(engine, values.table, attribute.name, attribute.type)
        levels = hierarchy.bind(engine, values.table, attribute.name, attribute.type, plan.on_unknown)
        bound.append(levels)
        coded.append(
            code_levels(
                engine, values, levels.tree, levels.leaves, levels.height, levels.size, levels.top, levels.unknown > 0
            )
        )
    return coded, tuple(bound)


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
