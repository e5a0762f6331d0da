"""What will be done: everything that can be resolved and checked before rows are read."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.algorithms.base import Algorithm, algorithms
from duckanon.encoding.dictionaries import canonical, published_type, with_decimals
from duckanon.engine.base import open_engine
from duckanon.engine.sql.relations import cast, col
from duckanon.errors import ParameterError, RoleError, UnsupportedError, did_you_mean
from duckanon.hierarchy import AUTO, Hierarchy, resolve, saved
from duckanon.hierarchy.rules import ColumnType
from duckanon.io.source import Relation, Source
from duckanon.models.base import Model, models, sensitive_of
from duckanon.plan.request import PARAMETERS, Request
from duckanon.plan.roles import Attribute, Role, Roles, column_names
from duckanon.registry import make_from, parse_call

if TYPE_CHECKING:
    from pathlib import Path

    from duckanon.engine.base import Engine


_EXAMPLES = (
    "A model as text is its name with its parameters, such as k_anonymity(k=5) or l_diversity(l=3, sensitive='ill')."
)


def parse_model(spec: object) -> Model:
    """Return the model that a text or a mapping describes; a model is returned as it is.

    Examples
    --------
    >>> parse_model("k_anonymity(5)")
    KAnonymity(k=5)
    >>> parse_model({"model": "k_anonymity", "k": 5})
    KAnonymity(k=5)
    """
    if isinstance(spec, Model):
        return spec
    if isinstance(spec, str):
        name, positional, named = parse_call(spec, _EXAMPLES)
    elif isinstance(spec, Mapping):
        named = {str(key): value for key, value in spec.items()}
        name, positional = str(named.pop("model", "")), []
        if not name:
            raise ParameterError("A model given as a mapping needs the key 'model' with its name.")
    else:
        raise ParameterError(f"A model is an object, a text or a mapping. Got a {type(spec).__name__}.")
    return make_from(models, name, positional, named)


_ORDERED = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}


def is_ordered(type_name: str) -> bool:
    """Say whether the values of a type have a distance: numbers, dates and times.

    Numbers that Parquet cannot hold are published as text, and text has no distance.

    Examples
    --------
    >>> is_ordered("DECIMAL(9,2)"), is_ordered("VARCHAR"), is_ordered("HUGEINT")
    (True, False, False)
    """
    upper = type_name.upper()
    numeric = upper in _ORDERED or upper.startswith(("DECIMAL", "FLOAT", "DOUBLE", "REAL", "DATE", "TIME"))
    return numeric and published_type(type_name) == type_name and not upper.endswith("]")


@dataclass(frozen=True)
class Requirements:
    """The models that are required, before the columns of the table are known.

    ``t`` is the keyword's threshold: its distance depends on the type of each sensitive column, ordered for numbers,
    dates and times, equal for everything else.
    """

    models: tuple[Model, ...]
    t: float | None = None

    @classmethod
    def of(
        cls,
        *,
        k: int | None = None,
        l: int | None = None,  # noqa: E741 - the field's own name
        t: float | None = None,
        models: Sequence[Model | str | Mapping[str, Any]] = (),
    ) -> Requirements:
        """Return the models that are given. Giving none is an error."""
        if isinstance(models, str | Model | Mapping) or not isinstance(models, Iterable):
            raise ParameterError("models must be a list, such as [KAnonymity(5)] or ['k_anonymity(k=5)'].")
        required: list[Model] = []
        if k is not None:
            required.append(_made("k_anonymity", k))
        if l is not None:
            required.append(_made("l_diversity", l))
        required += [parse_model(model) for model in models]
        if not required and t is None:
            raise ParameterError("No privacy model is given: give k=..., l=..., t=... or models=[...].")
        if t is not None:
            _made("t_closeness", t)
        return cls(tuple(required), t)

    @classmethod
    def of_hidden(
        cls,
        *,
        k: int | None = None,
        l: int | None = None,  # noqa: E741 - the field's own name
        t: float | None = None,
        models: Sequence[Model | str | Mapping[str, Any]] = (),
    ) -> Requirements:
        """Return the models for an algorithm whose groups are not visible: ``k`` means probabilistic k-anonymity.

        Models of classes stay what they are: the algorithm refuses them.
        """
        required = [*([_made("probabilistic_k_anonymity", k)] if k is not None else []), *models]
        if t is not None:
            required.append(_made("t_closeness", t))
        return cls.of(l=l, models=required)

    def require_population(self, given: bool) -> None:
        """Raise unless a population is there exactly when a model needs one."""
        needing = [m.name for m in self.models if m.needs_population]
        if needing and not given:
            raise ParameterError(f"The model {needing[0]} compares with a population: give population=....")
        if given and not needing:
            raise ParameterError("A population is given, and no model needs one.")

    def bound(self, roles: Roles, hierarchies: Collection[str] = ()) -> tuple[Model, ...]:
        """Return the models with their columns; one without a column becomes one for each sensitive column.

        ``hierarchies`` are the sensitive columns that have one.
        """
        sensitive = [a for a in roles.attributes if a.role is Role.SENSITIVE]
        bound: list[Model] = []
        for model in self.models:
            if "sensitive" not in {f.name for f in fields(model)}:  # type: ignore[arg-type]
                bound.append(model)
                continue
            for column in _columns(model, sensitive):
                if model.needs_hierarchy and column.name not in hierarchies:
                    raise ParameterError(
                        f"The model {model.name} measures along a hierarchy: give hierarchies={{{column.name!r}: ...}}."
                    )
                if model.needs_order and published_type(column.type) != column.type:
                    raise UnsupportedError(
                        f"{column.name!r} has the type {column.type.split('(')[0]}, which is published as text, and "
                        f"text has no order that {model.name} could use: cast it to BIGINT, DECIMAL or DOUBLE."
                    )
                bound.append(replace(model, sensitive=column.name))  # type: ignore[type-var]
        if self.t is not None:
            for column in _require_any("t_closeness", sensitive):
                name = "ordered_t_closeness" if is_ordered(column.type) else "t_closeness"
                bound.append(replace(_made(name, self.t), sensitive=column.name))  # type: ignore[type-var]
        return tuple(dict.fromkeys(bound))


def require_visible(promised: Iterable[Model]) -> None:
    """Raise unless every model is about classes that can be seen in a table."""
    for model in promised:
        if model.hidden:
            raise UnsupportedError(
                f"{model.name} cannot be checked on a table: which rows were permuted together is not visible in it. "
                "The gate checks it while a release is made, and release.checks says what it found."
            )


def _made(name: str, value: object) -> Model:
    return models.get(name)(value)  # type: ignore[call-arg]


def _columns(model: Model, sensitive: Sequence[Attribute]) -> Sequence[Attribute]:
    wanted: str | None = getattr(model, "sensitive", None)
    if wanted is None:
        return _require_any(model.name, sensitive)
    matching = [a for a in sensitive if a.name == wanted] or [a for a in sensitive if a.name.lower() == wanted.lower()]
    if not matching:
        names = [a.name for a in sensitive]
        raise RoleError(
            f"The model {model.name} names {wanted!r}, which is no sensitive column.{did_you_mean(wanted, names)}"
        )
    return matching[:1]


def _require_any(name: str, sensitive: Sequence[Attribute]) -> Sequence[Attribute]:
    if not sensitive:
        raise ParameterError(f"The model {name} is about a sensitive column: name one in sensitive=[...].")
    return sensitive


@dataclass(frozen=True)
class SearchOptions:
    """What a search may choose, by quasi-identifier.

    ``levels`` fixes the node: columns that it does not name stay as they are. ``minimum`` and ``maximum`` bound the
    levels, ``weights`` say how much a column counts in metrics. ``iterative`` recodes suppressed rows again.
    """

    levels: dict[str, int] = field(default_factory=dict)
    minimum: dict[str, int] = field(default_factory=dict)
    maximum: dict[str, int] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    iterative: bool = False

    @classmethod
    def of(
        cls,
        columns: Sequence[str],
        *,
        levels: Mapping[str, int] | None = None,
        min_levels: Mapping[str, int] | None = None,
        max_levels: Mapping[str, int] | None = None,
        weights: Mapping[str, float] | None = None,
        iterative: bool = False,
    ) -> SearchOptions:
        """Match the names with the quasi-identifiers. What does not fit is a ParameterError."""
        given_levels = {
            name: _named(name, given, columns)
            for name, given in (("levels", levels), ("min_levels", min_levels), ("max_levels", max_levels))
        }
        for name, numbers in given_levels.items():
            for column, level in numbers.items():
                if isinstance(level, bool) or not isinstance(level, int) or level < 0:
                    raise ParameterError(f"{name} of {column!r} must be a whole number of at least 0.")
        if levels is not None and (min_levels or max_levels):
            raise ParameterError("levels fixes every level: give either levels, or min_levels and max_levels.")
        if levels is not None and not levels:
            raise ParameterError("levels is empty: name at least one quasi-identifier.")
        for column, low in given_levels["min_levels"].items():
            if low > given_levels["max_levels"].get(column, low):
                raise ParameterError(f"The lowest level of {column!r} is above its highest.")
        heavy = _named("weights", weights, columns)
        for column, weight in heavy.items():
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < float("inf"):
                raise ParameterError(f"The weight of {column!r} must be a number above 0.")
        if not isinstance(iterative, bool):
            raise ParameterError("iterative must be true or false.")
        numbers = {column: float(weight) for column, weight in heavy.items()}
        return cls(given_levels["levels"], given_levels["min_levels"], given_levels["max_levels"], numbers, iterative)

    def spans(self, columns: Sequence[str], heights: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """Return the lowest and highest level of each column. A level that its hierarchy lacks is an error."""
        spans = []
        for column, height in zip(columns, heights, strict=True):
            low, high = self.minimum.get(column, 0), self.maximum.get(column, height)
            if self.levels:
                low = high = self.levels.get(column, 0)
            if max(low, high) > height:
                raise ParameterError(f"The hierarchy of {column!r} has the levels 0 to {height}. Got {max(low, high)}.")
            spans.append((low, high))
        return tuple(spans)

    def require_no_levels(self, algorithm: str) -> None:
        """Raise if levels are given to an algorithm that has none."""
        given = {"levels": self.levels, "min_levels": self.minimum, "max_levels": self.maximum}
        asked = [name for name, value in {**given, "iterative": self.iterative}.items() if value]
        if asked:
            raise UnsupportedError(
                f"The algorithm {algorithm} divides rows into regions, which have no levels: {' and '.join(asked)} "
                "is for optimal, datafly and the others that put columns on levels."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return what was given, as plain values."""
        given = {
            "levels": self.levels,
            "min_levels": self.minimum,
            "max_levels": self.maximum,
            "weights": self.weights,
            "iterative": self.iterative,
        }
        return {name: value for name, value in given.items() if value}


def _named(name: str, given: Mapping[str, Any] | None, columns: Sequence[str]) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ParameterError(f"{name} must map quasi-identifiers to numbers. Got a {type(given).__name__}.")
    lowered = {c.lower(): c for c in columns}
    matched = {}
    for column, value in given.items():
        match = lowered.get(str(column).lower())
        if match is None:
            hint = did_you_mean(str(column), columns)
            raise ParameterError(f"{name} names {column!r}, which is no quasi-identifier.{hint}")
        matched[match] = value
    return matched


BOUNDS = PARAMETERS["bounds"].choices
"""Where published bounds come from: the hierarchy, the cuts between classes, or the values of the class itself."""

KINDS = PARAMETERS["output"].choices
"""What is written of a region of values, or of the values of its class."""

MEASURED = ("bounds", "struct", "midpoint", "mean", "median", "geometric_mean")
"""The kinds that need values with distances; the last needs numbers."""


@dataclass(frozen=True)
class Publication:
    """What is published of the regions of a partition.

    ``kinds`` has every quasi-identifier, ``within`` those that are published as they are: no class has two values of
    them.
    """

    bounds: str = "grid"
    kinds: dict[str, str] = field(default_factory=dict)
    within: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        quasi_identifiers: Sequence[Attribute],
        *,
        bounds: str = "grid",
        output: str | Mapping[str, str] = "interval",
        within: Sequence[str] = (),
    ) -> Publication:
        """Match the names with the quasi-identifiers. What does not fit is a ParameterError.

        Examples
        --------
        >>> from duckanon.plan.roles import Role
        >>> age = Attribute("age", "INTEGER", Role.QUASI_IDENTIFIER)
        >>> city = Attribute("city", "VARCHAR", Role.QUASI_IDENTIFIER)
        >>> Publication.of([age, city], output="midpoint").kinds
        {'age': 'midpoint', 'city': 'interval'}
        """
        _one_of("bounds", bounds, BOUNDS)
        names = [a.name for a in quasi_identifiers]
        lowered = {name.lower(): name for name in names}
        unchanged = tuple(dict.fromkeys(lowered[name.lower()] for name in within))
        given = named_kinds(output, names)
        kinds = {}
        for attribute in quasi_identifiers:
            kind = given.get(attribute.name, "interval")
            _require_fit(attribute, kind, unchanged)
            if isinstance(output, str) and attribute.name not in unchanged:
                kind = output if _fits(attribute.type, output) else "interval"
            kinds[attribute.name] = kind
        return cls(bounds, kinds, unchanged)

    @property
    def given(self) -> list[str]:
        """The settings that differ from the default, as they were written. Only a partition supports them."""
        changed = [f"bounds={self.bounds!r}"] if self.bounds != "grid" else []
        kinds = list(dict.fromkeys(kind for kind in self.kinds.values() if kind != "interval"))
        changed += [f"output={kind!r}" for kind in kinds]
        return [*changed, *(["within"] if self.within else [])]

    def columns_of(self, name: str) -> tuple[str, ...]:
        """Return the names under which a quasi-identifier is published.

        Examples
        --------
        >>> Publication(kinds={"age": "bounds"}).columns_of("age")
        ('age_lo', 'age_hi')
        """
        return (f"{name}_lo", f"{name}_hi") if self.kinds.get(name) == "bounds" else (name,)

    def require_free(self, published: Iterable[Attribute]) -> None:
        """Raise where two published columns would have one name."""
        taken: dict[str, str] = {}
        for attribute in published:
            for column in self.columns_of(attribute.name):
                other = taken.setdefault(column.lower(), attribute.name)
                if other != attribute.name:
                    wide = attribute.name if self.kinds.get(attribute.name) == "bounds" else other
                    raise ParameterError(
                        f"output='bounds' would publish {column!r} twice: the bounds of {wide!r} and another column. "
                        "Rename that column, or use output='struct'."
                    )

    def to_dict(self) -> dict[str, object]:
        """Return the settings as plain values."""
        kinds = {name: kind for name, kind in self.kinds.items() if kind != "interval"}
        settings: dict[str, object] = {"bounds": self.bounds}
        return {
            **settings,
            **({"output": kinds} if kinds else {}),
            **({"within": list(self.within)} if self.within else {}),
        }


def has_distance(type_name: str) -> bool:
    """Say whether values of a type are published as numbers, dates or times, between which there are others.

    Examples
    --------
    >>> [has_distance(t) for t in ("INTEGER", "DECIMAL(9,2)", "DATE", "TIME", "VARCHAR", "BOOLEAN", "HUGEINT")]
    [True, True, True, True, False, False, False]
    """
    if published_type(type_name) != type_name:
        return False
    kind = ColumnType.parse(type_name)
    return kind.kind != "category" or kind.name == "TIME"


def extended(
    quasi_identifiers: Sequence[str], within: Sequence[str], others: Mapping[str, Sequence[str]] | None = None
) -> list[str]:
    """Return the quasi-identifiers with those columns of ``within`` that are not among them.

    ``others`` are the columns of other roles, by role: none of ``within`` may be among them.

    Examples
    --------
    >>> extended(["age", "zip"], ["ZIP", "ward"])
    ['age', 'zip', 'ward']
    """
    names = column_names(quasi_identifiers, "quasi_identifiers")
    listed_names = {name.lower() for name in names}
    listed = {role: c for role, c in (others or {}).items() if isinstance(c, Sequence) and not isinstance(c, str)}
    roles = {n.lower(): role for role, columns in listed.items() for n in columns if isinstance(n, str)}
    for name in column_names(within, "within"):
        if name.lower() in roles:
            raise RoleError(
                f"within names {name!r}, which is given as {roles[name.lower()]}, too: a column of within is a "
                "quasi-identifier, and a column has one role."
            )
        if name.lower() not in listed_names:
            listed_names.add(name.lower())
            names.append(name)
    return names


def _one_of(name: str, value: object, allowed: Sequence[str]) -> None:
    if not isinstance(value, str):
        raise ParameterError(f"{name} must be one of {', '.join(allowed)}. Got a {type(value).__name__}.")
    if value not in allowed:
        raise ParameterError(
            f"{name} must be one of {', '.join(allowed)}. Got {value!r}.{did_you_mean(value, allowed)}"
        )


def named_kinds(output: object, columns: Sequence[str]) -> dict[str, str]:
    """Return the kinds that are given by column, or none if one kind is given for all. Unknown names are an error.

    Examples
    --------
    >>> named_kinds({"AGE": "bounds"}, ["age", "zip"]), named_kinds("bounds", ["age", "zip"])
    ({'age': 'bounds'}, {})
    """
    if not isinstance(output, Mapping):
        _one_of("output", output, KINDS)
        return {}
    lowered = {c.lower(): c for c in columns}
    chosen = {}
    for name, kind in output.items():
        match = lowered.get(str(name).lower())
        if match is None:
            raise ParameterError(
                f"output names {name!r}, which is no quasi-identifier.{did_you_mean(str(name), columns)}"
            )
        _one_of(f"output of {match!r}", kind, KINDS)
        chosen[match] = kind
    return chosen


def _fits(type_name: str, kind: str) -> bool:
    if kind not in MEASURED:
        return True
    if not has_distance(type_name):
        return False
    return kind != "geometric_mean" or ColumnType.parse(type_name).family in ("integer", "decimal", "float")


def _require_fit(attribute: Attribute, kind: str, within: Sequence[str]) -> None:
    if not _fits(attribute.type, kind):
        wanted = "numbers above 0" if kind == "geometric_mean" else "numbers, dates or times"
        raise ParameterError(
            f"output={kind!r} needs {wanted}, and {attribute.name!r} is {attribute.type.split('(')[0]}."
        )
    if kind != "interval" and attribute.name in within:
        raise ParameterError(f"{attribute.name!r} is in within, so it is published as it is: it has no other output.")


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
    given: Mapping[str, Any] | str, roles: Roles, engine: Engine, base: Path | None
) -> dict[str, Hierarchy | None]:
    names = [a.name for a in roles.quasi_identifiers]
    if isinstance(given, str) and given == AUTO:
        given = dict.fromkeys(names, AUTO)
    if not isinstance(given, Mapping):
        got = repr(given) if isinstance(given, str) else f"a {type(given).__name__}"
        raise ParameterError(f"hierarchies must map columns to hierarchies, or be 'auto'. Got {got}.")
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
