"""Precision (Sweeney 2002)."""

from __future__ import annotations

from duckanon.metrics.base import CellMetric, metrics


@metrics.register("precision")
class Precision(CellMetric):
    """One minus the mean over cells of level / height; a suppressed row counts as fully generalized.

    A share; higher is better: 1 untouched, 0 suppressed. A cell that is no label of a hierarchy, such as a box, has
    the level of the lowest label over all that it covers; where there is no hierarchy, (leaves - 1) / (M - 1) takes
    the place of level / height. Over attributes the weighted mean.

    References
    ----------
    L. Sweeney, Achieving k-anonymity privacy protection using generalization and suppression, 2002.
    """

    summary = "1 - mean of level / height over cells (1 untouched, 0 suppressed)"
    direction = "higher"
    bounds = (0.0, 1.0)
    headline = True
