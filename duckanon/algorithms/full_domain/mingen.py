"""MinGen (Sweeney 2002)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from duckanon.algorithms.base import algorithms
from duckanon.algorithms.full_domain.search import Choice, FullDomain
from duckanon.errors import UnsupportedError
from duckanon.models.base import require_int

if TYPE_CHECKING:
    from duckanon.algorithms.full_domain.lattice import Lattice
    from duckanon.algorithms.full_domain.objectives import Objective


@algorithms.register("mingen")
@dataclass(frozen=True)
class MinGen(FullDomain):
    """The k-minimal distortion: every node is visited, and the most precise that keeps the promise is taken.

    Obviously right, and as slow as the lattice is large; ``optimal`` with the metric "precision" finds the same.

    Parameters
    ----------
    metric : str
        By which nodes are compared; precision in the paper.
    most : int
        The number of nodes from which on the search is refused.

    References
    ----------
    L. Sweeney, Achieving k-anonymity privacy protection using generalization and suppression, 2002.
    """

    metric: str = "precision"
    most: int = 200_000
    summary: ClassVar[str] = "minimal distortion by visiting every node (Sweeney 2002)"

    @property
    def minimal(self) -> bool:
        return True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "most", require_int("MinGen", "most", self.most, 1))

    def explore(self, lattice: Lattice, objective: Objective) -> Choice:
        from duckanon.algorithms.full_domain.minimal import best_of

        if lattice.size > self.most:
            raise UnsupportedError(
                f"The lattice has {lattice.size:,} nodes, and mingen visits every one: it is refused above "
                f"{self.most:,} (parameter most). The algorithm optimal finds the same without visiting them all."
            )
        anonymous = [levels for levels in lattice.nodes() if lattice.visit(levels).anonymous]
        levels, value = best_of(lattice, objective, anonymous)
        return Choice(levels, value, value)
