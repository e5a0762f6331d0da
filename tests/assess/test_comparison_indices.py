"""Indices of vectors that are given: their values, their goals, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import duckanon
from duckanon.assess import comparison
from duckanon.errors import ParameterError

T3A = [3, 3, 3, 3, 4, 4, 4, 3, 3, 4]
T3B = [3, 7, 7, 3, 7, 7, 7, 3, 7, 7]
U3A = [2.03, 1.7, 1.7, 2.03, 1.6, 1.6, 1.6, 2.03, 1.7, 1.6]
U3B = [2.03, 0.97, 0.97, 2.03, 0.97, 0.97, 0.97, 2.03, 0.97, 0.97]


def test_hypervolume_of_a_million_rows_is_finite() -> None:
    a = np.full(1_000_000, 7.0)
    b = a.copy()
    b[0] = 6
    assert comparison.hypervolume(a, b) == pytest.approx(1_000_000 * math.log(7) + math.log(1 / 7))
    assert comparison.hypervolume(b, a) == -math.inf


def test_rank_is_the_distance_to_the_ideal() -> None:
    assert comparison.rank(T3B, 10) < comparison.rank(T3A, 10)
    assert comparison.rank([3, 4], [0, 0]) == 5
    far = comparison.rank(T3A, 10) - comparison.rank(T3B, 10)
    assert comparison.better(T3A, T3B, by="rank", ideal=10) == "second"
    assert comparison.better(T3A, T3B, by="rank", ideal=10, epsilon=far * 0.999) == "second"
    assert comparison.better(T3A, T3B, by="rank", ideal=[10] * 10, epsilon=far * 1.001) == "equal"


def test_comparators_of_several_properties_give_the_figures_of_the_paper() -> None:
    privacy_and_utility = [T3A, U3A], [T3B, U3B]
    assert comparison.weighted(*privacy_and_utility) == pytest.approx(0.65)
    assert comparison.weighted(*reversed(privacy_and_utility), [0.5, 0.5]) == pytest.approx(0.65)
    assert comparison.lexicographic(*privacy_and_utility) == 2
    assert comparison.lexicographic(*reversed(privacy_and_utility)) == 1
    assert comparison.lexicographic(*privacy_and_utility, epsilon=[1, 1]) == math.inf
    assert comparison.goal(*privacy_and_utility, [1, 1]) == pytest.approx(0.49)
    assert comparison.weighted(*privacy_and_utility, [1, 1], index=["count_better", "spread"]) == pytest.approx(4.71)


def test_indices_of_different_scales_are_normalized_on_request() -> None:
    a, b = {"size": [300, 100], "use": [1.0, 2.0]}, {"size": [200, 101], "use": [1.5, 2.5]}
    assert comparison.better(a, b, by="weighted", index="spread") == "first"
    assert comparison.weighted(a, b, index="spread", normalize=True) == pytest.approx(0.5 * 100 / 101)
    assert comparison.better(a, b, by="weighted", index="spread", normalize=True) == "second"
    volumes = comparison.weighted(a, b, {"size": 1.0}, index="hypervolume", normalize=True)
    forth, back = 300 * 100 - 200 * 100, 200 * 101 - 200 * 100
    assert volumes == pytest.approx(forth / (forth + back))
    assert comparison.weighted([T3A], [T3A], index="spread", normalize=True) == 0.5


def test_goals_of_unary_indices_are_those_of_goal_vectors() -> None:
    wished = {"size": [5] * 10, "use": [2.0] * 10}
    a, b = {"size": T3A, "use": U3A}, {"size": T3B, "use": U3B}
    found = comparison.goal(a, b, index="average", goal_vectors=wished)
    assert found == pytest.approx((3.4 - 5) ** 2 + (np.mean(U3A) - 2) ** 2)
    assert found == pytest.approx(comparison.goal(a, b, {"size": 5, "use": 2}, index="average"))
    assert (
        comparison.better(a, b, by="goal", index=["minimum", "average"], goal_vectors=list(wished.values())) == "first"
    )


def test_an_index_of_ones_own() -> None:
    def widest(a: Any, b: Any) -> float:
        return float(np.max(np.asarray(a) - np.asarray(b)))

    assert comparison.better(T3A, T3B, by=widest) == "second"


@pytest.mark.parametrize("median", [np.median, lambda v: float(np.median(v)), max, np.mean])
def test_an_index_of_ones_own_may_look_at_one_vector(median: Any) -> None:
    assert comparison.better(T3A, T3B, by=median) == "second"
    assert comparison.better([T3A, U3A], [T3B, U3A], by="weighted", index=median) == "second"
    assert comparison.better([T3A], [T3B], by="goal", index=median, goal_vectors=[[3] * 10]) == "first"


def test_rank_among_several_properties_is_better_where_it_is_lower() -> None:
    a, b = {"size": T3A, "use": U3A}, {"size": T3B, "use": U3B}
    best = {"size": 10, "use": [3.0] * 10}
    ranks = [[comparison.rank(one[name], best[name]) for name in best] for one in (a, b)]
    assert ranks[0][0] > ranks[1][0]
    assert ranks[0][1] < ranks[1][1]
    assert comparison.lexicographic(a, b, index="rank", ideal=best) == 2
    assert comparison.lexicographic(b, a, index="rank", ideal=best) == 1
    assert comparison.weighted(a, b, [1, 1], index="rank", ideal=best) == pytest.approx(-sum(ranks[0]))
    share = sum(other / (own + other) for own, other in zip(*ranks, strict=True)) / 2
    assert comparison.weighted(a, b, index="rank", ideal=best, normalize=True) == pytest.approx(share)
    assert comparison.goal(a, b, [1, 2], index="rank", ideal=best) == pytest.approx(
        (ranks[0][0] - 1) ** 2 + (ranks[0][1] - 2) ** 2
    )
    assert comparison.goal(a, b, index="rank", ideal=best, goal_vectors=[[10] * 10, [3.0] * 10]) == pytest.approx(
        ranks[0][0] ** 2 + ranks[0][1] ** 2
    )
    assert comparison.better(a, b, by="goal", index="rank", ideal=best, goals=[ranks[0][0], ranks[0][1]]) == "first"
    assert comparison.better(T3A, T3B, by=comparison.rank, ideal=10) == "second"


@pytest.mark.parametrize(
    "call",
    [
        lambda: comparison.coverage([1], [1, 2]),
        lambda: comparison.minimum([]),
        lambda: comparison.average([[1, 2]]),
        lambda: comparison.average(["secret"]),
        lambda: comparison.average([1, math.nan]),
        lambda: comparison.hypervolume([1, -1], [1, 1]),
        lambda: comparison.hypervolume([1, math.inf], [1, 1]),
        lambda: comparison.better([1], [2], by=lambda: 1.0),
        lambda: comparison.better([1], [2], by=lambda a, b, c: 1.0),
        lambda: comparison.better([1], [2], by=lambda a, *, c: 1.0),
        lambda: comparison.better([1], [2], by=lambda a, b: None),
        lambda: comparison.better([1], [2], by=lambda a: "secret"),
        lambda: comparison.better([[1]], [[2]], by="weighted", index=lambda a, b: math.nan),
        lambda: comparison.goal([[1]], [[1]], [1], index="rank"),
        lambda: comparison.goal([[1]], [[1]], [1], index="rank", ideal=[1, 2]),
        lambda: comparison.weighted([[1]], [[1]], [1, 2]),
        lambda: comparison.weighted([[1]], [[1]], [1], index="covrage"),
        lambda: comparison.goal([], [], []),
        lambda: comparison.goal([[1]], [[1]]),
        lambda: comparison.goal([[1]], [[1]], goal_vectors=[[1]]),
        lambda: comparison.goal([[1]], [[1]], index="minimum", goal_vectors=[[1], [1]]),
        lambda: comparison.better([1], [2], by="covrage"),
        lambda: comparison.better([1], [2], by="rank"),
        lambda: comparison.better([1], [2], epsilon=[1]),
        lambda: comparison.better([[1], [1]], [[2], [2]], by="coverage"),
        lambda: comparison.better([[1]], [2]),
        lambda: comparison.better({"a": [1]}, {"b": [1]}, by="dominance"),
        lambda: comparison.weighted({"a": [1]}, {"a": [1]}, {"b": 1.0}),
        lambda: comparison.weighted([[1]], [[1]], [-1]),
    ],
)
def test_what_is_no_vector_is_refused(call: object) -> None:
    with pytest.raises(ParameterError) as caught:
        call()  # type: ignore[operator]
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": None}, "by must be the name"),
        ({"by": [5]}, "by must be the name"),
        ({"index": 5, "by": "weighted"}, "index must be the name"),
        ({"properties": None}, "properties must be a list"),
        ({"properties": 5}, "properties must be a list"),
        ({"epsilon": "x"}, "epsilon must be a number of at least 0"),
        ({"epsilon": -1}, "epsilon must be a number of at least 0"),
        ({"epsilon": math.nan}, "epsilon must be a number of at least 0"),
        ({"weights": "x", "by": "weighted"}, "weights must be a number"),
        ({"goals": "x", "by": "goal"}, "goals must be a number"),
        ({"significance": -1, "by": "lexicographic"}, "significance must be a number of at least 0"),
        ({"ideals": 5, "by": "rank"}, "ideals must be a mapping"),
        ({"ideals": {"class_size": "x"}, "by": "rank"}, "ideals: that of 'class_size'"),
        ({"metrics": [5]}, "metrics must be a list of names"),
    ],
)
@pytest.mark.thinned(2)
def test_settings_of_the_wrong_kind(arguments: dict[str, Any], message: str) -> None:
    people = pa.table({"age": [1, 1, 2, 2]})
    with duckanon.anonymize(people, quasi_identifiers=["age"], k=2) as release, pytest.raises(ParameterError) as caught:
        duckanon.compare([release, release], **arguments)
    assert message in str(caught.value)


def test_an_index_that_is_named_twice_counts_once() -> None:
    people = pa.table({"age": [1, 1, 2, 2]})
    with (
        duckanon.anonymize(people, quasi_identifiers=["age"], k=2) as a,
        duckanon.anonymize(people, quasi_identifiers=["age"], k=4) as b,
    ):
        found = duckanon.compare([a, b], by=["coverage", "coverage"], properties=["class_size"], metrics=[])
    assert [r["wins"] for r in found.tournament.to_pylist() if r["index"] is None] == [1, 0]
