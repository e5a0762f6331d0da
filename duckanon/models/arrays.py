"""What the array forms of models share: sums, shares and largest values of classes, without a loop over classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from duckanon.errors import ParameterError
from duckanon.models.base import ROUNDING, Groups, Histograms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.models.base import Booleans, Floats, Integers


def column_words(sensitive: str | None) -> str:
    """Return how the sentence of a model names its column.

    Examples
    --------
    >>> column_words("disease"), column_words(None)
    ("'disease'", 'each sensitive column')
    """
    return "each sensitive column" if sensitive is None else repr(sensitive)


def histograms_of(groups: Groups) -> Histograms:
    """Return the histograms of the sensitive column; a search that gives none made a mistake."""
    if groups.histograms is None:
        raise ParameterError("This model reads a sensitive column, and none was given.")
    return groups.histograms


def population_of(groups: Groups) -> Integers:
    """Return the size of each class in the population; a search that gives none made a mistake."""
    if groups.population is None:
        raise ParameterError("This model needs a population table, and none was given.")
    return groups.population


def owners(starts: Integers) -> Integers:
    """Return the number of the class for every entry of a histogram."""
    import numpy as np

    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def totals(h: Histograms) -> Integers:
    """Return the rows of each class."""
    import numpy as np

    running = np.zeros(len(h.counts) + 1, dtype=np.int64)
    np.cumsum(h.counts, out=running[1:])
    return running[h.starts[1:]] - running[h.starts[:-1]]


def sums(owner: Integers, values: NDArray[Any], classes: int) -> Floats:
    """Return the sum of the entries of each class."""
    import numpy as np

    return np.asarray(np.bincount(owner, weights=values, minlength=classes), dtype=np.float64)


def largest(h: Histograms) -> Integers:
    """Return the largest count of each class, 0 where a class has none."""
    import numpy as np

    highest = np.zeros(len(h.starts) - 1, dtype=np.int64)
    filled = np.diff(h.starts) > 0
    if filled.any():
        highest[filled] = np.maximum.reduceat(h.counts, h.starts[:-1][filled])
    return highest


def whole_table(h: Histograms) -> Floats:
    """Return the frequency of every value in the whole table."""
    import numpy as np

    return np.asarray(h.totals / max(int(h.totals.sum()), 1), dtype=np.float64)


def distinct(h: Histograms) -> Floats:
    """Return how many different values each class has."""
    import numpy as np

    return np.diff(h.starts).astype(np.float64)


def gains(h: Histograms) -> Floats:
    """Return how many times as frequent every entry is in its class as in the whole table; NaN if it is not there."""
    import numpy as np

    q, p = h.counts / totals(h)[owners(h.starts)], whole_table(h)[h.codes]
    return np.asarray(np.divide(q, p, where=p > 0, out=np.full(len(p), np.nan)), dtype=np.float64)


def largest_value(h: Histograms, entries: Floats) -> Floats:
    """Return the largest value of the entries of each class; NaN of a class without entries, or with such an entry."""
    import numpy as np

    highest = np.full(len(h.starts) - 1, np.nan)
    filled = np.diff(h.starts) > 0
    if filled.any():
        highest[filled] = np.maximum.reduceat(entries, h.starts[:-1][filled])
    return highest


def smallest_first(sizes: Integers, holds: Callable[[Integers, Integers], Booleans]) -> Booleans:
    """Return the classes that stay when as few as possible are left out, smallest first.

    ``holds`` says for every number of classes left out, from none to all, whether the rest satisfies the model. It gets
    the sizes, ascending, and the members left over. No classes satisfy every model.
    """
    import numpy as np

    order = np.argsort(sizes, kind="stable")
    ordered = sizes[order]
    left = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(ordered, out=left[1:])
    fine = holds(ordered, left[-1] - left)
    fine[-1] = True
    stays = np.ones(len(sizes), dtype=np.bool_)
    stays[order[: int(np.argmax(fine))]] = False
    return stays


def least_share(measured: Floats, threshold: float, worst: float) -> Floats:
    """Return how much of a class must violate, of a measure that is convex: no more than the mean of its parts.

    Parts that satisfy have at most the threshold, others at most ``worst``; their mean reaches what was found.

    Examples
    --------
    >>> import numpy as np
    >>> least_share(np.array([0.1, 0.5, 1.0]), 0.2, 1.0).round(6).tolist()
    [0.0, 0.375, 1.0]
    """
    import numpy as np

    if worst <= threshold:
        return np.zeros(len(measured))
    return np.clip((measured - threshold - ROUNDING) / (worst - threshold), 0.0, 1.0)
