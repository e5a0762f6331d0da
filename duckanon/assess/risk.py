"""Reidentification risk: how likely a row is linked to the right person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.assess.assessed_table import AssessedTable, assessed, comparable, of_table
from duckanon.assess.composition import Composition, composed
from duckanon.assess.uniqueness import Uniqueness, estimate
from duckanon.assess.uniqueness import population_size as whole_population
from duckanon.engine.sql.files import load
from duckanon.engine.sql.relations import cast, col, conjunction, named, number, same, table
from duckanon.errors import DataError, ParameterError
from duckanon.report.assessments import risk_report
from duckanon.report.results import Result

if TYPE_CHECKING:
    import pyarrow as pa

    from duckanon.engine.base import Engine
    from duckanon.report.model import Report


_MEANINGS = {
    "at_risk": "share of {unit} with a risk above {threshold:g}",
    "maximum": "highest risk",
    "average": "average risk: share of {unit} that such an attacker links rightly",
    "minimum": "lowest risk",
    "affected": "share of {unit} with the highest risk",
}
_ESTIMATORS = {
    "dankar": "the rule of Dankar et al.",
    "zayatz": "Zayatz",
    "snb": "the slide negative binomial model",
    "pitman": "Pitman's formula",
}


@dataclass(frozen=True)
class Attacker:
    """The risk from one kind of attacker.

    Parameters
    ----------
    at_risk : float
        Share of members whose risk is above the threshold.
    maximum, average, minimum : float
        The risks themselves; the average is the share of members that an attacker links rightly.
    affected : float
        Share of members that have the highest risk.
    """

    at_risk: float
    maximum: float
    average: float
    minimum: float
    affected: float


@dataclass(frozen=True)
class Disclosure:
    """What classes tell of a sensitive column, whichever row in them is whose.

    Parameters
    ----------
    attribute : str
    classes, rows : int
        Classes whose rows all have the same value, and their rows.
    share : float
        These rows, as a share of all.
    """

    attribute: str
    classes: int
    rows: int
    share: float


@dataclass(frozen=True, repr=False)
class Risk(Result):
    """Reidentification risk of a table.

    Parameters
    ----------
    threshold : float
        What is called at risk: a probability above this.
    unit : str
        What is counted, rows or persons. A person in two classes counts in both.
    members, classes, smallest : int
        Published members, their classes, the size of the smallest.
    sample_unique : float
        Share of members that are alone in their class.
    prosecutor : Attacker
        Knows that the person is in the data: 1 / size of the class.
    journalist : Attacker or None
        Does not know it: 1 / size of the class in the population. The average is the larger of classes / population and
        the marketer's.
    marketer : float
        Share of all members that are linked rightly when everybody is linked: the mean of 1 / size, the size in the
        population where there is one.
    population_unique : float or None
        Share of members that are alone in the population, counted in its table.
    uniqueness : Uniqueness or None
        Share of the population that is alone there, estimated where only the size of the population is known.
    composition : Composition or None
        What this release and a previous one disclose together.
    disclosure : tuple of Disclosure
        For each sensitive column that was named, the rows whose class tells its value.
    """

    threshold: float
    unit: str
    members: int
    classes: int
    smallest: int
    sample_unique: float
    prosecutor: Attacker
    marketer: float
    journalist: Attacker | None = None
    population_unique: float | None = None
    uniqueness: Uniqueness | None = None
    composition: Composition | None = None
    disclosure: tuple[Disclosure, ...] = ()

    def to_arrow(self) -> pa.Table:
        """Return the figures, as ``figures`` does: ``measure``, ``value`` and ``meaning``."""
        import pyarrow as pa

        schema = pa.schema([("measure", pa.string()), ("value", pa.float64()), ("meaning", pa.string())])
        names = schema.names
        return pa.Table.from_pylist([dict(zip(names, one, strict=True)) for one in self.figures()], schema=schema)

    def _shown(self) -> Report:
        return risk_report(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the risk as plain values."""
        return {**asdict(self), "disclosure": [asdict(one) for one in self.disclosure]}

    def figures(self) -> list[tuple[str, float, str]]:
        """Return name, value and meaning of every figure that there is, as ``FROM risk(...)`` lists them."""
        unit = self.unit
        rows: list[tuple[str, float | None, str]] = [
            ("members", self.members, f"{unit} assessed"),
            ("classes", self.classes, "combinations of quasi-identifiers"),
            ("smallest_class", self.smallest, f"{unit} in the smallest of them"),
            ("sample_uniqueness", self.sample_unique, f"share of {unit} that are alone in their class"),
        ]
        for who, attacker in (("prosecutor", self.prosecutor), ("journalist", self.journalist)):
            for name, meaning in _MEANINGS.items():
                value = getattr(attacker, name) if attacker is not None else None
                rows.append((f"{who}_{name}", value, meaning.format(unit=unit, threshold=self.threshold)))
        rows.append(("marketer_average", self.marketer, f"share of {unit} linked rightly when all are linked"))
        rows.append(("population_uniqueness", self.population_unique, f"share of {unit} alone in the population table"))
        for name in ("dankar", "zayatz", "snb", "pitman"):
            chosen = f", which chose {self.uniqueness.chosen}" if self.uniqueness and name == "dankar" else ""
            meaning = f"share of the population that is unique, estimated by {_ESTIMATORS[name]}{chosen}"
            value = getattr(self.uniqueness, name) if self.uniqueness is not None else None
            rows.append((f"population_uniqueness_{name}", value, meaning))
        if self.composition is not None:
            rows += self.composition.figures()
        for told in self.disclosure:
            rows.append(
                (f"disclosed_{told.attribute}", told.share, f"share of rows whose class tells {told.attribute}")
            )
        return [(name, float(value), meaning) for name, value, meaning in rows if value is not None]


def risk(
    data: object,
    *,
    quasi_identifiers: Sequence[str] | None = None,
    sensitive: Sequence[str] = (),
    entity_key: str | None = None,
    population: object = None,
    population_size: int | None = None,
    sampling_fraction: float | None = None,
    threshold: float = 0.2,
    previous: object = None,
    original: object = None,
    previous_original: object = None,
    hierarchies: Mapping[str, Any] | None = None,
    k: int | None = None,
    connection: Any = None,
) -> Risk:
    """Return how likely the members of a table are reidentified by its quasi-identifiers.

    Parameters
    ----------
    data : str, Path, Source, Arrow object, data frame or Release
    quasi_identifiers : sequence of str
        A release knows its own.
    sensitive : sequence of str
        For each of these columns, ``disclosure`` counts the rows in classes that have one value of it. A release knows
        its own.
    entity_key : str, optional
        The column that identifies persons. With ``original`` it is a column of that.
    population : table, optional
        The people from whom the data were drawn, all of ``data`` included, with the quasi-identifiers written as in
        ``data`` (generalized in the same way). One row is one member.
    population_size, sampling_fraction : int or float, optional
        Of how many members the data are a random sample, or what share of them: one of the two gives the estimates of
        population uniqueness (``uniqueness``) without a table of the population.
    threshold : float
        A probability above this is called at risk.
    previous : table, optional
        An earlier release of the same people, with the same quasi-identifiers: ``composition`` then counts the persons
        both releases together distinguish from all but fewer than k others. Persons are followed by ``entity_key``, if
        both tables have that column (owners' copies do, published files do not); else by ``original``; else only what
        the overlap of classes is counted, which is little.
    original : table, optional
        The people themselves: each row is placed in the classes of both releases that can hold it. One whose row could
        be in several classes of a release counts in each.
    previous_original : table, optional
        The people of the earlier release, where they are not those of ``original``; ``entity_key`` identifies them.
    hierarchies : mapping, optional
        For ``original``: how the releases were generalized; columns that are not named get the hierarchy that
        ``anonymize`` would make.
    k : int, optional
        The least persons of a group; by default the size of the smallest class of ``data``.
    connection : duckdb.DuckDBPyConnection, optional

    Notes
    -----
    A risk of 1 / size assumes an attacker who knows the quasi-identifiers exactly and nothing else. The estimates of
    uniqueness assume a random sample; they use only the number of classes of each size.

    References
    ----------
    K. El Emam and F. Dankar, Protecting privacy using k-anonymity, 2008; K. El Emam, Guide to the de-identification of
    personal health information, 2013, chapter 16; F. Dankar et al., Estimating the re-identification risk of clinical
    data sets, 2012; S. Ganta, S. Kasiviswanathan, A. Smith, Composition attacks and auxiliary information in data
    privacy, 2008.

    Examples
    --------
    >>> import duckanon, pyarrow as pa
    >>> people = pa.table({"age": [30, 30, 30, 40]})
    >>> found = duckanon.risk(people, quasi_identifiers=["age"], threshold=0.5)
    >>> found.prosecutor.at_risk, found.prosecutor.maximum, found.prosecutor.average, found.sample_unique
    (0.25, 1.0, 0.5, 0.25)
    >>> found = duckanon.risk(people, quasi_identifiers=["age"], sampling_fraction=0.5)
    >>> found.uniqueness.chosen, round(found.uniqueness.dankar, 2)
    ('zayatz', 0.13)
    >>> ill = people.append_column("ill", pa.array(["flu", "flu", "gout", "flu"]))
    >>> duckanon.risk(ill, quasi_identifiers=["age"], sensitive=["ill"]).disclosure
    (Disclosure(attribute='ill', classes=1, rows=1, share=0.25),)
    >>> before = pa.table({"age": ["30-39"] * 3 + ["40-49"] * 3, "person": [1, 2, 3, 4, 5, 6]})
    >>> after = pa.table({"age": ["30-34"] * 3 + ["35-49"] * 3, "person": [1, 2, 4, 3, 5, 6]})
    >>> found = duckanon.risk(after, quasi_identifiers=["age"], entity_key="person", previous=before)
    >>> found.composition.k, found.composition.smallest, found.composition.persons_below
    (3, 1, 6)
    """
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold <= 1:
        raise ParameterError("The 'threshold' parameter of risk must be a probability between 0 and 1.")
    limit = {"threshold": float(threshold)}
    if previous is None and (original is not None or previous_original is not None or k is not None):
        raise ParameterError("original, previous_original and k of risk are about a previous release: give previous.")
    key = entity_key if original is None else None
    with assessed(
        data, quasi_identifiers=quasi_identifiers, sensitive=sensitive, entity_key=key, connection=connection
    ) as subject:
        engine = subject.engine
        relations = subject.relations(("class_values",))
        classes, members, smallest, _, singletons = engine.row(load("risk/sizes").bind(relations))
        prosecutor = Attacker(*engine.row(load("risk/prosecutor").bind(relations), limit))
        journalist, marketer, unique, estimates = None, prosecutor.average, None, None
        total = whole_population(int(members), population_size, sampling_fraction)
        if total is not None:
            counted = engine.rows(load("risk/size_counts").bind(relations))
            estimates = estimate({size: classes for size, classes, suppressed in counted if not suppressed}, total)
        if population is not None:
            relations["population_classes"] = _population(engine, subject, relations["classes"], population)
            row = engine.row(load("risk/journalist").bind(relations), limit)
            journalist, marketer, unique = Attacker(*row[:5]), row[5], row[6]
        told: tuple[Disclosure, ...] = ()
        if "class_values" in relations:
            rows = engine.rows(load("risk/disclosure").bind(relations))
            told = tuple(Disclosure(str(a), int(c), int(n), float(share)) for a, c, n, share in rows)
        engine.drop(*relations.values())
        both = None
        if previous is not None:
            both = composed(
                subject,
                previous,
                entity_key=entity_key,
                original=original,
                previous_original=previous_original,
                hierarchies=hierarchies,
                k=int(smallest) if k is None else k,
            )
    return Risk(
        threshold=float(threshold),
        unit=subject.unit,
        members=int(members),
        classes=int(classes),
        smallest=int(smallest),
        sample_unique=int(singletons) / int(members),
        prosecutor=prosecutor,
        marketer=float(marketer),
        journalist=journalist,
        population_unique=unique,
        uniqueness=estimates,
        composition=both,
        disclosure=told,
    )


def _population(engine: Engine, subject: AssessedTable, classes: str, population: object) -> str:
    """Create ``population_classes(class_id, n)``: the size of every class of the data in the population."""
    people = of_table(engine, population, list(subject.quasi))
    counted, name = people.classes(), engine.fresh("population")
    on = []
    for j, (attribute, other) in enumerate(zip(subject.quasi, people.quasi, strict=True)):
        sides: list[exp.Expr] = [col(f"q_{j}", "c"), col(f"q_{j}", "p")]
        if not comparable(subject.types[attribute], people.types[other]):
            sides = [cast(side, "VARCHAR") for side in sides]
        on.append(same(*sides))
    size = exp.Coalesce(this=exp.Sum(this=col("n", "p")), expressions=[number(0)])
    query = (
        exp.select(col("class_id", "c"), named(exp.Max(this=col("n", "c")), "sample"), named(cast(size, "BIGINT"), "n"))
        .from_(table(classes, "c"))
        .join(table(counted, "p"), on=conjunction(on), join_type="left")
        .group_by(col("class_id", "c"))
    )
    engine.create(name, query)
    engine.drop(counted)
    less = exp.LT(this=col("n"), expression=col("sample"))
    missing, total = engine.row(
        exp.select(exp.Sum(this=exp.case().when(less, number(1)).else_(number(0))), exp.Count(this=exp.Star())).from_(
            table(name)
        )
    )
    if missing:
        raise DataError(
            f"The population is not one from which the data were drawn: {missing} of {total} classes of the data have "
            "fewer members in it. Its quasi-identifiers must be written as in the data."
        )
    return name
