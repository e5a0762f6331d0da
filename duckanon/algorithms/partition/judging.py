"""Check classes of items with the models' own array form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from duckanon.algorithms.partition.partition import Parts
from duckanon.models.base import Groups, Histograms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.algorithms.partition.items import Items
    from duckanon.algorithms.partition.partition import Rules


def undivided(items: Items, starts: NDArray[np.int64], rules: Rules) -> Parts:
    """Return runs of items as classes without regions; who is in them only where more than rows is counted."""
    counted = items.counts is not None or items.entity is not None or rules.totals
    none = np.empty((len(starts) - 1, 0), dtype=np.int32)
    return Parts(np.arange(len(items) if counted else 0, dtype=np.int32), starts, none, none)


def rows_of(parts: Parts, counts: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Return the rows of each class."""
    if counts is None:
        return np.diff(parts.starts)
    running = np.concatenate([[0], np.cumsum(counts[parts.order])])
    return np.asarray(running[parts.starts[1:]] - running[parts.starts[:-1]], dtype=np.int64)


def judge(parts: Parts, items: Items, rules: Rules) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return for each class whether every model is satisfied, and its number of members."""
    rows = rows_of(parts, items.counts)
    classes = len(rows)
    sizes = rows
    owner = np.empty(0, dtype=np.int64)
    if items.entity is not None or rules.totals:
        owner = np.repeat(np.arange(classes), np.diff(parts.starts))
    if items.entity is not None:
        people = items.entity[parts.order].astype(np.int64)
        most = int(people.max(initial=0)) + 1
        sizes = np.bincount(np.unique(owner * most + people) // most, minlength=classes)
    fine = rows >= rules.least
    counted: dict[str, Groups] = {}
    for model in rules.models:
        name = getattr(model, "sensitive", None)
        if name is not None and name not in counted:
            totals, ancestors = rules.totals[name]
            key, inverse = np.unique(
                owner * len(totals) + items.values[name][parts.order].astype(np.int64), return_inverse=True
            )
            weights = None if items.counts is None else items.counts[parts.order]
            counts = np.bincount(inverse, weights=weights, minlength=len(key)).astype(np.int64)
            starts = np.searchsorted(key, np.arange(classes + 1) * len(totals))
            histograms = Histograms(starts, key % len(totals), counts, totals, ancestors)
            counted[name] = Groups(sizes, rows, histograms=histograms)
        fine &= model.satisfied(counted[name] if name is not None else Groups(sizes, rows))
    return fine, sizes
