"""Which classes of a recoding may be published, by all models together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from duckanon.models.base import Groups

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.models.base import Model

    Booleans = NDArray[np.bool_]


def publishable(
    models: Sequence[Model],
    groups_of: Callable[[Model], Groups],
    kept: Booleans,
    asked: Callable[[Model, Groups, Booleans], None] | None = None,
) -> Booleans:
    """Return which of the classes in ``kept`` may be published together, the others being suppressed.

    Models of single classes come first. Promises about the whole table look at the classes that all others leave, again
    and again until nothing more is left out. Where a class that must not be suppressed is, nothing may be published.
    ``asked`` is called after each model of single classes, with its input and the classes kept so far.
    """
    for model in models:
        if not model.traits.whole_table:
            groups = groups_of(model)
            kept = kept & model.satisfied(groups)
            if asked is not None:
                asked(model, groups, kept)
    about_all = [model for model in models if model.traits.whole_table]
    before = -1
    while about_all and (count := int(kept.sum())) != before:
        before = count
        for model in about_all:
            places = np.flatnonzero(kept)
            kept = kept.copy()
            kept[places] = model.satisfied(_at(groups_of(model), places))
    for model in models:
        needed = model.indispensable(groups_of(model))
        if needed is not None and (needed & ~kept).any():
            return np.zeros_like(kept)
    return kept


def _at(groups: Groups, places: NDArray[np.int64]) -> Groups:
    return Groups(groups.sizes[places], groups.rows[places])
