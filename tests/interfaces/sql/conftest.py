"""A small table of patients, and a connection that knows the functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest

import duckanon
from duckanon.engine.duckdb import functions
from tests.datasets import PATIENTS

CALL = "anonymize('patients', quasi_identifiers := ['age', 'zip', 'sex'], sensitive := ['diagnosis'], k := 5)"


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckanon.connect()
    connection.execute(PATIENTS)
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[duckdb.DuckDBPyConnection]:
    """The same connection for all tests that leave it as it is."""
    connection = duckanon.connect()
    connection.execute(PATIENTS)
    yield connection
    connection.close()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The releases that were made, not taken from the memo."""
    from duckanon.interfaces.sql import door as sqldoor

    releases: list[Any] = []
    anonymize: Callable[..., Any] = sqldoor.anonymize

    def counted(*arguments: Any, **keywords: Any) -> Any:
        releases.append(anonymize(*arguments, **keywords))
        return releases[-1]

    monkeypatch.setattr(sqldoor, "anonymize", counted)
    return releases


def fetch(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    return connection.execute(sql, parameters).fetchall()


def reason(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Any = None) -> str:
    """Return the first line of the error that a statement gives, without DuckDB's name of its kind."""
    with pytest.raises(duckdb.Error) as caught:
        connection.execute(sql, parameters).fetchall()
    assert "Traceback" not in str(caught.value)
    assert "At:" not in str(caught.value)
    return str(caught.value).splitlines()[0]


def memo_of(connection: duckdb.DuckDBPyConnection) -> functions.Memo:
    """Return the memo of the database that a connection belongs to."""
    (place,) = [p for p in functions._installed.values() if connection in p.connections()]
    return place.memo
