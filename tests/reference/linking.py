"""Record linkage, slow and obviously right: Gower's nearest rows, and Fellegi and Sunter's model by EM.

Cells are given as what they stand for: on an ordered column two bounds, on any other a set of values. People have
values. Nothing of duckanon is imported.
"""

from __future__ import annotations

import math
from collections import Counter


def distance(value, cell, ordered, span):
    """Gower 1971: the gap to the nearest value that a cell stands for, as a share of the range, or 0 and 1."""
    if not ordered:
        return 0.0 if value in cell else 1.0
    low, high = cell
    gap = max(low - value, value - high, 0)
    return min(gap / span, 1.0)


def nearest(person, rows, ordered, spans):
    """Return the positions of all rows at the least distance from a person."""
    far = [sum(distance(v, c, o, s) for v, c, o, s in zip(person, row, ordered, spans, strict=True)) for row in rows]
    least = min(far)
    return [i for i, d in enumerate(far) if d <= least + 1e-9]


def vote(values, truth):
    """Return the chance that the most frequent value, drawn by lot where there are several, is the true one."""
    counts = Counter(values)
    most = max(counts.values())
    best = [v for v, n in counts.items() if n == most]
    return 1 / len(best) if truth in best else 0.0


def pattern(person, row, ordered, spans, near):
    """Return how each column compares: 0 agrees, 1 is near, 2 differs."""
    found = []
    for v, c, o, s in zip(person, row, ordered, spans, strict=True):
        d = distance(v, c, o, s)
        found.append(0 if d == 0 else 1 if d <= near else 2)
    return tuple(found)


def expectation_maximization(patterns, share, start, rounds, enough, floor=1e-12):
    """Return m, u and the share of matches, by column and level, from all pairs one by one (Winkler 1988)."""
    columns = len(patterns[0])
    m = [list(start) for _ in range(columns)]
    u = [[sum(p[j] == level for p in patterns) / len(patterns) for level in range(3)] for j in range(columns)]
    for _ in range(rounds):
        belongs = []
        for p in patterns:
            own = share * math.prod(max(m[j][p[j]], floor) for j in range(columns))
            other = (1 - share) * math.prod(max(u[j][p[j]], floor) for j in range(columns))
            belongs.append(own / (own + other))
        total = sum(belongs)
        rest = len(patterns) - total
        new_m = [
            [sum(b for b, p in zip(belongs, patterns, strict=True) if p[j] == level) / total for level in range(3)]
            for j in range(columns)
        ]
        new_u = [
            [sum(1 - b for b, p in zip(belongs, patterns, strict=True) if p[j] == level) / rest for level in range(3)]
            for j in range(columns)
        ]
        new_share = total / len(patterns)
        moved = max(
            *(abs(a - b) for x, y in zip(m + u, new_m + new_u, strict=True) for a, b in zip(x, y, strict=True)),
            abs(new_share - share),
        )
        m, u, share = new_m, new_u, new_share
        if moved < enough:
            break
    return m, u, share


def heaviest(person, rows, ordered, spans, near, m, u, floor=1e-12):
    """Return the positions of all rows with the largest weight of evidence."""
    weights = []
    for row in rows:
        p = pattern(person, row, ordered, spans, near)
        weights.append(sum(math.log2(max(m[j][x], floor) / max(u[j][x], floor)) for j, x in enumerate(p)))
    most = max(weights)
    return [i for i, w in enumerate(weights) if w >= most - 1e-9]


def fitting(row, people, ordered, spans):
    """Return how many people a row can stand for."""
    return sum(
        all(distance(v, c, o, s) == 0 for v, c, o, s in zip(person, row, ordered, spans, strict=True))
        for person in people
    )


def meeting(person, rows, ordered, spans, first):
    """Return the chance that a row drawn from those nearest on some columns is the one drawn on the others."""
    parts = []
    for wanted in (True, False):
        at = [j for j in range(len(ordered)) if first[j] == wanted]
        parts.append(
            nearest(
                [person[j] for j in at],
                [[row[j] for j in at] for row in rows],
                [ordered[j] for j in at],
                [spans[j] for j in at],
            )
        )
    return len(set(parts[0]) & set(parts[1])) / (len(parts[0]) * len(parts[1]))
