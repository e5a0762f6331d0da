"""SSE/SST (Domingo-Ferrer and Mateo-Sanz 2002)."""

from __future__ import annotations

from duckanon.metrics.base import Metric, metrics


@metrics.register("sse_ratio")
class SseRatio(Metric):
    """SSE/SST of the standardised numbers: the share of the columns' variance that lies within classes.

    A share, 0 untouched and 1 fully suppressed; lower is better. See ``sse`` for what is summed: for an attribute it is
    the share of that attribute, for the whole release all squares within classes over all squares, without weights.

    References
    ----------
    J. Domingo-Ferrer and J. Mateo-Sanz, Practical data-oriented microaggregation for statistical disclosure
    control, 2002.
    """

    summary = "share of the variance of numbers and dates that lies within classes (SSE/SST)"
    bounds = (0.0, 1.0)
