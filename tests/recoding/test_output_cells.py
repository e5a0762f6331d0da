"""What is published of numbers, dates and times: every output, every kind of bounds, every type."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import duckanon
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.errors import UnsupportedError
from duckanon.hierarchy import Hierarchy
from duckanon.plan.plan import KINDS
from tests.recoding.boxes_made import RUN, Made, Region

AGES = Hierarchy.intervals(width=5, factors=[2, 2])


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


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_region_of_one_value_that_is_not_finite_has_it_as_midpoint_and_no_mean(value: str) -> None:
    data = pa.table({"x": pa.array([float(value)] * 6, pa.float32())})
    cells = {}
    for output in ("midpoint", "mean"):
        with duckanon.anonymize(data, quasi_identifiers=["x"], k=3, output=output) as release:
            cells[output] = {str(cell) for cell in release.to_arrow().column("x").to_pylist()}
    assert cells == {"midpoint": {value}, "mean": {"None"}}


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


def test_sets_that_nobody_could_read_are_refused(engine: DuckDBEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duckanon.recoding.regions.MOST_LISTED", 5)
    data = pa.table({"age": NUMBERS})
    options = {"hierarchies": {"age": AGES}, "output": "set"}
    with pytest.raises(UnsupportedError, match="would list 6 values, more than 5"):
        Made(engine, data, CLASSES, {"age": REGIONS}, options).publish()


def test_decimals_are_summed_exactly(engine: DuckDBEngine) -> None:
    for type_name in ("DECIMAL(6,2)", "DECIMAL(38,10)"):
        data = typed(engine, ["0.10", "0.20", "0.30", "0.70"], type_name)
        texts = [str(v) for v in data.column(0).to_pylist()]
        regions: list[Region] = [(texts[0], texts[-1], RUN)]
        made = Made(engine, data, [[0, 1, 2, 3]], {"q": regions}, {"output": "mean", "bounds": "cut"})
        assert made.shown() == [(0.325,)]
        made = Made(engine, data, [[0, 1, 2, 3]], {"q": regions}, {"output": "bounds", "bounds": "tight"})
        assert made.shown() == [(Decimal("0.1"), Decimal("0.7"))]
