"""Run attacks on a release and say what they learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.disclosure.attacks.base import Case, Finding, attackers
from duckanon.disclosure.placing import Placed, place
from duckanon.disclosure.subject import Subject, of_release, of_table, opened, originals
from duckanon.release import Release
from duckanon.roles import Role
from duckanon.sqlgen.relations import col, named, table, text

if TYPE_CHECKING:
    from duckanon.engine.base import Engine


@dataclass(frozen=True)
class Attack:
    """What the attacks found, and which could not be tried and why."""

    findings: tuple[Finding, ...]
    skipped: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as plain values."""
        return {"findings": [f.to_dict() for f in self.findings], "skipped": dict(self.skipped)}


def attack(
    original: object,
    release: object,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: Sequence[str] = (),
    hierarchies: Mapping[str, Any] | None = None,
    attacks: Sequence[str] | None = None,
    connection: Any = None,
) -> Attack:
    """Attack a release with the original as background knowledge, and return successes beside what chance gives.

    Parameters
    ----------
    original : str, Path, Source, Arrow object or data frame
        What the attacker knows: the table that was anonymized, in its order.
    release : Release, or anything that ``original`` may be
    quasi_identifiers, sensitive : sequence of str
        A release knows its own.
    hierarchies : mapping, optional
        For a released table that is no ``Release``: how it was generalized (columns that are not named get the
        hierarchy that ``anonymize`` would make).
    attacks : sequence of str, optional
        Names of attacks; all by default.
    connection : duckdb.DuckDBPyConnection, optional

    References
    ----------
    A. Machanavajjhala et al., l-diversity: privacy beyond k-anonymity, 2006; K. El Emam and F. Dankar, Protecting
    privacy using k-anonymity, 2008.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"age": [34, 35, 61, 62], "ill": ["flu", "flu", "flu", "gout"]})
    >>> with duckanon.anonymize(
    ...     people, quasi_identifiers=["age"], sensitive=["ill"], k=2, algorithm="optimal"
    ... ) as release:
    ...     found = duckanon.attack(people, release, attacks=["homogeneity", "linkage"])
    >>> [(f.attack, f.success, f.base_rate) for f in found.findings]
    [('homogeneity', 0.5, 0.625), ('linkage', 0.5, 0.25)]
    """
    chosen = {name: attackers.get(name)() for name in (attacks if attacks is not None else list(attackers))}
    if isinstance(release, Release):
        released = of_release(release, quasi_identifiers, sensitive)
        known = of_table(release.engine, original, originals(release, list(released.quasi)))
        return _run(chosen, _case(known, released, release, None))
    with opened(connection) as engine:
        released = of_table(engine, release, quasi_identifiers, sensitive)
        known = of_table(engine, original, list(released.quasi))
        placed = place(known, released, hierarchies) if hierarchies is not None else None
        return _run(chosen, _case(known, released, None, placed))


def _run(chosen: Mapping[str, Any], case: Case) -> Attack:
    findings: list[Finding] = []
    skipped: dict[str, str] = {}
    for name, attacker in chosen.items():
        missing = attacker.needs(case)
        if missing is not None:
            skipped[name] = f"needs {missing}"
            continue
        findings += attacker.run(case)
    case.released.engine.drop(*case.relations.values())
    return Attack(tuple(findings), skipped)


def _case(known: Subject, released: Subject, release: Release | None, placed: Sequence[Placed] | None) -> Case:
    quasi = {name.lower() for name in released.quasi}
    both = {name.lower() for name in known.types} - quasi
    if release is not None:
        roles = release.plan.roles
        carried = [n for n in released.types if n in {*roles.named(Role.SENSITIVE), *roles.named(Role.INSENSITIVE)}]
    else:
        carried = [n for n in released.types if n.lower() in both]
    carried = [n for n in carried if n.lower() in both]
    relations = released.relations(("class_values",))
    return Case(known, released, relations, _mappings(released, release, placed), carried)


def _mappings(
    released: Subject, release: Release | None, placed: Sequence[Placed] | None
) -> tuple[exp.Query, ...] | None:
    """Return (value, label) of every quasi-identifier, or None where a row's class cannot be told."""
    if release is not None:
        if not set(released.quasi) <= set(release.recoding.levels):
            return None
        return tuple(_given(release.engine, release, name) for name in released.quasi)
    if placed is None or any(p.level is None for p in placed):
        return None
    return tuple(_looked_up(p) for p in placed)


def _given(engine: Engine, release: Release, attribute: str) -> exp.Query:
    name = engine.fresh("mapping")
    engine.register(name, release.recoding.mapping(attribute))
    return exp.select(col("value"), col("label")).from_(table(name))


def _looked_up(placed: Placed) -> exp.Query:
    known = exp.case().when(col("known", "t"), col("text", "v")).else_(text(placed.levels.top))
    label = known if placed.level == 0 else col(f"l{placed.level}", "t")
    on = exp.EQ(this=col("code", "t"), expression=col("code", "v"))
    query = exp.select(named(col("text", "v"), "value"), named(label, "label")).from_(table(placed.values, "v"))
    return query.join(table(placed.levels.tree, "t"), on=on)
