"""What bounds give away for certain, over all tiny tables; and in ADULT, beside chance."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.downcoding import ALGORITHMS, adult, certain, regions, tables

LIMITS = {
    "tight": (0.6, 1.0),
    "cut": (0.0, 0.1),
    "full domain": (0.0, 0.05),
    "grid of 2 values": (0.0, 0.35),
    "grid of 4 values": (0.0, 0.1),
    "trees with groups of 2 values": (0.0, 0.45),
    "trees with groups of 4 values": (0.0, 0.1),
}


def _shares(rows: int) -> dict[str, float]:
    every = tables(rows)
    found = {}
    for name, make in ALGORITHMS.items():
        known, total = certain(make(every))
        found[name] = known / total
    return found


def test_tight_bounds_make_most_values_of_tiny_tables_certain() -> None:
    for name, share in _shares(3).items():
        low, high = LIMITS[name] if name != "full domain" else (0.0, 0.2)
        assert low <= share <= high, name


def test_on_a_grid_a_group_of_values_tells_that_its_rows_differ() -> None:
    # One value is published where all rows of a class have it: two rows in a group of two values are then certain.
    for classes in regions(tables(3), "grid"):
        for box, rows in classes.items():
            for j, (low, high) in enumerate(box):
                differ = len({row[j] for row in rows}) > 1
                assert low == high or differ


@pytest.mark.slow
def test_all_tables_of_six_rows() -> None:
    found = _shares(6)
    assert len(tables(6)) == 54_264
    for name, share in found.items():
        low, high = LIMITS[name]
        assert low <= share <= high, name


@pytest.mark.slow
def test_adult(data: Path) -> None:
    found = {bounds: adult(data, bounds) for bounds in ("tight", "grid")}
    assert found["tight"].success > found["tight"].base_rate + 0.05
    assert found["grid"].level == "nothing"
