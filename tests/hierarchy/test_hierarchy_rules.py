"""Masks, prefixes, dates, order and random trees on values small enough to label by hand."""

from __future__ import annotations

import pytest

from duckanon.errors import HierarchyError, ParameterError
from duckanon.hierarchy import Hierarchy
from duckanon.hierarchy.rules import random_tree
from tests.hierarchy.hierarchy_bound import Bound

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
def test_wrong_parameters_of_mask_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(HierarchyError, match="mask"):
        Hierarchy.mask(**arguments)  # type: ignore[arg-type]


def test_a_mask_of_long_texts_needs_its_levels() -> None:
    with pytest.raises(HierarchyError, match="has 40 characters: give the 'levels'"):
        Bound(Hierarchy.mask(), ["CANARY" + "x" * 34], "VARCHAR")


def test_prefixes_are_as_long_as_asked() -> None:
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
def test_wrong_parameters_of_prefix_are_refused(lengths: list[int], then: object) -> None:
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


def test_infinite_and_early_dates_have_labels() -> None:
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
def test_wrong_levels_of_dates_are_refused(levels: list[str], message: str) -> None:
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
def test_wrong_parameters_of_age_are_refused(day: object, bands: list[int]) -> None:
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
    assert bound.labels["0"] == ("{0, 1}", "{0, 1, 2, 3}", "{0, 1, 2, 3, 4, 5, 6, 7}", "*")
    assert bound.labels["8"] == ("{8}", "{8}", "{8}", "*")
    assert Bound(Hierarchy.order(), ["x"], "VARCHAR").labels == {"x": ("*",)}
    assert Bound(Hierarchy.order(), [None], "VARCHAR").labels == {None: ("*",)}


def test_large_groups_are_named_by_their_ends() -> None:
    words = [f"{i:02d}, {letter}" for i in range(20) for letter in "ab"]
    bound = Bound(Hierarchy.order(20), words, "VARCHAR")
    assert bound.labels["03, b"] == ('["00, a", "09, b"]', "*")
    dealt = Bound(Hierarchy.random(3, ordered=False, max_children=2), words, "VARCHAR").labels
    assert all(label.startswith("{") for labels in dealt.values() for label in labels[:-1])


def test_order_follows_an_enum() -> None:
    bound = Bound(Hierarchy.order(2), ["low", "mid", "high"], "ENUM('low','mid','high')")
    assert bound.labels == {"low": ("{low, mid}", "*"), "mid": ("{low, mid}", "*"), "high": ("{high}", "*")}


def test_a_random_tree_depends_on_its_seed_alone() -> None:
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
def test_wrong_parameters_of_random_are_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(HierarchyError, match="random"):
        Hierarchy.random(**arguments)  # type: ignore[arg-type]


def test_a_wrong_fanout_of_order_is_refused() -> None:
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
