"""From run to run: the state of a job, its history, frozen recodings, and comparison with earlier releases."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckanon.jobs.nights.frozen import (
        RECODINGS,
        Stored,
        freeze,
        frozen_plan,
        remembering,
        require_freezable,
        require_recoding,
    )
    from duckanon.jobs.nights.history import chart, chart_table, drift, failures
    from duckanon.jobs.nights.intersection import Compared, Intersection, check_intersection, hold_back
    from duckanon.jobs.nights.night import INTERSECTIONS, Night, make_night
    from duckanon.jobs.nights.state import State

# Imported at first use: showing the history of a job needs no database.
_NAMES = {
    "frozen": ("RECODINGS", "Stored", "freeze", "frozen_plan", "remembering", "require_freezable", "require_recoding"),
    "history": ("chart", "chart_table", "drift", "failures"),
    "intersection": ("Compared", "Intersection", "check_intersection", "hold_back"),
    "night": ("INTERSECTIONS", "Night", "make_night"),
    "state": ("State",),
}

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
    "failures",
    "freeze",
    "frozen_plan",
    "hold_back",
    "make_night",
    "remembering",
    "require_freezable",
    "require_recoding",
]


def __getattr__(name: str) -> Any:
    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"duckanon.jobs.nights.{module}"), name)
    raise AttributeError(f"module 'duckanon.jobs.nights' has no attribute {name!r}")
