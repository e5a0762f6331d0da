"""Distinct l-diversity (Machanavajjhala et al. 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckanon.models.arrays import column_words, distinct, histograms_of
from duckanon.models.base import Bound, Groups, Model, Traits, models, require_column, require_int

if TYPE_CHECKING:
    from duckanon.models.base import Floats


@models.register("l_diversity")
@dataclass(frozen=True)
class LDiversity(Model):
    """Every class has at least l different values of the sensitive column.

    Protects against learning the value from the class alone (homogeneity) as long as no value is very frequent. Does
    not protect against good guesses: 99 of 100 rows may share a value. Nor does it know that values can be similar, or
    that some are much rarer in the table than in the class. NULL is a value like any other.

    Parameters
    ----------
    l : int
        The least number of different values, at least 1.
    sensitive : str, optional
        The column; every sensitive column by default.

    References
    ----------
    A. Machanavajjhala, J. Gehrke, D. Kifer, M. Venkitasubramaniam, l-diversity: privacy beyond k-anonymity, 2006.

    Examples
    --------
    >>> LDiversity(3, "disease").describe()
    "every class has at least 3 different values of 'disease'"
    """

    l: int  # noqa: E741 - the field's own name
    sensitive: str | None = None
    summary = "every class has at least l different sensitive values"
    bounds = (Bound("l", "at least"),)
    kernel_rule = ("DISTINCT", "l")
    counts_members = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "l", require_int("LDiversity", "l", self.l, 1))
        require_column("LDiversity", self.sensitive)

    @property
    def traits(self) -> Traits:
        return Traits(monotone=True, min_class_size=self.l, absorbing=True)

    def describe(self, unit: str = "rows") -> str:
        return f"every class has at least {self.l} different values of {column_words(self.sensitive)}"

    def values(self, groups: Groups) -> Floats:
        return distinct(histograms_of(groups))
