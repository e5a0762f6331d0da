"""Information loss (Byun et al. 2007)."""

from __future__ import annotations

from duckanon.metrics.base import CellMetric, metrics


@metrics.register("information_loss")
class InformationLoss(CellMetric):
    """Sum over rows of (max - min) / M for ordered attributes, and of depth / height for the others.

    In rows; lower is better, 0 untouched. Maximum and minimum are the ends of a published interval (see ``ncp``), of
    any other cell the outermost original values that it covers; M are the leaves of the domain (where values are not
    consecutive whole numbers the ratio can exceed 1). Depth is the level, or the level of the lowest label over all
    that a box covers, or without a hierarchy (leaves - 1) / (M - 1). A suppressed row covers everything.

    References
    ----------
    J.-W. Byun et al., Efficient k-anonymization using clustering techniques, 2007.
    """

    summary = "widths of ordered cells and depths of the others, summed"
    over_rows = "sum"
    over_columns = "sum"
