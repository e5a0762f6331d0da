"""A small town that changes a little every day, and the nights of a job about it."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from duckanon.engine.base import open_engine
from duckanon.jobs.nights import Night, State, make_night
from duckanon.plan.plan import Plan
from duckanon.plan.request import Request
from duckanon.release.release import Release

QUASI = ["age", "zip"]
K = 4


class Town:
    """Persons by their number, each with an age, a zip code and an illness."""

    def __init__(self, size: int, seed: int) -> None:
        self.random = random.Random(seed)
        self.next = 0
        self.people: dict[int, list[Any]] = {}
        self.arrive(size)

    def _person(self) -> list[Any]:
        age = self.random.randint(18, 79) if self.random.random() > 0.03 else None
        return [age, f"{self.random.randint(50000, 50099)}", self.random.choice("abcdef")]

    def arrive(self, count: int) -> None:
        for _ in range(count):
            self.people[self.next] = self._person()
            self.next += 1

    def depart(self, count: int) -> None:
        for person in self.random.sample(sorted(self.people), count):
            del self.people[person]

    def move(self, count: int, known: bool = False) -> None:
        """Let persons move: anywhere, or to where somebody lives already."""
        for person in self.random.sample(sorted(self.people), count):
            other = self.people[self.random.choice(sorted(self.people))] if known else self._person()
            self.people[person][:2] = other[:2]

    def table(self) -> pa.Table:
        """Return the town; the row's number goes along as a column that tests can follow."""
        columns = list(zip(*self.people.values(), strict=True))
        return pa.table(
            {
                "id": pa.array(list(self.people), pa.int64()),
                "age": pa.array(columns[0], pa.int32()),
                "zip": pa.array(columns[1], pa.string()),
                "ill": pa.array(columns[2], pa.string()),
                "who": pa.array([f"person {i}" for i in self.people], pa.string()),
            }
        )


def plan_of(data: pa.Table, engine: Any, **changes: Any) -> Plan:
    given: dict[str, Any] = {
        "quasi_identifiers": QUASI,
        "sensitive": ["ill"],
        "insensitive": ["who"],
        "entity_key": "id",
        "k": K,
        "algorithm": "mondrian",
    }
    return Plan.resolve(Request(data=data, **(given | changes)), engine)


def night(data: pa.Table, state: State, run: str, plan: dict[str, Any] | None = None, **how: Any) -> Night:
    """Make the release of a night; its engine goes with it."""
    engine = open_engine()
    try:
        return make_night(plan_of(data, engine, **(plan or {})), engine, state, run, **how)
    except BaseException:
        engine.close()
        raise


def published(made: Night, state: State) -> Night:
    """Settle a night as if it had been published."""
    made.prepare(state)
    assert state.settle(made.run)
    return made


def rows(release: Release) -> list[str]:
    return sorted(str(row) for row in release.to_arrow().to_pylist())


def classes_of(release: Release) -> dict[str, tuple[str, ...]]:
    """Return the published class of every person, by way of a column that is published as it is."""
    names = [n for n in release.to_arrow().column_names if n not in ("ill", "who")]
    return {row["who"]: tuple(str(row[n]) for n in names) for row in release.to_arrow().to_pylist()}


def recount(before: dict[str, tuple[str, ...]], after: dict[str, tuple[str, ...]]) -> dict[str, list[int]]:
    """Return the sizes of all groups that two releases make, in plain Python."""
    sizes: Counter[tuple[Any, Any]] = Counter()
    for who in before.keys() | after.keys():
        sizes[before.get(who), after.get(who)] += 1
    found: dict[str, list[int]] = defaultdict(list)
    for (old, new), n in sizes.items():
        found["new" if old is None else "departed" if new is None else "both"].append(n)
    return found


def fresh_state(folder: Path) -> State:
    return State.open(folder / "state")
