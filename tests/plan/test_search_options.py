"""Chosen nodes, bounds of levels, weights, and searches by name with parameters."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import duckanon
from duckanon.algorithms import BestEffort, DataflyShuffled, MinGen, Optimal
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.errors import EngineError, InfeasibleError, ParameterError, UnsupportedError
from duckanon.plan.plan import resolve_algorithm
from duckanon.recoding.base import LocalRecoding

TABLE = pa.table(
    {
        "age": [20 + i % 40 for i in range(400)],
        "zip": [f"97{(i * 7) % 13:03d}" for i in range(400)],
        "ill": [f"s{i % 5}" for i in range(400)],
    }
)
GIVEN: dict[str, Any] = {"quasi_identifiers": ["age", "zip"], "sensitive": ["ill"], "k": 5}


def release(**options: Any) -> duckanon.Release:
    return duckanon.anonymize(TABLE, **(GIVEN | options))


def test_a_chosen_node_is_applied() -> None:
    with release(levels={"AGE": 2, "zip": 1}, suppression_limit=1.0) as found:
        assert found.recoding.levels == {"age": 2, "zip": 1}
    with release(levels={"age": 3}, suppression_limit=0.9) as found:
        assert found.recoding.levels == {"age": 3, "zip": 0}


@pytest.mark.parametrize("algorithm", ["datafly", "optimal", "ola", "samarati", "incognito", "mingen", "best_effort"])
def test_levels_stay_within_their_bounds(algorithm: str) -> None:
    bounds = {"min_levels": {"age": 1}, "max_levels": {"age": 2}}
    with release(algorithm=algorithm, suppression_limit=0.3, **bounds) as found:
        assert 1 <= found.recoding.levels["age"] <= 2


def test_a_chosen_node_that_breaks_the_promise() -> None:
    with pytest.raises(InfeasibleError, match="rows are in classes of fewer than 5 rows, and 0 may be suppressed"):
        release(levels={"age": 0, "zip": 0})


def test_weights_move_the_optimum_and_the_loss() -> None:
    with release(algorithm="optimal", weights={"age": 1000}) as heavy, release(algorithm="optimal") as plain:
        assert heavy.recoding.levels["age"] <= plain.recoding.levels["age"]
        values = {m.attribute: m.value for m in heavy.measure(["loss"])}
        assert values[None] == pytest.approx((1000 * values["age"] + values["zip"]) / 1001)
        assert heavy.searched["value"] == pytest.approx(values[None])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": {"ill": 1}}, "levels names 'ill', which is no quasi-identifier"),
        ({"levels": {"agee": 1}}, "Did you mean 'age'"),
        ({"levels": {}}, "levels is empty"),
        ({"levels": {"age": -1}}, "whole number of at least 0"),
        ({"levels": {"age": True}}, "whole number of at least 0"),
        ({"levels": {"age": 1}, "min_levels": {"zip": 1}}, "either levels, or min_levels"),
        ({"levels": {"age": 99}}, "The hierarchy of 'age' has the levels 0 to"),
        ({"max_levels": {"age": 99}}, "The hierarchy of 'age' has the levels 0 to"),
        ({"min_levels": {"age": 2}, "max_levels": {"age": 1}}, "above its highest"),
        ({"weights": {"age": 0}}, "a number above 0"),
        ({"weights": {"age": float("inf")}}, "a number above 0"),
        ({"weights": [1, 2]}, "weights must map quasi-identifiers to numbers. Got a list"),
        ({"iterative": "yes"}, "iterative must be true or false"),
        ({"algorithm": "optimal(metric=loss, metric=loss)"}, "An algorithm as text"),
        ({"algorithm": "optimal(depth=3)"}, "optimal has no parameter 'depth'"),
        ({"algorithm": "optimal(metric=lose)"}, "Unknown metric 'lose'.*Did you mean 'loss'"),
        ({"algorithm": "best_effort(strategy=sideways)"}, "must be one of top_down"),
        ({"algorithm": "best_effort(nodes=0)"}, "int >= 1"),
        ({"algorithm": "datafly_shuffled(shuffle=-1)"}, "int >= 0"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        release(**options)


def test_an_algorithm_by_text() -> None:
    assert resolve_algorithm("optimal(metric=precision)") == Optimal("precision")
    assert resolve_algorithm("best_effort('loss', 'genetic', nodes=7)") == BestEffort("loss", "genetic", 7)


def test_mingen_refuses_what_it_cannot_finish() -> None:
    with pytest.raises(UnsupportedError, match="and mingen visits every one: it is refused above 3"):
        release(algorithm=MinGen(most=3))


def test_any_metric_can_be_minimised() -> None:
    """gcp and hellinger are measured in SQL, node by node; the best by gcp loses no more than others do."""
    with release(algorithm="optimal(metric=gcp)", suppression_limit=0.1) as best:
        (least,) = [m.value for m in best.measure(["gcp"]) if m.attribute is None]
        assert best.searched["value"] == pytest.approx(least)
    with release(algorithm="optimal(metric=loss)", suppression_limit=0.1) as other:
        (more,) = [m.value for m in other.measure(["gcp"]) if m.attribute is None]
    assert least <= more + 1e-12


def test_a_shuffled_hierarchy_keeps_its_shape_and_loses_its_meaning() -> None:
    with release(algorithm=DataflyShuffled(shuffle=1)) as found, release(algorithm="datafly") as plain:
        assert found.recoding.levels == plain.recoding.levels
        assert any("dealt at random" in level.origin for level in found.levels)
        for name in ("age", "zip"):
            if found.recoding.levels[name] == 0:
                continue
            ours, theirs = found.recoding.mapping(name), plain.recoding.mapping(name)
            sizes = [sorted(pair.column("label").value_counts().field("counts").to_pylist()) for pair in (ours, theirs)]
            assert sizes[0] == sizes[1]
    with release(algorithm="datafly_shuffled(shuffle=2)") as other:
        assert other.rows_published == 400


def test_local_recoding_loses_fewer_rows_and_less() -> None:
    rng = random.Random(4)
    ages, zips = (
        [int(rng.gauss(40, 12)) for _ in range(800)],
        [f"97{int(rng.expovariate(0.4)):03d}" for _ in range(800)],
    )
    skewed = pa.table({"age": ages, "zip": zips})
    given: dict[str, Any] = {"quasi_identifiers": ["age", "zip"], "k": 5, "algorithm": "optimal"}
    with duckanon.anonymize(skewed, **given, suppression_limit=0.1) as plain:
        (before,) = [m.value for m in plain.measure(["loss"]) if m.attribute is None]
    with duckanon.anonymize(skewed, **given, suppression_limit=0.1, iterative=True) as found:
        assert isinstance(found.recoding, LocalRecoding)
        (after,) = [m.value for m in found.measure(["loss"]) if m.attribute is None]
        assert found.rows_suppressed <= plain.rows_suppressed
        assert after < before
        for refused in (lambda: found.recoding.mapping("age"), found.recoding.to_sql):
            with pytest.raises(UnsupportedError, match="The recoding is local"):
                refused()
        assert found.report("md")


def test_local_recoding_and_a_population() -> None:
    with pytest.raises(UnsupportedError, match="iterative=True puts values on several levels"):
        duckanon.anonymize(
            TABLE, quasi_identifiers=["age"], models=["k_map(5)"], population=TABLE.select(["age"]), iterative=True
        )


def test_a_search_that_would_need_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DuckDBEngine, "memory_limit", lambda self: 1000)
    with pytest.raises(EngineError, match=r"more than half of the memory limit .* datafly, which works on disk"):
        release(algorithm="optimal")
    with release(algorithm="datafly") as found:
        assert found.checks[0].holds


def test_the_memory_limit_is_read() -> None:
    engine = DuckDBEngine(memory_limit="512MiB")
    assert engine.memory_limit() == 512 * 2**20
    engine.close()
