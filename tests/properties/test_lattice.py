"""Every search of the lattice compared with brute force on many random tables."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties.test_enforced import ORDER, SENSITIVE_TREE, promise
from properties.test_reference import Case
from reference import lattice as slow

import duckanon
from duckanon.algorithms.base import Algorithm, Problem
from duckanon.algorithms.full_domain import minimal
from duckanon.algorithms.full_domain.best_effort import BestEffort
from duckanon.algorithms.full_domain.lattice import Lattice
from duckanon.algorithms.full_domain.nodes import Node, evaluate
from duckanon.algorithms.full_domain.objectives import make_objective
from duckanon.algorithms.full_domain.optimal import Optimal
from duckanon.algorithms.full_domain.search import ANONYMOUS
from duckanon.algorithms.full_domain.tables import Tables
from duckanon.errors import InfeasibleError
from duckanon.plan.plan import parse_model
from tests.effort import share

METRICS = ["loss", "loss_geometric", "precision", "height", "discernibility", "average_class_size", "entropy"]
METRICS += ["non_uniform_entropy", "ambiguity", "granularity", "nllm", "iyengar_loss", "classification"]


class Setting:
    """A table with a sensitive column, models, and all nodes as the reference sees them."""

    def __init__(self, rng: random.Random, sensitive: bool) -> None:
        self.case = case = Case(rng)
        self.values = [rng.choice(rng.choice([["s0"], ORDER])) for _ in case.rows]
        self.promised = [promise(rng)] if sensitive else []
        self.least = max(case.k, *(parse_model(text).traits.min_class_size for text, _ in self.promised), 1)
        self.allowed = int(len(case.rows) * case.limit + 1e-9)
        self.nodes = slow.nodes(case.rows, case.trees, case.k, self.allowed, case.persons, self.broken)

    def broken(self, table: list[slow.Row]) -> set[slow.Row]:
        members, people = defaultdict(list), defaultdict(set)
        persons = self.case.persons or range(len(table))
        for row, value, person in zip(table, self.values, persons, strict=True):
            members[row].append(value)
            people[row].add(person)
        # The promises count rows; a least size is one of persons where there are any.
        return {
            row
            for row, found in members.items()
            if len(people[row]) < self.least or not all(holds(found, self.values) for _, holds in self.promised)
        }

    def arguments(self, connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
        case = self.case
        return {
            "data": case.table().append_column("s", pa.array(self.values, pa.string())),
            "quasi_identifiers": case.names,
            "sensitive": ["s"],
            "entity_key": "person" if case.persons is not None else None,
            "hierarchies": {**case.hierarchies(), "s": SENSITIVE_TREE},
            "k": case.k,
            "models": [text for text, _ in self.promised],
            "suppression_limit": case.limit,
            "connection": connection,
        }


class Done(Exception):
    """The search has seen enough."""


@dataclass(frozen=True)
class Probe(Algorithm):
    """Shows a problem to a test, from inside the search."""

    look: Callable[[Problem], None]
    name: ClassVar[str] = "probe"
    counts_values: ClassVar[bool] = True

    def search(self, problem: Problem) -> Any:
        self.look(problem)
        raise Done


def inside(setting: Setting, connection: duckdb.DuckDBPyConnection, look: Callable[[Problem], None]) -> None:
    # A table with fewer rows than a class must have is refused before any search.
    expected = Done if len(setting.case.rows) >= setting.least else InfeasibleError
    with pytest.raises(expected):
        duckanon.anonymize(**setting.arguments(connection), algorithm=Probe(look))


def lattice_of(problem: Problem, tables: Tables) -> Lattice:
    return Lattice(problem, tables, problem.low, problem.high)


@pytest.mark.parametrize("sensitive", [False, True])
@share(1 / 4)
@given(seed=st.integers(0, 2**32))
def test_the_walks_find_exactly_the_minimal_nodes(sensitive: bool, seed: int, connection: Any) -> None:
    setting = Setting(random.Random(seed), sensitive)
    anonymous = {n.levels: n.anonymous for n in setting.nodes}

    def look(problem: Problem) -> None:
        tables = Tables(problem)
        walks = (minimal.everywhere, minimal.by_strategies, minimal.by_subsets)
        for walk in walks:
            lattice = lattice_of(problem, tables)
            assert walk(lattice) == slow.minimal(setting.nodes), walk
            for levels, expected in anonymous.items():
                assert (lattice.known(levels) == ANONYMOUS) == expected, walk
        lattice = lattice_of(problem, tables)
        assert minimal.lowest(lattice) == slow.lowest(setting.nodes)
        for levels, visit in lattice.visits.items():
            assert visit.anonymous == anonymous[levels]

    inside(setting, connection, look)


@pytest.mark.parametrize("sensitive", [False, True])
@share(1 / 4)
@given(seed=st.integers(0, 2**32))
def test_optimal_is_the_best_of_all_and_bounds_never_exceed_values(sensitive: bool, seed: int, connection: Any) -> None:
    rng = random.Random(seed)
    setting = Setting(rng, sensitive)
    wanted = rng.sample(METRICS, 3)

    def look(problem: Problem) -> None:
        tables = Tables(problem)
        for metric in wanted:
            full = lattice_of(problem, tables)
            objective = make_objective(full, metric)
            values = {}
            for node in setting.nodes:
                found = full.visit(node.levels)
                assert found.anonymous == node.anonymous
                if node.anonymous:
                    assert found.outlier_rows == node.suppressed
                    values[node.levels] = objective.value(node.levels, *full.kept(node.levels))
                    objective.learn(node.levels, full.kept(node.levels)[0])
            for levels, value in values.items():
                assert objective.bound(levels) <= value + 1e-9, metric
            fresh = lattice_of(problem, tables)
            choice = Optimal(metric=metric).explore(fresh, make_objective(fresh, metric))
            assert (choice.levels is None) == (not values)
            if values:
                assert choice.value == pytest.approx(min(values.values()), abs=1e-9), metric
                assert choice.value == values[choice.levels]
            for strategy in ("top_down", "bottom_up", "genetic"):
                small = lattice_of(problem, tables)
                tried = BestEffort(metric=metric, strategy=strategy, nodes=rng.randint(3, 30))
                found = tried.explore(small, make_objective(small, metric))
                if found.levels is None:
                    assert not anonymous_top(setting)
                    continue
                assert found.value == pytest.approx(values[found.levels], abs=1e-9)
                assert found.bound <= min(values.values()) + 1e-9, (metric, strategy)

    inside(setting, connection, look)


def anonymous_top(setting: Setting) -> bool:
    return max(setting.nodes, key=lambda n: n.levels).anonymous


@share(1 / 4)
@given(seed=st.integers(0, 2**32))
def test_objectives_are_the_metrics(seed: int, connection: Any) -> None:
    """What a search minimises is what the release is measured by."""
    rng = random.Random(seed)
    setting = Setting(rng, False)
    good = [n for n in setting.nodes if n.anonymous and n.suppressed < len(setting.case.rows)]
    if not good:
        return
    chosen = rng.choice(good)
    values = {}

    def look(problem: Problem) -> None:
        lattice = lattice_of(problem, Tables(problem))
        for metric in METRICS:
            objective = make_objective(lattice, metric)
            values[metric] = objective.shown(objective.value(chosen.levels, *lattice.kept(chosen.levels)))

    inside(setting, connection, look)
    if not values:
        return
    with duckanon.anonymize(**setting.arguments(connection), algorithm=Fixed(chosen.levels)) as release:
        for metric, value in values.items():
            (found,) = [m.value for m in release.measure([metric]) if m.attribute is None]
            assert found == pytest.approx(value, abs=1e-9), metric


@dataclass(frozen=True)
class Fixed(Algorithm):
    """Levels that the test chose."""

    levels: tuple[int, ...]
    name: ClassVar[str] = "fixed"

    def search(self, problem: Problem) -> Node:
        return evaluate(problem, self.levels)


@pytest.mark.parametrize("name", ["samarati", "incognito", "ola", "mingen", "optimal", "best_effort"])
@share(1 / 10)
@given(seed=st.integers(0, 2**32))
@pytest.mark.thinned(2)
def test_a_release_by_every_search(name: str, seed: int, connection: Any) -> None:
    setting = Setting(random.Random(seed), True)
    good = {n.levels: n for n in setting.nodes if n.anonymous and n.suppressed < len(setting.case.rows)}
    try:
        release = duckanon.anonymize(**setting.arguments(connection), algorithm=name)
    except InfeasibleError:
        assert not any(n.anonymous for n in setting.nodes) or any(
            n.suppressed == len(setting.case.rows) for n in setting.nodes if n.anonymous
        )
        return
    with release:
        levels = tuple(release.recoding.levels[n] for n in setting.case.names)
        assert release.rows_suppressed == good[levels].suppressed
        if name in ("incognito", "ola"):
            assert levels in slow.minimal(setting.nodes)
        if name == "samarati":
            assert levels in slow.lowest(setting.nodes)
