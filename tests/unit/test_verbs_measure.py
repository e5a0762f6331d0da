"""Loss of tables that duckanon did not make is the loss of the release that it made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import duckanon
from duckanon import Hierarchy
from duckanon.errors import DataError, HierarchyError, ParameterError, RoleError

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


@pytest.mark.parametrize("k", [1, 2, 3, 5, 10])
@pytest.mark.parametrize("limit", [0.0, 0.3])
@pytest.mark.parametrize("hierarchies", [HIERARCHIES, {}])
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
    ) as release:
        pq.write_table(release.to_arrow(), tmp_path / "release.parquet")
        found = duckanon.measure(
            PEOPLE, tmp_path / "release.parquet", quasi_identifiers=["age", "zip"], hierarchies=hierarchies
        )
        _same(found, release.measure())
        _same(duckanon.measure(PEOPLE, release), release.measure())
        _same(duckanon.measure(PEOPLE, release, metrics=["loss"]), release.measure(["loss"]))


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 99)), st.sampled_from("abc")), min_size=3, max_size=30),
    st.integers(1, 3),
    st.sampled_from([0.0, 0.5]),
)
def test_generated_tables(rows: list[tuple[int | None, str]], k: int, limit: float) -> None:
    data = pa.table({"a": pa.array([r[0] for r in rows], pa.int64()), "b": [r[1] for r in rows]})
    levels: dict[str, Any] = {"a": Hierarchy.intervals(width=5, factors=[2, 5])}
    with duckanon.anonymize(
        data, quasi_identifiers=["a", "b"], hierarchies=levels, k=k, suppression_limit=limit
    ) as release:
        found = duckanon.measure(data, release.to_arrow(), quasi_identifiers=["a", "b"], hierarchies=levels)
        expected = release.measure()
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
        found = duckanon.measure(data, release.to_arrow(), quasi_identifiers=["a"], hierarchies=levels)
        _same(found, release.measure())


def test_levels_may_differ_within_a_column() -> None:
    released = pa.table({"zip": ["13053", "13053", "130**", "130**", "*"]})
    data = pa.table({"zip": ["13053", "13053", "13068", "13068", "14850"]})
    hierarchies = {"zip": Hierarchy.mask(levels=4)}
    found = duckanon.measure(data, released, quasi_identifiers=["zip"], hierarchies=hierarchies, metrics=["precision"])
    # Levels 0, 0, 2, 2 and the top, 5, of five.
    assert found[0].value == pytest.approx(1 - (2 / 5 + 2 / 5 + 1) / 5)


def test_without_hierarchies_only_classes_are_measured() -> None:
    released = pa.table({"age": ["x", "x", "y"]})
    found = {m.metric: m.value for m in duckanon.measure(PEOPLE, released, quasi_identifiers=["age"])}
    assert found == {"discernibility": 4 + 1 + 7 * 10, "average_class_size": 10 / 3}
    with pytest.raises(ParameterError, match="give the hierarchies"):
        duckanon.measure(PEOPLE, released, quasi_identifiers=["age"], metrics=["loss"])


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
