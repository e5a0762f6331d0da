"""Generalization hierarchies: tables of levels and rules that make them, bound to columns in the database."""

from __future__ import annotations

from duckanon.hierarchy.auto import auto
from duckanon.hierarchy.store import AUTO, load, resolve, save, saved, shipped
from duckanon.hierarchy.table import Hierarchy, Levels
from duckanon.hierarchy.validate import Validation, validate

__all__ = [
    "AUTO",
    "Hierarchy",
    "Levels",
    "Validation",
    "auto",
    "load",
    "resolve",
    "save",
    "saved",
    "shipped",
    "validate",
]
