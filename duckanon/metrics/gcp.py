"""Global certainty penalty (Ghinita et al. 2007)."""

from __future__ import annotations

from duckanon.metrics.base import CellMetric, metrics


@metrics.register("gcp")
class Gcp(CellMetric):
    """The normalized certainty penalty, mean over all cells; what a cell counts is said at ``ncp``.

    A share, 0 untouched and 1 fully suppressed; lower is better. Over attributes the weighted mean. A suppressed
    row counts 1 in each attribute that has more than one leaf.

    References
    ----------
    G. Ghinita et al., Fast data anonymization with low information loss, 2007.
    """

    summary = "widths of cells as shares of their domains, mean over cells (0 untouched, 1 suppressed)"
    bounds = (0.0, 1.0)
    headline = True
