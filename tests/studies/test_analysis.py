"""The one-against-one table, the effect sizes and the meta-metric compared with slow references."""

from __future__ import annotations

import numpy as np
import pytest
from reference import metrics_utility as reference

from duckanon.studies.metrics_analysis import (
    METRICS,
    UTILITIES,
    effect_sizes,
    fit,
    meta_metrics,
    one_against_one,
    right_picks,
    transfer,
)


def records(rng: np.random.Generator, versions: int, tables=("a", "b"), algorithms=("x", "y"), digits: int = 6):
    found = []
    for table in tables:
        for algorithm in algorithms:
            for version in range(versions):
                labels = {"table": table, "algorithm": algorithm, "version": version}
                metrics = {m: round(float(rng.random()), digits) for m in METRICS}
                found.append({**labels, **metrics, **{u: round(float(rng.random()), digits) for u in UTILITIES}})
    return found


@pytest.mark.parametrize("seed", range(40))
def test_picks_are_those_of_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 12))
    # Few different values: many pairs are equal.
    metric, utility = rng.integers(0, 4, size) / 4, rng.integers(0, 3, size) / 3
    assert right_picks(metric, utility) == pytest.approx(reference.right_picks(metric.tolist(), utility.tolist()))


def test_picks_leave_missing_values_out() -> None:
    found = right_picks(np.array([0.1, np.nan, 0.2]), np.array([0.9, 0.5, 0.1]))
    assert found == (1.0, 1.0)
    assert np.isnan(right_picks(np.array([0.1]), np.array([0.9]))[0])


def test_table_is_the_mean_over_algorithms_and_utilities() -> None:
    made = records(np.random.default_rng(3), 6, digits=1)
    found = {(r["table"], r["metric"]): (r["rate"], r["equal_is_right"]) for r in one_against_one(made)}
    for table in ("a", "b"):
        for metric in METRICS:
            rates = []
            for algorithm in ("x", "y"):
                some = [r for r in made if r["table"] == table and r["algorithm"] == algorithm]
                rates += [reference.right_picks([r[metric] for r in some], [r[u] for r in some]) for u in UTILITIES]
            wanted = tuple(sum(r[i] for r in rates) / len(rates) for i in range(2))
            assert found[table, metric] == pytest.approx(wanted)


def test_effects_are_those_of_the_reference() -> None:
    made = records(np.random.default_rng(5), 20)
    sizes: dict[str, list[float]] = {m: [] for m in METRICS}
    for table in ("a", "b"):
        for algorithm in ("x", "y"):
            some = [r for r in made if r["table"] == table and r["algorithm"] == algorithm]
            for utility in UTILITIES:
                solved = reference.coefficients([[r[m] for r in some] for m in METRICS], [r[utility] for r in some])
                for metric, one in zip(METRICS, solved, strict=True):
                    sizes[metric].append(abs(one))
    # Student's t with 23 degrees of freedom, two-sided 95 %, from a printed table.
    for line in effect_sizes(made):
        wanted = reference.interval(sizes[line["metric"]], 2.0686576104)
        assert (line["effect"], line["low"], line["high"]) == pytest.approx(wanted, rel=1e-6)
        assert line["n"] == 24
    assert len(effect_sizes(made)) == len(METRICS)


def test_constant_metrics_have_no_effect_and_few_releases_no_regression() -> None:
    made = records(np.random.default_rng(6), 20)
    for r in made:
        r["diameter"] = 0.5
    assert "diameter" not in {line["metric"] for line in effect_sizes(made)}
    assert effect_sizes(made[:8]) == []


def test_fit_finds_a_line() -> None:
    x = np.array([0.0, 1.0, 2.0, 4.0])
    assert fit(x, 3.0 - 0.5 * x) == pytest.approx((3.0, -0.5, -1.0))
    assert fit(np.ones(4), x) is None


def test_meta_metric_picks_what_a_metric_tells_and_not_what_none_does() -> None:
    rng = np.random.default_rng(7)
    made = records(rng, 40, tables=("a", "b"), algorithms=("x",))
    for r in made:
        for utility in UTILITIES:
            # Told by one metric in table a; in b by nothing.
            r[utility] = 1 - r["entropy"] if r["table"] == "a" else float(rng.random())
    found = meta_metrics(made, test=0.25, repeats=1, seed=1)
    own = transfer(found, "own", ["a", "b"])
    assert own["a", "a"] > 0.9
    assert 0.25 < own["b", "b"] < 0.75
    moved = transfer(found, "table", ["a", "b"])
    assert 0.25 < moved["a", "b"] < 0.75
    assert transfer(found, "utility", list(UTILITIES))["lr_accuracy", "lr_auroc"] > 0.5
