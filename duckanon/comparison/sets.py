"""Indices on sets of property vectors, and one comparator for all (Dewri et al. 2009, sections 4 and 5.5 to 5.7)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from duckanon.comparison.indices import binary, dominates, get_index, hypervolume, pairs, rank, unary
from duckanon.errors import ParameterError, did_you_mean

if TYPE_CHECKING:
    from duckanon.comparison.indices import Index, Vector

    Choice = str | Index | Sequence[str | Index]
    Numbers = float | Sequence[float] | Mapping[str, float]

_EQUAL = 1e-12
SETS = ("weighted", "lexicographic", "goal")
"""The comparators that look at several properties at once."""
COMPARATORS = ("minimum", "average", "rank", "count_better", "coverage", "spread", "hypervolume", "dominance", *SETS)


def weighted(
    a: Any, b: Any, weights: Numbers | None = None, index: Choice = "coverage", *, normalize: bool = False
) -> float:
    """Return the weighted sum of an index over several properties (section 5.5); higher is better for ``a``.

    Parameters
    ----------
    a, b : sets of property vectors
        Lists or matrices of vectors, or mappings of property to vector.
    weights : sequence or mapping of numbers, optional
        One for each property; equal ones that sum to 1 without.
    index : name or function, or one for each property
    normalize : bool
        Divide each index by its sum over both directions first, as the paper advises where indices have different
        scales: what counts is then the part of the advantage that ``a`` has.

    Examples
    --------
    >>> size_a, size_b = [3, 3, 4, 4], [3, 7, 7, 7]
    >>> utility_a, utility_b = [2.0, 1.7, 1.6, 1.6], [2.0, 1.0, 1.0, 1.0]
    >>> weighted([size_a, utility_a], [size_b, utility_b], [0.5, 0.5])
    0.625
    """
    return _weighted(_both(a, b, index), weights, _names(a), index, normalize)[0]


def lexicographic(a: Any, b: Any, epsilon: Numbers = 0.0, index: Choice = "coverage") -> float:
    """Return the position, from 1, of the first property on which ``a`` is better by more than epsilon (section 5.6).

    The properties are given most wanted first, ``epsilon`` is the significance vector, or one number for all. Lower is
    better, and infinity says that there is no such property.

    Examples
    --------
    >>> lexicographic([[3, 3], [2, 2]], [[3, 3], [1, 1]])
    2.0
    """
    return _lexicographic(_both(a, b, index), epsilon, _names(a))[0]


def goal(
    a: Any, b: Any, goals: Numbers | None = None, index: Choice = "coverage", *, goal_vectors: Any = None
) -> float:
    """Return the squared distance of an index from its goals, over several properties (section 5.7); lower is better.

    With a unary ``index`` ("minimum", "average") ``b`` plays no part, and ``goal_vectors``, the property vectors that
    one wishes for, may stand in place of ``goals``: the goals are then their indices.

    Examples
    --------
    >>> goal([[3, 3, 4, 4]], [[3, 7, 7, 7]], [1.0])
    0.5625
    >>> goal([[3, 3, 4, 4]], [[3, 7, 7, 7]], index="average", goal_vectors=[[4, 4, 4, 4]])
    0.25
    """
    return _goal(_both(a, b, index), goals, _names(a), index, goal_vectors)[0]


def better(
    a: Any,
    b: Any,
    by: str | Index = "coverage",
    *,
    epsilon: Numbers = 0.0,
    ideal: Any = None,
    weights: Numbers | None = None,
    goals: Numbers | None = None,
    goal_vectors: Any = None,
    index: Choice = "coverage",
    normalize: bool = False,
) -> str:
    """Say which of two vectors, releases or sets of vectors is better by a comparator of the paper.

    Parameters
    ----------
    a, b : vectors, releases, or sets of vectors
        Higher values are better. A release stands for the sizes of its rows' classes.
    by : str or function
        "minimum", "average", "rank", "count_better", "coverage", "spread", "hypervolume", a binary index of one's own;
        "dominance"; for sets "weighted", "lexicographic" and "goal", which use ``index`` on each property.
    epsilon : number, or one for each property
        Two whose indices differ by no more are equally good; the significance vector of "lexicographic".
    ideal : number or vector
        The most desired vector of "rank".
    weights, goals, goal_vectors, index, normalize
        As for ``weighted`` and ``goal``.

    Returns
    -------
    str
        "first", "second", "equal", or "incomparable", which only "dominance" can say.

    References
    ----------
    R. Dewri, I. Ray, I. Ray and D. Whitley, On the comparison of microdata disclosure control algorithms, 2009.

    Examples
    --------
    >>> a, b = [2, 2, 3, 4, 5], [3, 2, 4, 2, 3]
    >>> better(a, b, by="coverage"), better(a, b, by="spread"), better(a, b, by="dominance")
    ('equal', 'first', 'incomparable')
    >>> better(a, b, by="rank", ideal=5), better(a, b, by="rank", ideal=5, epsilon=1)
    ('first', 'equal')
    >>> better([a, b], [b, a], by="weighted", weights=[0.9, 0.1], index="spread")
    'first'
    """
    parameters = {"goals": goals, "goal_vectors": goal_vectors, "index": index, "normalize": normalize}
    return matched(a, b, by, epsilon=epsilon, ideal=ideal, weights=weights, **parameters)[2]


def matched(
    a: Any,
    b: Any,
    by: str | Index,
    *,
    epsilon: Numbers = 0.0,
    ideal: Any = None,
    weights: Numbers | None = None,
    goals: Numbers | None = None,
    goal_vectors: Any = None,
    index: Choice = "coverage",
    normalize: bool = False,
) -> tuple[float, float, str]:
    """Return the index of the first beside the second, that of the second beside the first, and which is better."""
    if by == "lexicographic":
        forth, back = _lexicographic(_both(a, b, index), epsilon, _names(a))
        return forth, back, prefer(forth, back, higher=False)
    tolerance = _one(epsilon)
    if by == "dominance":
        above, below = dominates(a, b), dominates(b, a)
        return float(above), float(below), "incomparable" if not (above or below) else prefer(above, below)
    if by == "weighted":
        forth, back = _weighted(_both(a, b, index), weights, _names(a), index, normalize)
        return forth, back, prefer(forth, back, tolerance)
    if by == "goal":
        forth, back = _goal(_both(a, b, index), goals, _names(a), index, goal_vectors)
        return forth, back, prefer(forth, back, tolerance, higher=False)
    found = pairs(a, b)
    if len(found) != 1:
        raise ParameterError(f"{by!r} compares one property. For several: dominance, {', '.join(SETS)}.")
    return _single(*found[0], by, tolerance, ideal)


def _single(first: Vector, second: Vector, by: str | Index, epsilon: float, ideal: Any) -> tuple[float, float, str]:
    if by == "rank":
        if ideal is None:
            raise ParameterError("rank measures the distance to the most desired vector: give it as ideal.")
        forth, back = rank(first, ideal), rank(second, ideal)
        return forth, back, prefer(forth, back, epsilon, higher=False)
    if isinstance(by, str):
        require_known(by)
    function, alone = get_index(by)
    forth, back = (function(first), function(second)) if alone else (function(first, second), function(second, first))
    if function is hypervolume and math.isfinite(forth) and math.isfinite(back):
        return forth, back, _by_volume(first, second, epsilon)
    return forth, back, prefer(forth, back, epsilon)


def require_known(by: str) -> None:
    """Raise unless this is the name of a comparator."""
    if by not in COMPARATORS and by not in unary and by not in binary:
        raise ParameterError(
            f"Unknown index {by!r}.{did_you_mean(str(by), COMPARATORS)} Known: {', '.join(COMPARATORS)}."
        )


def prefer(forth: float, back: float, epsilon: float = 0.0, *, higher: bool = True) -> str:
    """Return "first", "second" or "equal" for the index of each; differences of rounding do not count."""
    if forth == back or math.isclose(forth, back, rel_tol=_EQUAL) or abs(forth - back) <= epsilon:
        return "equal"
    return "first" if (forth > back) == higher else "second"


def _by_volume(first: Vector, second: Vector, epsilon: float) -> str:
    """Compare products by the logarithm of their ratio, which is exact where two large logarithms are nearly equal."""
    import numpy as np

    ratios = np.log(first) - np.log(second)
    difference = float(ratios.sum())
    if abs(difference) <= max(epsilon, _EQUAL * float(np.abs(ratios).sum())):
        return "equal"
    return "first" if difference > 0 else "second"


def _names(a: Any) -> list[str] | None:
    return [str(name) for name in a] if isinstance(a, Mapping) else None


def _one(epsilon: Numbers) -> float:
    if not isinstance(epsilon, int | float):
        raise ParameterError("epsilon is one number here; only lexicographic takes one for each property.")
    return finite("epsilon", epsilon, 0)


def _both(a: Any, b: Any, index: Choice) -> list[tuple[float, float]]:
    """Return (P(a_i, b_i), P(b_i, a_i)) for each property; ``index`` is one index or one for each property."""
    found = pairs(a, b)
    chosen = [get_index(i) for i in _indices(index, len(found))]
    return [(p(x), p(y)) if alone else (p(x, y), p(y, x)) for (p, alone), (x, y) in zip(chosen, found, strict=True)]


def _indices(index: Choice, count: int) -> list[str | Index]:
    many: list[str | Index] = [index] * count if isinstance(index, str) or callable(index) else list(index)
    if len(many) != count:
        raise ParameterError(f"index needs one name for each of the {count} properties. Got {len(many)}.")
    return many


def numbers(name: str, given: Numbers | None, count: int, names: Sequence[str] | None, default: float) -> list[float]:
    """Return one number for each property: from a sequence, from a mapping by their names, or the same for all."""
    if given is None or isinstance(given, int | float):
        return [default if given is None else finite(name, given)] * count
    if isinstance(given, Mapping):
        unknown = [key for key in given if names is None or key not in names]
        if unknown:
            hint = did_you_mean(str(unknown[0]), names or ())
            raise ParameterError(f"{name} names {unknown[0]!r}, which is none of the properties.{hint}")
        return [finite(name, given.get(key, default)) for key in names or ()]
    listed = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    if len(listed) != count:
        raise ParameterError(f"{name} needs one number for each of the {count} properties. Got {len(listed)}.")
    return [finite(name, v) for v in listed]


def finite(name: str, value: object, least: float = -math.inf) -> float:
    """Return a number; raise a ParameterError for anything else, for one that is not finite, or below ``least``.

    Examples
    --------
    >>> finite("epsilon", 1, 0)
    1.0
    """
    fits = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value) and float(value) >= least
    if not fits:
        bound = "" if math.isinf(least) else f" of at least {least:g}"
        raise ParameterError(f"{name} must be a number{bound}.")
    return float(value)  # type: ignore[arg-type]


def _weighted(
    both: list[tuple[float, float]],
    weights: Numbers | None,
    names: Sequence[str] | None,
    index: Choice,
    normalize: bool,
) -> tuple[float, float]:
    chosen = numbers("weights", weights, len(both), names, 0.0 if weights is not None else 1 / len(both))
    if any(w < 0 for w in chosen):
        raise ParameterError("weights are not negative.")
    if normalize:
        logs = [i in ("hypervolume", hypervolume) for i in _indices(index, len(both))]
        both = [_shares(f, b, log) for (f, b), log in zip(both, logs, strict=True)]
    # A property without weight plays no part, not even where its index is infinite.
    used = [(w, f, b) for w, (f, b) in zip(chosen, both, strict=True) if w]
    return math.fsum(w * f for w, f, _ in used), math.fsum(w * b for w, _, b in used)


def _shares(forth: float, back: float, log: bool) -> tuple[float, float]:
    """Return an index and its reverse as parts of 1; half each where both are 0."""
    if log:
        high = max(forth, back)
        if math.isinf(high):
            return 0.5, 0.5
        forth, back = math.exp(forth - high), math.exp(back - high)
    total = forth + back
    return (forth / total, back / total) if total else (0.5, 0.5)


def _lexicographic(
    both: list[tuple[float, float]], epsilon: Numbers, names: Sequence[str] | None
) -> tuple[float, float]:
    tolerance = [finite("epsilon", e, 0) for e in numbers("epsilon", epsilon, len(both), names, 0.0)]
    verdicts = [prefer(f, b, e) for e, (f, b) in zip(tolerance, both, strict=True)]
    forth, back = (float(verdicts.index(word) + 1) if word in verdicts else math.inf for word in ("first", "second"))
    return forth, back


def _goal(
    both: list[tuple[float, float]],
    goals: Numbers | None,
    names: Sequence[str] | None,
    index: Choice,
    goal_vectors: Any,
) -> tuple[float, float]:
    if (goals is None) == (goal_vectors is None):
        raise ParameterError("Give either goals, one number for each property, or goal_vectors.")
    if goal_vectors is not None:
        chosen = [get_index(i) for i in _indices(index, len(both))]
        if not all(alone for _, alone in chosen):
            raise ParameterError("goal_vectors need a unary index: minimum or average.")
        wished = list(goal_vectors.values()) if isinstance(goal_vectors, Mapping) else list(goal_vectors)
        if isinstance(goal_vectors, Mapping) and names is not None and set(goal_vectors) == set(names):
            wished = [goal_vectors[name] for name in names]
        if len(wished) != len(both):
            raise ParameterError(f"goal_vectors needs one for each of the {len(both)} properties. Got {len(wished)}.")
        goals = [p(v) for (p, _), v in zip(chosen, wished, strict=True)]
    if isinstance(goals, Mapping) and names is not None and set(goals) != set(names):
        raise ParameterError("goals needs one number for each property.")
    wanted = numbers("goals", goals, len(both), names, 0.0)
    forth, back = (math.fsum((pair[side] - g) ** 2 for g, pair in zip(wanted, both, strict=True)) for side in (0, 1))
    return forth, back
