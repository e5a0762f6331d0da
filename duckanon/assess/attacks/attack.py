"""Run attacks on a release and report what they learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.assess.assessed_table import AssessedTable, of_release, of_table, originals
from duckanon.assess.attacks.base import (
    CONSIDERABLE,
    LEVELS,
    MUCH,
    NOTHING,
    UNKNOWN,
    Case,
    Finding,
    Settings,
    attackers,
)
from duckanon.assess.attacks.holding_out import HeldOut, NotHeldOutError, holding_out
from duckanon.assess.labels.levels import LabelLevels, label_levels
from duckanon.engine.base import workspace
from duckanon.engine.sql.relations import col, named, table, text
from duckanon.errors import DataError, HierarchyError, ParameterError, RoleError, did_you_mean
from duckanon.io.source import Source
from duckanon.metrics.base import metric_parameters
from duckanon.models.base import require_int
from duckanon.plan.roles import Role, column_names
from duckanon.release.release import Release
from duckanon.report.attacks import attack_report
from duckanon.report.results import Result

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from duckanon.engine.base import Engine
    from duckanon.report.model import Report


@dataclass(frozen=True, repr=False)
class Attack(Result):
    """What the attacks found, and which could not be tried and why."""

    findings: tuple[Finding, ...]
    skipped: dict[str, str] = field(default_factory=dict)
    rows: int = 0
    """Rows of the original; ``published`` of the release, ``controls`` of people who are not in it."""
    published: int = 0
    controls: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    held_out: str = ""
    """Where controls were needed and not given: how rows were held out, or why none were, in words."""

    @property
    def level(self) -> str:
        """The level of the worst finding: nothing, promised, little, unknown or much."""
        return max((f.level for f in self.findings), key=LEVELS.index, default=LEVELS[0])

    @property
    def verdict(self) -> str:
        """The conclusion, in words."""
        count = len(self.skipped)
        untried = {0: "", 1: " 1 attack was not tried."}.get(count, f" {count} attacks were not tried.")
        return self._judged() + (untried if self.findings else "")

    def _judged(self) -> str:
        worst = [f for f in self.findings if f.level == MUCH]
        tried = len({f.attack for f in self.findings})
        if not tried:
            return "No attack could be tried."
        if worst:
            names = ", ".join(dict.fromkeys(f.attack for f in worst))
            return f"The release leaks: {len(worst)} of {len(self.findings)} findings are beyond chance ({names})."
        if self.level == UNKNOWN:
            names = ", ".join(dict.fromkeys(f.attack for f in self.findings if f.level == UNKNOWN))
            return (
                f"Cannot tell a leak from general knowledge: {names} learned more than the base rate, which may hold "
                "of anybody. Give people who are not in the release (control)."
                + (f" {self.held_out}" if self.held_out else "")
            )
        words = {
            "nothing": "learned nothing beyond what holds for anybody",
            "promised": "learned no more than the release allows",
            "little": "learned a little beyond chance, and nowhere 5 points or more",
        }
        return f"None of {tried} attacks found a leak: they {words[self.level]}."

    def to_arrow(self) -> pa.Table:
        """Return a row for each finding, and for each attack that was not tried, with the level "not tried"."""
        import pyarrow as pa

        rows = []
        for finding in self.to_dict()["findings"]:
            low, high = finding.pop("interval")
            rows.append({**finding, "success_low": low, "success_high": high})
        rows += [{"attack": n, "level": "not tried", "verdict": f"Not tried: {w}."} for n, w in self.skipped.items()]
        texts, counts = ("attack", "attribute", "adversary"), ("rows", "sampled_from", "controls")
        shares = ("success", "success_low", "success_high", "control", "base_rate", "gain", "risk")
        kinds = [(texts, pa.string()), (shares, pa.float64()), (counts, pa.int64())]
        kinds.append((("level", "verdict", "text"), pa.string()))
        schema = pa.schema([(name, kind) for names, kind in kinds for name in names])
        return pa.Table.from_pylist([{n: row.get(n) for n in schema.names} for row in rows], schema=schema)

    def _shown(self) -> Report:
        return attack_report(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as plain values."""
        return {
            "verdict": self.verdict,
            "level": self.level,
            "rows": self.rows,
            "published": self.published,
            "controls": self.controls,
            "held_out": self.held_out,
            "findings": [f.to_dict() for f in self.findings],
            "skipped": dict(self.skipped),
            "seconds": {name: round(s, 3) for name, s in self.seconds.items()},
        }

    def report(self, format: str = "md") -> str:  # noqa: A002 - the field's word
        """Return the report as Markdown ("md"), JSON ("json") or a page of HTML ("html")."""
        from duckanon.report.attacks import render_attack

        return render_attack(self.to_dict(), format)

    def write_html(self, path: str | Path, title: str = "Attacks on a release") -> None:
        """Write the report as a page of HTML."""
        from pathlib import Path

        from duckanon.report.attacks import render_attack

        Path(path).write_text(render_attack(self.to_dict(), "html", title), encoding="utf-8")


def attack(
    original: object,
    release: object,
    *,
    control: object = None,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: Sequence[str] = (),
    entity_key: str | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    attacks: Sequence[str] | None = None,
    known: Sequence[str] | None = None,
    k: int | None = None,
    sample: int = 5000,
    seed: int = 0,
    seeds: int = 1024,
    hold_out: float = 0.2,
    connection: Any = None,
) -> Attack:
    """Attack a release with the original as background knowledge, and compare its success with chance.

    Parameters
    ----------
    original : str, Path, Source, Arrow object or data frame
        What the attacker knows: the table that was anonymized, in its order.
    release : Release, or anything that ``original`` may be
    control : optional, anything that ``original`` may be
        Rows like those of the original, of people who are *not* in the release: an attack would learn the same of
        anybody, and only what is beyond it was caused by the release. Without them the base rate takes their place,
        and rows are held out (``hold_out``) for attacks that learn what may hold of anybody; where that cannot be done,
        their verdict is "unknown". The release itself is attacked with rows that were held out before it was made
        (``duckanon.utility.split``).
    quasi_identifiers, sensitive : sequence of str
        A release knows its own.
    entity_key : str, optional
        A column of both tables that identifies persons. No attack reads it: it shows which links are right.
    hierarchies : mapping, optional
        For a released table that is no ``Release``: how it was generalized (columns that are not named get the
        hierarchy that ``anonymize`` would make).
    attacks : sequence of str, optional
        Names of attacks; all by default.
    known : sequence of str, optional
        The quasi-identifiers of the partially informed adversary; by default the half with the most different values.
    k : int, optional
        What the release requires: to find a person's row in 1 of k cases is then allowed. A release knows its own; for
        a table it is the size of the smallest class, unless a class has one member.
    sample : int
        How many people, and how many controls, are attacked at most.
    seed : int
        Draws them; the same seed, the same figures.
    seeds : int
        How many seeds are tried on a ``Release`` whose values were permuted, from 0 on.
    hold_out : float
        Where nobody gave controls and an attack on a ``Release`` may have learned what holds of anybody: the share of
        rows that is held out, at most ``sample`` rows, whole persons where there is an entity key. The other rows are
        anonymized anew in the same way, that private release is attacked, and the rows held out are its controls; the
        verdict says so. 0 turns it off. Of a table nobody knows how it was made, and a stored recoding does not depend
        on the rows: then no rows are held out, and the verdict says why.
    connection : duckdb.DuckDBPyConnection, optional

    References
    ----------
    N. Senavirathne and V. Torra, Systematic evaluation of probabilistic k-anonymity; M. Giomi et al., A unified
    framework for quantifying privacy risk in synthetic data, 2023 (anonymeter); A. Machanavajjhala et al.,
    l-diversity: privacy beyond k-anonymity, 2006; K. El Emam and F. Dankar, Protecting privacy using k-anonymity, 2008.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"age": [34, 35, 61, 62], "ill": ["flu", "flu", "flu", "gout"]})
    >>> with duckanon.anonymize(
    ...     people, quasi_identifiers=["age"], sensitive=["ill"], k=2, algorithm="optimal"
    ... ) as release:
    ...     found = duckanon.attack(people, release, attacks=["homogeneity", "linkage"])
    >>> [(f.attack, f.success, f.base_rate) for f in found.findings]
    [('homogeneity', 0.5, 0.0), ('linkage', 0.5, 0.25)]
    >>> print(found.verdict)
    None of 2 attacks found a leak: they learned no more than the release allows.
    """
    chosen = {name: attackers.get(name)() for name in (attacks if attacks is not None else list(attackers))}
    settings = Settings(
        sample=require_int("attack", "sample", sample, 1),
        seed=require_int("attack", "seed", seed, 0),
        known=None if known is None else tuple(column_names(known, "known")),
        key=entity_key,
        k=None if k is None else require_int("attack", "k", k, 1),
        seeds=require_int("attack", "seeds", seeds, 1),
    )
    if isinstance(hold_out, bool) or not isinstance(hold_out, int | float) or not 0 <= hold_out < 1:
        raise ParameterError(f"hold_out is a fraction from 0 to below 1. Got {hold_out!r}.")
    if not isinstance(release, Release):
        with workspace(connection) as engine:
            case = _of_table(engine, release, original, control, quasi_identifiers, sensitive, hierarchies, settings)
            found = _run(chosen, case)
        why = (
            "a table does not say how it was made, as a Release in Python does" if hold_out and control is None else ""
        )
        return replace(found, held_out=_none_held_out(why)) if why and _unsure(found) else found
    case = _of_release(release, original, control, quasi_identifiers, sensitive, settings)
    found = _run(chosen, case)
    unsure = {name: chosen[name] for name in _unsure(found)}
    if not unsure or not hold_out or control is not None:
        return found
    try:
        with holding_out(release, found.rows, hold_out, case.settings) as held:
            case = _of_release(held.release, held.people, held.controls, quasi_identifiers, sensitive, case.settings)
            return _told_apart(found, _run(unsure, case), held)
    except NotHeldOutError as why:
        return replace(found, held_out=_none_held_out(str(why)))


def _unsure(found: Attack) -> list[str]:
    return list(dict.fromkeys(f.attack for f in found.findings if f.level == UNKNOWN))


def _none_held_out(why: str) -> str:
    return f"No rows were held out: {why.rstrip('.')}."


def _told_apart(found: Attack, again: Attack, held: HeldOut) -> Attack:
    """Put findings with controls in the place of those that could not tell a leak from general knowledge."""
    judged = {(f.attack, f.attribute, f.adversary): f for f in again.findings}
    findings = []
    for one in found.findings:
        other = judged.get((one.attack, one.attribute, one.adversary))
        if one.level != UNKNOWN or other is None:
            findings.append(one)
        elif other.level == NOTHING and other.gain >= CONSIDERABLE:
            # That chance may explain a gain is no proof that there is no leak.
            findings.append(replace(one, remark=f"{one.remark} {held.too_few}".strip()))
        else:
            findings.append(replace(other, remark=f"{other.remark} {held.text}".strip()))
    seconds = {name: s + again.seconds.get(name, 0.0) for name, s in found.seconds.items()}
    return replace(found, findings=tuple(findings), controls=again.controls, seconds=seconds, held_out=held.text)


def _of_release(
    release: Release,
    original: object,
    control: object,
    quasi_identifiers: Sequence[str] | None,
    sensitive: Sequence[str],
    settings: Settings,
) -> Case:
    released = of_release(release, quasi_identifiers, sensitive)
    if settings.k is None:
        settings = replace(settings, k=metric_parameters(release.plan.models)["k"])
    columns = originals(release, list(released.quasi))
    people, others = _sides(release.engine, original, control, columns)
    roles = release.plan.roles
    theirs = {*roles.named(Role.SENSITIVE), *roles.named(Role.INSENSITIVE)}
    # Permuted values have no hierarchies.
    used = zip((a.name for a in roles.quasi_identifiers), release.used, strict=bool(release.used))
    case = Case(
        original=people,
        released=released,
        relations=released.relations(("class_values",)),
        mappings=_mappings(released, release, None),
        carried=[n for n in _shared(people, released) if n in theirs],
        published={name: release.plan.published_as.get(name, (name,)) for name in columns},
        control=others,
        release=release,
        files=(str(release.path),),
        hierarchies={name: h for name, h in used if name in released.quasi} if release.used else None,
        settings=settings,
    )
    return _checked(case)


def _of_table(
    engine: Engine,
    release: object,
    original: object,
    control: object,
    quasi_identifiers: Sequence[str] | None,
    sensitive: Sequence[str],
    hierarchies: Mapping[str, Any] | None,
    settings: Settings,
) -> Case:
    source = Source.of(release)
    relation = source.open(engine, read=False)
    published = _published(relation.names, quasi_identifiers)
    columns = None if published is None else [c for made in published.values() for c in made]
    released = of_table(engine, source, columns, sensitive)
    people, others = _sides(engine, original, control, list(published or released.quasi))
    placed = None
    if hierarchies is not None and len(people.quasi) == len(released.quasi):
        try:
            placed = label_levels(people, released, hierarchies)
        except HierarchyError:
            # Its cells may be regions of a partition, which can still be read.
            placed = None
    case = Case(
        original=people,
        released=released,
        relations=released.relations(("class_values",)),
        mappings=_mappings(released, None, placed),
        carried=_shared(people, released),
        published=published or {name: (name,) for name in released.quasi},
        control=others,
        files=tuple(relation.files),
        hierarchies=hierarchies,
        settings=settings,
    )
    return _checked(case)


def _sides(
    engine: Engine, original: object, control: object, columns: Sequence[str]
) -> tuple[AssessedTable, AssessedTable | None]:
    """Return the people of the original and those of the control table, if there is one."""
    sides: list[AssessedTable | None] = []
    for word, data in (("original", original), ("control", control)):
        if data is None and word == "control":
            sides.append(None)
            continue
        try:
            side = of_table(engine, data, columns)
        except RoleError as wrong:
            raise RoleError(f"In the {word}: {wrong}") from None
        if not side.rows():
            raise DataError(f"The {word} has no rows: there are no people to attack.")
        sides.append(side)
    people, others = sides
    assert people is not None
    return people, others


def _published(present: Sequence[str], names: Sequence[str] | None) -> dict[str, tuple[str, ...]] | None:
    """Return the columns under which quasi-identifiers are published: one may be published as its two bounds.

    Examples
    --------
    >>> _published(["age_lo", "age_hi", "sex"], ["age", "sex"])
    {'age': ('age_lo', 'age_hi'), 'sex': ('sex',)}
    """
    if names is None:
        return None
    lowered = {name.lower(): name for name in present}
    published: dict[str, tuple[str, ...]] = {}
    for name in column_names(names, "quasi_identifiers"):
        sides = [lowered[side] for side in (f"{name}_lo".lower(), f"{name}_hi".lower()) if side in lowered]
        published[name] = (name,) if name.lower() in lowered or len(sides) < 2 else tuple(sides)
    return published


def _shared(people: AssessedTable, released: AssessedTable) -> list[str]:
    """Return the columns that both tables have, but for quasi-identifiers."""
    quasi = {name.lower() for name in (*released.quasi, *people.quasi)}
    both = {name.lower() for name in people.types} - quasi
    return [n for n in released.types if n.lower() in both]


def _checked(case: Case) -> Case:
    """Make sure that the columns named in the settings are there."""
    settings, quasi = case.settings, {name.lower(): name for name in case.published}
    for name in settings.known or ():
        if name.lower() not in quasi:
            raise RoleError(f"known names {name!r}, which is no quasi-identifier.{did_you_mean(name, quasi.values())}")
    if settings.known == ():
        raise ParameterError("known must name at least one quasi-identifier.")
    if settings.key is not None:
        both = {n.lower() for n in case.original.types} & {n.lower() for n in case.released.types}
        if settings.key.lower() not in both:
            raise RoleError(f"entity_key names {settings.key!r}, which is not a column of both tables.")
    if settings.known is not None and len(settings.known) != len(set(settings.known)):
        case = replace(case, settings=replace(settings, known=tuple(dict.fromkeys(settings.known))))
    return case


def _run(chosen: Mapping[str, Any], case: Case) -> Attack:
    findings: list[Finding] = []
    skipped: dict[str, str] = {}
    seconds: dict[str, float] = {}
    for name, attacker in chosen.items():
        begun = perf_counter()
        try:
            missing = attacker.needs(case)
            made = attacker.run(case) if missing is None else []
            findings += made
            if not made:
                skipped[name] = f"needs {missing or 'something to try it on, and there was nothing'}"
        except HierarchyError as unread:
            skipped[name] = f"needs labels that can be read: {unread}"
        seconds[name] = perf_counter() - begun
    case.released.engine.drop(*case.relations.values())
    controls = 0 if case.control is None else case.control.rows()
    return Attack(tuple(findings), skipped, case.original.rows(), case.released.rows(), controls, seconds)


def _mappings(
    released: AssessedTable, release: Release | None, placed: Sequence[LabelLevels] | None
) -> tuple[exp.Query, ...] | None:
    """Return (value, label) of every quasi-identifier, or None where a row's class is unknown."""
    if release is not None:
        shared = {cell.name for cell in release.recoding.cells if cell.shares is not None}
        if not set(released.quasi) <= set(release.recoding.levels) - shared:
            return None
        return tuple(_given(release.engine, release, name) for name in released.quasi)
    if placed is None or any(p.level is None for p in placed):
        return None
    return tuple(_looked_up(p) for p in placed)


def _given(engine: Engine, release: Release, attribute: str) -> exp.Query:
    name = engine.fresh("mapping")
    engine.register(name, release.recoding.mapping(attribute))
    return exp.select(col("value"), col("label")).from_(table(name))


def _looked_up(placed: LabelLevels) -> exp.Query:
    value = exp.case().when(col("known", "t"), col("text", "v")).else_(text(placed.levels.top))
    label = value if placed.level == 0 else col(f"l{placed.level}", "t")
    on = exp.EQ(this=col("code", "t"), expression=col("code", "v"))
    query = exp.select(named(col("text", "v"), "value"), named(label, "label")).from_(table(placed.values, "v"))
    return query.join(table(placed.levels.tree, "t"), on=on)
