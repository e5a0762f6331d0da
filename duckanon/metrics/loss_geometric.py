"""Loss with the geometric mean."""

from __future__ import annotations

from duckanon.metrics.base import CellMetric, metrics


@metrics.register("loss_geometric")
class LossGeometric(CellMetric):
    """Loss, with the geometric mean of 1 + x over attributes, minus 1, in place of the arithmetic one.

    Per attribute the same as ``loss``, and like it 0 for an untouched table and 1 for a suppressed one, a
    suppressed row counting as the whole domain. Lower is better. Attributes that lose much weigh less than in the
    arithmetic mean.

    References
    ----------
    V. Iyengar, Transforming data to satisfy privacy constraints, 2002; ARX 3.9.2, metric "loss", geometric mean.
    """

    summary = "loss, geometric mean over attributes (0 untouched, 1 suppressed)"
    bounds = (0.0, 1.0)
    cells = "loss"
    over_columns = "geometric mean"
