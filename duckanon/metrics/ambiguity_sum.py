"""Ambiguity as ARX sums it."""

from __future__ import annotations

from duckanon.metrics.base import Metric, metrics


@metrics.register("ambiguity_sum")
class AmbiguitySum(Metric):
    """Sum over rows of the product of the leaves that a row's cells cover.

    In combinations; lower is better, n untouched. A suppressed row covers the product of all domains; a fully
    suppressed table has n times that.

    References
    ----------
    M. Nergiz and C. Clifton, Thoughts on k-anonymization, 2007; ARX 3.9.2, metric "ambiguity".
    """

    summary = "combinations of leaves that a row stands for, summed"
