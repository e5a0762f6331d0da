"""What best_effort proves, compared with brute force: no anonymous node goes below it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties.test_lattice import METRICS, Setting, inside

from duckanon.algorithms.base import Problem
from duckanon.algorithms.full_domain import lower_bound
from duckanon.algorithms.full_domain.best_effort import BestEffort
from duckanon.algorithms.full_domain.lattice import Lattice
from duckanon.algorithms.full_domain.lower_bound import Clauses, excludes
from duckanon.algorithms.full_domain.minimal import lowest_levels
from duckanon.algorithms.full_domain.objectives import make_objective
from duckanon.algorithms.full_domain.tables import Tables
from tests.effort import share

Levels = tuple[int, ...]
SUMS = ["loss", "loss_geometric", "precision", "height", "entropy", "non_uniform_entropy", "granularity", "nllm"]
SUMS += ["iyengar_loss"]


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at few levels at a time."""
    monkeypatch.setattr(lower_bound, "_ARRAY", 6)


def large_lattice(problem: Problem, tables: Tables) -> Lattice:
    """Return the lattice as one that is too large for an array of all nodes."""
    return Lattice(problem, tables, problem.low, problem.high, most_nodes=0)


def weighted(problem: Problem, rng: random.Random) -> Problem:
    return (
        replace(problem, weights=[rng.choice([0.1, 1.0, 3.0]) for _ in problem.low]) if rng.random() < 0.5 else problem
    )


def values_of(setting: Setting, problem: Problem, tables: Tables, metric: str) -> dict[Levels, float]:
    lattice = Lattice(problem, tables, problem.low, problem.high)
    objective = make_objective(lattice, metric)
    good = [node.levels for node in setting.nodes if node.anonymous]
    return {levels: objective.value(levels, *_kept(lattice, levels)) for levels in good}


def _kept(lattice: Lattice, levels: Levels) -> Any:
    assert lattice.visit(levels).anonymous
    return lattice.kept(levels)


def visits_end(lattice: Lattice, most: int) -> Callable[[], bool]:
    return lambda: len(lattice.visits) >= most


@pytest.mark.parametrize("sensitive", [False, True])
@share(1 / 2)
@given(seed=st.integers(0, 2**32))
def test_clauses_never_bound_more_than_the_optimum(sensitive: bool, seed: int, connection: Any) -> None:
    rng = random.Random(seed)
    setting = Setting(rng, sensitive)

    def look(problem: Problem) -> None:
        problem = weighted(problem, rng)
        tables = Tables(problem)
        for metric in rng.sample(SUMS, 3):
            values = values_of(setting, problem, tables, metric)
            lattice = large_lattice(problem, tables)
            if not lattice.visit(lattice.high).anonymous:
                continue
            objective = make_objective(lattice, metric)
            for _ in range(rng.randint(0, 3)):
                lattice.visit(rng.choice(setting.nodes).levels)
            most = rng.choice([1, 5, 15, 10_000])
            floor = lowest_levels(lattice, visits_end(lattice, most))
            clauses = Clauses(lattice, objective.terms, floor)
            clauses.search(visits_end(lattice, most), rng, lambda levels: None)
            bound = clauses.bound(lambda: False)
            assert objective.bound_of(bound) <= min(values.values()) + 1e-9, metric
            assert bound == pytest.approx(cheapest(clauses, objective.terms), abs=1e-9), metric
            # Whenever the time ends, it is a bound.
            steps = iter([False] * rng.randint(0, 4))
            assert clauses.bound(lambda: next(steps, True)) <= bound + 1e-12  # noqa: B023 - called at once

    inside(setting, connection, look)


def cheapest(clauses: Clauses, terms: list[Any]) -> float:
    """The least sum over all levels above the floor that satisfy every clause, one by one."""
    found = np.inf
    for levels in product(*(range(a, b + 1) for a, b in zip(clauses.floor, clauses.high, strict=True))):
        taken = np.zeros(len(clauses.costs), dtype=bool)
        for start, level, low in zip(clauses.starts[:-1], levels, clauses.floor, strict=True):
            taken[start : start + level - low] = True
        if (clauses.matrix & taken).any(axis=1).all():
            found = min(found, sum(float(term[level]) for term, level in zip(terms, levels, strict=True)))
    return found


@pytest.mark.parametrize("sensitive", [False, True])
@share(1 / 4)
@given(seed=st.integers(0, 2**32))
def test_best_effort_proves_no_more_than_is_true(sensitive: bool, seed: int, connection: Any) -> None:
    rng = random.Random(seed)
    setting = Setting(rng, sensitive)

    def look(problem: Problem) -> None:
        problem = weighted(problem, rng)
        tables = Tables(problem)
        for metric in rng.sample(METRICS, 3):
            values = values_of(setting, problem, tables, metric)
            lattice = large_lattice(problem, tables)
            tried = BestEffort(metric=metric, nodes=rng.randint(3, 60), seed=rng.randint(0, 5))
            found = tried.explore(lattice, make_objective(lattice, metric))
            if found.levels is not None:
                assert found.bound <= min(values.values()) + 1e-9, metric
                assert found.value == pytest.approx(values[found.levels], abs=1e-9), metric

    inside(setting, connection, look)


@pytest.mark.parametrize("sensitive", [False, True])
@share(3)
@given(seed=st.integers(0, 2**32))
def test_no_node_below_one_that_excludes_is_anonymous(sensitive: bool, seed: int, connection: Any) -> None:
    setting = Setting(random.Random(seed), sensitive)
    good = [node.levels for node in setting.nodes if node.anonymous]

    def look(problem: Problem) -> None:
        lattice = large_lattice(problem, Tables(problem))
        for node in setting.nodes:
            if excludes(lattice, node.levels):
                assert not any(all(a <= b for a, b in zip(other, node.levels, strict=True)) for other in good)

    inside(setting, connection, look)
