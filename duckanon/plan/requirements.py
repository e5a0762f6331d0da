"""Privacy requirements: models given by keyword, object, text or mapping, one for each sensitive column."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from duckanon.encoding.dictionaries import published_type
from duckanon.errors import ParameterError, RoleError, UnsupportedError, did_you_mean
from duckanon.models.base import Model, models
from duckanon.models.text import parse_model
from duckanon.plan.roles import Attribute, Role, Roles

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
