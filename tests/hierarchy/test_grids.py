"""Groups of level 1 as intervals: bounds come from the hierarchy, never from the rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from duckanon.encoding.dictionaries import code_levels, dictionary
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.engine.sql.relations import col
from duckanon.hierarchy import Hierarchy, auto
from duckanon.recoding.partition_axes import grid_bounds

INTERVALS = Hierarchy.intervals(width=5, factors=[2])


def grid(
    engine: DuckDBEngine, hierarchy: Hierarchy | None, values: list[Any], type_name: str, on_unknown: str = "error"
) -> list[tuple[Any, ...]] | None:
    """Return (text of the value, atom, lo, hi, low, high, upto), lo and hi as texts too, in the order of the values."""
    cursor = engine._connection
    cursor.execute(
        f"CREATE OR REPLACE TABLE raw AS SELECT unnest($1)::{type_name} AS v",
        [[str(v) if v is not None else None for v in values]],
    )
    found = dictionary(engine, engine_query("raw"), "q", col("v"))
    bound = hierarchy or auto(engine, found.table, "q", type_name)
    levels = bound.bind(engine, found.table, "q", type_name, on_unknown)
    tables = (levels.tree, levels.leaves, levels.height, levels.size, levels.top, levels.unknown > 0)
    bounds = grid_bounds(engine, hierarchy, code_levels(engine, found, *tables), type_name)
    if bounds is None:
        return None
    made, atoms = bounds
    numbered = cursor.execute(f"SELECT list(atom ORDER BY code) FROM {made}").fetchone()
    assert numbered == (atoms.tolist() + [None] * (None in values),)
    types = dict(cursor.execute(f"SELECT column_name, column_type FROM (DESCRIBE {made})").fetchall())
    assert (types["code"], types["atom"]) == ("INTEGER", "INTEGER")
    assert types["lo"] == types["hi"] == cursor.execute("SELECT typeof(v) FROM raw").fetchone()[0]
    wrong = cursor.execute(
        f"SELECT count(*) FROM {made} JOIN {found.table} USING (code) WHERE value < lo OR value > hi"
    ).fetchone()
    assert wrong == (0,)
    return cursor.execute(
        f"SELECT text, atom, lo::VARCHAR, hi::VARCHAR, low, high, upto FROM {made} JOIN {found.table} USING (code) "
        "WHERE value IS NOT NULL ORDER BY code"
    ).fetchall()


def engine_query(name: str) -> Any:
    from sqlglot import exp

    return exp.select("*").from_(name)


@pytest.mark.parametrize(
    ("hierarchy", "values", "type_name", "wanted"),
    [
        # Integers are closed on both sides, NULL has no group.
        (
            INTERVALS,
            [17, 19, 20, None],
            "INTEGER",
            [
                ("17", 0, "15", "19", "15", "19]", "< 20"),
                ("19", 0, "15", "19", "15", "19]", "< 20"),
                ("20", 1, "20", "24", "20", "24]", "< 25"),
            ],
        ),
        (
            Hierarchy.intervals(width=5, origin=-3),
            [-4, -3],
            "BIGINT",
            [
                ("-4", 0, "-8", "-4", "-8", "-4]", "< -3"),
                ("-3", 1, "-3", "1", "-3", "1]", "< 2"),
            ],
        ),
        # A type that does not reach as far as the grid holds its own end; the text shows the grid.
        (
            INTERVALS,
            [254, 255],
            "UTINYINT",
            [
                ("254", 0, "250", "254", "250", "254]", "< 255"),
                ("255", 1, "255", "255", "255", "259]", "< 260"),
            ],
        ),
        (
            Hierarchy.intervals(width="2.5"),
            [2, 3, 5],
            "SMALLINT",
            [
                ("2", 0, "0", "2", "0", "2]", "< 3"),
                ("3", 1, "3", "4", "3", "4]", "< 5"),
                ("5", 2, "5", "7", "5", "7]", "< 8"),
            ],
        ),
        # Everything with values in between is half-open.
        (
            INTERVALS,
            [17.5, 20],
            "DOUBLE",
            [
                ("17.5", 0, "15.0", "20.0", "15", "20)", "< 20"),
                ("20.0", 1, "20.0", "25.0", "20", "25)", "< 25"),
            ],
        ),
        (
            Hierarchy.intervals(width="0.1"),
            ["0.7", "0.75"],
            "FLOAT",
            [
                ("0.7", 0, "0.7", "0.8", "0.7", "0.8)", "< 0.8"),
                ("0.75", 0, "0.7", "0.8", "0.7", "0.8)", "< 0.8"),
            ],
        ),
        (
            Hierarchy.intervals(width="0.25"),
            ["0.1", "0.2", "9.9"],
            "DECIMAL(2,1)",
            [
                ("0.1", 0, "0.0", "0.3", "0", "0.25)", "< 0.25"),
                ("0.2", 0, "0.0", "0.3", "0", "0.25)", "< 0.25"),
                ("9.9", 1, "9.7", "9.9", "9.75", "10)", "< 10"),
            ],
        ),
        # Cut points: the outer groups are open.
        (
            Hierarchy.intervals(cuts=[18, 65]),
            [3, 18, 64, 65],
            "INTEGER",
            [
                ("3", 0, None, "17", None, "17]", "< 18"),
                ("18", 1, "18", "64", "18", "64]", "< 65"),
                ("64", 1, "18", "64", "18", "64]", "< 65"),
                ("65", 2, "65", None, "65", None, None),
            ],
        ),
        (
            Hierarchy.intervals(cuts=[0.5]),
            ["0.1", "inf", "nan"],
            "DOUBLE",
            [
                ("0.1", 0, None, "0.5", None, "0.5)", "< 0.5"),
                ("inf", 1, "0.5", None, "0.5", None, None),
                ("nan", 2, None, None, None, None, None),
            ],
        ),
        (
            Hierarchy.quantiles(2),
            [10, 20, 30, 40],
            "INTEGER",
            [
                ("10", 0, None, "29", None, "29]", "< 30"),
                ("20", 0, None, "29", None, "29]", "< 30"),
                ("30", 1, "30", None, "30", None, None),
                ("40", 1, "30", None, "30", None, None),
            ],
        ),
        # Calendars: first and last day, and of timestamps where the next period begins.
        (
            Hierarchy.dates(["month", "year"]),
            ["2024-02-29", "2024-03-01", "infinity"],
            "DATE",
            [
                ("2024-02-29", 0, "2024-02-01", "2024-02-29", "2024-02-01", "2024-02-29]", "< 2024-03-01"),
                ("2024-03-01", 1, "2024-03-01", "2024-03-31", "2024-03-01", "2024-03-31]", "< 2024-04-01"),
                ("infinity", 2, None, None, None, None, None),
            ],
        ),
        (
            Hierarchy.dates(["week"]),
            ["2024-01-07", "2024-01-08"],
            "DATE",
            [
                ("2024-01-07", 0, "2024-01-01", "2024-01-07", "2024-01-01", "2024-01-07]", "< 2024-01-08"),
                ("2024-01-08", 1, "2024-01-08", "2024-01-14", "2024-01-08", "2024-01-14]", "< 2024-01-15"),
            ],
        ),
        (
            Hierarchy.dates(["quarter"]),
            ["2024-05-05"],
            "DATE",
            [
                ("2024-05-05", 0, "2024-04-01", "2024-06-30", "2024-04-01", "2024-06-30]", "< 2024-07-01"),
            ],
        ),
        (
            Hierarchy.dates(["decade"]),
            ["1999-12-31", "2000-01-01"],
            "DATE",
            [
                ("1999-12-31", 0, "1990-01-01", "1999-12-31", "1990-01-01", "1999-12-31]", "< 2000-01-01"),
                ("2000-01-01", 1, "2000-01-01", "2009-12-31", "2000-01-01", "2009-12-31]", "< 2010-01-01"),
            ],
        ),
        (
            Hierarchy.dates(["day", "month"]),
            ["2024-02-29 23:59:59.5", "infinity"],
            "TIMESTAMP",
            [
                (
                    "2024-02-29 23:59:59.5",
                    0,
                    "2024-02-29 00:00:00",
                    "2024-03-01 00:00:00",
                    "2024-02-29 00:00:00",
                    "2024-03-01 00:00:00)",
                    "< 2024-03-01 00:00:00",
                ),
                ("infinity", 1, None, None, None, None, None),
            ],
        ),
        (
            Hierarchy.dates(["year"]),
            ["2262-01-01", "1700-05-05"],
            "TIMESTAMP_NS",
            [
                (
                    "1700-05-05 00:00:00",
                    0,
                    "1700-01-01 00:00:00",
                    "1701-01-01 00:00:00",
                    "1700-01-01 00:00:00",
                    "1701-01-01 00:00:00)",
                    "< 1701-01-01 00:00:00",
                ),
                ("2262-01-01 00:00:00", 1, "2262-01-01 00:00:00", None, "2262-01-01 00:00:00", None, None),
            ],
        ),
        (
            Hierarchy.dates(["month"]),
            ["2024-01-31 23:30:00+00"],
            "TIMESTAMPTZ",
            [
                (
                    "2024-01-31 23:30:00+00",
                    0,
                    "2024-01-01 00:00:00+00",
                    "2024-02-01 00:00:00+00",
                    "2024-01-01 00:00:00+00",
                    "2024-02-01 00:00:00+00)",
                    "< 2024-02-01 00:00:00+00",
                ),
            ],
        ),
        # Where none is given, the one that is made.
        (
            None,
            [17, 90],
            "INTEGER",
            [
                ("17", 0, "15", "19", "15", "19]", "< 20"),
                ("90", 1, "90", "94", "90", "94]", "< 95"),
            ],
        ),
        (
            None,
            ["2024-05-05"],
            "DATE",
            [
                ("2024-05-05", 0, "2024-05-01", "2024-05-31", "2024-05-01", "2024-05-31]", "< 2024-06-01"),
            ],
        ),
    ],
)
def test_bounds_of_rules(
    engine: DuckDBEngine, hierarchy: Hierarchy | None, values: list[Any], type_name: str, wanted: list[Any]
) -> None:
    assert grid(engine, hierarchy, values, type_name) == wanted


def table_of(*rows: tuple[str, ...]) -> Hierarchy:
    return Hierarchy.from_table(pa.table({f"l{i}": [row[i] for row in rows] for i in range(len(rows[0]))}))


LISTED = table_of(("1", "low"), ("2", "low"), ("9", "low"), ("10", "high"), ("30", "high"))


def test_a_table_of_numbers_has_the_bounds_of_its_own_leaves(engine: DuckDBEngine) -> None:
    assert grid(engine, LISTED, [2, 10], "INTEGER") == [
        ("2", 0, "1", "9", "1", "9]", "<= 9"),
        ("10", 1, "10", "30", "10", "30]", "<= 30"),
    ]
    # Without a leaf between them: bounds do not depend on which of the leaves the data have.
    assert grid(engine, LISTED, [10, 30], "DECIMAL(4,1)") == [
        ("10.0", 0, "10.0", "30.0", "10.0", "30.0]", "<= 30.0"),
        ("30.0", 0, "10.0", "30.0", "10.0", "30.0]", "<= 30.0"),
    ]


def test_a_table_of_dates(engine: DuckDBEngine) -> None:
    months = table_of(("2024-01-05", "jan"), ("2024-01-20", "jan"), ("2024-02-01", "feb"))
    assert grid(engine, months, ["2024-01-20", "2024-02-01"], "DATE") == [
        ("2024-01-20", 0, "2024-01-05", "2024-01-20", "2024-01-05", "2024-01-20]", "<= 2024-01-20"),
        ("2024-02-01", 1, "2024-02-01", "2024-02-01", "2024-02-01", "2024-02-01]", "<= 2024-02-01"),
    ]


@pytest.mark.parametrize(
    ("hierarchy", "values", "type_name"),
    [
        # Not neighbours: in the data, or only among the hierarchy's leaves.
        (table_of(("1", "odd"), ("2", "even"), ("3", "odd")), [1, 2, 3], "INTEGER"),
        (table_of(("1", "odd"), ("2", "even"), ("3", "odd")), [1, 2], "INTEGER"),
        # Leaves that are no values of the type.
        (table_of(("1", "low"), ("17.5", "high")), [1], "INTEGER"),
        (table_of(("1", "low"), ("many", "high")), [1], "INTEGER"),
        # No intervals.
        (Hierarchy.age("2024-01-01"), ["1980-05-05"], "DATE"),
        (Hierarchy.suppress(), [1, 2], "INTEGER"),
        (Hierarchy.order(2), [1, 2, 3, 4], "INTEGER"),
        (Hierarchy.dates(["day"]), ["2024-05-05"], "DATE"),
        (Hierarchy.mask(), ["abc"], "VARCHAR"),
        (None, ["abc"], "VARCHAR"),
        (None, [True], "BOOLEAN"),
        (None, ["10:00:00"], "TIME"),
        (Hierarchy.intervals(width=5), [1], "HUGEINT"),
        (None, [None], "INTEGER"),
    ],
)
def test_what_is_no_grid(engine: DuckDBEngine, hierarchy: Hierarchy, values: list[Any], type_name: str) -> None:
    assert grid(engine, hierarchy, values, type_name) is None


def test_values_that_the_hierarchy_does_not_know(engine: DuckDBEngine) -> None:
    assert grid(engine, LISTED, [2, 10], "INTEGER", "top") is not None
    assert grid(engine, LISTED, [2, 5, 10], "INTEGER", "top") is None


def test_the_bounds_say_nothing_about_the_rows(engine: DuckDBEngine) -> None:
    """Other values in the same groups: the same bounds."""
    for hierarchy, one, other in (
        (INTERVALS, [15, 22], [19, 20]),
        (Hierarchy.intervals(cuts=[18, 65]), [1, 70], [17, 99]),
        (LISTED, [1, 10], [9, 30]),
    ):
        first, second = (grid(engine, hierarchy, values, "INTEGER") for values in (one, other))
        assert first is not None
        assert second is not None
        assert [row[1:] for row in first] == [row[1:] for row in second]


def test_nothing_is_left_behind(engine: DuckDBEngine) -> None:
    before = set(engine._connection.execute("SELECT table_name FROM duckdb_tables()").fetchall())
    assert grid(engine, INTERVALS, [1, 7], "INTEGER") is not None
    assert grid(engine, LISTED, [1], "INTEGER") is not None
    assert grid(engine, Hierarchy.suppress(), [1], "INTEGER") is None
    after = set(engine._connection.execute("SELECT table_name FROM duckdb_tables()").fetchall())
    kinds = sorted(name.split("_")[1] for (name,) in after - before if name.startswith("duckanon"))
    assert kinds == sorted(["values", "tree", "leaves", "labels", "levels"] * 3 + ["grid"] * 2)
