"""Models as text or mapping, for SQL, job files and the command line: ``l_diversity(l=3, sensitive='disease')``."""

from __future__ import annotations

from collections.abc import Mapping

from duckanon.errors import ParameterError
from duckanon.models.base import Model, models
from duckanon.registry import make_from, parse_call

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


__all__ = ["parse_model"]
