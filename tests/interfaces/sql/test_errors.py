"""Errors: the reason on the first line, no traceback, no cell value."""

from __future__ import annotations

import duckdb
import pytest

import duckanon
from duckanon.errors import ParameterError

from .conftest import CALL, fetch, reason

Con = duckdb.DuckDBPyConnection


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("'patients', k := 5", "Name at least one quasi-identifier."),
        ("'patients', quasi_identifiers := ['age']", "No privacy model is given"),
        ("'patients', quasi_identifiers := ['agee'], k := 5", "Did you mean 'age'?"),
        ("'patientz', quasi_identifiers := ['age'], k := 5", "There is no table or view 'patientz'"),
        ("NULL, quasi_identifiers := ['age'], k := 5", "anonymize: source must not be NULL."),
        ("7, quasi_identifiers := ['age'], k := 5", "anonymize: source must be a text. Got an integer."),
        ("'patients', quasi_identifiers := 'age', k := 5", "quasi_identifiers must be a list of texts"),
        ("'patients', quasi_identifiers := ['age', NULL], k := 5", "It holds something else."),
        ("'patients', quasi_identifiers := [1], k := 5", "It holds something else."),
        ("'patients', quasi_identifiers := ['age'], k := '5'", "k must be an integer. Got a text."),
        ("'patients', quasi_identifiers := ['age'], k := 2.5", "k must be an integer. Got a number."),
        ("'patients', quasi_identifiers := ['age'], k := true", "k must be an integer. Got a boolean."),
        ("'patients', quasi_identifiers := ['age'], k := 0", "k"),
        (
            "'patients', quasi_identifiers := ['age'], k := 5, hierarchies := 'us_zip5'",
            "must map columns to hierarchies",
        ),
        ("'patients', quasi_identifiers := ['age'], k := 5, hierarchies := {'zip': 'us_zip5'}", "no quasi-identifier"),
        (
            "'patients', quasi_identifiers := ['age'], k := 5, hierarchies := {'age': 'nope'}",
            "Unknown hierarchy 'nope'",
        ),
        ("'patients', quasi_identifiers := ['age'], k := 5, hierarchies := {'age': 3}", "cannot be made of a int"),
        ("'patients', quasi_identifiers := ['age'], k := 5, entity_key := ['id']", "entity_key must be a text"),
        ("'patients', quasi_identifiers := ['age'], k := 5, suppression_limit := 2", "fraction between 0 and 1"),
        ("'patients', quasi_identifiers := ['age'], k := 5, algorithm := 'best'", "Unknown algorithm 'best'"),
        ("'patients', quasi_identifiers := ['age'], k := 5, on_unknown := 'x'", "on_unknown must be"),
        ("'patients', quasi_identifiers := ['age'], k := 5, seed := 'x'", "seed must be an integer"),
        ("'patients', quasi_identifiers := ['age'], k := 5, unlisted := 'error'", "No role is given for 'id'"),
        ("'patients', quasi_identifiers := ['age'], k := 601", "601"),
        ("'SELECT 1; SELECT 2', quasi_identifiers := ['age'], k := 5", "one SELECT statement"),
        ("'nothing/here*.parquet', quasi_identifiers := ['age'], k := 5", "No file matches"),
        ("'FROM patients WHERE false', quasi_identifiers := ['age'], k := 5", "no rows"),
    ],
)
def test_the_reason_stands_in_the_first_line(shared: Con, call: str, expected: str) -> None:
    for function in ("anonymize", "anonymize_report", "anonymize_classes"):
        message = reason(shared, f"FROM {function}({call})")
        assert expected.replace("anonymize:", f"{function}:") in message
        assert message.startswith("Invalid Input Error: ")


def test_unknown_argument_names_are_told_with_the_known_ones(con: Con) -> None:
    with pytest.raises(duckdb.BinderException, match="quasi_identifiers := NULL"):
        con.execute("FROM anonymize('patients', quasi_identifier := ['age'], k := 5)")
    with pytest.raises(duckdb.BinderException, match="anonymize"):
        con.execute("FROM anonymize()")


def test_errors_come_when_the_statement_is_bound(con: Con) -> None:
    reason(con, "CREATE VIEW v AS FROM anonymize('nobody', quasi_identifiers := ['age'], k := 5)")
    reason(con, "PREPARE p AS FROM anonymize('nobody', quasi_identifiers := ['age'], k := 5)")
    with pytest.raises(duckdb.InvalidInputException):
        con.sql("FROM anonymize('nobody', quasi_identifiers := ['age'], k := 5)")
    assert fetch(con, f"SELECT count(*) FROM {CALL}") == [(600,)]


def test_no_cell_value_in_a_message(con: Con, tmp_path: object) -> None:
    con.execute("CREATE TABLE secrets AS SELECT 'Jane Canary' AS name, i AS age FROM range(10) AS r(i)")
    queries = {
        "SELECT CAST(name AS INTEGER) AS age FROM secrets": "withheld",
        "SELECT error(name) AS age FROM secrets": "withheld",
        "secrets": "does not know",
    }
    for query, expected in queries.items():
        message = reason(
            con,
            "FROM anonymize(?, quasi_identifiers := ['age'], k := 2, hierarchies := {'age': 'us_zip5'})"
            if query != "secrets"
            else "FROM anonymize(?, quasi_identifiers := ['name'], k := 2, hierarchies := {'name': 'us_states'})",
            [query],
        )
        assert "Canary" not in message
        assert expected in message


def test_an_unexpected_failure_says_only_its_kind(con: Con, monkeypatch: pytest.MonkeyPatch) -> None:
    from duckanon.interfaces.sql import door as sqldoor

    def fail(*arguments: object, **keywords: object) -> None:
        raise ZeroDivisionError("Jane Canary")

    monkeypatch.setattr(sqldoor, "anonymize", fail)
    message = reason(con, f"FROM {CALL}")
    assert "duckanon failed with a ZeroDivisionError" in message
    assert "Canary" not in message


def test_a_failed_call_leaves_the_connection_usable(con: Con) -> None:
    reason(con, "FROM anonymize('nobody', quasi_identifiers := ['age'], k := 5)")
    assert fetch(con, f"SELECT count(*) FROM {CALL}") == [(600,)]


@pytest.mark.parametrize("thing", [None, "x.duckdb", duckdb])
def test_install_needs_a_connection(thing: object) -> None:
    with pytest.raises(ParameterError, match="needs a DuckDB connection"):
        duckanon.install(thing)  # type: ignore[arg-type]


def test_closed_connection() -> None:
    con = duckdb.connect()
    con.close()
    with pytest.raises(duckanon.errors.DuckanonError):
        duckanon.install(con)
