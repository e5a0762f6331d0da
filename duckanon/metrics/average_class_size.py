"""Average class size as ARX computes it."""

from __future__ import annotations

from duckanon.metrics.base import Metric, metrics


@metrics.register("average_class_size")
class AverageClassSize(Metric):
    """Rows divided by classes, the suppressed rows being one class where there are any.

    In rows; lower is better, 1 where every row is its own class. A fully suppressed table has the number of its
    rows.

    References
    ----------
    K. LeFevre et al., Mondrian multidimensional k-anonymity, 2006, without its division by k; ARX 3.9.2.
    """

    summary = "rows per class, suppressed rows being one class"
    bounds = (1.0, None)
    headline = True
