"""Common checks of privacy models."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from duckanon.gate import check_models
from duckanon.models.base import Model, Traits, models
from duckanon.plan import open_engine
from duckanon.testing.common import make_relations, require, require_documented, require_frozen, require_statement

if TYPE_CHECKING:
    from duckanon.engine.base import Engine

_SAMPLES: dict[Any, Any] = {"int": 2, int: 2, "float": 0.5, float: 0.5}


def check_model(model: Model | type[Model]) -> None:
    """Raise an AssertionError unless a model keeps the rules of the house.

    Parameters
    ----------
    model : Model or subclass
        Of a class, an instance is made with 2 for int and 0.5 for float parameters; pass an instance where that is not
        allowed.

    Examples
    --------
    >>> from duckanon.models import KAnonymity
    >>> check_model(KAnonymity)
    """
    instance = _instance(model) if isinstance(model, type) else model
    kind = type(instance)
    require(isinstance(instance, Model), f"{kind.__name__} must derive from duckanon.models.Model.")
    require(models.get(instance.name) is kind, f"{kind.__name__} is not the model registered as {instance.name!r}.")
    require_documented(kind)
    require_frozen(instance)
    _check_words(instance)
    _check_traits(instance)
    file = require_statement("models", instance.name)
    require(file.returns[:2] == ("class_id", "n"), f"sql/models/{instance.name}.sql must return class_id and n first.")
    unknown = set(file.params) - set(instance.parameters())
    require(not unknown, f"sql/models/{instance.name}.sql has parameters that the model lacks: {sorted(unknown)}.")
    engine = open_engine()
    try:
        _check_statement(engine, instance)
    finally:
        engine.close()


def _instance(kind: type[Model]) -> Model:
    require(issubclass(kind, Model), f"{kind.__name__} must derive from duckanon.models.Model.")
    needed = [f for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]  # type: ignore[arg-type]
    unknown = [f.name for f in needed if f.type not in _SAMPLES]
    require(not unknown, f"Pass an instance of {kind.__name__}: no sample is known for {', '.join(unknown)}.")
    return kind(**{f.name: _SAMPLES[f.type] for f in needed})


def _check_words(model: Model) -> None:
    for unit in ("rows", "persons"):
        promise = model.describe(unit)
        name = type(model).__name__
        require(isinstance(promise, str) and promise, f"{name}.describe({unit!r}) must be a sentence.")
        require("\n" not in promise, f"{name}.describe({unit!r}) must be one line.")
        other = "persons" if unit == "rows" else "rows"
        require(other not in promise, f"{name}.describe({unit!r}) speaks of {other}.")


def _check_traits(model: Model) -> None:
    traits, name = model.traits, type(model).__name__
    require(isinstance(traits, Traits), f"{name}.traits must be a Traits.")
    require(
        isinstance(traits.min_class_size, int) and traits.min_class_size >= 1,
        f"{name}.traits.min_class_size must be an int >= 1.",
    )
    require(
        traits.monotone or not traits.size_only,
        f"{name} holds for every large enough class, so merging keeps it: size_only needs monotone.",
    )


def _check_statement(engine: Engine, model: Model) -> None:
    name, least = type(model).__name__, model.traits.min_class_size

    def violating(*classes: tuple[int, int, bool]) -> int:
        relations = make_relations(engine, {"classes": classes})
        (result,) = check_models(engine, relations["classes"], [model], "rows")
        require(result.holds == (result.violating_classes == 0), f"The check of {name} contradicts itself.")
        return result.violating_classes

    if set(require_statement("models", model.name).reads) != {"classes"}:
        return
    require(violating() == 0, f"{name} is violated by a table without classes.")
    if least > 1:
        require(violating((1, least - 1, False)) == 1, f"{name} accepts a class smaller than its min_class_size.")
        require(violating((1, least - 1, True)) == 0, f"{name} counts a suppressed class, which nobody publishes.")
    if model.traits.size_only:
        require(violating((1, least, False)) == 0, f"{name} is size_only and refuses a class of min_class_size.")
        mixed = [(i, size, False) for i, size in enumerate((least, 2 * least, max(least - 1, 1)), 1)]
        require(violating(*mixed) == int(least > 1), f"{name} must name the small class, and no other.")
