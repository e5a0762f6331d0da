"""The JSON Schema of job files: editors complete keys and mark mistakes by it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from duckanon.jobs.keys import KEYS, MANY, PER_TABLE, RULE, Key

_DRAFT = "http://json-schema.org/draft-07/schema#"
_NEEDED = ("source", "roles", "privacy", "output")
_ABOUT = {
    "source": "Where rows come from.",
    "roles": "What each column is. A column without a role stops the job.",
    "hierarchies": "How values are generalized, by column.",
    "privacy": "What is promised of every class.",
    "algorithm": "How classes are made; the keys besides name are the algorithm's parameters.",
    "steering": "What the search may choose.",
    "output": "Where the release goes.",
    "expect": "When to stop instead of publishing.",
    "nights": "What is kept from run to run.",
    "operations": "What schedulers and dashboards are told.",
    "limits": "What a run may use.",
}


def schema() -> dict[str, Any]:
    """Return the schema as plain values."""
    several = {
        "type": "array",
        "minItems": 1,
        "description": "Several tables in one job; what stands outside is shared by all.",
        "items": {
            "type": "object",
            "required": ["name"],
            "additionalProperties": False,
            "properties": {
                "name": {"type": "string", "minLength": 1, "description": "The name of the table."},
                **{name: _table(name) for name in PER_TABLE},
            },
        },
    }
    return {
        "$schema": _DRAFT,
        "title": "duckanon job",
        "type": "object",
        "additionalProperties": False,
        "anyOf": [{"required": list(_NEEDED)}, {"required": [MANY]}],
        "properties": {**{name: _table(name) for name in KEYS}, MANY: several},
    }


def text() -> str:
    """Return the schema as the text of a file."""
    return json.dumps(schema(), indent=2) + "\n"


def _table(name: str) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "description": _ABOUT[name]}
    if name == "hierarchies":
        return {**found, "additionalProperties": _of(RULE)}
    if name == "algorithm":
        return {**found, "properties": {"name": {"enum": _algorithms()}}}
    return {**found, "additionalProperties": False, "properties": {k: _of(key) for k, key in KEYS[name].items()}}


def _of(key: Key) -> Mapping[str, Any]:
    return {**key.schema, "description": key.about} if key.about else key.schema


def _algorithms() -> list[str]:
    from duckanon.algorithms.base import algorithms

    return sorted(algorithms)
