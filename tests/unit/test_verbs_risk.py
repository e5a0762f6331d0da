"""privacy and risk, beside counting by hand."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import duckanon
from duckanon.errors import DataError, ParameterError, RoleError

PEOPLE = pa.table(
    {
        "age": [30, 30, 30, None, None, 50],
        "sex": ["f", "f", "f", "m", "m", "m"],
        "person": [1, 1, 2, 3, None, 4],
    }
)
cells = st.one_of(st.none(), st.integers(0, 3))
tables = st.lists(st.tuples(cells, cells), min_size=1, max_size=30)


def _table(rows: list[tuple[int | None, int | None]]) -> pa.Table:
    return pa.table({"a": pa.array([r[0] for r in rows], pa.int64()), "b": pa.array([r[1] for r in rows], pa.int64())})


def test_privacy_has_a_row_for_k_anonymity() -> None:
    (row,) = duckanon.privacy(PEOPLE, quasi_identifiers=["age", "sex"]).to_pylist()
    assert row == {
        "model": "k_anonymity", "attribute": None, "parameter": "k", "value": 1.0, "unit": "rows",
        "classes": 3, "smallest": 1, "largest": 3, "singletons": 1,
    }  # fmt: skip


def test_privacy_counts_persons() -> None:
    (row,) = duckanon.privacy(PEOPLE, quasi_identifiers=["sex"], entity_key="person").to_pylist()
    assert (row["unit"], row["value"], row["largest"]) == ("persons", 2.0, 3)


@settings(max_examples=40)
@given(tables)
def test_privacy_is_what_check_says(rows: list[tuple[int | None, int | None]]) -> None:
    data = _table(rows)
    k = int(duckanon.privacy(data, quasi_identifiers=["a", "b"])["value"][0].as_py())
    assert k == min(Counter(rows).values())
    assert duckanon.check(data, quasi_identifiers=["a", "b"], k=k)[0].holds
    assert not duckanon.check(data, quasi_identifiers=["a", "b"], k=k + 1)[0].holds


@settings(max_examples=40)
@given(tables, st.sampled_from([0.0, 0.1, 0.2, 1 / 3, 0.5, 1.0]))
def test_prosecutor_by_hand(rows: list[tuple[int | None, int | None]], threshold: float) -> None:
    found = duckanon.risk(_table(rows), quasi_identifiers=["a", "b"], threshold=threshold)
    sizes = Counter(rows)
    risks = [1 / sizes[row] for row in rows]
    assert found.prosecutor.at_risk == pytest.approx(sum(r > threshold for r in risks) / len(rows))
    assert found.prosecutor.maximum == pytest.approx(max(risks))
    assert found.prosecutor.average == pytest.approx(sum(risks) / len(rows))
    assert found.sample_unique == pytest.approx(sum(r == 1 for r in risks) / len(rows))
    assert found.journalist is None
    assert found.marketer == found.prosecutor.average


@settings(max_examples=40)
@given(tables, tables)
def test_journalist_and_marketer_by_hand(
    rows: list[tuple[int | None, int | None]], others: list[tuple[int | None, int | None]]
) -> None:
    found = duckanon.risk(_table(rows), quasi_identifiers=["a", "b"], population=_table(rows + others), threshold=0.3)
    sample, population = Counter(rows), Counter(rows + others)
    marketer = sum(sample[c] / population[c] for c in sample) / len(rows)
    assert found.journalist is not None
    assert found.journalist.at_risk == pytest.approx(sum(1 / population[r] > 0.3 for r in rows) / len(rows))
    assert found.journalist.maximum == pytest.approx(1 / min(population[c] for c in sample))
    assert found.journalist.average == pytest.approx(max(len(sample) / sum(population[c] for c in sample), marketer))
    assert found.marketer == pytest.approx(marketer)
    assert found.population_unique == pytest.approx(sum(population[r] == 1 for r in rows) / len(rows))


def test_a_threshold_of_one_fifth_allows_classes_of_five() -> None:
    data = pa.table({"a": [1] * 5})
    assert duckanon.risk(data, quasi_identifiers=["a"], threshold=0.2).prosecutor.at_risk == 0


def test_a_release_knows_its_roles_and_persons() -> None:
    data = pa.table({"age": [30, 31, 32, 60, 61, 62], "person": [1, 1, 2, 3, 4, 5]})
    with duckanon.anonymize(data, quasi_identifiers=["age"], entity_key="person", k=2) as release:
        found = duckanon.risk(release)
        assert (found.unit, found.smallest, found.members) == ("persons", 2, 5)
        (row,) = duckanon.privacy(release).to_pylist()
        assert (row["unit"], row["value"]) == ("persons", 2.0)
        assert duckanon.privacy(release.to_arrow(), quasi_identifiers=["age"])["value"][0].as_py() == 3.0


def test_labels_beside_numbers_are_compared_as_text() -> None:
    released = pa.table({"age": ["[30, 40)", "[30, 40)"]})
    with pytest.raises(DataError, match="1 of 1 classes"):
        duckanon.risk(released, quasi_identifiers=["age"], population=pa.table({"age": [31, 32]}))
    population = pa.table({"AGE": ["[30, 40)"] * 4})
    assert duckanon.risk(released, quasi_identifiers=["age"], population=population).marketer == 0.25


def test_numbers_of_other_types_are_the_same_numbers() -> None:
    population = pa.table({"age": [30.0, 30.0]})
    assert duckanon.risk(pa.table({"age": [30]}), quasi_identifiers=["age"], population=population).marketer == 0.5


def test_quotes_and_sql_in_names_just_work() -> None:
    name = 'a"; DROP TABLE x; --'
    assert duckanon.risk(pa.table({name: [1, 1]}), quasi_identifiers=[name]).smallest == 2
    assert duckanon.privacy(pa.table({name: [1, 1], "s'": [1, 2]}), quasi_identifiers=[name], sensitive=["s'"]).num_rows


def test_bad_input_is_refused() -> None:
    empty = pa.table({"a": pa.array([], pa.int64())})
    for verb in (duckanon.risk, duckanon.privacy):
        with pytest.raises(DataError, match="no rows"):
            verb(empty, quasi_identifiers=["a"])
        with pytest.raises(RoleError, match="Did you mean 'age'"):
            verb(PEOPLE, quasi_identifiers=["agee"])
        with pytest.raises(RoleError, match="Name the quasi-identifiers"):
            verb(PEOPLE)
    for threshold in (-0.1, 1.1, True, "0.2"):
        with pytest.raises(ParameterError, match="threshold"):
            duckanon.risk(PEOPLE, quasi_identifiers=["age"], threshold=threshold)  # type: ignore[arg-type]


def test_risk_is_plain_values() -> None:
    found = duckanon.risk(PEOPLE, quasi_identifiers=["age", "sex"], population=PEOPLE).to_dict()
    assert found["prosecutor"] == {"at_risk": 1.0, "maximum": 1.0, "average": 0.5}
    assert found["journalist"]["maximum"] == 1.0
