"""Comparison: property vectors and quality indices (Dewri et al. 2009), releases side by side, loss of any table.

Examples
--------
>>> from duckanon import comparison
>>> comparison.spread([2, 2, 3, 4, 5], [3, 2, 4, 2, 3])
4.0
"""

from __future__ import annotations

from duckanon.comparison.indices import (
    average,
    count_better,
    coverage,
    dominates,
    goal,
    hypervolume,
    incomparable,
    lexicographic,
    minimum,
    rank,
    spread,
    vector,
    weighted,
)
from duckanon.comparison.properties.base import Property, properties

__all__ = [
    "Property",
    "average",
    "count_better",
    "coverage",
    "dominates",
    "goal",
    "hypervolume",
    "incomparable",
    "lexicographic",
    "minimum",
    "properties",
    "rank",
    "spread",
    "vector",
    "weighted",
]
