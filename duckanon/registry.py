"""Names for models, algorithms and metrics: one file, one registration, third parties by entry point."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Generic, TypeVar

from duckanon.errors import ParameterError, did_you_mean

T = TypeVar("T")


class Registry(Generic[T]):
    """A named collection of classes.

    Built-in members register when their module is imported; ``get`` and iteration import every module of the package
    first, and then what other distributions offer under the entry point group ``duckanon.<kind>``.
    """

    def __init__(self, kind: str, package: str) -> None:
        self.kind = kind
        self._package = package
        self._members: dict[str, type[T]] = {}
        self._loaded = False

    def register(self, name: str) -> Callable[[type[T]], type[T]]:
        """Class decorator: make the class known under ``name``."""

        def add(member: type[T]) -> type[T]:
            known = self._members.get(name)
            if known is not None and known is not member:
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
        for module in iter_modules(package.__path__):
            import_module(f"{self._package}.{module.name}")
        for entry in entry_points(group=self._package):
            self.register(entry.name)(entry.load())

    def get(self, name: str) -> type[T]:
        """Return the class registered under ``name``; an unknown name is a ParameterError with a suggestion."""
        self._load()
        try:
            return self._members[name]
        except KeyError:
            known = ", ".join(sorted(self._members))
            raise ParameterError(
                f"Unknown {self.kind} {name!r}.{did_you_mean(name, self._members)} Known: {known}."
            ) from None

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(sorted(self._members))

    def __contains__(self, name: object) -> bool:
        self._load()
        return name in self._members
