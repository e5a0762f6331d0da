"""A region that is a node of the hierarchy that was given has the label of the node."""

from __future__ import annotations

import random
from datetime import date, timedelta

import pyarrow as pa
import pytest

import duckanon
from duckanon.algorithms.base import algorithms
from duckanon.hierarchy import Hierarchy

AGES = range(18, 98)
REGIONS = sorted(
    name for name in algorithms if algorithms.get(name)().partitions and not algorithms.get(name)().permutes
)


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


@pytest.mark.parametrize("algorithm", REGIONS)
def test_every_partition_publishes_the_labels_of_nodes(algorithm: str) -> None:
    leaves = {label: [a for a in AGES if label in bands(a)] for age in AGES for label in bands(age)[1:-1]}
    spans = {(min(members), max(members)) for members in leaves.values()}
    given = {"hierarchies": {"age": HIERARCHY}, "k": 20, "algorithm": algorithm, "seed": 1}
    with duckanon.anonymize(people(400, 2), quasi_identifiers=["age", "sex"], **given) as release:
        shown = set(release.to_arrow().column("age").to_pylist())
    assert shown & set(leaves)
    for label in shown - {"*"} - set(leaves) - {str(a) for a in AGES}:
        assert ends(label) not in spans


def test_nodes_of_dates_have_their_labels() -> None:
    days = [date(2024, 1, 1) + timedelta(d) for d in range(366)]
    levels = [[str(d) for d in days], [f"{d:%B}" for d in days], [f"half {(d.month + 5) // 6}" for d in days]]
    hierarchy = Hierarchy.from_table(pa.table(levels, list("abc")))
    data = pa.table({"day": days[::2], "sex": ["f", "m", "f"] * 61})
    with duckanon.anonymize(data, quasi_identifiers=["day"], hierarchies={"day": hierarchy}, k=10) as release:
        shown = set(release.to_arrow().column("day").to_pylist())
    assert shown <= set(levels[1])


def test_a_gap_in_the_table_makes_no_node_of_a_part() -> None:
    data = people(300, 4)
    with duckanon.anonymize(data, quasi_identifiers=["age"], hierarchies={"age": HIERARCHY}, k=2) as release:
        shown = set(release.to_arrow().column("age").to_pylist())
    # Nobody is 35 to 39: the group from 30 to 34 is not the node over both.
    assert "30 to 34" in shown
    assert "30 to 39" not in shown
