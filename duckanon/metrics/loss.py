"""Loss as ARX computes it (Iyengar 2002, normalised by the untouched table)."""

from __future__ import annotations

from duckanon.metrics.base import CellMetric, metrics


@metrics.register("loss")
class Loss(CellMetric):
    """Share of the domain that each cell stands for, 0 for an untouched table and 1 for a suppressed one.

    Per attribute (sum of share - n/M) / (n - n/M), share being the leaves under the cell's value divided by all M
    leaves, and 1 for a suppressed row; over attributes their weighted mean. Lower is better. An attribute of one
    leaf has 0.

    References
    ----------
    V. Iyengar, Transforming data to satisfy privacy constraints, 2002; ARX 3.9.2, metric "loss", arithmetic mean.
    """

    summary = "mean share of the domain that a cell stands for (0 untouched, 1 suppressed)"
    bounds = (0.0, 1.0)
    headline = True
