"""Loss of mutual information."""

from __future__ import annotations

from typing import ClassVar

from duckanon.metrics.base import Metric, metrics


@metrics.register("mutual_information_loss")
class MutualInformationLoss(Metric):
    """Mutual information of two quasi-identifiers before, less that after, mean over pairs.

    In bits; lower is better, 0 untouched. For an attribute it is the mean over its pairs. The released side is computed
    on the cells of published rows, and 0 where there are none. It can be negative: the rows that suppression leaves may
    be more dependent than all, and cells of boxes tell more of each other than values do.

    References
    ----------
    N. Senavirathne and V. Torra, Systematic evaluation of probabilistic k-anonymity for privacy preserving
    micro-data publishing and analysis, 2021.
    """

    summary: ClassVar[str] = "bits that columns tell of each other, before less after, mean over pairs"
    direction: ClassVar[str] = "lower"
    bounds: ClassVar[tuple[float, float | None]] = (float("-inf"), None)
    best: ClassVar[float | None] = 0.0
    beyond: ClassVar[bool] = True
