"""Search and gate mean the same: no search ends in a refusal of the gate, and what brute force finds is found.

Every model, several at once, with suppression, persons, populations, NULLs, passes and all families of algorithms.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties.test_enforced import ORDER, SENSITIVE_TREE, promise
from properties.test_reference import Case
from reference import datafly as walk
from reference import lattice as slow
from reference import metrics as plain
from reference import models as definitions
from reference.tables import full_domain

import duckanon
from duckanon.errors import InfeasibleError
from tests.effort import share

EXHAUSTIVE = ("optimal", "ola", "incognito", "samarati", "mingen")
OTHERS = ("best_effort", "datafly", "datafly(stop=k)")
DIVIDING = ("mondrian", "mondrian(relaxed=true)", "mondrian(choose_dim=distinct)", "mdav", "v_mdav", "tdg", "k_member")
DIVIDING += ("kaca", "knn_clustering", "greedy")


class Setting:
    """A table, a population where a model needs one, and promises of every kind, each with its definition."""

    def __init__(self, rng: random.Random, kinds: tuple[str, ...]) -> None:
        self.case = case = Case(rng)
        self.values = [rng.choice(rng.choice([["s0"], ORDER])) for _ in case.rows]
        self.sensitive = [promise(rng) for _ in range(rng.randint(0, 2))] if "sensitive" in kinds else []
        self.models = [text for text, _ in self.sensitive]
        self.k = case.k if rng.random() < 0.6 else None
        self.population: list[walk.Row] | None = None
        self.presence: tuple[Fraction, Fraction] | None = None
        self.map = 0
        self.whole: list[tuple[str, Fraction]] = []
        if "population" in kinds and rng.random() < 0.8:
            self._draw_population(rng)
        if "whole" in kinds and rng.random() < 0.6:
            for name in rng.sample(["average_reidentification_risk", "sample_uniqueness"], rng.randint(1, 2)):
                self.whole.append((name, Fraction(rng.randint(1, 8), 8)))
                self.models.append(f"{name}({float(self.whole[-1][1])})")
        if not self.models and self.k is None:
            self.k = case.k
        rng.shuffle(self.models)
        self.allowed = int(len(case.rows) * case.limit + 1e-9)

    def _draw_population(self, rng: random.Random) -> None:
        case = self.case
        people = [row for row in case.rows if rng.random() < 0.9]
        people += [
            tuple(rng.choice([*(r[j] for r in case.rows), *tree]) for j, tree in enumerate(case.trees))
            for _ in range(rng.randint(0, 2 * len(case.rows)))
        ]
        self.population = people * rng.choice([1, 1, 2]) or list(case.rows)
        if rng.random() < 0.7:
            low, high = sorted([Fraction(rng.choice([0, 0, rng.randint(0, 8)]), 8), Fraction(rng.randint(4, 8), 8)])
            self.presence = low, high
            self.models.append(f"delta_presence({float(low)}, {float(high)})")
        if self.presence is None or rng.random() < 0.3:
            self.map = rng.randint(1, 8)
            self.models.append(f"k_map({self.map})")

    def arguments(self, connection: duckdb.DuckDBPyConnection, algorithm: str, **more: Any) -> dict[str, Any]:
        case = self.case
        people = None
        if self.population is not None:
            columns = [pa.array([row[j] for row in self.population], pa.string()) for j in range(case.width)]
            people = pa.table(columns, names=case.names)
        return {
            "data": case.table().append_column("s", pa.array(self.values, pa.string())),
            "quasi_identifiers": case.names,
            "sensitive": ["s"],
            "entity_key": "person" if case.persons is not None else None,
            "hierarchies": {**case.hierarchies(), "s": SENSITIVE_TREE},
            "k": self.k,
            "models": self.models,
            "population": people,
            "suppression_limit": case.limit,
            "algorithm": algorithm,
            "connection": connection,
            **more,
        }

    def kept(self, levels: slow.Levels) -> set[walk.Row]:
        """The classes that a release on these levels has, the empty set where it must not be."""
        case = self.case
        rows = walk.generalize(case.rows, case.trees, levels)
        people = Counter(walk.generalize(self.population or [], case.trees, levels))
        values, members = defaultdict(list), defaultdict(set)
        for i, (row, value) in enumerate(zip(rows, self.values, strict=True)):
            values[row].append(value)
            members[row].add(case.persons[i] if case.persons is not None else i)
        sizes = {row: len(found) for row, found in members.items()}
        fine = {row for row in sizes if sizes[row] >= (self.k or 1) and people[row] >= self.map}
        # The promises count rows; the least size of a class is one of persons, where there are any.
        fine &= {row for row in sizes if all(holds(values[row], self.values) for _, holds in self.sensitive)}
        fine &= {row for row in sizes if all(sizes[row] >= self.least(text) for text, _ in self.sensitive)}
        if self.presence is not None:
            fine &= {row for row in fine if definitions.delta_presence(sizes[row], people[row], *self.presence)}
        before = -1
        while before != len(fine):
            before = len(fine)
            for name, threshold in self.whole:
                measure = definitions.average_risk if "average" in name else definitions.uniqueness
                order = sorted(fine, key=repr)
                stays = definitions.staying([sizes[row] for row in order], measure, threshold)
                fine = {row for row, stay in zip(order, stays, strict=True) if stay}
        if self.presence is not None and self.presence[0] > 0 and set(people) - fine:
            return set()
        return fine if sum(row not in fine for row in rows) <= self.allowed else set()

    @staticmethod
    def least(text: str) -> int:
        """How many members alpha-k-anonymity asks for by itself."""
        return int(text.rstrip(")").split(",")[1]) if text.startswith("alpha_k") else 1

    def good(self) -> dict[slow.Levels, set[walk.Row]]:
        """All nodes that keep the promise, with their classes."""
        heights = [len(next(iter(tree.values()))) - 1 for tree in self.case.trees]
        found = {levels: self.kept(levels) for levels in slow.product(*(range(h + 1) for h in heights))}
        return {levels: rows for levels, rows in found.items() if rows}


@share(4)
@given(seed=st.integers(0, 2**32))
def test_searches_of_the_lattice_find_what_brute_force_finds(seed: int, connection: Any) -> None:
    rng = random.Random(seed)
    setting = Setting(rng, ("sensitive", "population", "whole"))
    case = setting.case
    # Which of equally many persons are left out first decides how many rows that is: no definition says.
    exact = not (setting.whole and case.persons is not None)
    good = setting.good()
    algorithm = rng.choice(EXHAUSTIVE + OTHERS)
    try:
        release = duckanon.anonymize(**setting.arguments(connection, algorithm))
    except InfeasibleError:
        assert not good or not exact or algorithm not in EXHAUSTIVE
        return
    with release:
        levels = tuple(release.recoding.levels[n] for n in case.names)
        if not exact:
            return
        rows = walk.generalize(case.rows, case.trees, levels)
        if "stop=k" not in algorithm:
            assert release.rows_suppressed == sum(row not in good[levels] for row in rows)
        if algorithm == "optimal":
            (lost,) = [m.value for m in release.measure(["loss"]) if m.attribute is None]
            assert lost == pytest.approx(min(loss(case, *found) for found in good.items()), abs=1e-9)


def loss(case: Case, levels: slow.Levels, kept: set[walk.Row]) -> float:
    rows = walk.generalize(case.rows, case.trees, levels)
    table = full_domain(case.rows, case.trees, levels, [row in kept for row in rows])
    return plain.loss(table)[None]


@share(2)
@given(seed=st.integers(0, 2**32))
def test_passes_are_never_refused_by_the_gate(seed: int, connection: Any) -> None:
    rng = random.Random(seed)
    setting = Setting(rng, ("sensitive", "whole"))
    if rng.random() < 0.5:
        shared_labels(setting.case, rng)
    good = setting.good()
    algorithm = rng.choice(EXHAUSTIVE + OTHERS[:2])
    try:
        duckanon.anonymize(**setting.arguments(connection, algorithm, iterative=True)).close()
    except InfeasibleError:
        assert not good or algorithm not in EXHAUSTIVE or (setting.whole and setting.case.persons is not None)


def shared_labels(case: Case, rng: random.Random) -> None:
    """Give nodes of different levels the same name: a group keeps that of its first part, which is less than it."""
    for tree in case.trees:
        height = len(next(iter(tree.values()))) - 1
        for level in range(1, height):
            names = {}
            for labels in tree.values():
                if labels[level] is not None:
                    names.setdefault(labels[level], labels[level - 1] if rng.random() < 0.6 else labels[level])
            if len(set(names.values())) == len(names):
                for labels in tree.values():
                    labels[level] = names.get(labels[level])


@share(3)
@given(seed=st.integers(0, 2**32))
def test_divisions_are_never_refused_by_the_gate(seed: int, connection: Any) -> None:
    rng = random.Random(seed)
    setting = Setting(rng, ("sensitive",))
    case = setting.case
    more: dict[str, Any] = {"bounds": rng.choice(["grid", "tight"]), "output": rng.choice(["interval", "lca", "set"])}
    if case.width > 1 and rng.random() < 0.3:
        more["within"] = [rng.choice(case.names)]
    algorithm = rng.choice(DIVIDING)
    try:
        duckanon.anonymize(**setting.arguments(connection, algorithm, **more)).close()
    except InfeasibleError:
        top = tuple(len(next(iter(tree.values()))) - 1 for tree in case.trees)
        assert "within" in more or not setting.kept(top)
