"""An axis of a partition with the order of its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duckanon.algorithms.partition.partition import Axis

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Placed:
    """An axis and its order: ``place[code]`` of each value, also as the table ``(code, place)``.

    ``grid`` is the table of ``grid_bounds`` where cuts come only between the groups of the first level.
    """

    axis: Axis
    place: Integers
    table: str
    grid: str | None = None

    @property
    def code(self) -> Integers:
        """The code at each place."""
        import numpy as np

        found = np.empty_like(self.place)
        found[self.place] = np.arange(len(self.place))
        return found
