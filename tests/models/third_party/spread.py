"""A bound on how much more frequent the top value of a class is there than in the whole table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from duckanon.models import Model, Traits
from duckanon.models.base import Bound, Groups


@dataclass(frozen=True)
class Spread(Model):
    """In every class the share of no sensitive value exceeds that in the whole table by more than ``most``.

    References
    ----------
    Made up for tests.
    """

    most: float
    sensitive: str | None = None
    summary: ClassVar[str] = "the share of no sensitive value in a class exceeds that in the table by more than most"
    bounds: ClassVar[tuple[Bound, ...]] = (Bound("most", "at most"),)

    @property
    def traits(self) -> Traits:
        return Traits(monotone=True, min_class_size=1)

    def describe(self, unit: str = "rows") -> str:
        return f"no value of {self.sensitive} has a share that exceeds that in the whole table by {self.most:g}"

    def values(self, groups: Groups) -> Any:
        h = groups.histograms
        assert h is not None
        more = h.counts / np.repeat(groups.rows, np.diff(h.starts)) - h.totals[h.codes] / h.totals.sum()
        return np.array([more[a:b].max(initial=-1) for a, b in zip(h.starts, h.starts[1:], strict=False)])
