"""Quality indices against the numbers of Dewri et al. 2009, and releases side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import duckanon
from duckanon import comparison
from duckanon.errors import ParameterError

# Tables 2 and 3 of the paper: sizes of the rows' classes, and utility by Iyengar's metric.
T3A = [3, 3, 3, 3, 4, 4, 4, 3, 3, 4]
T3B = [3, 7, 7, 3, 7, 7, 7, 3, 7, 7]
T4 = [4, 6, 4, 4, 6, 6, 6, 4, 6, 6]
U3A = [2.03, 1.7, 1.7, 2.03, 1.6, 1.6, 1.6, 2.03, 1.7, 1.6]
U3B = [2.03, 0.97, 0.97, 2.03, 0.97, 0.97, 0.97, 2.03, 0.97, 0.97]

vectors = st.integers(1, 8).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(1, 9), min_size=n, max_size=n) for _ in range(2)))
)


def test_unary_indices_of_section_3() -> None:
    assert comparison.minimum(T3A) == 3
    assert comparison.average(T3A) == 3.4
    assert comparison.minimum([2, 2, 1, 2, 2, 1, 2, 1, 2, 1]) == 1


def test_binary_count_of_section_3() -> None:
    assert comparison.count_better(T3A, T3B) == 0
    assert comparison.count_better(T3B, T3A) == 7


def test_coverage_of_section_5() -> None:
    assert (comparison.coverage(T3A, T3B), comparison.coverage(T3B, T3A)) == (0.3, 1)
    assert (comparison.coverage(U3A, U3B), comparison.coverage(U3B, U3A)) == (1, 0.3)
    assert comparison.coverage(T4, T3A) > comparison.coverage(T3A, T4)
    assert comparison.coverage(T3B, T4) > comparison.coverage(T4, T3B)
    assert comparison.coverage([2, 2, 3, 4, 5], [3, 2, 4, 2, 3]) == comparison.coverage(
        [3, 2, 4, 2, 3], [2, 2, 3, 4, 5]
    )


def test_spread_of_section_5() -> None:
    three = [3, 3, 3, 5, 5, 5, 5, 5, 3, 3, 3, 4, 4, 4, 4]
    two = [2, 2, 6, 6, 6, 6, 6, 6, 3, 3, 3, 4, 4, 4, 4]
    assert (comparison.spread(three, two), comparison.spread(two, three)) == (2, 8)
    assert comparison.coverage(two, three) > comparison.coverage(three, two)


def test_hypervolume_of_section_5() -> None:
    s, t = [3, 3, 3, 5, 5, 5, 5, 5], [4] * 8
    assert comparison.hypervolume(s, t) == pytest.approx(math.log(27 * 3125 - 27 * 1024))
    assert comparison.hypervolume(s, t) > comparison.hypervolume(t, s)


def test_hypervolume_of_a_million_rows_is_finite() -> None:
    a = np.full(1_000_000, 7.0)
    b = a.copy()
    b[0] = 6
    assert comparison.hypervolume(a, b) == pytest.approx(1_000_000 * math.log(7) + math.log(1 / 7))
    assert comparison.hypervolume(b, a) == -math.inf


@given(vectors)
def test_hypervolume_is_the_logarithm_of_its_definition(pair: tuple[list[int], list[int]]) -> None:
    a, b = pair
    volume = math.prod(a) - math.prod(min(x, y) for x, y in zip(a, b, strict=True))
    expected = math.log(volume) if volume else -math.inf
    assert comparison.hypervolume(a, b) == pytest.approx(expected)


@given(vectors)
def test_what_the_paper_says_of_dominance(pair: tuple[list[int], list[int]]) -> None:
    a, b = pair
    assert comparison.dominates(b, a) == (comparison.spread(a, b) == 0)
    assert comparison.dominates(b, a) == (comparison.hypervolume(a, b) == -math.inf)
    assert comparison.dominates(a, b) == (comparison.coverage(a, b) == 1)
    assert comparison.incomparable(a, b) == (not comparison.dominates(a, b) and not comparison.dominates(b, a))
    assert comparison.dominates(a, b, strict=True) == (comparison.dominates(a, b) and a != b)


def test_rank_is_the_distance_to_the_ideal() -> None:
    assert comparison.rank(T3B, 10) < comparison.rank(T3A, 10)
    assert comparison.rank([3, 4], [0, 0]) == 5


def test_several_properties() -> None:
    privacy_and_utility = [T3A, U3A], [T3B, U3B]
    assert comparison.weighted(*privacy_and_utility, [0.5, 0.5]) == pytest.approx(0.65)
    assert comparison.weighted(*reversed(privacy_and_utility), [0.5, 0.5]) == pytest.approx(0.65)
    assert comparison.lexicographic(*privacy_and_utility) == 2
    assert comparison.lexicographic(*reversed(privacy_and_utility)) == 1
    assert comparison.lexicographic(*privacy_and_utility, epsilon=[1, 1]) == math.inf
    assert comparison.goal(*privacy_and_utility, [1, 1]) == pytest.approx(0.49)
    assert comparison.weighted(*privacy_and_utility, [1, 1], index=["count_better", "spread"]) == pytest.approx(4.71)


@pytest.mark.parametrize(
    "call",
    [
        lambda: comparison.coverage([1], [1, 2]),
        lambda: comparison.minimum([]),
        lambda: comparison.average([[1, 2]]),
        lambda: comparison.average(["secret"]),
        lambda: comparison.average([1, math.nan]),
        lambda: comparison.hypervolume([1, -1], [1, 1]),
        lambda: comparison.weighted([[1]], [[1]], [1, 2]),
        lambda: comparison.weighted([[1]], [[1]], [1], index="covrage"),
        lambda: comparison.goal([], [], []),
    ],
)
def test_what_is_no_vector_is_refused(call: object) -> None:
    with pytest.raises(ParameterError) as caught:
        call()  # type: ignore[operator]
    assert "secret" not in str(caught.value)


@pytest.fixture
def releases() -> Iterator[list[duckanon.Release]]:
    people = pa.table({"age": [34, 35, 36, 61, 62, 63, 90], "ill": list("abcabca")})
    made = [
        duckanon.anonymize(people, quasi_identifiers=["age"], sensitive=["ill"], k=k, suppression_limit=0.2)
        for k in (3, 7)
    ]
    yield made
    for release in made:
        release.close()


def test_releases_stand_side_by_side(releases: list[duckanon.Release]) -> None:
    found = duckanon.compare({"fine": releases[0], "coarse": releases[1]})
    for name, release in zip(("fine", "coarse"), releases, strict=True):
        column = {(r["metric"], r["attribute"]): r[name] for r in found.metrics.to_pylist()}
        assert column == {(m.metric, m.attribute): m.value for m in release.measure()}
    by_pair = {(r["release"], r["against"]): r["value"] for r in found.indices.to_pylist()}
    # 3, 3, 3, 3, 3, 3 and one suppressed row beside seven rows in one class.
    assert by_pair == {("fine", "coarse"): 0.0, ("coarse", "fine"): 1.0}
    assert not any(found.indices.column("aligned").to_pylist())
    assert found.to_dict()["sizes"][0] == {
        "release": "fine", "property": "class_size",
        "min": 1, "q25": 3, "median": 3, "mean": 19 / 7, "q75": 3, "max": 3,
    }  # fmt: skip


def test_indices_take_releases(releases: list[duckanon.Release]) -> None:
    assert comparison.minimum(releases[1]) == 7
    assert comparison.spread(releases[1], releases[0]) == 6 * 4 + 6


def test_what_cannot_be_compared_is_refused(releases: list[duckanon.Release]) -> None:
    with pytest.raises(ParameterError, match="two releases or more"):
        duckanon.compare(releases[:1])
    with pytest.raises(ParameterError, match="Did you mean 'coverage'"):
        duckanon.compare(releases, by="covrage")
    with pytest.raises(ParameterError, match="Unknown property"):
        duckanon.compare(releases, properties=["size"])
    with pytest.raises(ParameterError, match="takes releases"):
        duckanon.compare([releases[0], pa.table({"a": [1]})])  # type: ignore[list-item]
    with (
        duckanon.anonymize(pa.table({"age": [1, 1]}), quasi_identifiers=["age"], k=2) as other,
        pytest.raises(ParameterError, match="2, 7 rows"),
    ):
        duckanon.compare([releases[0], other])
