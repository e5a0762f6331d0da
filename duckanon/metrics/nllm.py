"""Normalized lost leaves."""

from __future__ import annotations

from duckanon.metrics.base import CellMetric, metrics


@metrics.register("nllm")
class Nllm(CellMetric):
    """Mean over cells of (leaves - 1) / (M - 1).

    A share, 0 untouched and 1 fully suppressed, where every row counts 1; lower is better. Over attributes the
    weighted mean; an attribute of one leaf has 0. It equals ``loss``.

    References
    ----------
    V. Iyengar, Transforming data to satisfy privacy constraints, 2002.
    """

    summary = "lost leaves as a share of those that can be lost, mean over cells"
    bounds = (0.0, 1.0)
    cells = "loss"
