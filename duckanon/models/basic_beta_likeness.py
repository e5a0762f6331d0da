"""Basic beta-likeness (Cao and Karras 2012)."""

from __future__ import annotations

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


@models.register("basic_beta_likeness")
@dataclass(frozen=True)
class BasicBetaLikeness(Model):
    """No sensitive value is more than 1 + beta times as frequent in a class as in the whole table.

    Bounds the relative gain in confidence for every value, the rare ones too, which t-closeness does not. Does not
    bound how much rarer a value may be in a class, nor the confidence itself: a value that half of the table has may
    fill a class at beta = 1; the enhanced form bounds that. Does not protect against being singled out.

    Parameters
    ----------
    beta : float
        The largest relative gain, above 0.
    sensitive : str, optional
        The column; every sensitive column by default.

    References
    ----------
    J. Cao and P. Karras, Publishing microdata with a robust privacy guarantee, 2012.

    Examples
    --------
    >>> BasicBetaLikeness(1, "disease").describe()
    "no value of 'disease' is more than 2 times as frequent in a class as in the whole table"
    """

    beta: float
    sensitive: str | None = None
    summary = "no sensitive value is more than 1 + beta times as frequent in a class as in the table"
    bounds = (Bound("beta", "at most"),)
    kernel_rule = ("BASIC_BETA", "beta")
    counts_members = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", require_number(type(self).__name__, "beta", self.beta, 0, above=True))
        require_column(type(self).__name__, self.sensitive)

    @property
    def traits(self) -> Traits:
        # A value's share in a merged class is at most the larger of its shares.
        return Traits(monotone=True, min_class_size=1)

    def describe(self, unit: str = "rows") -> str:
        often = f"more than {1 + self.beta:g} times as frequent in a class as in the whole table"
        return f"no value of {column_words(self.sensitive)} is {often}"

    def limit(self, parameter: str) -> float:
        return (1 + self.beta) * (1 + ROUNDING)

    def values(self, groups: Groups) -> Floats:
        h = histograms_of(groups)
        return largest_value(h, gains(h))

    @classmethod
    def strongest(cls, bound: Bound, extremes: Extremes) -> float | None:
        gain = super().strongest(bound, extremes)
        return None if gain is None else max(gain - 1, ROUNDING)
