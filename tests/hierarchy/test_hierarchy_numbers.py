"""Intervals and quantiles on values small enough to label by hand, and the grids that are made."""

from __future__ import annotations

import math
from datetime import date
from itertools import pairwise

import pytest

from duckanon.errors import HierarchyError
from duckanon.hierarchy import Hierarchy
from duckanon.hierarchy.auto import grid_widths
from tests.hierarchy.hierarchy_bound import Bound


def test_tables_have_the_promised_columns() -> None:
    bound = Bound(Hierarchy.intervals(width=5, factors=[2]), ["1", "7", None], "INTEGER")
    assert bound.types == ["INTEGER", "BOOLEAN", "VARCHAR", "VARCHAR", "VARCHAR"]
    levels = bound.levels
    assert (levels.attribute, levels.height, levels.size, levels.top) == ("column", 3, 3, "*")
    assert (levels.kind, levels.origin, levels.unknown) == ("number", "given: rule intervals", 0)
    assert bound.leaves == {
        (1, "[0, 5)"): 1,
        (1, "[5, 10)"): 1,
        (1, None): 1,
        (2, "[0, 10)"): 2,
        (2, None): 1,
        (3, "*"): 3,
    }


# Intervals


def test_intervals_nest_from_the_origin() -> None:
    bound = Bound(Hierarchy.intervals(width=5, factors=[2, 2]), ["-1", "0", "4", "5", "19", "20", None], "INTEGER")
    assert bound.labels == {
        "-1": ("[-5, 0)", "[-10, 0)", "[-20, 0)", "*"),
        "0": ("[0, 5)", "[0, 10)", "[0, 20)", "*"),
        "4": ("[0, 5)", "[0, 10)", "[0, 20)", "*"),
        "5": ("[5, 10)", "[0, 10)", "[0, 20)", "*"),
        "19": ("[15, 20)", "[10, 20)", "[0, 20)", "*"),
        "20": ("[20, 25)", "[20, 30)", "[20, 40)", "*"),
        None: (None, None, None, "*"),
    }


def test_intervals_with_an_origin_and_another_top() -> None:
    bound = Bound(Hierarchy.intervals(width=10, origin=18, top="any"), ["17", "18", "28"], "SMALLINT")
    assert bound.labels == {"17": ("[8, 18)", "any"), "18": ("[18, 28)", "any"), "28": ("[28, 38)", "any")}


def test_intervals_by_number_of_levels() -> None:
    assert Bound(Hierarchy.intervals(width=1, levels=3), ["5"], "INTEGER").labels == {
        "5": ("[5, 6)", "[4, 6)", "[4, 8)", "*")
    }
    assert Bound(Hierarchy.intervals(width=1, factors=10, levels=2), ["5"], "INTEGER").labels == {
        "5": ("[5, 6)", "[0, 10)", "*")
    }


def test_fractions_are_written_without_noise() -> None:
    bound = Bound(
        Hierarchy.intervals(width=0.1, factors=[5]), ["0.3", "0.7", "-0.05", "1.0", "0.29999999999"], "DOUBLE"
    )
    assert bound.labels == {
        "0.3": ("[0.3, 0.4)", "[0, 0.5)", "*"),
        "0.7": ("[0.7, 0.8)", "[0.5, 1)", "*"),
        "-0.05": ("[-0.1, 0)", "[-0.5, 0)", "*"),
        "1.0": ("[1, 1.1)", "[1, 1.5)", "*"),
        "0.29999999999": ("[0.2, 0.3)", "[0, 0.5)", "*"),
    }


def test_single_precision_lies_where_its_text_says() -> None:
    bound = Bound(Hierarchy.intervals(width=0.1), ["0.7", "0.3"], "FLOAT")
    assert bound.labels == {"0.7": ("[0.7, 0.8)", "*"), "0.3": ("[0.3, 0.4)", "*")}


def test_values_that_are_no_ordinary_numbers() -> None:
    bound = Bound(
        Hierarchy.intervals(width=10, factors=[2]), ["nan", "inf", "-inf", "-0.0", "1e300", "-1e300"], "DOUBLE"
    )
    top = 2**50 // 20 * 20
    assert bound.labels["nan"] == ("nan", "nan", "*")
    assert bound.labels["inf"] == bound.labels["1e+300"] == (f">= {top}", f">= {top}", "*")
    assert bound.labels["-inf"] == bound.labels["-1e+300"] == (f"< {-top}", f"< {-top}", "*")
    # Which of the two zeros stands for both is the database's choice.
    assert (bound.labels.get("-0.0") or bound.labels["0.0"]) == ("[0, 10)", "[0, 20)", "*")


def test_huge_integers_keep_their_interval() -> None:
    huge = ["9223372036854775807", "-9223372036854775808"]
    bound = Bound(Hierarchy.intervals(width=10), huge, "BIGINT")
    assert bound.labels == {
        huge[0]: ("[9223372036854775800, 9223372036854775810)", "*"),
        huge[1]: ("[-9223372036854775810, -9223372036854775800)", "*"),
    }
    limit = "1e35"
    largest = Bound(Hierarchy.intervals(width=10), [str(2**127 - 1), str(-(2**127))], "HUGEINT")
    assert set(largest.labels.values()) == {(f">= {limit}", "*"), (f"< -{limit}", "*")}
    assert Bound(Hierarchy.intervals(width=0.5), [str(2**128 - 1), "3"], "UHUGEINT").labels["3"] == ("[3, 3.5)", "*")


def test_decimals_are_exact() -> None:
    bound = Bound(Hierarchy.intervals(width=0.25), ["-0.01", "0.24", "0.25", "99999999.99"], "DECIMAL(10,2)")
    assert bound.labels == {
        "-0.01": ("[-0.25, 0)", "*"),
        "0.24": ("[0, 0.25)", "*"),
        "0.25": ("[0.25, 0.5)", "*"),
        "99999999.99": ("[99999999.75, 100000000)", "*"),
    }
    fine = Bound(Hierarchy.intervals(width=1), ["-0.0000000001", "0.9999999999"], "DECIMAL(38,10)")
    assert fine.labels == {"-0.0000000001": ("[-1, 0)", "*"), "0.9999999999": ("[0, 1)", "*")}
    finest = Bound(Hierarchy.intervals(width=0.05), ["-9.9999999999999999999999999999999999999"], "DECIMAL(38,37)")
    assert len(finest.labels) == 1


@pytest.mark.parametrize("type_name", ["TINYINT", "UTINYINT", "UBIGINT", "HUGEINT", "DECIMAL(4,0)", "DOUBLE", "FLOAT"])
def test_intervals_on_every_number(type_name: str) -> None:
    (labels,) = Bound(Hierarchy.intervals(width=5), ["7"], type_name).labels.values()
    assert labels == ("[5, 10)", "*")


def test_widths_beyond_any_integer() -> None:
    assert Bound(Hierarchy.intervals(width=1e300), ["2.5e300", "0"], "DOUBLE").labels == {
        "2.5e+300": ("[2e300, 3e300)", "*"),
        "0.0": ("[0, 1e300)", "*"),
    }
    tiny = Bound(Hierarchy.intervals(width="1e-250", factors=[10]), ["2.5e-250", "-1e-251", "0", "1"], "DOUBLE").labels
    assert tiny["2.5e-250"] == ("[2e-250, 3e-250)", "[0, 10e-250)", "*")
    assert tiny["-1e-251"] == ("[-1e-250, 0)", "[-10e-250, 0)", "*")
    assert tiny["1.0"] == (">= 112589990684262e-249",) * 2 + ("*",)
    assert Bound(Hierarchy.intervals(width=1e300), ["-1", "7"], "INTEGER").labels == {
        "-1": ("[-1e300, 0)", "*"),
        "7": ("[0, 1e300)", "*"),
    }
    assert Bound(Hierarchy.intervals(width="1e-40"), ["0"], "INTEGER").labels["0"] == ("[0, 1e-40)", "*")
    assert Bound(Hierarchy.intervals(width="1e-9"), ["2.5e-9"], "DOUBLE").labels == {
        "2.5e-09": ("[0.000000002, 0.000000003)", "*")
    }


def test_intervals_lie_between_the_cuts_given() -> None:
    bound = Bound(Hierarchy.intervals(cuts=[[20, 30, 90], [30]]), ["19", "20", "29", "30", "90", None], "INTEGER")
    assert bound.labels == {
        "19": ("< 20", "< 30", "*"),
        "20": ("[20, 30)", "< 30", "*"),
        "29": ("[20, 30)", "< 30", "*"),
        "30": ("[30, 90)", ">= 30", "*"),
        "90": (">= 90", ">= 30", "*"),
        None: (None, None, "*"),
    }
    floats = Bound(Hierarchy.intervals(cuts=[0.1, 0.3]), ["0.3", "nan", "inf", "-inf", "0.1", "0.2"], "DOUBLE")
    assert {k: v[0] for k, v in floats.labels.items()} == {
        "0.3": ">= 0.3",
        "nan": "nan",
        "inf": ">= 0.3",
        "-inf": "< 0.1",
        "0.1": "[0.1, 0.3)",
        "0.2": "[0.1, 0.3)",
    }
    decimals = Bound(Hierarchy.intervals(cuts=[1.5]), ["1.49", "1.50"], "DECIMAL(38,2)")
    assert decimals.labels == {"1.49": ("< 1.5", "*"), "1.50": (">= 1.5", "*")}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either 'width' or 'cuts'"),
        ({"width": 0}, "must be a number > 0"),
        ({"width": "x"}, "must be a finite number"),
        ({"width": True}, "must be a finite number"),
        ({"width": math.inf}, "must be a finite number"),
        ({"width": 5, "factors": [1]}, "must be an integer >= 2"),
        ({"width": 5, "factors": 2}, "needs 'levels'"),
        ({"width": 5, "factors": [2], "levels": 5}, "one more than"),
        ({"width": 5, "cuts": [1]}, "either 'width' or 'cuts'"),
        ({"cuts": []}, "must not be empty"),
        ({"cuts": "123"}, "must be a list"),
        ({"cuts": [3, 2]}, "level 1 must be ascending"),
        ({"cuts": [[1, 2], [3]]}, "level 2 must all be cuts of level 1"),
        ({"cuts": [1], "levels": 2}, "takes no 'origin'"),
        ({"width": 5, "factors": [2**40, 2**40]}, "too many digits"),
        ({"width": 5, "top": ""}, "'top' parameter"),
    ],
)
def test_wrong_parameters_of_intervals_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(HierarchyError, match=message):
        Hierarchy.intervals(**arguments)  # type: ignore[arg-type]


# Quantiles


def test_quantiles_split_the_rows_evenly_and_say_so() -> None:
    bound = Bound(Hierarchy.quantiles(4, then=[2]), [str(i) for i in range(100)] + [None], "INTEGER")
    assert bound.labels["24"] == ("< 25", "< 50", "*")
    assert bound.labels["25"] == ("[25, 50)", "< 50", "*")
    assert bound.labels["50"] == ("[50, 75)", ">= 50", "*")
    assert bound.labels["75"] == (">= 75", ">= 50", "*")
    assert bound.labels[None] == (None, None, "*")
    assert bound.levels.height == 3
    assert "quantiles" in bound.levels.origin


def test_quantiles_count_rows_not_values() -> None:
    bound = Bound(Hierarchy.quantiles(2), ["1", "2", "3", "100"], "INTEGER", counts=[1, 1, 1, 97])
    assert bound.labels["100"][0] != bound.labels["3"][0]


def test_quantiles_of_nothing_but_nan() -> None:
    assert Bound(Hierarchy.quantiles(4), ["nan", None], "DOUBLE").labels == {"nan": ("*",), None: ("*",)}


@pytest.mark.parametrize(("bins", "then"), [(1, None), (10, [3]), (10, [10]), (5000, None), (4, [2, 4])])
def test_wrong_parameters_of_quantiles_are_refused(bins: int, then: list[int] | None) -> None:
    with pytest.raises(HierarchyError, match="quantiles"):
        Hierarchy.quantiles(bins, then)


# Made where none is given


def test_widths_of_a_grid_divide_each_other() -> None:
    assert grid_widths(17, 90, integer=True) == [5, 10, 50]
    assert grid_widths(0, 1_000_000, integer=True) == [50_000, 100_000, 500_000]
    assert [float(w) for w in grid_widths(0.0, 1.0, integer=False)] == [0.05, 0.1, 0.5]
    assert grid_widths(3, 3, integer=False) == []
    assert grid_widths(0, 4, integer=True) == []
    wide = grid_widths(-1.7e308, 1.7e308, integer=False)
    assert all(b % a == 0 for a, b in pairwise(wide))


@pytest.mark.parametrize(
    ("type_name", "values", "origin", "height"),
    [
        ("INTEGER", [str(i) for i in range(17, 91)], "made: nested round grid of width 5, 10, 50", 4),
        ("DOUBLE", ["0", "0.5", "1", "nan", "inf", None], "made: nested round grid of width 0.05, 0.1, 0.5", 4),
        ("DOUBLE", ["nan", None], "made: one step to *", 1),
        ("DECIMAL(9,2)", ["1.00"], "made: one step to *", 1),
        ("DOUBLE", ["-1.7e308", "1.7e308", "0"], "made: nested round grid of width 1e307", 5),
        ("DOUBLE", ["-1e-300", "1e300", "0.1", "nan"], "made: nested round grid of width 5e298", 5),
        ("DOUBLE", ["1e300", "inf", "-inf", "0"], "made: nested round grid of width 5e298", 4),
        ("DOUBLE", ["1e16", "1.0000000000000002e16"], "made: one step to *", 1),
        ("DOUBLE", ["0", "5e-324"], "made: one step to *", 1),
        ("FLOAT", ["-3.4e38", "3.4e38", "nan", "inf", "1e-45"], "made: nested round grid of width 5e37, 1e38, 5e38", 4),
        ("DATE", ["2024-05-17"], "made: calendar (month, quarter, year, decade)", 5),
        ("TIMESTAMP", ["2024-05-17"], "made: calendar (day, month, quarter, year, decade)", 6),
        ("BOOLEAN", ["true"], "made: one step to *", 1),
        ("VARCHAR", [f"{i:05d}" for i in range(30)] + [None], "made: masks from the right of codes of 5 characters", 5),
        ("VARCHAR", [f"{i:05d}" for i in range(10)], "made: one step to *", 1),
        ("VARCHAR", [f"{i:05d}" for i in range(30)] + ["x"], "made: one step to *", 1),
        ("VARCHAR", [f"ab {i:02d}" for i in range(30)], "made: one step to *", 1),
        ("ENUM('a')", ["a"], "made: one step to *", 1),
    ],
)
def test_made_where_none_is_given(type_name: str, values: list[str | None], origin: str, height: int) -> None:
    for bound in (Bound(None, values, type_name), Bound(Hierarchy.auto(type_name), values, type_name)):
        assert bound.levels.origin.startswith(origin)
        assert bound.levels.height == height


def test_what_will_be_made_is_told_beforehand() -> None:
    assert Hierarchy.auto("INTEGER").origin == "made: nested round grid"
    assert Hierarchy.auto("DATE").origin == "made: calendar"
    assert Hierarchy.auto("BOOLEAN").origin == "made: one step to *"
    assert Hierarchy.auto().origin.startswith("made: ")


def test_age_takes_a_date() -> None:
    assert Hierarchy.age(date(2024, 1, 1)).to_rule() == {
        "rule": "age",
        "reference_date": "2024-01-01",
        "bands": [5, 10, 20, 40],
    }


def test_a_cut_that_no_double_meets_is_above_the_double_below_it() -> None:
    cut = "9007199254740993"
    labels = Bound(Hierarchy.intervals(cuts=[cut]), ["9007199254740992", "9007199254740994"], "DOUBLE").labels
    assert labels["9007199254740992.0"][0] == f"< {cut}"
    assert labels["9007199254740994.0"][0] == f">= {cut}"
