"""Thirty nights of a town whose people come, go and move: no two releases together reveal fewer than k persons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from duckanon.errors import InfeasibleError
from duckanon.hierarchy import Hierarchy
from tests.jobs.nights_made import K, Town, classes_of, fresh_state, night, published, recount

LEVELS: dict[str, Any] = {
    "algorithm": "datafly",
    "hierarchies": {"age": Hierarchy.intervals(width=20), "zip": Hierarchy.mask()},
    "suppression_limit": 0.05,
}
WAYS: dict[str, dict[str, Any]] = {
    "levels": LEVELS,
    "levels, l": LEVELS | {"l": 2},
    "grid": {"algorithm": "mondrian"},
    "cut": {"algorithm": "mondrian", "bounds": "cut", "hierarchies": {"zip": Hierarchy.mask()}},
}


def live(folder: Path, plan: dict[str, Any], policy: str, size: int, seed: int, nights: int, daily: int) -> list[int]:
    """Let nights pass; return how many rows each published."""
    town, state = Town(size, seed), fresh_state(folder)
    before: list[dict[str, tuple[str, ...]]] = []
    found = []
    for i in range(nights):
        if i:
            town.depart(town.random.randint(0, daily))
            town.arrive(town.random.randint(0, daily))
            town.move(town.random.randint(0, daily))
        try:
            made = night(town.table(), state, f"r{i}", plan, recoding="frozen", intersection=policy)
        except InfeasibleError:
            continue
        own = classes_of(published(made, state).release)
        made.release.close()
        assert len(own) == made.release.rows_published
        assert len(town.people) == made.release.rows_published + made.release.rows_suppressed
        counted: dict[tuple[str, ...], int] = {}
        for label in own.values():
            counted[label] = counted.get(label, 0) + 1
        assert min(counted.values()) >= K
        for other in before[-3:]:
            groups = recount(other, own)
            assert min(groups["both"], default=K) >= K
            if policy == "hold":
                assert min([*groups["new"], *groups["departed"]], default=K) >= K
        before.append(own)
        found.append(len(own))
    return found


@pytest.mark.slow
def test_thirty_nights_of_holding_back(tmp_path: Path) -> None:
    found = live(tmp_path, LEVELS, "hold", 120, 1, 30, 2)
    assert len(found) == 30
    assert sum(found) > 30 * 60, "most persons are published on most nights"


def test_nights_that_stop(tmp_path: Path) -> None:
    found = live(tmp_path, LEVELS, "stop", 160, 2, 8, 1)
    assert found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("policy", ["hold", "stop"])
@pytest.mark.parametrize("way", WAYS)
def test_many_nights(tmp_path: Path, way: str, policy: str, seed: int) -> None:
    assert live(tmp_path, WAYS[way], policy, 600, seed, 30, 4)
