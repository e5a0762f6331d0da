"""The last stage: the written file is compared with the source, and every promise is checked on it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from duckanon.encoding.counting import count_domain, count_rows, hidden_person
from duckanon.encoding.dictionaries import published_type
from duckanon.encoding.words import shuffle_keys
from duckanon.engine.process import file_digest, workers
from duckanon.engine.sql.recode import recoded_counts
from duckanon.engine.sql.relations import (
    Column,
    col,
    named,
    param,
    subquery,
    table,
)
from duckanon.errors import PrivacyViolation
from duckanon.hierarchy import Levels
from duckanon.hierarchy.auto import Auto
from duckanon.hierarchy.intervals import Cuts, Intervals, Quantiles
from duckanon.hierarchy.rules import ColumnType, Dates, Suppress
from duckanon.io.disk import sync
from duckanon.models.base import sensitive_of
from duckanon.plan.plan import has_distance
from duckanon.plan.roles import Role
from duckanon.release.cell_meaning import Shown
from duckanon.release.gate import Homogeneity, Reference, check_release, require_no_leaks
from duckanon.release.permutation_gate import require_source
from duckanon.release.stages.write import passed_columns
from duckanon.release.truth import Claim, Fingerprint, require_truth

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from duckanon.engine.base import Engine
    from duckanon.models.base import CheckResult
    from duckanon.plan.plan import Plan
    from duckanon.recoding.base import Evidence, Recoder
    from duckanon.release.stages.encode import Encoded
    from duckanon.release.stages.recode import Recoded
    from duckanon.release.stages.search import Found
    from duckanon.release.stages.write import Written


@dataclass(frozen=True)
class Checked:
    """A release that passed the gate."""

    rows: int
    columns: tuple[Column, ...]
    checks: tuple[CheckResult, ...]
    digest: str
    """The SHA-256 of the file."""
    reference: Reference = field(repr=False)
    """What the file was compared with."""
    homogeneity: tuple[Homogeneity, ...] = ()
    """How many classes have one value of each sensitive column."""


def check(
    plan: Plan, engine: Engine, encoded: Encoded, found: Found, recoded: Recoded, written: Written, staged: bool
) -> Checked:
    """Raise a PrivacyViolation unless the file keeps every promise, and each cell stands for the value of its row.

    A ``staged`` file will be published: it is synced to the disk meanwhile.
    """
    release, recoder = engine.parquet([written.path]), recoded.recoder
    rows = count_rows(engine, release)
    # The digest is of what the gate reads: a file that changes later has another one, and is checked again.
    with engine.progress.step("gate", rows), workers(min(2, engine.threads())) as pool:
        digest = pool.submit(_digest, written.path, staged)
        leaks = pool.submit(require_no_leaks, written.path)
        types = require_types(plan, engine, release)
        reference = replace(_reference(plan, engine, recoder, encoded), evidence=_evidence(plan, engine, recoder))
        if found.suppressed > encoded.problem.allowed:
            raise PrivacyViolation("The gate refused the release: more rows are suppressed than allowed.")
        if rows + found.suppressed != encoded.rows:
            raise PrivacyViolation("The gate refused the release: rows in are not rows published plus suppressed.")
        reference = replace(reference, published=_true_rows(plan, engine, encoded, found, recoded, types))
        if reference.published is None and reference.evidence is None:
            raise PrivacyViolation("The gate refused the release: nothing says which of its rows is whose.")
        gated = check_release(
            engine, release, plan.roles, plan.models, plan.unit, rows, written.persons, reference, plan.published_as
        )
        leaks.result()
    return Checked(rows, tuple(engine.columns(release)), gated.checks, digest.result(), reference, gated.homogeneity)


def _digest(path: Path, staged: bool) -> str:
    if staged:
        # Publishing syncs it again, and reports errors.
        with suppress(OSError):
            sync(path)
    return file_digest(path)


# Types


def require_types(plan: Plan, engine: Engine, written: exp.Query) -> dict[str, str]:
    """Return the types of a written file by column; raise a PrivacyViolation where they are not the declared ones."""
    types = {c.name: c.type for c in engine.columns(written)}
    if list(types) != plan.published_names:
        raise PrivacyViolation("The gate refused the release: its columns are not the declared ones.")
    own = exp.select(*(named(plan.expression(a), a.name) for a in plan.roles.published))
    declared = _types_in_files(engine, own.from_(subquery(plan.relation.query.copy(), "s")))
    for attribute in plan.roles.published:
        names, kind = plan.published_as.get(attribute.name, (attribute.name,)), declared[attribute.name]
        allowed = {kind}
        if attribute.role is Role.QUASI_IDENTIFIER and attribute.name not in plan.within:
            allowed = _allowed_types(plan.output[attribute.name], kind)
        wrong = [name for name in names if types[name] not in allowed]
        if wrong:
            raise PrivacyViolation(f"The gate refused the release: the type of {wrong[0]!r} is not the declared one.")
    return types


_IN_FILES: dict[tuple[str, str], str] = {}
"""The types that the plain types of an engine have after they were in a file, as far as they have been asked for."""
_PLAIN = re.compile(r"[A-Z_ ]+(\(\d+,\d+\))?")


def _types_in_files(engine: Engine, rows: exp.Select) -> dict[str, str]:
    """Return the types of the columns of a query after they were in a file, by name."""
    version = f"{engine.name} {engine.version}"
    types = {c.name: c.type for c in engine.columns(rows)}
    if all((version, kind) in _IN_FILES for kind in types.values()):
        return {name: _IN_FILES[version, kind] for name, kind in types.items()}
    empty = engine.fresh("types")
    engine.create_file(empty, rows.limit(0))
    written = {c.name: c.type for c in engine.columns(exp.select("*").from_(table(empty)))}
    engine.drop(empty)
    _IN_FILES.update({(version, kind): written[name] for name, kind in types.items() if _PLAIN.fullmatch(kind)})
    return written


def _allowed_types(output: str, kind: str) -> set[str]:
    """Return the types in which a quasi-identifier may be published."""
    if output in ("mean", "geometric_mean", "midpoint"):
        return {"DOUBLE", "VARCHAR"} if ColumnType.parse(kind).kind == "number" else {kind, "VARCHAR"}
    if output == "struct":
        return {f"STRUCT(lo {kind}, hi {kind})"}
    if output == "proportional":
        return {"MAP(VARCHAR, DOUBLE)", kind}
    return {kind} if output in ("bounds", "median", "mode", "medoid") else {kind, "VARCHAR"}


# What the file is compared with. Nothing of it comes from the recoding, except the cells that recode a population.


def _reference(plan: Plan, engine: Engine, recoder: Recoder, encoded: Encoded) -> Reference:
    """Return the source's sensitive values, and the population recoded."""
    types = {a.name: a for a in plan.roles.attributes}
    sensitive = {name: plan.expression(types[name]) for name in sensitive_of(plan.models)}
    values = count_domain(engine, plan.relation.query, sensitive) if sensitive else None
    population = None
    if plan.population is not None:
        expressions = [plan.population_value(a) for a in plan.roles.quasi_identifiers]
        population = engine.fresh("population")
        engine.create(population, recoded_counts(plan.population.query, recoder.cells, expressions))
    return Reference(values, encoded.domain_nodes, population)


def _person(plan: Plan) -> exp.Expr | None:
    """Return a keyed hash of the entity key."""
    return hidden_person(plan.entity, param("key0"), param("key1"))


def _evidence(plan: Plan, engine: Engine, recoder: Recoder) -> Evidence | None:
    """Return what ties permuted rows to those of the source; it must have no other rows."""
    passed, person, keys = passed_columns(plan), _person(plan), shuffle_keys(plan.seed)
    evidence = recoder.evidence(passed, person, keys)
    if evidence is None:
        return None
    source = [plan.expression(a) for a in plan.roles.quasi_identifiers] + [e for _, e in passed]
    if person is not None:
        source.append(person)
    require_source(engine, evidence, plan.relation.query, source, keys if evidence.persons else {})
    return evidence


def _true_rows(
    plan: Plan, engine: Engine, encoded: Encoded, found: Found, recoded: Recoded, types: Mapping[str, str]
) -> Fingerprint | None:
    """Return the fingerprint of rows whose cells stand for the values of the source; None where values are permuted."""
    side_by_side = recoded.recoder.beside(passed_columns(plan), _person(plan))
    if side_by_side is None:
        return None
    side_by_side = replace(side_by_side, params=shuffle_keys(None))
    return require_truth(engine, side_by_side, _claim(plan, engine, encoded, types), found.suppressed)


_SELF_EXPLAINING = (Intervals, Cuts, Quantiles, Dates, Suppress, Auto)
"""Rules whose labels are intervals or dates, and mean what they say."""


def _claim(plan: Plan, engine: Engine, encoded: Encoded, types: Mapping[str, str]) -> Claim:
    """Return what the rows before and after recoding are compared with."""
    quasi, passed = plan.roles.quasi_identifiers, passed_columns(plan)
    shown = []
    for attribute, own, levels, hierarchy in zip(
        quasi, encoded.coded, encoded.levels, encoded.hierarchies, strict=True
    ):
        given = plan.hierarchies[attribute.name]
        leaves = None
        if not has_distance(attribute.type) and given is not None and given.levels is not None:
            leaves = given.levels.column(0).cast("string")
        values = own.dictionary.table
        by_rule = hierarchy.levels is None and isinstance(hierarchy.rule, _SELF_EXPLAINING)
        by_tree = not by_rule or plan.algorithm.hierarchy_shuffle_seed is not None
        kind = published_type(attribute.type)
        output = plan.output[attribute.name] if attribute.name not in plan.within else "interval"
        labels, labelled = partial(_labels, engine, levels), partial(_labelled, values, levels)
        ends = levels.height, levels.top
        shown.append(Shown(attribute.name, kind, output, values, labels, labelled, leaves, *ends, by_tree))
    return Claim(
        plan.relation.query,
        [plan.expression(a) for a in quasi],
        [e for _, e in passed],
        _person(plan),
        shown,
        [plan.published_as[a.name] for a in quasi],
        [name for name, _ in passed],
        types,
    )


def _labels(engine: Engine, levels: Levels) -> pa.Table:
    """Return ``(l1, ...)`` of the values of a column in the order of their codes."""
    import pyarrow as pa

    names = [f"l{i}" for i in range(1, levels.height + 1)]
    if levels.arrays is not None:
        found = levels.arrays[0].select(names)
    else:
        found = engine.arrow(exp.select(*(col(name) for name in names)).from_(table(levels.tree)).order_by(col("code")))
    return found.cast(pa.schema([(name, pa.string()) for name in names]))


def _labelled(values: str, levels: Levels) -> exp.Select:
    """Return ``(value, text, known, l1, ...)`` of the values of a column."""
    labels = [col(name, "t") for name in ("known", *(f"l{i}" for i in range(1, levels.height + 1)))]
    query = exp.select(col("value", "v"), col("text", "v"), *labels).from_(table(values, "v"))
    return query.join(table(levels.tree, "t"), on=exp.EQ(this=col("code", "t"), expression=col("code", "v")))


__all__ = ["Checked", "check", "require_types"]
