"""Predicates from published bounds: as by the definition, on random tables; and what each kind of bounds gives away."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from duckanon.assess.attacks.downcoding import singled_out
from tests.reference import downcoding as reference


@dataclass
class _Line:
    low: np.ndarray
    high: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    members: np.ndarray = field(default_factory=lambda: np.empty(0))


def _random_line(draw: random.Random, size: int) -> tuple[_Line, list[frozenset[int]], list[list[int]]]:
    """Return a column with some cells, and the same as sets of values and lists of bounds."""
    low, high, start, stop, members = [], [], [], [], []
    cells, bounds = [], []
    for _ in range(6):
        kind = draw.choice(["range", "point", "whole", "below", "set"])
        a, b = sorted((draw.randrange(size), draw.randrange(size)))
        start.append(-1)
        stop.append(0)
        if kind == "set":
            own = sorted(draw.sample(range(size), 3))
            start[-1], stop[-1] = len(members), len(members) + 3
            members += own
            a, b = own[0], own[-1]
            cells.append(frozenset(own))
            bounds.append(own)
        elif kind == "whole":
            a, b = -np.inf, np.inf
            cells.append(frozenset(range(size)))
            bounds.append([])
        elif kind == "below":
            a = -np.inf
            cells.append(frozenset(range(b + 1)))
            bounds.append([b])
        else:
            b = a if kind == "point" else b
            cells.append(frozenset(range(a, b + 1)))
            bounds.append([a, b] if a < b else [])
        low.append(a)
        high.append(b)
    arrays = [np.array(x, dtype=float) for x in (low, high)] + [np.array(x) for x in (start, stop)]
    return _Line(*arrays, np.array(members, dtype=float)), cells, bounds


@pytest.mark.parametrize("seed", range(150))
def test_predicates_are_tried_as_by_the_definition(seed: int) -> None:
    draw = random.Random(seed)
    sizes = [draw.choice([4, 6, 12]) for _ in range(draw.choice([1, 2, 3]))]
    columns = [_random_line(draw, size) for size in sizes]
    people = [tuple(draw.randrange(size) for size in sizes) for _ in range(draw.choice([1, 10, 60]))]
    classes = [[draw.randrange(6) for _ in sizes] for _ in range(8)]
    points, weights = np.unique(np.array(people, dtype=float), axis=0, return_counts=True)
    found = singled_out([c[0] for c in columns], np.array(classes, dtype=np.int32), points, weights)
    sets = [tuple(columns[j][1][c] for j, c in enumerate(own)) for own in classes]
    told = [[columns[j][2][c] for j, c in enumerate(own)] for own in classes]
    count, hits, chance, alone = reference.tried(people, sets, told)
    assert (found.bounds, found.bounds_hit, found.tuples_hit) == (count, hits, alone)
    assert found.bounds_chance == pytest.approx(chance)
    assert found.tuples == len(classes)
