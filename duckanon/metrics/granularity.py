"""Granularity (Iyengar 2002)."""

from __future__ import annotations

from duckanon.metrics.base import CellMetric, metrics


@metrics.register("granularity")
class Granularity(CellMetric):
    """Sum over cells of (leaves - 1) / M: the share of the domain that a cell could be besides its value.

    In cells; lower is better, 0 untouched. A suppressed row counts (M - 1) / M in each attribute, all rows of a
    fully suppressed table do.

    References
    ----------
    V. Iyengar, Transforming data to satisfy privacy constraints, 2002, without its normalisation.
    """

    summary = "share of the domain that a cell could be besides its value, summed"
    over_rows = "sum"
    over_columns = "sum"
