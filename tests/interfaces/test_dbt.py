"""The dbt plugin without dbt: imports, names what to install, ships its package, refuses what is not one table."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import duckdb
import pytest

import duckanon.interfaces.dbt
from duckanon.engine.duckdb import functions as engine_functions
from duckanon.errors import UnsupportedError
from duckanon.interfaces.dbt import functions_of, package_folder, refuse_materialization

FILES = {"dbt_project.yml", "macros/classes.sql", "macros/k_anonymous.sql", "macros/l_diverse.sql"}


@pytest.fixture
def node() -> dict[str, str]:
    return {"resource_type": "model", "materialized": "table"}


@pytest.fixture
def con(node: dict[str, str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A session as dbt's are, in which a thread works on ``node``."""
    connection = duckdb.connect()
    connection.execute('CREATE SCHEMA "my schema"')
    connection.execute('CREATE TABLE "my schema"."a ""b"" ü" AS SELECT 30 + i AS age FROM range(10) AS r(i)')
    engine_functions.install(connection, functions_of(lambda: node))
    yield connection
    connection.close()


CALL = """anonymize('"memory"."my schema"."a ""b"" ü"', quasi_identifiers := ['age'], algorithm := 'datafly', k := 5)"""


def test_without_dbt_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dbt", None)
    duckanon.interfaces.dbt._plugin.cache_clear()
    with pytest.raises(UnsupportedError, match=r"pip install 'duckanon\[dbt\]'"):
        _ = duckanon.interfaces.dbt.Plugin
    duckanon.interfaces.dbt._plugin.cache_clear()


def test_other_names_are_unknown() -> None:
    assert not hasattr(duckanon.interfaces.dbt, "plugin")


def test_importing_it_imports_no_dbt() -> None:
    script = "import sys, duckanon.interfaces.dbt; sys.exit('dbt' in sys.modules or 'duckdb' in sys.modules)"
    environment = {"PYTHONPATH": str(Path(duckanon.__file__).parents[1])}
    assert subprocess.run([sys.executable, "-c", script], env=environment, check=False).returncode == 0


def test_the_package_is_where_the_command_says() -> None:
    environment = {"PYTHONPATH": str(Path(duckanon.__file__).parents[1])}
    command = [sys.executable, "-m", "duckanon.interfaces.dbt"]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert Path(told.strip()) == package_folder()
    found = {p.relative_to(package_folder()).as_posix() for p in package_folder().rglob("*") if p.is_file()}
    assert found == FILES


def test_the_package_is_in_the_wheel() -> None:
    installed = {str(file) for file in metadata.files("duckanon") or ()}
    if "duckanon/api.py" not in installed:
        pytest.skip("duckanon is not installed from a wheel")
    assert {f"duckanon/interfaces/dbt/package/{file}" for file in FILES} <= installed


def test_a_table_is_made(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"CREATE TABLE release AS (SELECT * FROM {CALL})")
    assert con.execute("SELECT count(*) FROM release GROUP BY age").fetchall() == [(5,), (5,)]


@pytest.mark.parametrize("kind", ["view", "incremental", "snapshot", "materialized_view", "table_function", ""])
@pytest.mark.parametrize("function", ["anonymize", "anonymize_report", "anonymize_classes"])
@pytest.mark.thinned(4)
def test_what_is_not_one_table_is_refused(
    con: duckdb.DuckDBPyConnection, node: dict[str, str], kind: str, function: str
) -> None:
    node |= {"materialized": kind, "resource_type": "snapshot" if kind == "snapshot" else "model"}
    with pytest.raises(duckdb.Error, match="materialize the model as a table"):
        con.execute(f"CREATE TABLE release AS (SELECT * FROM {CALL.replace('anonymize', function)})")
    con.execute(
        f"SELECT * FROM {CALL.replace('anonymize', 'privacy').replace(', algorithm := ' + repr('datafly'), '')}"
    )


@pytest.mark.parametrize("kind", ["test", "analysis", "operation"])
def test_what_is_not_kept_may_call_it(con: duckdb.DuckDBPyConnection, node: dict[str, str], kind: str) -> None:
    node |= {"materialized": "view", "resource_type": kind}
    assert len(con.execute(f"SELECT * FROM {CALL}").fetchall()) == 10


def test_outside_of_a_node_nothing_is_refused() -> None:
    refuse_materialization({})


def test_an_ephemeral_model_is_no_table(con: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error, match="materialize the model that it reads as a table or a view"):
        con.execute("FROM anonymize('__dbt__cte__patients', quasi_identifiers := ['age'], k := 5)")
