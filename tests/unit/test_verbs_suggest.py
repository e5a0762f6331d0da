"""Suggestions: figures by hand, roles by name and figures, and no value of the data."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import duckanon
from duckanon.errors import DataError, ParameterError

N = 400
PEOPLE = pa.table(
    {
        "patient_id": list(range(N)),
        "lastName": [f"n{i % 50}" for i in range(N)],
        "e-mail": [f"m{i}" for i in range(N)],
        "BirthDate": [f"d{i % 300}" for i in range(N)],
        "ward_id": [i % 8 for i in range(N)],
        "diagnosis_code": [f"c{i}" for i in range(N)],
        "token": [f"t{i}" for i in range(N)],
        "temperature": [36 + i / N for i in range(N)],
        "hospital": ["only one"] * N,
        "flag": [i == 0 for i in range(N)],
        "empty": pa.array([None] * N, pa.int32()),
    }
)


def test_roles_and_reasons() -> None:
    found = {r["column"]: r for r in duckanon.suggest(PEOPLE).to_pylist()}
    assert list(found) == PEOPLE.column_names
    assert {name: r["role"] for name, r in found.items()} == {
        "patient_id": "identifier",
        "lastName": "identifier",
        "e-mail": "identifier",
        "BirthDate": "quasi_identifier",
        "ward_id": "quasi_identifier",
        "diagnosis_code": "sensitive",
        "token": "identifier",
        "temperature": "quasi_identifier",
        "hospital": "insensitive",
        "flag": "insensitive",
        "empty": "insensitive",
    }
    assert all(r["reason"] for r in found.values())
    assert not any(r["approximate"] for r in found.values())
    assert found["empty"]["null_share"] == 1


@settings(max_examples=40)
@given(st.lists(st.one_of(st.none(), st.integers(0, 4)), min_size=1, max_size=25))
def test_distinction_and_separation_by_hand(values: list[int | None]) -> None:
    (row,) = duckanon.suggest(pa.table({"a": pa.array(values, pa.int64())})).to_pylist()
    pairs = list(combinations(values, 2))
    assert row["distinct"] == len(Counter(values))
    assert row["distinction"] == pytest.approx(len(set(values)) / len(values))
    assert row["separation"] == pytest.approx(sum(a != b for a, b in pairs) / len(pairs) if pairs else 0)
    assert row["null_share"] == pytest.approx(values.count(None) / len(values))


def test_a_larger_table_is_sampled_and_says_so() -> None:
    found = {r["column"]: r for r in duckanon.suggest(PEOPLE, limit=100).to_pylist()}
    assert all(r["approximate"] and r["rows"] == N for r in found.values())
    assert found["ward_id"]["distinct"] == pytest.approx(8, rel=0.35)  # an estimate
    assert found["ward_id"]["separation"] == pytest.approx(7 / 8, abs=0.05)
    assert found["token"]["role"] == "identifier"


def test_members_of_an_enum_are_data() -> None:
    found = duckanon.suggest("SELECT 'secret'::ENUM('secret', 'hidden') AS e, [{'x': 'secret'}] AS nested")
    assert found.column("type").to_pylist() == ["ENUM", "list"]
    assert "secret" not in str(found.to_pylist())
    assert "hidden" not in str(found.to_pylist())


def test_names_with_sql_in_them() -> None:
    assert duckanon.suggest(pa.table({'x"; --': [1, 2]})).column("column").to_pylist() == ['x"; --']


def test_bad_input_is_refused() -> None:
    with pytest.raises(DataError, match="no rows"):
        duckanon.suggest(pa.table({"a": pa.array([], pa.int64())}))
    with pytest.raises(ParameterError, match="limit"):
        duckanon.suggest(PEOPLE, limit=0)
