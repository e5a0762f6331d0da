"""Quality indices on property vectors (Dewri, Ray, Ray and Whitley 2009).

A property vector has one number for each row of the original: the size of its class, its utility, ... Higher is better,
and two vectors are compared row by row, so both must list the same rows in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.errors import ParameterError, did_you_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Index = Callable[[Any, Any], float]
    Choice = str | Index | Sequence[str | Index]
    Pairs = list[tuple[float, float]]

binary: dict[str, Index] = {}
"""The indices that compare two vectors, by name; higher is better for the first."""


def register_binary(index: Index) -> Index:
    """Make a binary index known under the name of its function."""
    binary[index.__name__] = index
    return index


def get_binary(index: str | Index) -> Index:
    """Return the binary index of that name, or the function itself."""
    if callable(index):
        return index
    try:
        return binary[index]
    except KeyError:
        known = ", ".join(sorted(binary))
        raise ParameterError(f"Unknown index {index!r}.{did_you_mean(index, binary)} Known: {known}.") from None


def vector(values: Any) -> Vector:
    """Return a property vector; a release stands for the sorted sizes of its rows' classes."""
    if hasattr(values, "recoding") and hasattr(values, "relations"):
        from duckanon.comparison.properties.class_size import ClassSize

        return ClassSize().vector(values)
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"A property vector is a sequence of numbers. Got a {type(values).__name__}.") from None
    if found.ndim != 1 or not len(found):
        raise ParameterError("A property vector has one dimension and at least one number.")
    if np.isnan(found).any():
        raise ParameterError(f"A property vector has no missing numbers. Got {int(np.isnan(found).sum())}.")
    return found


def _pair(a: Any, b: Any) -> tuple[Vector, Vector]:
    first, second = vector(a), vector(b)
    if len(first) != len(second):
        raise ParameterError(
            f"Two property vectors are compared row by row: their lengths {len(first)} and {len(second)} must be equal."
        )
    return first, second


def minimum(a: Any) -> float:
    """Return the smallest value: k of k-anonymity where the property is the size of a row's class (section 3).

    Examples
    --------
    >>> minimum([3, 3, 3, 3, 4, 4, 4, 3, 3, 4])
    3.0
    """
    return float(vector(a).min())


def average(a: Any) -> float:
    """Return the mean over rows (section 3).

    Examples
    --------
    >>> average([3, 3, 3, 3, 4, 4, 4, 3, 3, 4])
    3.4
    """
    return float(vector(a).mean())


def rank(a: Any, ideal: Any) -> float:
    """Return the Euclidean distance to the most desired vector, 0 at best (section 5.1).

    ``ideal`` may be one number that stands for every row.

    Examples
    --------
    >>> rank([3, 4], [6, 8])
    5.0
    """
    first = vector(a)
    goal = np.full_like(first, ideal) if np.isscalar(ideal) else ideal
    first, second = _pair(first, goal)
    return float(np.linalg.norm(first - second))


@register_binary
def count_better(a: Any, b: Any) -> float:
    """Return how many rows have a higher value in ``a`` than in ``b`` (P_binary of section 3).

    Examples
    --------
    >>> count_better([3, 7, 7, 3, 7, 7, 7, 3, 7, 7], [3, 3, 3, 3, 4, 4, 4, 3, 3, 4])
    7.0
    """
    first, second = _pair(a, b)
    return float(np.count_nonzero(first > second))


@register_binary
def coverage(a: Any, b: Any) -> float:
    """Return the share of rows whose value in ``a`` is at least that in ``b`` (section 5.2).

    Examples
    --------
    >>> a, b = [2, 2, 3, 4, 5], [3, 2, 4, 2, 3]
    >>> coverage(a, b), coverage(b, a)
    (0.6, 0.6)
    """
    first, second = _pair(a, b)
    return float(np.count_nonzero(first >= second)) / len(first)


@register_binary
def spread(a: Any, b: Any) -> float:
    """Return by how much ``a`` is higher than ``b``, summed over the rows where it is (section 5.3).

    Examples
    --------
    >>> a, b = [2, 2, 3, 4, 5], [3, 2, 4, 2, 3]
    >>> spread(a, b), spread(b, a)
    (4.0, 2.0)
    """
    first, second = _pair(a, b)
    return float(np.maximum(first - second, 0).sum())


@register_binary
def hypervolume(a: Any, b: Any) -> float:
    """Return the natural logarithm of the volume of vectors that only ``a`` dominates (section 5.4).

    The volume is the product of ``a`` minus the product of the row-wise minima; with thousands of rows it exceeds every
    floating-point number, so its logarithm is computed from sums of logarithms. Minus infinity means volume 0: no
    vector is dominated by ``a`` alone, that is, ``b`` weakly dominates ``a`` (or a value of ``a`` is 0).

    Examples
    --------
    >>> import math
    >>> s, t = [3, 3, 3, 5, 5, 5, 5, 5], [4] * 8
    >>> round(math.exp(hypervolume(s, t))), round(math.exp(hypervolume(t, s)))
    (56727, 37888)
    """
    first, second = _pair(a, b)
    if (first < 0).any() or (second < 0).any():
        raise ParameterError("The hypervolume is defined for vectors without negative values.")
    if (first == 0).any():
        return -float("inf")
    low = np.minimum(first, second)
    with np.errstate(divide="ignore"):
        # The sum of ratios is exactly 0 where all are equal; the difference of two large sums would not be.
        ratio = float(np.log(low / first).sum())
    if ratio == 0:
        return -float("inf")
    return float(np.log(first).sum() + np.log(-np.expm1(ratio)))


def dominates(a: Any, b: Any, *, strict: bool = False) -> bool:
    """Say whether ``a`` is nowhere lower than ``b`` (weak dominance), and with ``strict`` somewhere higher (table 4).

    Examples
    --------
    >>> dominates([3, 4], [3, 3], strict=True), dominates([3, 4], [4, 3])
    (True, False)
    """
    first, second = _pair(a, b)
    return bool((first >= second).all() and (not strict or (first > second).any()))


def incomparable(a: Any, b: Any) -> bool:
    """Say whether each vector is somewhere higher than the other (non-dominance of table 4).

    Examples
    --------
    >>> incomparable([3, 4], [4, 3])
    True
    """
    first, second = _pair(a, b)
    return bool((first < second).any() and (first > second).any())


def _indices(
    a: Sequence[Any], b: Sequence[Any], index: Any, **parameters: Sequence[float]
) -> list[tuple[float, float]]:
    """Return (P(a_i, b_i), P(b_i, a_i)) for each property; ``index`` is one index or one for each property."""
    if len(a) != len(b) or not len(a):
        raise ParameterError(f"Two sets of property vectors need the same properties. Got {len(a)} and {len(b)}.")
    for name, values in parameters.items():
        if len(values) != len(a):
            raise ParameterError(f"{name} needs one number for each of the {len(a)} properties. Got {len(values)}.")
    many = isinstance(index, list | tuple)
    if many and len(index) != len(a):
        raise ParameterError(f"index needs one name for each of the {len(a)} properties. Got {len(index)}.")
    chosen = [get_binary(i) for i in (index if many else [index] * len(a))]
    return [(p(x, y), p(y, x)) for p, x, y in zip(chosen, a, b, strict=True)]


def weighted(
    a: Sequence[Any],
    b: Sequence[Any],
    weights: Sequence[float],
    index: Choice = "coverage",
) -> float:
    """Return the weighted sum of an index over several properties (section 5.5); higher is better for ``a``.

    Examples
    --------
    >>> size_a, size_b = [3, 3, 4, 4], [3, 7, 7, 7]
    >>> utility_a, utility_b = [2.0, 1.7, 1.6, 1.6], [2.0, 1.0, 1.0, 1.0]
    >>> weighted([size_a, utility_a], [size_b, utility_b], [0.5, 0.5])
    0.625
    """
    pairs = _indices(a, b, index, weights=weights)
    return float(sum(w * forth for w, (forth, _) in zip(weights, pairs, strict=True)))


def lexicographic(
    a: Sequence[Any],
    b: Sequence[Any],
    epsilon: Sequence[float] | float = 0.0,
    index: Choice = "coverage",
) -> float:
    """Return the position, from 1, of the first property on which ``a`` is better by more than epsilon (section 5.6).

    The properties are given most wanted first; lower is better, and infinity says that there is no such property.

    Examples
    --------
    >>> lexicographic([[3, 3], [2, 2]], [[3, 3], [1, 1]])
    2.0
    """
    tolerance = [float(epsilon)] * len(a) if isinstance(epsilon, int | float) else list(epsilon)
    pairs = _indices(a, b, index, epsilon=tolerance)
    for position, (e, (forth, back)) in enumerate(zip(tolerance, pairs, strict=True), 1):
        if forth - back > e:
            return float(position)
    return float("inf")


def goal(a: Sequence[Any], b: Sequence[Any], goals: Sequence[float], index: Choice = "coverage") -> float:
    """Return the squared distance of an index from its goals, over several properties (section 5.7); lower is better.

    Examples
    --------
    >>> goal([[3, 3, 4, 4]], [[3, 7, 7, 7]], [1.0])
    0.5625
    """
    pairs = _indices(a, b, index, goals=goals)
    return float(sum((forth - g) ** 2 for g, (forth, _) in zip(goals, pairs, strict=True)))
