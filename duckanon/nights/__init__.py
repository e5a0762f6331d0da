"""Night after night: what a job keeps between runs, frozen recodings, and releases that intersect."""

from __future__ import annotations

from duckanon.nights.frozen import RECODINGS, Stored, freeze, frozen_plan, require_freezable, require_recoding
from duckanon.nights.history import chart, chart_table, drift
from duckanon.nights.state import State

__all__ = [
    "RECODINGS",
    "State",
    "Stored",
    "chart",
    "chart_table",
    "drift",
    "freeze",
    "frozen_plan",
    "require_freezable",
    "require_recoding",
]
