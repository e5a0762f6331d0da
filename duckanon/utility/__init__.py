"""Does the release still teach? Encodings of anonymous tables for learners, and what learners make of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckanon.utility.encoder import AnonymousEncoder, encode
    from duckanon.utility.evaluation import evaluate
    from duckanon.utility.parts import Split, split
    from duckanon.utility.results import Evaluation
    from duckanon.utility.trials import trial
    from duckanon.utility.workload import Workload, queries

# Imported at first use: learners and their tables take a second.
_NAMES = {
    "AnonymousEncoder": "duckanon.utility.encoder",
    "Evaluation": "duckanon.utility.results",
    "Split": "duckanon.utility.parts",
    "Workload": "duckanon.utility.workload",
    "encode": "duckanon.utility.encoder",
    "evaluate": "duckanon.utility.evaluation",
    "queries": "duckanon.utility.workload",
    "split": "duckanon.utility.parts",
    "trial": "duckanon.utility.trials",
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
    raise AttributeError(f"module 'duckanon.utility' has no attribute {name!r}")
