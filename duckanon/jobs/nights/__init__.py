"""Night after night: what a job keeps between runs, frozen recodings, and releases that intersect."""

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
    from duckanon.jobs.nights.history import chart, chart_table, drift
    from duckanon.jobs.nights.intersection import Compared, Intersection, check_intersection, hold_back
    from duckanon.jobs.nights.night import INTERSECTIONS, Night, make_night
    from duckanon.jobs.nights.state import State

# Loaded when they are asked for: the history of a job can be shown without the database.
_NAMES = {
    "frozen": ("RECODINGS", "Stored", "freeze", "frozen_plan", "remembering", "require_freezable", "require_recoding"),
    "history": ("chart", "chart_table", "drift"),
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
