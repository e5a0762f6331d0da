"""t-closeness with the ordered distance (Li, Li and Venkatasubramanian 2007)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckanon.models.arrays import owners, sums, totals, whole_table
from duckanon.models.base import models
from duckanon.models.t_closeness import TCloseness

if TYPE_CHECKING:
    from duckanon.models.base import Floats, Histograms


@models.register("ordered_t_closeness")
@dataclass(frozen=True)
class OrderedTCloseness(TCloseness):
    """In every class sensitive values are distributed nearly as in the whole table, far values counting more.

    The ordered distance: two values are as far apart as their ranks among the m different values of the table, divided
    by m - 1; the earth mover's distance is then the mean difference of the cumulative frequencies. For numbers, dates
    and times. Unlike the equal distance it sees that a class with salaries of 3, 4 and 5 thousand reveals more than one
    with 3, 6 and 9. Ranks are compared, not the numbers themselves; NULL stands after all values. A column with one
    value is at distance 0. Its other limits are those of ``t_closeness``.

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
    >>> OrderedTCloseness(0.2, "salary").describe()
    "in every class the distribution of 'salary' is within 0.2 of that in the whole table (ordered distance)"
    """

    needs_order = True
    summary = "sensitive values are distributed as in the whole table, up to t (ordered distance)"
    distance = "ordered"
    kernel_rule = ("ORDERED", "t")

    def distances(self, h: Histograms) -> Floats:
        """Return the distance of every class, in time linear in the entries.

        Between two values that a class has, its cumulative frequency Q stays the same while that of the table, P,
        rises: up to the rank where P passes Q the difference is Q - P, from there on P - Q, and both sums come from
        sums of P.
        """
        import numpy as np

        size, classes = len(h.totals), len(h.starts) - 1
        if size < 2 or not len(h.codes):
            return np.zeros(classes)
        rising = np.cumsum(whole_table(h))
        area = np.concatenate([[0.0], np.cumsum(rising)])
        owner = owners(h.starts)
        before = np.concatenate([[0], np.cumsum(h.counts)])
        reached = (before[1:] - before[h.starts[:-1]][owner]) / totals(h)[owner]
        here = h.codes
        after = np.empty_like(here)
        after[:-1] = here[1:]
        after[h.starts[1:][np.diff(h.starts) > 0] - 1] = size
        passed = np.clip(np.searchsorted(rising, reached), here, after)
        between = (2 * passed - here - after) * reached - 2 * area[passed] + area[here] + area[after]
        first = np.zeros(classes)
        filled = np.diff(h.starts) > 0
        first[filled] = area[here[h.starts[:-1][filled]]]
        return np.asarray((sums(owner, between, classes) + first) / (size - 1), dtype=np.float64)
