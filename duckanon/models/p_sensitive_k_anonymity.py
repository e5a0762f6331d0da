"""p-sensitive k-anonymity (Truta and Vinay 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckanon.models.arrays import column_words, distinct, histograms_of
from duckanon.models.base import Bound, Groups, Model, Traits, models, require_column, require_int

if TYPE_CHECKING:
    from duckanon.models.base import Floats


@models.register("p_sensitive_k_anonymity")
@dataclass(frozen=True)
class PSensitiveKAnonymity(Model):
    """Every class has at least k members and at least p different values of the sensitive column.

    Protects against being singled out and against learning the value from the class alone. Its limits are those of
    k-anonymity and of distinct l-diversity, which it is together: a value may still make up nearly all of a class.

    Parameters
    ----------
    p : int
        The least number of different values, at least 1.
    k : int
        The least size of a class, at least 1.
    sensitive : str, optional
        The column; every sensitive column by default.

    References
    ----------
    T. Truta and B. Vinay, Privacy protection: p-sensitive k-anonymity property, 2006.

    Examples
    --------
    >>> PSensitiveKAnonymity(2, 5, "disease").describe()
    "every class has at least 5 rows and at least 2 different values of 'disease'"
    """

    p: int
    k: int
    sensitive: str | None = None
    summary = "every class has at least k members and p different sensitive values"
    bounds = (Bound("p", "at least"),)
    kernel_rule = ("DISTINCT", "p", "k")
    level_parameters = (("k", 1),)

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", require_int("PSensitiveKAnonymity", "p", self.p, 1))
        object.__setattr__(self, "k", require_int("PSensitiveKAnonymity", "k", self.k, 1))
        require_column("PSensitiveKAnonymity", self.sensitive)

    @property
    def traits(self) -> Traits:
        return Traits(monotone=True, min_class_size=max(self.p, self.k), absorbing=True)

    def describe(self, unit: str = "rows") -> str:
        values = f"at least {self.p} different values of {column_words(self.sensitive)}"
        return f"every class has at least {self.k} {unit} and {values}"

    def values(self, groups: Groups) -> Floats:
        import numpy as np

        return np.where(groups.sizes >= self.k, distinct(histograms_of(groups)), np.nan)
