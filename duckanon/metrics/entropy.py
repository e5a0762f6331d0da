"""Entropy (Gionis and Tassa 2009)."""

from __future__ import annotations

from duckanon.metrics.base import Metric, metrics


@metrics.register("entropy")
class Entropy(Metric):
    """Sum over cells of the entropy of the original value, given the cell.

    In bits; lower is better, 0 untouched. The probability of a value is its frequency in the original column among
    those that the cell can stand for; a suppressed row can stand for all. A fully suppressed table has n times the
    sum of its columns' entropies.

    References
    ----------
    A. Gionis and T. Tassa, k-anonymization with minimal loss of information, 2009.
    """

    summary = "bits that are missing to know the original values from the cells"
