"""A view in a database file is a statement of somebody else: it reads that file and nothing else."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import duckdb
import pytest

import duckanon
from duckanon import Source
from duckanon.engine.base import open_engine
from duckanon.errors import DataError
from duckanon.jobs import exit_code, run_job

SECRET = "canary-of-a-local-file"

JOB = """
[source]
database = "people.duckdb"
{what}

[roles]
quasi_identifiers = ["age"]
unlisted = "drop"

[privacy]
k = 2

[output]
path = "out/release.parquet"
"""

VIEWS = {
    "csv": "SELECT 30 AS age, column0 AS x FROM read_csv('{file}', header = false, columns = {{'column0': 'VARCHAR'}})",
    "text": "SELECT 30 AS age, content AS x FROM read_text('{file}')",
    "blob": "SELECT 30 AS age, content AS x FROM read_blob('{file}')",
    "glob": "SELECT 30 AS age, file AS x FROM glob('{folder}/*')",
    "json": "SELECT 30 AS age, json AS x FROM read_json_objects('{file}')",
    "sniffed": "SELECT 30 AS age, Columns AS x FROM sniff_csv('{file}')",
    "query": "SELECT 30 AS age, content AS x FROM query('SELECT content FROM read_text(''{file}'')')",
    "macro": "SELECT 30 AS age, content AS x FROM stolen()",
    "scalar macro": "SELECT 30 AS age, taken() AS x",
    "nested": "SELECT * FROM of_text",
    "parallel": "SELECT age, content AS x FROM people, read_text('{file}')",
    "own folder": "SELECT 30 AS age, file AS x FROM glob('{folder}/.duckanon-*/*')",
    "another database": "SELECT 30 AS age, x FROM other.main.t",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a database whose views read a local file, and that file."""
    local = tmp_path / "local"
    local.mkdir()
    (local / f"{SECRET}.txt").write_text(SECRET)
    file = local / f"{SECRET}.txt"
    with duckdb.connect(str(tmp_path / "other.duckdb")) as con:
        con.execute("CREATE TABLE t AS SELECT 'x' AS x")
    with duckdb.connect(str(tmp_path / "people.duckdb")) as con:
        con.execute("CREATE TABLE people AS SELECT unnest([30, 30, 40, 40]) AS age, 'a' AS x")
        con.execute(f"CREATE MACRO stolen() AS TABLE SELECT content FROM read_text('{file}')")
        con.execute(f"CREATE MACRO taken() AS (SELECT content FROM read_text('{file}'))")
        con.execute(f"CREATE VIEW of_text AS SELECT 30 AS age, content AS x FROM read_text('{file}')")
        con.execute(f"ATTACH '{tmp_path / 'other.duckdb'}' AS other")
        for name, sql in VIEWS.items():
            con.execute(f'CREATE VIEW "{name}" AS {sql.format(file=file, folder=local)}')
        con.execute("CREATE MACRO doubled(n) AS 2 * n")
        con.execute("CREATE VIEW harmless AS SELECT doubled(age) // 2 AS age, x FROM people")
        con.execute("CREATE MACRO floor(n) AS 42")
        con.execute("CREATE VIEW twice AS SELECT age, x AS y FROM harmless")
    return tmp_path


# What looks at a file only when it runs is refused when it runs: nothing of it is in the schema.
@pytest.mark.parametrize(
    ("name", "read"), [*((name, True) for name in VIEWS), *((name, False) for name in VIEWS if name != "sniffed")]
)
def test_a_view_that_reads_files_is_refused_without_a_word_of_them(folder: Path, name: str, read: bool) -> None:
    source = Source.database(folder / "people.duckdb", table=name)
    with closing(open_engine()) as engine, pytest.raises(DataError) as caught:
        source.open(engine, read=read)
    assert SECRET not in str(caught.value)
    assert name in str(caught.value)
    assert "people.duckdb" in str(caught.value)
    assert exit_code(caught.value) == 3


@pytest.mark.parametrize("name", VIEWS)
def test_a_query_of_a_job_that_reads_files_is_refused_and_nothing_is_written(folder: Path, name: str) -> None:
    job = folder / "job.toml"
    query = VIEWS[name].format(file=folder / "local" / f"{SECRET}.txt", folder=folder / "local")
    for what in (f'table = "{name}"', f"query = '''{query}'''"):
        job.write_text(JOB.format(what=what))
        with pytest.raises(DataError) as caught:
            run_job(job)
        assert SECRET not in str(caught.value)
        assert not (folder / "out").exists()
        assert all(SECRET.encode() not in p.read_bytes() for p in (folder / "job.state").rglob("*") if p.is_file())


@pytest.mark.parametrize("name", ["harmless", "twice"])
def test_a_view_of_the_database_itself_is_released_with_its_own_macros(folder: Path, name: str) -> None:
    job = folder / "job.toml"
    for what in (f'table = "{name}"', f'query = "SELECT age FROM {name} WHERE doubled(age) > 0"'):
        job.write_text(JOB.format(what=what))
        assert run_job(job).summary["found"]["rows_published"] == 4


def test_all_types_of_a_view_arrive_as_they_are(folder: Path) -> None:
    values = (
        "SELECT 1::HUGEINT AS h, {'x': 170141183460469231731687303715884105727} AS s, INTERVAL 3 MONTHS AS i, "
        "'12:00:00+02'::TIMETZ AS z, union_value(n := 1) AS u, MAP {1: 2} AS m, 'a'::ENUM('a', 'b') AS e, "
        "'2020-01-01'::TIMESTAMP_NS AS n, [INTERVAL 1 MICROSECOND] AS l"
    )
    with duckdb.connect(str(folder / "people.duckdb")) as con:
        con.execute(f"CREATE VIEW types AS {values}")
        wanted = con.sql("FROM types")
        kinds, rows = [str(t) for t in wanted.types], wanted.fetchall()
    with closing(open_engine()) as engine:
        relation = Source.database(folder / "people.duckdb", table="types").open(engine)
        assert [c.type for c in relation.columns] == kinds
        assert engine.rows(relation.query) == rows


def test_the_schema_of_a_view_is_read_without_its_rows(folder: Path) -> None:
    with closing(open_engine()) as engine:
        relation = Source.database(folder / "people.duckdb", table="harmless").open(engine, read=False)
        assert relation.names == ["age", "x"]
        assert engine.rows(relation.query) == []


def test_a_connection_of_the_caller_is_left_without_attached_databases(folder: Path) -> None:
    source = Source.database(folder / "people.duckdb", table="harmless")
    with duckdb.connect() as con:
        before = con.sql("SELECT count(*) FROM duckdb_databases()").fetchall()
        arguments = {"quasi_identifiers": ["age"], "k": 2, "connection": con}
        with duckanon.anonymize(source, **arguments) as first, duckanon.anonymize(source, **arguments) as second:
            assert first.rows_published == second.rows_published == 4
        assert con.sql("SELECT count(*) FROM duckdb_databases()").fetchall() == before
