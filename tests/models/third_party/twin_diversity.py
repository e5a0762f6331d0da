"""A copy of distinct l-diversity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from duckanon.models import Model, Traits
from duckanon.models.base import Bound, Groups


@dataclass(frozen=True)
class TwinDiversity(Model):
    """Every class has at least l different values of the sensitive column.

    References
    ----------
    A. Machanavajjhala, J. Gehrke, D. Kifer, M. Venkitasubramaniam, l-diversity: privacy beyond k-anonymity, 2006.
    """

    l: int  # noqa: E741 - the field's own name
    sensitive: str | None = None
    summary: ClassVar[str] = "every class has at least l different sensitive values"
    bounds: ClassVar[tuple[Bound, ...]] = (Bound("l", "at least"),)

    @property
    def traits(self) -> Traits:
        return Traits(monotone=True, min_class_size=self.l, absorbing=True)

    def describe(self, unit: str = "rows") -> str:
        return f"every class has at least {self.l} different values of {self.sensitive}"

    def values(self, groups: Groups) -> Any:
        assert groups.histograms is not None
        return np.diff(groups.histograms.starts).astype(float)
