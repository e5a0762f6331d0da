"""Shares of people with how sure they are: Wilson's interval, and Newcombe's for the difference of two shares."""

from __future__ import annotations

from math import sqrt

Interval = tuple[float, float]

Z = 1.959963984540054
"""Two-sided 95 %."""


def wilson(share: float, rows: float, z: float = Z) -> Interval:
    """Return the score interval of a share of ``rows``; all of [0, 1] where there are none.

    References
    ----------
    E. Wilson, Probable inference, the law of succession, and statistical inference, 1927.

    Examples
    --------
    >>> [round(bound, 4) for bound in wilson(0.5, 100)]
    [0.4038, 0.5962]
    >>> wilson(0.0, 0)
    (0.0, 1.0)
    """
    if rows <= 0:
        return 0.0, 1.0
    square = z * z / rows
    middle = (share + square / 2) / (1 + square)
    half = z / (1 + square) * sqrt(share * (1 - share) / rows + square / (4 * rows))
    # At the ends the bound is the share itself, whatever is left of it by rounding.
    return (0.0 if share == 0 else max(middle - half, 0.0)), (1.0 if share == 1 else min(middle + half, 1.0))


def difference(share: float, own: Interval, other: float, others: Interval) -> Interval:
    """Return the interval of ``share - other``, made of the intervals of both.

    References
    ----------
    R. Newcombe, Interval estimation for the difference between independent proportions, 1998 (method 10).

    Examples
    --------
    >>> [round(b, 4) for b in difference(56 / 70, wilson(56 / 70, 70), 48 / 80, wilson(48 / 80, 80))]
    [0.0524, 0.3339]
    """
    below = sqrt((share - own[0]) ** 2 + (others[1] - other) ** 2)
    above = sqrt((own[1] - share) ** 2 + (other - others[0]) ** 2)
    return max(share - other - below, -1.0), min(share - other + above, 1.0)
