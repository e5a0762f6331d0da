"""The size of the class that a row lies in (Dewri et al. 2009, section 3)."""

from __future__ import annotations

from dataclasses import dataclass

from duckanon.assess.comparison.properties.base import Property, properties


@properties.register("class_size")
@dataclass(frozen=True)
class ClassSize(Property):
    """The number of rows, or of persons where the release counts those, in each row's class.

    The suppressed rows together are one class, as in the paper: each of them could be any of the others. Its size in
    persons counts a person once for every class that was suppressed.

    References
    ----------
    R. Dewri, I. Ray, I. Ray and D. Whitley, On the comparison of microdata disclosure control algorithms, 2009.
    """

    summary = "members of the row's class; suppressed rows are one class"
    unit = "members"
