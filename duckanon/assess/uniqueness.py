"""How many people are unique in the population, estimated from the class sizes of a sample.

Only the number of classes of each size is used, never a row. Every estimate is the share of the population that is
alone in its class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from duckanon.errors import ParameterError
from duckanon.models.base import require_int, require_number

_SMALL_FRACTION = 0.1
_STEPS = 200
_LEAST_ALPHA = 1e-6


@dataclass(frozen=True)
class Uniqueness:
    """Population uniqueness by four estimators; None where an estimator has no solution on these class sizes.

    Parameters
    ----------
    population_size : int
    sampling_fraction : float
        Members of the sample / members of the population.
    zayatz, snb, pitman : float or None
        Shares of the population that are unique.
    dankar : float
        The one of the three that the decision rule chooses, named in ``chosen``.
    chosen : str
    """

    population_size: int
    sampling_fraction: float
    zayatz: float
    snb: float | None
    pitman: float | None
    dankar: float
    chosen: str

    def to_dict(self) -> dict[str, Any]:
        """Return the estimates as plain values."""
        return asdict(self)


def population_size(members: int, size: object, fraction: object) -> int | None:
    """Return the size of the population from what was given, or None if nothing was.

    Examples
    --------
    >>> population_size(50, None, 0.1), population_size(50, 400, None), population_size(50, None, None)
    (500, 400, None)
    """
    if size is not None and fraction is not None:
        raise ParameterError("Give either population_size or sampling_fraction of risk, not both.")
    if size is not None:
        total = require_int("risk", "population_size", size, 1)
        if total < members:
            raise ParameterError(
                f"The 'population_size' parameter of risk is {total}, but the data have {members} members."
            )
        return total
    if fraction is not None:
        return max(members, round(members / require_number("risk", "sampling_fraction", fraction, 0, 1, above=True)))
    return None


def estimate(counts: Mapping[int, int], population: int) -> Uniqueness:
    """Estimate population uniqueness from how many classes of the sample have each size.

    Parameters
    ----------
    counts : mapping of class size to number of classes
    population : int
        Members of the population, at least those of the sample.

    Notes
    -----
    The rule: a sampling fraction of at most 0.1 takes Pitman's estimate, a larger one the smaller of the SNB and
    Zayatz's; where the estimate has no solution, Zayatz's.

    A sample without singletons gives 0 everywhere, one with nothing but singletons 1 by Pitman and SNB, and one that is
    the whole population its own uniqueness.

    References
    ----------
    F. Dankar, K. El Emam, A. Neisa and T. Roffey, Estimating the re-identification risk of clinical data sets, 2012.

    Examples
    --------
    >>> found = estimate({1: 40, 2: 20, 5: 4}, 1000)
    >>> found.chosen, round(found.zayatz, 3), round(found.dankar, 3)
    ('pitman', 0.179, 0.07)
    """
    sizes = {int(size): int(n) for size, n in sorted(counts.items()) if n > 0}
    members = sum(size * n for size, n in sizes.items())
    fraction = members / population
    alone = sizes.get(1, 0)
    if not alone or population <= members:
        share = alone / members if members else 0.0
        return Uniqueness(population, fraction, share, share, share, share, "zayatz")
    by_zayatz, by_snb, by_pitman = zayatz(sizes, population), snb(sizes, population), pitman(sizes, population)
    chosen, best = "zayatz", by_zayatz
    if fraction <= _SMALL_FRACTION:
        if by_pitman is not None:
            chosen, best = "pitman", by_pitman
    elif by_snb is not None and by_snb <= by_zayatz:
        chosen, best = "snb", by_snb
    return Uniqueness(population, fraction, by_zayatz, by_snb, by_pitman, best, chosen)


def zayatz(sizes: Mapping[int, int], population: int) -> float:
    """Return the estimate by the equivalence class model.

    By Bayes' rule a singleton of the sample is one of the population with P(F = 1 | f = 1), taking the sample's shares
    of class sizes for the population's; P(f = 1 | F = j) is hypergeometric.

    References
    ----------
    L. Zayatz, Estimation of the percent of unique population elements on a microdata file using the sample, 1991.
    """
    members = sum(size * n for size, n in sizes.items())

    def drawn_once(size: int) -> float:
        """Return the logarithm of the probability that one of ``size`` members is in the sample."""
        if population - size < members - 1:
            return -math.inf
        return math.log(size) + _log_choose(population - size, members - 1) - _log_choose(population, members)

    total = sum(n * math.exp(drawn_once(size)) for size, n in sizes.items())
    alone = sizes.get(1, 0)
    true = alone * math.exp(drawn_once(1)) / total if total else 0.0
    return alone * true / members


def snb(sizes: Mapping[int, int], population: int) -> float | None:
    """Return the estimate by the slide negative binomial model, or None where its equations have no solution.

    Class sizes less one are negative binomial (alpha, beta), and the sample is drawn from them by coin tosses. K, the
    classes of the population, is Shlosser's estimate as modified by Haas and Stokes; alpha and beta make the expected
    singletons and pairs those of the sample; K beta^alpha classes are singletons.

    References
    ----------
    G. Chen and S. Keller-McNulty, Estimation of identification disclosure risk in microdata, 1998; P. Haas and L.
    Stokes, Estimating the number of classes in a finite population, 1998.
    """
    members = sum(size * n for size, n in sizes.items())
    f, alone, pairs = members / population, sizes.get(1, 0), sizes.get(2, 0)
    classes = shlosser(sizes, f)
    if alone == members:
        return 1.0
    if not pairs:
        # alpha is 0, and every class of the population a singleton: possible only where that explains the sample.
        return min(1.0, classes / population) if math.isclose(classes * f, alone, rel_tol=1e-9) else None
    ratio = 2 * pairs / (f * alone)

    def alpha(q: float) -> float:
        """Return the alpha with which pairs and singletons have the ratio of the sample; q is 1 - beta."""
        d = (1 - f) * q
        a, b, c = q * d, q * (2 - d) - ratio * (1 - d) * d, -ratio * (1 - d) ** 2
        root = math.sqrt(b * b - 4 * a * c)
        # Of the two forms of the positive solution, the one that subtracts nothing.
        return -2 * c / (b + root) if b > 0 else (root - b) / (2 * a)

    def surplus(q: float) -> float:
        """Return expected singletons less those of the sample."""
        d, a = (1 - f) * q, alpha(q)
        kept = math.exp(a * (math.log1p(-q) - math.log1p(-d)))
        return classes * f * kept * (a * d / (1 - d) + 1) - alone

    low, high = 1e-9, 1 - 1e-12
    if surplus(low) <= 0 or surplus(high) >= 0:
        return None
    q = _bisect(surplus, low, high)
    return min(1.0, classes * math.exp(alpha(q) * math.log1p(-q)) / population)


def shlosser(sizes: Mapping[int, int], fraction: float) -> float:
    """Return the number of classes in the population: Shlosser's estimate as modified by Haas and Stokes.

    Examples
    --------
    >>> round(shlosser({1: 10}, 0.25), 6)
    40.0
    """
    f, classes = fraction, sum(sizes.values())
    first = sum(i * f**2 * (1 - f**2) ** (i - 1) * n for i, n in sizes.items())
    # (1 - f)^i ((1 + f)^i - 1), with nothing lost where f is small and nothing too large where i is.
    second = sum(-math.expm1(-i * math.log1p(f)) * math.exp(i * math.log1p(-f * f)) * n for i, n in sizes.items())
    unseen = sum((1 - f) ** i * n for i, n in sizes.items())
    once = sum(i * f * (1 - f) ** (i - 1) * n for i, n in sizes.items())
    if not second or not once:
        return float(classes)
    return classes + sizes.get(1, 0) * (first / second) * (unseen / once) ** 2


def pitman(sizes: Mapping[int, int], population: int) -> float | None:
    """Return the estimate by Pitman's sampling formula.

    Its two parameters, alpha between 0 and 1 and theta above -alpha, have the greatest likelihood; the expected share
    of singletons among N members is the product of (theta + alpha + i - 1) / (theta + i) over i from 1 to N - 1, which
    for large N is Gamma(theta + 1) / Gamma(theta + alpha) N^(alpha - 1).

    References
    ----------
    J. Pitman, Exchangeable and partially exchangeable random partitions, 1995; N. Hoshino, Applying Pitman's sampling
    formula to microdata disclosure risk assessment, 2001.
    """
    members, classes = sum(size * n for size, n in sizes.items()), sum(sizes.values())
    if classes == members:
        return 1.0
    if classes < 2:
        return None

    def theta(alpha: float) -> float:
        """Return the likeliest theta for an alpha, as theta + alpha > 0."""

        def slope(logarithm: float) -> float:
            t = math.exp(logarithm) - alpha
            return _harmonic(t / alpha + 1, classes - 1) / alpha - _harmonic(t + 1, members - 1)

        return math.exp(_bisect(slope, -40.0, 60.0)) - alpha

    def slope(alpha: float) -> float:
        """Return how the likelihood changes with alpha, theta being the likeliest."""
        t = theta(alpha)
        spread = (classes - 1 - t * _harmonic(t / alpha + 1, classes - 1) / alpha) / alpha
        return spread - sum(n * _harmonic(1 - alpha, size - 1) for size, n in sizes.items() if size > 1)

    alpha = _LEAST_ALPHA
    if slope(alpha) > 0:
        alpha = _bisect(slope, alpha, 1 - 1e-12)
    t = theta(alpha)
    share = _gamma_ratio(t + 1, alpha - 1, population - 1)
    return min(1.0, share) if math.isfinite(share) else None


def _gamma_ratio(x: float, shift: float, count: int) -> float:
    """Return the product of (x + shift + i) / (x + i) over i below ``count``."""
    start = 0
    total = 0.0
    while start < count and x + start < 1000:
        total += math.log((x + shift + start) / (x + start))
        start += 1
    if start < count:
        # What is left, by Stirling's series, whose terms cancel but for these.
        low, high = x + start, x + count
        total += _stirling(high, shift) - _stirling(low, shift)
    return math.exp(total)


def _stirling(x: float, shift: float) -> float:
    """Return lnGamma(x + shift) - lnGamma(x) of a large x."""
    y = x + shift
    series = (1 / y - 1 / x) / 12 - (1 / y**3 - 1 / x**3) / 360
    return (x - 0.5) * math.log1p(shift / x) + shift * math.log(y) - shift + series


def _harmonic(x: float, count: int) -> float:
    """Return the sum of 1 / (x + i) over i below ``count``: a difference of two digammas, of which none is large.

    Examples
    --------
    >>> round(_harmonic(1, 4), 12), _harmonic(0.5, 0)
    (2.083333333333, 0.0)
    """
    total, first = 0.0, 0
    while first < count and x + first < 12:
        total += 1 / (x + first)
        first += 1
    rest = count - first
    if not rest:
        return total
    a, b = x + first, x + count
    total += math.log1p(rest / a) + rest / (2 * a * b)
    return total + (1 / a**2 - 1 / b**2) / 12 - (1 / a**4 - 1 / b**4) / 120 + (1 / a**6 - 1 / b**6) / 252


def _bisect(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function that starts positive and ends negative crosses zero; an end where it does not."""
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if function(middle) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


__all__ = ["Uniqueness", "estimate", "pitman", "shlosser", "snb", "zayatz"]
