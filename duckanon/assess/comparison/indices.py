"""Quality indices on property vectors (Dewri, Ray, Ray and Whitley 2009).

A property vector has one number for each row of the original: the size of its class, its utility, ... Higher is better,
and two vectors are compared row by row, so both must list the same rows in the same order. A release in place of a
vector stands for the sizes of its rows' classes, in the order of the source. A vector of which lower is better (a loss,
a risk) is negated before it is compared, as ``compare`` does with such properties.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from functools import reduce
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from duckanon.errors import ParameterError, did_you_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Index = Callable[..., float]

unary: dict[str, Index] = {}
"""The indices that measure one vector, by name; higher is better."""
binary: dict[str, Index] = {}
"""The indices that compare two vectors, by name; higher is better for the first."""


def register_unary(index: Index) -> Index:
    """Make a unary index known under the name of its function."""
    unary[index.__name__] = index
    return index


def register_binary(index: Index) -> Index:
    """Make a binary index known under the name of its function."""
    binary[index.__name__] = index
    return index


def get_index(index: str | Index) -> tuple[Index, bool]:
    """Return the index of that name, or the function itself, and whether it takes one vector only.

    "rank" takes one vector, and besides it the most desired one, which the caller must know.
    """
    if callable(index):
        return index, _takes_one(index)
    if index == rank.__name__:
        return rank, True
    if index in unary:
        return unary[index], True
    if index in binary:
        return binary[index], False
    names = sorted([*unary, *binary, rank.__name__])
    raise ParameterError(f"Unknown index {index!r}.{did_you_mean(str(index), names)} Known: {', '.join(names)}.")


def _takes_one(index: Index) -> bool:
    """Return whether a function takes one vector (its other parameters have defaults), rather than two."""
    if index is rank or index in unary.values():
        return True
    if index in binary.values():
        return False
    try:
        parameters = list(signature(index).parameters.values())
    except (TypeError, ValueError):
        # Written in C without a signature, such as max and min: these are functions of one vector.
        return True
    asked = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    more = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    named = any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters)
    if named or len(asked) > 2 or not (asked or more):
        name = getattr(index, "__name__", type(index).__name__)
        raise ParameterError(f"An index is a function of one property vector, or of two. {name!r} is not.")
    return len(asked) == 1 and not more


def is_release(values: Any) -> bool:
    """Return whether this is a release rather than a vector."""
    return hasattr(values, "recoding") and hasattr(values, "relations")


def vector(values: Any) -> Vector:
    """Return a property vector; that of a release has the sizes of its rows' classes, in the order of the source."""
    if is_release(values):
        from duckanon.assess.comparison.properties.class_size import ClassSize
        from duckanon.assess.comparison.rows import Rows

        return ClassSize().vector(Rows.of(values))
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"A property vector is a sequence of numbers. Got a {type(values).__name__}.") from None
    if array.ndim != 1 or not len(array):
        raise ParameterError("A property vector has one dimension and at least one number.")
    if np.isnan(array).any():
        raise ParameterError(f"A property vector has no missing numbers. Got {int(np.isnan(array).sum())}.")
    return array


def pair(a: Any, b: Any) -> tuple[Vector, Vector]:
    """Return two vectors of the same rows."""
    if is_release(a) and is_release(b):
        from duckanon.assess.comparison.rows import Rows, require_same_rows

        require_same_rows([Rows.of(a), Rows.of(b)])
    first, second = vector(a), vector(b)
    if len(first) != len(second):
        raise ParameterError(
            f"Two property vectors are compared row by row: their lengths {len(first)} and {len(second)} must be equal."
        )
    return first, second


def is_set(values: Any) -> bool:
    """Return whether this is a set of property vectors rather than one: a mapping, a matrix, or a list of vectors."""
    if isinstance(values, Mapping):
        return True
    if isinstance(values, list | tuple):
        return bool(values) and (is_release(values[0]) or np.ndim(values[0]) > 0)
    return not is_release(values) and np.ndim(values) == 2


def pairs(a: Any, b: Any) -> list[tuple[Vector, Vector]]:
    """Return the vectors of two sets, property by property; a single vector is a set of one."""
    if is_set(a) != is_set(b):
        raise ParameterError("A set of property vectors is compared with another set, a vector with another vector.")
    if not is_set(a):
        return [pair(a, b)]
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() != b.keys():
            raise ParameterError("Two sets of property vectors need the same properties: their names differ.")
        return [pair(a[name], b[name]) for name in a]
    first, second = (list(s.values()) if isinstance(s, Mapping) else list(s) for s in (a, b))
    if len(first) != len(second) or not first:
        raise ParameterError(
            f"Two sets of property vectors need the same properties. Got {len(first)} and {len(second)}."
        )
    return [pair(x, y) for x, y in zip(first, second, strict=True)]


@register_unary
def minimum(a: Any) -> float:
    """Return the smallest value: k of k-anonymity where the property is the size of a row's class (section 3).

    Examples
    --------
    >>> minimum([3, 3, 3, 3, 4, 4, 4, 3, 3, 4])
    3.0
    """
    return float(vector(a).min())


@register_unary
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

    ``ideal`` may be one number for all rows. ``better(a, b, by="rank", ideal=..., epsilon=...)`` calls two
    vectors equally good whose distances differ by epsilon or less.

    Examples
    --------
    >>> rank([3, 4], [6, 8])
    5.0
    """
    first = vector(a)
    goal = np.full_like(first, ideal) if np.isscalar(ideal) else ideal
    first, second = pair(first, goal)
    return float(np.linalg.norm(first - second))


@register_binary
def count_better(a: Any, b: Any) -> float:
    """Return how many rows have a higher value in ``a`` than in ``b`` (P_binary of section 3).

    Examples
    --------
    >>> count_better([3, 7, 7, 3, 7, 7, 7, 3, 7, 7], [3, 3, 3, 3, 4, 4, 4, 3, 3, 4])
    7.0
    """
    first, second = pair(a, b)
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
    first, second = pair(a, b)
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
    first, second = pair(a, b)
    above = first > second
    return float(np.subtract(first, second, where=above, out=np.zeros_like(first)).sum())


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
    first, second = _spans(a, b)
    if (first == 0).any():
        return -float("inf")
    low = np.minimum(first, second)
    with np.errstate(divide="ignore"):
        # The sum of ratios is exactly 0 where all are equal; the difference of two large sums would not be.
        ratio = float(np.log(low / first).sum())
    if ratio == 0:
        return -float("inf")
    return float(np.log(first).sum() + np.log(-np.expm1(ratio)))


WIDE = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
"""Numbers of 60 digits and of any size: volumes of millions of rows, and what is computed from them."""


def volume(a: Any, b: Any) -> Decimal:
    """Return the volume of which ``hypervolume`` returns the logarithm, 0 included, however large it is.

    Sums, differences and distances of volumes differ in meaning from those of their logarithms.

    Examples
    --------
    >>> s, t = [3, 3, 3, 5, 5, 5, 5, 5], [4] * 8
    >>> int(volume(s, t)), int(volume(t, s))
    (56727, 37888)
    """
    first, second = _spans(a, b)
    low = np.minimum(first, second)
    # Two factors of 64 bits that differ do so in the first 16 digits, so that 60 are enough for what is left here.
    return Decimal(0) if (low == first).all() else WIDE.subtract(_product(first), _product(low))


def _product(values: Vector) -> Decimal:
    distinct, counts = np.unique(values, return_counts=True)
    powers = (WIDE.power(WIDE.create_decimal(v), n) for v, n in zip(distinct.tolist(), counts.tolist(), strict=True))
    return reduce(WIDE.multiply, powers)


def _spans(a: Any, b: Any) -> tuple[Vector, Vector]:
    """Return two vectors that have a volume."""
    first, second = pair(a, b)
    for values in (first, second):
        if (values < 0).any():
            raise ParameterError("The hypervolume is defined for vectors without negative values.")
        if np.isinf(values).any():
            raise ParameterError("The hypervolume is defined for vectors of finite values.")
    return first, second


def dominates(a: Any, b: Any, *, strict: bool = False) -> bool:
    """Return whether ``a`` is nowhere lower than ``b`` (weak dominance), and if ``strict`` somewhere higher (table 4).

    Of two sets of property vectors, every vector of ``a`` must be nowhere lower than its counterpart.

    Examples
    --------
    >>> dominates([3, 4], [3, 3], strict=True), dominates([3, 4], [4, 3])
    (True, False)
    >>> dominates([[3, 4], [1, 1]], [[3, 3], [1, 1]], strict=True)
    True
    """
    both = pairs(a, b)
    weakly = all(bool((x >= y).all()) for x, y in both)
    return weakly and (not strict or any(bool((x > y).any()) for x, y in both))


def incomparable(a: Any, b: Any) -> bool:
    """Return whether each is somewhere higher than the other (non-dominance of table 4), for vectors and sets of them.

    Examples
    --------
    >>> incomparable([3, 4], [4, 3]), incomparable([[3, 4], [1, 1]], [[3, 3], [2, 2]])
    (True, True)
    """
    both = pairs(a, b)
    return any(bool((x < y).any()) for x, y in both) and any(bool((x > y).any()) for x, y in both)
