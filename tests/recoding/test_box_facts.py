"""What is known of a release of regions: the relations that metrics, models and risk read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
import sqlglot

import duckanon
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.hierarchy import Hierarchy
from duckanon.metrics.base import measure
from duckanon.recoding.regions import RegionRelations
from duckanon.recoding.relations import ReleaseRelations
from tests.recoding.boxes_made import RUN, Made, Region

AGES = Hierarchy.intervals(width=5, factors=[2, 2])
PLACES = Hierarchy.tree({"Europe": {"West": ["FR", "BE"], "North": ["SE"]}, "Asia": {"East": ["JP", "KR"]}})


def rows_of(relations: ReleaseRelations, name: str, columns: str = "*", order: str = "ALL") -> list[tuple[Any, ...]]:
    query = sqlglot.parse_one(f"SELECT {columns} FROM {relations.table(name)} ORDER BY {order}", dialect="duckdb")
    return relations.engine.rows(query)


PEOPLE = pa.table(
    {
        "age": [17, 18, 22, 33, 34, 36, None, None],
        "land": ["FR", "BE", "SE", "FR", "JP", "KR", "SE", "SE"],
        "ill": ["a", "a", "b", "b", "c", "c", "a", "b"],
    }
)


def test_a_full_domain_release_measures_the_same_as_regions() -> None:
    """Levels are regions, too: every metric must find the same in both."""
    levels = {"age": 2, "land": 2}
    hierarchies = {"age": AGES, "land": PLACES}
    given = {"quasi_identifiers": ["age", "land"], "sensitive": ["ill"], "hierarchies": hierarchies, "k": 1}
    with duckanon.anonymize(PEOPLE, levels=levels, suppression_limit=1.0, **given) as release:
        wanted = {(m.metric, m.attribute): m.value for m in release.measure()}
        regions: dict[str, list[Region]] = {
            "age": [("17", "18", 2), ("22", "22", 2), ("33", "33", 2), ("34", "36", 2), (None, None, 2)],
            "land": [("BE", "FR", 2), ("SE", "SE", 2), ("FR", "FR", 2), ("JP", "KR", 2), ("SE", "SE", 2)],
        }
        classes = [[0, 1], [2], [3], [4, 5], [6, 7]]
        made = Made(
            release.engine, PEOPLE, classes, regions, {"hierarchies": hierarchies, "sensitive": ["ill"]}, use_grid=False
        )
        relations = made.relations()
        found = {(m.metric, m.attribute): m.value for m in measure(release.engine, relations, None, {"k": 1})}
    assert found == pytest.approx(wanted)


def test_cells_of_runs(engine: DuckDBEngine) -> None:
    data = pa.table({"age": [17, 18, 22, 33, 34, 41, None, 90]})
    regions: list[Region] = [("17", "18", RUN), ("22", "34", RUN), ("41", "90", RUN), (None, None, 0)]
    made = Made(engine, data, [[0, 1], [2, 3, 4], [5, 7], [6]], {"age": regions}, {"hierarchies": {"age": AGES}})
    relations = made.relations()
    assert rows_of(relations, "cells", "cell, level, leaves, lo, hi") == [
        # The ends that are published, of the range from 17 to 90.
        ("[15, 19]", 1, 2, 17.0, 19.0),
        ("[20, 34]", 3, 3, 20.0, 34.0),
        ("[40, 94]", 4, 2, 40.0, 90.0),
        (None, 0, 1, None, None),
    ]
    assert rows_of(relations, "labelled") == [(1, 2, "[15, 19]"), (2, 3, "[20, 34]"), (3, 2, "[40, 94]"), (4, 1, None)]
    assert rows_of(relations, "class_cells", "class_id, attribute, cell, leaves", "class_id") == [
        (1, "age", "[15, 19]", 2),
        (2, "age", "[20, 34]", 3),
        (3, "age", "[40, 94]", 2),
        (4, "age", None, 1),
    ]
    assert rows_of(relations, "cell_rows") == [
        ("age", 0, 1, None, None, 1),
        ("age", 1, 2, 17.0, 19.0, 2),
        ("age", 3, 3, 20.0, 34.0, 3),
        ("age", 4, 2, 40.0, 90.0, 2),
    ]
    # Neither needed what the cells cover.
    assert "covers" not in relations.made()
    assert rows_of(relations, "covers", "cell, code") == [
        ("[15, 19]", 0),
        ("[15, 19]", 1),
        ("[20, 34]", 2),
        ("[20, 34]", 3),
        ("[20, 34]", 4),
        ("[40, 94]", 5),
        ("[40, 94]", 6),
        (None, 7),
    ]
    assert rows_of(relations, "domain", "attribute, kind, height, leaves, lo, hi") == [
        ("age", "ordered", 4, 8, 17.0, 90.0)
    ]


@pytest.mark.parametrize("output", ["interval", "bounds", "midpoint", "mean", "set"])
def test_cells_do_not_depend_on_how_they_are_written(engine: DuckDBEngine, output: str) -> None:
    data = pa.table({"age": [17, 18, 22, 33]})
    regions: list[Region] = [("17", "18", RUN), ("22", "33", RUN)]
    options = {"hierarchies": {"age": AGES}, "bounds": "tight", "output": output}
    relations = Made(engine, data, [[0, 1], [2, 3]], {"age": regions}, options).relations()
    assert rows_of(relations, "cells", "cell, level, leaves, lo, hi") == [
        ("[17, 18]", 1, 2, 17.0, 18.0),
        ("[22, 33]", 3, 2, 22.0, 33.0),
    ]


def test_the_lowest_node_is_what_it_is_published_as(engine: DuckDBEngine) -> None:
    data = pa.table({"age": [17, 18, 22, 33]})
    regions: list[Region] = [("17", "18", RUN), ("22", "33", RUN)]
    options = {"hierarchies": {"age": AGES}, "output": "lca"}
    relations = Made(engine, data, [[0, 1], [2, 3]], {"age": regions}, options).relations()
    assert rows_of(relations, "cells", "cell, level, leaves, lo, hi") == [
        ("[15, 20)", 1, 2, 17.0, 18.0),
        ("[20, 40)", 3, 2, 22.0, 33.0),
    ]


def test_the_whole_axis_and_missing_values_are_the_top(engine: DuckDBEngine) -> None:
    data = pa.table({"age": [17, 90, None, 17], "land": ["FR", "SE", "SE", None]})
    regions: dict[str, list[Region]] = {
        "age": [("17", "90", RUN), ("17", None, 4)],
        "land": [("FR", "SE", 2), ("SE", None, 3)],
    }
    options = {"hierarchies": {"age": AGES, "land": PLACES}}
    relations = Made(engine, data, [[0, 1], [2, 3]], regions, options).relations()
    assert rows_of(relations, "cells", "j, cell, level, leaves, lo, hi") == [
        (0, "*", 4, 3, 17.0, 90.0),
        (1, "*", 3, 6, None, None),
        (1, "Europe", 2, 3, None, None),
    ]
    assert rows_of(relations, "covers", "j, cell, code") == [
        *((0, "*", code) for code in range(3)),
        *((1, "*", code) for code in range(3)),
        *((1, "Europe", code) for code in range(2)),
    ]


def test_leaves_of_a_table_are_those_that_it_lists(engine: DuckDBEngine) -> None:
    """Ages 0 to 99 are listed by tens: what a run takes in counts, though the data have five values only."""
    listed = Hierarchy.from_table(
        pa.table({"l0": [str(i) for i in range(100)], "l1": [f"{i // 10 * 10}s" for i in range(100)]})
    )
    data = pa.table({"age": [17, 22, 33, 41, 95]})
    classes = [[0, 1], [2, 3], [4]]
    regions: list[Region] = [("17", "22", RUN), ("33", "41", RUN), ("95", "95", 0)]
    for bounds, wanted in (
        # 10 to 29 and 30 to 49; up to 22 and 33 to 41; 17 to 22 and 33 to 41.
        ("grid", [("95", 1), ("[10, 29]", 20), ("[30, 49]", 20)]),
        ("cut", [("95", 1), ("<= 22", 23), ("[33, 41]", 9)]),
        ("tight", [("95", 1), ("[17, 22]", 6), ("[33, 41]", 9)]),
    ):
        options = {"hierarchies": {"age": listed}, "bounds": bounds}
        relations = Made(engine, data, classes, {"age": regions}, options).relations()
        assert sorted(rows_of(relations, "cells", "cell, leaves")) == sorted(wanted)
        assert rows_of(relations, "domain", "leaves") == [(100,)]


def test_leaves_of_ordered_texts(engine: DuckDBEngine) -> None:
    sizes = Hierarchy.from_table(pa.table({"l0": ["XS", "S", "M", "L", "XL"], "l1": ["s", "s", "m", "l", "l"]}))
    data = pa.table({"q": ["XS", "M", "L"]})
    regions: list[Region] = [("XS", "M", RUN), ("L", "L", RUN)]
    options = {"hierarchies": {"q": sizes}, "bounds": "tight"}
    made = Made(engine, data, [[0, 1], [2]], {"q": regions}, options, places={"q": ["XS", "M", "L"]})
    assert rows_of(made.relations(), "cells", "cell, level, leaves") == [("L", 0, 1), ("[XS, M]", 2, 3)]


def test_leaves_that_are_no_values_of_the_type_count_what_occurs(engine: DuckDBEngine) -> None:
    odd = Hierarchy.from_table(pa.table({"l0": ["1", "2", "3", "many"], "l1": ["a", "a", "b", "b"]}))
    regions: list[Region] = [("1", "3", RUN)]
    options = {"hierarchies": {"q": odd}, "bounds": "tight"}
    made = Made(engine, pa.table({"q": [1, 3]}), [[0, 1]], {"q": regions}, options)
    assert rows_of(made.relations(), "cells", "cell, leaves") == [("[1, 3]", 2)]


def test_what_the_hierarchy_does_not_know_could_be_anything(engine: DuckDBEngine) -> None:
    data = pa.table({"q": ["FR", "FR", "XX"]})
    regions: list[Region] = [("FR", "FR", 0), ("XX", "XX", 0)]
    options = {"hierarchies": {"q": PLACES}, "on_unknown": "top"}
    relations = Made(engine, data, [[0, 1], [2]], {"q": regions}, options).relations()
    assert rows_of(relations, "cells", "cell, level, leaves") == [("*", 0, 5), ("FR", 0, 1)]
    assert rows_of(relations, "covers", "cell, code") == [("*", 0), ("*", 1), ("FR", 0)]


# Classes, members and values

BOTH = pa.table(
    {
        "age": [10, 20, 12, 18, 30, 31],
        "id": [1, 2, 2, 3, 4, 5],
        "ill": ["a", "b", "a", "a", "c", "d"],
    }
)
ALIKE: list[Region] = [("10", "20", RUN), ("12", "18", RUN), ("30", "30", RUN), ("31", "31", RUN)]


def alike(engine: DuckDBEngine, **options: Any) -> Made:
    """Return two regions with the same midpoint, one class of its own, and one that is suppressed."""
    given = {"bounds": "tight", "output": "midpoint", "sensitive": ["ill"], "entity_key": "id"} | options
    return Made(engine, BOTH, [[0, 1], [2, 3], [4], [5]], {"age": ALIKE}, given, suppressed=[3])


def test_classes_that_are_published_alike_are_one_class(engine: DuckDBEngine) -> None:
    relations = alike(engine).relations()
    # Person 2 is in both regions, and counts once.
    assert rows_of(relations, "class_map") == [(1, 4, 3, True), (3, 1, 1, True), (4, 1, 1, False)]
    assert rows_of(relations, "classes") == [(1, 4, False), (3, 1, False), (4, 1, True)]
    assert rows_of(relations, "members") == [(1, 0, 1), (1, 1, 1), (1, 2, 1), (1, 3, 1), (3, 4, 1), (4, 5, 1)]
    # The class stands for the smallest run that holds both.
    assert rows_of(relations, "labelled") == [(1, 4, "[10, 20]"), (3, 1, "30")]
    assert rows_of(relations, "cell_rows", "leaves, lo, hi, n") == [(1, 30.0, 30.0, 1), (4, 10.0, 20.0, 4)]
    assert rows_of(relations, "class_values") == [(1, "ill", "a", 3), (1, "ill", "b", 1), (3, "ill", "c", 1)]
    assert rows_of(relations, "tuple_map") == [
        (0, 1, True),
        (1, 1, True),
        (2, 1, True),
        (3, 1, True),
        (4, 3, True),
        (5, 4, False),
    ]


def test_classes_that_differ_stay(engine: DuckDBEngine) -> None:
    relations = alike(engine, output="interval").relations()
    assert rows_of(relations, "class_map") == [(1, 2, 2, True), (2, 2, 2, True), (3, 1, 1, True), (4, 1, 1, False)]
    assert rows_of(relations, "labelled", "class_id, l_0") == [(1, "[10, 20]"), (2, "[12, 18]"), (3, "30")]
    assert rows_of(relations, "class_values") == [
        (1, "ill", "a", 1),
        (1, "ill", "b", 1),
        (2, "ill", "a", 2),
        (3, "ill", "c", 1),
    ]
    assert rows_of(relations, "domain_values", "value, n") == [("a", 3), ("b", 1), ("c", 1), ("d", 1)]


def test_where_rows_of_one_kind_are_in_two_classes_there_is_no_map(engine: DuckDBEngine) -> None:
    assert alike(engine).relations().has("tuple_map")
    assert not alike(engine).relations(functional=False).has("tuple_map")


def test_regions_that_are_joined_on_a_tree_and_with_missing_values(engine: DuckDBEngine) -> None:
    """Hidden behind the mean of another column: the lowest node that holds both, the top where NULL is in one."""
    data = pa.table({"x": [5, 5, 5, 5, 5, 5], "land": ["FR", "SE", "JP", "KR", None, "JP"]})
    same_x: list[Region] = [("5", "5", 0)] * 4
    regions: dict[str, list[Region]] = {
        "x": same_x,
        "land": [("FR", "FR", 0), ("SE", "SE", 0), ("JP", "KR", 2), ("JP", None, 3)],
    }
    options: dict[str, Any] = {"hierarchies": {"land": PLACES}}
    made = Made(engine, data, [[0], [1], [2, 3], [4, 5]], regions, options)
    published = made.publish()
    assert not published.merged
    # As if nothing told the first two, and the last two, apart.
    cursor = engine._connection
    cursor.execute(f"UPDATE {published.table} SET ec = CASE WHEN class_id <= 2 THEN 1 ELSE 3 END")
    joined = replace(published, merged=True)
    relations = RegionRelations(made.plan, engine, made.counted, made.boxes, joined, made.rows)
    assert rows_of(relations, "labelled") == [(1, 2, "5", "Europe"), (3, 4, "5", "*")]
    assert rows_of(relations, "class_map") == [(1, 2, 2, True), (3, 4, 4, True)]
    assert rows_of(relations, "cells", "cell, level, leaves") == [("*", 3, 6), ("5", 0, 1), ("Europe", 2, 3)]
    counted = rows_of(relations, "cell_rows", "attribute, level, leaves, n")
    assert counted == [("land", 2, 3, 2), ("land", 3, 6, 4), ("x", 0, 1, 6)]


def test_every_metric_is_measured_on_regions(engine: DuckDBEngine) -> None:
    with duckanon.anonymize(PEOPLE, quasi_identifiers=["age", "land"], sensitive=["ill"], k=2) as other:
        wanted = {m.metric for m in other.measure()}
    regions: dict[str, list[Region]] = {
        "age": [("17", "22", RUN), ("33", "36", RUN), (None, None, 0)],
        "land": [("BE", "SE", 2), ("FR", "KR", 3), ("SE", "SE", 0)],
    }
    options = {"hierarchies": {"age": AGES, "land": PLACES}, "sensitive": ["ill"]}
    made = Made(engine, PEOPLE, [[0, 1, 2], [3, 4, 5], [6, 7]], regions, options)
    found = measure(engine, made.relations(), None, {"k": 2})
    assert {m.metric for m in found} == wanted
    assert all(m.value is not None for m in found)
    values = {(m.metric, m.attribute): m.value for m in found}
    # Six of eight rows stand for three of seven ages, two for one.
    loss = (6 * 3 + 2 * 1) / 7
    assert values[("loss", "age")] == pytest.approx((loss - 8 / 7) / (8 - 8 / 7))
    # [15, 24] and [30, 39] of the ages from 17 to 36.
    assert values[("ncp", "age")] == pytest.approx((3 * (24 - 17) + 3 * (36 - 30)) / (36 - 17))


def test_nothing_is_read_that_nobody_asks_for(engine: DuckDBEngine) -> None:
    made = alike(engine, output="interval")
    relations = made.relations()
    assert relations.made() == ["published"]


@pytest.mark.parametrize("bounds", ["grid", "cut", "tight"])
@pytest.mark.thinned(2)
def test_whoever_reads_the_intervals_finds_the_same_loss(bounds: str) -> None:
    """The texts alone, read by what reads other people's tables, stand for what the release says of itself."""
    data = pa.table({"age": [17 + i * i % 70 for i in range(40)], "pay": [i * 37 % 100 / 4 for i in range(40)]})
    names = ["age", "pay"]
    with duckanon.anonymize(data, quasi_identifiers=names, k=3, algorithm="mondrian", bounds=bounds) as release:
        own = {(m.metric, m.attribute): m.value for m in release.measure()}
        read = duckanon.measure(data, release.to_arrow(), quasi_identifiers=names)
    # Who reads them knows no hierarchy, and so no levels.
    found = {(m.metric, m.attribute): m.value for m in read if m.metric != "precision"}
    assert len(found) > 30
    assert found == pytest.approx({key: own[key] for key in found})
