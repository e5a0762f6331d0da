"""The normalized certainty penalty of a row (Xu et al. 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from duckanon.assess.comparison.properties.base import Property, properties


@properties.register("ncp")
@dataclass(frozen=True)
class Ncp(Property):
    """Weighted mean over quasi-identifiers of width / range, or of leaves / M where the column has no order.

    A cell that stands for one value costs nothing, a suppressed row costs 1. The mean over rows is the metric ``gcp``.

    References
    ----------
    J. Xu, W. Wang, J. Pei, X. Wang, B. Shi and A. Fu, Utility-based anonymization using local recoding, 2006;
    G. Ghinita, P. Karras, P. Kalnis and N. Mamoulis, Fast data anonymization with low information loss, 2007.
    """

    summary: ClassVar[str] = "mean width of a cell as a share of its column (0 untouched, 1 suppressed)"
    direction: ClassVar[str] = "lower"
    bounds: ClassVar[tuple[float, float | None]] = (0.0, 1.0)
