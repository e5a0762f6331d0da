"""The minimality attack agrees with counting all possible tables, and succeeds on known examples."""

from __future__ import annotations

import random

import numpy as np
import pytest

from duckanon.assess.attacks.minimality import Believed, Members, best_guess, by_cuts, by_levels, judge, worlds
from duckanon.models import AlphaKAnonymity, LDiversity
from tests.reference import minimality as reference

TOTALS = np.array([5, 5, 5])


def _diverse(values: list[int]) -> bool:
    return len(set(values)) >= 2


def _rare(values: list[int]) -> bool:
    """No value has more than half."""
    return len(values) >= 1 and all(2 * values.count(v) <= len(values) for v in set(values))


PROMISES = {"l": ([LDiversity(2)], _diverse), "alpha": ([AlphaKAnonymity(0.5, 1)], _rare)}


def _random_class(draw: random.Random, divisions: int) -> Members:
    n = draw.choice([2, 3, 4])
    values = np.array([draw.randrange(3) for _ in range(n)])
    return Members(values, np.array([[draw.randrange(2) for _ in range(divisions)] for _ in range(n)]))


def _prior(values: np.ndarray) -> np.ndarray:
    _, counts = np.unique(values, return_counts=True)
    return np.tile(counts / len(values), (len(values), 1))


def _plain(members: Members) -> reference.Class:
    return members.values.tolist(), members.parts.tolist()


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("seed", range(60))
def test_cuts_as_by_counting_every_world(seed: int, promise: str) -> None:
    draw = random.Random(seed)
    models, holds = PROMISES[promise]
    members = _random_class(draw, draw.choice([1, 2]))
    found = by_cuts(members, judge(models, TOTALS))
    (expected,) = reference.chances([_plain(members)], holds, everywhere=True)
    assert found.exact
    for i, person in enumerate(expected):
        for value, chance in person.items():
            assert found.chances[i, found.values.tolist().index(value)] == pytest.approx(float(chance))


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("seed", range(60))
def test_levels_as_by_counting_every_world(seed: int, promise: str) -> None:
    draw = random.Random(seed)
    models, holds = PROMISES[promise]
    divisions = draw.choice([1, 2])
    classes = [_random_class(draw, divisions) for _ in range(draw.choice([1, 2, 3]))]
    found = by_levels(classes, judge(models, TOTALS))
    if found is None:
        found = [Believed(np.unique(c.values), _prior(c.values), True) for c in classes]
    expected = reference.chances([_plain(c) for c in classes], holds, everywhere=False)
    for own, people in zip(found, expected, strict=True):
        for i, person in enumerate(people):
            for value, chance in person.items():
                assert own.chances[i, own.values.tolist().index(value)] == pytest.approx(float(chance))


def test_the_value_of_a_small_part_is_known_for_sure() -> None:
    # Two people of one finer group, three of another, and only one value occurs twice: if the finer groups were not
    # diverse, the two have that value, since three people cannot all have one.
    members = Members(np.array([0, 0, 1, 2, 3]), np.array([[0], [1], [0], [1], [1]]))
    found = by_cuts(members, judge([LDiversity(2)], np.array([5, 5, 5, 5])))
    assert found.exact
    assert found.chances[[0, 2], 0].tolist() == pytest.approx([1.0, 1.0])
    assert best_guess(found.chances, found.values, np.array([0, 1, 0, 2, 3])) == pytest.approx(2 + 3 / 3)


def test_what_many_classes_explain_tells_nothing_of_one() -> None:
    members = [Members(np.array([0, 0, 1, 1]), np.array([[0], [0], [1], [1]])) for _ in range(300)]
    assert by_levels(members, judge([LDiversity(2)], TOTALS)) is None


def test_large_classes_are_drawn() -> None:
    values = np.arange(30) % 3
    tried, exact = worlds(values)
    assert not exact
    assert (np.sort(tried, axis=1) == np.sort(values)).all()
    assert abs((tried[:, 0] == 0).mean() - 1 / 3) < 0.05


def test_guesses_among_equals_count_in_part() -> None:
    chances = np.array([[0.5, 0.5], [0.2, 0.8]])
    assert best_guess(chances, np.array([3, 4]), np.array([3, 4])) == pytest.approx(1.5)
