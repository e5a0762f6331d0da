"""Enhanced beta-likeness (Cao and Karras 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckanon.models.arrays import column_words, gains, histograms_of, largest_value, whole_table
from duckanon.models.base import ROUNDING, Groups, models
from duckanon.models.basic_beta_likeness import BasicBetaLikeness

if TYPE_CHECKING:
    from duckanon.models.base import Floats


@models.register("enhanced_beta_likeness")
@dataclass(frozen=True)
class EnhancedBetaLikeness(BasicBetaLikeness):
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

    summary = "no sensitive value is more than 1 + min(beta, -ln p) times as frequent in a class"
    kernel_rule = ("ENHANCED_BETA", "beta")

    def describe(self, unit: str = "rows") -> str:
        often = f"more than 1 + min({self.beta:g}, -ln p) times as frequent in a class"
        return f"no value of {column_words(self.sensitive)} with frequency p is {often}"

    def values(self, groups: Groups) -> Floats:
        import numpy as np

        h = histograms_of(groups)
        p = whole_table(h)[h.codes]
        allowed = (1 - np.log(p, where=p > 0, out=np.zeros_like(p))) * (1 + ROUNDING)
        gained = gains(h)
        # No beta allows more than -ln p.
        return largest_value(h, np.where(gained <= allowed, gained, np.nan))
