"""A region that is a node of the hierarchy that was given has the label of the node."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import duckanon
from duckanon.hierarchy import Hierarchy

AGES = range(18, 98)


def bands(age: int) -> list[str]:
    """Return an age with bands that look like no interval of ours."""
    return [str(age), *(f"{age - age % width} to {age - age % width + width - 1}" for width in (5, 10, 40)), "*"]


HIERARCHY = Hierarchy.from_table(
    pa.table([list(level) for level in zip(*map(bands, AGES), strict=True)], list("abcde"))
)


def people(rows: int, seed: int) -> pa.Table:
    draw = random.Random(seed)
    ages = [draw.choice([a for a in AGES if not 35 <= a < 40]) for _ in range(rows)]
    return pa.table({"age": ages, "sex": [draw.choice("fm") for _ in range(rows)]})


def ends(label: str) -> tuple[int, int]:
    low, high = label.strip("[]").split(", " if label.startswith("[") else " to ")
    return int(low), int(high)


@pytest.mark.parametrize(("rows", "k", "seed"), [(400, 5, 1), (400, 20, 2), (90, 9, 3)])
def test_labels_of_nodes_are_published_and_no_interval_is_a_node(rows: int, k: int, seed: int) -> None:
    nodes = {(level, label) for age in AGES for level, label in enumerate(bands(age)[1:-1])}
    leaves = {label: [a for a in AGES if label in bands(a)] for _, label in nodes}
    spans = {(min(members), max(members)) for members in leaves.values()}
    data = people(rows, seed)
    with duckanon.anonymize(data, quasi_identifiers=["age", "sex"], hierarchies={"age": HIERARCHY}, k=k) as release:
        shown = set(release.to_arrow().column("age").to_pylist())
    assert any(label in leaves for label in shown)
    for label in shown - {"*"} - set(leaves) - {str(a) for a in AGES}:
        assert label.startswith("[")
        assert ends(label) not in spans


def test_a_gap_in_the_table_makes_no_node_of_a_part() -> None:
    data = people(300, 4)
    with duckanon.anonymize(data, quasi_identifiers=["age"], hierarchies={"age": HIERARCHY}, k=2) as release:
        shown = set(release.to_arrow().column("age").to_pylist())
    # Nobody is 35 to 39: the group from 30 to 34 is not the node over both.
    assert "30 to 34" in shown
    assert "30 to 39" not in shown
