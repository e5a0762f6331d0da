"""A table for clustering algorithms, and what is published of it."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa

import duckanon
from duckanon.algorithms import algorithms
from duckanon.algorithms.base import Algorithm

NAMES = ["mdav", "v_mdav", "knn_clustering", "k_member", "tdg", "greedy", "kaca"]
ROWS = 240
QUASI = ["age", "income", "born", "town"]


def people(rows: int = ROWS) -> pa.Table:
    """Numbers, dates and text, some of them missing; ``row`` tells rows apart."""
    rng = np.random.default_rng(11)
    ages = rng.integers(18, 90, rows)
    days = rng.integers(0, 20_000, rows)
    return pa.table(
        {
            "age": pa.array([None if a < 22 else int(a) for a in ages], pa.int64()),
            "income": np.exp(rng.normal(8.0, 0.4, rows)).round(2),
            "born": pa.array([dt.date(1950, 1, 1) + dt.timedelta(days=int(d)) for d in days]),
            "town": pa.array([None if i == 9 else f"t{i}" for i in rng.integers(0, 10, rows)]),
            "region": [f"r{i}" for i in rng.integers(0, 3, rows)],
            "ill": [f"i{i}" for i in rng.integers(0, 5, rows)],
            "cost": rng.integers(0, 500, rows),
            "person": [f"p{i}" for i in rng.integers(0, rows // 3, rows)],
            "row": np.arange(rows),
        }
    )


TABLE = people()


def made(name: str, **parameters: Any) -> Algorithm:
    return algorithms.get(name)(**parameters)


def publish(algorithm: Any, table: pa.Table = TABLE, **more: Any) -> Any:
    return duckanon.anonymize(
        table, **({"quasi_identifiers": QUASI, "insensitive": ["row"], "k": 5, "seed": 3} | more), algorithm=algorithm
    )


def classes(release: Any, columns: list[str] | None = None) -> dict[Any, list[dict[str, Any]]]:
    """The published rows by what is published of their quasi-identifiers."""
    found: dict[Any, list[dict[str, Any]]] = {}
    for row in release.to_arrow().to_pylist():
        found.setdefault(tuple(row[c] for c in columns or QUASI), []).append(row)
    return found


def covers(cell: Any, value: Any) -> bool:
    """Say whether a published cell stands for a value."""
    if cell == "*" or cell == value or (value is not None and cell == str(value)):
        return True
    if cell is None or value is None:
        return False
    if cell.startswith("{"):
        return str(value) in cell[1:-1].split(", ")
    if cell.startswith("group "):
        # Of so many groups of values in order: see ``in_order``.
        return isinstance(value, str)
    kind: Any = (
        type(value) if isinstance(value, str) else dt.date.fromisoformat if isinstance(value, dt.date) else float
    )
    low, high = (kind(bound) for bound in cell[1:-1].split(", "))
    return bool(low <= value < high if cell.endswith(")") else low <= value <= high)


def in_order(found: dict[Any, list[str]]) -> bool:
    """Say whether values that are published as group i of m come before those of group i + 1 of m."""
    groups = {
        tuple(map(int, cell[6:].split("/"))): v for cell, v in found.items() if cell and cell.startswith("group ")
    }
    return all(max(groups[i, m]) < min(groups[j, n]) for i, m in groups for j, n in groups if m == n and i < j)
