"""Discernibility without the penalty of suppression."""

from __future__ import annotations

from duckanon.metrics.base import Metric, metrics


@metrics.register("discernibility_star")
class DiscernibilityStar(Metric):
    """Sum over published classes of size squared.

    In pairs of rows; lower is better. Suppressed rows do not count, so suppressing improves it, down to 0; it is
    normalised by one class of all rows, n squared.

    References
    ----------
    K. El Emam et al., A globally optimal k-anonymity method for the de-identification of health data, 2009 (DM*).
    """

    summary = "sum of squared class sizes, suppressed rows left out"
    ignores_suppression = True
