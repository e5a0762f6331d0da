"""delta-presence (Nergiz, Atzori and Clifton 2007)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckanon.errors import ParameterError
from duckanon.models.arrays import population_of
from duckanon.models.base import ROUNDING, Bound, Extremes, Groups, Model, Traits, models, require_number

if TYPE_CHECKING:
    from duckanon.models.base import Booleans, Floats


@models.register("delta_presence")
@dataclass(frozen=True)
class DeltaPresence(Model):
    """Of every class of the population a share from minimum to maximum is published.

    Protects against learning that somebody is in the data (maximum) or is not (minimum), where being in it says
    something: a register of patients. Does not bound what is learned once presence is known. Is only as good as the
    population table.

    The share of a class is that of its published rows among its members of the population. Suppressed rows are not
    published, so they are absent: a class of the population none of whose rows is published, be it that all of them
    were suppressed or that there are none, has the share 0. With a minimum above 0 it violates the model, so that
    only rows of classes without members of the population can be suppressed. With a minimum of 0 rows may be
    suppressed, and nothing is guaranteed for members whose class is not published: the number of suppressed rows is
    then the only bound on their share.

    Parameters
    ----------
    minimum, maximum : float
        The least and the largest share, from 0 to 1.

    References
    ----------
    M. Nergiz, M. Atzori, C. Clifton, Hiding the presence of individuals from shared databases, 2007.

    Examples
    --------
    >>> DeltaPresence(0, 0.5).describe("persons")
    'of every class of the population a share of 0 to 0.5 is in the data'
    """

    minimum: float
    maximum: float
    summary = "of every class of the population a share from minimum to maximum is in the data"
    bounds = (Bound("minimum", "at least"), Bound("maximum", "at most"))
    needs_population = True

    def __post_init__(self) -> None:
        for name in ("minimum", "maximum"):
            object.__setattr__(self, name, require_number("DeltaPresence", name, getattr(self, name), 0, 1))
        if self.minimum > self.maximum:
            raise ParameterError("The 'minimum' parameter of DeltaPresence must be at most its 'maximum'.")

    @property
    def traits(self) -> Traits:
        # The share of a merged class lies between the shares of its parts.
        return Traits(monotone=True, min_class_size=1)

    def describe(self, unit: str = "rows") -> str:
        return f"of every class of the population a share of {self.minimum:g} to {self.maximum:g} is in the data"

    def indispensable(self, groups: Groups) -> Booleans | None:
        return population_of(groups) > 0 if self.minimum > 0 else None

    def values(self, groups: Groups) -> Floats:
        import numpy as np

        people, members = population_of(groups), groups.sizes
        shares = np.divide(members, people, where=people > 0, out=np.full(len(members), np.nan))
        return np.asarray(shares, dtype=np.float64)

    def satisfied(self, groups: Groups) -> Booleans:
        if self.minimum > 0 and groups.population_only:
            # The share of those classes is 0, whatever is published.
            return groups.sizes < 0
        return super().satisfied(groups)

    @classmethod
    def strongest(cls, bound: Bound, extremes: Extremes) -> float | None:
        if bound.parameter == "minimum":
            return None if extremes.low is None else min(extremes.low, 1.0)
        largest = super().strongest(bound, extremes)
        return None if largest is None or largest > 1 + ROUNDING else min(largest, 1.0)
