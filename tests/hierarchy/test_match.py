"""Which ready-made hierarchy fits a column, by its name and its values."""

from __future__ import annotations

import pytest

from duckanon.hierarchy.match import MOST, READY, Match, match
from duckanon.hierarchy.store import shipped


@pytest.mark.parametrize(
    ("column", "values", "expected"),
    [
        ("native-country", ["United-States", "el salvador", "CURAÇAO", "Curacao", "?"], ("countries", 4)),
        ("anything", ["France", "Spain", "Italy", "Peru", "Atlantis"], ("countries", 4)),
        ("anything", ["France", "Spain", "Atlantis"], None),
        ("country", ["France", "Spain", "Atlantis"], ("countries", 2)),
        ("countryOfBirth", ["DE", "CA"], ("countries_iso2", 2)),
        ("state", ["DE", "CA"], ("us_states", 2)),
        ("code", ["DE", "CA"], None),
        ("code", ["DE", "CA", "TX", "NY", "OH", "WA"], ("us_states", 6)),
        ("home_zip", ["02139", "90210", "unknown"], ("us_zip5", 2)),
        ("plz", ["02139", "90210"], None),
        ("diag_1", ["E11.9", "I21", "4019"], ("icd10", 2)),
        ("credit", ["A11", "A12", "A13"], None),
        ("admitted", ["2026-03-01", "2025-12-31"], ("iso_dates", 2)),
        ("admitted", ["2026-03-01", "soon"], None),
        ("blood", ["A+", "A-", "a-"], ("blood_types", 2)),
        ("education", ["HS-grad", "11th", "Doctorate"], ("education_isced", 3)),
        ("age", ["12", "-12"], None),
        ("stage", ["1", "2"], None),
        ("name", ["Ada", "Bob"], None),
        ("country", [None], None),
        ("country", [], None),
    ],
)
def test_the_hierarchy_that_fits(column: str, values: list[str | None], expected: tuple[str, int] | None) -> None:
    found = match(column, "VARCHAR", values)
    assert found == (None if expected is None else Match(expected[0], expected[1], len(values)))


@pytest.mark.parametrize(
    ("column", "kind", "values", "expected"),
    [
        ("age", "INTEGER", ["0", "120"], "age_bands"),
        ("age", "INTEGER", ["0", "121"], None),
        ("age", "INTEGER", ["-5"], None),
        ("birth_month", "TINYINT", ["1", "12"], "month_numbers"),
        ("month", "INTEGER", ["0", "1"], None),
        ("state", "INTEGER", ["1"], None),
        ("zip", "INTEGER", ["10001"], None),
        ("age", "DOUBLE", ["5.0"], None),
        ("date", "DATE", ["2026-01-01"], None),
    ],
)
def test_numbers_are_compared_by_the_name_of_the_column(
    column: str, kind: str, values: list[str], expected: str | None
) -> None:
    found = match(column, kind, values)
    assert (found.name if found is not None else None) == expected


def test_columns_of_very_many_values_are_not_compared() -> None:
    assert match("country", "VARCHAR", ["France"] * (MOST + 1)) is None


def test_what_is_considered_is_shipped() -> None:
    assert set(READY) <= set(shipped())
