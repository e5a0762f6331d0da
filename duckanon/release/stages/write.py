"""The fourth stage: the rows of a release in a private Parquet file, in a random order.

Where persons are counted, a second private file has the entity keys, hashed, beside the published quasi-identifiers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.encoding.counting import ENTITY, hidden_person
from duckanon.encoding.dictionaries import ENUM_LIMIT, enumeration
from duckanon.encoding.words import shuffle_keys
from duckanon.engine.sql.recode import ORDER, shuffled
from duckanon.engine.sql.relations import approx_distinct, cast, col, named, param, subquery, table
from duckanon.plan.roles import Role

if TYPE_CHECKING:
    from pathlib import Path

    from duckanon.engine.base import Engine
    from duckanon.plan.plan import Plan
    from duckanon.recoding.base import Recoder
    from duckanon.release.stages.recode import Recoded


@dataclass(frozen=True)
class Written:
    """The private files of a release, not yet checked."""

    path: Path
    persons: Path | None = None
    """The published quasi-identifiers with hashed entity keys, for the gate alone."""


def write(plan: Plan, engine: Engine, recoded: Recoded, path: Path, expected: int) -> Written:
    """Write the published rows to ``path``; ``expected`` is the number of rows of the source."""
    recoder = recoded.recoder
    with engine.progress.step("recode", expected):
        write_rows(plan, recoder, path, expected)
        persons = None
        if plan.entity is not None and not plan.algorithm.permutes:
            persons = path.with_name("persons.parquet")
            write_persons(plan, recoder, persons)
    return Written(path, persons)


def passed_columns(plan: Plan) -> list[tuple[str, exp.Expr]]:
    """Return the columns that are published as they are."""
    return [(a.name, plan.expression(a)) for a in plan.roles.published if a.role is not Role.QUASI_IDENTIFIER]


def write_rows(plan: Plan, recoder: Recoder, path: Path, expected: int) -> None:
    """Write the published rows, shuffled; where ``expected`` rows are many for the memory, in two steps."""
    inner, passed = dict(recoder.shown), passed_columns(plan)
    inner |= {name: f"p_{i}" for i, (name, _) in enumerate(passed)}
    columns = [(name, inner[name]) for name in plan.published_names]
    engine, keys = recoder.engine, shuffle_keys(plan.seed)
    stored = engine.fresh("recoded")

    def from_file(rows: exp.Select) -> exp.Select:
        return _stored_rows(engine, stored, rows, keys)

    crowded = engine.is_crowded_by(expected * 24 * len(columns))
    if not recoder.write(passed, columns, path, keys, expected, from_file if crowded else None):
        rows, params = recoder.rows(passed, keyed=True), keys
        if crowded:
            rows, params = from_file(rows), {}
        else:
            rows = shuffled(rows)
        engine.write_parquet(recoder.released(rows, columns), path, params)
    engine.drop(stored)


def _stored_rows(engine: Engine, name: str, rows: exp.Select, keys: dict[str, int]) -> exp.Select:
    """Store rows that have ``ORDER`` in a private file; return a query that shuffles them.

    Lookups and a sort together need more memory. Rows are sorted with short codes in place of texts.
    """
    plain = rows.select(*(e.copy() for e in rows.selects if e.alias_or_name != ORDER), append=False)
    found = engine.columns(plain)
    # Enumerations are written as texts, see ``Regions.released``.
    words = [c.name for c in found if c.type.startswith(("ENUM", "VARCHAR")) and not c.type.endswith("]")]
    written = [named(cast(col(c.name), "VARCHAR"), c.name) if c.name in words else col(c.name) for c in found]
    engine.create_file(name, exp.select(*written, col(ORDER)).from_(subquery(rows, "r")), keys)
    short = _enumerated(engine, name, words)
    inner, outer = [], []
    for column in found:
        own: exp.Expr = col(column.name)
        if column.name in short:
            kind = exp.DataType.build(short[column.name], udt=True)
            inner.append(named(exp.Cast(this=own, to=kind), column.name))
            outer.append(named(cast(col(column.name), "VARCHAR"), column.name))
        else:
            inner.append(own)
            outer.append(own.copy())
    return exp.select(*outer).from_(subquery(shuffled(exp.select(*inner, col(ORDER)).from_(table(name))), "o"))


def _enumerated(engine: Engine, rows: str, columns: Sequence[str]) -> dict[str, str]:
    """Return enumerations of those columns that have few texts."""
    if not columns:
        return {}
    several = [approx_distinct(col(c)) for c in columns]
    sizes = engine.row(exp.select(*several).from_(table(rows)))
    return {
        column: enumeration(engine, exp.select(named(col(column), "label")).from_(table(rows)))
        for column, size in zip(columns, sizes, strict=True)
        if 0 < size <= ENUM_LIMIT // 2
    }


def write_persons(plan: Plan, recoder: Recoder, path: Path) -> None:
    """Write the published quasi-identifiers with the hashed entity key, for the gate alone."""
    person = hidden_person(plan.entity, param("key0"), param("key1"))
    assert person is not None
    rows = recoder.rows([(ENTITY, person)])
    columns = [*recoder.shown, (ENTITY, "p_0")]
    # Nobody sees this file: its order does not matter.
    recoder.engine.write_parquet(recoder.released(rows, columns), path, shuffle_keys(plan.seed))


__all__ = ["Written", "passed_columns", "write", "write_persons", "write_rows"]
