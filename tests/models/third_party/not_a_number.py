"""A model whose statement has no number for any class: 0 divided by 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from duckanon.models import Model, Traits
from duckanon.models.base import Bound, Groups


@dataclass(frozen=True)
class NotANumber(Model):
    """In every class something is at least ``least``, but what it is cannot be computed.

    References
    ----------
    Made up for tests.
    """

    least: float
    summary: ClassVar[str] = "in every class a value that cannot be computed is at least least"
    bounds: ClassVar[tuple[Bound, ...]] = (Bound("least", "at least"),)

    @property
    def traits(self) -> Traits:
        return Traits(monotone=False, min_class_size=1)

    def describe(self, unit: str = "rows") -> str:
        return f"a value that cannot be computed is at least {self.least:g}"

    def values(self, groups: Groups) -> Any:
        return np.ones(len(groups.sizes))
