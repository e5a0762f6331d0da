"""The gate: every promise is checked again, in SQL, on the written file.

Nothing here uses results of the algorithm. Classes are counted from the published columns alone, NULL being a value
like any other, and a model's statement returns a value for each, which must be within the model's bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.encoding.counting import ENTITY, count_classes, count_rows, count_values, place_population
from duckanon.encoding.words import mixes_alike, named_in
from duckanon.engine.sql.relations import (
    call,
    col,
    named,
    number,
    subquery,
    table,
    union_all,
)
from duckanon.errors import PrivacyViolation
from duckanon.models.base import CheckResult, Model, sensitive_of, violations
from duckanon.plan.roles import Role
from duckanon.recoding.base import Evidence
from duckanon.release.permutation_gate import count_blocks, count_groups, require_blocks, require_file
from duckanon.release.truth import Fingerprint

if TYPE_CHECKING:
    from duckanon.engine.base import Engine
    from duckanon.plan.roles import Roles


MANY_ROWS = 500_000
"""From this many rows on, classes are counted by words in place of values."""


_UNLIKELY = 1e-10
"""How often a column of an honest file may seem to be in an order."""
_ROWS, _PARTS = 20_000, 2
"""Rows whose order is looked at, and row groups whose dictionaries are read."""


def require_no_leaks(path: Path) -> None:
    """Raise a PrivacyViolation where a file reveals more than its rows: by metadata, dictionaries, or their order.

    A column that numbers the rows is no leak here: all columns are declared ones with their own values.
    """
    from duckanon.io.leaks import file_leaks

    leaks = file_leaks(path, siblings=False, rows=_ROWS, parts=_PARTS, chance=_UNLIKELY)
    kinds = dict.fromkeys(leak.kind for leak in leaks if leak.kind != "index")
    if kinds:
        raise PrivacyViolation(
            f"The gate refused the release: its file tells more than its rows ({', '.join(kinds)}). "
            "Nothing was published."
        )


@dataclass(frozen=True)
class Reference:
    """What a release is compared with: the source, and the population.

    ``domain_values`` and ``domain_nodes`` describe the sensitive columns of the whole source, suppressed rows included;
    ``population`` has the columns of the quasi-identifiers, recoded as they are published, and ``n``.
    """

    domain_values: str | None = None
    domain_nodes: str | None = None
    population: str | None = None
    published: Fingerprint | None = None
    """The rows whose cells were verified, see ``truth``."""
    evidence: Evidence | None = None
    """What ties the rows of a release to those of its source, where groups are hidden."""


@dataclass(frozen=True)
class Homogeneity:
    """How many published classes have one value of a sensitive column: they tell it of everyone in them.

    Examples
    --------
    >>> Homogeneity("ill", 8, 2).text
    "2 of 8 classes have one value of 'ill'"
    """

    attribute: str
    classes: int
    homogeneous: int

    @property
    def share(self) -> float:
        """The share of classes that have one value."""
        return self.homogeneous / self.classes if self.classes else 0.0

    @property
    def text(self) -> str:
        """The counts in words."""
        have = "has" if self.homogeneous == 1 else "have"
        classes = "class" if self.classes == 1 else "classes"
        return f"{self.homogeneous:,} of {self.classes:,} {classes} {have} one value of {self.attribute!r}"

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain values."""
        return {"attribute": self.attribute, "classes": self.classes, "homogeneous": self.homogeneous}


def count_homogeneous(engine: Engine, classes: str, sensitive: Sequence[str]) -> tuple[Homogeneity, ...]:
    """Return in how many classes all rows have the same value; ``classes`` is that of ``count_classes`` with flags."""
    if not sensitive:
        return ()
    flags = [call("count_if", col(f"one_{i}")) for i in range(len(sensitive))]
    total, *counts = engine.row(exp.select(exp.Count(this=exp.Star()), *flags).from_(table(classes)))
    return tuple(Homogeneity(name, int(total), int(n)) for name, n in zip(sensitive, counts, strict=True))


@dataclass(frozen=True)
class Gated:
    """What the gate counted on a release that it let pass."""

    checks: tuple[CheckResult, ...]
    homogeneity: tuple[Homogeneity, ...] = ()
    """One for each sensitive column; none where classes cannot be seen."""


def check_models(
    engine: Engine, relations: Mapping[str, str], models: Sequence[Model], unit: str
) -> tuple[CheckResult, ...]:
    """Run every model's statement on the relations that it reads."""
    (total,) = engine.row(exp.select(exp.Count(this=exp.Star())).from_(table(relations["classes"])))
    return tuple(_check(engine, relations, model, unit, int(total)) for model in models)


def _check(engine: Engine, relations: Mapping[str, str], model: Model, unit: str, total: int) -> CheckResult:
    violating, parameters = violations(model, relations)
    found = exp.select(exp.Count(this=exp.Star()), exp.func("COALESCE", exp.Sum(this=col("n")), number(0)))
    n_classes, n_rows = engine.row(found.from_(subquery(violating, "v")), parameters)
    return CheckResult(
        model=model.name,
        parameters=model.parameters(),
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
    # Under our own names: a column of the release may be called "sign".
    aliases = [f"q_{j}" for j in range(len(columns))]
    both: list[exp.Query] = [
        exp.select(
            *(named(col(c), a) for c, a in zip(columns, aliases, strict=True)), named(number(sign), "sign")
        ).from_(subquery(relation, "r"))
        for relation, sign in ((published, 1), (proof, -1))
    ]
    # Equal numbers of rows cancel out.
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
    proof: Path | None,
    reference: Reference | None = None,
    published_as: Mapping[str, Sequence[str]] | None = None,
) -> Gated:
    """Check a written release: its columns, its number of rows, and every promise; raise if one is broken.

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
        return Gated(_check_hidden(engine, written, models, unit, reference.evidence))
    counted, entity = written, None
    if proof is not None:
        counted, entity = engine.parquet([proof]), col(ENTITY)
        require_same_classes(engine, written, counted, names)
    known = reference or Reference()
    keys: list[exp.Expr] = [col(n) for n in names]
    rest, params, more = None, dict[str, Any](), dict[str, Any]()
    sensitive, present = sensitive_of(models), [a.name for a in roles.published if a.role is Role.SENSITIVE]
    # Many rows are told apart by words in place of values, as they are compared with those that were checked. What is
    # joined to a population has its values.
    if known.published is not None and known.population is None and rows >= MANY_ROWS:
        key, others = known.published.words(names)
        keys, params = [key], named_in(key, known.published.keys)
        if proof is None and mixes_alike(engine):
            rest, more = others, named_in(others, known.published.keys)
    # The keys of a class are stored only where something is joined to them.
    tied = bool(sensitive) or known.population is not None
    # Persons are counted on a file without sensitive values, so that these take a pass of their own.
    flagged = present if proof is None else []
    own = {"classes": count_classes(engine, counted, keys, entity, tied, flagged, rest, params | more)}
    if known.published is not None and rest is not None:
        known.published.require_classes(engine, own["classes"])
    homogeneity = count_homogeneous(engine, own["classes"], flagged)
    if proof is not None and present:
        own["flags"] = count_classes(engine, written, keys, sensitive=present, params=params)
        homogeneity = count_homogeneous(engine, own["flags"], present)
    if sensitive:
        values = {s: col(s) for s in sensitive}
        own["class_values"] = count_values(engine, written, keys, values, own["classes"], params)
    if known.population is not None:
        own["population_classes"] = place_population(engine, own["classes"], known.population, names)
    given = {"domain_values": known.domain_values, "domain_nodes": known.domain_nodes}
    checks = check_models(engine, own | {k: v for k, v in given.items() if v is not None}, models, unit)
    engine.drop(*own.values())
    require(checks)
    if known.published is not None and rest is None:
        known.published.require(engine, written)
    return Gated(checks, homogeneity)


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
