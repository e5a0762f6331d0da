"""Probabilistic k-anonymity (Soria-Comas and Domingo-Ferrer 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckanon.models.base import Bound, Groups, Model, Traits, models, require_int

if TYPE_CHECKING:
    from duckanon.models.base import Floats


@models.register("probabilistic_k_anonymity")
@dataclass(frozen=True)
class ProbabilisticKAnonymity(Model):
    """An adversary who knows all quasi-identifiers links a person to a row with a probability of at most 1/k.

    Quasi-identifiers were permuted, block by block, within groups of at least k. The groups are not visible in the
    release: rows look like rows of the source, and most belong to no person. Whether the model holds cannot be
    seen from the release alone; the gate checks it with the private link between source and release.

    Does not protect the values of one block: a combination of values that only one person has is published, in
    some row, and shows that this person is in the table. Does not protect what all members of a group have in
    common, nor a release made with a seed that can be guessed. With an entity key the members counted are persons, and
    a person with many rows in a group is linked to one of them more easily.

    Parameters
    ----------
    k : int
        The least size of a group, at least 1.

    References
    ----------
    J. Soria-Comas, J. Domingo-Ferrer, Probabilistic k-anonymity through microaggregation and data swapping, 2012;
    N. Senavirathne, V. Torra, Systematic evaluation of probabilistic k-anonymity, 2021, definition 2.

    Examples
    --------
    >>> ProbabilisticKAnonymity(5).describe()
    'quasi-identifiers are permuted among at least 5 rows, so that nobody is linked to a row above 1 in 5'
    """

    k: int
    summary = "nobody is linked to a row with a probability above 1/k; groups are not visible"
    bounds = (Bound("k", "at least"),)
    hidden = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", require_int("ProbabilisticKAnonymity", "k", self.k, 1))

    @property
    def traits(self) -> Traits:
        return Traits(monotone=True, min_class_size=self.k, size_only=True, absorbing=True)

    def describe(self, unit: str = "rows") -> str:
        of = "a row" if unit == "rows" else "a row of theirs"
        among = f"quasi-identifiers are permuted among at least {self.k} {unit}"
        return f"{among}, so that nobody is linked to {of} above 1 in {self.k}"

    def values(self, groups: Groups) -> Floats:
        return groups.sizes.astype("float64")
