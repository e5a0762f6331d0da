"""Minimality: what is learned from the fact that an algorithm did not publish more detail (Wong et al. 2007).

Who knows that the algorithm publishes as much detail as the promise allows, and knows everybody's quasi-identifiers,
knows which finer classes were *not* published. Where those are large enough, they must have broken the promise about
the sensitive column. A world is one way to give the sensitive values of a class, which are published, to its members;
only those worlds are left in which every finer division that was refused had to be refused. How often a member has a
value among them is what the attacker believes.

- Classes that were divided by cuts: every cut through a class was refused, each class by itself.
- Full-domain levels: every node one step below was refused, because of *some* class. The classes are independent
  otherwise, so that the worlds of all of them are counted by inclusion and exclusion over the refused nodes.

All worlds of a class are counted where there are no more than ``WORLDS``; else so many are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from math import factorial, prod
from typing import TYPE_CHECKING

import numpy as np

from duckanon.models.base import Groups, Histograms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from duckanon.models.base import Model

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Booleans = NDArray[np.bool_]
    Judge = Callable[[Ints, Ints, int], Booleans]

WORLDS = 5000
"""The most worlds of a class that are counted one by one."""
_SURE = 1e-12
_NODES = 6
_PEOPLE = 500
_CELLS = 2_000_000


@dataclass(frozen=True)
class Members:
    """The people of one published class.

    ``values`` are codes of the sensitive column. ``parts[i, c]`` is the part in which person i would lie if division c
    had been made; part numbers begin at 0.
    """

    values: Ints
    parts: NDArray[np.int64]


@dataclass(frozen=True)
class Believed:
    """What an attacker believes of the people of a class.

    ``chances[i, v]`` is the probability that person i has ``values[v]``; ``exact`` says that all worlds were counted.
    """

    values: Ints
    chances: Floats
    exact: bool


def judge(models: Sequence[Model], totals: Ints) -> Judge:
    """Return what says of each group whether the models about one sensitive column allow it.

    The function gets the group and the value of every member, and the number of groups; empty groups are allowed.
    """

    def allowed(group: Ints, values: Ints, groups: int) -> Booleans:
        key, counts = np.unique(group * len(totals) + values, return_counts=True)
        starts = np.searchsorted(key, np.arange(groups + 1) * len(totals))
        sizes = np.bincount(group, minlength=groups)
        found = Groups(sizes, sizes, Histograms(starts, key % len(totals), counts, totals))
        fine = np.ones(groups, dtype=np.bool_)
        for model in models:
            fine &= model.satisfied(found)
        return np.asarray(fine | (sizes == 0), dtype=np.bool_)

    return allowed


def worlds(values: Ints, seed: int = 0) -> tuple[NDArray[np.int64], bool]:
    """Return the ways to give the values of a class to its members, and whether these are all.

    Examples
    --------
    >>> import numpy as np
    >>> worlds(np.array([7, 7, 9]))
    (array([[7, 7, 9],
           [7, 9, 7],
           [9, 7, 7]]), True)
    """
    known, counts = np.unique(values, return_counts=True)
    several = len(values) > _PEOPLE or factorial(len(values)) // prod(factorial(int(c)) for c in counts) > WORLDS
    if not several:
        return known[_arrangements(tuple(int(c) for c in counts))], True
    draw = np.random.default_rng(seed)
    # Of a class with many people fewer worlds fit into memory.
    count = max(100, min(WORLDS, _CELLS // len(values)))
    return draw.permuted(np.tile(values, (count, 1)), axis=1), False


@lru_cache(maxsize=256)
def _arrangements(counts: tuple[int, ...]) -> NDArray[np.int64]:
    """Return all different orders of ``counts[0]`` zeros, ``counts[1]`` ones and so on."""
    left, row = list(counts), list[int]()
    found: list[tuple[int, ...]] = []

    def step() -> None:
        if len(row) == sum(counts):
            found.append(tuple(row))
            return
        for value, more in enumerate(left):
            if more:
                left[value] -= 1
                row.append(value)
                step()
                row.pop()
                left[value] += 1

    step()
    return np.array(found, dtype=np.int64).reshape(-1, sum(counts))


def refused(members: Members, tried: NDArray[np.int64], allowed: Judge) -> Booleans:
    """Return for each world and each division whether the division breaks the promise there."""
    count = len(tried)
    found = np.zeros((count, members.parts.shape[1]), dtype=np.bool_)
    for c in range(members.parts.shape[1]):
        own = members.parts[:, c]
        width = int(own.max()) + 1
        group = (np.arange(count)[:, None] * width + own[None, :]).ravel()
        fine = allowed(group, tried.ravel(), count * width)
        found[:, c] = ~fine.reshape(count, width).all(axis=1)
    return found


def by_cuts(members: Members, allowed: Judge, seed: int = 0) -> Believed:
    """Return what is believed of a class that was divided no further: every division listed was refused."""
    tried, exact = worlds(members.values, seed)
    known = np.unique(members.values)
    left = tried[refused(members, tried, allowed).all(axis=1)] if members.parts.shape[1] else tried
    # Of drawn worlds none may be left: then nothing is learned from them.
    return Believed(known, _shares(left if len(left) else tried, known), exact)


def by_levels(classes: Sequence[Members], allowed: Judge, seed: int = 0) -> list[Believed] | None:
    """Return what is believed of all classes of a node: each node below it was refused because of some class.

    Every class has the same divisions: one for each node below, of which the first six are looked at. None where it is
    sure enough (1 - 1e-12) that some class would have refused each of them anyway: nothing is learned of anybody.
    """
    nodes = min(classes[0].parts.shape[1], _NODES) if classes else 0
    if not nodes:
        return None
    chosen = [t for size in range(1, nodes + 1) for t in combinations(range(nodes), size)]
    passing = np.zeros((len(classes), len(chosen)))
    seen = []
    log = np.zeros(nodes)
    for i, members in enumerate(classes):
        tried, exact = worlds(members.values, seed + i)
        broken = refused(replace(members, parts=members.parts[:, :nodes]), tried, allowed)
        fine = np.stack([~broken[:, list(t)].any(axis=1) for t in chosen], axis=1)
        passing[i] = fine.mean(axis=0)
        seen.append((tried, fine, exact))
        with np.errstate(divide="ignore"):
            log += np.log((~broken).mean(axis=0))
        if (log < np.log(_SURE)).all() and i + 1 < len(classes):
            return None
    signs = np.array([(-1.0) ** len(t) for t in chosen])
    whole = 1 + float(signs @ passing.prod(axis=0))
    found = []
    for i, (members, (tried, fine, exact)) in enumerate(zip(classes, seen, strict=True)):
        known = np.unique(members.values)
        others = np.delete(passing, i, axis=0).prod(axis=0)
        # Each world of this class, weighted by how likely the other classes explain what it does not.
        weight = 1 + fine @ (signs * others)
        chances = _shares(tried, known, np.maximum(weight, 0.0)) if whole > _SURE else _shares(tried, known)
        found.append(Believed(known, chances, exact))
    return found


def _shares(tried: NDArray[np.int64], known: Ints, weight: Floats | None = None) -> Floats:
    own = np.ones(len(tried)) if weight is None or not weight.any() else weight
    shares: Floats = np.stack([(own[:, None] * (tried == value)).sum(axis=0) for value in known], axis=1)
    return np.asarray(shares / own.sum(), dtype=np.float64)


def best_guess(chances: Floats, known: Ints, truth: Ints) -> float:
    """Return how many people's values are guessed rightly by the likeliest one; among equals one is drawn."""
    best = chances >= chances.max(axis=1, keepdims=True) - 1e-9
    right = best & (known[None, :] == truth[:, None])
    return float((right.sum(axis=1) / best.sum(axis=1)).sum())


__all__ = ["WORLDS", "Believed", "Members", "best_guess", "by_cuts", "by_levels", "judge", "refused", "worlds"]
