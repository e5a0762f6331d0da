"""Slow references of the study of metrics and utility, written from the paper's sections 4.1.2 and 4.1.3."""

from __future__ import annotations

from math import sqrt


def right_picks(metric: list[float], utility: list[float]) -> tuple[float, float]:
    """How often the release with the lower metric has the higher utility, pair by pair."""
    half = right = pairs = 0.0
    for i in range(len(metric)):
        for j in range(i):
            pairs += 1
            if metric[i] == metric[j] or utility[i] == utility[j]:
                half += 0.5
                right += 1
                continue
            picked, other = (i, j) if metric[i] < metric[j] else (j, i)
            if utility[picked] > utility[other]:
                half += 1
                right += 1
    return half / pairs, right / pairs


def coefficients(metrics: list[list[float]], utility: list[float]) -> list[float]:
    """Least squares on standardised metrics by the normal equations, solved by Gauss's elimination."""
    n = len(utility)
    columns = []
    for values in metrics:
        middle = sum(values) / n
        deviation = sqrt(sum((v - middle) ** 2 for v in values) / n)
        columns.append([(v - middle) / deviation for v in values])
    wanted = [u - sum(utility) / n for u in utility]
    size = len(columns)
    system = [
        [sum(a * b for a, b in zip(columns[i], columns[j], strict=True)) for j in range(size)]
        + [sum(a * b for a, b in zip(columns[i], wanted, strict=True))]
        for i in range(size)
    ]
    for i in range(size):
        pivot = max(range(i, size), key=lambda r: abs(system[r][i]))
        system[i], system[pivot] = system[pivot], system[i]
        system[i] = [v / system[i][i] for v in system[i]]
        for r in range(size):
            if r != i:
                system[r] = [a - system[r][i] * b for a, b in zip(system[r], system[i], strict=True)]
    return [float(row[-1]) for row in system]


def interval(values: list[float], quantile: float) -> tuple[float, float, float]:
    """The mean and its interval by Student's t, whose quantile is given."""
    n = len(values)
    middle = sum(values) / n
    deviation = sqrt(sum((v - middle) ** 2 for v in values) / (n - 1))
    reach = quantile * deviation / sqrt(n)
    return middle, middle - reach, middle + reach
