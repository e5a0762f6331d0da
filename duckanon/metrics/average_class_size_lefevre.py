"""Average class size as its authors define it."""

from __future__ import annotations

from duckanon.metrics.base import Metric, metrics


@metrics.register("average_class_size_lefevre")
class AverageClassSizeLefevre(Metric):
    """Published rows divided by published classes times k: how many times larger than needed a class is.

    A ratio; lower is better, 1 where every class has k rows (less only where the table is not k-anonymous).
    Suppressed rows do not count: suppressing can improve it, and a fully suppressed table has no value. It is
    normalised by one class of all rows, n/k. The k is the one that was required of the release, or one that is given.

    References
    ----------
    K. LeFevre, D. DeWitt and R. Ramakrishnan, Mondrian multidimensional k-anonymity, 2006.
    """

    summary = "published rows per class, in multiples of k"
    params = ("k",)
    ignores_suppression = True
