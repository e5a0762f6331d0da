"""Normalized certainty penalty (Xu et al. 2006)."""

from __future__ import annotations

from duckanon.metrics.base import CellMetric, metrics


@metrics.register("ncp")
class Ncp(CellMetric):
    """Sum over cells of the cell's width as a share of its domain's, times the attribute's weight.

    In cells; lower is better, 0 untouched. An interval of numbers, dates or times has the width between its ends as
    they are published (of the range of the column, not beyond; open ends are those of that range), over that range.
    Where bounds are not published (means, medoids, sets and the like) it is the interval of the region that the cell
    stands for, which ``bounds`` says. Any other cell, a label of a hierarchy over numbers among them, has leaves / M,
    and 0 for a single leaf.
    A suppressed row counts 1 in each attribute that has more than one leaf.

    References
    ----------
    J. Xu et al., Utility-based anonymization using local recoding, 2006.
    """

    summary = "widths of cells as shares of their domains, summed"
    cells = "gcp"
    over_rows = "sum"
    over_columns = "weighted sum"
