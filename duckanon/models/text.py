"""Models as text or mapping, for SQL, job files and the command line: ``l_diversity(l=3, sensitive='disease')``."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from duckanon.errors import ParameterError, did_you_mean
from duckanon.models.base import Model, models


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
        name, positional, named = _call(spec)
    elif isinstance(spec, Mapping):
        named = {str(key): value for key, value in spec.items()}
        name, positional = str(named.pop("model", "")), []
        if not name:
            raise ParameterError("A model given as a mapping needs the key 'model' with its name.")
    else:
        raise ParameterError(f"A model is an object, a text or a mapping. Got a {type(spec).__name__}.")
    return _made(name, positional, named)


def _made(name: str, positional: list[Any], named: Mapping[str, Any]) -> Model:
    kind = models.get(name)
    known = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    if len(positional) > len(known):
        raise ParameterError(f"{name} takes {', '.join(known)}. Got {len(positional)} values.")
    given = dict(zip(known, positional, strict=False))
    for key, value in named.items():
        if key not in known:
            hint = did_you_mean(key, known)
            raise ParameterError(f"{name} has no parameter {key!r}.{hint} It takes {', '.join(known)}.")
        if key in given:
            raise ParameterError(f"{name}: {key} is given twice.")
        given[key] = value
    required = [f.name for f in fields(kind) if f.default is f.default_factory]  # type: ignore[arg-type]
    missing = [key for key in required if key not in given]
    if missing:
        raise ParameterError(f"The model {name!r} needs {', '.join(missing)}: write it as {_example(name, known)}.")
    return kind(**given)


def _example(name: str, known: list[str]) -> str:
    return f"{name}({', '.join(f'{key}=...' for key in known)})"


def _call(text: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Return name, positional and named arguments of a call with literal arguments; nothing is evaluated."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        if isinstance(tree, ast.Name):
            return tree.id, [], {}
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            named = {str(k.arg): _literal(k.value) for k in tree.keywords if k.arg is not None}
            if len(named) == len(tree.keywords):
                return tree.func.id, [_literal(a) for a in tree.args], named
    except (SyntaxError, ValueError):
        pass
    raise ParameterError(
        "A model as text is its name with its parameters, such as k_anonymity(k=5) or "
        "l_diversity(l=3, sensitive='diagnosis')."
    )


def _literal(node: ast.expr) -> Any:
    """Return a constant; a bare word is taken as text, so that column names need no quotes."""
    return node.id if isinstance(node, ast.Name) else ast.literal_eval(node)


__all__ = ["parse_model"]
