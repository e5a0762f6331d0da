"""Values that bounds reveal with certainty, over all tiny tables, and in ADULT compared with chance."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.downcoding import ALGORITHMS, adult, certain, regions, tables

LIMITS = {
    "tight": (0.6, 1.0),
    "cut": (0.0, 0.1),
    "full domain": (0.0, 0.05),
    "grid of 2 values": (0.0, 0.0),
    "grid of 4 values": (0.0, 0.0),
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


def test_on_a_grid_groups_are_published_whole() -> None:
    # Whether all rows of a class have one value or not: a group of two values tells nothing of either.
    alike = 0
    for classes in regions(tables(3), "grid"):
        for box, rows in classes.items():
            for j, (low, high) in enumerate(box):
                assert (low, high) in {(0, 1), (2, 3), (0, 3)}
                alike += len({row[j] for row in rows}) == 1
    assert alike


@pytest.mark.slow
def test_all_tables_of_six_rows() -> None:
    found = _shares(6)
    assert len(tables(6)) == 54_264
    for name, share in found.items():
        low, high = LIMITS[name]
        assert low <= share <= high, name


@pytest.mark.slow
def test_tight_bounds_of_adult_are_downcoded_and_a_grid_is_not(data: Path) -> None:
    found = {bounds: adult(data, bounds) for bounds in ("tight", "grid")}
    assert found["tight"].success > found["tight"].base_rate + 0.05
    assert found["grid"].level == "nothing"
