"""The partition of arrays against the slow reference, on every tiny table and on thousands of random ones."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from itertools import combinations_with_replacement, pairwise
from typing import Any

import numpy as np
import pytest
from properties.mondrian_cases import Case, Found, compare, draw, drawn_axis, drawn_places, expected, plain
from reference import mondrian as slow

from duckanon.algorithms.partition.partition import Items, Rules, partition
from duckanon.models import models

# Random tables.


def compare_many(name: str, tables: int, **how: Any) -> None:
    """Compare tables drawn from seeds that a failure shows; every kind of cut must have been seen."""
    cuts: Counter[str] = Counter()
    solved = 0
    for number in range(tables):
        seed = f"{name} {number}"
        rng = random.Random(seed)
        case = draw(rng, **how)
        try:
            solved += compare(case, rng, cuts) is not None
        except Exception as error:
            error.add_note(f"seed: {seed!r}")
            raise
    assert solved > tables // 2
    kinds = {"values", "half"} if how.get("relaxed") else {"values", "boundary", "other boundary"}
    assert kinds | (set() if how.get("lines") else {"null", "nodes"}) == set(cuts)


@pytest.mark.parametrize("block", range(5))
@pytest.mark.thinned(3)
def test_strict_cuts_are_the_references(block: int) -> None:
    compare_many(f"strict {block}", 180)


@pytest.mark.parametrize("block", range(2))
def test_relaxed_cuts_are_the_references(block: int) -> None:
    compare_many(f"relaxed {block}", 180, relaxed=True)


@pytest.mark.parametrize("choose", [None, "information_gain"])
def test_other_boundaries_are_the_references(choose: str | None) -> None:
    compare_many(f"lines {choose}", 180, lines=True, choose=choose)


@pytest.mark.parametrize("choose", slow.GAINS)
@pytest.mark.thinned(2)
def test_cuts_by_gain_are_the_references(choose: str) -> None:
    compare_many(choose, 180, choose=choose)


@pytest.mark.parametrize("relaxed", [False, True])
def test_larger_tables_are_divided_as_by_the_reference(relaxed: bool) -> None:
    for number in range(8):
        rng = random.Random(f"larger {relaxed} {number}")
        compare(draw(rng, most=1500, relaxed=relaxed), rng)


@pytest.mark.parametrize("relaxed", [False, True])
def test_tables_that_are_large_to_the_kernel(relaxed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large tables are split by several tasks."""
    monkeypatch.setattr("duckanon.algorithms.partition.partition._GRAIN", 3)
    compare_many(f"tasks {relaxed}", 120, relaxed=relaxed)


def test_more_axes_than_a_word_has_bits() -> None:
    for number in range(5):
        rng = random.Random(f"many axes {number}")
        case = draw(rng)
        case.axes = [drawn_axis(rng, 12) for _ in range(70)]
        columns = [drawn_places(rng, axis, len(case.rows)) for axis in case.axes]
        case.rows = [replace(row, places=cell) for row, cell in zip(case.rows, zip(*columns, strict=True), strict=True)]
        compare(case, rng)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_thousands_of_tables_are_divided_as_by_the_reference(block: int) -> None:
    hows = [{}, {"relaxed": True}, {"lines": True}, *({"choose": choose} for choose in slow.GAINS)]
    for how in hows:
        compare_many(f"more {block} {how}", 500, **how)


@pytest.mark.parametrize("relaxed", [False, True])
def test_regions_are_cut_by_themselves(relaxed: bool) -> None:
    for number in range(100):
        rng = random.Random(f"regions {relaxed} {number}")
        case = draw(rng, relaxed=relaxed)
        inside = rng.sample(range(1, len(case.rows)), min(rng.randint(0, 3), len(case.rows) - 1))
        case.starts = [0, *sorted(inside), len(case.rows)]
        try:
            compare(case, rng)
        except Exception as error:
            error.add_note(f"number: {number}")
            raise


def test_many_rows_give_the_same_whatever_the_threads() -> None:
    rng = np.random.default_rng(5)
    n = 140_000
    case = draw(random.Random("threads"))
    case.axes = [
        slow.Axis(300, False, tuple(range(300)), tuple(i // 7 for i in range(300)), True),
        slow.Axis(51, True, tuple(range(51)), tuple(range(51))),
        slow.Axis(8, nodes=(tuple(range(8)), (0, 0, 0, 1, 1, 1, 2, 2), (0,) * 8), leaves=((1,) * 8, (3, 3, 2), (8,))),
    ]
    rows = np.column_stack([rng.binomial(299, 0.5, n), rng.integers(0, 51, n), rng.integers(0, 8, n)]).astype(np.uint16)
    values = rng.integers(0, 6, n)
    rules = Rules(
        (models.get("k_anonymity")(5), models.get("l_diversity")(2, "s0")),
        {"s0": (np.bincount(values).astype(np.int64), (np.arange(6), np.zeros(6, dtype=np.int64)))},
    )
    found = []
    for threads in (1, 2, 3):
        items = Items(rows.copy(), values={"s0": values.copy()})
        found.append(plain(partition(case.fast_axes(), items, rules, threads=threads)))
    assert found[0] == found[1] == found[2]
    assert len(found[0]) > n / 40
    assert min(len(members) for members, _ in found[0]) >= 5
    assert all(len(set(values[members].tolist())) >= 2 for members, _ in found[0])
    assert sorted(i for members, _ in found[0] for i in members) == list(range(n))


# Every tiny table.

LINE = slow.Axis(4, False, (0, 1, 2, 3), (0, 1, 2, 3))
GRID = slow.Axis(4, False, (0, 1, 2, 3), (0, 0, 1, 1), True)
TREE = slow.Axis(4, nodes=((0, 1, 2, 3), (0, 0, 1, 1), (0,) * 4), leaves=((1,) * 4, (2, 2), (4,)))
CELLS = [(a, b) for a in range(4) for b in range(4)]
PAIRS = {"two lines": [LINE, LINE], "a line and a tree": [LINE, TREE], "a grid and a tree": [GRID, TREE]}


def compare_all(axes: list[slow.Axis], k: int, step: int) -> None:
    """Compare all tables at once, each a region of its own; of those of four rows or more every ``step``-th."""
    tables = []
    for n in range(k, 7):
        every = step if n > 3 else 1
        tables += list(combinations_with_replacement(CELLS, n))[k % every :: every]
    rows = [slow.Row(cell) for table in tables for cell in table]
    starts = [0, *np.cumsum([len(table) for table in tables]).tolist()]
    case = Case(axes, rows, [("k_anonymity", None, {"k": k})], [], starts=starts)
    found = case.fast()
    wanted = expected(case)
    assert wanted is not None
    if found != wanted:
        (first, _), (other, _) = next(pair for pair in zip(found, wanted, strict=False) if pair[0] != pair[1])
        near = [(a, b) for a, b in pairwise(starts) if a <= min(first[0], other[0]) < b]
        raise AssertionError(f"another partition of {[rows[i].places for a, b in near for i in range(a, b)]}")


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("axes", PAIRS.values(), ids=PAIRS)
@pytest.mark.thinned(2)
def test_every_tiny_table(axes: list[slow.Axis], k: int) -> None:
    compare_all(axes, k, 29)


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("axes", PAIRS.values(), ids=PAIRS)
def test_every_tiny_table_and_all_of_them(axes: list[slow.Axis], k: int) -> None:
    compare_all(axes, k, 1)


# Worked out by hand.


def both(case: Case) -> Found:
    """What the reference and the arrays agree on."""
    wanted = expected(case)
    assert case.fast() == wanted
    assert wanted is not None
    return wanted


def small(axes: list[slow.Axis], places: list[Any], k: int = 2, **more: Any) -> Case:
    rows = [slow.Row(p if isinstance(p, tuple) else (p,), tie=i) for i, p in enumerate(places)]
    return Case(axes, rows, [("k_anonymity", None, {"k": k})], [], **more)


def test_the_papers_figure() -> None:
    """Figure 3 of LeFevre et al.: sex, age 25 to 28, zip code 53710 to 53712, k = 2.

    All widths are 1, the first column wins: men and women. Four men: ages 25, 26, 27, 28 are wider (1) than the zip
    codes 53710 to 53711 (1/2), and cut in halves. Two rows cannot be cut.
    """
    sex = slow.Axis(2, nodes=((0, 1), (0, 0)), leaves=((1, 1), (2,)))
    age = slow.Axis(4, False, (25, 26, 27, 28), (0, 1, 2, 3))
    code = slow.Axis(3, False, (53710, 53711, 53712), (0, 1, 2))
    rows = [(1, 0, 1), (0, 0, 2), (1, 1, 1), (1, 2, 0), (0, 2, 2), (1, 3, 1)]
    assert both(small([sex, age, code], rows, tight=True)) == [
        ([1, 4], ((0, 0, 0), (0, 2, -1), (2, 2, -1))),
        ([0, 2], ((1, 1, 0), (0, 1, -1), (1, 1, -1))),
        ([3, 5], ((1, 1, 0), (2, 3, -1), (0, 1, -1))),
    ]


def test_a_tie_goes_to_the_smaller_left_and_the_cut_to_the_next_atom() -> None:
    """Two, one and two rows: the half is 2.5, cuts after 2 and after 3 rows are as near; 2 it is.

    Place 2 is nobody's, and belongs to the right: the cut is at the first atom after the left.
    """
    axis = slow.Axis(6, False, (0, 1, 2, 3, 4, 5), (0, 1, 2, 3, 4, 5))
    assert both(small([axis], [1, 1, 3, 4, 4])) == [([0, 1], ((0, 1, -1),)), ([2, 3, 4], ((2, 5, -1),))]


def test_relaxed_deals_the_rows_of_an_atom_to_both_sides() -> None:
    """Five rows, three to the left; the third and the fourth share atom 1 (places 1 and 2), which both regions get.

    The left has three rows, too few for two classes.
    """
    axis = slow.Axis(4, False, (0, 1, 2, 3), (0, 1, 1, 3))
    assert both(small([axis], [0, 1, 2, 2, 3], relaxed=True)) == [
        ([0, 1, 2], ((0, 2, -1),)),
        ([3, 4], ((1, 3, -1),)),
    ]


def test_null_is_set_apart_first_or_published_as_the_top() -> None:
    axis = slow.Axis(4, True, (0, 1, 2, math.nan), (0, 1, 2, 3))
    assert both(small([axis], [0, 2, 0, 2, 3, 3])) == [
        ([0, 2], ((0, 0, -1),)),
        ([1, 3], ((1, 2, -1),)),
        ([4, 5], ((3, 3, 0),)),
    ]
    tree = slow.Axis(3, True, nodes=((0, 1, 2), (0, 0, 1), (0,) * 3), leaves=((1,) * 3, (2, 1), (3,)))
    assert both(small([tree], [0, 0, 1, 1, 2])) == [([0, 1, 2, 3, 4], ((0, 2, 2),))]


def test_small_children_are_pooled_and_take_in_the_smallest() -> None:
    """Leaves with 3, 1, 2 and 3 rows, k = 3: leaves 1 and 2 have three together, enough.

    With 3, 1, 0, 4 rows leaf 1 is alone, and leaf 0, the smallest, joins it.
    """
    tree = slow.Axis(4, nodes=((0, 1, 2, 3), (0,) * 4), leaves=((1,) * 4, (4,)))
    rows = [0, 0, 0, 1, 2, 2, 3, 3, 3]
    assert both(small([tree], rows, k=3)) == [
        ([0, 1, 2], ((0, 0, 0),)),
        ([3, 4, 5], ((1, 2, 1),)),
        ([6, 7, 8], ((3, 3, 0),)),
    ]
    rows = [0, 0, 0, 1, 3, 3, 3, 3]
    assert both(small([tree], rows, k=3)) == [([0, 1, 2, 3], ((0, 1, 1),)), ([4, 5, 6, 7], ((3, 3, 0),))]


def test_values_inside_a_group_of_the_grid_are_told_apart() -> None:
    """Atoms are places 0 to 2 and 3 to 4. Inside the first, place 1 can stand alone, 0 and 2 are pooled.

    The pool lies on both sides of place 1 and keeps the whole atom; the second atom has one row of each place.
    """
    axis = slow.Axis(5, False, (0, 1, 2, 3, 4), (0, 0, 0, 1, 1), True)
    assert both(small([axis], [0, 1, 1, 2, 3, 4])) == [
        ([0, 3], ((0, 2, -1),)),
        ([1, 2], ((1, 1, 0),)),
        ([4, 5], ((3, 4, -1),)),
    ]


def test_another_boundary_is_tried_where_the_median_breaks_a_model() -> None:
    """Two different values in every class. Cut at the half, 3 and 3 rows, the left has only one.

    After 2 rows the left has one, too; after 4 rows both sides have two. Then nothing can be cut.
    """
    axis = slow.Axis(6, False, (0, 1, 2, 3, 4, 5), (0, 1, 2, 3, 4, 5))
    rows = [slow.Row((i,), values=(v,)) for i, v in enumerate([0, 0, 0, 1, 0, 1])]
    trees = [[(0, 1), (0, 0)]]
    case = Case([axis], rows, [("l_diversity", 0, {"l": 2})], trees)
    assert both(case) == [([0, 1, 2, 3], ((0, 3, -1),)), ([4, 5], ((4, 5, -1),))]


def test_persons_are_counted() -> None:
    """Six rows of three persons: the half has two persons left, but one right; the whole has to stay."""
    rows = [slow.Row((i,), person=p) for i, p in enumerate("aabccc")]
    axis = slow.Axis(6, False, (0, 1, 2, 3, 4, 5), (0, 1, 2, 3, 4, 5))
    case = Case([axis], rows, [("k_anonymity", None, {"k": 2})], [], persons=True)
    assert both(case) == [([0, 1, 2, 3, 4, 5], ((0, 5, -1),))]
    rows = [slow.Row((i,), person=p) for i, p in enumerate("aaabab")]
    case = Case([axis], rows, [("k_anonymity", None, {"k": 2})], [], persons=True)
    assert both(case) == [([0, 1, 2, 3], ((0, 3, -1),)), ([4, 5], ((4, 5, -1),))]


def test_the_order_of_the_axes() -> None:
    """Four rows in the corners of a 2 x 3 field; the second axis is as wide, and has more values in the middle."""
    two = slow.Axis(2, False, (0, 9), (0, 1))
    three = slow.Axis(3, False, (0, 1, 2), (0, 1, 2))
    rows = [(0, 0), (0, 2), (1, 1), (1, 2)]
    by_first = [([0, 1], ((0, 0, -1), (0, 2, -1))), ([2, 3], ((1, 1, -1), (0, 2, -1)))]
    by_second = [([0, 2], ((0, 1, -1), (0, 1, -1))), ([1, 3], ((0, 1, -1), (2, 2, -1)))]
    assert both(small([two, three], rows)) == by_first
    assert both(small([two, three], rows, choose="distinct")) == by_second
    assert both(small([two, three], rows, choose="round_robin")) == by_first
    heavier = slow.Axis(3, False, (0, 1, 2), (0, 1, 2), weight=1.5)
    assert both(small([two, heavier], rows)) == by_second
    case = small([two, three], rows)
    # The target says the same as the second axis.
    case.rows = [slow.Row(r.places, targets=(int(r.places[1] == 2),)) for r in case.rows]
    case.choose = "information_gain"
    assert both(case) == by_second
    case.choose = "least_squares"
    assert both(case) == by_second


def test_what_cannot_be_one_class_is_refused() -> None:
    with pytest.raises(slow.Infeasible):
        small([LINE], [0, 1], k=3).reference().classes()
