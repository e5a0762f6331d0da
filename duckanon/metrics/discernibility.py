"""Discernibility (Bayardo and Agrawal 2005)."""

from __future__ import annotations

from typing import ClassVar

from duckanon.metrics.base import Metric, metrics


@metrics.register("discernibility")
class Discernibility(Metric):
    """Sum over kept classes of size squared, plus n for each suppressed row.

    References
    ----------
    R. Bayardo and R. Agrawal, Data privacy through optimal k-anonymization, 2005.
    """

    summary: ClassVar[str] = "sum of squared class sizes, n for each suppressed row"
    direction: ClassVar[str] = "lower"
