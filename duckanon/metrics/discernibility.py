"""Discernibility (Bayardo and Agrawal 2005)."""

from __future__ import annotations

from duckanon.metrics.base import Metric, metrics


@metrics.register("discernibility")
class Discernibility(Metric):
    """Sum over published classes of size squared, plus n for each suppressed row.

    In pairs of rows; lower is better. A fully suppressed table has n squared, and a table
    where every row is its own class has n.

    References
    ----------
    R. Bayardo and R. Agrawal, Data privacy through optimal k-anonymization, 2005.
    """

    summary = "sum of squared class sizes, n for each suppressed row"
    headline = True
