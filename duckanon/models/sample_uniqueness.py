"""Bound on the share of unique members (Dalenius 1986)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckanon.models.arrays import smallest_first
from duckanon.models.base import ROUNDING, Bound, Groups, Model, Traits, models, require_number

if TYPE_CHECKING:
    from duckanon.models.base import Booleans, Integers


@models.register("sample_uniqueness")
@dataclass(frozen=True)
class SampleUniqueness(Model):
    """At most this share of the members of the release is alone in its class.

    Bounds how many can be singled out with certainty by an adversary who knows that they are in the data. Those who
    remain unique are not protected, nor is a class of two. This is a requirement on the table. Where it is violated,
    the classes of one member are called violating.

    Parameters
    ----------
    threshold : float
        The largest share, from 0 to 1.

    References
    ----------
    T. Dalenius, Finding a needle in a haystack, or identifying anonymous census records, 1986.

    Examples
    --------
    >>> SampleUniqueness(0.01).describe("persons")
    'at most 0.01 of the persons are alone in their class'
    """

    threshold: float
    summary = "the share of members that are alone in their class is at most the threshold"
    bounds = (Bound("threshold", "at most"),)

    def __post_init__(self) -> None:
        owner = "SampleUniqueness"
        object.__setattr__(self, "threshold", require_number(owner, "threshold", self.threshold, 0, 1))

    @property
    def traits(self) -> Traits:
        return Traits(monotone=True, min_class_size=1, absorbing=True, whole_table=True)

    def describe(self, unit: str = "rows") -> str:
        return f"at most {self.threshold:g} of the {unit} are alone in their class"

    def satisfied(self, groups: Groups) -> Booleans:
        import numpy as np

        def holds(ordered: Integers, members: Integers) -> Booleans:
            single = np.count_nonzero(ordered == 1)
            alone = np.maximum(single - np.arange(len(ordered) + 1), 0)
            return np.asarray(alone <= self.threshold * members * (1 + ROUNDING))

        return smallest_first(groups.sizes, holds)
