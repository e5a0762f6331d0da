"""Values as they are counted and published: every type, NULL, NaN, -0.0, collations, time zones."""

from __future__ import annotations

import math
from collections import Counter

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot

import duckanon
from duckanon.encoding.dictionaries import code_type, dictionary, published_type
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.engine.sql.relations import col, number, pack
from duckanon.errors import RoleError

# A type and three different values of it.
TYPES = {
    "BOOLEAN": ("true", "false", "NULL"),
    "TINYINT": ("-128", "0", "127"),
    "SMALLINT": ("-32768", "0", "32767"),
    "INTEGER": ("-2147483648", "0", "2147483647"),
    "BIGINT": ("-9223372036854775808", "0", "9223372036854775807"),
    "HUGEINT": ("-170141183460469231731687303715884105727", "0", "170141183460469231731687303715884105727"),
    "UTINYINT": ("0", "1", "255"),
    "USMALLINT": ("0", "1", "65535"),
    "UINTEGER": ("0", "1", "4294967295"),
    "UBIGINT": ("0", "1", "18446744073709551615"),
    "UHUGEINT": ("0", "1", "340282366920938463463374607431768211455"),
    "DECIMAL(4,1)": ("-999.9", "0.0", "999.9"),
    "DECIMAL(38,10)": ("-1.0000000001", "0", "1.0000000001"),
    "FLOAT": ("-1.5", "0", "1e30"),
    "DOUBLE": ("-1.5", "0", "1e300"),
    "VARCHAR": ("''", "'a'", "'A'"),
    "DATE": ("'1582-10-15'", "'1970-01-01'", "'9999-12-31'"),
    "TIME": ("'00:00:00'", "'12:00:00.000001'", "'23:59:59.999999'"),
    "TIMESTAMP": ("'1900-01-01 00:00:00'", "'1970-01-01 00:00:00.000001'", "'2262-01-01 00:00:00'"),
    "TIMESTAMP_S": ("'1900-01-01 00:00:00'", "'1970-01-01 00:00:01'", "'2262-01-01 00:00:00'"),
    "TIMESTAMP_MS": ("'1900-01-01 00:00:00'", "'1970-01-01 00:00:00.001'", "'2262-01-01 00:00:00'"),
    "TIMESTAMP_NS": ("'1900-01-01 00:00:00'", "'1970-01-01 00:00:00.000000001'", "'2262-01-01 00:00:00'"),
    "TIMESTAMPTZ": ("'1900-01-01 00:00:00+00'", "'1970-01-01 00:00:00+01'", "'2262-01-01 00:00:00+00'"),
    "TIMETZ": ("'00:00:00+00'", "'12:00:00+01'", "'23:59:59-05'"),
    "INTERVAL": ("'30 days'", "'1 month'", "'720 hours'"),
    "UUID": (
        "'00000000-0000-0000-0000-000000000000'",
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
        "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
    ),
    "BLOB": ("''::BLOB", "'\\x00'::BLOB", "'\\xFF\\x00a'::BLOB"),
    "BIT": ("'0'", "'00'", "'101'"),
    "ENUM('low', 'high', 'never used')": ("'low'", "'high'", "NULL"),
}
NESTED = ["INTEGER[]", "INTEGER[2]", "STRUCT(a INTEGER)", "MAP(VARCHAR, INTEGER)", "UNION(a INTEGER, b VARCHAR)"]


def query(kind: str, values: tuple[str, ...], copies: int = 3) -> str:
    rows = ", ".join(f"(CAST({v} AS {kind}))" for v in values)
    return f"SELECT v, i FROM (VALUES {rows}) AS t(v), range({copies}) AS r(i)"


@pytest.mark.parametrize("algorithm", ["datafly", "mondrian"])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.thinned(3)
def test_any_type_is_a_quasi_identifier(kind: str, algorithm: str, connection) -> None:
    # Published as it is: on a grid a group would be.
    bounds = {"bounds": "cut"} if algorithm == "mondrian" else {}
    given = {"quasi_identifiers": ["v"], "k": 3, "algorithm": algorithm, **bounds}
    with duckanon.anonymize(query(kind, TYPES[kind]), connection=connection, **given) as release:
        assert release.recoding.levels == ({"v": 0} if algorithm == "datafly" else {})
        published = pq.read_table(release.path).column("v").to_pylist()
        assert sorted(Counter(published).values()) == [3, 3, 3], "equal in the file if and only if equal when counted"
        plain = connection.sql(query(kind, TYPES[kind])).project("v::VARCHAR").fetchall()
        stored = connection.read_parquet(str(release.path)).project("v::VARCHAR").fetchall()
        if kind not in ("TIMESTAMP_S", "TIMESTAMP_MS"):
            assert Counter(stored) == Counter(plain)


@pytest.mark.parametrize("algorithm", ["datafly", "mondrian"])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.thinned(3)
def test_any_type_is_generalized(kind: str, algorithm: str, connection) -> None:
    given = {"quasi_identifiers": ["v"], "k": 4, "algorithm": algorithm}
    with duckanon.anonymize(query(kind, TYPES[kind]), connection=connection, **given) as release:
        assert algorithm == "mondrian" or release.recoding.levels["v"] >= 1
        assert release.rows_published == 9
        assert min(Counter(pq.read_table(release.path).column("v").to_pylist()).values()) >= 4


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.thinned(2)
def test_any_type_is_sensitive_and_passes_unchanged(kind: str, connection) -> None:
    source = query(kind, TYPES[kind])
    with duckanon.anonymize(source, quasi_identifiers=["i"], sensitive=["v"], k=3, connection=connection) as release:
        plain = connection.sql(source).project("v::VARCHAR").fetchall()
        stored = connection.read_parquet(str(release.path)).project("v::VARCHAR").fetchall()
        if kind not in ("TIMESTAMP_S", "TIMESTAMP_MS"):
            assert Counter(stored) == Counter(plain)
        assert len(stored) == len(plain)


@pytest.mark.parametrize("kind", NESTED)
def test_a_nested_type_is_refused_by_name(kind: str, connection) -> None:
    with pytest.raises(RoleError, match="Column 'v' has a nested type"):
        duckanon.anonymize(f"SELECT NULL::{kind} AS v", quasi_identifiers=["v"], k=1, connection=connection)


@pytest.mark.parametrize("kind", NESTED[:4])
def test_a_nested_type_may_be_insensitive(kind: str, connection) -> None:
    source = f"SELECT 1 AS q, NULL::{kind} AS v FROM range(3)"
    with duckanon.anonymize(source, quasi_identifiers=["q"], insensitive=["v"], k=3, connection=connection) as release:
        assert release.to_arrow().column("v").null_count == 3


def test_members_of_an_enum_inside_a_list_are_not_quoted(connection) -> None:
    source = "SELECT ['Canary']::ENUM('Canary', 'b')[] AS v FROM range(3)"
    with pytest.raises(RoleError) as caught:
        duckanon.anonymize(source, quasi_identifiers=["v"], k=2, connection=connection)
    assert "Canary" not in str(caught.value)


@pytest.mark.parametrize("algorithm", ["datafly", "mondrian"])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_nan_is_one_value_and_negative_zero_is_zero(kind: pa.DataType, algorithm: str) -> None:
    data = pa.table({"v": pa.array([0.0, -0.0, math.nan, -math.nan, None, None], kind)})
    with duckanon.anonymize(data, quasi_identifiers=["v"], k=2, algorithm=algorithm) as release:
        assert release.recoding.levels == ({"v": 0} if algorithm == "datafly" else {})
        published = pq.read_table(release.path).column("v").to_pylist()
        texts = Counter("NULL" if v is None else str(v) for v in published)
        assert texts == {"0.0": 2, "nan": 2, "NULL": 2}, "counted key = published bytes"


def test_null_is_a_value_and_no_row_is_lost() -> None:
    data = pa.table({"a": ["x", "x", None, None, "y", None], "b": [1, None, None, None, 2, None]})
    with duckanon.anonymize(data, quasi_identifiers=["a", "b"], k=2, suppression_limit=1.0) as release:
        assert release.rows_published + release.rows_suppressed == 6
        assert Counter(zip(*release.to_arrow().to_pydict().values(), strict=True))[None, None] == 3


def test_three_nulls_do_not_hide_a_singleton() -> None:
    data = pa.table({"a": [None, None, "only"]})
    with duckanon.anonymize(data, quasi_identifiers=["a"], k=2) as release:
        assert set(release.to_arrow().column("a").to_pylist()) == {"*"}


@pytest.mark.parametrize("algorithm", ["datafly", "mondrian"])
@pytest.mark.parametrize("default", ["", "NOCASE", "NOACCENT"])
@pytest.mark.thinned(3)
def test_a_collation_merges_nothing(default: str, algorithm: str) -> None:
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t (c VARCHAR COLLATE NOCASE, d VARCHAR)")
        con.execute("INSERT INTO t VALUES ('a', 'é'), ('A', 'e'), ('a', 'é'), ('A', 'e')")
        con.execute(f"SET default_collation = '{default}'")
        for source in ("t", "SELECT * FROM t", "SELECT c, d COLLATE NOCASE AS d FROM t"):
            given = {"quasi_identifiers": ["c", "d"], "k": 2, "algorithm": algorithm}
            with duckanon.anonymize(source, connection=con, **given) as release:
                assert release.recoding.levels == ({"c": 0, "d": 0} if algorithm == "datafly" else {})
                rows = zip(*pq.read_table(release.path).to_pydict().values(), strict=True)
                assert Counter(rows) == {("a", "é"): 2, ("A", "e"): 2}


@pytest.mark.parametrize("default", ["", "NOCASE"])
def test_a_collation_hides_no_singleton(default: str) -> None:
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t (c VARCHAR COLLATE NOCASE)")
        con.execute("INSERT INTO t VALUES ('a'), ('A'), ('b'), ('b')")
        con.execute(f"SET default_collation = '{default}'")
        for algorithm, cells in (("datafly", {"*": 4}), ("mondrian", {"{A, a}": 2, "b": 2})):
            given = {"quasi_identifiers": ["c"], "k": 2, "algorithm": algorithm}
            with duckanon.anonymize("t", connection=con, **given) as release:
                assert Counter(pq.read_table(release.path).column("c").to_pylist()) == cells
        (found,) = duckanon.check("t", quasi_identifiers=["c"], k=2, connection=con)
        assert not found.holds
        assert found.violating_classes == 2


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "America/Los_Angeles"])
def test_the_time_zone_of_the_session_moves_nothing(zone: str) -> None:
    with duckdb.connect() as con:
        con.execute(f"SET TimeZone = '{zone}'")
        con.execute(
            "CREATE TABLE t AS "
            "SELECT '2024-02-29 23:30:00+00'::TIMESTAMPTZ + i * INTERVAL 1 HOUR AS w FROM range(4) AS r(i)"
        )
        given = {"quasi_identifiers": ["w"], "k": 2, "suppression_limit": 0.5, "algorithm": "datafly"}
        with duckanon.anonymize("t", connection=con, **given) as release:
            labels = release.to_arrow().column("w").to_pylist()
        assert con.execute("SELECT current_setting('TimeZone')").fetchone() == (zone,)
    assert labels == ["2024-03-01"] * 3


def test_members_of_an_enum_that_no_row_has_are_not_published(connection) -> None:
    source = "SELECT 'low'::ENUM('low', 'Canary Q7') AS v, 'a'::ENUM('a', 'Canary Q7') AS s FROM range(3)"
    with duckanon.anonymize(source, quasi_identifiers=["v"], sensitive=["s"], k=3, connection=connection) as release:
        assert b"Canary" not in release.path.read_bytes()
        assert [c.type for c in release.columns] == ["VARCHAR", "VARCHAR"]


def test_the_dictionary_numbers_values_in_their_order() -> None:
    engine = DuckDBEngine(threads=1)
    engine.register("data", pa.table({"v": [30, 10, None, 10, 20]}))
    source = sqlglot.parse_one("SELECT * FROM data", dialect="duckdb")
    values = dictionary(engine, source, "v", col("v"))
    found = engine.rows(sqlglot.parse_one(f"SELECT code, value, text, n FROM {values.table} ORDER BY code"))
    engine.close()
    assert found == [(0, 10, "10", 2), (1, 20, "20", 1), (2, 30, "30", 1), (3, None, None, 1)]
    assert values.size == 4


@pytest.mark.parametrize(
    ("size", "name"),
    [(1, "UTINYINT"), (256, "UTINYINT"), (257, "USMALLINT"), (2**16 + 1, "UINTEGER"), (2**32 + 1, "UBIGINT")],
)
def test_codes_take_the_smallest_type(size: int, name: str) -> None:
    assert code_type(size) == name


@pytest.mark.parametrize(
    ("sizes", "words"), [([2, 3], 1), ([2**31, 2**31], 1), ([2**31, 2**31, 2], 2), ([2**40] * 5, 5), ([1] * 100, 1)]
)
def test_codes_are_packed_into_few_words(sizes: list[int], words: int) -> None:
    assert len(pack([number(s - 1) for s in sizes], sizes)) == words


def test_packing_keeps_different_tuples_apart(connection) -> None:
    sizes = [3, 4, 5]
    (word,) = pack([col("a"), col("b"), col("c")], sizes)
    text = word.sql(dialect="duckdb")
    found = connection.execute(
        f"SELECT count(DISTINCT {text}), min({text}), max({text}) FROM range(3) x(a), range(4) y(b), range(5) z(c)"
    ).fetchone()
    assert found == (60, 0, 59)


@pytest.mark.parametrize(("kind", "published"), [("HUGEINT", "VARCHAR"), ("ENUM('a')", "VARCHAR"), ("DATE", "DATE")])
def test_a_type_is_published_in_the_type_expected(kind: str, published: str) -> None:
    assert published_type(kind) == published


def test_many_columns_with_many_values_need_several_words(connection) -> None:
    names = [f"c{j}" for j in range(8)]
    source = (
        "SELECT " + ", ".join(f"(i * 7 + {j}) % 997 AS {n}" for j, n in enumerate(names)) + " FROM range(1994) r(i)"
    )
    for algorithm in ("datafly", "mondrian"):
        bounds = {"bounds": "cut"} if algorithm == "mondrian" else {}
        given = {"quasi_identifiers": names, "k": 2, "algorithm": algorithm, **bounds}
        with duckanon.anonymize(source, connection=connection, **given) as release:
            assert release.rows_published == 1994
            assert set(release.recoding.levels.values()) == ({0} if algorithm == "datafly" else set())
            assert release.classes().num_rows == 997
