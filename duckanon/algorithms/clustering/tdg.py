"""Top-down greedy: rows go to the nearer of two that are far apart, and so on with both groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from duckanon.algorithms.base import algorithms
from duckanon.algorithms.clustering.clustering import Clustering

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from duckanon.algorithms.clustering.clusters import Advance, Cloud


@algorithms.register("tdg")
@dataclass(frozen=True)
class Tdg(Clustering):
    """Find two rows far apart, let every other go to the nearer, and divide both groups further while 2k rows are left.

    Far is what has a large normalised certainty penalty (NCP) in one class: the row farthest from one that is drawn,
    the row farthest from that, and so on while they are farther apart, six times at most. Rows as near to one as to the
    other go to the group whose penalty, times its rows, grows less; where that is the same, or would leave one group
    less than a sixteenth of the rows, to the group that has fewer, equal rows together. A group of fewer than k rows
    borrows those of the other that widen it least, which never costs more than to merge the two.

    Parameters
    ----------
    seed : int
        The seed of the draw.
    stable_seeds : bool
        Let one order of rows, drawn before, decide in every group, whatever k is, so that the release changes less
        from one k to the next.

    References
    ----------
    J. Xu et al., Utility-based anonymization using local recoding, 2006; D. Slijepcevic et al., k-Anonymity in
    practice, 2021, section 5.8 of which proposes to choose all first rows before.
    """

    seed: int = 0
    stable_seeds: bool = False
    summary: ClassVar[str] = "top-down greedy: rows go to the nearer of two that are far apart"

    @property
    def by_rows(self) -> bool:
        # A group may borrow only some of several equal rows.
        return True

    def together(self, columns: int) -> int:
        return 2**62

    def cluster(self, cloud: Cloud, least: int, threads: int | None, advance: Advance) -> NDArray[np.int64]:
        from duckanon.algorithms.clustering.clusters import tdg

        return tdg(cloud, least, self.seed, self.stable_seeds, threads, advance)
