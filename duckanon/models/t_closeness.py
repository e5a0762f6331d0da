"""t-closeness with the equal distance (Li, Li and Venkatasubramanian 2007)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckanon.models.arrays import column_words, histograms_of, least_share, owners, sums, totals, whole_table
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
    from duckanon.models.base import Floats, Histograms


@models.register("t_closeness")
@dataclass(frozen=True)
class TCloseness(Model):
    """In every class sensitive values are distributed nearly as in the whole table: at most t of the mass must move.

    The equal distance: all values are equally far from each other, and the distance of two distributions is half the
    sum of the differences of frequencies. For columns without order; see ``ordered_t_closeness`` and
    ``hierarchical_t_closeness`` for others. Bounds what a class reveals beyond what the whole table reveals, which
    everybody is taken to know. Does not protect against being singled out, and a rare value may still be many times as
    frequent in a class as in the table: beta-likeness bounds that.

    Parameters
    ----------
    t : float
        The largest distance, from 0 to 1.
    sensitive : str, optional
        The column; every sensitive column by default.

    References
    ----------
    N. Li, T. Li, S. Venkatasubramanian, t-closeness: privacy beyond k-anonymity and l-diversity, 2007.

    Examples
    --------
    >>> TCloseness(0.2, "disease").describe()
    "in every class the distribution of 'disease' is within 0.2 of that in the whole table (equal distance)"
    """

    t: float
    sensitive: str | None = None
    summary = "sensitive values are distributed as in the whole table, up to t (equal distance)"
    bounds = (Bound("t", "at most"),)
    kernel_rule = ("EQUAL", "t")
    counts_members = False
    distance = "equal"

    def __post_init__(self) -> None:
        object.__setattr__(self, "t", require_number(type(self).__name__, "t", self.t, 0, 1))
        require_column(type(self).__name__, self.sensitive)

    @property
    def traits(self) -> Traits:
        # The distance is convex: a merged class is no farther than the mean of its parts.
        return Traits(monotone=True, min_class_size=1)

    def describe(self, unit: str = "rows") -> str:
        column = column_words(self.sensitive)
        close = f"within {self.t:g} of that in the whole table ({self.distance} distance)"
        return f"in every class the distribution of {column} is {close}"

    def limit(self, parameter: str) -> float:
        return self.t + ROUNDING

    def distances(self, h: Histograms) -> Floats:
        """Return the distance of every class from the whole table."""
        import numpy as np

        owner = owners(h.starts)
        q, p = h.counts / totals(h)[owner], whole_table(h)[h.codes]
        # Values that a class lacks differ by their whole p: what is left of 1.
        return (sums(owner, np.abs(q - p) - p, len(h.starts) - 1) + 1) / 2

    def values(self, groups: Groups) -> Floats:
        import numpy as np

        h = histograms_of(groups)
        return np.where(np.diff(h.starts) > 0, self.distances(h), np.nan)

    def persisting(self, groups: Groups) -> Floats:
        return least_share(self.distances(histograms_of(groups)), self.t, 1.0)

    @classmethod
    def strongest(cls, bound: Bound, extremes: Extremes) -> float | None:
        distance = super().strongest(bound, extremes)
        return None if distance is None else min(max(distance, 0.0), 1.0)
