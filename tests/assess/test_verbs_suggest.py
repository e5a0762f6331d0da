"""Suggestions: figures by hand, roles by name and figures, and no value of the data."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import duckanon
from duckanon.assess.disclosure import identifying_sets
from duckanon.errors import DataError, ParameterError, RoleError
from tests.effort import share

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


def test_quasi_identifiers_are_ranked_birth_sex_and_place_first() -> None:
    people = pa.table(
        {
            "shoe": [i % 40 for i in range(N)],
            "education": [i % 7 for i in range(N)],
            "sex": [i % 2 for i in range(N)],
            "zip": [i % 90 for i in range(N)],
            "salary": [i % 3 for i in range(N)],
        }
    )
    ranks = {row["column"]: row["rank"] for row in duckanon.suggest(people).to_pylist()}
    assert ranks == {"zip": 1, "sex": 2, "education": 3, "shoe": 4, "salary": None}
    assert duckanon.suggest(people).to_arrow().column_names[:4] == ["column", "role", "rank", "reason"]


def test_a_ready_made_hierarchy_is_proposed_for_a_quasi_identifier() -> None:
    lands = ["France", "Spain", "Atlantis"] * 5
    found = duckanon.suggest(pa.table({"country": lands, "shoe": list(range(15)), "health": lands})).to_pylist()
    told = [row["hierarchy"] for row in found]
    assert told == ["countries matches 2 of 3 values", None, None]


@pytest.mark.parametrize(
    ("name", "values", "key"),
    [
        ("patient_id", [i // 3 for i in range(N)], True),
        ("customerId", [f"c{i % 50}" for i in range(N)], True),
        ("id", [i // 2 for i in range(N)], True),
        ("patient_id", list(range(N)), False),  # nobody has two rows
        ("patient_id", [None, *range(N - 1)], False),
        ("patient_id", [i % 5 for i in range(N)], False),  # too few to be persons
        ("product_id", [i // 3 for i in range(N)], False),
        ("patient_age", [i // 3 for i in range(N)], False),
        ("patient_diagnosis_code", [i // 3 for i in range(N)], False),
    ],
)
def test_the_key_of_a_person_that_repeats_is_an_entity_key(name: str, values: list[Any], key: bool) -> None:
    table = pa.table({"town": [i % 9 for i in range(N)], name: values})
    found = {row["column"]: row for row in duckanon.suggest(table).to_pylist()}
    assert (found[name]["role"] == "entity_key") is key
    assert found["town"]["role"] == "quasi_identifier"
    if key:
        assert "who may have several rows" in found[name]["reason"]


@share(0.5)
@given(st.lists(st.one_of(st.none(), st.integers(0, 4)), min_size=1, max_size=25))
def test_distinction_and_separation_by_hand(values: list[int | None]) -> None:
    (row,) = duckanon.suggest(pa.table({"a": pa.array(values, pa.int64())})).to_pylist()
    pairs = list(combinations(values, 2))
    assert row["distinct"] == len(Counter(values))
    assert row["distinction"] == pytest.approx(len(set(values)) / len(values))
    assert row["separation"] == pytest.approx(sum(a != b for a, b in pairs) / len(pairs) if pairs else 0)
    assert row["null_share"] == pytest.approx(values.count(None) / len(values))


def test_a_larger_table_is_sampled_and_says_so() -> None:
    found = {r["column"]: r for r in duckanon.suggest(PEOPLE, sample_size=100).to_pylist()}
    assert all(r["approximate"] and r["rows"] == N for r in found.values())
    assert found["ward_id"]["distinct"] == pytest.approx(8, rel=0.35)  # an estimate
    assert found["ward_id"]["separation"] == pytest.approx(7 / 8, abs=0.05)
    assert found["token"]["role"] == "identifier"


def test_members_of_an_enum_are_data() -> None:
    found = duckanon.suggest("SELECT 'secret'::ENUM('secret', 'hidden') AS e, [{'x': 'secret'}] AS nested")
    assert [row["type"] for row in found] == ["ENUM", "list"]
    assert "secret" not in str(found.to_pylist())
    assert "hidden" not in str(found.to_pylist())


def test_names_with_sql_in_them() -> None:
    assert duckanon.suggest(pa.table({'x"; --': [1, 2]})).to_arrow().column("column").to_pylist() == ['x"; --']


def test_bad_input_is_refused() -> None:
    with pytest.raises(DataError, match="no rows"):
        duckanon.suggest(pa.table({"a": pa.array([], pa.int64())}))
    with pytest.raises(ParameterError, match="sample_size"):
        duckanon.suggest(PEOPLE, sample_size=0)


# What the values look like


def luhn(digits: str) -> str:
    """Return a number with its check digit."""
    doubled = [int(d) * (2 - i % 2) for i, d in enumerate(reversed(digits))]
    return digits + str(-sum(d // 10 + d % 10 for d in doubled) % 10)


def iban(country: str, account: str) -> str:
    digits = "".join(str(int(c, 36)) for c in account + country + "00")
    return f"{country}{98 - int(digits) % 97:02d}{account}"


LOOKS = {
    "mail address": [f"user.{i}@mail{i % 7}.example.org" for i in range(50)],
    "web address": [f"https://example.org/{i}?q=1" for i in range(50)],
    "network address": [f"10.0.{i}.{255 - i}" for i in range(40)] + [f"2001:db8::{i:x}:1" for i in range(10)],
    "credit card": [luhn(f"4{i * 7919:014d}") for i in range(50)],
    "IBAN": [iban("DE", f"{i * 104729:018d}") for i in range(40)] + [iban("GB", f"WEST{i:014d}") for i in range(10)],
    "national id": [f"{100 + i}-{10 + i}-{1000 + i}" for i in range(50)],
    "UUID": [f"{i:08x}-0000-4000-8000-{i:012x}" for i in range(50)],
    "phone number": [f"+49 89 {1000000 + i}" for i in range(25)] + [f"(089) {100000 + i}" for i in range(25)],
    "person name": [
        f"{n}{'abcdefghij'[i % 10]}" for i, n in enumerate(["Maria Xy", "Dr. JOHN Y. X", "Yx, Jan ", "Äöü", "Y "] * 10)
    ],
}
OTHERS = {
    "dates": [f"2020-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(50)],
    "numbers": [str(10**14 + i * 12345677) for i in range(50)],  # one in ten has a right check digit
    "wrong cards": [
        luhn(f"4{i * 7919:014d}")[:-1] + str((int(luhn(f"4{i * 7919:014d}")[-1]) + 1) % 10) for i in range(50)
    ],
    "wrong ibans": ["DE00" + f"{i * 104729:018d}" for i in range(50)],
    "zips": [f"{10000 + i * 37 % 400}" for i in range(50)],
    "cities": ["Berlin", "New York", "San Juan de Sur", "Oslo", "Rome"] * 10,
    "codes": [f"ICD-{i}" for i in range(50)],
    "times": [f"{i % 24:02d}:{i % 60:02d}" for i in range(50)],
}


def test_identifiers_are_recognized_by_content() -> None:
    table = pa.table({f"x{i}": values for i, values in enumerate(LOOKS.values())})
    found = duckanon.suggest(table, max_size=0).to_pylist()
    assert [row["content"] for row in found] == list(LOOKS)
    assert {row["role"] for row in found} == {"identifier"}
    assert all(row["content_share"] == 1.0 for row in found[:-1])
    assert found[-1]["content_share"] == pytest.approx(0.6)


def test_other_values_are_not() -> None:
    table = pa.table({f"x{i}": values for i, values in enumerate(OTHERS.values())})
    assert dict(
        zip(OTHERS, duckanon.suggest(table, max_size=0).to_arrow()["content"].to_pylist(), strict=True)
    ) == dict.fromkeys(OTHERS)


def test_card_numbers_may_be_numbers() -> None:
    (row,) = duckanon.suggest(pa.table({"x": [int(v) for v in LOOKS["credit card"]]})).to_pylist()
    assert (row["content"], row["content_share"], row["role"]) == ("credit card", 1.0, "identifier")


def test_values_that_are_null_do_not_count() -> None:
    values = [v if i % 2 else None for i, v in enumerate(LOOKS["mail address"])]
    (row,) = duckanon.suggest(pa.table({"x": values})).to_pylist()
    assert (row["content"], row["content_share"], row["null_share"]) == ("mail address", 1.0, 0.5)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("Nachname", "identifier"), ("prénom", "identifier"), ("Apellidos", "identifier"), ("imię", "identifier"),
        ("förnamn", "identifier"), ("codice_fiscale", "identifier"), ("straße", "identifier"),
        ("Geburtsdatum", "quasi_identifier"), ("code_postal", "quasi_identifier"), ("Größe", "quasi_identifier"),
        ("fecha_nacimiento", "quasi_identifier"), ("Gehalt", "sensitive"), ("maladie", "sensitive"),
        ("stipendio", "sensitive"), ("blah", "quasi_identifier"),
    ],
)  # fmt: skip
@pytest.mark.thinned(3)
def test_names_in_several_languages(name: str, role: str) -> None:
    (row,) = duckanon.suggest(pa.table({name: [1, 1, 2, 2, 3, 3]})).to_pylist()
    assert row["role"] == role


# Minimal sets


def minimal(rows: list[tuple[int, ...]], by: str, threshold: float, size: int) -> set[tuple[int, ...]]:
    """All sets by all rows and pairs; then those without a smaller one in them."""
    wide = range(len(rows[0]))
    found: list[tuple[int, ...]] = []
    for many in range(1, size + 1):
        for one in combinations(wide, many):
            seen = Counter(tuple(row[j] for j in one) for row in rows)
            pairs = [[tuple(r[j] for j in one) for r in pair] for pair in combinations(rows, 2)]
            share = {
                "uniqueness": sum(n == 1 for n in seen.values()) / len(rows),
                "distinction": len(seen) / len(rows),
                "separation": sum(a != b for a, b in pairs) / len(pairs) if pairs else 0,
            }[by]
            if share >= threshold and not any(set(f) <= set(one) for f in found):
                found.append(one)
    return set(found)


@share(1)
@given(
    st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=2, max_size=14),
    st.sampled_from(["uniqueness", "distinction", "separation"]),
    st.sampled_from([0.25, 0.5, 0.8, 1.0]),
    st.integers(1, 4),
)
def test_minimal_sets_are_all_of_them(rows: list[tuple[int, ...]], by: str, threshold: float, size: int) -> None:
    table = pa.table({name: [row[j] for row in rows] for j, name in enumerate("abcd")})
    found = identifying_sets(table, by=by, threshold=threshold, max_size=size).to_pylist()
    assert {tuple("abcd".index(c) for c in row["columns"]) for row in found} == minimal(rows, by, threshold, size)
    assert all(row[by] >= threshold and not row["approximate"] for row in found)


def test_sets_of_a_large_table_are_sampled_but_not_fooled() -> None:
    n = 40_000
    columns = "i AS id, i % 200 AS a, i // 200 AS b, hash(i) % 100 AS c, hash(i + 1) % 150 AS d"
    query = f"SELECT {columns} FROM range({n}) r(i)"
    found = identifying_sets(query, sample_size=2000, threshold=0.9).to_pylist()
    assert [row["columns"] for row in found[:2]] == [["id"], ["a", "b"]]
    assert all(row["approximate"] for row in found)
    # 15,000 combinations of 40,000 rows: hardly one row is alone, though in a sample of 2,000 nearly all are.
    assert ["c", "d"] not in [row["columns"] for row in found]
    sampled = identifying_sets(f"SELECT * FROM ({query}) LIMIT 2000", threshold=0.8).to_pylist()
    assert ["c", "d"] in [row["columns"] for row in sampled]
    assert identifying_sets(query, sample_size=2000, threshold=0.9).to_pylist() == found


def test_suggest_names_the_sets_of_each_column() -> None:
    table = pa.table(
        {"email": LOOKS["mail address"], "p": [i % 10 for i in range(50)], "q": [i // 10 for i in range(50)]}
    )
    found = {row["column"]: row for row in duckanon.suggest(table).to_pylist()}
    assert found["email"]["minimal_sets"] == []  # never published
    assert found["p"]["minimal_sets"] == found["q"]["minimal_sets"] == [["p", "q"]]
    assert all(row["minimal_sets"] == [] for row in duckanon.suggest(table, max_size=1).to_pylist())


def test_very_many_columns_are_not_searched_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duckanon.assess.identifying_sets._MOST", 30)
    table = pa.table({f"c{j}": [(i * (j + 3)) % 9 for i in range(60)] for j in range(12)})
    found = identifying_sets(table, threshold=0.5, by="separation", max_size=3)
    assert int(found.schema.metadata[b"assessed"]) <= 30
    none = identifying_sets(table, threshold=1, max_size=3)
    assert int(none.schema.metadata[b"left_out"]) > 0


def test_wrong_searches_are_refused() -> None:
    for wrong, message in (
        ({"by": "unique"}, "Did you mean 'uniqueness'"),
        ({"threshold": 0}, "threshold"),
        ({"max_size": 0}, "max_size"),
        ({"sample_size": 1}, "sample_size"),
    ):
        with pytest.raises(ParameterError, match=message):
            identifying_sets(PEOPLE, **wrong)  # type: ignore[arg-type]
    with pytest.raises(RoleError, match="Did you mean 'token'"):
        identifying_sets(PEOPLE, columns=["tokn"])
    with pytest.raises(DataError, match="no rows"):
        identifying_sets(pa.table({"a": pa.array([], pa.int64())}))


def test_no_value_in_the_suggestions_or_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", logger="duckanon"):
        found = duckanon.suggest(pa.table({"x": [f"Canary{i} Maria" for i in range(9)]}))
    assert "Canary" not in str(found.to_pylist())
    assert "Canary" not in caplog.text


@pytest.mark.parametrize("wrong", [[], "age", [5], ()])
def test_columns_are_a_list_of_names(wrong: Any) -> None:
    with pytest.raises(RoleError, match="list of at least one column name"):
        identifying_sets(PEOPLE, columns=wrong)


def test_every_parameter_can_be_written_in_sql() -> None:
    """A reserved word, such as limit, would be a syntax error before a colon and an equals sign."""
    with duckanon.connect() as con:
        con.execute("CREATE TABLE people AS SELECT range AS a, range % 7 AS b FROM range(300)")
        for verb in ("suggest", "identifying_sets"):
            call = f"FROM {verb}('people', max_size := 2, by := 'distinction', threshold := 0.9, sample_size := 100)"
            assert con.execute(call).fetchall()
