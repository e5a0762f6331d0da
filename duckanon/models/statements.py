"""The statement of a model: the classes that violate it, and the values of all classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from duckanon.engine.sql.axes import choose, is_null
from duckanon.engine.sql.files import SqlFile, load_of
from duckanon.engine.sql.relations import cast, col, number, param, subquery
from duckanon.models.base import Extremes, Model, models

if TYPE_CHECKING:
    from duckanon.engine.base import Engine

_OUT_OF_BOUNDS: dict[str, type[exp.Binary]] = {"at least": exp.LT, "at most": exp.GT, "below": exp.GTE}


def _is_nan(value: exp.Expr) -> exp.Expr:
    """Return whether a value is not a number: databases sort NaN above all numbers, so that it would be "at least"."""
    return exp.IsNan(this=cast(value, "DOUBLE"))


def statement_of(model: type[Model]) -> SqlFile:
    """Return the statement of a model: from ``sql/models``, or beside the module of another package."""
    return load_of("models", model)


def violations(model: Model, relations: Mapping[str, str] | None = None) -> tuple[exp.Query, dict[str, Any]]:
    """Return the query for the ``class_id`` and ``n`` of the classes that violate a model, and its parameters.

    ``relations`` are the tables that hold the relations; by default they have the same names.
    """
    file = statement_of(type(model))
    parameters = {name: getattr(model, name) for name in file.params}
    columns = ["value", "table_value"] if model.traits.whole_table else ["value"]
    broken = []
    for column in columns:
        out: list[exp.Expr] = [is_null(col(column)), _is_nan(col(column))]
        for bound in model.bounds:
            name = f"{bound.parameter}_limit"
            parameters[name] = model.limit(bound.parameter)
            out.append(_OUT_OF_BOUNDS[bound.comparison](this=col(column), expression=param(name)))
        broken.append(exp.or_(*out))
    values = subquery(file.bind({name: relations[name] if relations else name for name in file.reads}), "v")
    query = exp.select(col("class_id"), col("n")).from_(values)
    if not model.traits.whole_table:
        return query.where(*broken), parameters
    # If the table as a whole is out of bounds, but no class is, all classes violate the model.
    of_class, of_table = broken
    classes = exp.Window(this=exp.Sum(this=choose((of_class.copy(), number(1)), otherwise=number(0))))
    none = exp.EQ(this=classes, expression=number(0))
    return query.qualify(exp.and_(of_table, exp.or_(of_class, none))), parameters


def levels(
    engine: Engine, relations: Mapping[str, str], model: type[Model], sensitive: str | None = None
) -> dict[str, float | None] | None:
    """Return the strongest value of each bounded parameter that all classes satisfy; None where there are no classes.

    Other parameters of the statement are the ``level_parameters`` of the model.
    """
    file = statement_of(model)
    parameters: dict[str, Any] = {"sensitive": sensitive} if "sensitive" in file.params else {}
    for name, given in model.level_parameters:
        parameters[name] = given
        if isinstance(given, str):
            other = models.get(given)
            strongest = levels(engine, relations, other, sensitive) or {}
            parameters[name] = strongest.get(other.bounds[0].parameter)
    given_value = col("table_value" if "table_value" in file.returns else "value")
    value = choose((exp.not_(_is_nan(given_value)), given_value.copy()))
    values = subquery(file.bind({name: relations[name] for name in file.reads}), "v")
    counts = [exp.Count(this=exp.Star()), exp.Count(this=value)]
    query = exp.select(*counts, exp.Min(this=value.copy()), exp.Max(this=value.copy())).from_(values)
    extremes = Extremes(*engine.row(query, parameters))
    if not extremes.classes:
        return None
    return {bound.parameter: model.strongest(bound, extremes) for bound in model.bounds}


__all__ = ["levels", "statement_of", "violations"]
