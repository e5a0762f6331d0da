"""How surely a row's class gives away its sensitive value."""

from __future__ import annotations

from dataclasses import dataclass

from duckanon.assess.comparison.properties.base import Property, properties


@properties.register("sensitive_share")
@dataclass(frozen=True)
class SensitiveShare(Property):
    """The share of the row's class that has the row's own value in a sensitive column: 1 if all have.

    One vector for each column. A suppressed row has share 0: no published class is its own.

    References
    ----------
    A. Machanavajjhala, J. Gehrke, D. Kifer and M. Venkitasubramaniam, l-diversity: privacy beyond k-anonymity, 2006.
    """

    summary = "share of the class with the row's own sensitive value; 0 if suppressed"
    per_column = True
    direction = "lower"
    bounds = (0.0, 1.0)
