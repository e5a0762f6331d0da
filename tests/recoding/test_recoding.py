"""The recoding: levels, mapping, and one statement that runs without duckanon."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot

import duckanon
from duckanon.errors import UnsupportedError

TABLE = pa.table(
    {
        "age": pa.array([17, 18, 23, 24, None, None, 61, 62, 63, 64], pa.int32()),
        "zip": ["10115", "10117", "10115", "10117", "20095", "20095", "80331", "80331", "o'c", None],
        "ill": [f"s{i % 3}" for i in range(10)],
        "who": [i // 2 for i in range(10)],
    }
)
OPTIONS = {
    "quasi_identifiers": ["age", "zip"],
    "sensitive": ["ill"],
    "suppression_limit": 0.5,
    "algorithm": "datafly",
}


def rows(table: pa.Table) -> Counter:
    return Counter(zip(*(c.to_pylist() for c in table.columns), strict=True))


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("entity", [None, "who"])
def test_the_statement_gives_the_same_rows(k: int, entity: str | None) -> None:
    with duckanon.anonymize(TABLE, k=k, entity_key=entity, **OPTIONS) as release, duckdb.connect() as con:
        con.register("source", TABLE)
        assert rows(con.sql(release.recoding.to_sql()).to_arrow_table()) == rows(release.to_arrow())


@pytest.mark.parametrize("kind", ["file", "table", "query", "odd table"])
def test_the_statement_reads_the_source_itself(kind: str, tmp_path: Path) -> None:
    with duckdb.connect() as con:
        con.register("source", TABLE)
        name = {"odd table": 'duckanon_map_0"; --'}.get(kind, "people")
        con.execute('CREATE TABLE "' + name.replace('"', '""') + '" AS SELECT * FROM source')
        data: object = name
        if kind == "file":
            data = tmp_path / "it's.parquet"
            pq.write_table(TABLE, data)
        elif kind == "query":
            data = "SELECT * FROM people"
        with duckanon.anonymize(data, k=3, connection=con, **OPTIONS) as release:
            assert rows(con.sql(release.recoding.to_sql()).to_arrow_table()) == rows(release.to_arrow())


def test_the_statement_is_one_select() -> None:
    with duckanon.anonymize(TABLE, k=3, **OPTIONS) as release:
        (tree,) = sqlglot.parse(release.recoding.to_sql("duckdb"), dialect="duckdb")
        assert isinstance(tree, sqlglot.exp.Select)
        assert tree.named_selects == ["age", "zip", "ill"]
        with pytest.raises(UnsupportedError, match="Got 'klingon'"):
            release.recoding.to_sql("klingon")


def test_the_mapping_is_total_and_a_function() -> None:
    with duckanon.anonymize(TABLE, k=3, **OPTIONS) as release:
        for name in ("age", "zip"):
            pairs = release.recoding.mapping(name)
            values = pairs.column("value").to_pylist()
            assert len(values) == len(set(values)) == len(set(TABLE.column(name).to_pylist()))
            assert set(release.to_arrow().column(name).to_pylist()) <= set(pairs.column("label").to_pylist())


def test_no_value_shows_when_a_recoding_is_printed() -> None:
    with duckanon.anonymize(TABLE, k=3, **OPTIONS) as release:
        assert set(release.recoding.levels) == {"age", "zip"}
        assert "10115" not in repr(release.recoding)
        assert "10115" not in repr(release)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_the_statement_does_not_depend_on_the_session(zone: str) -> None:
    """Labels of points in time are looked up by their text, which a session's time zone must not change."""
    with duckdb.connect() as con:
        con.execute(
            "CREATE TABLE t AS "
            "SELECT '2024-01-01 00:00:00+00'::TIMESTAMPTZ + i * INTERVAL 1 DAY AS w FROM range(40) AS r(i) "
            "UNION ALL SELECT 'infinity'::TIMESTAMPTZ FROM range(9) UNION ALL SELECT NULL FROM range(9)"
        )
        with duckanon.anonymize("t", quasi_identifiers=["w"], k=5, algorithm="datafly", connection=con) as release:
            assert release.recoding.levels["w"] >= 1
            con.execute(f"SET TimeZone = '{zone}'")
            assert rows(con.sql(release.recoding.to_sql()).to_arrow_table()) == rows(release.to_arrow())
