"""Columns with unusual names or types, and queries that do not fit: our own names, 128 bits, only NULL."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import duckanon
from duckanon.errors import DataError, ParameterError
from duckanon.io.source import Source


@pytest.mark.parametrize("name", ["v", "V", "d", "n", "value", "ord", "attribute", "sign", "q_0", "class_id", "first"])
@pytest.mark.parametrize("role", ["quasi", "sensitive", "nobody's"])
@pytest.mark.thinned
def test_a_column_may_be_called_like_one_of_ours(name: str, role: str) -> None:
    names = {"quasi": "q", "sensitive": "s", "nobody's": "x"} | {role: name}
    rows = pa.table(
        {
            names["quasi"]: [i * 7 % 60 for i in range(900)],
            names["sensitive"]: [f"s{i // 60 % 4}" for i in range(900)],
            names["nobody's"]: [i % 7 for i in range(900)],
            "who": [i * 13 % 300 for i in range(900)],
        }
    )
    given: dict[str, Any] = {"quasi_identifiers": [names["quasi"]], "sensitive": [names["sensitive"]], "k": 3, "l": 2}
    for more in ({}, {"entity_key": "who"}, {"entity_key": "who", "within": [names["quasi"]]}, {"t": 0.5}):
        with duckanon.anonymize(rows, **given, **more) as release:
            assert all(check.holds for check in release.checks)
            assert release.to_arrow().column_names == [names["quasi"], names["sensitive"]]


@pytest.mark.parametrize("bounds", ["cut", "tight"])
@pytest.mark.parametrize("null", [False, True])
def test_many_dates_by_their_lowest_label(bounds: str, null: bool) -> None:
    """DuckDB 2.0.0 fails on joins with a union of joins, and takes the whole database with it."""
    with duckdb.connect() as connection:
        day = "CASE WHEN i % 50 = 0 THEN NULL ELSE DATE '1950-01-01' + (i * 7919 % 20011)::INTEGER END"
        plain = "DATE '1950-01-01' + (i * 7919 % 20011)::INTEGER"
        connection.execute(f"CREATE TABLE t AS SELECT {day if null else plain} AS born FROM range(4000) AS r(i)")
        given: dict[str, Any] = {"quasi_identifiers": ["born"], "k": 6, "bounds": bounds, "output": "lca"}
        with duckanon.anonymize("t", connection=connection, **given) as release:
            assert min(Counter(release.to_arrow().column("born").to_pylist()).values()) >= 6
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (4000,)


def ends(cell: str, order: list[str]) -> tuple[int, int]:
    """Return where the first and the last value of a cell stand in an order."""
    if cell.startswith("<= "):
        return 0, order.index(cell[3:])
    if cell.startswith(">= "):
        return order.index(cell[3:]), len(order) - 1
    low, high = cell[1:-1].split(", ") if cell.startswith("[") else (cell, cell)
    return order.index(low), order.index(high)


@pytest.mark.parametrize("bounds", ["cut", "tight"])
@pytest.mark.parametrize(
    ("value", "order"),
    [
        ("i::HUGEINT", [str(i) for i in range(100)]),
        ("(i - 50)::HUGEINT", [str(i - 50) for i in range(100)]),
        ("i::UHUGEINT", [str(i) for i in range(100)]),
        ("to_days((i + 1)::INTEGER)", ["1 day", *(f"{i} days" for i in range(2, 101))]),
        (
            "(['low', 'mid', 'high', 'top'][1 + i % 4])::ENUM('low', 'mid', 'high', 'top')",
            ["low", "mid", "high", "top"],
        ),
    ],
)
def test_what_is_published_as_text_is_cut_in_its_own_order(value: str, order: list[str], bounds: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t AS SELECT {value} AS x, ({value})::VARCHAR AS was FROM range(100) AS r(i)")
        given: dict[str, Any] = {"quasi_identifiers": ["x"], "insensitive": ["was"], "k": 30, "bounds": bounds}
        with duckanon.anonymize("t", connection=connection, **given) as release:
            rows = release.to_arrow().to_pylist()
    assert len({row["x"] for row in rows}) > 1
    for row in rows:
        low, high = ends(row["x"], order)
        assert low <= order.index(row["was"]) <= high


@pytest.mark.parametrize("output", ["interval", "bounds", "set", "mean", "lca"])
@pytest.mark.parametrize("bounds", ["grid", "cut", "tight"])
def test_a_column_without_a_type(output: str, bounds: str) -> None:
    rows = pa.table({"x": pa.nulls(10), "y": list(range(10))})
    with duckanon.anonymize(rows, quasi_identifiers=["x", "y"], k=5, bounds=bounds, output=output) as release:
        assert release.to_arrow().column("x").null_count == 10


@pytest.mark.parametrize("last", [None, 4])
def test_a_missing_value_leaves_no_cut_unmade(last: int | None) -> None:
    """Only the cut after 1 is allowed, which is not the one at the median."""
    pairs = [(1, "a"), (1, "b"), (2, "b"), (2, "a"), (2, "a"), (3, "a"), (3, "a"), (3, "a"), (last, "a")]
    rows = pa.table({"x": pa.array([x for x, _ in pairs], pa.int32()), "s": [s for _, s in pairs]})
    given: dict[str, Any] = {"quasi_identifiers": ["x"], "sensitive": ["s"], "k": 2, "l": 2, "bounds": "cut"}
    with duckanon.anonymize(rows, **given) as release:
        assert sorted(release.classes().column("n").to_pylist()) == [2, 7]


def test_ordered_names_quasi_identifiers() -> None:
    rows = pa.table({"colour": ["red", "blue"] * 5})
    with pytest.raises(ParameterError, match="which is no quasi-identifier"):
        duckanon.anonymize(rows, quasi_identifiers=["colour"], k=2, algorithm="mondrian(ordered='color')")


@pytest.mark.parametrize(
    ("sql", "kind", "message"),
    [
        ("SELEC 'Jane Doe'", ParameterError, "not SQL that DuckDB can parse"),
        ("SELECT * FROM nosuch", DataError, r"does not fit the tables\. .*nosuch"),
        ("SELECT nocolumn FROM people", DataError, r"does not fit the tables\. .*nocolumn"),
    ],
)
def test_a_query_that_cannot_be_asked(sql: str, kind: type[Exception], message: str) -> None:
    """None is worth a retry, which a job's exit code says."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE people AS SELECT 1 AS age")
        with pytest.raises(kind, match=message) as raised:
            duckanon.anonymize(Source.query(sql), connection=connection, quasi_identifiers=["age"], k=1)
    assert "Jane" not in str(raised.value)


def test_numbers_of_128_bits_are_decimals() -> None:
    given: dict[str, Any] = {"quasi_identifiers": ["a"], "k": 5}
    query = "SELECT (i % 97)::{} AS a FROM range(3000) AS r(i)"
    for kind in ("HUGEINT", "UHUGEINT"):
        with duckanon.anonymize(query.format(kind), **given) as release:
            assert set(release.to_arrow().column("a").to_pylist()) == {f"[{i}, {i + 5})" for i in range(0, 100, 5)}
    # What has 39 digits is no decimal, and stays text.
    with duckanon.anonymize("SELECT 170141183460469231731687303715884105727 AS a FROM range(9)", **given) as release:
        assert set(release.to_arrow().column("a").to_pylist()) == {"170141183460469231731687303715884105727"}


@pytest.mark.parametrize("algorithm", ["datafly", "mondrian", "probabilistic"])
@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (
            "{'a': 170141183460469231731687303715884105727 - i}",
            "{'a': (170141183460469231731687303715884105727 - i)::VARCHAR}",
        ),
        ("MAP {'a': i::UHUGEINT}", "MAP {'a': i::VARCHAR}"),
        ("[i::HUGEINT, NULL]", "[i::VARCHAR, NULL]"),
        (
            "{'a': [{'b c': INTERVAL '1 month 3.123456 seconds' * i}]}",
            "{'a': [{'b c': (INTERVAL '1 month 3.123456 seconds' * i)::VARCHAR}]}",
        ),
        ("{'a': TIMETZ '12:13:14.123456+05:30'}", "{'a': '12:13:14.123456+05:30'}"),
        ("['x']::ENUM('x', 'y')[1]", "['x']"),
        ("{'a': '0101'::BIT, 'b': i::BIGNUM}", "{'a': '0101', 'b': i::VARCHAR}"),
    ],
)
@pytest.mark.thinned
def test_nested_values_are_passed_through_as_they_are(value: str, kept: str, algorithm: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t AS SELECT i % 3 AS q, {value} AS x, {kept} AS y FROM range(30) AS r(i)")
        given: dict[str, Any] = {"quasi_identifiers": ["q"], "insensitive": ["x"], "sensitive": ["y"], "k": 5}
        with duckanon.anonymize("t", connection=connection, algorithm=algorithm, **given) as release:
            rows = release.to_arrow()
        expected = connection.sql("SELECT y FROM t").to_arrow_table().column(0).to_pylist()
    assert Counter(map(repr, rows.column("x").to_pylist())) == Counter(map(repr, expected))
    assert rows.column("x").to_pylist() == rows.column("y").to_pylist()


@pytest.mark.parametrize("output", ["interval", "bounds", "mean", "set", "lca"])
@pytest.mark.parametrize("algorithm", ["mondrian", "mdav", "datafly", "probabilistic"])
@pytest.mark.thinned
def test_points_in_time_with_nanoseconds_and_a_zone(algorithm: str, output: str) -> None:
    moments = [1_577_836_800_123_456_789 + i * 86_400_000_000_007 for i in range(60)]
    zoned = pa.array([*moments, None, None, None], pa.timestamp("ns", tz="Europe/Berlin"))
    rows = pa.table({"seen": zoned, "was": [*moments, None, None, None]})
    more = {"output": output} if algorithm in ("mondrian", "mdav") else {}
    given: dict[str, Any] = {"quasi_identifiers": ["seen"], "insensitive": ["was"], "k": 3, "algorithm": algorithm}
    with duckanon.anonymize(rows, **given, **more) as release:
        assert release.to_arrow().num_rows == 63
        if algorithm == "probabilistic":
            assert Counter(release.to_arrow().column("seen").cast(pa.int64()).to_pylist()) == Counter(
                rows["was"].to_pylist()
            )
        else:
            assert release.measure()


@pytest.mark.parametrize(("names", "size"), [(["N"], "n_"), (["n", "n_"], "n__"), (["a"], "n")])
def test_the_size_of_a_class_has_a_name_of_its_own(names: list[str], size: str) -> None:
    data = pa.table({name: [1, 1, 2, 2, 2] for name in names})
    with duckanon.anonymize(data, quasi_identifiers=names, k=2) as release:
        found = release.classes()
    assert found.column_names == [*names, size]
    assert found.column(size).to_pylist() == [3, 2]
