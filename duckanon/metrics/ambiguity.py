"""Ambiguity (Nergiz and Clifton 2007)."""

from __future__ import annotations

from duckanon.metrics.base import Metric, metrics


@metrics.register("ambiguity")
class Ambiguity(Metric):
    """Mean over rows of the product of the leaves that a row's cells cover: how many originals it could have.

    In combinations; lower is better, 1 untouched. A suppressed row covers the product of all domains, and so does
    each row of a fully suppressed table.

    References
    ----------
    M. Nergiz and C. Clifton, Thoughts on k-anonymization, 2007.
    """

    summary = "combinations of leaves that a row stands for, mean over rows"
    bounds = (1.0, None)
