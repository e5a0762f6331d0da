"""A requirement on the whole table that no class violates by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from duckanon.models import Model, Traits
from duckanon.models.base import Bound, Groups


@dataclass(frozen=True)
class TableOnly(Model):
    """The table has at most ``most`` classes.

    References
    ----------
    Made up for tests.
    """

    most: int
    summary: ClassVar[str] = "the table has at most most classes"
    bounds: ClassVar[tuple[Bound, ...]] = (Bound("most", "at most"),)

    @property
    def traits(self) -> Traits:
        return Traits(monotone=True, min_class_size=1, whole_table=True)

    def describe(self, unit: str = "rows") -> str:
        return f"the table has at most {self.most} classes"

    def satisfied(self, groups: Groups) -> Any:
        import numpy as np

        return np.ones(len(groups.sizes), dtype=np.bool_)
