"""Thirty nights of a clinic with all options of a job: a sample in which every two values meet once."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.nightly import Clinic, live, write_job

FROZEN = {
    "mondrian": ("mondrian", ""),
    "mondrian, cut": ("mondrian", "[privacy] bounds = cut"),
    "mondrian, l": ("mondrian", "[privacy] l = 2"),
    "ola": ("ola", ""),
    "optimal": ("optimal", ""),
    "optimal, l": ("optimal", "[privacy] l = 2"),
}
FRESH = {
    "mondrian, anew": ("mondrian", ""),
    "relaxed mondrian": ("mondrian", "relaxed = true"),
    "optimal, anew": ("optimal", ""),
    "local": ("optimal", "[steering] iterative = true"),
    "mdav": ("mdav", ""),
    "k_member": ("k_member", ""),
}
WAYS = FROZEN | FRESH
DRAWN = ("relaxed mondrian", "mdav", "k_member")
"""Rows that are equally near are told apart by lot, and a job has no seed: the same data may give other classes."""
SINKS = ("parquet", "csv", "duckdb", "postgres")
POLICIES = ("off", "warn", "stop", "hold", "no key")
"""What is done about intersections; without an entity key nobody can be in both."""
Case = tuple[str, str, str, bool, bool]
"""Way, sink, policy, whether persons move, whether zip codes are missing."""
Doors = tuple[str, str, Callable[[pa.Table], None], Callable[[], list[dict[str, Any]]]]


def possible(case: Case) -> bool:
    way, _, policy, _, _ = case
    return policy != "hold" or way in FROZEN


def pairs(case: Case) -> set[tuple[Any, ...]]:
    return {((i, case[i]), (j, case[j])) for i, j in combinations(range(len(case)), 2)}


def sample() -> list[Case]:
    """Return few cases in which every two values that can meet do so."""
    every = [case for case in product(WAYS, SINKS, POLICIES, (False, True), (False, True)) if possible(case)]
    of = {case: pairs(case) for case in every}
    left = set().union(*of.values())
    kept: list[Case] = []
    while left:
        kept.append(max(every, key=lambda case: len(of[case] & left)))
        left -= of[kept[-1]]
    return kept


def nights(folder: Path, case: Case, doors: Doors, *, count: int, size: int) -> tuple[int, int]:
    """Let nights of a case pass; return how many were published and how many stopped for a good reason."""
    way, _, policy, moving, missing = case
    algorithm, more = WAYS[way]
    clinic = Clinic(random.Random(f"{case}"), nowhere=0.05 if missing else 0.0)
    clinic.arrive(size)
    source, output, store, read = doors
    keyed, frozen = policy != "no key", way in FROZEN
    path = write_job(
        folder,
        source,
        output,
        policy=policy,
        algorithm=algorithm,
        keyed=keyed,
        recoding="frozen" if frozen else "fresh",
        further=_lines(more),
    )
    _privacy(path, more)
    again = 0 if way in DRAWN else 5
    how = {"policy": policy, "moving": moving, "keyed": keyed, "frozen": frozen}
    return live(path, clinic, store, read, nights=count, daily=3, again=again, **how)


def _lines(more: str) -> str:
    """Return what stands below the algorithm."""
    if more.startswith("[privacy]"):
        return ""
    return more.replace("[steering] ", "\n[steering]\n")


def _privacy(path: Path, more: str) -> None:
    if more.startswith("[privacy] "):
        key, value = more.removeprefix("[privacy] ").split(" = ")
        told = value if value.isdigit() else f'"{value}"'
        path.write_text(path.read_text().replace("k = 4", f"k = 4\n{key} = {told}"))
