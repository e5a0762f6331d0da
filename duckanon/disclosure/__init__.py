"""Disclosure: what a table gives away, measured. Reidentification risk, attacks, and which columns could link."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckanon.disclosure.attack import Attack
    from duckanon.disclosure.attacks.base import Finding
    from duckanon.disclosure.files import Leak, file_leaks
    from duckanon.disclosure.risk import Risk
    from duckanon.disclosure.rowwise import with_risk
    from duckanon.disclosure.sets import identifying_sets
    from duckanon.disclosure.uniqueness import Uniqueness

# Read when they are asked for: every release looks at its own file, and needs nothing else of this.
_NAMES = {
    "Attack": "attack",
    "Finding": "attacks.base",
    "Leak": "files",
    "file_leaks": "files",
    "Risk": "risk",
    "with_risk": "rowwise",
    "identifying_sets": "sets",
    "Uniqueness": "uniqueness",
}

__all__ = ["Attack", "Finding", "Leak", "Risk", "Uniqueness", "file_leaks", "identifying_sets", "with_risk"]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(f"duckanon.disclosure.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'duckanon.disclosure' has no attribute {name!r}")
