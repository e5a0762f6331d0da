"""Names for models, algorithms and metrics: one file, one registration, third parties by entry point."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import walk_packages
from typing import Any, Generic, TypeVar

from duckanon.errors import ParameterError, did_you_mean

T = TypeVar("T")


class Registry(Generic[T]):
    """A named collection of classes.

    Built-in members register when their module is imported; ``get`` and iteration import every module of the package
    first, and then what other distributions offer under the entry point group ``duckanon.<kind>``.
    """

    def __init__(self, kind: str, package: str, group: str | None = None) -> None:
        """``package`` holds our own members, the entry points of ``group``, by default of the same name, all others."""
        self.kind = kind
        self._package = package
        self._group = group or package
        self._members: dict[str, type[T]] = {}
        self._loaded = False

    def register(self, name: str) -> Callable[[type[T]], type[T]]:
        """Class decorator: make the class known under ``name``."""

        def add(member: type[T]) -> type[T]:
            registered = self._members.get(name)
            if registered is not None and registered is not member:
                raise ParameterError(f"The {self.kind} name {name!r} is registered twice.")
            self._members[name] = member
            member.name = name  # type: ignore[attr-defined]
            return member

        return add

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        package = import_module(self._package)
        for module in walk_packages(package.__path__, f"{self._package}."):
            import_module(module.name)
        for entry in entry_points(group=self._group):
            self.register(entry.name)(entry.load())

    def get(self, name: str) -> type[T]:
        """Return the class registered under ``name``; an unknown name is a ParameterError with a suggestion."""
        self._load()
        try:
            return self._members[name]
        except KeyError:
            names = ", ".join(sorted(self._members))
            raise ParameterError(
                f"Unknown {self.kind} {name!r}.{did_you_mean(name, self._members)} Known: {names}."
            ) from None

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(sorted(self._members))

    def __contains__(self, name: object) -> bool:
        self._load()
        return name in self._members


_WORDS = {"true": True, "false": False, "null": None}


def parse_call(text: str, hint: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Return name, positional and named arguments of a call with literal arguments; nothing is evaluated.

    Examples
    --------
    >>> parse_call("optimal(metric=precision)", "")
    ('optimal', [], {'metric': 'precision'})
    >>> parse_call("mondrian(relaxed=true)", "")
    ('mondrian', [], {'relaxed': True})
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        if isinstance(tree, ast.Name):
            return tree.id, [], {}
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            named = {str(k.arg): _literal(k.value) for k in tree.keywords if k.arg is not None}
            if len(named) == len(tree.keywords):
                return tree.func.id, [_literal(a) for a in tree.args], named
    except (SyntaxError, TypeError, ValueError, MemoryError, RecursionError):
        pass
    raise ParameterError(hint)


def _literal(node: ast.expr) -> Any:
    """Return a constant; a bare word is taken as text, so that names need no quotes, unless it is one in SQL."""
    if isinstance(node, ast.Name):
        return _WORDS.get(node.id.lower(), node.id)
    return ast.literal_eval(node)


def make_from(registry: Registry[T], name: str, positional: Sequence[Any], named: Mapping[str, Any]) -> T:
    """Return a member made with these parameters; whatever does not fit is a ParameterError that says what does."""
    kind = registry.get(name)
    parameters = fields(kind)  # type: ignore[arg-type]
    names = [f.name for f in parameters]
    if len(positional) > len(names):
        raise ParameterError(f"{name} takes {', '.join(names) or 'no parameters'}. Got {len(positional)} values.")
    given = dict(zip(names, positional, strict=False))
    for key, value in named.items():
        if key not in names:
            takes = f"It takes {', '.join(names)}." if names else "It takes none."
            raise ParameterError(f"{name} has no parameter {key!r}.{did_you_mean(key, names)} {takes}")
        if key in given:
            raise ParameterError(f"{name}: {key} is given twice.")
        given[key] = value
    missing = [f.name for f in parameters if f.default is f.default_factory and f.name not in given]
    if missing:
        example = f"{name}({', '.join(f'{key}=...' for key in names)})"
        raise ParameterError(f"The {registry.kind} {name!r} needs {', '.join(missing)}: write it as {example}.")
    return kind(**given)
