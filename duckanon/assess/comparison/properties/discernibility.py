"""What a row contributes to the discernibility (Bayardo and Agrawal 2005)."""

from __future__ import annotations

from dataclasses import dataclass

from duckanon.assess.comparison.properties.base import Property, properties


@properties.register("discernibility")
@dataclass(frozen=True)
class Discernibility(Property):
    """The size of the row's class, and the size of the whole table for a suppressed row: lower is better here.

    The sum over rows is the metric ``discernibility``. It is a loss here, and as ``class_size`` a protection.

    References
    ----------
    R. Bayardo and R. Agrawal, Data privacy through optimal k-anonymization, 2005.
    """

    summary = "rows that the row cannot be distinguished from; all rows if suppressed"
    direction = "lower"
    bounds = (1.0, None)
