"""Indices on sets of property vectors, and one comparator for all (Dewri et al. 2009, sections 4 and 5.5 to 5.7)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, localcontext
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

from duckanon.assess.comparison.indices import (
    WIDE,
    binary,
    dominates,
    get_index,
    hypervolume,
    pairs,
    rank,
    unary,
    vector,
    volume,
)
from duckanon.errors import ParameterError, did_you_mean

if TYPE_CHECKING:
    from duckanon.assess.comparison.indices import Index, Vector

    Choice = str | Index | Sequence[str | Index]
    Numbers = float | Sequence[float] | Mapping[str, float]

_EQUAL = 1e-12
SETS = ("weighted", "lexicographic", "goal")
"""The comparators of several properties at once."""
COMPARATORS = ("minimum", "average", "rank", "count_better", "coverage", "spread", "hypervolume", "dominance", *SETS)


class Both(NamedTuple):
    """An index of one property in both directions, as numbers that no volume is too large for."""

    forth: Decimal
    back: Decimal
    higher: bool = True

    def upward(self) -> Both:
        """Return it so that higher is better."""
        return self if self.higher else Both(-self.forth, -self.back)

    def shares(self) -> Both:
        """Return both directions as parts of 1, the better one the larger; half each where both are 0."""
        with localcontext(WIDE):
            forth, back = (self.forth, self.back) if self.higher else (self.back, self.forth)
            total = forth + back
            return Both(forth / total, back / total) if total else Both(Decimal("0.5"), Decimal("0.5"))

    def step(self) -> Decimal:
        """Return by how much the first exceeds the second, 0 where that is no more than rounding."""
        with localcontext(WIDE):
            difference = self.forth - self.back
            near = Decimal(_EQUAL) * max(abs(self.forth), abs(self.back))
            return Decimal(0) if abs(difference) <= near else difference


class Verdict(NamedTuple):
    """The index of the first, that of the second, and which is better."""

    forth: float
    back: float
    winner: str


def weighted(
    a: Any,
    b: Any,
    weights: Numbers | None = None,
    index: Choice = "coverage",
    *,
    normalize: bool = False,
    ideal: Any = None,
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
    ideal : number, or a number or vector for each property
        The most desired vectors of "rank"; as of that index lower is better, its negative is summed.

    Notes
    -----
    Of "hypervolume" the volumes themselves are summed, not their logarithms. The sum of those of many rows is infinity
    here, where it is larger than every float; ``better`` compares it all the same.

    Examples
    --------
    >>> size_a, size_b = [3, 3, 4, 4], [3, 7, 7, 7]
    >>> utility_a, utility_b = [2.0, 1.7, 1.6, 1.6], [2.0, 1.0, 1.0, 1.0]
    >>> weighted([size_a, utility_a], [size_b, utility_b], [0.5, 0.5])
    0.625
    """
    return _weighted(_both(a, b, index, ideal), weights, _names(a), normalize).forth


def lexicographic(a: Any, b: Any, epsilon: Numbers = 0.0, index: Choice = "coverage", *, ideal: Any = None) -> float:
    """Return the position, from 1, of the first property on which ``a`` is better by more than epsilon (section 5.6).

    The properties are given most wanted first, ``epsilon`` is the significance vector, or one number for all. Lower is
    better, and infinity means that there is no such property. ``ideal`` is as in ``weighted``; the hypervolume is that
    of section 5.4, not its logarithm.

    Examples
    --------
    >>> lexicographic([[3, 3], [2, 2]], [[3, 3], [1, 1]])
    2.0
    """
    return _lexicographic(_both(a, b, index, ideal), epsilon, _names(a)).forth


def goal(
    a: Any,
    b: Any,
    goals: Numbers | None = None,
    index: Choice = "coverage",
    *,
    goal_vectors: Any = None,
    ideal: Any = None,
) -> float:
    """Return the squared distance of an index from its goals, over several properties (section 5.7); lower is better.

    With a unary ``index`` ("minimum", "average", "rank" with its ``ideal``) ``b`` plays no part, and ``goal_vectors``,
    the property vectors that are wished for, may replace ``goals``: the goals are then their indices. That of
    "hypervolume" is a volume, not a logarithm.

    Examples
    --------
    >>> goal([[3, 3, 4, 4]], [[3, 7, 7, 7]], [1.0])
    0.5625
    >>> goal([[3, 3, 4, 4]], [[3, 7, 7, 7]], index="average", goal_vectors=[[4, 4, 4, 4]])
    0.25
    >>> goal([[3, 4]], [[6, 8]], [4.0], index="rank", ideal=[[6, 8]])
    1.0
    """
    return _goal(_both(a, b, index, ideal), goals, _names(a), index, goal_vectors, ideal).forth


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
    """Return which of two vectors, releases or sets of vectors is better by a comparator of the paper.

    Parameters
    ----------
    a, b : vectors, releases, or sets of vectors
        Higher values are better. A release is compared by the sizes of its rows' classes.
    by : str or function
        "minimum", "average", "rank", "count_better", "coverage", "spread", "hypervolume", an index of your own, which
        is a function of one vector or of two; "dominance"; for sets "weighted", "lexicographic" and "goal", which use
        ``index`` on each property.
    epsilon : number, or one for each property
        Two whose indices differ by no more are equally good; the significance vector of "lexicographic".
    ideal : number or vector, for sets a number, or a number or vector for each property
        The most desired vector of "rank".
    weights, goals, goal_vectors, index, normalize
        As for ``weighted`` and ``goal``.

    Returns
    -------
    str
        "first", "second", "equal", or "incomparable", which only "dominance" can return.

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
        return _lexicographic(_both(a, b, index, ideal), epsilon, _names(a))
    tolerance = _one(epsilon)
    if by == "dominance":
        above, below = dominates(a, b), dominates(b, a)
        return float(above), float(below), "incomparable" if not (above or below) else prefer(above, below)
    if by == "weighted":
        return _weighted(_both(a, b, index, ideal), weights, _names(a), normalize, tolerance)
    if by == "goal":
        both = _both(a, b, index, ideal)
        return _goal(both, goals, _names(a), index, goal_vectors, ideal, tolerance)
    vectors = pairs(a, b)
    if len(vectors) != 1:
        raise ParameterError(f"{by!r} compares one property. For several: dominance, {', '.join(SETS)}.")
    return _single(*vectors[0], by, tolerance, ideal)


def _single(first: Vector, second: Vector, by: str | Index, epsilon: float, ideal: Any) -> tuple[float, float, str]:
    if isinstance(by, str):
        require_known(by)
    function, alone = get_index(by)
    forth, back = _values(function, alone, first, second, ideal)
    if function is hypervolume and math.isfinite(forth) and math.isfinite(back):
        return forth, back, _by_volume(first, second, epsilon)
    return forth, back, prefer(forth, back, epsilon, higher=function is not rank)


def _values(function: Index, alone: bool, first: Vector, second: Vector, ideal: Any) -> tuple[float, float]:
    """Return an index of the first beside the second, and of the second beside the first."""
    if function is rank:
        return _rank(first, ideal), _rank(second, ideal)
    given = ((first,), (second,)) if alone else ((first, second), (second, first))
    return _number(function, *given[0]), _number(function, *given[1])


def _rank(values: Any, ideal: Any) -> float:
    if ideal is None:
        raise ParameterError("rank measures the distance to the most desired vector: give it as ideal.")
    return rank(values, ideal)


def _number(function: Index, *given: Vector) -> float:
    """Return the value of an index, which may be a function of the caller."""
    index_value = function(*given)
    try:
        value = float(index_value)
    except (TypeError, ValueError):
        value = math.nan
    if math.isnan(value):
        name = getattr(function, "__name__", type(function).__name__)
        raise ParameterError(f"An index is a number. That of the function {name!r} is none.")
    return value


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


def _both(a: Any, b: Any, index: Choice, ideal: Any) -> list[Both]:
    """Return (P(a_i, b_i), P(b_i, a_i)) for each property; ``index`` is one index or one for each property."""
    vectors = pairs(a, b)
    chosen = [get_index(i) for i in _indices(index, len(vectors))]
    ideals = _ideals(ideal, len(vectors), _names(a))
    both = []
    for (function, alone), (x, y), wished in zip(chosen, vectors, ideals, strict=True):
        if function is hypervolume:
            both.append(Both(volume(x, y), volume(y, x)))
        else:
            forth, back = _values(function, alone, x, y, wished)
            both.append(Both(Decimal(forth), Decimal(back), function is not rank))
    return both


def _ideals(given: Any, count: int, names: Sequence[str] | None) -> list[Any]:
    """Return the most desired vector of each property: the same number for all, or one for each."""
    if given is None or isinstance(given, Real):
        return [given] * count
    if isinstance(given, Mapping):
        unknown = [key for key in given if names is None or str(key) not in names]
        if unknown:
            raise ParameterError(f"ideal names {unknown[0]!r}, which is none of the properties.")
        return [given.get(name) for name in names or ()]
    listed = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    if len(listed) != count:
        raise ParameterError(f"ideal needs a number or a vector for each of the {count} properties. Got {len(listed)}.")
    return listed


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
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ParameterError(f"{name} must be a number, or one for each property. Got a {type(given).__name__}.")
    listed = list(given)
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
    both: list[Both], weights: Numbers | None, names: Sequence[str] | None, normalize: bool, epsilon: float = 0.0
) -> Verdict:
    chosen = numbers("weights", weights, len(both), names, 0.0 if weights is not None else 1 / len(both))
    if any(w < 0 for w in chosen):
        raise ParameterError("weights are not negative.")
    # A property without weight plays no part, not even where its index is infinite.
    used = [(Decimal(w), one.shares() if normalize else one.upward()) for w, one in zip(chosen, both, strict=True) if w]
    with localcontext(WIDE):
        forth, back = (sum((w * one[side] for w, one in used), Decimal(0)) for side in (0, 1))
        steps = [w * one.step() for w, one in used]
    return Verdict(float(forth), float(back), _decide(forth, back, steps, epsilon))


def _decide(forth: Decimal, back: Decimal, steps: Sequence[Decimal], epsilon: float, higher: bool = True) -> str:
    """Return which of two sums is better; ``steps`` are the differences of their terms.

    The steps keep what the sums lose where one term is much larger than another: whether the smaller one decides.
    """
    with localcontext(WIDE):
        difference = sum(steps, Decimal(0))
        if not difference.is_finite():
            return prefer(float(forth), float(back), epsilon, higher=higher)
        rounding = Decimal(_EQUAL) * sum((abs(step) for step in steps), Decimal(0))
        if abs(difference) <= Decimal(epsilon) + rounding:
            return "equal"
        return "first" if (difference > 0) == higher else "second"


def _lexicographic(both: list[Both], epsilon: Numbers, names: Sequence[str] | None) -> Verdict:
    tolerance = [finite("epsilon", e, 0) for e in numbers("epsilon", epsilon, len(both), names, 0.0)]
    verdicts = []
    for allowed, one in zip(tolerance, both, strict=True):
        up = one.upward()
        verdicts.append(_decide(up.forth, up.back, [up.step()], allowed))
    forth, back = (float(verdicts.index(word) + 1) if word in verdicts else math.inf for word in ("first", "second"))
    return Verdict(forth, back, prefer(forth, back, higher=False))


def _goal(
    both: list[Both],
    goals: Numbers | None,
    names: Sequence[str] | None,
    index: Choice,
    goal_vectors: Any,
    ideal: Any,
    epsilon: float = 0.0,
) -> Verdict:
    if (goals is None) == (goal_vectors is None):
        raise ParameterError("Give either goals, one number for each property, or goal_vectors.")
    if goal_vectors is not None:
        chosen = [get_index(i) for i in _indices(index, len(both))]
        if not all(alone for _, alone in chosen):
            raise ParameterError("goal_vectors need a unary index: minimum, average or rank.")
        wished = list(goal_vectors.values()) if isinstance(goal_vectors, Mapping) else list(goal_vectors)
        if isinstance(goal_vectors, Mapping) and names is not None and set(goal_vectors) == set(names):
            wished = [goal_vectors[name] for name in names]
        if len(wished) != len(both):
            raise ParameterError(f"goal_vectors needs one for each of the {len(both)} properties. Got {len(wished)}.")
        ideals = _ideals(ideal, len(both), names)
        goals = [
            _rank(v, best) if p is rank else _number(p, vector(v))
            for (p, _), v, best in zip(chosen, wished, ideals, strict=True)
        ]
    if isinstance(goals, Mapping) and names is not None and set(goals) != set(names):
        raise ParameterError("goals needs one number for each property.")
    wanted = [Decimal(g) for g in numbers("goals", goals, len(both), names, 0.0)]
    with localcontext(WIDE):
        pairs_of = list(zip(wanted, both, strict=True))
        forth, back = (sum(((one[side] - g) ** 2 for g, one in pairs_of), Decimal(0)) for side in (0, 1))
        steps = [one.step() * (one.forth + one.back - 2 * g) for g, one in pairs_of]
    return Verdict(float(forth), float(back), _decide(forth, back, steps, epsilon, higher=False))
