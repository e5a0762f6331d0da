"""Bound on the highest reidentification risk (El Emam and Dankar 2008)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckanon.models.base import ROUNDING, Bound, Groups, Model, Traits, models, require_number

if TYPE_CHECKING:
    from duckanon.models.base import Floats


@models.register("maximum_reidentification_risk")
@dataclass(frozen=True)
class MaximumReidentificationRisk(Model):
    """The risk of reidentification of every member, 1 / size of the class, is at most the threshold.

    The same as k-anonymity with k = 1 / threshold, rounded up, and the same limits. The risk is the prosecutor's, who
    knows the quasi-identifiers and that the person is in the data.

    Parameters
    ----------
    threshold : float
        The largest probability, above 0 and at most 1.

    References
    ----------
    K. El Emam and F. Dankar, Protecting privacy using k-anonymity, 2008.

    Examples
    --------
    >>> MaximumReidentificationRisk(0.2).describe()
    'the highest risk of reidentification (1 / size of the class) is at most 0.2'
    """

    threshold: float
    summary = "the highest reidentification risk, 1 / size of the class, is at most the threshold"
    bounds = (Bound("threshold", "at most"),)

    def __post_init__(self) -> None:
        owner = "MaximumReidentificationRisk"
        object.__setattr__(self, "threshold", require_number(owner, "threshold", self.threshold, 0, 1, above=True))

    @property
    def traits(self) -> Traits:
        # 1 / 0.2 is 5 and not a little more: what rounding added must not ask for one member more.
        least = math.ceil((1 - ROUNDING) / self.threshold)
        return Traits(monotone=True, min_class_size=least, size_only=True, absorbing=True)

    def describe(self, unit: str = "rows") -> str:
        return f"the highest risk of reidentification (1 / size of the class) is at most {self.threshold:g}"

    def values(self, groups: Groups) -> Floats:
        return 1 / groups.sizes
