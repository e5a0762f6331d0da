"""Find the class of a row by descending the tree of cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from duckanon.kernels.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOWHERE = -(2**62)
"""The end of a path that leads to no class."""


@kernel
def descend(
    places: NDArray[np.int32],
    axes: NDArray[np.int64],
    rest: NDArray[np.int64],
    starts: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    ways: NDArray[np.int64],
    first: NDArray[np.int32],
    last: NDArray[np.int32],
    found: NDArray[np.int64],
) -> None:  # pragma: no cover
    """Fill ``found`` with the class of each row of ``places``, -1 for none.

    Cut i looks at the place on axis ``axes[i]``; the ways from ``starts[i]`` to ``starts[i + 1]`` are for the places
    from ``low`` to ``high``, which ascend, and ``rest[i]`` is for all others. A way of 0 or more leads to another cut,
    -1 - c to class c. A class has only rows between the places ``first`` and ``last`` on every axis.
    """
    for i in range(len(places)):
        way = 0 if len(axes) else -1
        while way >= 0:
            at, place = way, places[i, axes[way]]
            way = rest[at]
            a, b = starts[at], starts[at + 1]
            while a < b:
                middle = (a + b) // 2
                if place > high[middle]:
                    a = middle + 1
                else:
                    b = middle
            if a < starts[at + 1] and low[a] <= place:
                way = ways[a]
        own = -1 if way == NOWHERE else -1 - way
        if own >= 0:
            for j in range(places.shape[1]):
                if places[i, j] < first[own, j] or places[i, j] > last[own, j]:
                    own = -1
                    break
        found[i] = own


__all__ = ["NOWHERE", "descend"]
