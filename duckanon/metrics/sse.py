"""Sum of squared errors (Domingo-Ferrer and Mateo-Sanz 2002)."""

from __future__ import annotations

from duckanon.metrics.base import Metric, metrics


@metrics.register("sse")
class Sse(Metric):
    """Sum over rows of the squared distance to the mean of the row's class, every column in its standard deviation.

    Of numbers, dates and times only; without any there is no value. Lower is better, 0 untouched. A class is all rows
    that are published alike. A suppressed row lies as far as from the mean of the table; NULL and what is not finite
    is left out. The largest there can be is SST, the same to the means of the table: rows times columns, less what is
    left out and columns of one value; so SST is the value over the normalised one, which is ``sse_ratio``.

    References
    ----------
    J. Domingo-Ferrer and J. Mateo-Sanz, Practical data-oriented microaggregation for statistical disclosure
    control, 2002.
    """

    summary = "squared distances to the means of classes, in variances of the columns, summed"
