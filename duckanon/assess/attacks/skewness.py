"""Skewness: a class makes a sensitive value likelier than it is in the whole table (Li et al. 2007)."""

from __future__ import annotations

from typing import ClassVar

from duckanon.assess.attacks.base import attackers
from duckanon.assess.attacks.class_values import ClassValues


@attackers.register("skewness")
class Skewness(ClassValues):
    """Believes of everybody what the class makes likely: how much belief falls on the right value, on average.

    The base rate is the belief of somebody who knows how frequent values are in the whole table. A person is in the own
    class, so even classes that are chance tell more, 1/size and what the others add: what k allows is the mean over all
    ways to deal the table's rows into classes of k, which has a closed form.

    References
    ----------
    N. Li, T. Li, S. Venkatasubramanian, t-closeness: privacy beyond k-anonymity and l-diversity, 2007, section 2.
    """

    summary: ClassVar[str] = "how likely their class makes people's own sensitive value"
    share: ClassVar[str] = "mean share, within the classes of released rows, of their own value of"
