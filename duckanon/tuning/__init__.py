"""Choose algorithm and parameters by how well a task can be done with the release."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckanon.tuning.candidates import Candidate
    from duckanon.tuning.results import Tuning
    from duckanon.tuning.search import tune

# Imported at first use, like the learners behind them.
_NAMES = {
    "Candidate": "duckanon.tuning.candidates",
    "Tuning": "duckanon.tuning.results",
    "tune": "duckanon.tuning.search",
}

__all__ = ["Candidate", "Tuning", "tune"]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'duckanon.tuning' has no attribute {name!r}")
