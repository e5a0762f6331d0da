"""The gate: every promise is checked again, in SQL, on what was materialised, by a path of its own.

Nothing here reads what an algorithm claims. Classes are counted from the published columns alone, NULL being a value
like any other, and a model's statement returns the classes that break it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.errors import PrivacyViolation
from duckanon.hidden_groups import Evidence, count_blocks, count_groups, require_blocks, require_file
from duckanon.models.base import CheckResult, Model
from duckanon.short_keys import short_keys
from duckanon.side_by_side import Fingerprint
from duckanon.sqlgen.files import load
from duckanon.sqlgen.relations import (
    call,
    cast,
    col,
    conjunction,
    named,
    number,
    same,
    subquery,
    table,
    text,
    union_all,
)

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.roles import Roles

ENTITY = "duckanon entity key"
"""The name of the entity key in private files and statements; no published column has it."""
MANY_ROWS = 500_000
"""From so many rows on, classes are counted by hashes in place of texts."""


def count_classes(
    engine: Engine,
    relation: exp.Query,
    columns: Sequence[exp.Expr],
    entity: exp.Expr | None = None,
    keys: bool = False,
) -> str:
    """Create ``classes(class_id, n, suppressed)`` of a relation; n counts persons where there is an entity.

    With ``keys`` the values that make a class come along as ``q_0``, ``q_1``, ..., and classes are numbered by size.
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
    # Without the values nobody can say which class has which number: any order will do, and sorting them costs.
    by_size = exp.Order(expressions=[exp.Ordered(this=col("n"), desc=False)]) if keys else None
    rank = exp.Window(this=exp.RowNumber(), order=by_size)
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


@dataclass(frozen=True)
class Reference:
    """What a release is compared with: the table as it was before, and the population.

    ``domain_values`` and ``domain_nodes`` describe the sensitive columns of the whole source, suppressed rows included;
    ``population`` has the columns of the quasi-identifiers, recoded as they are published, and ``n``.
    """

    domain_values: str | None = None
    domain_nodes: str | None = None
    population: str | None = None
    published: Fingerprint | None = None
    """The rows that were found true, see ``side_by_side``."""
    evidence: Evidence | None = None
    """What ties the rows of a release to those of its source, where it is about groups that nobody can see."""


def count_values(
    engine: Engine,
    relation: exp.Query,
    columns: Sequence[exp.Expr],
    sensitive: Mapping[str, exp.Expr],
    classes: str,
) -> str:
    """Create ``class_values(class_id, attribute, value, n)``; ``classes`` has the keys of the same columns."""
    keys = [f"q_{j}" for j in range(len(columns))]
    parts: list[exp.Query] = []
    for name, expression in sensitive.items():
        # Counted first and joined after: there are far fewer combinations than rows.
        counted = exp.select(*(named(c.copy(), a) for c, a in zip(columns, keys, strict=True)))
        counted = counted.select(named(cast(expression.copy(), "VARCHAR"), "value"))
        counted = counted.select(named(exp.Count(this=exp.Star()), "n")).from_(subquery(relation.copy(), "s"))
        on = conjunction([same(col(a, "v"), col(a, "c")) for a in keys])
        found = [col("class_id", "c"), named(text(name), "attribute"), col("value", "v"), col("n", "v")]
        counted = counted.group_by(exp.var("ALL"))
        parts.append(exp.select(*found).from_(subquery(counted, "v")).join(table(classes, "c"), on=on))
    created = engine.fresh("class_values")
    engine.create(created, union_all(parts))
    return created


def count_domain(engine: Engine, source: exp.Query, sensitive: Mapping[str, exp.Expr]) -> str:
    """Create ``domain_values(attribute, value, ord, n)``: the sensitive values of a whole table, in their order."""
    parts: list[exp.Query] = []
    for name, expression in sensitive.items():
        counted = exp.select(named(expression.copy(), "v"), named(exp.Count(this=exp.Star()), "n"))
        counted = counted.from_(subquery(source.copy(), "s")).group_by(exp.var("ALL"))
        order = exp.Order(expressions=[exp.Ordered(this=col("v"), desc=False, nulls_first=False)])
        rank = exp.Sub(this=exp.Window(this=exp.RowNumber(), order=order), expression=number(1))
        found = [named(text(name), "attribute"), named(cast(col("v"), "VARCHAR"), "value")]
        parts.append(exp.select(*found, named(cast(rank, "BIGINT"), "ord"), col("n")).from_(subquery(counted, "d")))
    created = engine.fresh("domain_values")
    engine.create(created, union_all(parts))
    return created


def sensitive_of(models: Sequence[Model]) -> list[str]:
    """Return the sensitive columns that models look at, each once."""
    found = [getattr(m, "sensitive", None) for m in models]
    return list(dict.fromkeys(name for name in found if name is not None))


def check_models(
    engine: Engine, relations: Mapping[str, str], models: Sequence[Model], unit: str
) -> tuple[CheckResult, ...]:
    """Run every model's statement on the relations that it reads."""
    (total,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(relations["classes"])))
    return tuple(_check(engine, relations, model, unit, int(total)) for model in models)


def _check(engine: Engine, relations: Mapping[str, str], model: Model, unit: str, total: int) -> CheckResult:
    file = load(f"models/{model.name}")
    parameters = model.parameters()
    violating = subquery(file.bind({name: relations[name] for name in file.reads}), "v")
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
    # Under names of our own: a column of the release may be called as the sign is.
    aliases = [f"q_{j}" for j in range(len(columns))]
    both: list[exp.Query] = [
        exp.select(
            *(named(col(c), a) for c, a in zip(columns, aliases, strict=True)), named(number(sign), "sign")
        ).from_(subquery(relation, "r"))
        for relation, sign in ((published, 1), (proof, -1))
    ]
    # What one has more of than the other does not cancel out.
    total = exp.Sum(this=col("sign"))
    differing = exp.select(named(total, "more")).from_(subquery(union_all(both), "b"))
    differing = differing.group_by(*(col(a) for a in aliases))
    differing = differing.having(exp.NEQ(this=total.copy(), expression=number(0)))
    if count_rows(engine, differing):
        raise PrivacyViolation("The gate refused the release: persons were not counted on what is published.")


def check_release(
    engine: Engine,
    written: exp.Query,
    roles: Roles,
    models: Sequence[Model],
    unit: str,
    rows: int,
    proof: str | None,
    reference: Reference | None = None,
    published_as: Mapping[str, Sequence[str]] | None = None,
) -> tuple[CheckResult, ...]:
    """Check a release as it lies on disk: its columns, its number of rows, and every promise; raise if one is broken.

    ``proof`` is a private file with the published quasi-identifiers and the entity key, where persons are counted.
    ``published_as`` has the names under which a quasi-identifier is published, where those are others than its own:
    all of them together make the classes.
    """
    named_as = published_as or {}
    names = [column for a in roles.quasi_identifiers for column in named_as.get(a.name, (a.name,))]
    declared = [column for a in roles.published for column in named_as.get(a.name, (a.name,))]
    if [c.name for c in engine.columns(written)] != declared:
        raise PrivacyViolation("The gate refused the release: its columns are not the declared ones.")
    if count_rows(engine, written) != rows:
        raise PrivacyViolation("The gate refused the release: the file does not hold the rows that were checked.")
    if reference is not None and reference.evidence is not None:
        return _check_hidden(engine, written, models, unit, reference.evidence)
    counted, entity = written, None
    if proof is not None:
        counted, entity = engine.parquet([Path(proof)]), col(ENTITY)
        require_same_classes(engine, written, counted, names)
    keys: list[exp.Expr] = [col(n) for n in names]
    sensitive = sensitive_of(models)
    known = reference or Reference()
    # The values that make a class are kept only where something is to be joined to them.
    tied = bool(sensitive) or known.population is not None
    if not tied and rows >= MANY_ROWS:
        keys = short_keys(engine, counted, names)
    own = {"classes": count_classes(engine, counted, keys, entity, keys=tied)}
    if sensitive:
        own["class_values"] = count_values(engine, written, keys, {s: col(s) for s in sensitive}, own["classes"])
    if known.population is not None:
        own["population_classes"] = place_population(engine, own["classes"], known.population, names)
    given = {"domain_values": known.domain_values, "domain_nodes": known.domain_nodes}
    checks = check_models(engine, own | {k: v for k, v in given.items() if v is not None}, models, unit)
    engine.drop(*own.values())
    require(checks)
    if known.published is not None:
        known.published.require(engine, written)
    return checks


def _check_hidden(
    engine: Engine, written: exp.Query, models: Sequence[Model], unit: str, evidence: Evidence
) -> tuple[CheckResult, ...]:
    """Check promises about groups that the release does not show."""
    require_blocks(evidence)
    require_file(engine, evidence, written)
    own = {"classes": count_groups(engine, evidence)}
    own["permuted_blocks"] = count_blocks(engine, evidence, own["classes"])
    checks = check_models(engine, own, models, unit)
    engine.drop(*own.values())
    require(checks)
    return checks


def place_population(engine: Engine, classes: str, population: str, names: Sequence[str]) -> str:
    """Create ``population_classes(class_id, n)``; classes without a published row have ids below zero."""
    on = conjunction([same(col(name, "p"), col(f"q_{j}", "c")) for j, name in enumerate(names)])
    order = exp.Order(expressions=[exp.Ordered(this=col(name, "p"), desc=False) for name in names])
    other = exp.Neg(this=exp.Window(this=exp.RowNumber(), order=order))
    number_of = exp.func("COALESCE", col("class_id", "c"), cast(other, "BIGINT"))
    found = exp.select(named(number_of, "class_id"), col("n", "p")).from_(table(population, "p"))
    created = engine.fresh("population_classes")
    engine.create(created, found.join(table(classes, "c"), on=on, join_type="left"))
    return created


def count_rows(engine: Engine, query: exp.Query) -> int:
    """Return the number of rows of a query."""
    (rows,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(subquery(query, "s")))
    return int(rows)
