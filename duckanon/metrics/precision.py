"""Precision (Sweeney 2002)."""

from __future__ import annotations

from typing import ClassVar

from duckanon.metrics.base import Metric, metrics


@metrics.register("precision")
class Precision(Metric):
    """One minus the mean over cells of level / height; a suppressed row counts as fully generalized.

    References
    ----------
    L. Sweeney, Achieving k-anonymity privacy protection using generalization and suppression, 2002.
    """

    summary: ClassVar[str] = "1 - mean of level / height over cells (1 untouched, 0 suppressed)"
    direction: ClassVar[str] = "higher"
    bounds: ClassVar[tuple[float, float | None]] = (0.0, 1.0)
