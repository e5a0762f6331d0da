"""Classification metric (Iyengar 2002)."""

from __future__ import annotations

from duckanon.metrics.base import Metric, metrics


@metrics.register("classification")
class Classification(Metric):
    """Share of rows that are suppressed, or whose sensitive value is not the most frequent one of their class.

    A share; lower is better: 1 for a fully suppressed table. For each sensitive column, and their mean. No
    classifier that sees the quasi-identifiers alone can be right more often. It is not 0 for an untouched table
    where equal rows have different values.

    References
    ----------
    V. Iyengar, Transforming data to satisfy privacy constraints, 2002.
    """

    summary = "share of rows suppressed or in the minority of their class"
    bounds = (0.0, 1.0)
