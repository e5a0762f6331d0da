"""Hierarchies as tables: files, frames, queries, trees, names, validation; and what is never told about them."""

from __future__ import annotations

import json
import traceback
from datetime import date
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from duckanon.engine.duckdb import DuckDBEngine
from duckanon.errors import HierarchyError
from duckanon.hierarchy import Hierarchy, load, resolve, save, saved, shipped, validate
from tests.unit.hierarchy_bound import Bound

CITIES = {"city": ["Bonn", "Köln", "Lyon"], "country": ["DE", "DE", "FR"], "all": ["*", "*", "*"]}
ROWS = [("Bonn", "DE", "*"), ("Köln", "DE", "*"), ("Lyon", "FR", "*")]


def write(folder: Path, text: str, name: str = "h.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8"))
    return path


def fails(path: Path, separator: str = ";") -> str:
    with pytest.raises(HierarchyError) as caught:
        Hierarchy.from_csv(path, separator)
    told = "".join(traceback.format_exception(caught.value))
    assert "CANARY" not in told.replace("CANARY.csv", "")
    return str(caught.value)


# Files


def test_a_file_in_the_exchange_format(tmp_path: Path) -> None:
    made = Hierarchy.from_csv(write(tmp_path, 'a;"x;1";*\r\n"b""";"x;1";*\n"c\nd";y;*\n', "zip.csv"))
    assert made.preview() == [("a", "x;1", "*"), ('b"', "x;1", "*"), ("c\nd", "y", "*")]
    assert made.origin == "given: file zip.csv"
    assert repr(made) == "Hierarchy(given: file zip.csv, height 2, 3 leaves)"
    assert made.describe() == {
        "origin": "given: file zip.csv",
        "kind": "table",
        "height": 2,
        "rule": None,
        "labels": [3, 2, 1],
    }


def test_another_separator_and_a_byte_order_mark(tmp_path: Path) -> None:
    assert Hierarchy.from_csv(write(tmp_path, "\ufeffa,x\nb,x\n"), ",").preview() == [("a", "x"), ("b", "x")]


def test_a_level_is_added_where_there_is_no_root(tmp_path: Path) -> None:
    assert Hierarchy.from_csv(write(tmp_path, "a;x\nb;y\n")).preview() == [("a", "x", "*"), ("b", "y", "*")]
    assert Hierarchy.from_csv(write(tmp_path, "a\n"), top="any").preview() == [("a", "any")]


def test_the_empty_leaf_is_null_and_the_quoted_one_is_text(tmp_path: Path) -> None:
    made = Hierarchy.from_csv(write(tmp_path, ';missing;*\n"";empty;*\na;x;*\n'))
    assert made.preview() == [(None, "missing", "*"), ("", "empty", "*"), ("a", "x", "*")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a;x;*\nCANARY;*\nc;x;*\n", "Line 2 has another number of cells than line 1"),
        ("a;x;*\nb;x;*;CANARY\nc;y\n", "Lines 2, 3 have another number"),
        ('"a\nb";x;*\nCANARY;*\n', "Line 3 has"),
        ("CANARY;x;*\nb;x;*\nCANARY;x;*\n", "1 leaf is in more than one row: lines 1, 3"),
        ("a;;*\nCANARY;x;*\n", "1 empty cell at level 1: line 1"),
        ("a;CANARY;u;*\nb;CANARY;v;*\n", "1 label of level 1 with more than one parent at level 2"),
        ('CANARY;"x;*\n', "broken quotes"),
        ('a;x\n"CANARY"b;x\n', "broken quotes in or after line 2"),
    ],
)
def test_files_that_are_no_hierarchy(tmp_path: Path, text: str, message: str) -> None:
    assert message in fails(write(tmp_path, text))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert "No such file" in fails(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes("CANARYé;x\n".encode("latin-1"))
    assert "not UTF-8" in fails(tmp_path / "latin.csv")
    assert "one character" in fails(write(tmp_path, "a;b\n"), ";;")
    assert "cannot be read" in fails(tmp_path)


def test_to_csv_is_read_back(tmp_path: Path) -> None:
    made = Hierarchy.from_table({"a": ["x;1", 'q"', "", None, "n\nl", "\ufeffb"], "b": ["1", "1", "2", "2", "2", "2"]})
    made.to_csv(tmp_path / "out.csv")
    assert Hierarchy.from_csv(tmp_path / "out.csv").preview() == made.preview()
    with pytest.raises(HierarchyError, match="materialise"):
        Hierarchy.mask().to_csv(tmp_path / "rule.csv")


# Tables, frames and queries


@pytest.mark.parametrize("form", [dict, pa.table, pd.DataFrame, pl.DataFrame, lambda d: pa.table(d).to_reader()])
def test_from_any_table(form: type) -> None:
    assert Hierarchy.from_table(form(CITIES)).preview() == ROWS


def test_from_some_columns_in_the_order_given() -> None:
    made = Hierarchy.from_table(CITIES, columns=["city", "country"])
    assert made.preview() == ROWS
    with pytest.raises(HierarchyError, match="no column 'town'"):
        Hierarchy.from_table(CITIES, columns=["town"])


def test_leaves_are_spelt_as_the_database_does() -> None:
    made = Hierarchy.from_table({"v": [1.0, 2.5, None], "up": [True, False, False]})
    assert made.preview() == [("1.0", "true", "*"), ("2.5", "false", "*"), (None, "false", "*")]
    days = Hierarchy.from_table(pa.table({"d": pa.array([date(2024, 5, 17)]), "m": ["May"]}))
    assert days.preview() == [("2024-05-17", "May")]
    frame = pd.DataFrame({"v": pd.Categorical(["a", "b"]), "up": ["x", "x"]}, index=[7, 9])
    assert Hierarchy.from_table(frame).preview() == [("a", "x"), ("b", "x")]


@pytest.mark.parametrize(
    "data", [{"a": ["x", "x"], "b": ["1", "1"]}, {"a": ["x"], "b": [None]}, {}, {"a": []}, 5, {"a": 1}]
)
def test_from_table_refuses(data: object) -> None:
    with pytest.raises(HierarchyError):
        Hierarchy.from_table(data)


def test_from_query() -> None:
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT * FROM (VALUES (1, 'low'), (9, 'high')) t(a, b)")
        made = Hierarchy.from_query(con, "SELECT a, b FROM t ORDER BY a")
        assert made.preview() == [("1", "low", "*"), ("9", "high", "*")]
        assert made.origin == "given: query"
        with pytest.raises(Exception, match=r"DuckDB") as caught:
            Hierarchy.from_query(con, "SELECT CAST('CANARY' AS INTEGER)")
        assert "CANARY" not in repr((caught.value, caught.value.__cause__, caught.value.__context__))
        with pytest.raises(Exception, match=r"DuckDB"):
            Hierarchy.from_query(con, "DROP TABLE t")
        assert con.execute("SELECT count(*) FROM t").fetchone() == (2,)


# Trees


def test_a_shallower_branch_repeats_its_label() -> None:
    made = Hierarchy.tree({"Europe": {"West": ["FR", "DE"], "North": ["SE"]}, "Asia": ["JP"]})
    assert made.preview() == [
        ("FR", "West", "Europe", "*"),
        ("DE", "West", "Europe", "*"),
        ("SE", "North", "Europe", "*"),
        ("JP", "Asia", "Asia", "*"),
    ]
    assert made.origin == "given: rule tree"


def test_trees_of_other_shapes() -> None:
    assert Hierarchy.tree(["a", "b"]).preview() == [("a", "*"), ("b", "*")]
    assert Hierarchy.tree(["AQ", {"Europe": {"West": ["FR"]}}]).preview() == [
        ("AQ", "AQ", "AQ", "*"),
        ("FR", "West", "Europe", "*"),
    ]
    assert Hierarchy.tree({"low": [1, 2.5], "other": True}).preview() == [
        ("1", "low", "*"),
        ("2.5", "low", "*"),
        ("true", "other", "*"),
    ]
    assert Hierarchy.tree({"LU": ["LU", "LUX"]}).preview() == [("LU", "LU"), ("LUX", "LU")]


def test_trees_that_are_none() -> None:
    loop: dict[str, object] = {}
    loop["CANARY"] = loop
    for tree, message in [
        (loop, "loop"),
        ({"CANARY": {"B": {"CANARY": ["x"]}}}, "loop"),
        ({"A": ["CANARY"], "B": ["CANARY"]}, "1 leaf is in more than one row"),
        ({"A": {"CANARY": ["x"]}, "B": {"CANARY": ["y"]}}, "1 label of level 1 with more than one parent"),
        ({"A": []}, "has no values"),
        ({"A": {}}, "has no values"),
        ({}, "has no values"),
        ({"A": [None]}, "must be a text"),
    ]:
        with pytest.raises(HierarchyError, match=message) as caught:
            Hierarchy.tree(tree)  # type: ignore[arg-type]
        assert "CANARY" not in str(caught.value)


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


def test_saved_hierarchies(tmp_path: Path) -> None:
    path = str(tmp_path / "duckanon.duckdb")
    with duckdb.connect(path) as con:
        assert saved(con) == []
        save(con, "cities", Hierarchy.from_table(CITIES))
        save(con, 'odd " name;', Hierarchy.mask(levels=2))
        save(con, "cities", Hierarchy.from_table(CITIES))
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


# Validation


def test_validation_counts() -> None:
    found = validate(
        pa.table({"a": ["x", "x", "y", "z"], "b": ["p", "p", "p", None], "c": ["1", "1", "2", "2"]}), values=["x", "q"]
    )
    assert not found.ok
    assert (found.leaves, found.height) == (4, 2)
    assert (found.duplicates, found.gaps, found.not_nested, found.tops, found.missing) == (1, 1, 1, 2, 1)
    assert (found.functional, found.nested, found.rooted, found.total) == (False, False, False, False)
    assert len(found.problems) == 4
    assert len(found.notes) == 1


def test_validation_of_good_ones(tmp_path: Path) -> None:
    for data in (Hierarchy.from_table(CITIES), pa.table(CITIES), write(tmp_path, "Bonn;DE;*\nKöln;DE;*\nLyon;FR;*\n")):
        found = validate(data, values=pa.array(["Bonn", "Lyon"]))
        assert found.ok
        assert (found.functional, found.nested, found.rooted, found.total) == (True, True, True, True)
    assert validate(pa.table(CITIES)).total is None
    assert validate(Hierarchy.mask(levels=2)).ok
    ragged = validate(write(tmp_path, "a;x\nb\n", "r.csv"))
    assert (ragged.ok, ragged.ragged) == (False, 1)
    assert not validate(pa.table({"a": pa.array([], pa.string())})).ok


def test_materialise_makes_a_table_of_a_rule(tmp_path: Path) -> None:
    made = Hierarchy.dates(["month", "year"]).materialise([date(2024, 5, 17), date(2023, 1, 1), None])
    assert made.preview() == [
        ("2023-01-01", "2023-01", "2023", "*"),
        ("2024-05-17", "2024-05", "2024", "*"),
        (None, None, None, "*"),
    ]
    made.to_csv(tmp_path / "dates.csv")
    assert Hierarchy.from_csv(tmp_path / "dates.csv").preview() == made.preview()
    assert Hierarchy.mask().materialise(pd.Series(["ab"])).preview() == [("ab", "a*", "*")]
    assert Hierarchy.mask().materialise(pl.Series(["ab"])).preview() == [("ab", "a*", "*")]
    assert Hierarchy.intervals(width=5).materialise(["7"], "INTEGER").preview() == [("7", "[5, 10)", "*")]
    with pytest.raises(HierarchyError, match="no values"):
        Hierarchy.suppress().materialise(pa.array([], pa.string()))


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
                    f"CREATE OR REPLACE TABLE vals AS SELECT (row_number() OVER (ORDER BY value) - 1)::INTEGER AS code, "
                    f"value, value::VARCHAR AS text, n "
                    f"FROM (SELECT \"{column}\" AS value, count(*) AS n FROM '{table}' GROUP BY 1)"
                )
                (type_name,) = con.execute("SELECT typeof(value) FROM vals LIMIT 1").fetchone()  # type: ignore[misc]
                engine = DuckDBEngine(con)
                levels = made.bind(engine, "vals", column, type_name, "top")
                assert levels.size >= len(made.levels or [])
                assert levels.height == made.height
                tried += 1
                engine.close()
    assert tried > 50


def test_adult_age_as_arx_has_it(data: Path) -> None:
    made = Hierarchy.from_csv(data / "adult" / "hierarchies" / "age.csv")
    bound = Bound(made, ["17", "90"], "INTEGER")
    assert (bound.levels.height, bound.levels.size) == (4, 100)
    assert bound.leaves[4, bound.levels.top] == 100
