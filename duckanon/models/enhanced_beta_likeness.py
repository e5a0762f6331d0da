"""Enhanced beta-likeness (Cao and Karras 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from duckanon.models.arrays import ROUNDING, column_words, every, histograms_of, shares
from duckanon.models.base import Groups, Model, Traits, models, require_column, require_number

if TYPE_CHECKING:
    from duckanon.models.base import Booleans


@models.register("enhanced_beta_likeness")
@dataclass(frozen=True)
class EnhancedBetaLikeness(Model):
    """No sensitive value gains more in a class, relative to its frequency p in the table, than min(beta, -ln p).

    Like basic beta-likeness, and frequent values are bounded more tightly, so that a value that not all rows of the
    table have cannot fill a class. Does not bound how much rarer a value may be in a class, nor does it protect against
    being singled out.

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
    >>> EnhancedBetaLikeness(1, "disease").describe()
    "no value of 'disease' with frequency p is more than 1 + min(1, -ln p) times as frequent in a class"
    """

    beta: float
    sensitive: str | None = None
    summary: ClassVar[str] = "no sensitive value is more than 1 + min(beta, -ln p) times as frequent in a class"

    def __post_init__(self) -> None:
        object.__setattr__(self, "beta", require_number("EnhancedBetaLikeness", "beta", self.beta, 0, above=True))
        require_column("EnhancedBetaLikeness", self.sensitive)

    @property
    def traits(self) -> Traits:
        return Traits(monotone=True, min_class_size=1)

    def describe(self, unit: str = "rows") -> str:
        often = f"more than 1 + min({self.beta:g}, -ln p) times as frequent in a class"
        return f"no value of {column_words(self.sensitive)} with frequency p is {often}"

    def satisfied(self, groups: Groups) -> Booleans:
        import numpy as np

        h = histograms_of(groups)
        owner, q, p = shares(h)
        logs = np.log(p, where=p > 0, out=np.zeros_like(p))
        return every(h, owner, q <= p * (1 + np.minimum(self.beta, -logs)) * (1 + ROUNDING))
