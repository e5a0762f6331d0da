"""k-map (Sweeney 2001)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckanon.models.arrays import population_of
from duckanon.models.base import Bound, Groups, Model, Traits, models, require_int

if TYPE_CHECKING:
    from duckanon.models.base import Floats


@models.register("k_map")
@dataclass(frozen=True)
class KMap(Model):
    """Every combination of quasi-identifier values in the release belongs to at least k members of the population.

    Protects against being singled out by an adversary who does not know who of the population is in the data. Weaker
    than k-anonymity: an adversary who knows that a person is in the data may find their row. Is only as good as the
    population table.

    Parameters
    ----------
    k : int
        The least size of a class in the population, at least 1.

    References
    ----------
    L. Sweeney, Computational disclosure control: a primer on data privacy protection, 2001.

    Examples
    --------
    >>> KMap(5).describe()
    'every combination of quasi-identifiers belongs to at least 5 members of the population'
    """

    k: int
    summary = "every class has at least k members of the population"
    bounds = (Bound("k", "at least"),)
    needs_population = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", require_int("KMap", "k", self.k, 1))

    @property
    def traits(self) -> Traits:
        return Traits(monotone=True, min_class_size=1, absorbing=True)

    def describe(self, unit: str = "rows") -> str:
        return f"every combination of quasi-identifiers belongs to at least {self.k} members of the population"

    def values(self, groups: Groups) -> Floats:
        return population_of(groups).astype("float64")
