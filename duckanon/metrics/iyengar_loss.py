"""Iyengar's loss, not normalised."""

from __future__ import annotations

from duckanon.metrics.base import CellMetric, metrics


@metrics.register("iyengar_loss")
class IyengarLoss(CellMetric):
    """Sum over attributes of leaves / M, mean over rows.

    In attributes; lower is better. An untouched table has the sum of 1/M. A suppressed row counts 1 in each
    attribute; a fully suppressed table has the number of attributes. The utility of a row is the number of
    attributes minus its loss.

    References
    ----------
    V. Iyengar, Transforming data to satisfy privacy constraints, 2002; R. Dewri et al., On the comparison of
    microdata disclosure control algorithms, 2009.
    """

    summary = "leaves covered / M, summed over a row's cells, mean over rows"
    over_columns = "sum"
