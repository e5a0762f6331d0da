"""Bound on the average reidentification risk (El Emam and Dankar 2008)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckanon.models.arrays import smallest_first
from duckanon.models.base import ROUNDING, Bound, Groups, Model, Traits, models, require_number

if TYPE_CHECKING:
    from duckanon.models.base import Booleans, Integers


@models.register("average_reidentification_risk")
@dataclass(frozen=True)
class AverageReidentificationRisk(Model):
    """Members of the release are reidentified with at most this probability on average: classes / members.

    Bounds how many members an adversary reidentifies who links everybody. Does not protect the single member: a few may
    be unique as long as the others make up for it. This is a requirement on the table. Where it is violated, the
    classes whose own risk is above the threshold are called violating.

    Parameters
    ----------
    threshold : float
        The largest average probability, above 0 and at most 1.

    References
    ----------
    K. El Emam and F. Dankar, Protecting privacy using k-anonymity, 2008.

    Examples
    --------
    >>> AverageReidentificationRisk(0.05).describe()
    'the average risk of reidentification (the mean of 1 / size of the class) is at most 0.05'
    """

    threshold: float
    summary = "the average reidentification risk, classes / members, is at most the threshold"
    bounds = (Bound("threshold", "at most"),)

    def __post_init__(self) -> None:
        owner = "AverageReidentificationRisk"
        object.__setattr__(self, "threshold", require_number(owner, "threshold", self.threshold, 0, 1, above=True))

    @property
    def traits(self) -> Traits:
        # Merging classes leaves fewer of them with the same members: no more rows have to be left out than before.
        return Traits(monotone=True, min_class_size=1, absorbing=True, whole_table=True)

    def describe(self, unit: str = "rows") -> str:
        return f"the average risk of reidentification (the mean of 1 / size of the class) is at most {self.threshold:g}"

    def satisfied(self, groups: Groups) -> Booleans:
        import numpy as np

        def holds(ordered: Integers, members: Integers) -> Booleans:
            classes = np.arange(len(ordered), -1, -1)
            return classes <= self.threshold * members * (1 + ROUNDING)

        return smallest_first(groups.sizes, holds)
