"""How often a row's sensitive value occurs in its class (Dewri et al. 2009, section 3)."""

from __future__ import annotations

from dataclasses import dataclass

from duckanon.assess.comparison.properties.base import Property, properties


@properties.register("sensitive_count")
@dataclass(frozen=True)
class SensitiveCount(Property):
    """The number of rows of the row's class that have the row's own value in a sensitive column.

    There is one vector for each column, and the suppressed rows are one class. As in the paper higher is better:
    an adversary who looks for the owner of a value finds so many. What a class gives away is ``sensitive_share``.

    References
    ----------
    R. Dewri, I. Ray, I. Ray and D. Whitley, On the comparison of microdata disclosure control algorithms, 2009.
    """

    summary = "rows of the class with the row's own sensitive value"
    per_column = True
    bounds = (1.0, None)
