"""What will be done: everything that can be resolved and checked before rows are read."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.algorithms.base import Algorithm, algorithms
from duckanon.encoding.dictionaries import canonical, with_decimals
from duckanon.engine.base import open_engine
from duckanon.engine.sql.relations import cast, col
from duckanon.errors import ParameterError, RoleError, UnsupportedError, did_you_mean
from duckanon.hierarchy import Hierarchy, resolve, saved
from duckanon.io.source import Relation, Source
from duckanon.models.base import Model, sensitive_of
from duckanon.plan.publication import Publication, extended
from duckanon.plan.request import PARAMETERS, Request
from duckanon.plan.requirements import Requirements
from duckanon.plan.roles import Attribute, Role, Roles
from duckanon.plan.search_options import SearchOptions
from duckanon.registry import make_from, parse_call

if TYPE_CHECKING:
    from pathlib import Path

    from duckanon.engine.base import Engine


_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}


@dataclass(frozen=True)
class Plan:
    """What will be done: the source, the roles, the privacy requirements and the algorithm.

    ``duckanon.Plan.of`` returns what ``duckanon.anonymize`` would do. Python, SQL and job files fill a ``Request``, and
    each request is resolved here.
    """

    relation: Relation
    roles: Roles
    hierarchies: dict[str, Hierarchy | None]
    models: tuple[Model, ...]
    algorithm: Algorithm
    suppression_limit: float
    on_unknown: str
    seed: int | None
    population: Relation | None = None
    sensitive_hierarchies: dict[str, Hierarchy] = field(default_factory=dict)
    search_options: SearchOptions = field(default_factory=SearchOptions)
    publication: Publication = field(default_factory=Publication)
    remember: bool = False
    """Whether the cuts of a partition are kept, so that the recoding can be stored."""

    @property
    def unit(self) -> str:
        """What k counts: persons where there is an entity key, else rows."""
        return "persons" if self.roles.entity_key is not None else "rows"

    @property
    def bounds(self) -> str:
        """Where published bounds come from: "grid", "cut" or "tight"."""
        return self.publication.bounds

    @property
    def output(self) -> dict[str, str]:
        """What is written of each quasi-identifier."""
        return self.publication.kinds

    @property
    def within(self) -> tuple[str, ...]:
        """The quasi-identifiers that are published as they are."""
        return self.publication.within

    @property
    def published_as(self) -> dict[str, tuple[str, ...]]:
        """The names under which each quasi-identifier is published: two if its bounds are."""
        return {a.name: self.publication.columns_of(a.name) for a in self.roles.quasi_identifiers}

    @property
    def published_names(self) -> list[str]:
        """The columns of a release, in the source's order."""
        named_as = self.published_as
        return [column for a in self.roles.published for column in named_as.get(a.name, (a.name,))]

    @classmethod
    def resolve(cls, request: Request, engine: Engine, *, base: Path | None = None, read: bool = True) -> Plan:
        """Resolve every name of a request and check every parameter.

        Relative paths of hierarchies start from ``base``. With ``read=False`` only the schema of the data is read.
        """
        asked: dict[str, Any] = {"k": request.k, "l": request.l, "t": request.t, "models": request.models}
        requirements = Requirements.of(**asked)
        by_levels = bool(request.levels or request.min_levels or request.max_levels)
        chosen = resolve_algorithm(
            request.algorithm or _usual(requirements, levels=by_levels, iterative=request.iterative)
        )
        if chosen.permutes:
            requirements = Requirements.of_hidden(**asked)
        for model in requirements.models:
            if not chosen.supports(model) or model.hidden != chosen.permutes:
                raise UnsupportedError(f"The algorithm {chosen.name} cannot enforce {model.name}.{_hint(chosen)}")
        requirements.require_population(request.population is not None)
        limit = _fraction("suppression_limit", request.suppression_limit)
        if request.on_unknown not in PARAMETERS["on_unknown"].choices:
            raise ParameterError(f"on_unknown must be 'error' or 'top'. Got {request.on_unknown!r}.")
        if request.seed is not None and (isinstance(request.seed, bool) or not isinstance(request.seed, int)):
            raise ParameterError("seed must be an int.")
        relation = with_decimals(engine, Source.of(request.data).open(engine, read=read), read)
        roles = _roles(request, relation)
        search_options = SearchOptions.of(
            [a.name for a in roles.quasi_identifiers],
            levels=request.levels,
            min_levels=request.min_levels,
            max_levels=request.max_levels,
            weights=request.weights,
            iterative=request.iterative,
        )
        publication = Publication.of(
            roles.quasi_identifiers, bounds=request.bounds, output=request.output, within=request.within
        )
        publication.require_free(roles.published)
        _require_fitting(chosen, roles, search_options, publication, request.population is not None)
        resolved = _resolve_hierarchies(request.hierarchies or {}, roles, engine, base)
        ours = {a.name: resolved[a.name] for a in roles.quasi_identifiers}
        theirs = {name: h for name, h in resolved.items() if name not in ours and h is not None}
        people = None
        if request.population is not None:
            people = open_population(request.population, roles, engine, read)
        return cls(
            relation=relation,
            roles=roles,
            hierarchies=ours,
            models=requirements.bound(roles, theirs),
            algorithm=chosen,
            suppression_limit=limit,
            on_unknown=request.on_unknown,
            seed=request.seed,
            population=people,
            sensitive_hierarchies=theirs,
            search_options=search_options,
            publication=publication,
        )

    @classmethod
    def of(cls, data: object, *, connection: Any = None, **parameters: Any) -> Plan:
        """Return what ``anonymize`` would do with the same parameters. Only the schema of the data is read."""
        request = Request(data=data, **parameters)
        engine = open_engine(connection)
        try:
            return cls.resolve(request, engine, read=False)
        finally:
            engine.close()

    def expression(self, attribute: Attribute) -> exp.Expr:
        """Return a column's value as it is counted and published."""
        return canonical(col(attribute.name), attribute.type, self.relation.collated)

    @property
    def entity(self) -> exp.Expr | None:
        """The value that identifies persons."""
        key = self.roles.entity_key
        if key is None:
            return None
        return canonical(col(key), self.relation.type_of(key), self.relation.collated)

    def population_value(self, attribute: Attribute) -> exp.Expr:
        """Return a quasi-identifier of the population as that of the source is counted."""
        if self.population is None:
            raise ParameterError("The plan has no population.")
        name = next(c.name for c in self.population.columns if c.name.lower() == attribute.name.lower())
        value: exp.Expr = col(name)
        kind = self.population.type_of(name)
        if kind != attribute.type:
            whole = {t.upper() in _WHOLE for t in (kind, attribute.type)}
            if whole != {True}:
                raise ParameterError(
                    f"The column {name!r} of the population is {kind.split('(')[0]}, that of the data "
                    f"{attribute.type.split('(')[0]}: cast one to the type of the other, so that values compare."
                )
            value = cast(value, attribute.type)
        return canonical(value, attribute.type, self.population.collated or self.relation.collated)

    def steps(self) -> list[tuple[str, str]]:
        """Return what a run does, in order: the name of each step, as progress reports it, and a sentence about it."""
        quasi = _listed([a.name for a in self.roles.quasi_identifiers])
        counted = list(dict.fromkeys(sensitive_of(self.models)))
        if self.algorithm.partitions:
            return [
                ("encode", f"count the distinct values of {quasi}, and bind their hierarchies"),
                ("code", "replace the values of every row by short codes"),
                *([("associate", "measure which columns depend on each other")] if self.algorithm.permutes else []),
                ("search", f"{self.algorithm.name}: {self.algorithm.summary}"),
                ("recode", f"write every row with {self._written()}, in random order, to a private file"),
                ("gate", self._gate()),
            ]
        tables = f"count the distinct values of {quasi}, bind their hierarchies, and count the rows of each combination"
        if counted:
            tables += f", also with each value of {_listed(counted)}"
        if self.population is not None:
            tables += ", also of the population"
        if self.search_options.levels:
            search = "apply the levels that are given"
        else:
            search = f"{self.algorithm.name}: {self.algorithm.summary}; on the counts, without reading rows again"
        if self.search_options.iterative:
            search += "; then again for the rows that would be suppressed"
        return [
            ("encode", tables),
            ("search", search),
            ("recode", f"write every row with {self._written()}, in random order, to a private file"),
            ("gate", self._gate()),
        ]

    def _written(self) -> str:
        if self.algorithm.permutes:
            return "values permuted within its group"
        if self.algorithm.partitions:
            return "the region of its class"
        return "its labels on these levels"

    def _gate(self) -> str:
        models = _listed(list(dict.fromkeys(model.name for model in self.models)))
        if self.algorithm.permutes:
            return f"read the file back, and verify {models} and that each column has the values of the source"
        return f"read the file back, and verify {models} and that each published value covers the original one"

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return {**self.described(), "steps": [{"step": name, "text": text} for name, text in self.steps()]}

    def described(self) -> dict[str, Any]:
        """Return the plan as plain values, without its steps."""
        return {
            "source": {"kind": self.relation.kind, "name": self.relation.name},
            "roles": self.roles.to_dict(),
            "unit": self.unit,
            "promise": [
                {"model": m.name, "parameters": m.parameters(), "text": m.describe(self.unit)} for m in self.models
            ],
            "algorithm": {"name": self.algorithm.name, "parameters": self.algorithm.parameters()},
            "suppression_limit": self.suppression_limit,
            "steering": self.search_options.to_dict(),
            **self.publication.to_dict(),
            "hierarchies": {
                name: h.origin if h is not None else "none given: one will be made"
                for name, h in self.hierarchies.items()
            },
            "published": self.published_names,
            "hidden": self.roles.hidden,
        }

    def _publication_in_words(self) -> list[str]:
        """Return what is published of regions of values, where the algorithm makes such."""
        kinds = {name: kind for name, kind in self.output.items() if kind != "interval"}
        lines = [f"bounds: {self.bounds}"] if partitions(self.algorithm) else []
        if kinds:
            lines.append(f"output: {', '.join(f'{name} as {kind}' for name, kind in kinds.items())}")
        return [*lines, *([f"within: {', '.join(self.within)}"] if self.within else [])]

    def explain(self) -> str:
        """Return the plan in words: what is asked for, and the steps that a run takes."""
        plan = self.described()
        lines = [
            f"source: {plan['source']['kind']} {plan['source']['name']}",
            *(f"requirement: {p['text']} ({p['model']})" for p in plan["promise"]),
            f"algorithm: {self.algorithm.name}, at most {self.suppression_limit:.2%} of the rows suppressed",
            *(f"{name.replace('_', ' ')}: {value}" for name, value in self.search_options.to_dict().items()),
            *self._publication_in_words(),
            f"published: {', '.join(plan['published'])}",
            f"never published: {', '.join(plan['hidden']) or 'nothing'}",
            *(f"hierarchy of {name}: {origin}" for name, origin in plan["hierarchies"].items()),
            *(f"step {number}, {name}: {text}" for number, (name, text) in enumerate(self.steps(), 1)),
        ]
        # A line break in the name of a column must not begin a new line.
        return "\n".join(
            "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line) for line in lines
        )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def resolve_algorithm(algorithm: str | Algorithm) -> Algorithm:
    """Return the algorithm of that name with its defaults, or the object itself."""
    if isinstance(algorithm, Algorithm):
        return algorithm
    if not isinstance(algorithm, str):
        raise ParameterError(f"algorithm must be a name or an Algorithm. Got a {type(algorithm).__name__}.")
    if algorithm.isidentifier():
        return algorithms.get(algorithm)()
    hint = "An algorithm as text is its name, or its name with parameters, such as optimal(metric='precision')."
    return make_from(algorithms, *parse_call(algorithm, hint))


def _usual(requirements: Requirements, *, levels: bool, iterative: bool) -> str:
    """Return the algorithm where none is named: Mondrian, unless something is asked for that only levels can give."""
    if any(m.hidden for m in requirements.models):
        return "probabilistic"
    whole = any(m.needs_population or m.traits.whole_table for m in requirements.models)
    return "datafly" if levels or iterative or whole else "mondrian"


def _hint(algorithm: Algorithm) -> str:
    if not algorithm.permutes:
        return ""
    return (
        " It permutes values within groups that are not visible in the release, so there are no classes to check: "
        "it enforces probabilistic_k_anonymity, which k=... means here."
    )


def partitions(algorithm: Algorithm) -> bool:
    """Say whether an algorithm divides the rows into regions, rather than put columns on levels."""
    return bool(getattr(algorithm, "partitions", False))


def _roles(request: Request, relation: Relation) -> Roles:
    others = {
        "sensitive": request.sensitive,
        "insensitive": request.insensitive,
        "an identifier": request.identifiers,
        "the entity key": [request.entity_key] if request.entity_key else [],
    }
    return Roles.resolve(
        relation.columns,
        quasi_identifiers=extended(request.quasi_identifiers, request.within, others),
        sensitive=request.sensitive,
        identifiers=request.identifiers,
        insensitive=request.insensitive,
        entity_key=request.entity_key,
        unlisted=request.unlisted,
    )


def _require_fitting(
    algorithm: Algorithm, roles: Roles, search_options: SearchOptions, publication: Publication, population: bool
) -> None:
    """Raise where an algorithm cannot do what is asked of the search or of what is published."""
    _require_partition(algorithm, publication)
    if not partitions(algorithm) and publication.given and (population or search_options.iterative):
        other = "a population is recoded to labels" if population else "iterative=True has several levels"
        raise UnsupportedError(
            f"With {algorithm.name}, output='proportional' needs each column on one level, and {other}."
        )
    if algorithm.permutes and set(publication.given) - {"within"}:
        raise ParameterError(f"{algorithm.name} publishes values as they are: bounds and output are for regions.")
    if partitions(algorithm):
        search_options.require_no_levels(algorithm.name)
        _require_ordered(algorithm, [a.name for a in roles.quasi_identifiers])
        if publication.bounds == "cut" and not getattr(algorithm, "cuts", True):
            raise ParameterError(
                f"{algorithm.name} makes classes of rows near each other, and no cuts between them: use "
                "bounds='grid' or 'tight'."
            )
    if search_options.iterative and population:
        raise UnsupportedError(
            "iterative=True puts values on several levels, and a population needs one: give only one of them."
        )


def _require_partition(algorithm: Algorithm, publication: Publication) -> None:
    # The shares of values in a class can be published by any algorithm that makes classes.
    if partitions(algorithm) or set(publication.given) <= {"output='proportional'"}:
        return
    able = []
    for name in algorithms:
        # A third party's algorithm may need parameters; it is not worth a guess.
        with contextlib.suppress(TypeError):
            able += [name] if partitions(algorithms.get(name)()) else []
    raise UnsupportedError(
        f"The algorithm {algorithm.name} puts columns on levels, and {' and '.join(publication.given)} is for one that "
        f"divides the rows into regions: {', '.join(able) or 'none is known'}."
    )


def _require_ordered(algorithm: Algorithm, names: Sequence[str]) -> None:
    lowered = {name.lower() for name in names}
    for name in getattr(algorithm, "ordered", ()):
        if name.lower() not in lowered:
            raise ParameterError(f"'ordered' names {name!r}, which is no quasi-identifier.{did_you_mean(name, names)}")


def _fraction(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        shown = value if isinstance(value, int | float) else type(value).__name__
        raise ParameterError(f"{name} is a fraction between 0 and 1. Got {shown}.")
    return float(value)


def _resolve_hierarchies(
    given: Mapping[str, Any], roles: Roles, engine: Engine, base: Path | None
) -> dict[str, Hierarchy | None]:
    if not isinstance(given, Mapping):
        raise ParameterError(f"hierarchies must map columns to hierarchies. Got a {type(given).__name__}.")
    names = [a.name for a in roles.quasi_identifiers]
    possible = [*names, *roles.named(Role.SENSITIVE)]
    lowered = {n.lower(): n for n in possible}
    resolved: dict[str, Hierarchy | None] = dict.fromkeys(names)
    in_database = saved(engine) if any(isinstance(spec, str) for spec in given.values()) else []
    for name, spec in given.items():
        if not isinstance(name, str):
            raise ParameterError(f"hierarchies must map the names of columns. Got a {type(name).__name__}.")
        column = name if name in possible else lowered.get(name.lower())
        if column is None:
            raise RoleError(
                f"A hierarchy is given for {name!r}, which is no quasi-identifier and not sensitive."
                f"{did_you_mean(name, possible)}"
            )
        resolved[column] = resolve(spec, engine, base, in_database)
    return resolved


def open_population(population: object, roles: Roles, engine: Engine, read: bool = True) -> Relation:
    """Open the table of the people from whom the data were drawn; it must have the quasi-identifiers."""
    relation = Source.of(population).open(engine, read=read)
    present = {c.name.lower() for c in relation.columns}
    missing = [a.name for a in roles.quasi_identifiers if a.name.lower() not in present]
    if missing:
        raise RoleError(f"The population has no column {', '.join(repr(n) for n in missing)}.")
    return relation
