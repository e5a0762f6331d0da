"""Everything resolved and validated before data is touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.algorithms.base import Algorithm, algorithms
from duckanon.encode import Dictionary, canonical, dictionary_query, frequency_query
from duckanon.errors import ParameterError, RoleError, UnsupportedError, did_you_mean
from duckanon.hierarchy import Hierarchy, resolve
from duckanon.models.base import Model
from duckanon.models.base import models as model_registry
from duckanon.progress import Listener, Progress
from duckanon.roles import Attribute, Roles
from duckanon.source import Relation, Source
from duckanon.sqlgen.files import load
from duckanon.sqlgen.relations import DIALECT, col

if TYPE_CHECKING:
    from pathlib import Path

    from duckanon.engine.base import Engine


@dataclass(frozen=True)
class Plan:
    """What will be done: the source, the roles, the promise and the way to it.

    Made by ``duckanon.plan``, or inside ``duckanon.anonymize``; SQL, Python and job files all end here.
    """

    relation: Relation
    roles: Roles
    hierarchies: dict[str, Hierarchy | None]
    models: tuple[Model, ...]
    algorithm: Algorithm
    suppression_limit: float
    on_unknown: str
    seed: int | None

    @property
    def unit(self) -> str:
        """What k counts: persons where there is an entity key, else rows."""
        return "persons" if self.roles.entity_key is not None else "rows"

    @classmethod
    def make(
        cls,
        data: object,
        engine: Engine,
        *,
        quasi_identifiers: Sequence[str],
        sensitive: Sequence[str] = (),
        identifiers: Sequence[str] = (),
        insensitive: Sequence[str] = (),
        unlisted: str = "drop",
        entity_key: str | None = None,
        hierarchies: Mapping[str, Any] | None = None,
        k: int | None = None,
        l: int | None = None,  # noqa: E741 - the field's own name
        t: float | None = None,
        models: Sequence[Model | str] = (),
        algorithm: str | Algorithm = "datafly",
        suppression_limit: float = 0.0,
        on_unknown: str = "error",
        seed: int | None = None,
        base: Path | None = None,
        read: bool = True,
    ) -> Plan:
        """Resolve every name and validate every parameter; with ``read=False`` only the schema is looked at."""
        promised = resolve_models(k=k, l=l, t=t, models=models)
        chosen = resolve_algorithm(algorithm)
        for model in promised:
            if not chosen.supports(model):
                raise UnsupportedError(f"The algorithm {chosen.name} cannot enforce {model.name}.")
        limit = _fraction("suppression_limit", suppression_limit)
        if on_unknown not in ("error", "top"):
            raise ParameterError(f"on_unknown must be 'error' or 'top'. Got {on_unknown!r}.")
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
            raise ParameterError("seed must be an int.")
        relation = Source.of(data).open(engine, read=read)
        roles = Roles.resolve(
            relation.columns,
            quasi_identifiers=quasi_identifiers,
            sensitive=sensitive,
            identifiers=identifiers,
            insensitive=insensitive,
            entity_key=entity_key,
            unlisted=unlisted,
        )
        resolved = _resolve_hierarchies(hierarchies or {}, roles, engine, base)
        return cls(relation, roles, resolved, promised, chosen, limit, on_unknown, seed)

    @classmethod
    def of(cls, data: object, *, connection: Any = None, **parameters: Any) -> Plan:
        """Return what ``anonymize`` would do with the same parameters; only the schema of the data is touched."""
        engine = open_engine(connection)
        try:
            return cls.make(data, engine, read=False, **parameters)
        finally:
            engine.close()

    def expression(self, attribute: Attribute) -> exp.Expr:
        """Return a column's value as it is counted and published."""
        return canonical(col(attribute.name), attribute.type, self.relation.collated)

    @property
    def entity(self) -> exp.Expr | None:
        """The value that tells persons apart."""
        key = self.roles.entity_key
        if key is None:
            return None
        return canonical(col(key), self.relation.type_of(key), self.relation.collated)

    def statements(self) -> list[tuple[str, str]]:
        """Return the named steps with their SQL; table names are those that a run would choose anew."""
        source = self.relation.query
        steps = []
        dictionaries = []
        for attribute in self.roles.quasi_identifiers:
            expression = self.expression(attribute)
            steps.append((f"values of {attribute.name}", dictionary_query(source, expression)))
            dictionaries.append(Dictionary(attribute.name, expression, f"values_{attribute.name}", 2**32))
        steps.append(("frequency table", frequency_query(source, dictionaries, self.entity)))
        named_steps = [(name, query.sql(dialect=DIALECT, pretty=True)) for name, query in steps]
        checks = [
            (f"gate: {m.name}", load(f"models/{m.name}").tree().sql(dialect=DIALECT, pretty=True)) for m in self.models
        ]
        return named_steps + checks

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return {
            "source": {"kind": self.relation.kind, "name": self.relation.name},
            "roles": self.roles.to_dict(),
            "unit": self.unit,
            "promise": [
                {"model": m.name, "parameters": m.parameters(), "text": m.describe(self.unit)} for m in self.models
            ],
            "algorithm": {"name": self.algorithm.name, "parameters": self.algorithm.parameters()},
            "suppression_limit": self.suppression_limit,
            "hierarchies": {
                name: h.origin if h is not None else "none given: one will be made"
                for name, h in self.hierarchies.items()
            },
            "published": [a.name for a in self.roles.published],
            "statements": [{"step": step, "sql": sql} for step, sql in self.statements()],
        }

    def explain(self) -> str:
        """Return the plan in words and SQL."""
        plan = self.to_dict()
        roles = plan["roles"]
        lines = [
            f"source: {plan['source']['kind']} {plan['source']['name']}",
            *(f"promise: {p['text']} ({p['model']})" for p in plan["promise"]),
            f"algorithm: {self.algorithm.name}, at most {self.suppression_limit:.2%} of the rows suppressed",
            f"published: {', '.join(plan['published'])}",
            f"never published: {', '.join(_hidden(roles)) or 'nothing'}",
            *(f"hierarchy of {name}: {origin}" for name, origin in plan["hierarchies"].items()),
            "steps: " + " -> ".join(["encode", "search", "recode", "gate", "write"]),
        ]
        for step, sql in self.statements():
            lines += ["", f"-- {step}", f"{sql};"]
        return "\n".join(lines)


def open_engine(connection: Any = None, progress: Listener | None = None, **settings: Any) -> Engine:
    """Return a DuckDB engine on a cursor of ``connection``, or on a private database."""
    from duckanon.engine.duckdb import DuckDBEngine

    if progress is not None and not callable(progress):
        raise ParameterError(f"progress must be callable. Got a {type(progress).__name__}.")
    return DuckDBEngine(connection, progress=Progress(progress), **settings)


def _hidden(roles: dict[str, Any]) -> list[str]:
    key = [roles["entity_key"]] if roles["entity_key"] and roles["entity_key"] not in roles["identifiers"] else []
    return [*roles["identifiers"], *key, *roles["dropped"]]


def resolve_models(
    *,
    k: int | None,
    l: int | None,  # noqa: E741 - the field's own name
    t: float | None,
    models: Sequence[Model | str],
) -> tuple[Model, ...]:
    """Return the models that were asked for; asking for none is an error."""
    found: list[Model] = []
    if isinstance(models, str | Model):
        raise ParameterError("models must be a list, such as [KAnonymity(5)].")
    if k is not None:
        found.append(model_registry.get("k_anonymity")(k=k))  # type: ignore[call-arg]
    for keyword, value, name in (("l", l, "l_diversity"), ("t", t, "t_closeness")):
        if value is not None:
            if name not in model_registry:
                raise UnsupportedError(
                    f"{keyword}=...: this version has no model {name}. It has: {', '.join(model_registry)}."
                )
            found.append(model_registry.get(name)(value))  # type: ignore[call-arg]
    for model in models:
        if isinstance(model, Model):
            found.append(model)
        elif isinstance(model, str) and model in model_registry:
            raise ParameterError(f"The model {model!r} needs its parameters: pass an object, such as KAnonymity(5).")
        else:
            name = model if isinstance(model, str) else type(model).__name__
            model_registry.get(name)
    if not found:
        raise ParameterError("Nothing is promised: give k=..., or models=[...].")
    return tuple(found)


def resolve_algorithm(algorithm: str | Algorithm) -> Algorithm:
    """Return the algorithm of that name with its defaults, or the object itself."""
    if isinstance(algorithm, Algorithm):
        return algorithm
    if not isinstance(algorithm, str):
        raise ParameterError(f"algorithm must be a name or an Algorithm. Got a {type(algorithm).__name__}.")
    return algorithms.get(algorithm)()


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
    lowered = {n.lower(): n for n in names}
    resolved: dict[str, Hierarchy | None] = dict.fromkeys(names)
    for name, spec in given.items():
        column = name if name in resolved else lowered.get(name.lower())
        if column is None:
            raise RoleError(
                f"A hierarchy is given for {name!r}, which is no quasi-identifier.{did_you_mean(name, names)}"
            )
        resolved[column] = resolve(spec, engine, base)
    return resolved
