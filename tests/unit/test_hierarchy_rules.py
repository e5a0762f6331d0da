"""Every rule on values small enough to label by hand."""

from __future__ import annotations

import math
from datetime import date
from itertools import pairwise

import pytest

from duckanon.errors import HierarchyError, ParameterError
from duckanon.hierarchy import Hierarchy
from duckanon.hierarchy.auto import grid_widths
from duckanon.hierarchy.order import random_tree
from tests.unit.hierarchy_bound import Bound


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
    assert Bound(Hierarchy.intervals(width="1e-9"), ["2.5e-9"], "DOUBLE").labels == {
        "2.5e-09": ("[0.000000002, 0.000000003)", "*")
    }


def test_given_cuts() -> None:
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
def test_intervals_refuse(arguments: dict[str, object], message: str) -> None:
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
def test_quantiles_refuse(bins: int, then: list[int] | None) -> None:
    with pytest.raises(HierarchyError, match="quantiles"):
        Hierarchy.quantiles(bins, then)


# Masks and prefixes


def test_masks_from_the_right_and_the_left() -> None:
    right = Bound(Hierarchy.mask(), ["12345", "99"], "VARCHAR")
    assert right.labels == {
        "12345": ("1234*", "123**", "12***", "1****", "*"),
        "99": ("9*", "**", "**", "**", "*"),
    }
    left = Bound(Hierarchy.mask(side="left", character="#", levels=2), ["12345"], "INTEGER")
    assert left.labels == {"12345": ("#2345", "##345", "*")}


def test_mask_of_given_positions() -> None:
    bound = Bound(Hierarchy.mask(positions=[[2], {2, 3, 5}]), ["abcdef", "ab", "é😀x"], "VARCHAR")
    assert bound.labels == {
        "abcdef": ("a*cdef", "a**d*f", "*"),
        "ab": ("a*", "a*", "*"),
        "é😀x": ("é*x", "é**", "*"),
    }


def test_mask_of_the_empty_text() -> None:
    assert Bound(Hierarchy.mask(), ["", None], "VARCHAR").labels == {"": ("*",), None: ("*",)}
    assert Bound(Hierarchy.mask(levels=1), ["", "ab"], "VARCHAR").labels == {"": ("*", "*"), "ab": ("a*", "*")}
    assert Bound(Hierarchy.prefix([2, 1]), ["", "ab"], "VARCHAR").labels == {
        "": ("*", "*", "*"),
        "ab": ("ab", "a", "*"),
    }


@pytest.mark.parametrize(
    "arguments",
    [
        {"side": "top"},
        {"character": "**"},
        {"levels": 0},
        {"positions": []},
        {"positions": [[0]]},
        {"positions": [[1, 2], [1]]},
        {"positions": [[1], [1]]},
        {"positions": [[1]], "levels": 2},
    ],
)
def test_mask_refuses(arguments: dict[str, object]) -> None:
    with pytest.raises(HierarchyError, match="mask"):
        Hierarchy.mask(**arguments)  # type: ignore[arg-type]


def test_a_mask_of_long_texts_needs_its_levels() -> None:
    with pytest.raises(HierarchyError, match="has 40 characters: give the 'levels'"):
        Bound(Hierarchy.mask(), ["CANARY" + "x" * 34], "VARCHAR")


def test_prefixes() -> None:
    bound = Bound(Hierarchy.prefix([3, 1]), ["E11.9", "E1", "I10", None], "VARCHAR")
    assert bound.labels == {
        "E11.9": ("E11", "E", "*"),
        "E1": ("E1", "E", "*"),
        "I10": ("I10", "I", "*"),
        None: (None, None, "*"),
    }


def test_a_prefix_goes_on_with_another_hierarchy() -> None:
    then = Hierarchy.tree({"endocrine": ["E"], "heart": ["I"]}, top="any")
    bound = Bound(Hierarchy.prefix([3, 1], then=then), ["E11.9", "E10", "I10", None], "VARCHAR")
    assert bound.labels == {
        "E10": ("E10", "E", "endocrine", "any"),
        "E11.9": ("E11", "E", "endocrine", "any"),
        "I10": ("I10", "I", "heart", "any"),
        None: (None, None, None, "any"),
    }
    assert (bound.levels.top, bound.levels.size, bound.leaves[3, "endocrine"]) == ("any", 4, 2)


def test_a_prefix_that_the_next_hierarchy_does_not_know() -> None:
    rule = Hierarchy.prefix([1], then={"rule": "tree", "tree": {"endocrine": ["E"], "heart": ["I"]}})
    with pytest.raises(HierarchyError, match=r"does not know 2 of 3 values \(5 of 9 rows\)"):
        Bound(rule, ["E1", "X2", "Y3"], "VARCHAR", counts=[4, 3, 2])
    bound = Bound(rule, ["E1", "X2", "Y3"], "VARCHAR", on_unknown="top")
    assert bound.labels == {"E1": ("E", "endocrine", "*"), "X2": ("*",) * 3, "Y3": ("*",) * 3}
    assert bound.levels.unknown == 2
    assert (bound.leaves[1, "*"], bound.leaves[2, "*"], bound.leaves[3, "*"]) == (3, 3, 3)


@pytest.mark.parametrize(("lengths", "then"), [([], None), ([1, 3], None), ([0], None), ([2], 5), ("3", None)])
def test_prefix_refuses(lengths: list[int], then: object) -> None:
    with pytest.raises(HierarchyError, match="prefix"):
        Hierarchy.prefix(lengths, then)  # type: ignore[arg-type]


# Dates


def test_dates_by_the_calendar() -> None:
    bound = Bound(Hierarchy.dates(["month", "quarter", "year", "decade"]), ["2024-05-17", "1999-12-31", None], "DATE")
    assert bound.labels == {
        "2024-05-17": ("2024-05", "2024-Q2", "2024", "2020s", "*"),
        "1999-12-31": ("1999-12", "1999-Q4", "1999", "1990s", "*"),
        None: (None, None, None, None, "*"),
    }
    assert bound.levels.kind == "date"


def test_weeks_begin_on_monday_and_belong_to_their_iso_year() -> None:
    bound = Bound(
        Hierarchy.dates(["week"]), ["2024-05-13", "2024-05-19", "2024-05-20", "2024-12-30", "2021-01-03"], "DATE"
    )
    assert [v[0] for v in bound.labels.values()] == ["2020-W53", "2024-W20", "2024-W20", "2024-W21", "2025-W01"]


@pytest.mark.parametrize("type_name", ["TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_S", "TIMESTAMP_NS", "TIMESTAMP_MS"])
def test_timestamps_have_days(type_name: str) -> None:
    bound = Bound(Hierarchy.dates(["day", "week"]), ["2024-05-17 23:59:59"], type_name)
    assert list(bound.labels.values()) == [("2024-05-17", "2024-W20", "*")]


def test_the_day_of_a_timestamp_with_zone_is_the_day_in_utc() -> None:
    bound = Bound(Hierarchy.dates(["day"]), ["2024-05-17 23:30:00-05"], "TIMESTAMPTZ")
    assert list(bound.labels.values()) == [("2024-05-18", "*")]


def test_odd_dates() -> None:
    bound = Bound(Hierarchy.dates(), ["infinity", "-infinity", "0987-01-01", "0044-03-15 (BC)"], "DATE")
    assert bound.labels["infinity"] == ("infinity",) * 4 + ("*",)
    assert bound.labels["-infinity"] == ("-infinity",) * 4 + ("*",)
    assert bound.labels["0987-01-01"] == ("0987-01", "0987-Q1", "0987", "0980s", "*")
    assert bound.labels["0044-03-15 (BC)"] == ("-043-03", "-043-Q1", "-043", "-050s", "*")


def test_the_day_is_passed_over_on_a_date() -> None:
    assert Bound(Hierarchy.dates(["day", "month"]), ["2024-05-17"], "DATE").labels == {"2024-05-17": ("2024-05", "*")}


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (["week", "month"], "do not nest: a week can lie in two of 'month'"),
        (["day", "week", "year"], "do not nest"),
        (["year", "month"], "fine to coarse"),
        (["month", "month"], "fine to coarse"),
        (["months"], "Did you mean 'month'"),
        ([], "must not be empty"),
        ("month", "must be a list"),
    ],
)
def test_dates_refuse(levels: list[str], message: str) -> None:
    with pytest.raises(HierarchyError, match=message):
        Hierarchy.dates(levels)


def test_age_on_a_given_day() -> None:
    born = ["1980-05-17", "1980-05-18", "2000-02-29", "2024-05-18", None, "infinity"]
    bound = Bound(Hierarchy.age("2024-05-17", bands=[5, 10]), born, "DATE")
    assert bound.labels == {
        "1980-05-17": ("44", "[40, 45)", "[40, 50)", "*"),
        "1980-05-18": ("43", "[40, 45)", "[40, 50)", "*"),
        "2000-02-29": ("24", "[20, 25)", "[20, 30)", "*"),
        "2024-05-18": ("< 0", "< 0", "< 0", "*"),
        "infinity": ("infinity", "infinity", "infinity", "*"),
        None: (None, None, None, "*"),
    }


def test_a_leap_day_child_is_a_year_older_on_the_first_of_march() -> None:
    for day, age in (("2023-02-28", "22"), ("2023-03-01", "23"), ("2024-02-29", "24")):
        assert Bound(Hierarchy.age(day, [5]), ["2000-02-29"], "DATE").labels["2000-02-29"][0] == age


@pytest.mark.parametrize(("day", "bands"), [("today", [5]), (5, [5]), ("2024-01-01", [5, 7]), ("2024-01-01", [])])
def test_age_refuses(day: object, bands: list[int]) -> None:
    with pytest.raises(HierarchyError, match="age"):
        Hierarchy.age(day, bands)  # type: ignore[arg-type]


# Order and random trees


def test_order_groups_neighbours() -> None:
    bound = Bound(Hierarchy.order(3), ["a", "b", "c", "d", "e,f", 'g"', "h", None], "VARCHAR")
    assert bound.labels == {
        "a": ("{a, b, c}", "*"),
        "b": ("{a, b, c}", "*"),
        "c": ("{a, b, c}", "*"),
        "d": ('{d, "e,f", "g"""}', "*"),
        "e,f": ('{d, "e,f", "g"""}', "*"),
        'g"': ('{d, "e,f", "g"""}', "*"),
        "h": ("{h}", "*"),
        None: (None, "*"),
    }


def test_order_until_one_group_is_left() -> None:
    bound = Bound(Hierarchy.order(2), [str(i) for i in range(9)], "INTEGER")
    assert bound.levels.height == 4
    assert bound.labels["0"] == ("{0, 1}", "{0, 1, 2, 3}", "group 1/2", "*")
    assert bound.labels["8"] == ("{8}", "{8}", "{8}", "*")
    assert Bound(Hierarchy.order(), ["x"], "VARCHAR").labels == {"x": ("*",)}
    assert Bound(Hierarchy.order(), [None], "VARCHAR").labels == {None: ("*",)}


def test_order_follows_an_enum() -> None:
    bound = Bound(Hierarchy.order(2), ["low", "mid", "high"], "ENUM('low','mid','high')")
    assert bound.labels == {"low": ("{low, mid}", "*"), "mid": ("{low, mid}", "*"), "high": ("{high}", "*")}


def test_random_trees() -> None:
    values = [f"{i:03d}" for i in range(60)]
    first = Bound(Hierarchy.random(7, max_children=3), values, "VARCHAR", threads=1)
    again = Bound(Hierarchy.random(7, max_children=3), values, "VARCHAR", threads=4)
    other = Bound(Hierarchy.random(8, max_children=3), values, "VARCHAR")
    assert first.labels == again.labels
    assert first.labels != other.labels
    assert Bound(Hierarchy.random(7, ordered=False, max_children=3), values, "VARCHAR").labels != first.labels
    assert Bound(Hierarchy.random(1), ["x", None], "VARCHAR").labels == {"x": ("*",), None: ("*",)}
    assert "random" in first.levels.origin
    assert "7" not in first.levels.origin


def test_random_tree_of_plain_integers() -> None:
    assert random_tree(0, 1) == []
    assert random_tree(1, 1) == []
    assert random_tree(2, 1) == []
    levels = random_tree(1000, 3, max_children=2)
    assert len(levels) >= 2
    assert [len(level) for level in levels] == [1000] * len(levels)


@pytest.mark.parametrize(
    "arguments", [{"seed": -1}, {"seed": "x"}, {"seed": 1, "max_children": 1}, {"seed": 1, "ordered": 2}]
)
def test_random_refuses(arguments: dict[str, object]) -> None:
    with pytest.raises(HierarchyError, match="random"):
        Hierarchy.random(**arguments)  # type: ignore[arg-type]


def test_order_refuses() -> None:
    with pytest.raises(HierarchyError, match="'fanout' parameter of order must be an integer >= 2"):
        Hierarchy.order(1)


# Types


@pytest.mark.parametrize(
    ("hierarchy", "type_name", "value"),
    [
        (Hierarchy.dates(), "INTEGER", "5"),
        (Hierarchy.dates(), "VARCHAR", "2024-05-17"),
        (Hierarchy.age("2024-01-01"), "DOUBLE", "1"),
        (Hierarchy.intervals(width=5), "VARCHAR", "5"),
        (Hierarchy.intervals(width=5), "BOOLEAN", "true"),
        (Hierarchy.intervals(cuts=[5]), "DATE", "2024-05-17"),
        (Hierarchy.quantiles(4), "VARCHAR", "5"),
    ],
)
def test_a_rule_on_the_wrong_type(hierarchy: Hierarchy, type_name: str, value: str) -> None:
    with pytest.raises(HierarchyError) as caught:
        Bound(hierarchy, [value], type_name)
    assert "'column'" in str(caught.value)
    assert type_name in str(caught.value)
    assert hierarchy.to_rule()["rule"] in str(caught.value)


def test_the_members_of_an_enum_are_not_told() -> None:
    with pytest.raises(HierarchyError) as caught:
        Bound(Hierarchy.intervals(width=5), ["CANARY"], "ENUM('CANARY')")
    assert "CANARY" not in str(caught.value)
    assert "ENUM" in str(caught.value)


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("INTEGER", "5"),
        ("DOUBLE", "1.5"),
        ("DECIMAL(5,2)", "1.50"),
        ("DATE", "2024-05-17"),
        ("TIMESTAMP", "2024-05-17 12:00:00"),
        ("TIMESTAMPTZ", "2024-05-17 12:00:00+00"),
        ("BOOLEAN", "true"),
        ("ENUM('a','b')", "a"),
        ("VARCHAR", "x"),
        ("UUID", "00000000-0000-0000-0000-000000000001"),
        ("TIME", "12:00:00"),
        ("BLOB", "ab"),
    ],
)
def test_suppress_and_mask_take_every_type(type_name: str, value: str) -> None:
    assert list(Bound(Hierarchy.suppress(), [value, None], type_name).labels.values()) == [("*",), ("*",)]
    (label, _) = Bound(Hierarchy.mask(levels=1), [value, None], type_name).labels.values()
    assert label[0] is not None
    assert label[0].endswith("*")


def test_on_unknown_is_checked() -> None:
    with pytest.raises(ParameterError, match="on_unknown"):
        Bound(Hierarchy.suppress(), ["x"], "VARCHAR", on_unknown="ignore")


# Made where none is given


def test_grid_widths() -> None:
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
