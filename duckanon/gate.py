"""The gate: every promise is checked again, in SQL, on what was materialised, by a path of its own.

Nothing here reads what an algorithm claims. Classes are counted from the published columns alone, NULL being a value
like any other, and a model's statement returns the classes that break it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.errors import PrivacyViolation
from duckanon.models.base import CheckResult, Model
from duckanon.sqlgen.files import load
from duckanon.sqlgen.relations import call, cast, col, named, number, subquery, table

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.roles import Roles

ENTITY = "duckanon entity key"
"""The name of the entity key in private files and statements; no published column has it."""


def count_classes(
    engine: Engine,
    relation: exp.Query,
    columns: Sequence[exp.Expr],
    entity: exp.Expr | None = None,
    keys: bool = False,
) -> str:
    """Create ``classes(class_id, n, suppressed)`` of a relation; n counts persons where there is an entity.

    With ``keys`` the values that make a class come along as ``q_0``, ``q_1``, ...
    """
    name = engine.fresh("classes")
    aliases = [f"q_{j}" for j in range(len(columns))]
    inner = exp.select(*(named(c.copy(), a) for c, a in zip(columns, aliases, strict=True))).from_(
        subquery(relation, "s")
    )
    members: exp.Expr = exp.Count(this=exp.Star())
    if entity is not None:
        inner = inner.select(named(entity.copy(), "entity"))
        distinct, nobody = persons(col("entity"))
        members = exp.Add(this=distinct, expression=nobody)
    counted = exp.select(*(col(a) for a in aliases), named(members, "n")).from_(subquery(inner, "i"))
    counted = counted.group_by(*(col(a) for a in aliases))
    rank = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=[exp.Ordered(this=col("n"), desc=False)]))
    query = exp.select(named(cast(rank, "BIGINT"), "class_id"), col("n"), named(exp.false(), "suppressed"))
    if keys:
        query = query.select(*(col(a) for a in aliases))
    engine.create(name, query.from_(subquery(counted, "c")))
    return name


def persons(entity: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Return two aggregates whose sum counts persons.

    ``count(DISTINCT ...)`` skips NULL: all rows without an entity are taken to be one more person.
    """
    nobody = exp.case().when(exp.Is(this=entity.copy(), expression=exp.null()), number(1)).else_(number(0))
    return call("count", exp.Distinct(expressions=[entity])), exp.Max(this=nobody)


def check_models(engine: Engine, classes: str, models: Sequence[Model], unit: str) -> tuple[CheckResult, ...]:
    """Run every model's statement on the classes."""
    (total,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(classes)))
    return tuple(_check(engine, classes, model, unit, int(total)) for model in models)


def _check(engine: Engine, classes: str, model: Model, unit: str, total: int) -> CheckResult:
    file = load(f"models/{model.name}")
    parameters = model.parameters()
    violating = subquery(file.bind({"classes": classes}), "v")
    found = exp.select(exp.Count(this=exp.Star()), exp.func("COALESCE", exp.Sum(this=col("n")), number(0)))
    bound: dict[str, Any] = {name: parameters[name] for name in file.params}
    n_classes, n_rows = engine.row(found.from_(violating), bound)
    return CheckResult(
        model=model.name,
        parameters=parameters,
        holds=int(n_classes) == 0,
        classes=total,
        violating_classes=int(n_classes),
        violating_rows=int(n_rows),
        text=model.describe(unit),
    )


def require(checks: Sequence[CheckResult]) -> None:
    """Raise a PrivacyViolation unless every check holds."""
    failed = [c for c in checks if not c.holds]
    if failed:
        parts = "; ".join(
            f"{c.model} is broken by {c.violating_classes} of {c.classes} classes ({c.violating_rows} rows)"
            for c in failed
        )
        raise PrivacyViolation(f"The gate refused the release: {parts}. Nothing was published.", tuple(checks))


def require_same_classes(engine: Engine, published: exp.Query, proof: exp.Query, columns: Sequence[str]) -> None:
    """Raise unless two relations have the same classes with the same numbers of rows.

    Persons are counted on a private copy that still has the entity key; this ties that copy to what is published.
    """
    sides = []
    for relation in (published, proof):
        keys = [col(c) for c in columns]
        count = named(exp.Count(this=exp.Star()), "n")
        sides.append(exp.select(*keys, count).from_(subquery(relation, "r")).group_by(*(k.copy() for k in keys)))
    first, second = sides
    for left, right in ((first, second), (second, first)):
        difference = exp.except_(left.copy(), right.copy())
        (rows,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(subquery(difference, "d")))
        if rows:
            raise PrivacyViolation("The gate refused the release: persons were not counted on what is published.")


def check_release(
    engine: Engine,
    written: exp.Query,
    roles: Roles,
    models: Sequence[Model],
    unit: str,
    rows: int,
    proof: str | None,
) -> tuple[CheckResult, ...]:
    """Check a release as it lies on disk: its columns, its number of rows, and every promise; raise if one is broken.

    ``proof`` is a private file with the published quasi-identifiers and the entity key, where persons are counted.
    """
    names = [a.name for a in roles.quasi_identifiers]
    if [c.name for c in engine.columns(written)] != [a.name for a in roles.published]:
        raise PrivacyViolation("The gate refused the release: its columns are not the declared ones.")
    if count_rows(engine, written) != rows:
        raise PrivacyViolation("The gate refused the release: the file does not hold the rows that were checked.")
    counted, entity = written, None
    if proof is not None:
        counted, entity = engine.parquet([Path(proof)]), col(ENTITY)
        require_same_classes(engine, written, counted, names)
    classes = count_classes(engine, counted, [col(n) for n in names], entity)
    checks = check_models(engine, classes, models, unit)
    engine.drop(classes)
    require(checks)
    return checks


def count_rows(engine: Engine, query: exp.Query) -> int:
    """Return the number of rows of a query."""
    (rows,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(subquery(query, "s")))
    return int(rows)
