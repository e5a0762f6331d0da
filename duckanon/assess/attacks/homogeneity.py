"""Homogeneity: everybody in a class has the same sensitive value (Machanavajjhala et al. 2006)."""

from __future__ import annotations

from typing import ClassVar

from duckanon.assess.attacks.base import attackers
from duckanon.assess.attacks.class_values import ClassValues


@attackers.register("homogeneity")
class Homogeneity(ClassValues):
    """Reads the sensitive value of everybody whose class has only one.

    The base rate is 0, or 1 where the whole table has one value, which everybody knows without classes. What k allows
    is the share of rows that classes of k would give away if the values were drawn at random from the table's own.

    References
    ----------
    A. Machanavajjhala et al., l-diversity: privacy beyond k-anonymity, 2006, section 2.1.
    """

    summary: ClassVar[str] = "rows in classes that have one sensitive value"
    share: ClassVar[str] = "share of released rows whose class has one value of"
