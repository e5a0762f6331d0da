"""Population uniqueness compared with slow references, on populations of known uniqueness and on small samples."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import duckanon
from duckanon.assess import uniqueness
from duckanon.errors import ParameterError
from tests.reference import uniqueness as reference

SAMPLES = [
    [1, 1, 1, 2, 2, 3],
    [1] * 20 + [2] * 5 + [3] * 2 + [9],
    [1] * 8 + [2] * 8 + [4] * 3,
    [1] * 30 + [2] * 3,
    [1] * 5 + [2] * 10 + [3] * 10 + [5] * 4,
]


def counts(sizes: list[int]) -> dict[int, int]:
    return dict(Counter(sizes))


@pytest.mark.parametrize("sizes", SAMPLES, ids=str)
@pytest.mark.parametrize("times", [1.3, 4, 20])
def test_zayatz_and_shlosser_beside_the_reference(sizes: list[int], times: float) -> None:
    population = round(sum(sizes) * times)
    assert uniqueness.zayatz(counts(sizes), population) == pytest.approx(reference.zayatz(sizes, population), rel=1e-9)
    f = sum(sizes) / population
    assert uniqueness.shlosser(counts(sizes), f) == pytest.approx(reference.shlosser(sizes, f), rel=1e-9)


@pytest.mark.parametrize("sizes", SAMPLES, ids=str)
def test_pitman_beside_the_reference(sizes: list[int]) -> None:
    found = uniqueness.pitman(counts(sizes), 400)
    assert found == pytest.approx(reference.pitman(sizes, 400), rel=2e-3)


@pytest.mark.parametrize("sizes", SAMPLES[1:4], ids=str)
@pytest.mark.parametrize("times", [2, 5])
@pytest.mark.thinned(2)
def test_the_snb_solves_its_equations(sizes: list[int], times: int) -> None:
    population = sum(sizes) * times
    found = uniqueness.snb(counts(sizes), population)
    if found is None:
        assert min(reference.snb_error(u, sizes, population) for u in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7)) > 1e-3
        return
    assert reference.snb_error(found, sizes, population) < 1e-4
    for other in (found * 0.9, found * 1.1):
        assert reference.snb_error(other, sizes, population) > 1e-3


def test_estimates_of_a_small_sample_are_those_by_hand() -> None:
    # Two singletons and a pair of ten people: P(f=1|F=1) = 4/10, P(f=1|F=2) = 2 C(8,3) / C(10,4) = 112/210.
    conditional = (2 / 3 * 0.4) / (2 / 3 * 0.4 + 1 / 3 * 112 / 210)
    assert uniqueness.zayatz({1: 2, 2: 1}, 10) == pytest.approx(2 * conditional / 4)
    # f = 1/2: 3 + 2 (2/4 + 2 (1/4)(3/4)) / (2/4 + (9-4)/16) ((2/2 + 1/4) / (2/2 + 2/4))^2
    first, second = 2 / 4 + 2 / 4 * 3 / 4, 2 * (3 / 4 - 1 / 2) + (9 / 16 - 1 / 4)
    expected = 3 + 2 * first / second * ((1 + 1 / 4) / (1 + 1 / 2)) ** 2
    assert uniqueness.shlosser({1: 2, 2: 1}, 0.5) == pytest.approx(expected)


def draw(population: list[int], share: float, seed: int) -> tuple[float, dict[int, int], int]:
    """Return the uniqueness of a population given by its class sizes, and the class sizes of a sample."""
    n = sum(population)
    truth = population.count(1) / n
    rows = np.repeat(np.arange(len(population)), population)
    sample = np.random.default_rng(seed).choice(rows, round(n * share), replace=False)
    sizes = np.unique(sample, return_counts=True)[1]
    return truth, dict(Counter(int(s) for s in sizes)), n


def pitman_population(theta: float, alpha: float, n: int, seed: int) -> list[int]:
    """Seat guests: a new table with (theta + tables alpha) / (theta + guests), else one by its size less alpha."""
    rng = np.random.default_rng(seed)
    sizes = [1]
    seats = [0]
    for guest in range(1, n):
        if rng.random() * (theta + guest) < theta + len(sizes) * alpha:
            sizes.append(1)
            seats.append(len(sizes) - 1)
            continue
        while True:
            # By size, then refused with alpha / size.
            chosen = seats[int(rng.integers(guest))]
            if rng.random() >= alpha / sizes[chosen]:
                break
        sizes[chosen] += 1
        seats.append(chosen)
    return sizes


@pytest.mark.parametrize(("theta", "alpha"), [(50, 0.6), (200, 0.3), (10, 0.85)])
def test_pitman_finds_the_uniqueness_of_its_own_populations(theta: float, alpha: float) -> None:
    truth, sample, n = draw(pitman_population(theta, alpha, 20_000, 1), 0.1, 2)
    found = uniqueness.estimate(sample, n)
    assert found.chosen == "pitman"
    assert found.dankar == found.pitman == pytest.approx(truth, rel=0.2)


@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 0.1), (1, 0.3), (2, 0.5)])
@pytest.mark.parametrize(("share", "error"), [(0.3, 0.45), (0.6, 0.1)])
def test_the_snb_finds_the_uniqueness_of_its_own_populations(
    alpha: float, beta: float, share: float, error: float
) -> None:
    sizes = (1 + np.random.default_rng(3).negative_binomial(alpha, beta, 10_000)).tolist()
    truth, sample, n = draw(sizes, share, 4)
    found = uniqueness.estimate(sample, n)
    assert found.snb == pytest.approx(truth, rel=error)  # the number of classes is an estimate, too
    assert found.dankar == min(found.snb, found.zayatz)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.95])
def test_the_rule_is_near_the_truth_of_other_populations(share: float) -> None:
    weights = np.random.default_rng(5).lognormal(0, 2, 30_000)
    population = np.random.default_rng(6).multinomial(60_000, weights / weights.sum())
    truth, sample, n = draw([int(s) for s in population if s], share, 7)
    assert uniqueness.estimate(sample, n).dankar == pytest.approx(truth, rel=0.35)


def test_the_rule_by_sampling_fraction() -> None:
    sample = {1: 40, 2: 20, 5: 4}
    small, large = uniqueness.estimate(sample, 1000), uniqueness.estimate(sample, 300)
    assert (small.sampling_fraction, small.chosen, small.dankar) == (0.1, "pitman", small.pitman)
    assert large.snb is not None
    assert large.dankar == min(large.snb, large.zayatz)
    assert large.chosen == ("snb" if large.snb <= large.zayatz else "zayatz")
    # Without a solution of the SNB, Zayatz.
    none = uniqueness.estimate({1: 1, 2: 1}, 10)
    assert (none.snb, none.chosen, none.dankar) == (None, "zayatz", none.zayatz)


@pytest.mark.parametrize(
    ("sample", "population", "expected"),
    [
        ({5: 3}, 1000, 0.0),  # no singletons
        ({2: 1}, 2, 0.0),
        ({}, 10, 0.0),
        ({1: 12}, 100, 1.0),  # nothing but singletons
        ({1: 1}, 10**9, 1.0),
        ({1: 4, 3: 2}, 10, 0.4),  # the whole population
    ],
    ids=str,
)
def test_degenerate_samples(sample: dict[int, int], population: int, expected: float) -> None:
    found = uniqueness.estimate(sample, population)
    assert found.dankar == pytest.approx(expected)
    assert found.snb == pytest.approx(expected)
    assert found.pitman == pytest.approx(expected)


def test_whatever_the_sizes_an_estimate_is_a_share() -> None:
    rng = np.random.default_rng(8)
    for _ in range(150):
        sizes = rng.integers(1, int(rng.integers(2, 50)), int(rng.integers(1, 20))).tolist() + [1] * int(
            rng.integers(5)
        )
        population = math.ceil(sum(sizes) * float(rng.choice([1, 1.0001, 1.5, 10, 1e5])))
        found = uniqueness.estimate(counts(sizes), population)
        for share in (found.zayatz, found.snb, found.pitman, found.dankar):
            assert share is None or 0 <= share <= 1, (sizes, population)
    huge = uniqueness.estimate({1: 5_000_000, 2: 100_000, 300: 1000, 10**6: 5}, 330_000_000)
    assert 0 < huge.dankar < 1


def test_risk_gives_the_estimates() -> None:
    people = pa.table({"age": [1, 2, 3, 4, 5, 5, 6, 6, 7, 7, 7]})
    found = duckanon.risk(people, quasi_identifiers=["age"], population_size=22)
    assert found.uniqueness == uniqueness.estimate({1: 4, 2: 2, 3: 1}, 22)
    assert found.uniqueness == duckanon.risk(people, quasi_identifiers=["age"], sampling_fraction=0.5).uniqueness
    assert found.to_dict()["uniqueness"]["population_size"] == 22
    assert duckanon.risk(people, quasi_identifiers=["age"]).uniqueness is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"population_size": 2}, "the data have 3 members"),
        ({"population_size": 2.5}, "population_size"),
        ({"sampling_fraction": 0}, "sampling_fraction"),
        ({"sampling_fraction": 1.5}, "sampling_fraction"),
        ({"sampling_fraction": 0.5, "population_size": 10}, "not both"),
    ],
)
def test_a_wrong_population_is_refused(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        duckanon.risk(pa.table({"a": [1, 2, 3]}), quasi_identifiers=["a"], **wrong)  # type: ignore[arg-type]
