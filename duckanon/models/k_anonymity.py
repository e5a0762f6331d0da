"""k-anonymity (Samarati and Sweeney 1998; Sweeney 2002)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckanon.models.base import Bound, Groups, Model, Traits, models, require_int

if TYPE_CHECKING:
    from duckanon.models.base import Floats


@models.register("k_anonymity")
@dataclass(frozen=True)
class KAnonymity(Model):
    """Every combination of quasi-identifier values in the release is shared by at least k rows.

    Protects against being singled out by the quasi-identifiers that were declared. Does not protect what all members of
    a class have in common, nor against knowledge of other columns, nor against combining releases. With an entity key
    the members counted are persons; without one they are rows, and one person's k rows pass.

    Parameters
    ----------
    k : int
        The least size of a class, at least 1.

    References
    ----------
    L. Sweeney, k-anonymity: a model for protecting privacy, 2002.

    Examples
    --------
    >>> KAnonymity(5).describe("persons")
    'every combination of quasi-identifiers is shared by at least 5 persons'
    """

    k: int
    summary = "every class has at least k members"
    bounds = (Bound("k", "at least"),)

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", require_int("KAnonymity", "k", self.k, 1))

    @property
    def traits(self) -> Traits:
        return Traits(monotone=True, min_class_size=self.k, size_only=True, absorbing=True)

    def describe(self, unit: str = "rows") -> str:
        return f"every combination of quasi-identifiers is shared by at least {self.k} {unit}"

    def values(self, groups: Groups) -> Floats:
        return groups.sizes.astype("float64")
