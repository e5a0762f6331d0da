"""Disclosure: what a table discloses, measured. Reidentification risk, attacks, and columns that could link."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckanon.assess.attacks.attack import Attack
    from duckanon.assess.attacks.base import Finding
    from duckanon.assess.identifying_sets import identifying_sets
    from duckanon.assess.risk import Risk
    from duckanon.assess.row_risk import with_risk
    from duckanon.assess.uniqueness import Uniqueness
    from duckanon.io.leaks import Leak, file_leaks

# Imported on first use: every release checks its own file, and needs nothing else of this.
_NAMES = {
    "Attack": "duckanon.assess.attacks.attack",
    "Finding": "duckanon.assess.attacks.base",
    "Leak": "duckanon.io.leaks",
    "file_leaks": "duckanon.io.leaks",
    "Risk": "duckanon.assess.risk",
    "with_risk": "duckanon.assess.row_risk",
    "identifying_sets": "duckanon.assess.identifying_sets",
    "Uniqueness": "duckanon.assess.uniqueness",
}

__all__ = ["Attack", "Finding", "Leak", "Risk", "Uniqueness", "file_leaks", "identifying_sets", "with_risk"]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'duckanon.assess.disclosure' has no attribute {name!r}")
