"""What a row contributes to the information loss (Byun et al. 2007)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from duckanon.assess.comparison.properties.base import Property, properties


@properties.register("information_loss")
@dataclass(frozen=True)
class InformationLoss(Property):
    """Width over leaves of ordered cells plus depth over height of the others, summed over quasi-identifiers.

    A suppressed row counts as fully generalized. The sum over rows is the metric ``information_loss``.

    References
    ----------
    J. Byun, A. Kamra, E. Bertino and N. Li, Efficient k-anonymization using clustering techniques, 2007.
    """

    summary: ClassVar[str] = "widths of ordered cells and depths of the others, summed"
    direction: ClassVar[str] = "lower"
    bounds: ClassVar[tuple[float, float | None]] = (0.0, None)
