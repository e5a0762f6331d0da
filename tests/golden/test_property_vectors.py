"""Dewri et al. 2009: the tables T1, T3a, T3b and T4, their property vectors, and every number that the paper states."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pyarrow as pa
import pytest

import duckanon
from duckanon.assess import comparison

# Table 1, rows 1 to 10.
ZIP = ["13053", "13268", "13268", "13053", "13253", "13253", "13250", "13052", "13269", "13250"]
AGE = [28, 41, 39, 26, 50, 55, 49, 31, 42, 47]
MARITAL = [
    "CF-Spouse", "Separated", "Never Married", "CF-Spouse", "Divorced",
    "Spouse Absent", "Divorced", "Spouse Present", "Separated", "Separated",
]  # fmt: skip
MARRIED = {"CF-Spouse", "Spouse Present"}
# The status is a quasi-identifier in the paper's tables and sensitive in its section 3: here it is there twice.
T1 = pa.table({"row": list(range(1, 11)), "zip": ZIP, "age": AGE, "marital": MARITAL, "status": MARITAL})

A = [3, 3, 3, 3, 4, 4, 4, 3, 3, 4]
B = [3, 7, 7, 3, 7, 7, 7, 3, 7, 7]
T4 = [4, 6, 4, 4, 6, 6, 6, 4, 6, 6]
UTILITY_A = [2.03, 1.7, 1.7, 2.03, 1.6, 1.6, 1.6, 2.03, 1.7, 1.6]
UTILITY_B = [2.03, 0.97, 0.97, 2.03, 0.97, 0.97, 0.97, 2.03, 0.97, 0.97]


def zips(digits: int) -> dict[str, list[str]]:
    leaves = sorted(set(ZIP))
    return {"zip": leaves, "prefix": [z[:digits] + "*" * (5 - digits) for z in leaves]}


def ages(start: int, width: int) -> dict[str, list[str]]:
    """Intervals (start, start + width], ..., closed on the right as in the paper."""

    def interval(age: int) -> str:
        low = start + (age - start - 1) // width * width
        return f"({low},{low + width}]"

    return {"age": [str(a) for a in sorted(AGE)], "interval": [interval(a) for a in sorted(AGE)]}


def status() -> dict[str, list[str]]:
    leaves = sorted(set(MARITAL))
    return {"marital": leaves, "married": ["Married" if m in MARRIED else "Not Married" for m in leaves]}


def released(k: int, digits: int, start: int, width: int, marital: bool = True) -> duckanon.Release:
    tables = {"zip": zips(digits), "age": ages(start, width)}
    tables["marital"] = status() if marital else {"marital": sorted(set(MARITAL)), "top": ["*"] * 6}
    return duckanon.anonymize(
        T1,
        quasi_identifiers=["zip", "age", "marital"],
        sensitive=["status"],
        insensitive=["row"],
        hierarchies={name: duckanon.Hierarchy.from_table(table) for name, table in tables.items()},
        k=k,
        algorithm="datafly",
    )


@pytest.fixture(scope="module")
def tables() -> Iterator[dict[str, duckanon.Release]]:
    made = {
        "T3a": released(3, 4, 25, 10),
        "T3b": released(3, 3, 15, 20),
        "T4": released(4, 2, 20, 20, marital=False),
    }
    yield made
    for release in made.values():
        release.close()


def vector(release: duckanon.Release, name: str) -> list[float]:
    return comparison.vectors(release, [name]).column(1).to_pylist()


def test_the_tables_are_those_of_the_paper(tables: dict[str, duckanon.Release]) -> None:
    """Tables 2 and 3, cell by cell; the row numbers are published here only to find the rows again."""
    expected = {
        "T3a": {1: ("1305*", "(25,35]", "Married"), 2: ("1326*", "(35,45]", "Not Married"),
                5: ("1325*", "(45,55]", "Not Married"), 8: ("1305*", "(25,35]", "Married")},
        "T3b": {1: ("130**", "(15,35]", "Married"), 3: ("132**", "(35,55]", "Not Married")},
        "T4": {3: ("13***", "(20,40]", "*"), 2: ("13***", "(40,60]", "*")},
    }  # fmt: skip
    sizes = {"T3a": A, "T3b": B, "T4": T4}
    for name, release in tables.items():
        rows = {r["row"]: (r["zip"], r["age"], r["marital"]) for r in release.to_arrow().to_pylist()}
        assert len(rows) == 10
        assert {row: rows[row] for row in expected[name]} == expected[name]
        same = [sum(other == rows[row] for other in rows.values()) for row in range(1, 11)]
        assert same == sizes[name]


def test_class_sizes_are_those_of_the_paper(tables: dict[str, duckanon.Release]) -> None:
    assert vector(tables["T3a"], "class_size") == A
    assert vector(tables["T3b"], "class_size") == B
    assert vector(tables["T4"], "class_size") == T4


def test_counts_of_the_sensitive_value(tables: dict[str, duckanon.Release]) -> None:
    found = vector(tables["T3a"], "sensitive_count")
    assert found == [2, 2, 1, 2, 2, 1, 2, 1, 2, 1]
    assert comparison.minimum(found) == 1


def test_utilities_are_those_of_the_paper(tables: dict[str, duckanon.Release]) -> None:
    assert [round(u, 2) for u in vector(tables["T3a"], "iyengar_utility")] == UTILITY_A
    assert [round(u, 2) for u in vector(tables["T3b"], "iyengar_utility")] == UTILITY_B


def test_rows_of_a_release_are_those_of_the_source(tables: dict[str, duckanon.Release]) -> None:
    """The owner's key gives the same vectors; and the table of the paper, which is sorted by class, is of no matter."""
    found = comparison.vectors(tables["T3a"], ["class_size"], row_id="row")
    assert found.to_pylist() == [{"row_id": i, "class_size": n} for i, n in enumerate(A, 1)]


def test_unary_indices_of_section_3(tables: dict[str, duckanon.Release]) -> None:
    assert comparison.minimum(tables["T3a"]) == 3
    assert comparison.average(tables["T3a"]) == 3.4


def test_binary_index_of_section_3(tables: dict[str, duckanon.Release]) -> None:
    assert comparison.count_better(tables["T3a"], tables["T3b"]) == 0
    assert comparison.count_better(tables["T3b"], tables["T3a"]) == 7
    assert comparison.better(tables["T3a"], tables["T3b"], by="count_better") == "second"


def test_what_users_3_and_8_would_choose(tables: dict[str, duckanon.Release]) -> None:
    b, four = (vector(tables[name], "class_size") for name in ("T3b", "T4"))
    assert b[7] < four[7]
    assert b[2] > four[2]
    assert comparison.better(b, four, by="dominance") == "incomparable"


def test_coverage_of_section_5_2(tables: dict[str, duckanon.Release]) -> None:
    assert comparison.better(tables["T4"], tables["T3a"], by="coverage") == "first"
    assert comparison.better(tables["T3b"], tables["T4"], by="coverage") == "first"


def test_spread_of_section_5_3() -> None:
    one, two = [2, 2, 3, 4, 5], [3, 2, 4, 2, 3]
    assert comparison.coverage(one, two) == comparison.coverage(two, one) == 3 / 5
    assert (comparison.spread(one, two), comparison.spread(two, one)) == (4, 2)
    assert comparison.better(one, two, by="spread") == "first"
    three = [3, 3, 3, 5, 5, 5, 5, 5, 3, 3, 3, 4, 4, 4, 4]
    fewer = [2, 2, 6, 6, 6, 6, 6, 6, 3, 3, 3, 4, 4, 4, 4]
    assert (comparison.spread(three, fewer), comparison.spread(fewer, three)) == (2, 8)
    assert comparison.better(three, fewer, by="minimum") == "first"
    assert comparison.better(three, fewer, by="spread") == comparison.better(three, fewer, by="coverage") == "second"


def test_hypervolume_of_section_5_4() -> None:
    s, t = [3, 3, 3, 5, 5, 5, 5, 5], [4] * 8
    assert comparison.hypervolume(s, t) == pytest.approx(math.log(3**3 * 5**5 - 3**3 * 4**5))
    assert comparison.hypervolume(t, s) == pytest.approx(math.log(4**8 - 3**3 * 4**5))
    assert comparison.better(s, t, by="hypervolume") == "first"


def test_weights_of_section_5_5(tables: dict[str, duckanon.Release]) -> None:
    a, b = (
        comparison.vectors(tables[name], ["class_size", "iyengar_utility"]).drop_columns("row_id").to_pydict()
        for name in ("T3a", "T3b")
    )
    assert (
        comparison.coverage(a["class_size"], b["class_size"]),
        comparison.coverage(b["class_size"], a["class_size"]),
    ) == (
        0.3,
        1,
    )
    utility = "iyengar_utility"
    assert (comparison.coverage(a[utility], b[utility]), comparison.coverage(b[utility], a[utility])) == (1, 0.3)
    assert comparison.better(a, b, by="weighted", weights=[0.5, 0.5]) == "equal"
    assert comparison.better(a, b, by="weighted", weights={"class_size": 0.6, utility: 0.4}) == "second"
    assert comparison.better(a, b, by="lexicographic") == "second"
    assert comparison.better(a, b, by="lexicographic", epsilon={"class_size": 0.7}) == "first"
    assert comparison.better(a, b, by="dominance") == "incomparable"
    assert comparison.better(a, b, by="goal", goals=[1, 1]) == "equal"
    assert comparison.better(a, b, by="goal", goals=[1, 0.3]) == "second"


def test_the_three_side_by_side(tables: dict[str, duckanon.Release]) -> None:
    found = duckanon.compare(tables, properties=["class_size", "iyengar_utility"], by=["coverage", "weighted"])
    values = {(r["property"], r["release"], r["against"]): r for r in found.indices.to_pylist()}
    assert values["class_size", "T3a", "T3b"]["value"] == 0.3
    assert values["class_size", "T3b", "T3a"]["value"] == 1
    assert values["iyengar_utility", "T3b", "T3a"]["value"] == 0.3
    assert values["class_size", "T4", "T3a"]["verdict"] == "better"
    assert values["class_size", "T3b", "T4"]["verdict"] == "better"
    assert values[None, "T3a", "T3b"]["value"] == values[None, "T3b", "T3a"]["value"] == 0.65
    assert values[None, "T3a", "T3b"]["verdict"] == "equal"
    of_sizes = [
        (r["release"], r["wins"], r["losses"]) for r in found.tournament.to_pylist() if r["property"] == "class_size"
    ]
    assert of_sizes == [("T3b", 2, 0), ("T4", 1, 1), ("T3a", 0, 2)]
    relations = {(r["property"], r["release"], r["against"]): r["relation"] for r in found.dominance.to_pylist()}
    assert relations["class_size", "T3b", "T3a"] == "dominates"
    assert relations["class_size", "T3a", "T3b"] == "dominated"
    assert relations["class_size", "T3b", "T4"] == "incomparable"
    assert relations[None, "T3b", "T3a"] == "incomparable"
    gains = {(r["property"], r["release"], r["against"]): r for r in found.gains.to_pylist()}
    assert gains["class_size", "T3b", "T3a"] == {
        "property": "class_size", "release": "T3b", "against": "T3a",
        "rows_better": 7, "rows_equal": 3, "rows_worse": 0, "mean_gain": (3 * 4 + 4 * 3) / 7, "mean_loss": 0,
    }  # fmt: skip
