"""What a row contributes to the entropy (Gionis and Tassa 2009)."""

from __future__ import annotations

from dataclasses import dataclass

from duckanon.assess.comparison.properties.base import Property, properties


@properties.register("entropy")
@dataclass(frozen=True)
class Entropy(Property):
    """Bits that are missing to know the original values of the row from its cells.

    The cells of a suppressed row can be any value of their columns. The sum over rows is the metric ``entropy``.

    References
    ----------
    A. Gionis and T. Tassa, k-anonymization with minimal loss of information, 2009.
    """

    summary = "bits that are missing to know the original values from the cells"
    direction = "lower"
    bounds = (0.0, None)
