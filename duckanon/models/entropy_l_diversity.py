"""Entropy l-diversity (Machanavajjhala et al. 2006)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckanon.models.arrays import column_words, histograms_of, least_share, owners, sums, totals
from duckanon.models.base import ROUNDING, Bound, Groups, Model, Traits, models, require_column, require_number

if TYPE_CHECKING:
    from duckanon.models.base import Floats, Histograms


@models.register("entropy_l_diversity")
@dataclass(frozen=True)
class EntropyLDiversity(Model):
    """In every class the sensitive column has at least the entropy of l equally frequent values.

    Protects against learning the value from the class alone, and against values that make up nearly all of a class.
    Stricter than distinct l-diversity. Cannot hold where the whole table has less entropy: one very common value, even
    a harmless one, is enough. Does not know that values can be similar. l equally frequent values are exactly
    l-diverse; nothing is truncated.

    Parameters
    ----------
    l : float
        The number of values whose entropy is asked for, at least 1; need not be whole.
    sensitive : str, optional
        The column; every sensitive column by default.

    References
    ----------
    A. Machanavajjhala, J. Gehrke, D. Kifer, M. Venkitasubramaniam, l-diversity: privacy beyond k-anonymity, 2006.

    Examples
    --------
    >>> EntropyLDiversity(2, "disease").describe()
    "in every class 'disease' has at least the entropy of 2 equally frequent values"
    """

    l: float  # noqa: E741 - the field's own name
    sensitive: str | None = None
    summary = "in every class sensitive values have at least the entropy of l equally frequent ones"
    bounds = (Bound("l", "at least"),)
    kernel_rule = ("ENTROPY", "l")
    counts_members = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "l", require_number("EntropyLDiversity", "l", self.l, 1))
        require_column("EntropyLDiversity", self.sensitive)

    @property
    def traits(self) -> Traits:
        # Entropy is concave: a merged class has at least the mean of its parts. More of one value lowers it.
        return Traits(monotone=True, min_class_size=math.ceil(self.l * (1 - 10 * ROUNDING)))

    def describe(self, unit: str = "rows") -> str:
        column = column_words(self.sensitive)
        return f"in every class {column} has at least the entropy of {self.l:g} equally frequent values"

    def values(self, groups: Groups) -> Floats:
        import numpy as np

        h = histograms_of(groups)
        return np.where(np.diff(h.starts) > 0, np.exp(_entropies(h)), np.nan)

    def persisting(self, groups: Groups) -> Floats:
        # Entropy is concave, so its negative is convex, and 0 at worst.
        return least_share(-_entropies(histograms_of(groups)), -math.log(self.l), 0.0)


def _entropies(h: Histograms) -> Floats:
    import numpy as np

    filled = np.maximum(totals(h), 1)
    logs = sums(owners(h.starts), h.counts * np.log(h.counts), len(filled))
    return np.asarray(np.log(filled) - logs / filled)
