"""duckanon: anonymization where the data lives, in DuckDB."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from duckanon._version import __version__

if TYPE_CHECKING:
    from duckanon.api import anonymize, check
    from duckanon.comparison.compare import compare
    from duckanon.comparison.loss import measure
    from duckanon.disclosure.attack import attack
    from duckanon.disclosure.levels import privacy
    from duckanon.disclosure.risk import risk
    from duckanon.disclosure.rowwise import with_risk
    from duckanon.disclosure.suggest import suggest
    from duckanon.hierarchy import Hierarchy
    from duckanon.nodes_table import lattice
    from duckanon.plan import Plan
    from duckanon.release import Release
    from duckanon.source import Source
    from duckanon.sqldoor import connect, install

logging.getLogger("duckanon").addHandler(logging.NullHandler())

# Imported at first use: importing duckanon must cost next to nothing.
_NAMES = {
    "anonymize": "duckanon.api",
    "check": "duckanon.api",
    "attack": "duckanon.disclosure.attack",
    "compare": "duckanon.comparison.compare",
    "connect": "duckanon.sqldoor",
    "install": "duckanon.sqldoor",
    "lattice": "duckanon.nodes_table",
    "measure": "duckanon.comparison.loss",
    "privacy": "duckanon.disclosure.levels",
    "risk": "duckanon.disclosure.risk",
    "suggest": "duckanon.disclosure.suggest",
    "with_risk": "duckanon.disclosure.rowwise",
    "Hierarchy": "duckanon.hierarchy",
    "Plan": "duckanon.plan",
    "Release": "duckanon.release",
    "Source": "duckanon.source",
}
_ROOMS = ("algorithms", "comparison", "disclosure", "errors", "metrics", "models", "studies", "tuning", "utility")

__all__ = [
    "Hierarchy",
    "Plan",
    "Release",
    "Source",
    "__version__",
    "anonymize",
    "attack",
    "check",
    "compare",
    "connect",
    "install",
    "lattice",
    "measure",
    "privacy",
    "risk",
    "suggest",
    "with_risk",
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    if name in _ROOMS:
        return import_module(f"duckanon.{name}")
    raise AttributeError(f"module 'duckanon' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_NAMES, *_ROOMS, "__version__"])
