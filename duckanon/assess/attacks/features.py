"""Published tuples and people as a learner reads them: the middle of what a cell stands for, and shares of values.

A number is the middle of its cell; of a column with few values each is a feature of its own, of which a cell that
stands for several has as many shares. An attacker trains on cells and asks about exact values: a value is read as the
cells that can stand for it are on average, which is the cell itself where there is only one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from duckanon.assess.attacks.linkage_axis import Axis
    from duckanon.assess.attacks.sight import People, View

    Floats = NDArray[np.float64]

FEW = 32
"""Most values of a column that are features of their own; those of others are their places."""


def of_tuples(view: View) -> Floats:
    """Return the features of the tuples of a view."""
    import numpy as np

    parts = []
    for j, axis in enumerate(view.sight.axes[c] for c in view.columns):
        own = _shares(axis) if _split(axis) else _middles(axis)[:, None]
        parts.append(own[view.cells[:, j]])
    return np.concatenate(parts, axis=1)


def of_people(view: View, people: People) -> Floats:
    """Return the features of people on the columns of a view."""
    import numpy as np

    parts = []
    for j, column in enumerate(view.columns):
        axis = view.sight.axes[column]
        rows = np.bincount(view.cells[:, j], weights=view.sizes, minlength=len(axis.low)).astype(np.float64)
        own = people.points[:, column]
        if _split(axis):
            parts.append(_value_shares(axis, rows)[own.astype(np.int64)])
        else:
            parts.append(_value_middles(axis, rows, own)[:, None])
    return np.concatenate(parts, axis=1)


def _split(axis: Axis) -> bool:
    return not axis.ordered and len(axis.places) <= FEW


def _middles(axis: Axis) -> Floats:
    import numpy as np

    whole = np.isinf(axis.low)
    middle = 0.5 if axis.ordered else (len(axis.places) - 1) / 2
    return np.where(whole, middle, (np.where(whole, 0, axis.low) + np.where(whole, 0, axis.high)) / 2)


def _value_middles(axis: Axis, rows: Floats, places: Floats) -> Floats:
    """Return the mean middle of the cells over each place, weighted by their rows; without one, the place itself."""
    import numpy as np

    middles = _middles(axis)
    sums = []
    for weight in (rows, rows * middles):
        # Cells that begin at or before a place, less those that end before it.
        begun, ended = np.argsort(axis.low, kind="stable"), np.argsort(axis.high, kind="stable")
        first = np.concatenate(([0.0], np.cumsum(weight[begun])))
        last = np.concatenate(([0.0], np.cumsum(weight[ended])))
        opened = np.searchsorted(axis.low[begun], places, side="right")
        closed = np.searchsorted(axis.high[ended], places, side="left")
        sums.append(first[opened] - last[closed])
    count, total = sums
    covered = count > 0.5
    return np.where(covered, total / np.where(covered, count, 1.0), places)


def _inside(axis: Axis) -> NDArray[np.bool_]:
    """Return which values each cell can stand for."""
    import numpy as np

    place = np.arange(len(axis.places))
    inside: NDArray[np.bool_] = (axis.low[:, None] <= place) & (place <= axis.high[:, None])
    for cell in np.flatnonzero(axis.start >= 0):
        inside[cell] = np.isin(place, axis.members[axis.start[cell] : axis.stop[cell]])
    return inside


def _shares(axis: Axis) -> Floats:
    """Return for each cell the share that each value has of it."""
    import numpy as np

    inside = _inside(axis)
    return np.asarray(inside / np.maximum(inside.sum(axis=1, keepdims=True), 1), dtype=np.float64)


def _value_shares(axis: Axis, rows: Floats) -> Floats:
    """Return for each value the mean shares of the cells over it; of a value without one, itself."""
    import numpy as np

    over = _inside(axis).T * rows
    total = over.sum(axis=1, keepdims=True)
    mean = over @ _shares(axis) / np.maximum(total, 1)
    return np.where(total > 0, mean, np.eye(len(axis.places)))
