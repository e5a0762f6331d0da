"""Reading files: no value changes because other files or other rows were read first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from sqlglot import exp

from duckanon import anonymize
from duckanon.engine.base import open_engine
from duckanon.engine.sql.relations import cast, col
from duckanon.errors import DataError
from duckanon.io.sinks.files import CsvFile
from duckanon.io.source import Source


def written(folder: Path, *queries: str) -> str:
    with duckdb.connect() as connection:
        for i, query in enumerate(queries):
            connection.execute(f"COPY ({query}) TO '{folder}/f{i}.parquet'")
    return str(folder / "f*.parquet")


def read(*paths: Any, **options: Any) -> tuple[dict[str, str], list[Any]]:
    engine = open_engine()
    try:
        relation = Source.file(*paths, **options).open(engine)
        return {c.name: c.type for c in relation.columns}, sorted(engine.rows(relation.query), key=repr)
    finally:
        engine.close()


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("first", "second", "types"),
    [
        ("2::BIGINT", "1.7::DOUBLE", ("BIGINT", "DOUBLE")),
        ("DATE '2020-01-01'", "TIMESTAMP '2020-01-01 13:05:00'", ("DATE", "TIMESTAMP")),
        ("1.25::DECIMAL(9,2)", "1.255::DECIMAL(9,3)", None),
        ("1.25::DECIMAL(9,2)", "1.255::DOUBLE", ("DECIMAL(9,2)", "DOUBLE")),
        ("7::BIGINT", "'007'", ("BIGINT", "VARCHAR")),
        ("true", "2::INTEGER", ("BOOLEAN", "INTEGER")),
        ("{'a': 1}", "{'a': 1.5::DOUBLE}", ("STRUCT(a INTEGER)", "STRUCT(a DOUBLE)")),
        ("{'a': 1}", "{'a': 1, 'b': 2}", ("STRUCT(a INTEGER)", "STRUCT(a INTEGER, b INTEGER)")),
        ("[1::INTEGER]", "[2::BIGINT]", ("INTEGER[]", "BIGINT[]")),
        ("1::INTEGER", "0.1::FLOAT", ("INTEGER", "FLOAT")),
        (
            "TIMESTAMP '2020-01-01 13:05:00'",
            "TIMESTAMPTZ '2020-01-01 13:05:00+02'",
            ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE"),
        ),
        ("'a'", "'a'::BLOB", ("VARCHAR", "BLOB")),
    ],
)
def test_parquet_files_whose_types_differ_are_refused_by_name(
    tmp_path: Path, first: str, second: str, types: tuple[str, str] | None, turned: bool
) -> None:
    queries = [f"SELECT {one} AS x, 1 AS y" for one in (first, second)]
    pattern = written(tmp_path, *(queries[::-1] if turned else queries))
    if types is None:
        assert [str(row[0]) for row in read(pattern)[1]] == ["1.250", "1.255"]
        return
    with pytest.raises(DataError, match=r"The column 'x' is ") as raised:
        read(pattern)
    assert all(f"{kind} in 'f" in str(raised.value) for kind in types)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("first", "second", "kind", "values"),
    [
        ("1::INTEGER", f"{2**40}::BIGINT", "BIGINT", [1, 2**40]),
        ("1::UTINYINT", "-1::TINYINT", "SMALLINT", [-1, 1]),
        (f"{2**64 - 1}::UBIGINT", "-1::BIGINT", "HUGEINT", [-1, 2**64 - 1]),
        ("0.1::FLOAT", "0.1::DOUBLE", "DOUBLE", [0.1, 0.10000000149011612]),
        ("3::INTEGER", "0.5::DOUBLE", "DOUBLE", [0.5, 3.0]),
        pytest.param(
            "NULL",
            "DATE '2020-01-01'",
            "DATE",
            None,
            marks=pytest.mark.skipif(
                duckdb.__version__.startswith("1."), reason="DuckDB 1 writes a column of NULL alone as INTEGER"
            ),
        ),
    ],
)
def test_parquet_types_are_widened_where_no_value_changes(
    tmp_path: Path, first: str, second: str, kind: str, values: list[Any] | None, turned: bool
) -> None:
    queries = [f"SELECT {one} AS x" for one in (first, second)]
    types, rows = read(written(tmp_path, *(queries[::-1] if turned else queries)))
    assert types == {"x": kind}
    assert values is None or [row[0] for row in rows] == values


@pytest.mark.parametrize("turned", [False, True])
def test_parquet_files_whose_columns_differ_are_refused_by_name(tmp_path: Path, turned: bool) -> None:
    queries = ["SELECT 1 AS x", "SELECT 1 AS x, 2 AS extra"]
    with pytest.raises(DataError, match="'extra' is missing in 'f"):
        read(written(tmp_path, *(queries[::-1] if turned else queries)))


def test_parquet_columns_in_another_order_are_read_by_name(tmp_path: Path) -> None:
    types, rows = read(written(tmp_path, "SELECT 1 AS x, 'a' AS y", "SELECT 'b' AS Y, 2 AS X"))
    assert (types, rows) == ({"x": "INTEGER", "y": "VARCHAR"}, [(1, "a"), (2, "b")])


def test_a_partition_of_the_path_need_not_be_in_every_file(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        for year, more in ((2020, ", 'x' AS year"), (2021, "")):
            (tmp_path / f"year={year}").mkdir()
            connection.execute(f"COPY (SELECT 1 AS a{more}) TO '{tmp_path}/year={year}/a[1].parquet'")
    assert read(tmp_path)[1] == [(1, 2020), (1, 2021)]


@pytest.mark.parametrize(
    ("usual", "late", "kind", "value"),
    [
        ("1", "1.7", "DOUBLE", "1.7"),
        ("1", "1e3", "DOUBLE", "1000.0"),
        ("1", "007", "VARCHAR", "007"),
        ("2020-01-01", "2020-01-01 13:05:00", "TIMESTAMP", "2020-01-01 13:05:00"),
        ("2020-01-01 10:00:00", "2020-01-01 10:00:00+02", "VARCHAR", "2020-01-01 10:00:00+02"),
    ],
)
def test_a_late_value_of_a_csv_file_is_read_as_it_is(
    tmp_path: Path, usual: str, late: str, kind: str, value: str
) -> None:
    path = tmp_path / "late.csv"
    path.write_text("a,b\n" + f"{usual},1\n" * 30_000 + f"{late},2\n")
    engine = open_engine()
    relation = Source.file(path).open(engine)
    assert relation.columns[0].type == kind

    assert engine.row(exp.select(cast(col("a"), "VARCHAR")).from_(relation.query.subquery("r")).where("b = 2")) == (
        value,
    )
    engine.close()


def test_a_late_number_of_a_json_file_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "late.jsonl"
    path.write_text('{"a": 1}\n' * 30_000 + '{"a": 1.7}\n')
    types, rows = read(path)
    assert types == {"a": "DOUBLE"}
    assert rows[-1] == (1.7,)


def test_cells_of_three_megabytes_are_read_and_written(tmp_path: Path) -> None:
    path, long = tmp_path / "long.csv", 'x"' * 1_500_000
    doubled = long.replace('"', '""')
    path.write_text("a,b\n" + f'1,"{doubled}"\n' + "1,short\n" * 9)
    with anonymize(path, quasi_identifiers=["a"], insensitive=["b"], k=5) as release:
        assert max(len(v) for v in release.to_arrow().column("b").to_pylist()) == len(long)
        CsvFile(tmp_path / "out.csv").publish(release, reports={}, run={})
    assert doubled in (tmp_path / "out.csv").read_text()


ONE_VALUE_TWICE = {
    "DOUBLE": ("7.50", "7.5", "8.25", "8.250"),
    "DATE": ("20-02-2020", "20-2-2020", "21-02-2020", "21-2-2020"),
    "TIMESTAMP": ("2020-02-20 01:02", "2020-02-20 01:02:00", "2020-02-20 03:04", "2020-02-20 03:04:00"),
    "BOOLEAN": ("True", "true", "False", "false"),
    "HUGEINT": (f"{10**22}", f"+{10**22}", f"{10**23}", f"+{10**23}"),
}


@pytest.mark.parametrize("source", ["file", "view"])
@pytest.mark.parametrize("kind", list(ONE_VALUE_TWICE))
def test_a_value_of_a_csv_file_that_is_written_in_two_ways_has_one_text(tmp_path: Path, kind: str, source: str) -> None:
    path = tmp_path / "rows.csv"
    usual, later = list(ONE_VALUE_TWICE[kind][::2]), list(ONE_VALUE_TWICE[kind])
    # Some of these forms are read as this type only where its reader had chosen it before it came to them.
    path.write_text("\n".join(["s", *usual * 10_500, *later]) + "\n")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW seen AS SELECT * FROM read_csv('{path}')")
        engine = open_engine(connection)
        relation = Source.of(path if source == "file" else "seen").open(engine)
        if kind == "HUGEINT" and relation.columns[0].type != kind:
            pytest.skip("this version of DuckDB guesses another type")
        assert [c.type for c in relation.columns] == [kind]
        texts = exp.select(cast(col("s"), "VARCHAR")).distinct().from_(relation.query.subquery("r"))
        found = sorted(engine.rows(texts))
        engine.close()
        connection.execute("CREATE TABLE held AS FROM seen")
        assert found == sorted(connection.execute("SELECT DISTINCT s::VARCHAR FROM held").fetchall())
        assert len(found) == 2


def test_a_person_whose_key_is_written_in_two_ways_is_one(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    usual = [f"{10**38 + j // 2},{j % 2}" for j in range(21_000)]
    path.write_text("\n".join(["key,q", *usual, f"+{10**38},1"]) + "\n")
    if read(path)[0]["key"] != "HUGEINT":
        pytest.skip("this version of DuckDB guesses another type")
    given: dict[str, Any] = {"quasi_identifiers": ["q"], "entity_key": "key", "k": 2, "seed": 1}
    with anonymize(path, algorithm="probabilistic", suppression_limit=0.5, **given) as release:
        assert release.rows_published == 21_001
