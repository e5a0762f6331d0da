"""Macros, types and tables of the caller with the names that our statements use change no release."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import duckanon
from duckanon import Source
from duckanon.engine.sql.relations import ident
from duckanon.io.sinks import DuckDBTable
from tests.datasets import PATIENTS

from .conftest import fetch

Con = duckdb.DuckDBPyConnection

# What the calls themselves are written with: a macro of that name changes what the caller says, not what we do.
_OF_THE_CALLER = {"list_value", "struct_pack", "__duckanon", "__duckanon_now", "map"}


def shadow(con: Con, place: str = "") -> int:
    """Make a macro of each name that DuckDB has a function for, operators among them; return how many there are."""
    names = con.execute(
        "SELECT DISTINCT function_name, bool_or(function_type IN ('table', 'table_macro')), "
        "bool_or(function_type NOT IN ('table', 'table_macro', 'pragma')) FROM duckdb_functions() "
        "WHERE database_name = 'system' AND schema_name = 'main' GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    made = 0
    for name, of_tables, of_values in names:
        if name in _OF_THE_CALLER or name.startswith("__duckanon"):
            continue
        written = place + ident(name).sql(dialect="duckdb")
        bodies = ["() AS 42, (a) AS 42, (a, b) AS 42, (a, b, c) AS 42"] if of_values else []
        bodies += ["() AS TABLE SELECT 42 AS x, (a) AS TABLE SELECT 42 AS x"] if of_tables else []
        for body in bodies:
            try:
                con.execute(f"CREATE MACRO {written}{body}")
                made += 1
            except duckdb.Error:
                continue
    return made


@pytest.fixture(scope="module")
def plain() -> Iterator[Con]:
    con = duckanon.connect()
    con.execute(PATIENTS)
    yield con
    con.close()


@pytest.fixture(scope="module")
def shadowed() -> Iterator[Con]:
    con = duckanon.connect()
    con.execute(PATIENTS)
    assert shadow(con) > 300
    assert con.execute("SELECT floor(1.5), 1 + 1").fetchall() == [(42, 42)]
    yield con
    con.close()


ARGUMENTS: list[dict[str, Any]] = [
    {"quasi_identifiers": ["age", "zip", "sex"], "sensitive": ["diagnosis"], "k": 5, "l": 2},
    {"quasi_identifiers": ["age", "zip"], "k": 5, "algorithm": "datafly", "suppression_limit": 0.05},
    {"quasi_identifiers": ["age", "sex"], "k": 5, "algorithm": "mdav", "entity_key": "id", "output": "mean"},
    {"quasi_identifiers": ["age", "zip"], "k": 4, "algorithm": "optimal", "hierarchies": {"zip": "us_zip5"}},
    {"quasi_identifiers": ["age", "zip"], "sensitive": ["diagnosis"], "k": 5, "t": 0.5, "output": "set"},
    {"quasi_identifiers": ["age"], "k": 5, "algorithm": "probabilistic"},
]
SOURCES = ("patients", "FROM patients")


def released(con: Con, source: object, **arguments: Any) -> list[Any]:
    with duckanon.anonymize(source, connection=con, seed=1, **arguments) as release:
        return release.to_arrow().to_pylist()


def outcome(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except duckanon.errors.DuckanonError as error:
        return type(error), str(error)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("n", range(len(ARGUMENTS)))
@pytest.mark.thinned(6)
def test_python_releases_the_same_rows(plain: Con, shadowed: Con, source: str, n: int) -> None:
    wanted = outcome(lambda: released(plain, source, **ARGUMENTS[n]))
    assert outcome(lambda: released(shadowed, source, **ARGUMENTS[n])) == wanted


CALLS = (
    "anonymize('patients', quasi_identifiers := ['age', 'zip', 'sex'], sensitive := ['diagnosis'], k := 5)",
    "anonymize('FROM patients', quasi_identifiers := ['age', 'zip'], k := 5, algorithm := 'datafly')",
    "anonymize_classes('patients', quasi_identifiers := ['age', 'zip'], k := 5)",
    "privacy('patients', quasi_identifiers := ['age'], sensitive := ['diagnosis'])",
    "information_loss('patients', 'patients', quasi_identifiers := ['age'])",
    "query_errors('patients', 'patients', columns := ['age'], n := 10)",
    "risk('patients', quasi_identifiers := ['age'])",
    "attack('patients', 'patients', quasi_identifiers := ['age'], sensitive := ['diagnosis'], sample := 50)",
    "with_risk('patients', quasi_identifiers := ['age', 'sex'])",
    "with_risk('patients', quasi_identifiers := ['age', 'sex'], entity_key := 'id')",
    "with_risk('FROM patients', quasi_identifiers := ['age'])",
    "suggest('patients')",
    "identifying_sets('patients')",
    "encoded('patients', columns := ['sex'], form := 'wide')",
    "encoded('patients', columns := ['sex', 'age'])",
    "lattice('patients', quasi_identifiers := ['sex'], k := 5)",
    "compare_releases('patients', quasi_identifiers := ['age'], k := 5, releases := {'a': {'k': 6}, 'b': {'k': 9}})",
    "hierarchies()",
    "save_hierarchy('h', 'us_zip5', replace := true)",
)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.thinned(6)
def test_sql_returns_the_same_rows(plain: Con, shadowed: Con, call: str) -> None:
    wanted = sorted(map(repr, fetch(plain, f"FROM {call}")))
    assert sorted(map(repr, fetch(shadowed, f"FROM {call}"))) == wanted


@pytest.mark.parametrize("how", ["table", "query", "view"])
@pytest.mark.thinned(3)
def test_a_database_file_with_macros_as_source(tmp_path: Path, how: str) -> None:
    rows = []
    for with_macros in (False, True):
        file = tmp_path / f"{with_macros}.duckdb"
        with duckdb.connect(file) as con:
            con.execute(PATIENTS)
            con.execute("CREATE VIEW seen AS SELECT id, age, zip, sex, diagnosis FROM patients")
            if with_macros:
                shadow(con)
        words = {"table": "patients", "view": "seen", "query": "SELECT * FROM patients"}[how]
        source = Source.database(file, **{"query" if how == "query" else "table": words})
        with duckanon.anonymize(source, quasi_identifiers=["age", "zip"], k=5, seed=1) as release:
            rows.append(release.to_arrow().to_pylist())
    assert rows[0] == rows[1]


def test_tables_called_like_private_ones() -> None:
    rows = []
    for odd in (False, True):
        with duckdb.connect() as con:
            con.execute(PATIENTS)
            for stem in ("query", "values", "frequency", "classes", "codes", "data", "rows") if odd else ():
                for n in range(12):
                    con.execute(f"CREATE TABLE duckanon_{stem}_{n} AS SELECT 1 AS code, 2 AS n")
            people = "SELECT age, zip FROM patients"
            con.execute("CREATE OR REPLACE TABLE duckanon_query_1 AS FROM patients")
            source = "FROM duckanon_query_1"
            arguments = {"quasi_identifiers": ["age"], "models": ["k_map(k=2)"], "algorithm": "datafly"}
            rows.append(released(con, source, population=people, **arguments))
    assert rows[0] == rows[1]


HOSTILE = ("count", "sum", "hash", "floor", "min", "max", "concat", "current_setting", "strlen", "+", "-", "||")


def hostile(con: Con, schema: str) -> None:
    """Make a schema with macros, and types where DuckDB lets one, that are called like what we use."""
    con.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    for name in HOSTILE:
        written = ".".join((schema, ident(name).sql(dialect="duckdb")))
        con.execute(f"CREATE MACRO {written}() AS 42, (a) AS 42, (a, b) AS 42")
    for name in ("varchar", "hugeint", "bigint", "double", "date"):
        with contextlib.suppress(duckdb.Error):
            con.execute(f"CREATE TYPE {schema}.\"{name}\" AS ENUM ('nothing')")


def test_macros_and_types_of_another_schema_that_is_looked_up_first() -> None:
    rows, said = [], []
    for odd in (False, True):
        with duckanon.connect() as con:
            con.execute(PATIENTS)
            if odd:
                hostile(con, "s")
                con.execute("ATTACH ':memory:' AS other")
                hostile(con, "other.s")
                con.execute("SET search_path = 's,other.s,memory.main'")
                assert con.execute("SELECT floor(1.5), 1 + 1").fetchall() == [(42, 42)]
            rows.append(released(con, "patients", **ARGUMENTS[0]))
            call = "FROM anonymize('patients', quasi_identifiers := ['age', 'sex'], k := 5)"
            said.append(sorted(map(repr, fetch(con, call))))
    assert rows[0] == rows[1]
    assert said[0] == said[1]


def test_views_called_like_private_tables() -> None:
    rows = []
    for odd in (False, True):
        with duckdb.connect() as con:
            con.execute(PATIENTS)
            for stem in ("s", "r", "source", "values", "duckanon_values_1", "duckanon_data_1", "duckanon_codes_1"):
                if odd:
                    con.execute(f'CREATE VIEW "{stem}" AS SELECT 1 AS code, 2 AS n')
            rows.append(released(con, "patients", **ARGUMENTS[0]))
    assert rows[0] == rows[1]


def test_a_database_with_macros_and_types_as_target(tmp_path: Path) -> None:
    published = []
    with duckdb.connect() as con:
        con.execute(PATIENTS)
        source = con.sql("FROM patients").to_arrow_table()
    for odd in (False, True):
        file = tmp_path / f"{odd}.duckdb"
        with duckdb.connect(file) as con:
            if odd:
                hostile(con, "main")
                con.execute("CREATE VIEW duckanon_target AS SELECT 1 AS x")
        with duckanon.anonymize(source, quasi_identifiers=["age", "zip"], k=5, seed=1) as release:
            sink = DuckDBTable(file, "released", tmp_path / f"reports {odd}")
            sink.publish(release, reports={}, run={"run": "r1", "job": "j", "table": "released"})
        with duckdb.connect(file, read_only=True) as con:
            published.append(sorted(map(repr, con.execute("FROM released").fetchall())))
    assert published[0] == published[1]


def test_macros_of_the_caller_are_seen_in_their_own_words() -> None:
    with duckdb.connect() as con:
        con.execute(PATIENTS)
        con.execute("CREATE SCHEMA s")
        con.execute("CREATE MACRO s.decade(x) AS x // 10 * 10")
        con.execute("CREATE VIEW s.decades AS SELECT decade(age) AS age FROM memory.main.patients")
        con.execute("SET search_path = 's,main'")
        for source in ("SELECT decade(age) AS age FROM patients", "s.decades", "decades"):
            rows = released(con, source, quasi_identifiers=["age"], k=5)
            assert len({row["age"] for row in rows}) == 6


def test_no_database_of_ours_stays() -> None:
    with duckdb.connect() as con:
        con.execute(PATIENTS)
        before = con.execute("SHOW DATABASES").fetchall()
        released(con, "patients", quasi_identifiers=["age"], k=5)
        assert con.execute("SHOW DATABASES").fetchall() == before
