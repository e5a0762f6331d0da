"""Distances between items and the regions of classes, compared with direct formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from duckanon.algorithms.clustering.clustering import region_of
from duckanon.algorithms.clustering.spaces import MEASURES, Spaced, on_lines, spaced
from duckanon.algorithms.partition.partition import Items, PartitionAxis
from duckanon.kernels.nearest import from_middle

GRAIN = 2.0**-26
SHARES = [m for m in MEASURES if m != "standardised"]


def line(numbers: list[float], null: bool = False, weight: float = 1.0, **more: Any) -> PartitionAxis:
    """A line; NULL has the last place, and what is said of its number there is nothing."""
    own = np.array([*numbers, *([0.0] if null else [])])
    return PartitionAxis(len(own), null, own, np.arange(len(own)), weight=weight, **more)


def tree(
    *levels: list[int], leaves: list[list[int]] | None = None, null: bool = False, weight: float = 1.0
) -> PartitionAxis:
    """A tree whose levels above the places are given; a node has as many leaves as places unless they are."""
    nodes = tuple(np.array(level) for level in [list(range(len(levels[0]))), *levels])
    counted = [np.bincount(level) for level in nodes] if leaves is None else [np.ones(len(nodes[0])), *leaves]
    found = tuple(np.array(c, dtype=np.int64) for c in counted)
    return PartitionAxis(len(nodes[0]), null, np.zeros(len(nodes[0])), None, nodes=nodes, leaves=found, weight=weight)


TOWNS = tree([0, 0, 1, 1, 1, 2], [0, 0, 0, 0, 0, 1], [0] * 6)
"""Six places: two, three and one of them under a node, the first two of which are one node again."""


def every(axes: list[PartitionAxis], counts: list[int] | None = None) -> Items:
    """All combinations of places."""
    cells = np.stack(np.meshgrid(*(np.arange(a.size) for a in axes), indexing="ij"), axis=-1).reshape(-1, len(axes))
    return Items(cells, None if counts is None else np.array(counts))


def distances(space: Spaced, items: Items) -> np.ndarray:
    points = space.points(items.places)
    found = np.empty((len(points), len(points)))
    for i, row in enumerate(points):
        from_middle(space.space, points, row, found[i])
    return found


def rounded(x: float) -> float:
    return round(x / GRAIN) * GRAIN


def numbers_apart(axis: PartitionAxis, a: int, b: int, unit: float) -> float:
    """How far two places of a line are apart, where the range (or a standard deviation) is ``unit``."""
    if a == b:
        return 0.0
    known = axis.numbers[: axis.size - axis.null]
    if axis.null and axis.size - 1 in (a, b):
        spread = float(known[-1] - known[0]) if len(known) else 0.0
        return axis.weight * (spread / unit if spread and unit else 1.0)
    return axis.weight * abs(known[a] - known[b]) / unit if unit else 0.0


def categories_apart(axis: PartitionAxis, a: int, b: int, measure: str) -> float:
    """How far two places of a tree are apart, by the lowest node over both."""
    if a == b:
        return 0.0
    height = len(axis.nodes) - 1
    level = next(v for v in range(height + 1) if axis.nodes[v][a] == axis.nodes[v][b])
    leaves, total = int(axis.leaves[level][axis.nodes[level][a]]), int(axis.leaves[-1][0])
    shares = {"ncp": leaves / total, "nllm": (leaves - 1) / (total - 1), "distortion": level / height}
    return axis.weight * shares.get(measure, 1.0)


@pytest.mark.parametrize("measure", SHARES)
@pytest.mark.parametrize("weight", [1.0, 0.5, 3.0])
@pytest.mark.parametrize("null", [False, True])
def test_shares_of_the_range(measure: str, weight: float, null: bool) -> None:
    axis = line([-3.0, 0.5, 1.0, 4.0, 5.0], null, weight)
    items = every([axis])
    space = spaced([axis], items, measure)
    assert not space.space.squares
    for a, row in enumerate(distances(space, items)):
        for b, d in enumerate(row):
            assert d == pytest.approx(numbers_apart(axis, a, b, 8.0), abs=2 * GRAIN)


@pytest.mark.parametrize("weight", [1.0, 2.0])
@pytest.mark.parametrize("null", [False, True])
@pytest.mark.parametrize("counts", [None, [1, 5, 1, 3, 2]])
def test_distances_between_numbers_are_in_standard_deviations(
    weight: float, null: bool, counts: list[int] | None
) -> None:
    axis = line([-3.0, 0.5, 1.0, 4.0, 5.0], null, weight)
    items = every([axis], counts if counts is None else [*counts, *([7] if null else [])])
    known = np.repeat(axis.numbers[:5], counts or 1)
    space = spaced([axis], items, "standardised")
    assert space.space.squares
    for a, row in enumerate(distances(space, items)):
        for b, d in enumerate(row):
            assert math.sqrt(d) == pytest.approx(numbers_apart(axis, a, b, float(known.std())), abs=4 * GRAIN)
    mean = float(np.repeat(space.points(items.places)[:5, 0], counts or 1).mean())
    assert mean == pytest.approx(0.0, abs=GRAIN), "numbers are around their mean"


@pytest.mark.parametrize("measure", SHARES)
@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_categories(measure: str, weight: float) -> None:
    leaves = [[4, 3, 2], [8, 2], [10]]
    for axis in (
        tree([0, 0, 1, 1, 1, 2], [0, 0, 0, 0, 0, 1], [0] * 6, weight=weight),
        tree([0, 0, 1, 1, 1, 2], [0, 0, 0, 0, 0, 1], [0] * 6, leaves=leaves, weight=weight),
        tree([0] * 4, weight=weight),
        tree([0, 1, 1, 2], [0, 0, 0, 1], [0] * 4, null=True, weight=weight),
    ):
        items = every([axis])
        for a, row in enumerate(distances(spaced([axis], items, measure), items)):
            for b, d in enumerate(row):
                assert d == rounded(categories_apart(axis, a, b, measure))


@pytest.mark.parametrize("measure", MEASURES)
def test_columns_are_added(measure: str) -> None:
    """In whatever order they come: lines stand before trees."""
    axes = [TOWNS, line([1.0, 2.0, 5.0], null=True), tree([0, 0, 0], weight=2.0), line([0.0, 1.0])]
    items = every(axes)
    space = spaced(axes, items, measure)
    assert space.columns == (1, 3, 0, 2)
    assert space.space.lines == 2
    alone = [
        distances(spaced([a], Items(items.places[:, [j]]), measure), Items(items.places[:, [j]]))
        for j, a in enumerate(axes)
    ]
    assert np.abs(distances(space, items) - sum(alone)).max() < 1e-12


@pytest.mark.parametrize("measure", MEASURES)
def test_coordinates_and_widths_have_few_digits(measure: str) -> None:
    axes = [line([0.0, 1 / 3, 0.7, 1.1], null=True, weight=0.7), TOWNS, tree([0, 0, 0], weight=1 / 3)]
    items = every(axes)
    space = spaced(axes, items, measure)
    for numbers in (space.points(items.places), space.space.widths, space.space.pairs, space.space.caps):
        assert ((numbers / GRAIN) % 1 == 0).all()


@pytest.mark.parametrize("measure", MEASURES)
def test_a_single_value(measure: str) -> None:
    axis = line([4.0], weight=2.0)
    assert distances(spaced([axis], every([axis]), measure), every([axis])).tolist() == [[0.0]]
    axis = line([4.0], null=True, weight=2.0)
    apart = 4.0 if measure == "standardised" else 2.0
    assert distances(spaced([axis], every([axis]), measure), every([axis])).tolist() == [[0.0, apart], [apart, 0.0]]
    axis = line([], null=True)
    assert distances(spaced([axis], every([axis]), measure), every([axis])).tolist() == [[0.0]]
    axis = tree([0])
    assert distances(spaced([axis], every([axis]), measure), every([axis])).tolist() == [[0.0]]


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("null", [False, True])
def test_a_range_that_is_no_number(measure: str, null: bool) -> None:
    """Values stand for their order then."""
    huge, plain = (line(n, null) for n in ([-1.7e308, 0.0, 1.0, 1.7e308], [0.0, 1.0, 2.0, 3.0]))
    items = every([huge])
    assert np.array_equal(
        distances(spaced([huge], items, measure), items), distances(spaced([plain], items, measure), items)
    )


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("unit", [1e-320, 1e-200, 1e-9, 1e9, 1e200, 1e307])
def test_units_do_not_matter(measure: str, unit: float) -> None:
    axis, plain = line([0.0, unit, 3 * unit, 8 * unit]), line([0.0, 1.0, 3.0, 8.0])
    items = every([axis])
    found = distances(spaced([axis], items, measure), items)
    assert found == pytest.approx(
        distances(spaced([plain], items, measure), items), abs=1e-3 if unit < 1e-300 else 1e-6
    )


@pytest.mark.parametrize("measure", MEASURES)
def test_pairs_that_are_too_many_are_not_written_down(measure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    axes = [TOWNS, line([0.0, 3.0]), tree([0, 0, 1], [0] * 3), tree([0])]
    items = every(axes)
    written = spaced(axes, items, measure)
    monkeypatch.setattr("duckanon.algorithms.clustering.spaces._MOST_PAIRS", 8)
    looked_up = spaced(axes, items, measure)
    assert looked_up.space.table[3].tolist() == [0, -1, -1, 0]
    assert np.array_equal(distances(written, items), distances(looked_up, items))


@pytest.mark.parametrize("standardised", [False, True])
def test_numbers_without_axes(standardised: bool) -> None:
    rng = np.random.default_rng(1)
    numbers, missing = rng.random((30, 3)), rng.random((30, 3)) < 0.2
    numbers[:, 2], missing[:, 1] = 0.5, False
    space, points = on_lines(numbers, missing, standardised)
    found = np.empty(30)
    for i in range(30):
        from_middle(space, points, points[i], found)
        for other in range(30):
            total = 0.0
            for j in range(3):
                known = numbers[~missing[:, j], j]
                unit = (known.std() if standardised else 1.0) or 1.0
                gap = np.ptp(known) / unit if np.ptp(known) > 0 else 1.0
                if missing[i, j] == missing[other, j]:
                    gap = 0.0 if missing[i, j] else abs(numbers[i, j] - numbers[other, j]) / unit
                total += gap**2 if standardised else gap
            assert found[other] == pytest.approx(total, abs=1e-6)


# Regions of classes.


def region(axis: PartitionAxis, members: list[int], tight: bool) -> tuple[int, int, int]:
    """The first and last place, and the level or -1 for a run, of some places: member by member."""
    low, high = min(members), max(members)
    null = axis.size - 1 if axis.null else -1
    if members == [null]:
        return low, high, 0
    if null in members:
        return low, high, axis.top if axis.atoms is not None else len(axis.nodes) - 1
    if axis.atoms is None:
        return low, high, next(v for v, n in enumerate(axis.nodes) if len({int(n[m]) for m in members}) == 1)
    if low == high and axis.inner:
        return low, high, 0
    if tight:
        return low, high, -1
    atoms = {int(axis.atoms[m]) for m in members}
    touched = [p for p in range(axis.size - axis.null) if int(axis.atoms[p]) in atoms]
    return min(touched), max(touched), -1


def subsets(size: int) -> list[list[int]]:
    return [[p for p in range(size) if number >> p & 1] for number in range(1, 2**size)]


def compare_regions(axis: PartitionAxis, tight: bool) -> None:
    sets = subsets(axis.size)
    low, high = np.array([min(s) for s in sets]), np.array([max(s) for s in sets])
    asked = low.copy(), high.copy()
    found = region_of(axis, low, high, tight)
    assert list(zip(*(f.tolist() for f in found), strict=True)) == [region(axis, s, tight) for s in sets]
    assert np.array_equal(low, asked[0])
    assert np.array_equal(high, asked[1])


@pytest.mark.parametrize("tight", [False, True])
@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("null", [False, True])
@pytest.mark.parametrize("atoms", [[0, 1, 2, 3, 4, 5], [0, 0, 0, 2, 2, 7], [3, 3, 3, 3, 3, 3], [0, 4, 4, 4, 5, 9]])
def test_regions_on_a_line(atoms: list[int], null: bool, inner: bool, tight: bool) -> None:
    own = np.array([*atoms, *([0] if null else [])])
    compare_regions(PartitionAxis(len(own), null, own.astype(float), own, inner=inner, top=3), tight)


@pytest.mark.parametrize("tight", [False, True])
def test_regions_in_a_tree(tight: bool) -> None:
    compare_regions(TOWNS, tight)
    compare_regions(tree([0] * 4), tight)
    compare_regions(tree([0]), tight)
    compare_regions(tree([0, 0, 1, 2], [0, 0, 1, 2], [0] * 4, null=True), tight)


@pytest.mark.parametrize("tight", [False, True])
def test_the_region_of_null_alone(tight: bool) -> None:
    compare_regions(PartitionAxis(1, True, np.zeros(1), np.zeros(1, dtype=np.int64), top=2), tight)
    compare_regions(tree([0], [0], null=True), tight)
