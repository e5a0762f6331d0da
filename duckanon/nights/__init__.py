"""Night after night: what a job keeps between runs, frozen recodings, and releases that intersect."""

from __future__ import annotations

from duckanon.nights.frozen import RECODINGS, Stored, freeze, frozen_plan, require_freezable, require_recoding
from duckanon.nights.history import chart, chart_table, drift
from duckanon.nights.intersection import Compared, Intersection, check_intersection, hold_back
from duckanon.nights.night import INTERSECTIONS, Night, make_night
from duckanon.nights.state import State

__all__ = [
    "INTERSECTIONS",
    "RECODINGS",
    "Compared",
    "Intersection",
    "Night",
    "State",
    "Stored",
    "chart",
    "chart_table",
    "check_intersection",
    "drift",
    "freeze",
    "frozen_plan",
    "hold_back",
    "make_night",
    "require_freezable",
    "require_recoding",
]
