"""What a row contributes to the loss (Iyengar 2002, normalised as ARX does)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from duckanon.assess.comparison.properties.base import Property, properties


@properties.register("loss")
@dataclass(frozen=True)
class Loss(Property):
    """Weighted mean over quasi-identifiers of (share - 1/M) / (1 - 1/M); 0 untouched, 1 suppressed.

    The mean over rows is the metric ``loss``.

    References
    ----------
    V. Iyengar, Transforming data to satisfy privacy constraints, 2002; ARX 3.9.2, metric "loss", arithmetic mean.
    """

    summary: ClassVar[str] = "mean share of the domain that a cell stands for (0 untouched, 1 suppressed)"
    direction: ClassVar[str] = "lower"
    bounds: ClassVar[tuple[float, float | None]] = (0.0, 1.0)
