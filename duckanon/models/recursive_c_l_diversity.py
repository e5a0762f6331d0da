"""Recursive (c, l)-diversity (Machanavajjhala et al. 2006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckanon.models.arrays import column_words, histograms_of, largest, owners, sums
from duckanon.models.base import Bound, Groups, Model, Traits, models, require_column, require_int, require_number

if TYPE_CHECKING:
    from duckanon.models.base import Floats


@models.register("recursive_c_l_diversity")
@dataclass(frozen=True)
class RecursiveCLDiversity(Model):
    """In every class the most frequent sensitive value is rarer than c times the l-th most frequent and all after it.

    Protects against values that make up nearly all of a class, also once an adversary has ruled out l - 2
    values. Less strict than entropy where one value is common in the whole table: a larger c allows for it. Does not
    know that values can be similar. The comparison is strict: equality does not hold.

    Parameters
    ----------
    c : float
        Above 0.
    l : int
        At least 1. A class with fewer different values cannot hold.
    sensitive : str, optional
        The column; every sensitive column by default.

    References
    ----------
    A. Machanavajjhala, J. Gehrke, D. Kifer, M. Venkitasubramaniam, l-diversity: privacy beyond k-anonymity, 2006.

    Examples
    --------
    >>> RecursiveCLDiversity(2, 3, "disease").describe()
    "in every class the most frequent value of 'disease' is rarer than 2 times the 3rd most frequent and all rarer ones"
    """

    c: float
    l: int  # noqa: E741 - the field's own name
    sensitive: str | None = None
    summary = "the most frequent value of a class is rarer than c times the l-th and all after it"
    bounds = (Bound("c", "below"),)
    kernel_rule = ("RECURSIVE", "c", "l")
    counts_members = False
    level_parameters = (("l", "l_diversity"),)

    def __post_init__(self) -> None:
        object.__setattr__(self, "c", require_number("RecursiveCLDiversity", "c", self.c, 0, above=True))
        object.__setattr__(self, "l", require_int("RecursiveCLDiversity", "l", self.l, 1))
        require_column("RecursiveCLDiversity", self.sensitive)

    @property
    def traits(self) -> Traits:
        # The top value of a merged class has at most the sum of the tops, its tail at least the sum of the tails.
        return Traits(monotone=True, min_class_size=self.l)

    def describe(self, unit: str = "rows") -> str:
        column, nth = column_words(self.sensitive), _ordinal(self.l)
        most = f"in every class the most frequent value of {column} is rarer than {self.c:g} times"
        return f"{most} the {nth} most frequent and all rarer ones"

    def values(self, groups: Groups) -> Floats:
        import numpy as np

        h = histograms_of(groups)
        top, owner = largest(h), owners(h.starts)
        # Class and count in one number: sorting it sorts every class by falling counts at once.
        base = int(top.max(initial=0)) + 1
        key = owner * base + (base - 1 - h.counts)
        key.sort()
        falling = base - 1 - key % base
        rank = np.arange(len(key)) - h.starts[owner]
        tail = sums(owner, np.where(rank >= self.l - 1, falling, 0), len(top))
        return np.asarray(np.divide(top, tail, where=tail > 0, out=np.full(len(top), np.nan)), dtype=np.float64)


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
