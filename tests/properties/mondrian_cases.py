"""Random tables for Mondrian, as the reference and as the package see them, and what must hold of their classes."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from reference import mondrian as slow

from duckanon.algorithms.partition.partition import Items, PartitionAxis, Parts, Rules, partition
from duckanon.models import models

Found = list[tuple[list[int], tuple[slow.Region, ...]]]
COLUMNS = ("s0", "s1")
ORDERS = ("range", "distinct", "round_robin")


# Drawing a table.


def numbers(rng: random.Random, count: int) -> list[float]:
    """Ascending numbers: ranks, so that axes are equally wide, or far apart, or all the same."""
    if rng.random() < 0.5:
        return [float(i) for i in range(count)]
    steps = [rng.choice([0.0, 1.0, 1.0, 2.5, 40.0, rng.random()]) for _ in range(count)]
    found = [sum(steps[: i + 1]) for i in range(count)]
    # NaN comes after all numbers.
    ends = rng.choice([[], [], [], [math.inf], [math.nan], [math.inf, math.nan]])
    return [*found, *ends][len(ends) :] if count > len(ends) else found


def line(rng: random.Random, size: int, null: bool, weight: float) -> slow.Axis:
    values = size - null
    joined = rng.random() < 0.6
    atoms, atom = [], rng.randint(0, 3)
    for _ in range(values):
        atoms.append(atom)
        atom += rng.choice([0, 0, 1, 2]) if joined else 1
    atoms += [atoms[-1] + 1 if atoms else 0] * null
    inner = joined and rng.random() < 0.7
    found = [*numbers(rng, values), *[math.nan] * null]
    return slow.Axis(size, null, tuple(found), tuple(atoms), inner, weight=weight, top=rng.randint(1, 4))


def tree(rng: random.Random, size: int, null: bool, weight: float) -> slow.Axis:
    """Nested runs of places; a node may have leaves that no row has, and at times NULL is one that nobody counted."""
    nodes, leaves = [list(range(size))], [[1] * size]
    for _ in range(rng.randint(0, 3)):
        below, under = nodes[-1], leaves[-1]
        last = below[-1] if null else None
        parent, level, counts = {}, -1, []
        for node in range(below[-1] + 1):
            if level < 0 or node == last or rng.random() < 0.4:
                level += 1
                counts.append(rng.choice([0, 0, 1, 3]) if node != last else 0)
            parent[node] = level
            counts[level] += under[node]
        nodes.append([parent[n] for n in below])
        leaves.append(counts)
    top = sum(leaves[-1]) - (1 if null and size > 2 and rng.random() < 0.5 else 0)
    nodes.append([0] * size)
    leaves.append([top])
    return slow.Axis(size, null, nodes=tuple(map(tuple, nodes)), leaves=tuple(map(tuple, leaves)), weight=weight)


def drawn_axis(rng: random.Random, most: int) -> slow.Axis:
    null = rng.random() < 0.3
    size = rng.choice([1, 2, 3, 4, 6, 9, 15, most // 3]) + null
    return rng.choice([line, line, tree])(rng, size, null, rng.choice([1.0, 1.0, 1.0, 0.5, 2.0, 0.0]))


def drawn_places(rng: random.Random, axis: slow.Axis, count: int) -> list[int]:
    """Few of the places, some of them much more often than others."""
    used = rng.sample(range(axis.size), rng.randint((axis.size + 1) // 2, axis.size))
    often = [rng.choice([1, 1, 1, 2, 9]) for _ in used]
    return rng.choices(used, often, k=count)


def parameters(rng: random.Random, name: str) -> dict[str, Any]:
    """Exact parameters of a model that small tables often satisfy."""
    share = Fraction(rng.randint(3, 12), 12)
    small = rng.choice([1, 2, 2, 3])
    given = {
        "k_anonymity": {"k": rng.choice([1, 2, 2, 3, 4, 5])},
        "maximum_reidentification_risk": {"threshold": Fraction(1, rng.choice([1, 2, 3, 5]))},
        "alpha_k_anonymity": {"alpha": Fraction(rng.randint(4, 8), 8), "k": small},
        "l_diversity": {"l": small},
        "p_sensitive_k_anonymity": {"p": small, "k": rng.randint(1, 4)},
        "entropy_l_diversity": {"l": rng.choice([Fraction(1), Fraction(3, 2), Fraction(2), Fraction(5, 2)])},
        "recursive_c_l_diversity": {"c": Fraction(rng.randint(2, 12), 4), "l": small},
        "basic_beta_likeness": {"beta": 4 * share},
        "enhanced_beta_likeness": {"beta": 4 * share},
        "delta_disclosure": {"delta": Fraction(rng.randint(2, 8), 2), "base": Fraction(rng.choice([2, 3]))},
    }
    return given.get(name, {"t": share * Fraction(3, 4)})


SIZES = ("k_anonymity", "maximum_reidentification_risk")
SENSITIVE = ("alpha_k_anonymity", "l_diversity", "p_sensitive_k_anonymity", "entropy_l_diversity", "t_closeness")
SENSITIVE += ("recursive_c_l_diversity", "ordered_t_closeness", "hierarchical_t_closeness", "delta_disclosure")
SENSITIVE += ("basic_beta_likeness", "enhanced_beta_likeness")


@dataclass
class Case:
    """A table with the models as the reference knows them (promises) and as the package does (rules)."""

    axes: list[slow.Axis]
    rows: list[slow.Row]
    wanted: list[tuple[str, int | None, dict[str, Any]]]
    trees: list[list[tuple[int, ...]]]
    persons: bool = False
    relaxed: bool = False
    choose: str = "range"
    tight: bool = False
    starts: list[int] | None = None

    def table(self, column: int) -> list[int]:
        return [row.values[column] for row in self.rows for _ in range(row.count)]

    def reference(self) -> slow.Mondrian:
        promises = []
        for name, column, given in self.wanted:
            of = {} if column is None else {"column": column, "table": self.table(column)}
            if name == "hierarchical_t_closeness":
                assert column is not None
                levels = self.trees[column]
                of["tree"] = {v: [level[v] for level in levels] for v in range(len(levels[0]))}
            promises.append(slow.promise(name, **of, **given))
        return slow.Mondrian(
            self.axes, self.rows, promises, self.relaxed, self.choose, self.tight, persons=self.persons
        )

    def fast_axes(self) -> list[PartitionAxis]:
        def whole(values: Any) -> Any:
            return np.array(values, dtype=np.int64)

        return [
            PartitionAxis(
                axis.size,
                axis.null,
                np.array(axis.numbers or [0.0] * axis.size),
                None if axis.atoms is None else whole(axis.atoms),
                axis.inner,
                tuple(map(whole, axis.nodes)),
                tuple(map(whole, axis.leaves)),
                axis.weight,
                axis.top,
            )
            for axis in self.axes
        ]

    def fast_rules(self) -> Rules:
        made = []
        for name, column, given in self.wanted:
            numbers_ = {p: int(v) if v == int(v) else float(v) for p, v in given.items()}
            named = {} if column is None else {"sensitive": COLUMNS[column]}
            made.append(models.get(name)(**numbers_, **named))
        totals = {}
        for column, levels in enumerate(self.trees):
            counts = np.bincount(self.table(column), minlength=len(levels[0])).astype(np.int64)
            totals[COLUMNS[column]] = (counts, tuple(np.array(level, dtype=np.int64) for level in levels))
        return Rules(tuple(made), totals, relaxed=self.relaxed, choose=self.choose, tight=self.tight)

    def fast_items(self, order: list[int] | None = None) -> Items:
        rows = self.rows if order is None else [self.rows[i] for i in order]
        people = {p: i for i, p in enumerate(dict.fromkeys(row.person for row in rows))}
        counted = any(row.count > 1 for row in rows)
        kind = np.int64 if self.choose == "information_gain" else np.float64
        return Items(
            np.array([row.places for row in rows], dtype=np.uint16).reshape(len(rows), len(self.axes)),
            counts=np.array([row.count for row in rows], dtype=np.int64) if counted else None,
            entity=np.array([people[row.person] for row in rows], dtype=np.int64) if self.persons else None,
            values={
                COLUMNS[c]: np.array([row.values[c] for row in rows], dtype=np.int64) for c in range(len(self.trees))
            },
            ties=np.array([row.tie for row in rows], dtype=np.uint64) if self.relaxed else None,
            targets=tuple(np.array([row.targets[t] for row in rows], kind) for t in range(len(self.rows[0].targets))),
        )

    def fast(self, order: list[int] | None = None, threads: int = 1) -> Found:
        starts = None if self.starts is None else np.array(self.starts, dtype=np.int64)
        parts = partition(self.fast_axes(), self.fast_items(order), self.fast_rules(), starts, threads=threads)
        return plain(parts, order)

    def written_out(self) -> tuple[Case, list[int]]:
        """The same rows one by one, and the item of each."""
        single = [slow.Row(r.places, 1, r.person, r.values, r.tie, r.targets) for r in self.rows]
        of = [i for i, row in enumerate(self.rows) for _ in range(row.count)]
        starts = None if self.starts is None else [of.index(s) if s < len(self.rows) else len(of) for s in self.starts]
        other = Case(**{**vars(self), "rows": [single[i] for i in of], "starts": starts})
        return other, of


def plain(parts: Parts, order: list[int] | None = None) -> Found:
    found = []
    for i, (first, after) in enumerate(pairwise(parts.starts.tolist())):
        rows = parts.order[first:after].tolist()
        sides = zip(parts.regions[i].tolist(), parts.levels[i].tolist(), strict=True)
        regions = tuple((a, b, level) for (a, b), level in sides)
        found.append((sorted(rows if order is None else [order[r] for r in rows]), regions))
    return found


def expected(case: Case, cuts: Counter[str] | None = None) -> Found | None:
    """What the reference says; ``cuts`` counts how it got there."""
    judge = case.reference()
    try:
        found = judge.classes(case.starts)
    except slow.Infeasible:
        return None
    if cuts is not None:
        cuts.update(judge.cuts)
    return [(sorted(c.rows), c.regions) for c in found]


def by_places(rng: random.Random, cells: list[tuple[int, ...]], column: list[int], kinds: int) -> list[int]:
    """Values that go with places: the median often breaks a model then, and another boundary does not."""
    j, group, often = rng.randrange(len(cells[0])), rng.randint(1, 4), rng.choice([0.7, 0.9])
    return [cell[j] // group % kinds if rng.random() < often else v for cell, v in zip(cells, column, strict=True)]


def draw(
    rng: random.Random, most: int = 40, relaxed: bool = False, choose: str | None = None, lines: bool = False
) -> Case:
    """Draw a table of up to so many rows; with ``lines`` one of which the second round has more to do."""
    if lines:
        axes = [line(rng, rng.randint(4, 16), False, 1.0) for _ in range(rng.randint(2, 3))]
    else:
        axes = [drawn_axis(rng, most) for _ in range(rng.randint(1, 4))]
    count = rng.randint(rng.choice([1, most // 2]), most)
    cells = list(zip(*(drawn_places(rng, axis, count) for axis in axes), strict=True))
    if rng.random() < 0.3:
        cells = rng.choices(cells, k=count)
    columns = 1 if lines else rng.choice([0, 0, 1, 1, 2])
    trees: list[list[tuple[int, ...]]] = []
    values: list[list[int]] = []
    for _ in range(columns):
        column = rng.choices(range(5), [rng.choice([1, 4]) for _ in range(5)], k=count)
        if lines or rng.random() < 0.4:
            column = by_places(rng, cells, column, rng.choice([2, 5]))
        codes = {v: i for i, v in enumerate(sorted(set(column)))}
        values.append([codes[v] for v in column])
        middle = tuple(i // 2 for i in range(len(codes)))
        trees.append([tuple(range(len(codes))), middle, (0,) * len(codes)])
    persons = rng.random() < 0.25
    people = [rng.randrange(count) for _ in range(count)]
    if lines:
        people = by_places(rng, cells, people, count)
    counted = not relaxed and rng.random() < 0.4
    kinds = [(rng.choice(SIZES), None)] if not columns or rng.random() < 0.8 else []
    kinds += [(rng.choice(SENSITIVE), rng.randrange(columns)) for _ in range(rng.choice([1, 1, 1, 2])) if columns]
    targets = rng.randint(1, 2) if choose in slow.GAINS else 0
    far = rng.choice([0, 0, 10**8]) if choose == "least_squares" else 0
    ties = [rng.getrandbits(64) for _ in range(count)]
    rows = [
        slow.Row(
            cells[i],
            rng.choice([1, 1, 2, 5]) if counted else 1,
            people[i] if persons else None,
            tuple(column[i] for column in values),
            ties[i],
            tuple(far + rng.choice([0, 0, 1, 2, 7]) for _ in range(targets)),
        )
        for i in range(count)
    ]
    wanted = [(name, column, parameters(rng, name)) for name, column in kinds]
    return Case(axes, rows, wanted, trees, persons, relaxed, choose or rng.choice(ORDERS), rng.random() < 0.2)


# Comparing.


def compare(case: Case, rng: random.Random, cuts: Counter[str] | None = None) -> Found | None:
    """Compare every way to ask with the reference; None where the whole breaks a model, which nobody may ask."""
    wanted = expected(case, cuts)
    if wanted is None:
        return None
    assert case.fast() == wanted
    assert case.fast(threads=2) == wanted
    if case.starts is None:
        order = rng.sample(range(len(case.rows)), len(case.rows))
        assert case.fast(order) == wanted
    if any(row.count > 1 for row in case.rows):
        other, of = case.written_out()
        back = [(sorted({of[i] for i in rows}), regions) for rows, regions in other.fast()]
        assert back == wanted
    check(case, wanted)
    return wanted


def check(case: Case, found: Found) -> None:
    """What must hold of any answer, without the reference's own walk."""
    judge = case.reference()
    assert sorted(i for rows, _ in found for i in rows) == list(range(len(case.rows))), "not a partition"
    for rows, regions in found:
        assert judge.good(rows), "a class breaks a model"
        for j, (axis, (a, b, level)) in enumerate(zip(case.axes, regions, strict=True)):
            here = [case.rows[i].places[j] for i in rows]
            if axis.mixed(min(here), max(here)):
                assert level == axis.height
            elif level < 0:
                assert a <= min(here) <= max(here) <= b <= axis.last, "a region does not cover its class"
                assert not case.tight or (a, b) == (min(here), max(here))
            elif axis.atoms is None:
                assert len({axis.nodes[level][p] for p in here}) == 1
                assert level == 0 or len({axis.nodes[level - 1][p] for p in here}) > 1
            else:
                assert set(here) == {a} == {b}
                assert level == 0
        for j in range(len(case.axes)):
            assert not can_be_cut(case, judge, rows, j), f"a cut of axis {j} is left"


def can_be_cut(case: Case, judge: slow.Mondrian, rows: list[int], j: int) -> bool:
    """Try every cut that is allowed to be made, whatever its order."""
    axis = case.axes[j]
    here = {i: case.rows[i].places[j] for i in rows}
    lo, hi = min(here.values()), max(here.values())
    if lo == hi:
        return False
    if axis.mixed(lo, hi):
        return all(judge.good([i for i in rows if (here[i] == hi) == null]) for null in (True, False))
    if axis.atoms is not None and axis.atoms[lo] != axis.atoms[hi]:
        if case.relaxed:
            half = len(rows) // 2
            return half >= judge.least and only_size(case)
        return any(
            judge.good([i for i in rows if axis.atoms[here[i]] < atom])
            and judge.good([i for i in rows if axis.atoms[here[i]] >= atom])
            for atom in axis.atoms
        )
    if axis.atoms is not None and not axis.inner:
        return False
    level = 0 if axis.atoms is not None else axis.common(lo, hi) - 1
    nodes = range(axis.size) if axis.atoms is not None else axis.nodes[level]
    groups = [[i for i in rows if nodes[here[i]] == node] for node in sorted({nodes[p] for p in here.values()})]
    fine = sorted((g for g in groups if judge.good(g)), key=judge.size)
    pool = [i for g in groups if g not in fine for i in g]
    if not pool:
        return len(fine) > 1
    # Some of the smallest that can stand alone, and at least one stays out.
    return any(judge.good(sum(fine[:taken], pool)) for taken in range(len(fine)))


def only_size(case: Case) -> bool:
    return not case.persons and all(column is None for _, column, _ in case.wanted)
