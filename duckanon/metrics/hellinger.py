"""Hellinger distance of the columns."""

from __future__ import annotations

from duckanon.metrics.base import Metric, metrics


@metrics.register("hellinger")
class Hellinger(Metric):
    """Median over attributes of sqrt(1/2 sum (sqrt p - sqrt q)^2), p and q being shares before and after.

    A distance, 0 untouched and 1 fully suppressed; lower is better. It compares the texts that are published with
    the original ones: a label is another value than its leaves, and suppressed rows count as one more value.

    References
    ----------
    E. Hellinger, Neue Begruendung der Theorie quadratischer Formen von unendlichvielen Veraenderlichen, 1909; K. El
    Emam, L. Mosquera and R. Hoptroff, Practical synthetic data generation, 2020.
    """

    summary = "distance between the distributions of a column before and after"
    bounds = (0.0, 1.0)
