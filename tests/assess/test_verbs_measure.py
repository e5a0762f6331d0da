"""Loss of tables that duckanon did not make is the loss of the release that it made."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import duckanon
from duckanon import Hierarchy
from duckanon.errors import DataError, HierarchyError, ParameterError, RoleError
from tests.effort import share

PEOPLE = pa.table(
    {
        "age": [21, 22, 23, 44, 45, None, 67, 68, 69, 70],
        "zip": ["13053", "13053", "13068", "13068", "14850", "14850", "14853", "14853", None, "14850"],
        "ill": list("abcabcabca"),
    }
)
HIERARCHIES: dict[str, Any] = {"age": Hierarchy.intervals(width=10, factors=[2]), "zip": Hierarchy.mask(levels=4)}


def _same(found: list[Any], expected: list[Any]) -> None:
    assert [(m.metric, m.attribute, m.direction) for m in found] == [
        (m.metric, m.attribute, m.direction) for m in expected
    ]
    for f, e in zip(found, expected, strict=True):
        assert f.value == pytest.approx(e.value), f


_MORE = [pytest.param(k, limit, marks=pytest.mark.slow) for k, limit in ((2, 0.3), (10, 0.0))]


@pytest.mark.parametrize(("k", "limit"), [(1, 0.0), (3, 0.0), (5, 0.3), *_MORE])
@pytest.mark.parametrize("hierarchies", [HIERARCHIES, {}])
@pytest.mark.thinned(3)
def test_the_written_file_has_the_loss_of_its_release(
    tmp_path: Path, k: int, limit: float, hierarchies: dict[str, Any]
) -> None:
    with duckanon.anonymize(
        PEOPLE,
        quasi_identifiers=["age", "zip"],
        sensitive=["ill"],
        hierarchies=hierarchies,
        k=k,
        suppression_limit=limit,
        algorithm="datafly",
    ) as release:
        pq.write_table(release.to_arrow(), tmp_path / "release.parquet")
        found = duckanon.measure(
            PEOPLE,
            tmp_path / "release.parquet",
            quasi_identifiers=["age", "zip"],
            sensitive=["ill"],
            hierarchies=hierarchies,
            k=k,
        )
        _same(found, release.measure())
        _same(duckanon.measure(PEOPLE, release), release.measure())
        _same(duckanon.measure(PEOPLE, release, metrics=["loss"]), release.measure(["loss"]))


@share(0.4)
@given(
    st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 99)), st.sampled_from("abc")), min_size=3, max_size=30),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.5]),
)
def test_a_released_table_measures_as_its_release(rows: list[tuple[int | None, str]], k: int, limit: float) -> None:
    data = pa.table({"a": pa.array([r[0] for r in rows], pa.int64()), "b": [r[1] for r in rows]})
    levels: dict[str, Any] = {"a": Hierarchy.intervals(width=5, factors=[2, 5])}
    with duckanon.anonymize(
        data, quasi_identifiers=["a", "b"], hierarchies=levels, k=k, suppression_limit=limit
    ) as release:
        quick = ["average_class_size", "discernibility", "loss", "ncp", "precision"]
        found = duckanon.measure(
            data, release.to_arrow(), quasi_identifiers=["a", "b"], hierarchies=levels, metrics=quick
        )
        expected = release.measure(quick)
    exact = [m for m in found if m.metric != "precision"]
    _same(exact, [m for m in expected if m.metric != "precision"])
    # A column with nothing but NULL fits several levels: the lowest is taken, which can only raise precision.
    for f, e in zip(found, expected, strict=True):
        assert f.value >= e.value - 1e-9


def test_values_that_a_hierarchy_does_not_know(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("x;letter;*\ny;letter;*\n1;digit;*\n")
    data = pa.table({"a": ["x", "x", "y", "y", "?", "?"]})
    levels = {"a": str(tmp_path / "h.csv")}
    with duckanon.anonymize(data, quasi_identifiers=["a"], hierarchies=levels, k=2, on_unknown="top") as release:
        found = duckanon.measure(data, release.to_arrow(), quasi_identifiers=["a"], hierarchies=levels, k=2)
        # What is published as the top label could be anything, so nobody else can tell which rows became it.
        rowwise = {"kl_divergence", "non_uniform_entropy", "squared_distance_error", "sse", "sse_ratio"}
        _same(found, [m for m in release.measure() if m.metric not in rowwise])


def test_levels_may_differ_within_a_column() -> None:
    released = pa.table({"zip": ["13053", "13053", "130**", "130**", "*"]})
    data = pa.table({"zip": ["13053", "13053", "13068", "13068", "14850"]})
    hierarchies = {"zip": Hierarchy.mask(levels=4)}
    found = duckanon.measure(data, released, quasi_identifiers=["zip"], hierarchies=hierarchies, metrics=["precision"])
    # Levels 0, 0, 2, 2 and the top, 5, of five.
    assert found[0].value == pytest.approx(1 - (2 / 5 + 2 / 5 + 1) / 5)


def test_cells_that_nobody_understands_leave_the_classes() -> None:
    released = pa.table({"age": ["x", "x", "y"]})
    found = {m.metric: m.value for m in duckanon.measure(PEOPLE, released, quasi_identifiers=["age"])}
    assert found == {"discernibility": 4 + 1 + 7 * 10, "discernibility_star": 5, "average_class_size": 10 / 3}
    with pytest.raises(HierarchyError, match=r"2 of 2 labels of 'age' \(3 rows\) .*: give the hierarchies"):
        duckanon.measure(PEOPLE, released, quasi_identifiers=["age"], metrics=["loss"])


# Boxes and clusters of others

NUMBERS = pa.table({"a": pa.array([1, 2, 2, 5, 9, None], pa.int64()), "b": ["x", "y", "y", "z", "x", "z"]})


def _value(released: dict[str, list[Any]], metric: str, attribute: str | None = None, **options: Any) -> float:
    found = duckanon.measure(
        NUMBERS, pa.table(released), quasi_identifiers=list(released), metrics=[metric], connection=None, **options
    )
    (value,) = [m.value for m in found if m.attribute == attribute]
    return value


@pytest.mark.parametrize(
    ("text", "leaves"),
    [
        ("[1, 5]", 3),
        ("[1,5)", 2),
        ("(1, 5]", 2),
        ("(1, 5)", 1),
        ("[1-5]", 3),
        ("1-5", 3),
        ("1~5", 3),
        ("1..9", 4),
        ("-3.5-1", 1),
        ("{1, 5}", 2),
        ("{1, 5, 9}", 3),
        ("1,5", 2),
        ("2,6", 2),
        ("5.0", 1),
        ("4.25", 1),
        ("*", 5),
        ("1", 1),
    ],
)
@pytest.mark.thinned(3)
def test_texts_of_numbers(text: str, leaves: int) -> None:
    """Four numbers and NULL are the domain; an interval stands for the values that lie in it."""
    assert _value({"a": [text] * 6}, "ambiguity") == pytest.approx(leaves)


@pytest.mark.parametrize(
    ("text", "leaves"), [("{x, y}", 2), ("x,y", 2), ("x~z", 2), ("['x', 'y', 'z']", 3), ("*", 3), ("x", 1)]
)
def test_texts_of_words(text: str, leaves: int) -> None:
    assert _value({"b": [text] * 6}, "ambiguity") == pytest.approx(leaves)


def test_texts_of_dates_and_of_digits() -> None:
    days = pa.table({"d": pa.array([0, 1, 10, 31], pa.date32()), "zip": ["13053", "13068", "14850", "14853"]})
    released = pa.table(
        {"d": ["[1970-01-01, 1970-01-11)"] * 2 + ["1970-01-11-1970-02-01"] * 2, "zip": ["13053-13068"] * 4}
    )
    found = {(m.metric, m.attribute): m.value for m in duckanon.measure(days, released, quasi_identifiers=["d", "zip"])}
    assert found["ncp", "d"] == pytest.approx((10 + 10 + 21 + 21) / 31)
    assert found["nllm", "zip"] == pytest.approx(1 / 3)


def test_a_mean_is_a_point_and_nothing_covers_it() -> None:
    released = {"a": ["1.5", "1.5", "1.5", "7", "7", "7"]}
    assert _value(released, "ncp", "a") == 0
    assert _value(released, "loss") == 0
    assert _value(released, "entropy") == 0
    # Which row became which is not known, so nothing that follows rows is offered.
    offered = {m.metric for m in duckanon.measure(NUMBERS, pa.table(released), quasi_identifiers=["a"])}
    assert "hellinger" in offered
    assert not offered & {"kl_divergence", "squared_distance_error", "non_uniform_entropy", "sse", "sse_ratio"}
    with pytest.raises(ParameterError, match="'kl_divergence' cannot be computed here: it needs to know which"):
        _value(released, "kl_divergence")


def test_boxes_and_their_levels() -> None:
    """Cells of a multidimensional release, beside a hierarchy: the level of the lowest label over what they cover."""
    released = {"b": ["{x, y}", "{x, y}", "{x, y}", "z", "{x, z}", "*"]}
    tree = Hierarchy.from_table(pa.table({"0": ["x", "y", "z"], "1": ["v", "v", "w"], "2": ["*", "*", "*"]}))
    # Levels 1, 1, 1, 0, 2 and 2, of 2.
    assert _value(released, "precision", hierarchies={"b": tree}) == pytest.approx(1 - 3.5 / 6)
    assert _value(released, "height", hierarchies={"b": tree}) == pytest.approx(7 / 6)
    # Without a hierarchy lost leaves take the place of levels.
    assert _value(released, "precision") == pytest.approx(1 - (0.5 * 4 + 1) / 6)


def test_rows_are_followed_into_boxes_that_do_not_overlap() -> None:
    released = {"a": ["1-2", "1-2", "1-2", "5-9", "5-9"], "b": ["{x, y}"] * 3 + ["{x, z}"] * 2}
    # Means 1.5 and 0.5 for the first class, 7 and 1 (ranks of x and z: 0 and 2) for the second; the NULL is suppressed.
    first = 3 * math.sqrt(0.5**2 + 0.5**2)
    second = 2 * math.sqrt(2**2 + 1**2)
    assert _value(released, "squared_distance_error") == pytest.approx(first + second + abs(2 - 1))
    assert _value(released, "kl_divergence") > 0


def test_what_does_not_fit_is_refused() -> None:
    released = pa.table({"age": ["[20, 30)", "secret"]})
    with pytest.raises(HierarchyError, match=r"1 of 2 labels of 'age' \(1 rows\)") as caught:
        duckanon.measure(PEOPLE, released, quasi_identifiers=["age"], hierarchies={})
    assert "secret" not in str(caught.value)
    with pytest.raises(DataError, match="10 rows, the original only 2"):
        duckanon.measure(released, PEOPLE, quasi_identifiers=["age"])
    with pytest.raises(RoleError, match="no quasi-identifier"):
        duckanon.measure(PEOPLE, released, quasi_identifiers=["age"], hierarchies=HIERARCHIES)
    with pytest.raises(RoleError, match="Name the quasi-identifiers"):
        duckanon.measure(PEOPLE, released)
    with pytest.raises(ParameterError, match="Did you mean 'loss'"):
        duckanon.measure(PEOPLE, released, quasi_identifiers=["age"], metrics=["los"])
    with pytest.raises(ParameterError, match="it needs k"):
        duckanon.measure(PEOPLE, released, quasi_identifiers=["age"], metrics=["average_class_size_lefevre"])
    with pytest.raises(ParameterError, match="it needs a sensitive column"):
        duckanon.measure(PEOPLE, released, quasi_identifiers=["age"], metrics=["classification"])
    with pytest.raises(ParameterError, match="'k' parameter"):
        duckanon.measure(PEOPLE, released, quasi_identifiers=["age"], k=0)


@pytest.mark.parametrize("text", ["[100, 200]", "-3.5--1", "(1, 5e-1)", "1e400-1e401", "1e400"])
def test_an_interval_without_any_value_in_it_is_no_generalization(text: str) -> None:
    """Not even one of the column's values can have become it; counted as a point it would have lost nothing."""
    original, released = pa.table({"a": [1, 5, 6, 9]}), pa.table({"a": [text] * 4})
    with pytest.raises(HierarchyError, match="1 of 1 labels of 'a'"):
        duckanon.measure(original, released, quasi_identifiers=["a"], metrics=["loss"])


def test_widths_beyond_the_largest_number_are_still_shares() -> None:
    original = pa.table({"a": [1.7e308, -1.7e308, 0.0, 5.0], "b": [1, 2, 3, 4]})
    released = pa.table({"a": ["*"] * 4, "b": [1, 2, 3, 4]})
    found = duckanon.measure(original, released, quasi_identifiers=["a", "b"])
    assert {m.value for m in found if (m.metric, m.attribute) in {("gcp", "a"), ("nllm", "a")}} == {1.0}
    for m in found:
        assert m.value is None or not math.isnan(m.value), m
        assert m.normalised is None or -1e-9 <= m.normalised <= 1 + 1e-9, m


@pytest.mark.parametrize("wrong", ["loss", 5, [5], [None]])
def test_metrics_are_a_list_of_names(wrong: Any) -> None:
    with pytest.raises(ParameterError, match="metrics must be a list of names"):
        duckanon.measure(PEOPLE, PEOPLE, quasi_identifiers=["age"], metrics=wrong)


def test_hierarchies_are_a_mapping() -> None:
    with pytest.raises(ParameterError, match="hierarchies must be a mapping"):
        duckanon.measure(PEOPLE, PEOPLE, quasi_identifiers=["age"], hierarchies=5)  # type: ignore[arg-type]
