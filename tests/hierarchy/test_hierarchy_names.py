"""Hierarchies bound to columns, as rules in mappings, by name, and on real data."""

from __future__ import annotations

import json
import traceback
from pathlib import Path

import duckdb
import pytest
from sqlglot import exp

from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.errors import HierarchyError
from duckanon.hierarchy import Hierarchy, load, resolve, save, saved, shipped, validate
from tests.datasets import PublicData
from tests.hierarchy.hierarchy_bound import Bound

CITIES = {"city": ["Bonn", "Köln", "Lyon"], "country": ["DE", "DE", "FR"], "all": ["*", "*", "*"]}
ROWS = [("Bonn", "DE", "*"), ("Köln", "DE", "*"), ("Lyon", "FR", "*")]


def write(folder: Path, text: str, name: str = "h.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8"))
    return path


# Rules as mappings


@pytest.mark.parametrize(
    "rule",
    [
        {"rule": "intervals", "width": 5, "origin": 0, "factors": [2, 2, 2]},
        {"rule": "intervals", "width": 0.1, "origin": 1, "factors": []},
        {"rule": "intervals", "cuts": [[1, 2.5, 3], [2.5]]},
        {"rule": "quantiles", "bins": 10, "then": [5]},
        {"rule": "mask", "side": "left", "character": "#", "levels": 2},
        {"rule": "mask", "positions": [[1], [1, 2]], "character": "*"},
        {"rule": "prefix", "lengths": [3, 1]},
        {"rule": "prefix", "lengths": [3], "then": "us_zip3"},
        {"rule": "prefix", "lengths": [3], "then": {"rule": "suppress", "top": "any"}},
        {"rule": "dates", "levels": ["day", "week"]},
        {"rule": "age", "reference_date": "2024-05-17", "bands": [5, 10]},
        {"rule": "order", "fanout": 4, "top": "all"},
        {"rule": "random", "seed": 3, "ordered": False, "max_children": 4},
        {"rule": "suppress"},
    ],
)
def test_a_rule_is_written_as_it_was_read(rule: dict[str, object]) -> None:
    made = Hierarchy.from_rule(rule)
    assert made.to_rule() == rule
    assert Hierarchy.from_rule(json.loads(json.dumps(made.to_rule()))).to_rule() == rule
    assert made.origin.startswith(f"given: rule {rule['rule']}")
    assert made.describe()["rule"] == rule


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"rule": "interval", "width": 5}, "Unknown hierarchy rule 'interval'. Did you mean 'intervals'"),
        ({"rule": "intervals", "widht": 5}, "has no key 'widht'. Did you mean 'width'"),
        ({"rule": "prefix"}, "needs the key 'lengths'"),
        ({"rule": "prefix", "lengths": [1], "base": "/"}, "has no key 'base'"),
        ({"ruel": "mask"}, "Did you mean 'rule'"),
        ({"rule": "mask", "file": "x.csv"}, "needs one of the keys"),
        ({"file": "x.csv", "sep": ","}, "no key 'sep'"),
        ({}, "needs one of the keys"),
        ("mask", "must be a mapping"),
    ],
)
def test_rules_that_are_none(rule: dict[str, object], message: str) -> None:
    with pytest.raises(HierarchyError, match=message.replace(".", r"\.")):
        Hierarchy.from_rule(rule)


def test_a_field_left_null_by_sql_is_not_given() -> None:
    assert Hierarchy.from_rule({"rule": "mask", "levels": None, "side": None, "file": None}).height is None


def test_a_rule_that_is_a_file(tmp_path: Path) -> None:
    write(tmp_path, "a,x\n", "f.csv")
    made = Hierarchy.from_rule({"file": "f.csv", "separator": ","}, base=tmp_path)
    assert (made.preview(), made.origin) == ([("a", "x")], "given: file f.csv")


# Binding tables


def test_every_row_counts_in_the_domain() -> None:
    bound = Bound(Hierarchy.from_table(CITIES), ["Bonn", None], "VARCHAR")
    assert bound.labels == {"Bonn": ("DE", "*"), None: (None, "*")}
    assert bound.levels.size == 4
    assert bound.leaves == {(1, "DE"): 2, (1, "FR"): 1, (1, None): 1, (2, "*"): 4}


def test_a_hierarchy_may_have_a_row_for_null() -> None:
    made = Hierarchy.from_table({"a": ["x", None], "b": ["known", "missing"]})
    assert Bound(made, ["x", None], "VARCHAR").labels == {"x": ("known", "*"), None: ("missing", "*")}
    assert Bound(made, ["x", None], "VARCHAR").levels.size == 2
    blank = Hierarchy.from_table({"a": ["x", None], "b": ["known", None], "c": ["*", "*"]})
    bound = Bound(blank, ["x", None], "VARCHAR")
    assert bound.labels == {"x": ("known", "*"), None: (None, "*")}
    assert bound.known == {"x": True, None: True}


def test_unknown_values_are_an_error_that_counts_them() -> None:
    values = ["Bonn", "CANARY", "CANARY2", None]
    with pytest.raises(HierarchyError) as caught:
        Bound(Hierarchy.from_table(CITIES), values, "VARCHAR", counts=[10, 3, 2, 1])
    told = "".join(traceback.format_exception(caught.value))
    assert "The hierarchy of 'column' does not know 2 of 4 values (5 of 16 rows)." in told
    assert "on_unknown='top'" in told
    assert "CANARY'" not in str(caught.value)


def test_unknown_values_can_become_the_top() -> None:
    bound = Bound(Hierarchy.from_table(CITIES), ["Bonn", "Rom", None], "VARCHAR", on_unknown="top")
    assert bound.labels == {"Bonn": ("DE", "*"), "Rom": ("*", "*"), None: (None, "*")}
    assert bound.known == {"Bonn": True, "Rom": False, None: True}
    assert (bound.levels.unknown, bound.levels.size) == (1, 4)
    assert (bound.leaves[1, "*"], bound.leaves[2, "*"]) == (4, 4)


@pytest.mark.parametrize(
    ("type_name", "value", "leaf"),
    [
        ("DOUBLE", "1.0", "1"),
        ("DOUBLE", "1e20", "100000000000000000000"),
        ("DOUBLE", "-0.0", "0"),
        ("FLOAT", "0.1", "0.10"),
        ("DECIMAL(5,2)", "1.50", "1.5"),
        ("DECIMAL(5,2)", "-0.50", "-0.5"),
        ("DECIMAL(5,2)", "0.00", "0"),
        ("INTEGER", "7", "07"),
        ("INTEGER", "7", "7.0"),
        ("INTEGER", "0", "-0"),
        ("INTEGER", "100", "+100"),
        ("HUGEINT", "170141183460469231731687303715884105727", "170141183460469231731687303715884105727.00"),
    ],
)
def test_numbers_are_matched_by_their_size_too(type_name: str, value: str, leaf: str) -> None:
    made = Hierarchy.from_table({"a": [leaf, "12345"], "b": ["x", "y"]})
    assert [v[0] for v in Bound(made, [value], type_name).labels.values()] == ["x"]


def test_but_only_where_every_leaf_is_a_number_and_one_fits() -> None:
    mixed = Hierarchy.from_table({"a": ["1", "?"], "b": ["x", "y"]})
    with pytest.raises(HierarchyError, match="does not know 1 of 1"):
        Bound(mixed, ["1.0"], "DOUBLE")
    twice = Hierarchy.from_table({"a": ["1", "01"], "b": ["x", "y"]})
    with pytest.raises(HierarchyError, match="does not know 1 of 1"):
        Bound(twice, ["1.0"], "DOUBLE")
    assert Bound(twice, ["1"], "INTEGER").labels == {"1": ("x", "*")}
    near = Hierarchy.from_table({"a": ["9007199254740993"], "b": ["x"]})
    with pytest.raises(HierarchyError, match="does not know 1 of 1"):
        Bound(near, ["9007199254740992"], "BIGINT")
    text = Hierarchy.from_table({"a": ["1"], "b": ["x"]})
    with pytest.raises(HierarchyError, match="does not know 1 of 1"):
        Bound(text, ["01"], "VARCHAR")


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("BOOLEAN", "true"),
        ("DATE", "2024-05-17"),
        ("TIMESTAMP", "2024-05-17 12:00:00"),
        ("TIMESTAMPTZ", "2024-05-17 12:00:00+00"),
        ("UUID", "00000000-0000-0000-0000-000000000001"),
        ("ENUM('b','a')", "a"),
        ("VARCHAR", "' ; DROP TABLE vals; --"),
    ],
)
def test_tables_are_matched_by_text_on_every_type(type_name: str, value: str) -> None:
    assert Bound(Hierarchy.from_table({"a": [value], "b": ["x"]}), [value], type_name).labels == {value: ("x",)}


# Names


def test_a_saved_hierarchy_is_replaced_only_on_request(tmp_path: Path) -> None:
    path = str(tmp_path / "duckanon.duckdb")
    with duckdb.connect(path) as con:
        assert saved(con) == []
        save(con, "cities", Hierarchy.from_table(CITIES))
        save(con, 'odd " name;', Hierarchy.mask(levels=2))
        # The same again changes nothing, and another one only on request.
        save(con, "cities", Hierarchy.from_table(CITIES))
        save(con, 'odd " name;', Hierarchy.mask(levels=2))
        for name in ("cities", "Cities", 'odd " name;'):
            with pytest.raises(HierarchyError, match=r"Another hierarchy is saved as .*replace=True"):
                save(con, name, Hierarchy.suppress())
        save(con, "cities", Hierarchy.suppress(), replace=True)
        assert load(con, "cities").to_rule() == {"rule": "suppress"}
        save(con, "cities", Hierarchy.from_table(CITIES), replace=True)
        con.execute("CREATE TABLE duckanon.duckanon.zip3 AS SELECT 12345 AS code, '123**' AS three")
    with duckdb.connect(path) as con:
        assert saved(con) == ["cities", 'odd " name;', "zip3"]
        assert load(con, "cities").preview() == ROWS
        assert load(con, "cities").origin == "saved: cities"
        assert load(con, 'odd " name;').to_rule() == {"rule": "mask", "side": "right", "character": "*", "levels": 2}
        assert load(con, "zip3").preview() == [("12345", "123**")]
        assert con.execute("SELECT l0, l2 FROM duckanon.duckanon.cities ORDER BY l0 LIMIT 1").fetchall() == [
            ("Bonn", "*")
        ]
        with pytest.raises(HierarchyError, match="Did you mean 'cities'"):
            load(con, "citys")
        con.execute("CREATE TABLE duckanon.duckanon.bad AS SELECT 'CANARY' a, 'x' b UNION ALL SELECT 'CANARY', 'y'")
        with pytest.raises(HierarchyError, match="saved hierarchy 'bad' cannot be used") as caught:
            load(con, "bad")
        assert "CANARY" not in repr((caught.value, caught.value.__cause__, caught.value.__context__))
        for name in ("", " ", "a\0b"):
            with pytest.raises(HierarchyError, match="name of at least one character"):
                save(con, name, Hierarchy.mask())
        with pytest.raises(HierarchyError, match="save it, and use its name"):
            save(con, "p", Hierarchy.prefix([1], then=Hierarchy.from_table(CITIES)))


def test_resolve_tries_saved_then_shipped_then_files(tmp_path: Path) -> None:
    write(tmp_path, "a;x\n", "own.csv")
    write(tmp_path, 'rule = "prefix"\nlengths = [2]\nthen = "own.csv"\n', "own.toml")
    with duckdb.connect() as con:
        engine = DuckDBEngine(con)
        given = Hierarchy.mask()
        assert resolve(given, engine) is given
        assert resolve({"rule": "mask"}, engine).origin == "given: rule mask"
        assert resolve("countries", engine).origin == "shipped: countries"
        save(con, "countries", given)
        assert resolve("countries", engine).origin == "saved: countries"
        assert resolve("own.csv", engine, tmp_path).origin == "given: file own.csv"
        assert resolve(tmp_path / "own.toml", engine).to_rule()["then"] == "own.csv"
        for spec, message in [
            ("countris", "Unknown hierarchy 'countris'. Did you mean 'countries'"),
            ("../hierarchies/countries", "Unknown hierarchy"),
            ("no.csv", "'no.csv' cannot be read: No such file"),
            ("no.toml", "'no.toml' cannot be read: No such file"),
            (5, "cannot be made of a int"),
        ]:
            with pytest.raises(HierarchyError, match=message.replace(".", r"\.")):
                resolve(spec, engine, tmp_path)
        write(tmp_path, "rule = ", "broken.toml")
        with pytest.raises(HierarchyError, match="is not TOML"):
            resolve("broken.toml", engine, tmp_path)
        engine.close()


def test_a_rule_file_finds_its_neighbours(tmp_path: Path) -> None:
    write(tmp_path, "ab;x\n", "own.csv")
    toml = write(tmp_path, 'rule = "prefix"\nlengths = [2]\nthen = "own.csv"\n', "own.toml")
    with duckdb.connect() as con:
        made = resolve(toml, DuckDBEngine(con))
    assert Bound(made, ["abc"], "VARCHAR").labels == {"abc": ("ab", "x")}


def test_rule_files_that_go_round_in_a_loop(tmp_path: Path) -> None:
    write(tmp_path, 'rule = "prefix"\nlengths = [2]\nthen = "b.toml"\n', "a.toml")
    write(tmp_path, 'rule = "prefix"\nlengths = [1]\nthen = "a.toml"\n', "b.toml")
    made = Hierarchy.from_rule({"rule": "prefix", "lengths": [3], "then": "a.toml"}, base=tmp_path)
    with pytest.raises(HierarchyError, match="has a loop"):
        Bound(made, ["abc"], "VARCHAR")


@pytest.mark.parametrize("name", sorted(shipped()))
def test_shipped_hierarchies_can_be_used(name: str) -> None:
    with duckdb.connect() as con:
        made = resolve(name, DuckDBEngine(con))
    if made.levels is not None:
        leaves = [row[0] for row in made.preview(5)]
        assert Bound(made, leaves, "VARCHAR").levels.unknown == 0


@pytest.mark.parametrize(("name", "value"), [("icd10", "E11.9"), ("us_zip5", "10001"), ("birth_date", "1980-05-17")])
def test_shipped_rules_can_be_used(name: str, value: str) -> None:
    with duckdb.connect() as con:
        made = resolve(name, DuckDBEngine(con))
    bound = Bound(made, [value, None], "DATE" if "date" in name else "VARCHAR")
    assert bound.levels.origin == f"shipped: {name}"
    assert len(bound.labels[value]) >= 3
    assert bound.labels[value][-1] == "*"


# Real ones


def test_real_hierarchies_fit_real_data(data: Path) -> None:
    tried = 0
    with duckdb.connect() as con:
        for folder in sorted(data.glob("*/hierarchies")):
            table = folder.parent / "data.parquet"
            for path in sorted(folder.glob("*.csv")):
                made = Hierarchy.from_csv(path)
                assert validate(made).ok
                if not table.exists():
                    continue
                column = path.stem.replace('"', '""')
                con.execute(
                    f"CREATE OR REPLACE TABLE vals AS SELECT (row_number() OVER (ORDER BY value) - 1)::INTEGER code, "
                    f"value, value::VARCHAR AS text, n "
                    f"FROM (SELECT \"{column}\" AS value, count(*) AS n FROM '{table}' GROUP BY 1)"
                )
                (type_name,) = con.execute("SELECT typeof(value) FROM vals LIMIT 1").fetchone()  # type: ignore[misc]
                engine = DuckDBEngine(con)
                vals = engine.catalog.find("vals")
                assert vals is not None
                engine.create("vals", exp.select("*").from_(vals))
                levels = made.bind(engine, "vals", column, type_name, "top")
                assert levels.size >= len(made.levels or [])
                assert levels.height == made.height
                tried += 1
                engine.close()
    assert tried > 50


def test_adult_age_as_arx_has_it(adult: PublicData) -> None:
    made = Hierarchy.from_csv(adult.hierarchies(["age"])["age"])
    bound = Bound(made, ["17", "90"], "INTEGER")
    assert (bound.levels.height, bound.levels.size) == (4, 100)
    assert bound.leaves[4, bound.levels.top] == 100
