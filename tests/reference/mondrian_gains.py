"""What a cut tells about target columns (LeFevre et al., Workload-aware anonymization, 2006), as exact as it can be.

A column of targets is a list of whole numbers; ``whole`` has one for each target, ``parts`` the same for every part.
"""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction

TIE = Decimal("1e-9")


def same(gain: Decimal, best: Decimal) -> bool:
    return abs(gain - best) <= TIE * max(abs(gain), abs(best))


def information_gain(whole: list[list[int]], parts: list[list[list[int]]]) -> Decimal:
    """The sum over targets of n H of the whole less that of the parts, in nats.

    n H = ln (n^n / prod c^c), so the sum is the logarithm of a fraction of whole numbers: 0 exactly where it is 1.
    """

    def power(values: list[int]) -> Fraction:
        product = len(values) ** len(values)
        return Fraction(product, math.prod(c**c for c in Counter(values).values()))

    ratio = math.prod((power(values) for values in whole), start=Fraction(1))
    for part in parts:
        ratio /= math.prod((power(values) for values in part), start=Fraction(1))
    return exact(ratio, logarithm=True)


def least_squares(whole: list[list[int]], parts: list[list[list[int]]]) -> Decimal:
    """The sum over targets of the squared deviations from the mean of the whole less those of the parts."""

    def squares(values: list[int]) -> Fraction:
        # Around the mean m: sum (v - m)^2 = sum v^2 - (sum v)^2 / n.
        return sum(v * v for v in values) - Fraction(sum(values) ** 2, len(values))

    total = sum((squares(values) for values in whole), Fraction(0))
    return exact(total - sum((squares(values) for part in parts for values in part), Fraction(0)))


def exact(number: Fraction, logarithm: bool = False) -> Decimal:
    with localcontext() as context:
        context.prec = 50
        found = Decimal(number.numerator) / Decimal(number.denominator)
        return found.ln() if logarithm else found


GAINS = {"information_gain": information_gain, "least_squares": least_squares}
