"""Does the release still teach? Encodings of anonymous tables for learners, and what learners make of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckanon.utility.encoder import AnonymousEncoder, encode

_FROM = {"AnonymousEncoder": "duckanon.utility.encoder", "encode": "duckanon.utility.encoder"}


def __getattr__(name: str) -> Any:
    # scikit-learn takes a second to import: only those who learn wait for it.
    if name in _FROM:
        return getattr(import_module(_FROM[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["AnonymousEncoder", "encode"]
