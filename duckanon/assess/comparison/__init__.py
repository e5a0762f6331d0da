"""Comparison: property vectors and quality indices (Dewri et al. 2009), releases side by side, loss of any table.

Examples
--------
>>> from duckanon import comparison
>>> comparison.spread([2, 2, 3, 4, 5], [3, 2, 4, 2, 3])
4.0
"""

from __future__ import annotations

from duckanon.assess.comparison.bias import gini
from duckanon.assess.comparison.columns import vectors, write_properties
from duckanon.assess.comparison.indices import (
    average,
    count_better,
    coverage,
    dominates,
    hypervolume,
    incomparable,
    minimum,
    rank,
    spread,
    vector,
)
from duckanon.assess.comparison.properties.base import Property, properties
from duckanon.assess.comparison.sets import better, goal, lexicographic, weighted

__all__ = [
    "Property",
    "average",
    "better",
    "count_better",
    "coverage",
    "dominates",
    "gini",
    "goal",
    "hypervolume",
    "incomparable",
    "lexicographic",
    "minimum",
    "properties",
    "rank",
    "spread",
    "vector",
    "vectors",
    "weighted",
    "write_properties",
]
