"""The form of a privacy model: a frozen, validated object and a statement that returns the violating classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, fields
from numbers import Integral
from typing import Any, ClassVar

from duckanon.errors import ParameterError
from duckanon.registry import Registry


@dataclass(frozen=True)
class Traits:
    """What a search may assume of a model.

    Parameters
    ----------
    monotone : bool
        A class made by merging classes that satisfy the model satisfies it.
    min_class_size : int
        No smaller class can satisfy the model.
    size_only : bool
        The model holds exactly for the classes of at least ``min_class_size``.
    """

    monotone: bool
    min_class_size: int
    size_only: bool = False


@dataclass(frozen=True)
class CheckResult:
    """What a check of one model found. ``classes`` and the violating ones are counted, never named."""

    model: str
    parameters: dict[str, Any]
    holds: bool
    classes: int
    violating_classes: int
    violating_rows: int
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        return asdict(self)


class Model(ABC):
    """A promise about every equivalence class.

    A subclass is a frozen dataclass registered under a name; ``sql/models/<name>.sql`` returns the violating classes of
    the relations it reads, so that no rows mean that the promise holds.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""

    @property
    @abstractmethod
    def traits(self) -> Traits:
        """What a search may assume."""

    @abstractmethod
    def describe(self, unit: str = "rows") -> str:
        """Return the promise as a sentence; ``unit`` is what is counted, rows or persons."""

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]


models: Registry[Model] = Registry("model", "duckanon.models")


def require_int(owner: str, name: str, value: object, minimum: int) -> int:
    """Return ``value`` as an int; raise a ParameterError unless it is a whole number of at least ``minimum``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        shown = value if isinstance(value, int | float) else type(value).__name__
        raise ParameterError(f"The {name!r} parameter of {owner} must be an int >= {minimum}. Got {shown}.")
    return int(value)
