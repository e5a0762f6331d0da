"""Normalized certainty penalty (Xu et al. 2006)."""

from __future__ import annotations

from typing import ClassVar

from duckanon.metrics.base import Metric, metrics


@metrics.register("ncp")
class Ncp(Metric):
    """Sum over cells of the cell's width as a share of its domain's, times the attribute's weight.

    In cells; lower is better, 0 untouched. An ordered cell has the width between the smallest and the largest
    original value that it covers, over the range of the column; any other cell leaves / M, and 0 for a single leaf.
    A suppressed row counts 1 in each attribute that has more than one leaf.

    References
    ----------
    J. Xu et al., Utility-based anonymization using local recoding, 2006.
    """

    summary: ClassVar[str] = "widths of cells as shares of their domains, summed"
    direction: ClassVar[str] = "lower"
    bounds: ClassVar[tuple[float, float | None]] = (0.0, None)
