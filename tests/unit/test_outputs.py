"""What is published of regions: every output, every kind of bounds, every type; and what is asked for and refused."""

from __future__ import annotations

import datetime as dt
import io
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon.engine.duckdb import DuckDBEngine
from duckanon.errors import ConfigError, JobError, ParameterError, PrivacyViolation, RoleError, UnsupportedError
from duckanon.hierarchy import Hierarchy
from duckanon.job import load_job, plan_job, run_job
from duckanon.outputs import KINDS
from duckanon.plan import Plan
from tests.unit.boxes_made import RUN, Cutter, Made, Region
from tests.unit.jobs import fill, write

AGES = Hierarchy.intervals(width=5, factors=[2, 2])


@pytest.fixture(scope="module")
def engine() -> Iterator[DuckDBEngine]:
    made = DuckDBEngine()
    yield made
    made.close()


# What is asked for

PEOPLE = pa.table({"age": [30, 31], "zip": ["1", "2"], "ill": ["Canary", "b"], "id": [1, 2], "age_lo": [1, 2]})
ASKED = {"quasi_identifiers": ["age", "zip"], "k": 2, "algorithm": Cutter()}


def plan_of(**options: Any) -> Plan:
    return Plan.of(PEOPLE, **(ASKED | options))


def test_the_default_is_a_grid_and_intervals() -> None:
    plan = plan_of()
    assert (plan.bounds, plan.output, plan.within) == ("grid", {"age": "interval", "zip": "interval"}, ())
    assert plan.published_names == ["age", "zip"]
    assert plan.to_dict()["bounds"] == "grid"
    assert "output" not in plan.to_dict()


@pytest.mark.parametrize("kind", KINDS)
def test_one_text_is_for_every_column_that_can_take_it(kind: str) -> None:
    measured = kind in ("bounds", "struct", "midpoint", "mean", "median", "geometric_mean")
    found = plan_of(output=kind).output
    assert found == {"age": kind, "zip": "interval" if measured else kind}


def test_a_mapping_names_columns_in_any_case() -> None:
    plan = plan_of(output={"AGE": "bounds"}, bounds="tight", within=["ZIP"], sensitive=["ill"])
    assert plan.output == {"age": "bounds", "zip": "interval"}
    assert plan.within == ("zip",)
    assert plan.published_as == {"age": ("age_lo", "age_hi"), "zip": ("zip",)}
    assert plan.published_names == ["age_lo", "age_hi", "zip", "ill"]
    found = plan.to_dict()
    assert (found["bounds"], found["output"], found["within"]) == ("tight", {"age": "bounds"}, ["zip"])
    assert found["published"] == ["age_lo", "age_hi", "zip", "ill"]
    words = plan.explain()
    assert "bounds: tight\noutput: age as bounds\nwithin: zip\n" in words


def test_within_makes_quasi_identifiers() -> None:
    plan = plan_of(quasi_identifiers=["age"], within=["ZIP", "zip"], output="bounds")
    assert [a.name for a in plan.roles.quasi_identifiers] == ["age", "zip"]
    assert (plan.within, plan.output) == (("zip",), {"age": "bounds", "zip": "interval"})
    # What is published as it is has no bounds, number or not.
    assert plan_of(within=["age"], output="bounds").output["age"] == "interval"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"bounds": "grids"},
            ParameterError,
            "bounds must be one of grid, cut, tight. Got 'grids'. Did you mean 'grid'?",
        ),
        ({"bounds": 3}, ParameterError, "bounds must be one of grid, cut, tight. Got a int."),
        ({"output": "medians"}, ParameterError, "output must be one of interval, .*Did you mean 'median'?"),
        ({"output": {"age": "average"}}, ParameterError, "output of 'age' must be one of"),
        ({"output": {"agee": "mean"}}, ParameterError, "'agee', which is no quasi-identifier. Did you mean 'age'?"),
        ({"output": {"ill": "mean"}}, ParameterError, "'ill', which is no quasi-identifier."),
        ({"output": {"zip": "mean"}}, ParameterError, "needs numbers, dates or times, and 'zip' is VARCHAR"),
        ({"output": {"age": "mean"}, "within": ["age"]}, ParameterError, "'age' is in within"),
        ({"output": ["mean"]}, ParameterError, "Got a list"),
        (
            {"output": "bounds", "insensitive": ["AGE_LO"]},
            ParameterError,
            "would publish 'age_lo' twice: the bounds of 'age'",
        ),
        ({"within": ["ill"], "sensitive": ["ill"]}, RoleError, "'ill', which is given as sensitive, too"),
        ({"within": ["Id"], "entity_key": "id"}, RoleError, "'Id', which is given as the entity key, too"),
        ({"within": ["ill"], "identifiers": ["ill"]}, RoleError, "'ill', which is given as an identifier, too"),
        ({"within": ["nobody"]}, RoleError, "There is no column 'nobody'"),
        ({"within": "zip"}, RoleError, r"within must be a list of column names. Got the text 'zip': write \['zip'\]"),
    ],
)
def test_what_is_refused(options: dict[str, Any], error: type[ConfigError], message: str) -> None:
    with pytest.raises(error, match=message):
        plan_of(**options)


@pytest.mark.parametrize(
    "options",
    [{"bounds": "cut"}, {"bounds": "tight"}, {"output": "mean"}, {"output": {"age": "set"}}, {"within": ["zip"]}],
)
def test_levels_have_no_regions(options: dict[str, Any]) -> None:
    for verb in (Plan.of, duckanon.anonymize):
        with pytest.raises(UnsupportedError, match=r"datafly puts columns on levels.*divides the rows into regions"):
            verb(PEOPLE, **(ASKED | {"algorithm": "datafly"} | options))
    assert (
        Plan.of(PEOPLE, **(ASKED | {"algorithm": "datafly", "bounds": "grid", "output": "interval"})).bounds == "grid"
    )


# What is published

NUMBERS = [17, 18, 22, 33, 34, 41, None, 90]
CLASSES = [[0, 1, 2], [3, 4, 5], [6], [7]]
REGIONS: list[Region] = [("17", "22", RUN), ("33", "41", RUN), (None, None, 0), ("90", "90", 0)]
_OPEN = {"lo": None, "hi": None}


LINES: dict[str, dict[str, list[Any]]] = {
    "grid": {
        "interval": ["[15, 24]", "[30, 44]", None, "90"],
        "struct": [{"lo": 15, "hi": 24}, {"lo": 30, "hi": 44}, _OPEN, {"lo": 90, "hi": 90}],
        "midpoint": [19.5, 37.0, None, 90.0],
        "mean": [19.0, 36.0, None, 90.0],
        "lca": ["*", "*", None, "90"],
        "set": ["{17, 18, 22}", "{33, 34, 41}", None, "90"],
    },
    "cut": {
        "interval": ["<= 22", "[33, 41]", None, "90"],
        "struct": [{"lo": None, "hi": 22}, {"lo": 33, "hi": 41}, _OPEN, {"lo": 90, "hi": 90}],
        "midpoint": [19.5, 37.0, None, 90.0],
        "mean": [19.0, 36.0, None, 90.0],
        "lca": ["*", "*", None, "90"],
        "set": ["{17, 18, 22}", "{33, 34, 41}", None, "90"],
    },
    "tight": {
        "interval": ["[17, 22]", "[33, 41]", None, "90"],
        "struct": [{"lo": 17, "hi": 22}, {"lo": 33, "hi": 41}, _OPEN, {"lo": 90, "hi": 90}],
        "midpoint": [19.5, 37.0, None, 90.0],
        "mean": [19.0, 36.0, None, 90.0],
        "lca": ["*", "*", None, "90"],
        "set": ["{17, 18, 22}", "{33, 34, 41}", None, "90"],
    },
}


@pytest.mark.parametrize("bounds", LINES)
def test_every_output_of_a_line(engine: DuckDBEngine, bounds: str) -> None:
    options = {"bounds": bounds, "hierarchies": {"age": AGES}}
    made = Made(engine, pa.table({"age": NUMBERS}), CLASSES, {"age": REGIONS}, options)
    found = {output: [row[0] for row in made.written_as(output).shown()] for output in LINES[bounds]}
    assert found == LINES[bounds]


@pytest.mark.parametrize(
    ("bounds", "wanted"),
    [
        ("grid", [(15, 24), (30, 44), (None, None), (90, 90)]),
        ("cut", [(None, 22), (33, 41), (None, None), (90, 90)]),
        ("tight", [(17, 22), (33, 41), (None, None), (90, 90)]),
    ],
)
def test_bounds_are_two_columns_of_the_same_type(engine: DuckDBEngine, bounds: str, wanted: list[Any]) -> None:
    data = pa.table({"age": pa.array(NUMBERS, pa.int16())})
    made = Made(
        engine, data, CLASSES, {"age": REGIONS}, {"bounds": bounds, "output": "bounds", "hierarchies": {"age": AGES}}
    )
    published = made.publish()
    assert published.inner == (("age_lo", "q_0"), ("age_hi", "q_0b"))
    assert published.columns == ("age_lo", "age_hi")
    assert made.shown() == wanted
    assert made.types() == ["SMALLINT", "SMALLINT"]


@pytest.mark.parametrize(
    ("bounds", "first", "last", "whole"),
    [
        ("grid", "[15, 34]", "[40, 94]", "*"),
        ("cut", "<= 34", ">= 41", "*"),
        ("tight", "[17, 34]", "[41, 90]", "[17, 90]"),
    ],
)
def test_the_ends_of_the_axis(engine: DuckDBEngine, bounds: str, first: str, last: str, whole: str) -> None:
    options = {"bounds": bounds, "hierarchies": {"age": AGES}}
    data = pa.table({"age": NUMBERS})
    regions: list[Region] = [("17", "34", RUN), ("41", "90", RUN), (None, None, 0)]
    made = Made(engine, data, [[0, 1, 2, 3, 4], [5, 7], [6]], {"age": regions}, options)
    assert [row[0] for row in made.shown()] == [first, last, None]
    # A run of all values, and one that goes on to the place of NULL.
    for end in ("90", None):
        regions = [("17", end, RUN), (None, None, 0)]
        made = Made(engine, data, [[0, 1, 2, 3, 4, 5, 7], [6]], {"age": regions}, options)
        assert [row[0] for row in made.shown()] == [whole, None]


def test_open_cut_points(engine: DuckDBEngine) -> None:
    cuts = Hierarchy.intervals(cuts=[18, 40, 65])
    regions: list[Region] = [("17", "34", RUN), ("41", "90", RUN), ("70", "90", RUN), (None, None, 0)]
    data = pa.table({"age": [17, 18, 34, 41, 70, 90, None]})
    classes = [[0, 1, 2], [3], [4, 5], [6]]
    made = Made(engine, data, classes, {"age": regions}, {"hierarchies": {"age": cuts}})
    assert [row[0] for row in made.shown()] == ["< 40", ">= 40", ">= 65", None]
    made = Made(engine, data, classes, {"age": regions}, {"hierarchies": {"age": cuts}, "output": "bounds"})
    assert made.shown() == [(None, 39), (40, None), (65, None), (None, None)]
    # The axis' own end takes the place of an open bound: (17 + 39) / 2, (40 + 90) / 2, (65 + 90) / 2.
    made = Made(engine, data, classes, {"age": regions}, {"hierarchies": {"age": cuts}, "output": "midpoint"})
    assert made.shown() == [(28.0,), (65.0,), (77.5,), (None,)]


@pytest.mark.parametrize("bounds", LINES)
def test_missing_values_mixed_with_others(engine: DuckDBEngine, bounds: str) -> None:
    height = 4
    regions: list[Region] = [("17", None, height), ("90", "95", RUN)]
    options = {"bounds": bounds, "hierarchies": {"age": AGES}}
    made = Made(engine, pa.table({"age": [17, None, 90, 95]}), [[0, 1], [2, 3]], {"age": regions}, options)
    for output in [kind for kind in KINDS if kind not in ("mode", "medoid", "proportional")]:
        shown = made.written_as(output).shown()[0]
        text = output in ("interval", "lca", "set")
        assert shown == (("*",) if text else (_OPEN,) if output == "struct" else (None,) * len(shown))
    (shares,) = made.written_as("proportional").shown()[0]
    assert (shares.pop("*"), *shares.values()) == (0.5, 0.5)


SAMPLES: dict[str, tuple[list[Any], Hierarchy | None]] = {
    "TINYINT": (["1", "3", "7", "9"], Hierarchy.intervals(width=5)),
    "DECIMAL(6,2)": (["1.00", "3.50", "7.25", "9.00"], Hierarchy.intervals(width=5)),
    "FLOAT": (["1.0", "3.5", "7.25", "9.0"], Hierarchy.intervals(width=5)),
    "DOUBLE": (["1.0", "3.5", "7.25", "9.0"], Hierarchy.intervals(width=5)),
    "DATE": (["2024-01-03", "2024-01-20", "2024-02-11", "2024-02-20"], Hierarchy.dates(["month", "year"])),
    "TIMESTAMP": (
        ["2024-01-03 10:00:00", "2024-01-20 00:00:00", "2024-02-11 00:00:00", "2024-02-20 12:30:00"],
        Hierarchy.dates(["month", "year"]),
    ),
    "TIMESTAMP WITH TIME ZONE": (
        ["2024-01-03 10:00:00+00", "2024-01-20 00:00:00+00", "2024-02-11 00:00:00+00", "2024-02-20 12:30:00+00"],
        Hierarchy.dates(["month", "year"]),
    ),
    "TIME": (["01:00:00", "02:00:00", "03:00:00", "04:30:00"], None),
    "VARCHAR": (["ant", "bee", "cat, big", "dog"], None),
    "BOOLEAN": (["false", "true"], None),
}


def typed(engine: DuckDBEngine, values: list[Any], type_name: str) -> pa.Table:
    query = f"SELECT unnest($1)::{type_name} AS q"
    return engine._connection.sql(query, params=[values]).to_arrow_table()


@pytest.mark.parametrize(
    ("type_name", "bounds", "wanted"),
    [
        ("TINYINT", "grid", ["[0, 4]", "[5, 9]"]),
        ("DECIMAL(6,2)", "grid", ["[0, 5)", "[5, 10)"]),
        ("FLOAT", "grid", ["[0, 5)", "[5, 10)"]),
        ("DOUBLE", "grid", ["[0, 5)", "[5, 10)"]),
        ("DATE", "grid", ["[2024-01-01, 2024-01-31]", "[2024-02-01, 2024-02-29]"]),
        (
            "TIMESTAMP",
            "grid",
            ["[2024-01-01 00:00:00, 2024-02-01 00:00:00)", "[2024-02-01 00:00:00, 2024-03-01 00:00:00)"],
        ),
        (
            "TIMESTAMP WITH TIME ZONE",
            "grid",
            ["[2024-01-01 00:00:00+00, 2024-02-01 00:00:00+00)", "[2024-02-01 00:00:00+00, 2024-03-01 00:00:00+00)"],
        ),
        ("TINYINT", "cut", ["<= 3", ">= 7"]),
        ("DECIMAL(6,2)", "cut", ["<= 3.50", ">= 7.25"]),
        ("DOUBLE", "cut", ["<= 3.5", ">= 7.25"]),
        ("DATE", "cut", ["<= 2024-01-20", ">= 2024-02-11"]),
        ("TIME", "cut", ["<= 02:00:00", ">= 03:00:00"]),
        ("VARCHAR", "cut", ["<= bee", '>= "cat, big"']),
        ("VARCHAR", "tight", ["[ant, bee]", '["cat, big", dog]']),
        ("FLOAT", "tight", ["[1.0, 3.5]", "[7.25, 9.0]"]),
        (
            "TIMESTAMP",
            "tight",
            ["[2024-01-03 10:00:00, 2024-01-20 00:00:00]", "[2024-02-11 00:00:00, 2024-02-20 12:30:00]"],
        ),
    ],
)
def test_texts_by_type(engine: DuckDBEngine, type_name: str, bounds: str, wanted: list[str]) -> None:
    values, hierarchy = SAMPLES[type_name]
    options = {"bounds": bounds, "hierarchies": {"q": hierarchy} if hierarchy else {}}
    regions: list[Region] = [(values[0], values[1], RUN), (values[2], values[3], RUN)]
    made = Made(engine, typed(engine, values, type_name), [[0, 1], [2, 3]], {"q": regions}, options)
    assert [row[0] for row in made.shown()] == wanted
    assert made.types() == ["ENUM"]


@pytest.mark.parametrize(
    ("type_name", "midpoints", "means", "published"),
    [
        ("TINYINT", [2.0, 7.0], [2.0, 8.0], "DOUBLE"),
        ("DECIMAL(6,2)", [2.5, 7.5], [2.25, 8.125], "DOUBLE"),
        ("FLOAT", [2.5, 7.5], [2.25, 8.125], "DOUBLE"),
        ("DOUBLE", [2.5, 7.5], [2.25, 8.125], "DOUBLE"),
        ("DATE", [dt.date(2024, 1, 16), dt.date(2024, 2, 15)], [dt.date(2024, 1, 12), dt.date(2024, 2, 16)], "DATE"),
        (
            "TIMESTAMP",
            [dt.datetime(2024, 1, 16, 12), dt.datetime(2024, 2, 15, 12)],
            [dt.datetime(2024, 1, 11, 17), dt.datetime(2024, 2, 15, 18, 15)],
            "TIMESTAMP",
        ),
    ],
)
def test_midpoints_and_means_by_type(
    engine: DuckDBEngine, type_name: str, midpoints: list[Any], means: list[Any], published: str
) -> None:
    values, hierarchy = SAMPLES[type_name]
    regions: list[Region] = [(values[0], values[1], RUN), (values[2], values[3], RUN)]
    options = {"hierarchies": {"q": hierarchy}}
    made = Made(engine, typed(engine, values, type_name), [[0, 1], [2, 3]], {"q": regions}, options)
    for output, wanted in (("midpoint", midpoints), ("mean", means)):
        other = made.written_as(output)
        assert [row[0] for row in other.shown()] == wanted
        assert other.types() == [published]


def test_times_of_day_and_zones(engine: DuckDBEngine) -> None:
    for type_name, output, wanted in (
        ("TIME", "midpoint", ["01:30:00", "03:45:00"]),
        ("TIME", "mean", ["01:30:00", "03:45:00"]),
        ("TIMESTAMP WITH TIME ZONE", "mean", ["2024-01-11 17:00:00+00", "2024-02-15 18:15:00+00"]),
    ):
        values, hierarchy = SAMPLES[type_name]
        regions: list[Region] = [(values[0], values[1], RUN), (values[2], values[3], RUN)]
        options = {"output": output, "bounds": "tight", "hierarchies": {"q": hierarchy} if hierarchy else {}}
        made = Made(engine, typed(engine, values, type_name), [[0, 1], [2, 3]], {"q": regions}, options)
        published = made.publish()
        rows = engine._connection.execute(f"SELECT q_0::VARCHAR FROM {published.table} ORDER BY class_id").fetchall()
        assert [row[0] for row in rows] == wanted
        assert made.types() == [type_name]


@pytest.mark.parametrize("type_name", list(SAMPLES))
def test_a_column_of_single_values_keeps_its_type(engine: DuckDBEngine, type_name: str) -> None:
    values, hierarchy = SAMPLES[type_name]
    hierarchies = {"q": hierarchy} if hierarchy else {}
    # On a grid a run of one value is its whole group.
    for level, bounds in ((0, "grid"), (RUN, "tight")):
        regions: list[Region] = [(v, v, level) for v in values]
        data, options = typed(engine, values, type_name), {"hierarchies": hierarchies, "bounds": bounds}
        made = Made(engine, data, [[i] for i in range(len(values))], {"q": regions}, options)
        assert made.types() == ["ENUM" if type_name == "VARCHAR" else type_name]
        if type_name != "TIMESTAMP WITH TIME ZONE":
            assert [row[0] for row in made.shown()] == data.column(0).to_pylist()


def test_numbers_that_are_not_finite(engine: DuckDBEngine) -> None:
    data = typed(engine, ["-inf", "1", "2", "inf", "nan"], "DOUBLE")
    regions: list[Region] = [("-inf", "1.0", RUN), ("2.0", "nan", RUN)]
    classes = [[0, 1], [2, 3, 4]]
    wide = Hierarchy.intervals(width=2)

    def shown(**options: Any) -> list[tuple[Any, ...]]:
        return Made(engine, data, classes, {"q": regions}, {"hierarchies": {"q": wide}, **options}).shown()

    assert shown() == [("< 2",), (">= 2",)]
    assert shown(output="bounds") == [(None, 2.0), (2.0, None)]
    # Where a bound is open the outermost finite value takes its place; means are of finite values.
    assert shown(output="midpoint") == [(1.5,), (2.0,)]
    assert shown(output="mean") == [(1.0,), (2.0,)]
    assert shown(bounds="tight") == [("[-inf, 1.0]",), ("[2.0, nan]",)]


def test_dates_that_are_not_finite(engine: DuckDBEngine) -> None:
    data = typed(engine, ["2024-01-01", "2024-01-03", "infinity"], "DATE")
    regions: list[Region] = [("2024-01-01", "2024-01-01", 0), ("2024-01-03", "infinity", RUN)]
    for output, wanted in (("midpoint", dt.date(2024, 1, 3)), ("mean", dt.date(2024, 1, 3))):
        made = Made(engine, data, [[0], [1, 2]], {"q": regions}, {"bounds": "tight", "output": output})
        assert made.shown()[1] == (wanted,)


def test_the_last_digit_of_a_mean_is_always_the_same(engine: DuckDBEngine) -> None:
    values = [0.1 * i for i in range(1, 200)] + [1e15]
    data = pa.table({"q": values})
    regions: list[Region] = [("0.1", "1000000000000000.0", RUN)]
    found = {Made(engine, data, [list(range(200))], {"q": regions}, {"output": "mean"}).shown()[0] for _ in range(3)}
    assert len(found) == 1


# Trees

PLACES = Hierarchy.tree({"Europe": {"West": ["FR", "BE"], "North": ["SE"]}, "Asia": {"East": ["JP", "KR"]}})
COUNTRIES = ["BE", "FR", "SE", "JP", "KR", None]


def countries(engine: DuckDBEngine, **options: Any) -> Made:
    regions: list[Region] = [("BE", "FR", 1), ("JP", "KR", 2), ("SE", "SE", 0), (None, None, 0)]
    given = {"hierarchies": {"q": PLACES}} | options
    return Made(engine, pa.table({"q": COUNTRIES}), [[0, 1], [3, 4], [2], [5]], {"q": regions}, given)


@pytest.mark.parametrize("bounds", LINES)
def test_nodes_of_a_tree(engine: DuckDBEngine, bounds: str) -> None:
    made = countries(engine, bounds=bounds)
    labels = ["West", "Asia", "SE", None]
    wanted = {"interval": labels, "lca": labels, "bounds": labels, "set": ["{BE, FR}", "{JP, KR}", "SE", None]}
    for output, texts in wanted.items():
        assert [row[0] for row in made.written_as(output).shown()] == texts


def test_the_set_of_a_node_is_of_the_table_and_that_of_a_class_is_tight(engine: DuckDBEngine) -> None:
    data = pa.table({"q": ["BE", "FR", "SE", "BE", "SE"]})
    regions: list[Region] = [("BE", "SE", 2), ("BE", "SE", 3)]
    for bounds, wanted in (
        ("grid", ["{BE, FR, SE}", "{BE, FR, SE}"]),
        ("tight", ["{BE, FR, SE}", "{BE, SE}"]),
    ):
        options = {"hierarchies": {"q": PLACES}, "output": "set", "bounds": bounds}
        made = Made(engine, data, [[0, 1, 2], [3, 4]], {"q": regions}, options)
        assert [row[0] for row in made.shown()] == wanted


def test_numbers_on_a_tree(engine: DuckDBEngine) -> None:
    """Where level 1 is no grid: nodes have no bounds, and their midpoint is that of the values under them."""
    parity = Hierarchy.tree({"odd": ["1", "3", "5"], "even": ["2", "4"]})
    data = pa.table({"q": [1, 3, 5, 2, 4, 2]})
    regions: list[Region] = [("1", "3", 1), ("5", "5", 0), ("2", "4", 1), ("2", "2", 0)]
    classes = [[0, 1], [2], [3, 4], [5]]

    def shown(**options: Any) -> list[tuple[Any, ...]]:
        return Made(engine, data, classes, {"q": regions}, {"hierarchies": {"q": parity}, **options}).shown()

    assert shown() == [("odd",), ("5",), ("even",), ("2",)]
    assert shown(output="bounds") == [(None, None), (5, 5), (None, None), (2, 2)]
    assert shown(output="midpoint") == [(3.0,), (5.0,), (3.0,), (2.0,)]
    assert shown(output="mean") == [(2.0,), (5.0,), (3.0,), (2.0,)]


def test_the_lowest_node_over_a_run_is_exact(engine: DuckDBEngine) -> None:
    """Both ends of a run may lie under one node, and a value between them not."""
    odd = Hierarchy.from_table(
        pa.table({"l0": ["1", "2", "3", "4"], "l1": ["a", "b", "a", "a"], "l2": ["x", "x", "x", "y"]}).slice(0, 3)
    )
    data = pa.table({"q": [1, 2, 3]})
    regions: list[Region] = [("1", "3", RUN)]
    made = Made(
        engine, data, [[0, 1, 2]], {"q": regions}, {"hierarchies": {"q": odd}, "output": "lca", "bounds": "cut"}
    )
    assert made.shown() == [("x",)]
    regions = [("1", "1", RUN), ("2", "3", RUN)]
    made = Made(
        engine, data, [[0], [1, 2]], {"q": regions}, {"hierarchies": {"q": odd}, "output": "lca", "bounds": "cut"}
    )
    assert made.shown() == [("1",), ("x",)]
    regions = [("17", "18", RUN), ("22", "33", RUN), ("34", "90", RUN)]
    made = Made(
        engine,
        pa.table({"age": [17, 18, 22, 33, 34, 90]}),
        [[0, 1], [2, 3], [4, 5]],
        {"age": regions},
        {"hierarchies": {"age": AGES}, "output": "lca"},
    )
    assert made.shown() == [("[15, 20)",), ("[20, 40)",), ("*",)]


def test_texts_in_an_order_of_their_own(engine: DuckDBEngine) -> None:
    sizes = Hierarchy.from_table(pa.table({"l0": ["S", "M", "L", "XL"], "l1": ["small", "small", "large", "large"]}))
    data = pa.table({"q": ["L", "M", "S", "XL", None]})
    regions: list[Region] = [("S", "M", RUN), ("L", "XL", RUN), (None, None, 0)]
    options = {"hierarchies": {"q": sizes}, "bounds": "tight"}
    for output, wanted in (
        ("interval", ["[S, M]", "[L, XL]", None]),
        ("lca", ["small", "large", None]),
        ("set", ["{S, M}", "{L, XL}", None]),
    ):
        made = Made(
            engine,
            data,
            [[1, 2], [0, 3], [4]],
            {"q": regions},
            options | {"output": output},
            places={"q": ["S", "M", "L", "XL"]},
        )
        assert [row[0] for row in made.shown()] == wanted


def test_values_that_the_hierarchy_does_not_know(engine: DuckDBEngine) -> None:
    data = pa.table({"q": ["BE", "FR", "XX", "YY"]})
    regions: list[Region] = [("BE", "FR", 1), ("XX", "XX", 0), ("YY", "YY", 0)]
    options = {"hierarchies": {"q": PLACES}, "on_unknown": "top"}
    made = Made(engine, data, [[0, 1], [2], [3]], {"q": regions}, options)
    assert [row[0] for row in made.shown()] == ["West", "*", "*"]
    # Two classes that look alike are one.
    assert made.publish().merged


# Enumerations hold what is published, and nothing else


def test_a_file_has_no_text_that_is_not_published(engine: DuckDBEngine, tmp_path: Path) -> None:
    data = pa.table({"q": [*COUNTRIES, "canary", "canary"], "age": [17, 18, 22, 33, 34, 41, 77, 79]})
    known = Hierarchy.tree({"Europe": {"West": ["FR", "BE"], "North": ["SE"]}, "Other": {"x": ["JP", "KR", "canary"]}})
    regions: dict[str, list[Region]] = {
        "q": [("BE", "FR", 1), ("BE", "JP", 3), ("canary", "canary", 0)],
        "age": [("17", "18", RUN), ("22", "41", RUN), ("77", "79", RUN)],
    }
    options = {"hierarchies": {"q": known, "age": AGES}}
    made = Made(engine, data, [[0, 1], [2, 3, 4, 5], [6, 7]], regions, options, suppressed=[2])
    path = tmp_path / "release.parquet"
    assert made.written(path) == ["q", "age"]
    assert made.types() == ["ENUM", "ENUM"]
    assert sorted(pq.read_table(path).to_pylist(), key=str) == [
        {"q": "*", "age": "[20, 44]"},
        {"q": "West", "age": "[15, 19]"},
    ]
    held = path.read_bytes()
    for absent in (b"canary", b"Europe", b"Other", b"FR", b"[75"):
        assert absent not in held
    types = engine._connection.execute(f"DESCRIBE SELECT * FROM '{path}'").fetchall()
    assert [row[1] for row in types] == ["VARCHAR", "VARCHAR"]


def test_the_members_of_suppressed_classes_are_nowhere_in_the_file(engine: DuckDBEngine, tmp_path: Path) -> None:
    data = pa.table({"q": ["FR", "BE", "canary", "cuckoo"]})
    regions: list[Region] = [("BE", "FR", RUN), ("canary", "cuckoo", RUN)]
    path = tmp_path / "release.parquet"
    for output in ("interval", "set"):
        options = {"bounds": "tight", "output": output}
        made = Made(engine, data, [[0, 1], [2, 3]], {"q": regions}, options, suppressed=[1])
        made.written(path)
        assert pq.read_table(path).num_rows == 1
        assert b"canary" not in path.read_bytes()
        assert b"BE" in path.read_bytes()


def test_many_texts_are_no_enumeration(engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, wanted in ((3, "ENUM"), (2, "VARCHAR")):
        for name in ("ENUM_LIMIT", "MANY_TEXTS"):
            monkeypatch.setattr(f"duckanon.enumerated.{name}", limit)
        made = countries(engine)
        assert made.types() == [wanted]
    assert [row[0] for row in made.shown()] == ["West", "Asia", "SE", None]


def test_sets_that_nobody_could_read_are_refused(engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duckanon.box_columns.MOST_LISTED", 5)
    data = pa.table({"age": NUMBERS})
    options = {"hierarchies": {"age": AGES}, "output": "set"}
    with pytest.raises(UnsupportedError, match="would list 6 values, more than 5"):
        Made(engine, data, CLASSES, {"age": REGIONS}, options).publish()


# Classes that look alike


def test_classes_that_are_published_alike_are_one(engine: DuckDBEngine) -> None:
    data = pa.table({"age": [17, 18, 22, 33, 34, 41], "zip": ["a", "a", "a", "a", "b", "b"]})
    regions: dict[str, list[Region]] = {
        "age": [("17", "41", RUN), ("18", "34", RUN), ("22", "33", RUN), ("41", "41", RUN)],
        "zip": [("a", "a", 0), ("a", "a", 0), ("a", "a", 0), ("b", "b", 0)],
    }
    classes = [[0, 2], [1], [3], [4, 5]]
    made = Made(engine, data, classes, regions, {"bounds": "tight", "output": {"age": "midpoint"}})
    published = made.publish()
    rows = engine._connection.execute(f"SELECT class_id, ec FROM {published.table} ORDER BY 1").fetchall()
    # Halfway: 29, 26, 27.5 and 41; nothing is alike.
    assert rows == [(1, 1), (2, 2), (3, 3), (4, 4)]
    assert not published.merged
    made = Made(
        engine,
        pa.table({"age": [10, 20, 12, 18, 30]}),
        [[0, 1], [2, 3], [4]],
        {"age": [("10", "20", RUN), ("12", "18", RUN), ("30", "30", RUN)]},
        {"bounds": "tight", "output": "midpoint"},
    )
    published = made.publish()
    rows = engine._connection.execute(f"SELECT class_id, ec FROM {published.table} ORDER BY 1").fetchall()
    assert rows == [(1, 1), (2, 1), (3, 3)]
    assert published.merged


def test_decimals_are_summed_exactly(engine: DuckDBEngine) -> None:
    for type_name in ("DECIMAL(6,2)", "DECIMAL(38,10)"):
        data = typed(engine, ["0.10", "0.20", "0.30", "0.70"], type_name)
        texts = [str(v) for v in data.column(0).to_pylist()]
        regions: list[Region] = [(texts[0], texts[-1], RUN)]
        made = Made(engine, data, [[0, 1, 2, 3]], {"q": regions}, {"output": "mean", "bounds": "cut"})
        assert made.shown() == [(0.325,)]
        made = Made(engine, data, [[0, 1, 2, 3]], {"q": regions}, {"output": "bounds", "bounds": "tight"})
        assert made.shown() == [(Decimal("0.1"), Decimal("0.7"))]


# On the way through the house: the file, the gate, the report, a job, SQL

ROWS = pa.table(
    {
        "age": [17, 18, 22, 33, 34, 36, 41, 44, 47, 60, 61, 62],
        "sex": ["f", "m"] * 6,
        "ill": list("abcabcabcabc"),
        "id": list(range(12)),
    }
)
RELEASE = {
    "quasi_identifiers": ["age"],
    "sensitive": ["ill"],
    "k": 3,
    "algorithm": "mondrian",
    "hierarchies": {"age": AGES},
}


@pytest.mark.parametrize("entity", [{}, {"entity_key": "id"}])
@pytest.mark.parametrize("output", ["bounds", "struct"])
def test_all_columns_of_a_quasi_identifier_make_the_classes(
    output: str, entity: dict[str, str], tmp_path: Path
) -> None:
    with duckanon.anonymize(ROWS, **RELEASE, **entity, output=output, within=["sex"]) as release:
        wanted = ["age_lo", "age_hi", "sex", "ill"] if output == "bounds" else ["age", "sex", "ill"]
        assert [c.name for c in release.columns] == wanted
        table = pq.read_table(release.path)
        release.verify(release.path)
        path = tmp_path / "other.parquet"
        # One row's upper bound is changed: its class is its own now, and the gate must see it.
        if output == "bounds":
            column = [*table.column("age_hi").to_pylist()[:-1], 99]
            changed = table.set_column(1, "age_hi", pa.array(column, table.schema.field("age_hi").type))
        else:
            rows = table.column("age").to_pylist()
            rows[-1] = {**rows[-1], "hi": 99}
            changed = table.set_column(0, "age", pa.array(rows, table.schema.field("age").type))
        pq.write_table(changed, path)
        with pytest.raises(PrivacyViolation, match="The gate refused the release"):
            release.verify(path)
        for columns in (wanted[1:], [wanted[-1], *wanted[:-1]]):
            pq.write_table(table.select(columns), path)
            with pytest.raises(PrivacyViolation, match="its columns are not the declared ones"):
                release.verify(path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.thinned(2)
def test_a_release_of_regions_tells_about_itself(kind: str) -> None:
    with duckanon.anonymize(ROWS, **RELEASE, output=kind, bounds="tight", within=["sex"]) as release:
        summary = release.summary()
        assert [h["level"] for h in summary["hierarchies"]] == [None, None]
        assert (summary["bounds"], summary["within"]) == ("tight", ["sex"])
        assert summary.get("output") == (None if kind == "interval" else {"age": kind})
        classes = release.classes()
        assert classes.num_rows == summary["found"]["classes"]
        assert sum(classes.column("n").to_pylist()) == 12
        assert release.recoding.levels == {}
        with pytest.raises(UnsupportedError, match="divided into regions"):
            release.recoding.to_sql()
        with pytest.raises(UnsupportedError, match="divided into regions"):
            release.recoding.mapping("age")
        report = release.report("md")
        assert f"| age | quasi-identifier | given: rule intervals |  | in regions, as {kind} |" in report
        assert "|  | published as it is |" in report
        assert "every bound is the exact value of a person" in report
        assert ("Written as" in report) == (kind != "interval")


def test_the_terminal_shows_columns_without_levels() -> None:
    from rich.console import Console

    from duckanon.cli.show import _columns

    with duckanon.anonymize(ROWS, **RELEASE, output="mean", within=["sex"]) as release:
        console = Console(width=120, file=io.StringIO())
        console.print(_columns(release.summary()))
    shown = console.file.getvalue()
    assert re.search(r"age +\S+ +regions, as means \(given: rule intervals\)", shown)
    assert re.search(r"sex +\S+ +untouched", shown)


def test_a_job_says_it_all(tmp_path: Path) -> None:
    changes = (
        ('name = "datafly"\nstop = "limit"', 'name = "mondrian"'),
        ("k = 4\n", 'k = 4\nbounds = "cut"\n'),
        ('quasi_identifiers = ["age", "town"]', 'quasi_identifiers = ["age"]\nwithin = ["Town"]'),
        ('path = "out/people.parquet"', 'path = "out/people.parquet"\nform = {AGE = "bounds"}'),
    )
    job = write(fill(tmp_path), *changes)
    result = run_job(job)
    assert pq.read_schema(result.written["release"]).names == ["age_lo", "age_hi", "town", "ill"]
    assert (result.summary["bounds"], result.summary["within"]) == ("cut", ["town"])
    assert result.summary["output"] == {"age": "bounds"}
    manifest = json.loads(Path(result.written["manifest"]).read_text())
    assert manifest["output"] == {"age": "bounds"}
    assert plan_job(job).published_names == ["age_lo", "age_hi", "town", "ill"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("k = 4\n", 'k = 4\nbounds = "loose"\n', r"\[privacy\] bounds must be 'grid' or 'cut' or 'tight'. Got 'loose'"),
        ('"out/people.parquet"', '"out/people.parquet"\nform = "means"', r"\[output\] form: .*Did you mean 'mean'"),
        (
            '"out/people.parquet"',
            '"out/people.parquet"\nform = {aeg = "mean"}',
            r"\[output\] form: .*Did you mean 'age'",
        ),
        ('"out/people.parquet"', '"out/people.parquet"\nform = 3', r"\[output\] form must be a text such as 'bounds'"),
        ('["age", "town"]', '["age", "town"]\nwithin = "town"', r"\[roles\] within must be a list of texts"),
    ],
)
def test_what_a_job_may_not_say(old: str, new: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(JobError, match=message):
        load_job(write(fill(tmp_path), (old, new)))


def test_in_sql() -> None:
    connection = duckanon.connect()
    connection.execute(
        "CREATE TABLE people AS SELECT 20 + i % 30 AS age, ['f', 'm'][1 + i % 2] AS sex, i % 4 AS ill "
        "FROM range(60) AS r(i)"
    )
    arguments = "'people', quasi_identifiers := ['age'], sensitive := ['ill'], k := 5, algorithm := 'mondrian'"
    more = "bounds := 'tight', output := {'AGE': 'bounds'}, within := ['sex']"
    found = connection.execute(f"DESCRIBE FROM anonymize({arguments}, {more})").fetchall()
    assert [(row[0], row[1]) for row in found] == [
        ("age_lo", "BIGINT"),
        ("age_hi", "BIGINT"),
        ("sex", "VARCHAR"),
        ("ill", "BIGINT"),
    ]
    rows = connection.execute(f"FROM anonymize_classes({arguments}, {more})").fetchall()
    assert sum(row[-1] for row in rows) == 60
    assert all(low < high and n >= 5 for low, high, _, n in rows)
    (kind,) = connection.execute(f"SELECT typeof(age) FROM anonymize({arguments}, output := 'mean') LIMIT 1").fetchone()
    assert kind == "DOUBLE"
    connection.close()
