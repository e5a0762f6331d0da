"""``mondrian_classes``: every group is divided as if it were alone, by what its members are."""

from __future__ import annotations

import datetime as dt
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import duckanon
from duckanon.algorithms.partition.partition import Items, PartitionAxis, Rules, partition
from duckanon.engine.duckdb.functions import CATALOG
from duckanon.interfaces.sql import group_classes
from duckanon.interfaces.sql.group_classes import classes_of, divided
from duckanon.models import KAnonymity
from tests.effort import share

from .conftest import fetch, reason

Con = duckdb.DuckDBPyConnection
Row = tuple[Any, ...]


@pytest.fixture(scope="module")
def shared() -> Iterator[Con]:
    """One connection for many small statements."""
    with duckanon.connect() as connection:
        yield connection


def number_of(value: Any) -> float | None:
    """Return the size of a value, None for one that has none."""
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(1970, 1, 1)) / dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return float(value.toordinal())
    if isinstance(value, dt.time):
        return (value.hour * 3600 + value.minute * 60 + value.second) * 1e6 + value.microsecond
    if isinstance(value, bool | str | bytes):
        return None
    return float(value)


def order_of(value: Any) -> Any:
    """Return what a value is sorted by: as DuckDB does it, NaN last, text by its bytes."""
    if isinstance(value, str):
        return value.encode()
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)


def alone(rows: list[Row], k: int) -> list[int | None]:
    """Divide the rows of one group in the plainest way."""
    if len(rows) < k:
        return [None] * len(rows)
    axes, places = [], []
    for column in zip(*rows, strict=True):
        known = sorted({order_of(v): v for v in column if v is not None}.items())
        at = {key: i for i, (key, _) in enumerate(known)}
        sizes = [number_of(value) for _, value in known]
        if any(s is None for s in sizes) or not any(math.isfinite(s) for s in sizes if s is not None):
            sizes = [float(i) for i in range(len(known))]
        finite = [s for s in sizes if s is not None and math.isfinite(s)]
        numbers = [min(max(math.inf if math.isnan(s or 0) else s or 0.0, finite[0]), finite[-1]) for s in sizes]
        null = None in column
        size = len(known) + null
        axes.append(PartitionAxis(size, null, np.array([*numbers, *[0.0] * null]), np.arange(size)))
        places.append([size - 1 if v is None else at[order_of(v)] for v in column])
    if not axes:
        return [1] * len(rows)
    with np.errstate(over="ignore"):
        parts = partition(axes, Items(np.array(places, dtype=np.uint32).T), Rules((KAnonymity(k),)), threads=1)
    found = np.empty(len(rows), dtype=np.int64)
    found[parts.order] = np.repeat(np.arange(1, len(parts.starts)), np.diff(parts.starts))
    return [int(c) for c in found]


def keeps(classes: list[int | None], k: int) -> bool:
    """Say whether classes are numbered from 1 and each has at least k members."""
    sizes = Counter(classes)
    return sorted(sizes, key=int) == list(range(1, len(sizes) + 1)) and min(sizes.values()) >= k


def structs(rows: list[Row]) -> list[dict[str, Any]]:
    return [{f"c{j}": value for j, value in enumerate(row)} for row in rows]


def test_the_statements_of_the_manual(con: Con) -> None:
    found = fetch(
        con,
        "SELECT diagnosis, list((age, zip)), mondrian_classes(list({'age': age, 'zip': zip}), 5) "
        "FROM patients GROUP BY diagnosis ORDER BY diagnosis",
    )
    assert [diagnosis for diagnosis, *_ in found] == ["cold", "flu", "gout"]
    for _, rows, classes in found:
        assert classes == alone([tuple(r) for r in rows], 5)
        assert keeps(classes, 5)
        assert max(classes) > 15
    beside = """
        WITH g AS (SELECT diagnosis, list({'id': id, 'age': age, 'zip': zip}) AS members FROM patients GROUP BY ALL),
        u AS (SELECT diagnosis, unnest(members) AS m, unnest(mondrian_classes(members, 5)) AS class FROM g)
        SELECT diagnosis, class, count(*) AS n, count(DISTINCT m.id) AS ids FROM u GROUP BY ALL
    """
    # Divided by the id too, and by the rest only, with the id beside it.
    for query in (beside, beside.replace("(members,", "([{'age': m.age, 'zip': m.zip} FOR m IN members],")):
        rows = fetch(con, query)
        assert sum(n for *_, n, _ in rows) == 600
        assert all(n == ids >= 5 for *_, n, ids in rows)


def test_types_and_lengths(con: Con) -> None:
    assert fetch(con, "SELECT typeof(mondrian_classes([1, 2], 1))") == [("INTEGER[]",)]
    assert fetch(con, "DESCRIBE SELECT mondrian_classes(list(age), 5) AS c FROM patients")[0][:2] == ("c", "INTEGER[]")


@pytest.mark.parametrize(
    ("members", "k", "expected"),
    [
        ("[1, 8, 2, 9]", 2, [1, 2, 1, 2]),
        ("[1, 8, 2, 9]", 3, [1, 1, 1, 1]),
        ("[1, 8, 2, 9]", 5, [None] * 4),
        ("[3]", 1, [1]),
        ("[3]", 2, [None]),
        ("[5, 5, 5, 5]", 1, [1, 1, 1, 1]),
        ("[2, 1, 2, 1]", 1, [2, 1, 2, 1]),
        ("[]", 2, []),
        ("[]::INTEGER[]", 2, []),
        ("NULL", 2, None),
        ("NULL::STRUCT(a INTEGER)[]", 2, None),
        ("[NULL, NULL]", 1, [1, 1]),
        ("[NULL, NULL, NULL]::DATE[]", 2, [1, 1, 1]),
        ("[1, NULL, 2, NULL]", 2, [1, 2, 1, 2]),
        ("[1, NULL, 9, 8]", 2, [1, 2, 2, 1]),
        ("['b', 'é', 'a', 'z']", 2, [1, 2, 1, 2]),
        ("['b', NULL, '', NULL]", 1, [2, 3, 1, 3]),
        ("[true, false, true, false, NULL]", 1, [2, 1, 2, 1, 3]),
        ("[DATE '2024-05-01', DATE '1970-01-01', DATE '2024-05-02', DATE '1970-01-02']", 2, [2, 1, 2, 1]),
        ("[TIME '23:00', TIME '01:00', TIME '22:00', TIME '02:00']", 2, [2, 1, 2, 1]),
        ("[TIMESTAMP '2024-05-01 10:00', TIMESTAMP '2024-05-01 09:59:59']", 1, [2, 1]),
        ("[TIMESTAMPTZ '2024-05-01 10:00:00+02', TIMESTAMPTZ '2024-05-01 10:00:00+01']", 1, [1, 2]),
        ("['2024-05-01'::TIMESTAMP_NS, '2024-04-01'::TIMESTAMP_NS]", 1, [2, 1]),
        ("['2024-05-01'::TIMESTAMP_S, '2024-04-01'::TIMESTAMP_S]", 1, [2, 1]),
        ("[2.5, -1.25, 2.25, -2]", 2, [2, 1, 2, 1]),
        ("[9007199254740993, 9007199254740992]", 1, [2, 1]),
        (
            "[-1::HUGEINT, 170141183460469231731687303715884105727, -170141183460469231731687303715884105727]",
            1,
            [2, 3, 1],
        ),
        (
            "[1::DECIMAL(30, 2), -12345678901234567890.5, 12345678901234567890.51, 12345678901234567890.5]",
            1,
            [2, 1, 4, 3],
        ),
        ("[18446744073709551615::UBIGINT, 1, 9223372036854775808]", 1, [3, 1, 2]),
        ("[1e300, 'nan'::DOUBLE, '-inf'::DOUBLE, 'inf'::DOUBLE, NULL]", 1, [2, 4, 1, 3, 5]),
        ("[0.0::DOUBLE, -0.0::DOUBLE, 1]", 1, [1, 1, 2]),
        ("[-1.5::FLOAT, -2.5::FLOAT, 0]", 1, [2, 1, 3]),
        ("['y'::ENUM('z', 'y'), 'z'::ENUM('z', 'y')]", 1, [1, 2]),
        ("['b'::BLOB, 'a'::BLOB]", 1, [2, 1]),
        ("[UUID 'b0000000-0000-0000-0000-000000000000', UUID 'a0000000-0000-0000-0000-000000000000']", 1, [2, 1]),
        ("[[1.0, 5], [1, 4]]", 1, [2, 1]),
        ("[[1, 5], NULL, [1, NULL]]", 1, [1, 3, 2]),
        ("[[], []]", 1, [1, 1]),
        ("[[1.0, 5], [1, 4]]::DOUBLE[2][]", 1, [2, 1]),
        ("[[1.0, 5], [1, 4]]::DOUBLE[2][2]", 1, [2, 1]),
        ("[['b', 'x'], ['a', 'x']]", 1, [2, 1]),
        ("[{'a': 1, 'b': 'x'}, NULL, {'a': 1, 'b': NULL}, {'a': NULL, 'b': NULL}]", 1, [1, 3, 2, 3]),
        ("[{'a': NULL}, {'a': NULL}]", 1, [1, 1]),
    ],
)
def test_members_of_every_type(shared: Con, members: str, k: int, expected: Any) -> None:
    assert fetch(shared, f"SELECT mondrian_classes({members}, {k})") == [(expected,)]
    # Not as a constant, and twice.
    shared.execute(f"CREATE OR REPLACE TABLE two AS SELECT {members} AS m, i FROM range(2) AS r(i)")
    if members != "NULL":
        assert fetch(shared, "SELECT mondrian_classes(m, ?) FROM two", [k]) == [(expected,), (expected,)]


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "INTEGER": st.integers(-20, 20),
    "BIGINT": st.sampled_from([-(2**62), -5, 0, 1, 7, 2**53, 2**53 + 1, 2**62]),
    "DOUBLE": st.sampled_from([-math.inf, -1e308, -1.0, 0.0, 0.1, 0.3, 2.0, 1e308, math.inf, math.nan]),
    "DECIMAL(20, 3)": st.integers(-9, 9).map(lambda i: Decimal(i) / 8),
    "VARCHAR": st.text("abé", max_size=2),
    "BOOLEAN": st.booleans(),
    "DATE": st.integers(0, 40).map(lambda i: dt.date(1999, 12, 1) + dt.timedelta(i * i)),
    "TIMESTAMP": st.integers(0, 40).map(lambda i: dt.datetime(2000, 1, 1) + dt.timedelta(hours=i)),
    "TIME": st.integers(0, 23).map(lambda h: dt.time(h, 30)),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[Row] | None], list[int]]:
    types = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3))
    row = st.tuples(*(st.none() | VALUES[t] for t in types))
    groups = draw(st.lists(st.none() | st.lists(row, max_size=25), min_size=1, max_size=6))
    # Mostly one k, but a column may be given.
    ks = draw(st.just([draw(st.integers(1, 4))] * len(groups)) | st.tuples(*(st.integers(1, 4) for _ in groups)))
    return types, groups, list(ks)


@share(3)
@given(tables())
def test_groups_are_divided_as_if_alone(given: tuple[list[str], list[list[Row] | None], list[int]]) -> None:
    types, groups, ks = given
    arrow = {
        "INTEGER": pa.int32(),
        "BIGINT": pa.int64(),
        "DOUBLE": pa.float64(),
        "DECIMAL(20, 3)": pa.decimal128(20, 3),
    }
    arrow |= {"VARCHAR": pa.string(), "BOOLEAN": pa.bool_(), "DATE": pa.date32(), "TIME": pa.time64("us")}
    arrow["TIMESTAMP"] = pa.timestamp("us")
    kind = pa.list_(pa.struct([(f"c{j}", arrow[t]) for j, t in enumerate(types)]))
    lists = pa.array([None if g is None else structs(g) for g in groups], kind)
    found = classes_of(lists, pa.array(ks), divided).to_pylist()
    assert found == [None if g is None else alone(g, k) for g, k in zip(groups, ks, strict=True)]
    for classes, k in zip(found, ks, strict=True):
        assert not classes or classes[0] is None or keeps(classes, k)
    # An array that begins in the middle of another.
    assert classes_of(lists.slice(1), pa.array(ks).slice(1), divided).to_pylist() == found[1:]


def test_the_same_through_the_database(con: Con) -> None:
    con.execute("""
        CREATE TABLE rows AS
        SELECT i, (i * i) % 997 % 23 AS g, nullif(i * 7919 % 101, 3) AS a, (i * 31 % 17) / 7 AS b,
               nullif(chr((97 + i * 13 % 11)::INTEGER), 'c') AS c, DATE '2000-01-01' + (i * 104729 % 5000)::INTEGER AS d
        FROM range(3000) AS r(i)
    """)
    found = fetch(
        con,
        "SELECT list((a, b, c, d)), mondrian_classes(list({'a': a, 'b': b, 'c': c, 'd': d}), 3), "
        "mondrian_classes(list([a, b]), 4), mondrian_classes(list(c), 2) FROM rows GROUP BY g",
    )
    assert len(found) == 23
    for rows, four, two, one in found:
        assert four == alone([tuple(r) for r in rows], 3)
        assert two == alone([tuple(r[:2]) for r in rows], 4)
        assert one == alone([tuple(r[2:3]) for r in rows], 2)


def test_many_groups_of_all_sizes(con: Con, monkeypatch: pytest.MonkeyPatch) -> None:
    """More groups than a chunk has, more rows than are divided together, groups below k among them, and large ones."""
    con.execute("""
        CREATE TABLE groups AS
        SELECT g, list({'x': hash(g, i, 1) % 50, 'y': chr(97 + (hash(i, g) % 26)::INTEGER)} ORDER BY i) AS members
        FROM range(5000) AS t(g), range(30000) AS r(i)
        WHERE i < CASE g WHEN 77 THEN 30000 WHEN 4000 THEN 21000 ELSE g % 13 END GROUP BY g
    """)
    calls = []

    def counted(axes: Any, items: Items, *others: Any) -> Any:
        calls.append(len(items.places))
        return partition(axes, items, *others)

    monkeypatch.setattr(group_classes, "partition", counted)
    found = fetch(con, "SELECT g, members, mondrian_classes(members, 4) FROM groups ORDER BY g")
    assert len(found) == 5000 - 385
    assert sum(calls) == sum(len(members) for _, members, _ in found if len(members) >= 4)
    assert len(calls) < 12
    for g, members, classes in found:
        assert len(members) == len(classes)
        assert classes == [None] * len(members) if len(members) < 4 else keeps(classes, 4)
        if g < 80 or g % 100 == 0:
            assert classes == alone([(m["x"], m["y"]) for m in members], 4)


def test_settings_of_the_connection_change_nothing(con: Con) -> None:
    query = """
        SELECT g, mondrian_classes(list({'a': i * 7 % 20, 'b': (i * 3 % 5)::VARCHAR, 'h': (i % 3)::HUGEINT,
            'e': ['x', 'y'][1 + i % 2]::ENUM('y', 'x'), 'd': (i % 11 / 4)::DECIMAL(9, 2), 'x': (i % 4)::VARCHAR::BLOB,
            'u': ('a0000000-0000-0000-0000-00000000000' || i % 6)::UUID}), max(2::HUGEINT))
        FROM (SELECT i, i % 3 AS g FROM range(300) AS r(i)) GROUP BY g ORDER BY g
    """
    plain = fetch(con, query)
    for setting in ("arrow_large_buffer_size", "arrow_lossless_conversion", "produce_arrow_string_view"):
        con.execute(f"SET {setting} = true")
        assert fetch(con, query) == plain
    con.execute("SET arrow_output_version = '1.5'")
    assert fetch(con, query) == plain


def test_k_of_every_group(con: Con) -> None:
    found = fetch(
        con,
        "SELECT k, mondrian_classes(list(i ORDER BY i), k) FROM range(20) AS r(i), range(1, 30) AS t(k) "
        "GROUP BY k ORDER BY k",
    )
    for k, classes in found:
        assert classes == alone([(i,) for i in range(20)], k)
    assert fetch(con, "SELECT mondrian_classes([1, 2], 99999999999999999999)") == [([None, None],)]
    assert fetch(con, "SELECT mondrian_classes(members := [1, 2], k := 1::UTINYINT)") == [([1, 2],)]


def test_in_statements(con: Con) -> None:
    query = (
        "SELECT sex, mondrian_classes(list({'age': age} ORDER BY id), ?) AS c FROM patients GROUP BY sex ORDER BY sex"
    )
    expected = fetch(con, query, [7])
    assert expected != fetch(con, query, [40])
    con.execute("PREPARE p AS " + query)
    assert fetch(con, "EXECUTE p(7)") == expected == fetch(con, "EXECUTE p(7)")
    assert "k must be a positive integer" in reason(con, "EXECUTE p(0)")
    seven = query.replace("?", "7")
    con.execute("CREATE VIEW v AS " + seven)
    con.execute("CREATE TABLE t AS " + seven)
    assert fetch(con, "FROM v") == fetch(con, "FROM t") == expected
    assert con.sql(seven).fetchall() == expected
    with_window = "SELECT DISTINCT sex, mondrian_classes(list({'age': age}) OVER w, 7) FROM patients "
    assert len(fetch(con, with_window + "WINDOW w AS (PARTITION BY sex)")) == 2
    nested = "SELECT list_transform([[1, 2], [3], NULL], lambda m: mondrian_classes(m, 2))"
    assert fetch(con, nested) == [([[1, 1], [None], None],)]
    apart = "SELECT count(*) FROM patients WHERE list_max(mondrian_classes([age, id], 1)) = 2"
    assert fetch(con, apart.replace("id", "id % 60")) == fetch(
        con, "SELECT count(*) FROM patients WHERE age != id % 60"
    )
    # Rows of the calling transaction, of a temporary table, too: nothing but the arguments is looked at.
    con.execute("CREATE TEMP TABLE mine AS SELECT unnest([1, 2, 8, 9]) AS x")
    con.begin()
    con.execute("UPDATE mine SET x = -x")
    assert fetch(con, "SELECT mondrian_classes(list(x), 2) FROM mine") == [([2, 2, 1, 1],)]
    con.rollback()


def test_other_sessions(con: Con) -> None:
    query = "SELECT mondrian_classes(list(age ORDER BY id), 5) FROM patients"
    expected = fetch(con, query)
    cursor = con.cursor()
    assert "mondrian_classes" in reason(cursor, query)
    assert fetch(cursor, query.replace("mondrian", f"{CATALOG}.mondrian")) == expected
    duckanon.install(cursor)
    assert fetch(cursor, query) == expected

    def work(number: int) -> Any:
        own = con.cursor()
        duckanon.install(own)
        return [fetch(own, query.replace("5)", f"{5 + number % 2 * 90})")) for _ in range(5)]

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(4)))
    assert results[0] == results[2] == [expected] * 5
    assert results[1] == results[3] != results[0]


def test_a_connection_that_registered_it_is_gone() -> None:
    con = duckanon.connect()
    cursor = con.cursor()
    con.close()
    del con
    with duckdb.connect() as other:
        duckanon.install(other)
        assert fetch(other, "SELECT mondrian_classes([1, 2], 1)") == [([1, 2],)]
    cursor.close()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("[1, 2], 0", "mondrian_classes: k must be a positive integer."),
        ("[1, 2], -3", "mondrian_classes: k must be a positive integer."),
        ("[1, 2], NULL", "mondrian_classes: k must be a positive integer."),
        ("[1, 2], NULL::INTEGER", "mondrian_classes: k must be a positive integer."),
        ("NULL, 0", "mondrian_classes: k must be a positive integer."),
        ("[1, 2], 2.5", "mondrian_classes: k must be an integer. Got a number."),
        ("[1, 2], 2::DOUBLE", "mondrian_classes: k must be an integer. Got a number."),
        ("[1, 2], '2'", "mondrian_classes: k must be an integer. Got a text."),
        ("[1, 2], true", "mondrian_classes: k must be an integer. Got a boolean."),
        ("[1, 2], [2]", "mondrian_classes: k must be an integer. Got another type."),
        ("7, 2", "mondrian_classes: members must be a list"),
        ("'Canary', 2", "mondrian_classes: members must be a list"),
        ("{'a': 'Canary'}, 2", "mondrian_classes: members must be a list"),
        ("MAP {'Canary': 1}, 2", "mondrian_classes: members must be a list"),
        ("[MAP {'Canary': 1}], 1", "a member must be a number, a date, a time, a text or a boolean."),
        ("[INTERVAL 1 DAY], 1", "a member must be a number, a date, a time, a text or a boolean."),
        ("[{'a': 1, 'b': {'c': 'Canary'}}], 1", "the field 'b' of a member must be a number"),
        ("[{'a': 1, 'b': ['Canary']}], 1", "the field 'b' of a member must be a number"),
        ("[[['Canary']]], 1", "a value in a member must be a number"),
        ("[[1, 2], [3]], 1", "mondrian_classes: members that are lists must be equally long within a group."),
    ],
)
def test_errors(shared: Con, call: str, expected: str) -> None:
    message = reason(shared, f"SELECT mondrian_classes({call})")
    assert message.startswith("Invalid Input Error: ")
    assert expected in message
    assert "Canary" not in message
    shared.execute("CREATE OR REPLACE TABLE one AS SELECT 1 AS x")
    assert expected in reason(shared, f"SELECT mondrian_classes({call}) FROM one")
    assert fetch(shared, "SELECT mondrian_classes([1, 2], 1)") == [([1, 2],)]


def test_wrong_numbers_of_arguments(con: Con) -> None:
    for call in ("mondrian_classes()", "mondrian_classes([1])", "mondrian_classes([1], 1, 1)"):
        assert "mondrian_classes" in reason(con, f"SELECT {call}")


def test_an_unexpected_failure_says_only_its_kind(con: Con, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **keywords: object) -> None:
        raise ZeroDivisionError("Jane Canary")

    monkeypatch.setattr(group_classes, "partition", fail)
    message = reason(con, "SELECT mondrian_classes(list(zip), 5) FROM patients")
    assert "duckanon failed with a ZeroDivisionError" in message
    assert "Canary" not in message


def test_lists_of_different_lengths_in_different_groups(con: Con) -> None:
    con.execute("CREATE TABLE g AS SELECT * FROM (VALUES ([[1], [2]]), ([[5, 6], [5, 7]]), ([[], []]), (NULL)) AS t(m)")
    assert fetch(con, "SELECT mondrian_classes(m, 1) FROM g") == [([1, 2],), ([1, 2],), ([1, 1],), (None,)]


SCRIPT = """
import duckanon
con = duckanon.connect()
assert con.execute("SELECT mondrian_classes([1, 2], 1)").fetchall() == [([1, 2],)]
cursor = con.cursor()
duckanon.install(cursor)
relation = cursor.sql("SELECT mondrian_classes(list(i), 2) FROM range(9) AS r(i)")
relation.fetchall()
"""


def test_a_script_ends_in_silence(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(duckanon.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", SCRIPT],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_heavy_is_loaded_by_the_first_call() -> None:
    script = "import sys, duckanon; duckanon.connect().close(); print('numba' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(Path(duckanon.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
