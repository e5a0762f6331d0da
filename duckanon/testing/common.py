"""What the checks share: assertions that say what is wrong, and the relations of small releases."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import FrozenInstanceError, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from duckanon.engine.sql.files import SqlFile, load_of
from duckanon.engine.sql.relations import RelationTables

if TYPE_CHECKING:
    from duckanon.engine.base import Engine

RELATIONS: dict[str, dict[str, str]] = {
    "classes": {"class_id": "int64", "n": "int64", "suppressed": "bool"},
    "class_cells": {
        "class_id": "int64",
        "attribute": "string",
        "cell": "string",
        "level": "int64",
        "leaves": "int64",
        "lo": "float64",
        "hi": "float64",
    },
    "cell_rows": {
        "attribute": "string",
        "level": "int64",
        "leaves": "int64",
        "lo": "float64",
        "hi": "float64",
        "n": "int64",
    },
    "domain": {
        "attribute": "string",
        "kind": "string",
        "height": "int64",
        "leaves": "int64",
        "lo": "float64",
        "hi": "float64",
        "weight": "float64",
        "labels": "bool",
    },
    "class_values": {"class_id": "int64", "attribute": "string", "value": "string", "n": "int64"},
    "domain_values": {"attribute": "string", "value": "string", "ord": "int64", "n": "int64"},
    "domain_nodes": {"attribute": "string", "value": "string", "level": "int64", "node": "int64"},
    "permuted_blocks": {
        "class_id": "int64",
        "block": "int64",
        "n": "int64",
        "suppressed": "bool",
        "strayed": "int64",
        "stuck": "bool",
        "linkage": "float64",
    },
    "population_classes": {"class_id": "int64", "n": "int64"},
    "column_values": {"attribute": "string", "value": "string", "number": "float64", "n": "int64"},
    "cell_values": {"attribute": "string", "cell": "string", "value": "string", "number": "float64", "n": "int64"},
    "row_values": {"row_id": "int64", "class_id": "int64", "value": "string"},
    "tuples": {"tuple_id": "int64", "class_id": "int64", "n": "int64"},
    "tuple_shares": {"tuple_id": "int64", "share": "float64"},
    "tuple_values": {"tuple_id": "int64", "attribute": "string", "value": "string", "number": "float64"},
    "pairs": {
        "released": "bool",
        "first": "string",
        "second": "string",
        "x": "string",
        "y": "string",
        "n": "int64",
    },
    "night_before": {"person": "string", "class_id": "string"},
    "night_after": {"person": "string", "class_id": "string"},
    "night_groups": {"class_before": "string", "class_after": "string", "n": "int64"},
}
"""The relations that statements of ``sql/`` may read, with their columns."""


def require(condition: object, message: str) -> None:
    """Raise an AssertionError unless the condition is true; unlike ``assert`` it is there under -O, too."""
    if not condition:
        raise AssertionError(message)


def require_documented(member: type[Any]) -> None:
    """A docstring with a reference, and a line for lists."""
    doc = member.__doc__ or ""
    require(doc.strip(), f"{member.__name__} needs a docstring.")
    require("References\n" in doc, f"The docstring of {member.__name__} cites no reference.")
    require(getattr(member, "summary", ""), f"{member.__name__}.summary is empty: it is what lists show.")


def require_frozen(instance: Any) -> None:
    """A frozen dataclass, equal to its copy, made again from its own parameters, which JSON can hold."""
    name = type(instance).__name__
    require(is_dataclass(instance), f"{name} must be a dataclass.")
    parameters = instance.parameters()
    require(set(parameters) == {f.name for f in fields(instance)}, f"{name}.parameters() must name exactly its fields.")
    for field in fields(instance):
        try:
            setattr(instance, field.name, getattr(instance, field.name))
        except FrozenInstanceError:
            continue
        raise AssertionError(f"{name} must be frozen.")
    copy = type(instance)(**parameters)
    require(copy == instance, f"{name}(**parameters()) must equal the instance.")
    require(json.loads(json.dumps(parameters)) == parameters, f"{name}.parameters() must survive JSON.")


def require_statement(folder: str, member: type[Any]) -> SqlFile:
    """Return the statement of a model or metric, which must exist and read known relations only."""
    try:
        file = member.statement() if folder == "metrics" else load_of(folder, member)
    except FileNotFoundError:
        raise AssertionError(f"There is no sql/{folder}/{member.name}.sql, nor one beside the module.") from None
    unknown = set(file.reads) - set(RELATIONS)
    require(not unknown, f"{member.name}.sql reads unknown relations: {', '.join(sorted(unknown))}.")
    return file


def make_relations(engine: Engine, rows: Mapping[str, Sequence[Sequence[Any]]]) -> RelationTables:
    """Make relations readable in an engine and return their tables; those not given are empty.

    ``cell_rows`` follow from the classes and their cells.
    """
    import pyarrow as pa

    names = {}
    sizes = {class_id: n for class_id, n, suppressed in rows.get("classes", []) if not suppressed}
    cells = [(a, *described, sizes[i]) for i, a, _, *described in rows.get("class_cells", []) if i in sizes]
    for relation, columns in RELATIONS.items():
        given = rows.get(relation, cells if relation == "cell_rows" else [])
        arrays = {
            column: pa.array([row[i] for row in given], getattr(pa, kind if kind != "bool" else "bool_")())
            for i, (column, kind) in enumerate(columns.items())
        }
        names[relation] = engine.fresh(relation)
        engine.register(names[relation], pa.table(arrays))
    return RelationTables(engine, names)
