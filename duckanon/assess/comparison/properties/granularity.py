"""What a row contributes to the granularity (Iyengar 2002)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from duckanon.assess.comparison.properties.base import Property, properties


@properties.register("granularity")
@dataclass(frozen=True)
class Granularity(Property):
    """Sum over quasi-identifiers of (leaves - 1) / M; a suppressed row counts as fully generalized.

    The sum over rows is the metric ``granularity``.

    References
    ----------
    V. Iyengar, Transforming data to satisfy privacy constraints, 2002.
    """

    summary: ClassVar[str] = "sum over cells of the share of the domain that they could be besides their value"
    direction: ClassVar[str] = "lower"
    bounds: ClassVar[tuple[float, float | None]] = (0.0, None)
