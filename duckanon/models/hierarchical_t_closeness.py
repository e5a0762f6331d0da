"""t-closeness with the hierarchical distance (Li, Li and Venkatasubramanian 2007)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckanon.errors import ParameterError
from duckanon.models.arrays import owners, sums, totals, whole_table
from duckanon.models.base import models
from duckanon.models.t_closeness import TCloseness

if TYPE_CHECKING:
    from duckanon.models.base import Floats, Histograms, Integers


@models.register("hierarchical_t_closeness")
@dataclass(frozen=True)
class HierarchicalTCloseness(TCloseness):
    """In every class sensitive values are distributed nearly as in the whole table, unrelated values counting more.

    The hierarchical distance: two values are as far apart as the height of their lowest common ancestor in the column's
    hierarchy, divided by the height of the hierarchy. It sees that a class with three stomach diseases reveals more
    than one with a stomach disease, a cold and a burn. Needs a hierarchy of the sensitive column, and is only as good
    as that. Its other limits are those of ``t_closeness``.

    Parameters
    ----------
    t : float
        The largest distance, from 0 to 1.
    sensitive : str, optional
        The column; every sensitive column by default.

    Notes
    -----
    The earth mover's distance of Li et al. sums, over all inner nodes, the mass that moves between its children times
    the node's height. Written out, every node but the root counts the difference of its frequencies once: the distance
    is the mean, over the levels below the top, of the equal distance of the labels on that level. Time is linear in the
    entries times the levels.

    References
    ----------
    N. Li, T. Li, S. Venkatasubramanian, t-closeness: privacy beyond k-anonymity and l-diversity, 2007.

    Examples
    --------
    >>> HierarchicalTCloseness(0.2, "disease").describe()
    "in every class the distribution of 'disease' is within 0.2 of that in the whole table (hierarchical distance)"
    """

    summary = "sensitive values are distributed as in the whole table, up to t (hierarchical distance)"
    needs_hierarchy = True
    distance = "hierarchical"
    kernel_rule = ("HIERARCHICAL", "t")

    def distances(self, h: Histograms) -> Floats:
        """Return the mean of the equal distances on all levels below the top."""
        import numpy as np

        if not h.ancestors:
            raise ParameterError("hierarchical_t_closeness needs a hierarchy of its sensitive column.")
        classes = len(h.starts) - 1
        owner, p = owners(h.starts), whole_table(h)
        q = h.counts / totals(h)[owner]
        total = np.zeros(classes)
        levels = h.ancestors[: max(len(h.ancestors) - 1, 1)]
        for level, over in enumerate(levels):
            nodes = int(over.max(initial=-1)) + 1
            whole = np.bincount(over, weights=p, minlength=nodes)
            # Level 0 has a node of its own for every value: nothing to add up.
            at, node, mass = (
                (owner, over[h.codes], q) if level == 0 else _merged(owner, over[h.codes], q, classes, nodes)
            )
            total += (sums(at, np.abs(mass - whole[node]) - whole[node], classes) + 1) / 2
        return total / len(levels)


def _merged(owner: Integers, node: Integers, q: Floats, classes: int, nodes: int) -> tuple[Integers, Integers, Floats]:
    """Return class, node and frequency with the entries of the same node of a class added up."""
    import numpy as np

    key = owner * nodes + node
    if classes * nodes <= 4 * len(key):
        mass = sums(key, q, classes * nodes)
        present = np.flatnonzero(mass).astype(np.int64)
        return present // nodes, present % nodes, mass[present]
    present, entry = np.unique(key, return_inverse=True)
    return present // nodes, present % nodes, sums(entry, q, len(present))
