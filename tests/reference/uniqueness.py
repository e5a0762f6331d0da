"""Population uniqueness, slowly: each estimator from its paper, by sums over every class and searches over grids."""

from __future__ import annotations

import math
from fractions import Fraction


def members(sizes):
    return sum(sizes)


def zayatz(sizes: list[int], population: int) -> float:
    """Zayatz 1991: Bayes' rule with exact hypergeometric probabilities, class by class."""
    n, alone = members(sizes), sizes.count(1)

    def drawn_once(size: int) -> Fraction:
        if population - size < n - 1:
            return Fraction(0)
        return Fraction(size * math.comb(population - size, n - 1), math.comb(population, n))

    total = sum(drawn_once(size) for size in sizes) / len(sizes)
    conditional = Fraction(alone, len(sizes)) * drawn_once(1) / total
    uniques = alone * conditional * Fraction(population, n)
    return float(uniques / population)


def shlosser(sizes: list[int], f: float) -> float:
    """Haas and Stokes 1998: the third of the modified Shlosser estimators, class by class."""
    first = sum(i * f**2 * (1 - f**2) ** (i - 1) for i in sizes)
    second = sum((1 - f) ** i * ((1 + f) ** i - 1) for i in sizes)
    third = sum((1 - f) ** i for i in sizes)
    fourth = sum(i * f * (1 - f) ** (i - 1) for i in sizes)
    return len(sizes) + sizes.count(1) * (first / second) * (third / fourth) ** 2


def snb_expected(alpha: float, beta: float, f: float, k: float, longest: int = 3000) -> tuple[float, float, float]:
    """Expected singletons and pairs of the sample, and singletons of the population, by summing over class sizes."""
    singles = pairs = 0.0
    probability = beta**alpha
    for extra in range(longest):
        size = extra + 1
        singles += k * probability * size * f * (1 - f) ** (size - 1)
        if size > 1:
            pairs += k * probability * math.comb(size, 2) * f**2 * (1 - f) ** (size - 2)
        probability *= (extra + alpha) / (extra + 1) * (1 - beta)
    return singles, pairs, k * beta**alpha


def snb_error(uniqueness: float, sizes: list[int], population: int) -> float:
    """Return how far the sample is from what is expected where the population has that uniqueness.

    For every beta one alpha gives this many uniques; the best of all betas is returned, in shares of the counts.
    """
    f = members(sizes) / population
    k = shlosser(sizes, f)
    share = uniqueness * population / k
    best = math.inf
    betas = [i / 400 for i in range(1, 400)]
    for _ in range(4):
        errors = []
        for beta in betas:
            alpha = math.log(share) / math.log(beta)
            singles, pairs, _uniques = snb_expected(alpha, beta, f, k, 400)
            errors.append((abs(singles / sizes.count(1) - 1) + abs(pairs / sizes.count(2) - 1), beta))
        error, beta = min(errors)
        best = min(best, error)
        step = betas[1] - betas[0]
        betas = [b for i in range(41) if 0 < (b := beta + (i - 20) * step / 20) < 1]
    return best


def pitman_likelihood(theta: float, alpha: float, sizes: list[int]) -> float:
    n = members(sizes)
    total = sum(math.log(theta + i * alpha) for i in range(1, len(sizes)))
    total -= sum(math.log(theta + i) for i in range(1, n))
    return total + sum(math.log(i - alpha) for size in sizes for i in range(1, size))


def pitman(sizes: list[int], population: int) -> float:
    """Hoshino 2001: the likeliest parameters on ever finer grids, then the expected share of singletons."""
    alphas, logs = [i / 20 for i in range(1, 20)], [i / 2 for i in range(-12, 20)]
    for _ in range(9):
        _value, alpha, log = max(
            (pitman_likelihood(math.exp(log) - alpha, alpha, sizes), alpha, log) for alpha in alphas for log in logs
        )
        across, along = (alphas[1] - alphas[0]) / 2, (logs[1] - logs[0]) / 2
        alphas = [a for i in range(-5, 6) if 1e-6 <= (a := alpha + i * across) < 1] or [1e-6, 2e-6]
        logs = [log + i * along for i in range(-5, 6)]
    theta, share = math.exp(log) - alpha, 1.0
    for i in range(1, population):
        share *= (theta + alpha + i - 1) / (theta + i)
    return share
