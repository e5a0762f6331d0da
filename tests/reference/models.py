"""Privacy models straight from their definitions, exact: fractions instead of floats, fifty digits for logarithms.

A class is the list of the sensitive values of its rows; ``table`` the list of those of all rows. Thresholds are
fractions. Distances and shares are functions of their own, so that a test can ask for thresholds that are just reached.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

Values = Sequence[Hashable]
Tree = dict[Hashable, list[Hashable]]

_DIGITS = 50
_SAME = Decimal("1e-40")


def frequency(value: Hashable, values: Values) -> Fraction:
    return Fraction(sum(v == value for v in values), len(values))


def _ln(x: Fraction) -> Decimal:
    with localcontext() as context:
        context.prec = _DIGITS
        return (Decimal(x.numerator) / Decimal(x.denominator)).ln()


def largest_share(values: Values) -> Fraction:
    return max(frequency(v, values) for v in values)


def alpha_k_anonymity(values: Values, members: int, alpha: Fraction, k: int) -> bool:
    return members >= k and largest_share(values) <= alpha


def l_diversity(values: Values, l: int) -> bool:  # noqa: E741
    return len(set(values)) >= l


def p_sensitive_k_anonymity(values: Values, members: int, p: int, k: int) -> bool:
    return members >= k and len(set(values)) >= p


def entropy_l_diversity(values: Values, l: Fraction) -> bool:  # noqa: E741
    """Entropy >= ln l, taken to the power: n^n / prod c^c >= l^n, which whole numbers can decide."""
    n, product = len(values), 1
    for count in Counter(values).values():
        product *= count**count
    return Fraction(n**n, product) >= l**n


def falling(values: Values) -> list[int]:
    return sorted(Counter(values).values(), reverse=True)


def recursive_c_l_diversity(values: Values, c: Fraction, l: int) -> bool:  # noqa: E741
    r = falling(values)
    return r[0] < c * sum(r[l - 1 :])


def equal_distance(values: Values, table: Values) -> Fraction:
    everything = {*values, *table}
    return sum((abs(frequency(v, values) - frequency(v, table)) for v in everything), Fraction(0)) / 2


def ordered_distance(values: Values, table: Values, order: Values) -> Fraction:
    """``order`` has every value of the table once."""
    if len(order) == 1:
        return Fraction(0)
    total = Fraction(0)
    for i in range(len(order)):
        total += abs(sum((frequency(v, values) - frequency(v, table) for v in order[: i + 1]), Fraction(0)))
    return total / (len(order) - 1)


def hierarchical_distance(values: Values, table: Values, tree: Tree) -> Fraction:
    """Li et al. 2007, section 4.2: the cost of a node is its height times what moves between its children.

    ``tree`` maps every value to its labels, level 0 (the value itself) first, the top last.
    """
    height = len(next(iter(tree.values()))) - 1
    extra: dict[tuple[int, Hashable], Fraction] = {}
    children: dict[tuple[int, Hashable], set[tuple[int, Hashable]]] = {}
    for value, labels in tree.items():
        difference = frequency(value, values) - frequency(value, table)
        for level, label in enumerate(labels):
            extra[level, label] = extra.get((level, label), Fraction(0)) + difference
            if level:
                children.setdefault((level, label), set()).add((level - 1, labels[level - 1]))
    total = Fraction(0)
    for (level, _), below in children.items():
        given = sum((extra[c] for c in below if extra[c] > 0), Fraction(0))
        taken = sum((-extra[c] for c in below if extra[c] < 0), Fraction(0))
        total += Fraction(level, height) * min(given, taken)
    return total


def gains(values: Values, table: Values) -> list[tuple[Fraction, Fraction]]:
    """Return (p, (q - p) / p) of every value that is more frequent in the class than in the table."""
    pairs = [(frequency(v, values), frequency(v, table)) for v in set(values)]
    return [(p, (q - p) / p) for q, p in pairs if q > p]


def basic_beta_likeness(values: Values, table: Values, beta: Fraction) -> bool:
    return all(gain <= beta for _, gain in gains(values, table))


def enhanced_beta_likeness(values: Values, table: Values, beta: Fraction) -> bool:
    def allowed(p: Fraction, gain: Fraction) -> bool:
        exact = Decimal(gain.numerator) / Decimal(gain.denominator)
        return gain <= beta and exact <= -_ln(p) + _SAME

    return all(allowed(p, gain) for p, gain in gains(values, table))


def delta_disclosure(values: Values, table: Values, delta: Fraction, base: Fraction) -> bool:
    with localcontext() as context:
        context.prec = _DIGITS
        bound = Decimal(delta.numerator) / Decimal(delta.denominator) * _ln(base)
        ratios = (frequency(v, values) / frequency(v, table) for v in set(values))
        return all(abs(_ln(r)) < bound - _SAME for r in ratios)


def k_map(population: int, k: int) -> bool:
    return population >= k


def delta_presence(members: int, population: int, minimum: Fraction, maximum: Fraction) -> bool:
    """Somebody who is not in the population at all cannot be hidden in it."""
    return population > 0 and minimum <= Fraction(members, population) <= maximum


def maximum_reidentification_risk(members: int, threshold: Fraction) -> bool:
    return Fraction(1, members) <= threshold


def average_risk(sizes: Sequence[int]) -> Fraction:
    """The mean over members of 1 / size of their class."""
    return Fraction(sum(Fraction(1, n) for n in sizes for _ in range(n)), sum(sizes)) if sizes else Fraction(0)


def uniqueness(sizes: Sequence[int]) -> Fraction:
    return Fraction(sum(n == 1 for n in sizes), sum(sizes)) if sizes else Fraction(0)


def staying(sizes: Sequence[int], share: Callable[[Sequence[int]], Fraction], threshold: Fraction) -> list[bool]:
    """Leave out one class after the other, the smallest first, until the share of the rest is at most the threshold."""
    order = sorted(range(len(sizes)), key=lambda i: (sizes[i], i))
    for out in range(len(sizes) + 1):
        if share([sizes[i] for i in order[out:]]) <= threshold:
            break
    return [i not in order[:out] for i in range(len(sizes))]


def levels(
    classes: Sequence[Values], order: Values, tree: Tree | None = None, whole: Values | None = None
) -> dict[str, float | Fraction | None]:
    """Return the strongest parameters that all classes satisfy, by model and parameter; None where none does."""
    table: Values = whole if whole is not None else [v for c in classes for v in c]
    l = min(len(set(c)) for c in classes)  # noqa: E741
    all_gains = [g for c in classes for g in gains(c, table)]
    exceeded = any(float(g) > -math.log(p) + 1e-12 for p, g in all_gains)
    ratios = [frequency(v, c) / frequency(v, table) for c in classes for v in set(c)]

    def entropy(c: Values) -> float:
        return -sum(n / len(c) * math.log(n / len(c)) for n in Counter(c).values())

    found: dict[str, float | Fraction | None] = {
        "alpha_k_anonymity alpha": max(largest_share(c) for c in classes),
        "l_diversity l": l,
        "p_sensitive_k_anonymity p": l,
        "entropy_l_diversity l": math.exp(min(entropy(c) for c in classes)),
        "recursive_c_l_diversity c": max(Fraction(falling(c)[0], sum(falling(c)[l - 1 :])) for c in classes),
        "t_closeness t": max(equal_distance(c, table) for c in classes),
        "ordered_t_closeness t": max(ordered_distance(c, table, order) for c in classes),
        "basic_beta_likeness beta": max([0.0, *(float(g) for _, g in all_gains)]),
        "enhanced_beta_likeness beta": None if exceeded else max([0.0, *(float(g) for _, g in all_gains)]),
        "delta_disclosure delta": max(abs(math.log2(r)) for r in ratios),
    }
    if tree is not None:
        found["hierarchical_t_closeness t"] = max(hierarchical_distance(c, table, tree) for c in classes)
    return found
