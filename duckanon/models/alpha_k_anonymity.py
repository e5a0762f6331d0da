"""(alpha, k)-anonymity (Wong et al. 2006)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckanon.models.arrays import column_words, histograms_of, largest, least_share, totals
from duckanon.models.base import (
    ROUNDING,
    Bound,
    Groups,
    Model,
    Traits,
    models,
    require_column,
    require_int,
    require_number,
)

if TYPE_CHECKING:
    from duckanon.models.base import Floats


@models.register("alpha_k_anonymity")
@dataclass(frozen=True)
class AlphaKAnonymity(Model):
    """Every class has at least k members, and no sensitive value makes up more than the share alpha of its rows.

    Protects against being singled out and bounds how sure an adversary can be of a member's value. Does not protect
    where a value that is rare in the table is frequent in a class, though below alpha; t-closeness and beta-likeness
    do. This is the general form: alpha bounds every value, not one chosen value.

    Parameters
    ----------
    alpha : float
        The largest share, above 0 and at most 1.
    k : int
        The least size of a class, at least 1.
    sensitive : str, optional
        The column; every sensitive column by default.

    References
    ----------
    R. Wong, J. Li, A. Fu, K. Wang, (alpha, k)-anonymity: an enhanced k-anonymity model for privacy preserving data
    publishing, 2006.

    Examples
    --------
    >>> AlphaKAnonymity(0.5, 5, "disease").describe()
    "every class has at least 5 rows and no value of 'disease' makes up more than 0.5 of a class"
    """

    alpha: float
    k: int
    sensitive: str | None = None
    summary = "every class has at least k members and no sensitive value has a larger share than alpha"
    bounds = (Bound("alpha", "at most"),)
    kernel_rule = ("ALPHA", "alpha", "k")
    level_parameters = (("k", 1),)

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", require_number("AlphaKAnonymity", "alpha", self.alpha, 0, 1, above=True))
        object.__setattr__(self, "k", require_int("AlphaKAnonymity", "k", self.k, 1))
        require_column("AlphaKAnonymity", self.sensitive)

    @property
    def traits(self) -> Traits:
        return Traits(monotone=True, min_class_size=max(self.k, math.ceil((1 - ROUNDING) / self.alpha)))

    def describe(self, unit: str = "rows") -> str:
        share = f"no value of {column_words(self.sensitive)} makes up more than {self.alpha:g} of a class"
        return f"every class has at least {self.k} {unit} and {share}"

    def values(self, groups: Groups) -> Floats:
        import numpy as np

        shares = _shares(groups)
        return np.where((groups.sizes >= self.k) & (shares > 0), shares, np.nan)

    def persisting(self, groups: Groups) -> Floats:
        return least_share(_shares(groups), self.alpha, 1.0)


def _shares(groups: Groups) -> Floats:
    import numpy as np

    h = histograms_of(groups)
    return np.asarray(largest(h) / np.maximum(totals(h), 1), dtype=np.float64)
