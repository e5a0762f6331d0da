"""Tuning: the algorithm and parameters whose release serves a learning task best."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckanon.jobs.tuning.candidates import Candidate
    from duckanon.jobs.tuning.results import Tuning
    from duckanon.jobs.tuning.search import tune

# Imported at first use, like the learners behind them.
_NAMES = {
    "Candidate": "duckanon.jobs.tuning.candidates",
    "Tuning": "duckanon.jobs.tuning.results",
    "tune": "duckanon.jobs.tuning.search",
}

__all__ = ["Candidate", "Tuning", "tune"]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'duckanon.jobs.tuning' has no attribute {name!r}")
