"""Basic beta-likeness (Cao and Karras 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from duckanon.models.arrays import ROUNDING, column_words, every, histograms_of, shares
from duckanon.models.base import Groups, Model, Traits, models, require_column, require_number

if TYPE_CHECKING:
    from duckanon.models.base import Booleans


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
    summary: ClassVar[str] = "no sensitive value is more than 1 + beta times as frequent in a class as in the table"

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", require_number("BasicBetaLikeness", "beta", self.beta, 0, above=True))
        require_column("BasicBetaLikeness", self.sensitive)

    @property
    def traits(self) -> Traits:
        # A value's share in a merged class is at most the larger of its shares.
        return Traits(monotone=True, min_class_size=1)

    def describe(self, unit: str = "rows") -> str:
        often = f"more than {1 + self.beta:g} times as frequent in a class as in the whole table"
        return f"no value of {column_words(self.sensitive)} is {often}"

    def satisfied(self, groups: Groups) -> Booleans:
        h = histograms_of(groups)
        owner, q, p = shares(h)
        return every(h, owner, q <= p * (1 + self.beta) * (1 + ROUNDING))
