"""The form of a property: one number for each row of the original."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from duckanon.registry import Registry

if TYPE_CHECKING:
    from duckanon.comparison.indices import Vector
    from duckanon.release import Release


class Property(ABC):
    """A number for each row; higher is better."""

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    aligned: ClassVar[bool] = False
    """Whether two releases of one source list the same row at the same place. A sorted vector does not."""

    @abstractmethod
    def vector(self, release: Release) -> Vector:
        """Return the property of every row of the original, suppressed ones included."""


properties: Registry[Property] = Registry("property", "duckanon.comparison.properties")
