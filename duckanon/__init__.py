"""duckanon: anonymization where the data lives, in DuckDB."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from duckanon._version import __version__
from duckanon.imports import uncollected

if TYPE_CHECKING:
    from duckanon.api import anonymize, check
    from duckanon.assess.attacks.attack import attack
    from duckanon.assess.comparison.compare import compare
    from duckanon.assess.comparison.loss import measure
    from duckanon.assess.lattice import lattice
    from duckanon.assess.privacy import privacy
    from duckanon.assess.risk import risk
    from duckanon.assess.row_risk import with_risk
    from duckanon.assess.suggest import suggest
    from duckanon.hierarchy import Hierarchy
    from duckanon.interfaces.sql.door import connect, install
    from duckanon.io.source import Source
    from duckanon.plan.plan import Plan
    from duckanon.release.release import Release

logging.getLogger("duckanon").addHandler(logging.NullHandler())

# Imported at first use: importing duckanon must cost next to nothing.
_NAMES = {
    "anonymize": "duckanon.api",
    "check": "duckanon.api",
    "attack": "duckanon.assess.attacks.attack",
    "compare": "duckanon.assess.comparison.compare",
    "connect": "duckanon.interfaces.sql.door",
    "install": "duckanon.interfaces.sql.door",
    "lattice": "duckanon.assess.lattice",
    "measure": "duckanon.assess.comparison.loss",
    "privacy": "duckanon.assess.privacy",
    "risk": "duckanon.assess.risk",
    "suggest": "duckanon.assess.suggest",
    "with_risk": "duckanon.assess.row_risk",
    "Hierarchy": "duckanon.hierarchy",
    "Plan": "duckanon.plan.plan",
    "Release": "duckanon.release.release",
    "Source": "duckanon.io.source",
}
_ROOMS = {
    **{name: f"duckanon.{name}" for name in ("algorithms", "errors", "metrics", "models", "studies")},
    **{name: f"duckanon.assess.{name}" for name in ("comparison", "disclosure", "utility")},
    "tuning": "duckanon.jobs.tuning",
}

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
        with uncollected():
            return getattr(import_module(_NAMES[name]), name)
    if name in _ROOMS:
        with uncollected():
            return import_module(_ROOMS[name])
    raise AttributeError(f"module 'duckanon' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*_NAMES, *_ROOMS, "__version__"])
