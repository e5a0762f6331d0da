"""A frozen recoding: the same labels for the same values, whatever else is in the data."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from duckanon.engine.base import open_engine
from duckanon.errors import ConfigError, DataError, InfeasibleError, ParameterError, UnknownValueError, UnsupportedError
from duckanon.hierarchy import Hierarchy
from duckanon.jobs import exit_code
from duckanon.jobs.expectations import plain_type
from duckanon.jobs.nights import (
    Stored,
    freeze,
    frozen_plan,
    make_night,
    remembering,
    require_freezable,
    require_recoding,
)
from duckanon.release import pipeline
from duckanon.release.release import Release
from tests.jobs.nights_made import K, Town, classes_of, fresh_state, plan_of, published, rows

WAYS: dict[str, dict[str, Any]] = {
    "levels": {"algorithm": "datafly", "suppression_limit": 0.05},
    "levels and l": {"algorithm": "optimal", "l": 2, "suppression_limit": 0.05},
    "quantiles": {
        "algorithm": "datafly",
        "hierarchies": {"age": Hierarchy.quantiles(8, [4, 2]), "zip": Hierarchy.mask()},
        "min_levels": {"age": 1},
    },
    "order": {"algorithm": "datafly", "hierarchies": {"zip": Hierarchy.order(5)}, "min_levels": {"zip": 1}},
    "grid": {"algorithm": "mondrian"},
    "grid and l": {"algorithm": "mondrian", "l": 2},
    "grid, lca": {"algorithm": "mondrian", "output": "lca"},
    "cut": {"algorithm": "mondrian", "bounds": "cut", "hierarchies": {"zip": Hierarchy.mask()}},
    "cut, bounds": {"algorithm": "mondrian", "bounds": "cut", "output": {"age": "bounds"}},
    "cut, struct": {"algorithm": "mondrian", "bounds": "cut", "output": {"age": "struct"}},
}


class Nights:
    """Releases by one way, with the stored recoding of the first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[Release] = []

    def make(self, data: object, stored: Stored | None = None, connection: Any = None, **changes: Any) -> Release:
        engine = open_engine(connection)
        try:
            plan = plan_of(data, engine, **changes)  # type: ignore[arg-type]
            release = pipeline.run(remembering(plan) if stored is None else frozen_plan(plan, stored), engine)
        except BaseException:
            engine.close()
            raise
        self.made.append(release)
        return release

    def freeze(self, release: Release) -> Stored:
        self.folder.mkdir(exist_ok=True)
        freeze(release, self.folder)
        return Stored.load(self.folder)


@pytest.fixture
def nights(tmp_path: Path) -> Iterator[Nights]:
    found = Nights(tmp_path / "recoding")
    yield found
    for release in found.made:
        release.close()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.thinned(4)
def test_the_same_data_give_the_same_release(nights: Nights, way: str) -> None:
    data = Town(300, 1).table()
    first = nights.make(data, **WAYS[way])
    again = nights.make(data, nights.freeze(first), **WAYS[way])
    assert rows(first) == rows(again)
    assert first.to_arrow().schema == again.to_arrow().schema
    assert [c.holds for c in again.checks] == [True] * len(first.checks)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.thinned(2)
def test_whoever_stays_as_he_is_keeps_his_labels(nights: Nights, way: str) -> None:
    town = Town(300, 2)
    first = nights.make(town.table(), **WAYS[way])
    stored = nights.freeze(first)
    before, stay = classes_of(first), {f"person {i}": tuple(p[:2]) for i, p in town.people.items()}
    town.depart(30)
    town.move(30, known=True)
    # Only values that are known: what else happens is another test's business.
    arrived = [[*town.people[i][:2], "a"] for i in list(town.people)[:60]]
    town.people |= {town.next + i: person for i, person in enumerate(arrived)}
    second = nights.make(town.table(), stored, **WAYS[way])
    after = classes_of(second)
    same = {f"person {i}" for i, p in town.people.items() if stay.get(f"person {i}") == tuple(p[:2])}
    kept = same & before.keys() & after.keys()
    assert len(kept) > 100
    assert {who: before[who] for who in kept} == {who: after[who] for who in kept}
    # Rows with equal values are published alike, the new ones, too.
    by_values: dict[tuple[Any, ...], set[tuple[str, ...]]] = {}
    for i, person in town.people.items():
        if f"person {i}" in after:
            by_values.setdefault(tuple(person[:2]), set()).add(after[f"person {i}"])
    assert all(len(labels) == 1 for labels in by_values.values())
    assert second.rows_in == second.rows_published + second.rows_suppressed


@pytest.mark.parametrize("way", [w for w in WAYS if "struct" not in w and "bounds" not in w])
@pytest.mark.thinned(3)
def test_a_label_is_true_of_every_row_that_has_it(nights: Nights, way: str) -> None:
    town = Town(300, 3)
    stored = nights.freeze(nights.make(town.table(), **WAYS[way]))
    other = Town(400, 4)
    for person in list(other.people.values())[:20]:
        person[0] = 95  # beyond all ages of the first night
    codes = {p[1] for p in town.people.values()}
    other.people = {i: p for i, p in other.people.items() if way != "order" or p[1] in codes}
    release = nights.make(other.table(), stored, **WAYS[way])
    for who, (age, zip_code) in classes_of(release).items():
        own = other.people[int(who.split()[1])]
        assert covers(age, own[0]), (age, own[0])
        if way != "order":
            mask = re.escape(zip_code).replace(r"\*", ".")
            assert zip_code == "*" or re.fullmatch(mask, own[1]) or covers(zip_code, int(own[1])), (zip_code, own[1])
    assert release.measure(["loss", "ncp", "precision"])


def covers(label: str, value: int | None) -> bool:
    if label == "*" or value is None:
        return label in ("*", "None")
    if re.fullmatch(r"-?\d+", label):
        return int(label) == value
    if found := re.fullmatch(r"\[(-?\d+), (-?\d+)([\])])", label):
        low, high, end = found.groups()
        return int(low) <= value and (value <= int(high) if end == "]" else value < int(high))
    sign, _, bound = label.partition(" ")
    return {"<": value < int(bound), "<=": value <= int(bound), ">=": value >= int(bound)}[sign]


def test_rows_wait_until_their_class_fills(nights: Nights) -> None:
    data = pa.table({"id": range(8), "age": [20] * 4 + [60] * 4, "zip": ["1"] * 8, "ill": ["a"] * 8, "who": ["x"] * 8})
    way: dict[str, Any] = {"algorithm": "datafly", "hierarchies": {"age": Hierarchy.intervals(width=10)}}
    stored = nights.freeze(nights.make(data, **way))
    fewer = nights.make(data.slice(0, 7), stored, **way)
    # Three of sixty years are too few, and nothing was allowed to be suppressed.
    assert (fewer.rows_published, fewer.rows_suppressed) == (4, 3)
    assert nights.make(data, stored, **way).rows_suppressed == 0


def test_values_between_and_beyond_the_regions_are_held_back(nights: Nights) -> None:
    ages = [20, 21, 40, 41]
    data = pa.table({"id": range(16), "age": ages * 4, "zip": ["1"] * 16, "ill": ["a"] * 16, "who": ["x"] * 16})
    way: dict[str, Any] = {"bounds": "cut", "k": 8, "hierarchies": {"zip": Hierarchy.suppress()}}
    first = nights.make(data, **way)
    assert set(first.to_arrow().column("age").to_pylist()) == {"<= 21", ">= 40"}
    stored = nights.freeze(first)
    for age, where in ((5, "<= 21"), (30, None), (99, ">= 40"), (None, None)):
        changed = data.set_column(1, "age", pa.array([age, *data.column("age").to_pylist()[1:15], age], pa.int64()))
        release = nights.make(changed, stored, **(way | {"k": 7}))
        assert release.rows_suppressed == (0 if where else 2), age
        assert set(release.to_arrow().column("age").to_pylist()) == {"<= 21", ">= 40"}


@pytest.mark.parametrize("ages", [[35, 71], [35, 31], [31, 38]])
def test_a_group_is_called_alike_whatever_else_there_is(nights: Nights, ages: list[int]) -> None:
    # On the first night all are of one age, so that their group is all there is.
    data = pa.table({"id": range(16), "age": [35] * 16, "zip": ["1"] * 16, "ill": ["a"] * 16, "who": ["x"] * 16})
    way: dict[str, Any] = {"hierarchies": {"age": Hierarchy.intervals(width=10), "zip": Hierarchy.suppress()}}
    first = nights.make(data, **way)
    changed = data.set_column(1, "age", pa.array(ages * 8, pa.int64()))
    second = nights.make(changed, nights.freeze(first), **way)
    for release in (first, second):
        assert set(release.to_arrow().column("age").to_pylist()) == {"[30, 39]"}
    assert second.rows_suppressed == 8 * (71 in ages)


def test_a_made_grid_does_not_move_with_the_range(nights: Nights) -> None:
    town = Town(200, 5)
    way: dict[str, Any] = {"algorithm": "datafly", "min_levels": {"age": 1}}
    first = nights.make(town.table(), **way)
    stored = nights.freeze(first)
    # With this age among the others the made grid would have wider steps.
    town.people[0][0] = 9999
    second = nights.make(town.table(), stored, **way)
    assert second.recoding.levels == first.recoding.levels
    known = set(first.to_arrow().column("age").to_pylist())
    assert set(second.to_arrow().column("age").to_pylist()) <= known
    assert second.levels[0].origin == first.levels[0].origin


def test_a_value_that_a_stored_hierarchy_does_not_know_follows_on_unknown(nights: Nights) -> None:
    town = Town(200, 6)
    way = WAYS["order"]
    stored = nights.freeze(nights.make(town.table(), **way))
    town.people[0][1] = "99999"
    with pytest.raises(UnknownValueError) as caught:
        nights.make(town.table(), stored, **way)
    assert exit_code(caught.value) == 3
    assert "99999" not in str(caught.value)
    release = nights.make(town.table(), stored, **way, on_unknown="top")
    # By itself the top label is a class of one; where all are there, it is one of them.
    label = classes_of(release).get("person 0", ("", "*"))[1]
    assert label == "*"
    assert release.rows_suppressed <= 1


def even(**counts: int) -> pa.Table:
    """Return a table whose ages are even, as many of each as it is said."""
    ages = [int(name[1:]) for name, count in counts.items() for _ in range(count)]
    ids = range(len(ages))
    who = [f"person {i}" for i in ids]
    ages_now = pa.array(ages, pa.int32())
    return pa.table({"id": ids, "age": ages_now, "zip": ["a"] * len(ages), "ill": ["x"] * len(ages), "who": who})


@pytest.mark.parametrize(("output", "bounds"), [("interval", "grid"), ("struct", "grid"), ("bounds", "cut")])
def test_a_number_that_no_group_of_a_stored_grid_knows_is_held_back(nights: Nights, output: str, bounds: str) -> None:
    ages = list(range(20, 60, 2))
    tree = {"leaf": [str(a) for a in ages], "ten": [f"{a // 10}0s" for a in ages], "top": ["*"] * len(ages)}
    way: dict[str, Any] = {
        "hierarchies": {"age": Hierarchy.from_table(tree)},
        "quasi_identifiers": ["age"],
        "insensitive": ["who", "zip"],
        "on_unknown": "top",
        "output": output,
        "bounds": bounds,
    }
    usual = {"a20": 3, "a28": 3, "a30": 6, "a46": 6, "a58": 5}
    first = nights.make(even(**usual), **way)
    assert len(set(classes_of(first).values())) > 2
    stored = nights.freeze(first)
    # Between two of one group, between two groups, before the first and after the last of them.
    strange = {"a25": 5, "a29": 5, "a7": 5, "a130": 5}
    second = nights.make(even(**usual, **strange), stored, **way)
    assert classes_of(first).items() <= classes_of(second).items()
    if bounds == "grid":
        assert (second.rows_published, second.rows_suppressed) == (23, 20)


@pytest.mark.parametrize("null", [False, True])
def test_a_number_that_a_stored_grid_does_not_know_goes_where_the_top_is_published(nights: Nights, null: bool) -> None:
    ages = list(range(20, 60, 2))
    tree = {"leaf": [str(a) for a in ages], "ten": [f"{a // 10}0s" for a in ages], "top": ["*"] * len(ages)}
    way: dict[str, Any] = {"hierarchies": {"age": Hierarchy.from_table(tree)}, "on_unknown": "top"}
    data = even(a20=2, a28=1, a44=1, a46=1)
    if null:
        data = data.set_column(1, "age", pa.array([20, 20, 28, 44, None], pa.int32()))
    first = nights.make(data, **way)
    assert {label for label, _ in classes_of(first).values()} == {"*"}
    stored = nights.freeze(first)
    second = nights.make(pa.concat_tables([data, even(a25=1, a130=1)]), stored, **way, entity_key=None)
    assert {label for label, _ in classes_of(second).values()} == {"*"}
    assert (second.rows_published, second.rows_suppressed) == (7, 0)


def test_a_given_table_may_grow_but_not_change(nights: Nights) -> None:
    town = Town(200, 7)
    codes = sorted({p[1] for p in town.people.values()})
    tree = {"zip": codes, "half": [c[:4] for c in codes], "top": ["*"] * len(codes)}

    def way(**more: Any) -> dict[str, Any]:
        given = {name: [*own, *more.get(name, [])] for name, own in tree.items()}
        return {"algorithm": "datafly", "hierarchies": {"zip": Hierarchy.from_table(given)}}

    stored = nights.freeze(nights.make(town.table(), **way()))
    town.people[0][1] = "99999"
    with pytest.raises(UnknownValueError):
        nights.make(town.table(), stored, **way())
    nights.make(town.table(), stored, **way(zip=["99999"], half=["9999"], top=["*"]))
    tree["half"][0] = "other"
    with pytest.raises(ConfigError, match="must keep their labels"):
        nights.make(town.table(), stored, **way())


@pytest.mark.parametrize(
    "change",
    [
        {"quasi_identifiers": ["age"], "insensitive": ["who", "zip"]},
        {"algorithm": "mondrian"},
        {"hierarchies": {"age": Hierarchy.intervals(width=7)}},
        {"hierarchies": {"age": Hierarchy.intervals(width=10), "zip": Hierarchy.mask(side="left")}},
        {"hierarchies": {}},
    ],
)
def test_another_job_does_not_get_the_stored_recoding(nights: Nights, change: dict[str, Any]) -> None:
    data = Town(200, 8).table()
    way: dict[str, Any] = {"algorithm": "datafly", "hierarchies": {"age": Hierarchy.intervals(width=10)}}
    stored = nights.freeze(nights.make(data, **way))
    with pytest.raises(ConfigError, match="refresh") as caught:
        nights.make(data, stored, **(way | change))
    assert exit_code(caught.value) == 2


def test_another_type_is_drift(nights: Nights) -> None:
    data = Town(200, 9).table()
    stored = nights.freeze(nights.make(data, **WAYS["levels"]))
    changed = data.set_column(1, "age", data.column("age").cast(pa.int64()))
    with pytest.raises(DataError, match="type") as caught:
        nights.make(changed, stored, **WAYS["levels"])
    assert exit_code(caught.value) == 3


def test_a_larger_k_and_nothing_left(nights: Nights) -> None:
    data = Town(200, 10).table()
    for way in ("levels", "grid"):
        stored = nights.freeze(nights.make(data, **WAYS[way]))
        more = nights.make(data, stored, **(WAYS[way] | {"k": K + 3}))
        assert more.rows_published < 200
        with pytest.raises(InfeasibleError) as caught:
            nights.make(data, stored, **(WAYS[way] | {"k": 150}))
        assert exit_code(caught.value) == 4


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ({"algorithm": "mdav"}, "mdav"),
        ({"algorithm": "mondrian(relaxed=true)"}, "relaxed"),
        ({"algorithm": "mondrian", "bounds": "tight"}, "tight"),
        ({"algorithm": "mondrian", "output": {"age": "mean"}}, "mean"),
        ({"algorithm": "mondrian", "output": {"age": "midpoint"}}, "midpoint"),
        ({"algorithm": "mondrian", "output": "set"}, "set"),
        ({"algorithm": "datafly", "iterative": True}, "iterative"),
        ({"algorithm": "datafly_shuffled"}, "at random"),
    ],
)
def test_what_cannot_be_frozen_says_so(way: dict[str, Any], words: str) -> None:
    engine = open_engine()
    try:
        plan = plan_of(Town(60, 11).table(), engine, **way)
        with pytest.raises(UnsupportedError, match=words) as caught:
            require_freezable(plan)
        assert exit_code(caught.value) == 2
    finally:
        engine.close()


@pytest.mark.parametrize("way", ["levels", "order", "grid"])
def test_a_damaged_recoding_is_not_applied(nights: Nights, way: str) -> None:
    nights.freeze(nights.make(Town(200, 12).table(), **WAYS[way]))
    for path in sorted(nights.folder.iterdir()):
        whole = path.read_bytes()
        middle = len(whole) // 2
        for damage in (b"", whole[:middle], whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :], None):
            path.unlink() if damage is None else path.write_bytes(damage)
            if path.suffix == ".json" and damage and len(damage) == len(whole) and parsed(damage):
                path.write_bytes(whole)
                continue
            with pytest.raises(DataError, match=r"damaged.*refresh") as caught:
                Stored.load(nights.folder)
            assert exit_code(caught.value) == 3
            path.write_bytes(whole)
        Stored.load(nights.folder)


def parsed(content: bytes) -> bool:
    """A flipped bit in a name is still JSON: it is found when the plan is compared."""
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


def test_no_value_stands_in_json_and_files_are_private(nights: Nights) -> None:
    os.umask(os.umask(0o022))
    data = Town(200, 13).table()
    canary = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 100), pa.array(["Zaphod", "Marvin"]))
    data = data.set_column(2, "zip", canary)
    for way in ({"algorithm": "datafly"}, {"algorithm": "mondrian", "hierarchies": {"zip": Hierarchy.order(2)}}):
        nights.freeze(nights.make(data, **way))
        text = (nights.folder / "recoding.json").read_text()
        assert "Zaphod" not in text
        assert {p.stat().st_mode & 0o777 for p in nights.folder.iterdir()} == {0o600}
    assert plain_type("ENUM('a', 'b)')") == "ENUM"


def test_a_frozen_recoding_of_columns_with_odd_names_gives_the_same_rows(nights: Nights) -> None:
    data = Town(120, 14).table().rename_columns(["id", 'a"g;e', "zi p\n", "ill", "who"])
    for algorithm in ("datafly", "mondrian"):
        way: dict[str, Any] = {"algorithm": algorithm, "quasi_identifiers": ['a"g;e', "zi p\n"]}
        first = nights.make(data, **way)
        assert rows(first) == rows(nights.make(data, nights.freeze(first), **way))


def test_the_ways_to_recode() -> None:
    assert require_recoding("frozen") == "frozen"
    with pytest.raises(ParameterError, match="Did you mean 'frozen'"):
        require_recoding("frosen")


def test_a_recoding_of_another_format_asks_for_a_refresh(nights: Nights) -> None:
    nights.freeze(nights.make(Town(120, 15).table(), **WAYS["grid"]))
    path = nights.folder / "recoding.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 1}))
    with pytest.raises(DataError, match=r"another version of duckanon.*recoding = 'refresh'") as caught:
        Stored.load(nights.folder)
    assert exit_code(caught.value) == 3


def test_a_release_that_did_not_remember_its_cuts_cannot_be_frozen(tmp_path: Path) -> None:
    engine = open_engine()
    with (
        pipeline.run(plan_of(Town(120, 16).table(), engine), engine) as release,
        pytest.raises(ParameterError, match="remember"),
    ):
        freeze(release, tmp_path)


CHILDREN = {"leaf": list("abcdefg"), "parent": ["P"] * 6 + ["Q"], "top": ["*"] * 7}


def children(**counts: int) -> pa.Table:
    """Rows of children of one parent, half of them of each age."""
    rows = [(leaf, 30 + 20 * (i % 2)) for leaf, count in counts.items() for i in range(count)]
    ids, (zips, ages) = range(len(rows)), zip(*rows, strict=True)
    return pa.table({"id": ids, "age": ages, "zip": zips, "ill": ["x"] * len(ids), "who": [f"person {i}" for i in ids]})


def test_left_over_children_take_no_rows_of_their_siblings(nights: Nights) -> None:
    way: dict[str, Any] = {
        "algorithm": "mondrian",
        "hierarchies": {"zip": Hierarchy.from_table(CHILDREN), "age": Hierarchy.intervals(width=10)},
        "entity_key": None,
        "weights": {"zip": 5},
    }
    usual = {"a": 6, "b": 5, "c": 3, "d": 3, "e": 3, "f": 3}
    data = children(**usual)
    first = nights.make(data, **way)
    # What is left over is cut by age, its siblings are not: their regions are wider, and lie across it.
    labels = {(row["age"], row["zip"]) for row in first.to_arrow().to_pylist()}
    assert labels == {("*", "a"), ("*", "b"), ("[30, 39]", "P"), ("[50, 59]", "P")}
    stored = nights.freeze(first)
    assert rows(nights.make(data, stored, **way)) == rows(first)
    # A child that nobody had goes with what was left over, one of another parent nowhere.
    more = nights.make(children(**usual, g=5), stored, **way)
    assert (more.rows_published, more.rows_suppressed) == (23, 5)
    wider = {name: [*own, *new] for (name, own), new in zip(CHILDREN.items(), (["h"], ["P"], ["*"]), strict=True)}
    grown = way | {"hierarchies": way["hierarchies"] | {"zip": Hierarchy.from_table(wider)}}
    found = classes_of(nights.make(children(**usual, h=2), stored, **grown))
    assert [found[f"person {i}"] for i in (23, 24)] == [("[30, 39]", "P"), ("[50, 59]", "P")]


def test_values_in_another_order_are_drift(nights: Nights) -> None:
    way: dict[str, Any] = {"algorithm": "mondrian(ordered=['zip'])", "bounds": "cut", "quasi_identifiers": ["zip"]}

    def tonight(order: str, stored: Stored | None = None) -> Release:
        con = duckdb.connect()
        con.register("town", Town(120, 17).table())
        con.execute(f"CREATE TYPE step AS ENUM ({order})")
        con.execute(
            "CREATE TABLE steps AS SELECT * REPLACE ((['low', 'middle', 'high'])[1 + id % 3]::step AS zip) FROM town"
        )
        return nights.make("steps", stored, connection=con, **way)

    first = tonight("'low', 'middle', 'high'")
    stored = nights.freeze(first)
    assert rows(tonight("'low', 'middle', 'high'", stored)) == rows(first)
    # Further members may come, but not change the order of those that were there.
    assert rows(tonight("'lowest', 'low', 'middle', 'higher', 'high'", stored)) == rows(first)
    with pytest.raises(DataError, match="another order"):
        tonight("'high', 'low', 'middle'", stored)


def test_a_hierarchy_that_is_made_when_asked_for_is_kept_too(nights: Nights) -> None:
    town = Town(200, 18)
    way: dict[str, Any] = {"algorithm": "optimal", "hierarchies": {"age": Hierarchy.auto()}, "suppression_limit": 0.1}
    first = nights.make(town.table(), **way)
    stored = nights.freeze(first)
    town.people[0][0] = 9999
    second = nights.make(town.table(), stored, **way)
    assert second.recoding.levels == first.recoding.levels
    assert second.levels[0].height == first.levels[0].height


def nodes(values: list[Any], step: int) -> dict[str, list[str]]:
    """Return a hierarchy's table whose parents have neighbours as children, or with a step of 7 children anywhere."""
    texts = [str(v) for v in values]
    parents = [f"{i % 7}" if step == 7 else f"{i // step}" for i in range(len(values))]
    return {"leaf": texts, "parent": parents, "over": [f"of {int(p) // 3}" for p in parents], "top": ["*"] * len(texts)}


AGES = list(range(18, 80))
DAYS = [dt.date(2000, 1, 1) + dt.timedelta(days=11 * i) for i in range(62)]
MEASURED: dict[str, tuple[pa.DataType, Hierarchy]] = {
    "intervals": (pa.int32(), Hierarchy.intervals(width=5, factors=2, levels=2)),
    "quantiles": (pa.int32(), Hierarchy.quantiles(8, [4, 2])),
    "neighbours": (pa.int32(), Hierarchy.from_table(nodes(AGES, 4))),
    "anywhere": (pa.int32(), Hierarchy.from_table(nodes(AGES, 7))),
    "masked": (pa.int32(), Hierarchy.mask()),
    "whole numbers as doubles": (pa.float64(), Hierarchy.intervals(cuts=[25, 30, 45, 60])),
    "dates": (pa.date32(), Hierarchy.dates(["month", "quarter", "year"])),
    "listed dates": (pa.date32(), Hierarchy.from_table(nodes(DAYS, 4))),
}


def measured(town: Town, kind: pa.DataType) -> pa.Table:
    """Return a town in which a number or a day stands for each age."""
    data = town.table()
    ages = data.column("age").to_pylist()
    values = [None if a is None else DAYS[a - 18] if pa.types.is_date(kind) else a for a in ages]
    return data.set_column(1, "age", pa.array(values, kind))


@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.thinned(3)
def test_nodes_of_a_hierarchy_on_numbers_and_dates_are_published_again(nights: Nights, name: str) -> None:
    kind, hierarchy = MEASURED[name]
    way: dict[str, Any] = {"hierarchies": {"age": hierarchy, "zip": Hierarchy.mask()}, "output": "lca"}
    town = Town(300, 18)
    first = nights.make(measured(town, kind), **way)
    stored = nights.freeze(first)
    assert rows(nights.make(measured(town, kind), stored, **way)) == rows(first)
    before = classes_of(first)
    assert len(set(before.values())) > 10
    # Some values go and some come: whoever stays and is published is so under the same node.
    town.depart(60)
    town.arrive(40)
    after = classes_of(nights.make(measured(town, kind), stored, **way))
    both = before.keys() & after.keys()
    assert len(both) > 100
    assert {who: before[who] for who in both} == {who: after[who] for who in both}


@pytest.mark.parametrize("algorithm", ["mondrian", "datafly"])
@pytest.mark.thinned(2)
def test_the_time_zone_of_a_session_moves_nobody(tmp_path: Path, algorithm: str) -> None:
    data = Town(200, 19).table()
    moments = [dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=7 * (i % 90)) for i in range(200)]
    for position, name in enumerate(("id", "age")):
        spread = moments if name == "age" else [m + dt.timedelta(seconds=i) for i, m in enumerate(moments)]
        data = data.set_column(position, name, pa.array(spread, pa.timestamp("us", "UTC")))
    state, found = fresh_state(tmp_path), []
    way: dict[str, Any] = {"algorithm": algorithm, "hierarchies": {"age": Hierarchy.dates(["day", "week"])}}
    for zone in ("Asia/Kolkata", "America/New_York", "UTC"):
        con = duckdb.connect()
        con.execute(f"SET TimeZone = '{zone}'")
        engine = open_engine(con)
        try:
            plan = plan_of(data, engine, **way)
            night = make_night(plan, engine, state, f"night-{len(found)}", recoding="frozen", intersection="stop")
            assert published(night, state).warnings == []
            persons = (state.run_folder(night.run) / "persons.parquet").as_posix()
            found.append((rows(night.release), con.sql(f"FROM '{persons}' ORDER BY ALL").fetchall()))
        finally:
            engine.close()
            con.close()
    assert found[0] == found[1] == found[2]
