"""Utility of releases: encodings of anonymous tables for learners, scores of learners, and errors of queries."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckanon.assess.utility.encoder import AnonymousEncoder, encode
    from duckanon.assess.utility.evaluation import evaluate, trial
    from duckanon.assess.utility.held_out import Split, split
    from duckanon.assess.utility.results import Evaluation
    from duckanon.assess.utility.workload import Workload, queries

# Imported at first use: learners and their tables take a second.
_NAMES = {
    "AnonymousEncoder": "duckanon.assess.utility.encoder",
    "Evaluation": "duckanon.assess.utility.results",
    "Split": "duckanon.assess.utility.held_out",
    "Workload": "duckanon.assess.utility.workload",
    "encode": "duckanon.assess.utility.encoder",
    "evaluate": "duckanon.assess.utility.evaluation",
    "queries": "duckanon.assess.utility.workload",
    "split": "duckanon.assess.utility.held_out",
    "trial": "duckanon.assess.utility.evaluation",
}

__all__ = [
    "AnonymousEncoder",
    "Evaluation",
    "Split",
    "Workload",
    "encode",
    "evaluate",
    "queries",
    "split",
    "trial",
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'duckanon.assess.utility' has no attribute {name!r}")
