"""The metrics as a family: what is normalised, and the worked examples of the papers."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import duckanon
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.engine.sql.relations import RelationTables
from duckanon.errors import ParameterError
from duckanon.metrics import Metric, headlines, measure, metrics
from duckanon.metrics.base import MetricValue
from duckanon.metrics.diameter import farthest
from duckanon.testing.common import make_relations


def test_what_reports_show_is_small_and_quick() -> None:
    assert headlines() == ["average_class_size", "discernibility", "gcp", "loss", "precision"]


def test_normalising() -> None:
    class Lower(Metric):
        bounds: ClassVar[tuple[float, float | None]] = (1.0, None)

    class Higher(Metric):
        direction: ClassVar[str] = "higher"
        bounds: ClassVar[tuple[float, float | None]] = (0.0, 4.0)

    assert Lower.normalised(MetricValue(None, 3.0, 5.0)) == 0.5
    assert Lower.normalised(MetricValue(None, 3.0)) is None
    assert Lower.normalised(MetricValue(None, None, 5.0)) is None
    assert Lower.normalised(MetricValue(None, 1.0, 1.0)) == 0.0
    assert Lower.normalised(MetricValue(None, 2.0, 1.0)) is None
    assert Higher.normalised(MetricValue(None, 1.0)) == 0.75
    assert Higher.normalised(MetricValue(None, 1.0, 0.0, best=2.0)) == 0.5


def test_what_cannot_be_computed_is_left_out_or_said(engine: DuckDBEngine) -> None:
    relations = make_relations(engine, {"classes": [(1, 3, False), (2, 1, True)]})
    only = RelationTables(engine, relations.tables("classes"))
    assert {m.metric for m in measure(engine, only)} == {"average_class_size", "discernibility", "discernibility_star"}
    assert "average_class_size_lefevre" in {m.metric for m in measure(engine, only, params={"k": 3})}
    for name, needs in (
        ("classification", "a sensitive column"),
        ("bivariate_correlation", "two columns or more"),
        ("loss", "hierarchies"),
        ("kl_divergence", "which original row became which"),
        ("average_class_size_lefevre", "it needs k"),
    ):
        with pytest.raises(ParameterError, match=needs):
            measure(engine, only, [name])


def test_a_release_measures_all_that_it_can() -> None:
    table = pa.table({"a": [1, 1, 2, 2], "b": list("xxyy"), "ill": list("uvuv")})
    with duckanon.anonymize(table, quasi_identifiers=["a", "b"], sensitive=["ill"], k=2) as release:
        assert {m.metric for m in release.measure()} == set(metrics)
        (value,) = [m.value for m in release.measure(["average_class_size_lefevre"])]
        assert value == 1
        assert release.relations.has("tuples")
    with duckanon.anonymize(table, quasi_identifiers=["a"], k=2) as release:
        missing = {"classification", "bivariate_correlation", "mutual_information_loss"}
        assert {m.metric for m in release.measure()} == set(metrics) - missing
        assert not release.relations.has("pairs")
        with pytest.raises(ParameterError, match="a sensitive column"):
            release.measure(["classification"])


def test_relations_are_made_when_they_are_asked_for() -> None:
    table = pa.table({"a": [1, 1, 2, 2], "b": list("xxyy")})
    with duckanon.anonymize(table, quasi_identifiers=["a", "b"], k=2) as release:
        made = set(release.relations.made())
        assert made <= {"class_map", "classes", "frequency", "published"}
        release.summary()
        assert "tuples" not in release.relations.made()
        assert release.relations.table("tuples") == release.relations.table("tuples")
        assert "tuples" in release.relations.made()
        with pytest.raises(KeyError):
            release.relations.table("nothing")


# Worked examples


def total(engine: DuckDBEngine, metric: str, attribute: str | None = None, **relations: Any) -> float:
    found = measure(engine, make_relations(engine, relations), [metric], {"k": 2})
    (value,) = [m.value for m in found if m.attribute == attribute]
    assert value is not None
    return value


def test_the_papers_figure_of_two_classes(engine: DuckDBEngine) -> None:
    """Figure 2.1 of "Information loss metrics versus utility": four rows, two classes of two.

    Discernibility 2^2 + 2^2, class size 4/2, and in multiples of k 1; the zip codes of the first class are 2 of 3, the
    ages of each 2 of 4.
    """
    zips = {"28488": "284**", "28473": "284**", "79203": "79203"}
    ages = {33: "30's", 39: "30's", 24: "20's", 27: "20's"}
    people = pa.table({"zip": ["28488", "79203", "28473", "79203"], "age": [33, 24, 39, 27]})
    released = pa.table({"zip": ["284**", "79203", "284**", "79203"], "age": ["30's", "20's", "30's", "20's"]})
    trees = {
        "zip": pa.table({"0": list(zips), "1": list(zips.values()), "2": ["*"] * 3}),
        "age": pa.table({"0": [str(a) for a in ages], "1": list(ages.values()), "2": ["*"] * 4}),
    }
    hierarchies = {n: duckanon.Hierarchy.from_table(t) for n, t in trees.items()}
    found = {
        m.metric: m.value
        for m in duckanon.measure(people, released, quasi_identifiers=["zip", "age"], hierarchies=hierarchies, k=2)
        if m.attribute is None
    }
    assert found["discernibility"] == 8
    assert found["average_class_size"] == 2
    assert found["average_class_size_lefevre"] == 1
    assert found["ambiguity"] == pytest.approx((2 * 4 + 2 * 2) / 4)
    assert found["granularity"] == pytest.approx(2 * 1 / 3 + 4 * 1 / 4)
    # One bit for the zip code in the first class, one for the age everywhere.
    assert found["entropy"] == pytest.approx(2 + 4)
    assert found["diameter"] == 2
    # Zip codes are texts and count by their rank, 0 and 1 in the first class; ages lie 3 and 1.5 from their means.
    ranks = math.hypot(0.5, 3)
    assert found["squared_distance_error"] == pytest.approx(2 * ranks + 2 * 1.5)


def test_utilities_of_property_vectors(engine: DuckDBEngine) -> None:
    """Iyengar's utility of a row is the number of attributes minus its loss, as in Dewri et al."""
    cells = [(1, "a", "x", 1, 5, None, None), (1, "b", "y", 0, 1, None, None), (1, "c", "z", 1, 3, None, None)]
    domain = [(n, "unordered", 2, m, None, None, 1.0, True) for n, m in (("a", 10), ("b", 4), ("c", 6))]
    value = total(engine, "iyengar_loss", classes=[(1, 3, False)], class_cells=cells, domain=domain)
    assert 3 - value == pytest.approx(3 - (0.5 + 0.25 + 0.5))


def test_a_diameter_that_no_pair_reaches(engine: DuckDBEngine) -> None:
    """Three attributes vary, and no two classes differ in all of them: all classes are tried."""
    rows = [("0", "0", "0"), ("1", "0", "0"), ("0", "1", "0"), ("0", "0", "1")]
    cells = [(i, n, row[j], 0, 1, None, None) for i, row in enumerate(rows) for j, n in enumerate("abc")]
    domain = [(n, "unordered", 1, 2, None, None, 1.0, True) for n in "abc"]
    classes = [(i, 2, False) for i in range(4)]
    assert total(engine, "diameter", classes=classes, class_cells=cells, domain=domain) == 2
    classes = [*classes, (9, 1, True)]
    assert total(engine, "diameter", classes=classes, class_cells=cells, domain=domain) == 2
    assert total(engine, "diameter", classes=[(9, 1, True)], class_cells=[], domain=domain) == 0


def test_every_class_that_covers_a_tuple_makes_it_likely(engine: DuckDBEngine) -> None:
    """Ages 1 and 2 are in [1, 2], 3 and 4 in [1, 4], which covers 1 and 2 as well: by hand, of four rows."""
    cells = [(1, "age", "[1, 2]", 1, 2, 1.0, 2.0), (2, "age", "[1, 4]", 2, 4, 1.0, 4.0)]
    relations = {
        "classes": [(1, 2, False), (2, 2, False)],
        "class_cells": cells,
        "domain": [("age", "ordered", 2, 4, 1.0, 4.0, 1.0, False)],
        "tuples": [(i, 1 if i < 3 else 2, 1) for i in range(1, 5)],
        "tuple_values": [(i, "age", str(i), float(i)) for i in range(1, 5)],
        "cell_values": [("age", f"[1, {top}]", str(i), float(i), 1) for top in (2, 4) for i in range(1, top + 1)],
    }
    likely = {1: (2 / 2 + 2 / 4) / 4, 2: (2 / 2 + 2 / 4) / 4, 3: 2 / 4 / 4, 4: 2 / 4 / 4}
    by_hand = sum(math.log2(1 / 4 / q) / 4 for q in likely.values())
    assert total(engine, "kl_divergence", **relations) == pytest.approx(by_hand)


def test_the_divergence_of_many_tuples_is_that_of_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    from duckanon.metrics import kl_divergence

    draw = np.random.default_rng(3)
    people = pa.table({"age": draw.integers(18, 90, 1500), "zip": draw.integers(0, 400, 1500)})
    with duckanon.anonymize(people, quasi_identifiers=["age", "zip"], k=5, algorithm="mdav") as release:
        (exact,) = release.measure(["kl_divergence"])
        monkeypatch.setattr(kl_divergence, "_BITS", 64_000)
        (blocks,) = release.measure(["kl_divergence"])
        monkeypatch.setattr(kl_divergence, "PAIRS", 150_000)
        (part,) = release.measure(["kl_divergence"])
    assert blocks.value == pytest.approx(exact.value)
    assert part.value != exact.value
    assert part.value == pytest.approx(exact.value, abs=0.3)


def _bits(x: np.ndarray, y: np.ndarray) -> float:
    counts = np.histogram2d(x, y, bins=[np.arange(-0.5, 10), np.arange(-0.5, 10)])[0] / len(x)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0, keepdims=True)
    here = counts > 0
    return float((counts[here] * np.log2(counts[here] / expected[here])).sum())


def _tenths(values: np.ndarray, of: np.ndarray) -> np.ndarray:
    return np.minimum(((values - of.min()) / (of.max() - of.min()) * 10).astype(int), 9)


@pytest.mark.parametrize("algorithm", ["probabilistic(groups='mondrian')", "probabilistic(groups='mdav')", "mdav"])
def test_numbers_that_occur_once_are_counted_in_intervals(algorithm: str) -> None:
    """Four columns that are nearly the same, and what is left of them in classes of 200 of 600 rows, by hand."""
    draw = np.random.default_rng(5)
    same = draw.normal(0, 1, 600)
    columns = {name: same + draw.normal(0, 0.05, 600) for name in "abcd"}
    ill = np.where(same > 0.5, "yes", "no")
    people = pa.table({**columns, "ill": ill})
    options = {"bounds": "tight", "output": "struct"} if algorithm == "mdav" else {}
    columns_of: dict[str, Any] = {"quasi_identifiers": list("abcd"), "sensitive": ["ill"]}
    with duckanon.anonymize(people, **columns_of, k=200, algorithm=algorithm, **options) as release:
        measured = {m.attribute: m.value for m in release.measure(["mutual_information_loss"])}
        found = release.to_arrow()
    after = {"ill": (found["ill"].to_numpy(zero_copy_only=False) == "yes").astype(int)}
    for name, values in columns.items():
        shown = found[name].to_pylist()
        numbers = np.array([(v["lo"] + v["hi"]) / 2 if isinstance(v, dict) else v for v in shown])
        after[name] = _tenths(numbers, values)
    before = {name: _tenths(v, v) for name, v in columns.items()} | {"ill": (ill == "yes").astype(int)}
    lost = {(a, b): _bits(before[a], before[b]) - _bits(after[a], after[b]) for a, b in combinations("abcd", 2)}
    lost |= {(a, "ill"): _bits(before[a], before["ill"]) - _bits(after[a], after["ill"]) for a in "abcd"}
    assert measured[None] == pytest.approx(np.mean(list(lost.values())))
    assert measured[None] > 0.3
    for name in (*"abcd", "ill"):
        assert measured[name] == pytest.approx(np.mean([v for pair, v in lost.items() if name in pair])), name


def test_suppressed_rows_are_no_distance_away() -> None:
    """Two classes that differ in two of three columns, and two suppressed rows: 2, not 3."""
    people = pa.table({"sex": ["f", "f", "m", "m", "f", "m"], "age": [2, 2, 1, 1, 3, 4], "zip": [5, 6, 5, 6, 7, 8]})
    released = pa.table({"sex": ["f", "f", "m", "m"], "age": [2, 2, 1, 1], "zip": ["*"] * 4})
    names = ["sex", "age", "zip"]
    (found,) = duckanon.measure(people, released, quasi_identifiers=names, metrics=["diameter"])
    assert (found.value, found.normalised) == (2.0, pytest.approx(1 / 3))


@pytest.mark.parametrize("seed", range(40))
def test_counting_pairs_finds_the_largest_distance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    width, size = rng.integers(1, 7), rng.integers(2, 30)
    # Mostly alike, so that the largest distance is seldom all attributes.
    codes = (rng.random((width, size)) < rng.choice([0.05, 0.2, 0.5])) * rng.integers(1, 4, (width, size))
    codes = np.unique(codes, axis=1)
    assert farthest(codes) == max(int((a != b).sum()) for a in codes.T for b in codes.T)


def test_null_is_a_value(engine: DuckDBEngine) -> None:
    """A column of NULL and one value has a bit per row, whether it is spelled out or suppressed."""
    column = [("a", None, 1.0, 2), ("a", "x", 0.0, 2)]
    domain = [("a", "unordered", 1, 2, None, None, 1.0, True)]
    own = {"column_values": column, "domain": domain}
    cells = [(1, "a", "*", 1, 2, None, None)]
    covers = [("a", "*", value, number, n) for _, value, number, n in column]
    whole = total(engine, "entropy", classes=[(1, 4, False)], class_cells=cells, cell_values=covers, **own)
    gone = total(engine, "entropy", classes=[(1, 4, True)], **own)
    assert whole == gone == pytest.approx(4)
    kept = [(1, "a", None, 0, 1, None, None), (2, "a", "x", 0, 1, None, None)]
    covers = [("a", value, value, number, n) for _, value, number, n in column]
    classes = [(1, 2, False), (2, 2, False)]
    assert total(engine, "entropy", classes=classes, class_cells=kept, cell_values=covers, **own) == 0
    assert total(engine, "hellinger", classes=classes, class_cells=kept, **own) == 0


def test_an_untouched_table_of_different_rows_has_lost_nothing() -> None:
    people = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    for m in duckanon.measure(people, people, quasi_identifiers=["a", "b"], k=1):
        if not m.metric.startswith(("discernibility", "average_class_size")):
            assert m.normalised == pytest.approx(0), m


def test_what_is_not_finite_is_not_normalised() -> None:
    for value, worst in ((math.inf, 5.0), (math.nan, 5.0), (1.0, math.inf)):
        assert Metric.normalised(MetricValue(None, value, worst)) is None
