"""Squared distance error."""

from __future__ import annotations

from duckanon.metrics.base import Metric, metrics


@metrics.register("squared_distance_error")
class SquaredDistanceError(Metric):
    """Sum over rows of the Euclidean distance to the means of the values that the row's cells can stand for.

    In the units of the columns, which are not scaled; lower is better, 0 untouched. Dates count as days, times as
    seconds, unordered values by their rank. The mean is over the distinct original values under a cell; for a
    suppressed row, over all of the column. A NULL among numbers has no distance and counts 0. Rows can lie further from
    the means of their cells than from those of the columns; normalised it is 1 from there on.

    References
    ----------
    J. Domingo-Ferrer and J. Mateo-Sanz, Practical data-oriented microaggregation for statistical disclosure
    control, 2002.
    """

    summary = "distances of rows to the means of what their cells can stand for, summed"
    beyond = True
