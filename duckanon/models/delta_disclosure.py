"""delta-disclosure privacy (Brickell and Shmatikov 2008)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckanon.models.arrays import column_words, gains, histograms_of, largest_value
from duckanon.models.base import (
    ROUNDING,
    Bound,
    Extremes,
    Groups,
    Model,
    Traits,
    models,
    require_column,
    require_number,
)

if TYPE_CHECKING:
    from duckanon.models.base import Floats


@models.register("delta_disclosure")
@dataclass(frozen=True)
class DeltaDisclosure(Model):
    """Every sensitive value of a class is nearly as frequent in it as in the whole table: abs(log(q / p)) < delta.

    Bounds what a class reveals beyond the whole table, in both directions and for every value: the strictest model of
    this kind. Only values that occur in the class are looked at, as ARX and pyCANON do; by the letter of the definition
    every value would have to occur in every class. So a class shows which values its members do not have, and
    merging two classes that hold may give one that does not. Does not protect against being singled out. The comparison
    is strict: equality does not hold.

    Parameters
    ----------
    delta : float
        Above 0.
    sensitive : str, optional
        The column; every sensitive column by default.
    base : float
        Of the logarithm, above 1: 2 as in ARX by default; pyCANON takes e.

    References
    ----------
    J. Brickell and V. Shmatikov, The cost of privacy: destruction of data-mining utility in anonymized data publishing,
    2008.

    Examples
    --------
    >>> DeltaDisclosure(1, "disease").describe()
    "every value of 'disease' in a class is less than 2 times as frequent or as rare there as in the whole table"
    """

    delta: float
    sensitive: str | None = None
    base: float = 2.0
    summary = "the frequency of sensitive values in a class differs from the table's by less than delta"
    bounds = (Bound("delta", "below"),)
    kernel_rule = ("DELTA", "nats")
    counts_members = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", require_number("DeltaDisclosure", "delta", self.delta, 0, above=True))
        object.__setattr__(self, "base", require_number("DeltaDisclosure", "base", self.base, 1, above=True))
        require_column("DeltaDisclosure", self.sensitive)

    @property
    def traits(self) -> Traits:
        # A value of one class may become too rare in the union with a class that lacks it.
        return Traits(monotone=False, min_class_size=1)

    def describe(self, unit: str = "rows") -> str:
        column = column_words(self.sensitive)
        try:
            times = self.base**self.delta
        except OverflowError:
            times = math.inf
        return (
            f"every value of {column} in a class is less than {times:g} times as frequent or as rare there "
            "as in the whole table"
        )

    @property
    def nats(self) -> float:
        """Delta to base e."""
        return self.delta * math.log(self.base)

    def limit(self, parameter: str) -> float:
        return self.nats * (1 - ROUNDING)

    def values(self, groups: Groups) -> Floats:
        import numpy as np

        h = histograms_of(groups)
        return largest_value(h, np.abs(np.log(gains(h))))

    @classmethod
    def strongest(cls, bound: Bound, extremes: Extremes) -> float | None:
        distance = super().strongest(bound, extremes)
        return None if distance is None else max(distance / math.log(2), ROUNDING)
