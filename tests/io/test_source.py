"""Where rows come from, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.errors import ConfigError, DataError, DuckanonError, ParameterError
from duckanon.io.source import Source, refuse_duplicates

TABLE = pa.table({"age": [30, 30, 40, 40], "name": ["Ann", "Ben", "Cem", "Dan"]})


@pytest.fixture
def engine():
    found = DuckDBEngine(threads=1)
    yield found
    found.close()


@pytest.fixture
def con():
    with duckdb.connect() as found:
        found.register("incoming", TABLE)
        found.execute("CREATE TABLE people AS SELECT * FROM incoming")
        found.execute("CREATE VIEW adults AS SELECT * FROM people WHERE age > 18")
        found.execute("CREATE SCHEMA clinic")
        found.execute("CREATE TABLE clinic.people AS SELECT age + 1 AS age, name FROM people")
        yield found


def ages(data: object, **options: object) -> list[int]:
    with duckanon.anonymize(data, quasi_identifiers=["age"], k=2, bounds="cut", **options) as release:
        assert release.to_arrow().column_names == ["age"]
        return sorted(release.to_arrow().column("age").to_pylist())


@pytest.fixture
def files(tmp_path: Path) -> Path:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    pyarrow.csv.write_csv(TABLE, tmp_path / "t.csv")
    (tmp_path / "t.json").write_text(json.dumps(TABLE.to_pylist()))
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps(r) for r in TABLE.to_pylist()))
    (tmp_path / "t.tsv").write_text("age\tname\n" + "\n".join(f"{r['age']}\t{r['name']}" for r in TABLE.to_pylist()))
    return tmp_path


@pytest.mark.parametrize("suffix", ["parquet", "csv", "json", "jsonl", "tsv"])
@pytest.mark.thinned(2)
def test_a_file_is_read_by_path_and_by_text(files: Path, suffix: str) -> None:
    path = files / f"t.{suffix}"
    assert ages(path) == ages(str(path)) == [30, 30, 40, 40]


def test_a_format_where_the_suffix_is_silent(files: Path) -> None:
    (files / "t.parquet").rename(files / "t.data")
    assert ages(Source.file(files / "t.data", format="parquet")) == [30, 30, 40, 40]
    with pytest.raises(DataError, match="not a table: its suffix"):
        ages(files / "t.data")
    with pytest.raises(DataError, match="Unknown file format 'xml'"):
        ages(Source.file(files / "t.data", format="xml"))


@pytest.mark.parametrize(
    "name", ["it's.parquet", 'quo"te.parquet', "semi;colon.parquet", "größe 名.parquet", "-- x.parquet"]
)
def test_untrusted_file_names(files: Path, name: str) -> None:
    (files / "t.parquet").rename(files / name)
    assert ages(files / name) == [30, 30, 40, 40]


@pytest.mark.parametrize("name", ["a[1].parquet", "b*.parquet", "c?.csv"])
def test_a_file_whose_name_looks_like_a_pattern(files: Path, name: str) -> None:
    (files / f"t{Path(name).suffix}").rename(files / name)
    assert ages(files / name) == [30, 30, 40, 40]


def test_globs_folders_and_lists(tmp_path: Path) -> None:
    for i in range(2):
        (tmp_path / f"part{i}").mkdir()
        pq.write_table(TABLE.slice(2 * i, 2), tmp_path / f"part{i}" / "t.parquet")
    assert ages(str(tmp_path / "*" / "*.parquet")) == [30, 30, 40, 40]
    assert ages(tmp_path) == [30, 30, 40, 40]
    assert ages([tmp_path / "part0" / "t.parquet", tmp_path / "part1" / "t.parquet"]) == [30, 30, 40, 40]


def test_columns_of_hive_partitions_are_read(tmp_path: Path) -> None:
    ds.write_dataset(
        TABLE,
        tmp_path / "d",
        format="parquet",
        partitioning=ds.partitioning(pa.schema([("age", pa.int64())]), flavor="hive"),
    )
    assert [str(a) for a in ages(tmp_path / "d")] == ["30", "30", "40", "40"]


@pytest.mark.parametrize(
    "name",
    [
        "people",
        "main.people",
        "memory.main.people",
        "PEOPLE",
        '"people"',
        "adults",
        "SELECT * FROM people",
        "FROM people",
    ],
)
@pytest.mark.thinned(2)
def test_tables_views_and_queries(con, name: str) -> None:
    assert ages(name, connection=con) == [30, 30, 40, 40]


def test_a_table_in_a_schema_is_found(con) -> None:
    assert ages("clinic.people", connection=con) == [31, 31, 41, 41]


@pytest.mark.parametrize(
    "name", ['we"ird', "a.b", "x; DROP TABLE people; --", "new\nline", "select", "o'clock", "名前", "map_0", "source"]
)
@pytest.mark.thinned(3)
def test_untrusted_table_names(con, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    con.execute(f"CREATE TABLE {quoted} AS SELECT * FROM people")
    assert ages(name, connection=con) == [30, 30, 40, 40]
    assert ages(Source.table(name), connection=con) == [30, 30, 40, 40]
    assert con.execute("SELECT count(*) FROM people").fetchone() == (4,)


def test_a_database_file(tmp_path: Path, con) -> None:
    path = tmp_path / "it's.duckdb"
    with duckdb.connect(str(path)) as other:
        other.register("incoming", TABLE)
        other.execute("CREATE TABLE people AS SELECT * FROM incoming")
    assert ages(Source.database(path, table="people")) == [30, 30, 40, 40]
    assert ages(Source.database(path, query="SELECT * FROM people")) == [30, 30, 40, 40]
    with pytest.raises(DataError, match="Did you mean"):
        ages(Source.database(path, table="peopel"))
    with pytest.raises(DataError, match="is a database"):
        ages(path)
    with pytest.raises(DataError, match="either table= or query="):
        Source.database(path)
    with pytest.raises(DataError, match="no database file"):
        ages(Source.database(tmp_path / "none.duckdb", table="people"))


class Stream:
    """Anything with the Arrow stream protocol, readable once."""

    def __init__(self) -> None:
        self.read = 0

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        self.read += 1
        return TABLE.to_reader().__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "data",
    [TABLE, TABLE.to_pandas(), pl.from_arrow(TABLE), ds.dataset(TABLE), pa.record_batch(TABLE.to_pydict()), Stream()],
    ids=lambda d: type(d).__module__ + "." + type(d).__name__,
)
@pytest.mark.thinned(2)
def test_arrow_and_frames(data: object) -> None:
    assert ages(data) == [30, 30, 40, 40]


def test_the_index_of_a_frame_is_no_column() -> None:
    frame = TABLE.to_pandas().set_index("name")
    assert duckanon.Plan.of(frame, quasi_identifiers=["age"], k=2).relation.names == ["age"]


def test_a_frame_of_mixed_types_is_refused_without_quoting() -> None:
    frame = pd.DataFrame({"age": [1, "Canary"], "b": [b"Canary", 2]})
    with pytest.raises(DataError, match="mixed types") as caught:
        ages(frame)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_a_lazy_frame_is_refused_or_read() -> None:
    with pytest.raises(DataError, match="LazyFrame cannot be read"):
        ages(pl.from_arrow(TABLE).lazy())


def test_a_stream_is_read_once() -> None:
    assert ages(TABLE.to_reader()) == [30, 30, 40, 40]
    stream = Stream()
    assert ages(stream) == [30, 30, 40, 40]
    assert stream.read == 1


def test_a_query_is_run_once(con) -> None:
    con.execute("CREATE SEQUENCE runs")
    source = "SELECT age, nextval('runs') AS run FROM people"
    with duckanon.anonymize(source, quasi_identifiers=["age"], insensitive=["run"], k=2, connection=con) as release:
        assert sorted(release.to_arrow().column("run").to_pylist()) == [1, 2, 3, 4]


def test_a_plan_runs_nothing(con) -> None:
    con.execute("CREATE SEQUENCE runs")
    stream = Stream()
    duckanon.Plan.of("SELECT age, nextval('runs') AS run FROM people", quasi_identifiers=["age"], k=2, connection=con)
    duckanon.Plan.of(stream, quasi_identifiers=["age"], k=2)
    assert con.execute("SELECT nextval('runs')").fetchone() == (1,)


DUPLICATES = pa.Table.from_arrays([pa.array([1, 2]), pa.array(["x", "y"])], names=["a", "a"])


@pytest.mark.parametrize("names", [["a", "a"], ["a", "A"], ["b", "a", "c", "a"]])
def test_a_column_that_occurs_twice_is_refused(names: list[str]) -> None:
    with pytest.raises(DataError, match="'a' occurs more than once"):
        refuse_duplicates(names)


@pytest.mark.parametrize(
    "kind", ["parquet", "csv", "tsv", "arrow", "reader", "dataset", "pandas", "query", "join", "star"]
)
def test_duplicate_columns_are_refused_not_renamed(tmp_path: Path, kind: str, con) -> None:
    """A reader that renames the second one to a_1 would let it dodge its role."""
    data: object = DUPLICATES
    if kind == "parquet":
        data = tmp_path / "d.parquet"
        pq.write_table(DUPLICATES, data)
    elif kind in ("csv", "tsv"):
        data = tmp_path / f"d.{kind}"
        data.write_text("a,a\n1,x\n2,y\n".replace(",", "," if kind == "csv" else "\t"))
    elif kind == "reader":
        data = DUPLICATES.to_reader()
    elif kind == "dataset":
        data = ds.dataset(DUPLICATES)
    elif kind == "pandas":
        data = pd.DataFrame([[1, "x"], [2, "y"]], columns=["a", "a"])
    elif kind == "query":
        data = "SELECT 1 AS a, 2 AS A"
    elif kind == "join":
        data = "FROM (SELECT 1 AS a), (SELECT 2 AS a)"
    elif kind == "star":
        data = "SELECT *, age FROM people"
    name = "age" if kind == "star" else "a"
    for verb in (duckanon.anonymize, duckanon.Plan.of, duckanon.check):
        with pytest.raises(DataError, match=f"'{name}' occurs more than once"):
            verb(data, quasi_identifiers=[name], k=1, connection=con)
        if kind == "reader":
            data = DUPLICATES.to_reader()


def test_the_same_name_deeper_in_a_parquet_file_is_fine(tmp_path: Path) -> None:
    data = pa.table({"age": [1, 1], "x": [{"age": 1, "y": [1]}, {"age": 2, "y": [2]}], "z": [[1], [2]]})
    pq.write_table(data, tmp_path / "n.parquet")
    assert ages(tmp_path / "n.parquet") == [1, 1]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("nothing.parquet", "No file matches 'nothing.parquet'"),
        ("nothing/*.csv", "No file matches"),
        (Path("nothing.csv"), "No file matches"),
        ("peopel", "no table or view 'peopel'. Did you mean '.*people'"),
        ("SELECT 1; SELECT 2", "one SELECT statement"),
        ("SELECT * FROM people; DROP TABLE people", "one SELECT statement"),
        ("WITH x AS (SELECT 1) DELETE FROM people", "one SELECT statement"),
        (42, "A int cannot be read"),
        ({"age": [1]}, "A dict cannot be read"),
        ([], "A list cannot be read"),
        (None, "NoneType cannot be read"),
    ],
)
def test_a_source_that_is_none_is_refused_and_changes_nothing(con, data: object, message: str) -> None:
    with pytest.raises(ParameterError if "SELECT" in message else DataError, match=message):
        ages(data, connection=con)
    assert con.execute("SELECT count(*) FROM people").fetchone() == (4,)


@pytest.mark.parametrize(
    "sql", ["DROP TABLE people", "DELETE FROM people", "COPY people TO 'x.csv'", "ATTACH 'x.db'", "SET threads = 1"]
)
def test_only_select_is_a_query(con, sql: str) -> None:
    with pytest.raises(ParameterError, match="one SELECT statement"):
        ages(Source.query(sql), connection=con)
    assert con.execute("SELECT count(*) FROM people").fetchone() == (4,)


def test_a_file_that_is_not_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"not a parquet file at all")
    (tmp_path / "empty.parquet").write_bytes(b"")
    (tmp_path / "x.json").write_text("{")
    for name in ("x.parquet", "empty.parquet", "x.json"):
        with pytest.raises(DataError, match="file, or is damaged"):
            ages(tmp_path / name)


def test_a_folder_without_tables(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no Parquet, CSV or JSON"):
        ages(tmp_path)


def test_python_variables_are_not_tables(con) -> None:
    secret = TABLE  # noqa: F841 - a careless connection would find it by its name
    for data in ("secret", "SELECT * FROM secret"):
        for connection in (None, con):
            with pytest.raises(DuckanonError):
                ages(data, connection=connection)


def test_what_the_caller_registered_or_made_temporarily_is_not_visible(con) -> None:
    """The work happens on a cursor of its own: the error says so instead of guessing."""
    con.execute("CREATE TEMP TABLE mine AS SELECT * FROM people")
    with pytest.raises(DataError, match="no table or view 'mine'"):
        ages("mine", connection=con)


def test_an_open_transaction_is_refused(con) -> None:
    """A cursor sees neither what it wrote nor what it deleted: silence would publish the wrong rows."""
    con.execute("BEGIN")
    con.execute("DELETE FROM people WHERE age = 30")
    with pytest.raises(DataError, match=r"open transaction.*COMMIT or ROLLBACK"):
        ages("people", connection=con)
    con.execute("COMMIT")
    assert ages("people", connection=con) == [40, 40]


def test_a_release_never_replaces_its_source(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    source = folder / "a.parquet"
    pq.write_table(TABLE, source)
    before = source.read_bytes()
    for data in (source, folder, str(folder / "*.parquet")):
        with duckanon.anonymize(data, quasi_identifiers=["age"], k=2) as release:
            for target in (source, folder / "b.parquet")[: 1 if data == source else 2]:
                with pytest.raises(ConfigError, match="among the source's own files"):
                    release.write(target)
            release.write(tmp_path / "out.parquet")
    assert [p.name for p in folder.iterdir()] == ["a.parquet"]
    assert source.read_bytes() == before


def test_names_are_not_listed_for_they_may_be_cells(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("CANARY,1\nMeier,2\n")
    with pytest.raises(DuckanonError) as caught:
        ages(tmp_path / "x.csv")
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"quasi_identifiers": None}, "list of column names. Got a NoneType"),
        ({"quasi_identifiers": [1]}, "Got a int in it"),
        ({"hierarchies": ["age"]}, "hierarchies must map"),
        ({"connection": "x"}, "connection must be a DuckDB connection"),
        ({"progress": 3}, "progress must be callable"),
        ({"models": "k_anonymity"}, "models must be a list"),
    ],
)
def test_arguments_of_the_wrong_kind(given: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        duckanon.anonymize(TABLE, **{"quasi_identifiers": ["age"], "k": 2, **given})


def test_numpy_integers_are_integers() -> None:
    with duckanon.anonymize(TABLE, quasi_identifiers=["age"], k=np.int64(2)) as release:
        assert json.loads(release.report("json"))["promise"][0]["parameters"] == {"k": 2}


def test_nothing_is_left_in_the_callers_database(con) -> None:
    before = con.execute("SELECT * FROM duckdb_tables()").fetchall()
    settings = con.execute("SELECT name, value FROM duckdb_settings()").fetchall()
    ages("people", connection=con)
    ages("SELECT * FROM people", connection=con)
    ages(TABLE, connection=con)
    assert con.execute("SELECT * FROM duckdb_tables()").fetchall() == before
    assert con.execute("SELECT name, value FROM duckdb_settings()").fetchall() == settings
