"""What is published of trees and orders of texts, and of classes that look alike; the file has no text besides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.hierarchy import Hierarchy
from tests.recoding.boxes_made import RUN, Made, Region

AGES = Hierarchy.intervals(width=5, factors=[2, 2])


PLACES = Hierarchy.tree({"Europe": {"West": ["FR", "BE"], "North": ["SE"]}, "Asia": {"East": ["JP", "KR"]}})
COUNTRIES = ["BE", "FR", "SE", "JP", "KR", None]


def countries(engine: DuckDBEngine, **options: Any) -> Made:
    regions: list[Region] = [("BE", "FR", 1), ("JP", "KR", 2), ("SE", "SE", 0), (None, None, 0)]
    given = {"hierarchies": {"q": PLACES}} | options
    return Made(engine, pa.table({"q": COUNTRIES}), [[0, 1], [3, 4], [2], [5]], {"q": regions}, given)


@pytest.mark.parametrize("bounds", ["grid", "cut", "tight"])
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
            monkeypatch.setattr(f"duckanon.encoding.dictionaries.{name}", limit)
        made = countries(engine)
        assert made.types() == [wanted]
    assert [row[0] for row in made.shown()] == ["West", "Asia", "SE", None]


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
