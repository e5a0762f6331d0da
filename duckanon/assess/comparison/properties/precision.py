"""What a row contributes to the precision (Sweeney 2002)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from duckanon.assess.comparison.properties.base import Property, properties


@properties.register("precision")
@dataclass(frozen=True)
class Precision(Property):
    """One minus the weighted mean over quasi-identifiers of level / height; 0 for a suppressed row.

    A cell without a level (in a release that was not made along hierarchies) counts its share of leaves instead. The
    mean over rows is the metric ``precision``.

    References
    ----------
    L. Sweeney, Achieving k-anonymity privacy protection using generalization and suppression, 2002.
    """

    summary: ClassVar[str] = "1 - mean of level / height (1 untouched, 0 suppressed)"
    bounds: ClassVar[tuple[float, float | None]] = (0.0, 1.0)
