"""Hierarchies from files, frames, queries and trees, their validation, and that errors quote no value."""

from __future__ import annotations

import errno
import os
import traceback
from datetime import date
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from duckanon.errors import HierarchyError
from duckanon.hierarchy import Hierarchy, save, validate

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
    assert Hierarchy.from_table({"leaf": ["a"]}, top="any").preview() == [("a", "any")]


@pytest.mark.parametrize(
    ("text", "separator", "hint"),
    [
        ("a,CANARY,*\nb,x,*\n", ";", " Most lines hold a comma: is the separator ',' and not ';'?"),
        ("a\tCANARY\nb\tx\nc\n", ";", " Most lines hold a tab: is the separator '\\t' and not ';'?"),
        ("a;CANARY\n", ",", " Most lines hold a semicolon: is the separator ';' and not ','?"),
        ("CANARY\nb,x\n", ";", ""),
    ],
)
def test_a_file_of_one_column_has_no_level(tmp_path: Path, text: str, separator: str, hint: str) -> None:
    path = write(tmp_path, text)
    told = f"It has height 0: one column, so no level to generalize to.{hint}"
    assert fails(path, separator).endswith(told)
    found = validate(path, separator=separator)
    assert (found.ok, found.height, found.problems) == (False, 0, (told,))


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
        ("CANARY;b;*\nb;CANARY;*\n", "2 labels lie on a loop"),
        ("CANARY;b;*\nb;c;*\nc;CANARY;*\nd;c;*\n", "3 labels lie on a loop"),
        ("CANARY;d;*\nb;d;*\nc;CANARY;*\nd;CANARY;*\n", "2 labels lie on a loop"),
        ("x;CANARY;u;CANARY;*\n", "2 labels lie on a loop"),
        ('a;x\n"CANARY"b;x\n', "broken quotes in or after line 2"),
    ],
)
def test_files_that_are_no_hierarchy(tmp_path: Path, text: str, message: str) -> None:
    assert message in fails(write(tmp_path, text))


LOOP = {"a": ["x", "y"], "b": ["y", "x"]}


def test_loops_are_refused_wherever_they_come_from() -> None:
    with pytest.raises(HierarchyError, match="2 labels lie on a loop"):
        Hierarchy.from_table(LOOP)
    with duckdb.connect() as con, pytest.raises(HierarchyError, match="2 labels lie on a loop"):
        Hierarchy.from_query(con, "SELECT * FROM (VALUES ('x', 'y'), ('y', 'x')) t(a, b)")
    found = validate(pa.table(LOOP))
    assert (found.loops, found.nested, found.ok) == (2, False, False)


@pytest.mark.parametrize(
    "rows",
    [
        [("a", "a", "a", "*"), ("b", "c", "c", "*")],
        [("a", "b", "*"), ("b", "b", "*"), ("c", "b", "*")],
        [("a", "b", "c"), ("b", "c", "c"), ("c", "c", "c")],
        # A value that is the sign for anything, and leads up to it.
        [("*", "unknown", "*"), ("a", "x", "*")],
        [(None, None, "*"), ("a", "x", "*")],
    ],
)
def test_what_is_repeated_on_the_way_up_is_no_loop(rows: list[tuple[str | None, ...]]) -> None:
    table = pa.table([pa.array(c, pa.string()) for c in zip(*rows, strict=True)], names=list("abcd")[: len(rows[0])])
    assert validate(table).ok
    assert Hierarchy.from_table(table).preview() == rows


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert "No such file" in fails(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes("CANARYé;x\n".encode("latin-1"))
    assert "not UTF-8" in fails(tmp_path / "latin.csv")
    assert "one character" in fails(write(tmp_path, "a;b\n"), ";;")
    assert "not a regular file" in fails(tmp_path)


def test_to_csv_is_read_back(tmp_path: Path) -> None:
    made = Hierarchy.from_table({"a": ["x;1", 'q"', "", None, "n\nl", "\ufeffb"], "b": ["1", "1", "2", "2", "2", "2"]})
    made.to_csv(tmp_path / "out.csv")
    assert Hierarchy.from_csv(tmp_path / "out.csv").preview() == made.preview()
    with pytest.raises(HierarchyError, match="materialise"):
        Hierarchy.mask().to_csv(tmp_path / "rule.csv")


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def refuse(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_to_csv_replaces_a_file_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Hierarchy.from_table(CITIES)
    path = write(tmp_path, "old;*\n")
    path.chmod(0o640)
    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, refuse)
            with pytest.raises(OSError, match="No space left") as caught:
                made.to_csv(path)
        assert caught.value.filename == str(path)
        assert (path.read_text(), names(tmp_path)) == ("old;*\n", ["h.csv"])
    with monkeypatch.context() as patch:
        # Rows that break off: the file is not whole.
        patch.setattr("duckanon.hierarchy.files.zip", refuse, raising=False)
        with pytest.raises(OSError, match="No space left"):
            made.to_csv(path)
    assert (path.read_text(), names(tmp_path)) == ("old;*\n", ["h.csv"])
    made.to_csv(path)
    assert Hierarchy.from_csv(path).preview() == ROWS
    assert (path.stat().st_mode & 0o777, names(tmp_path)) == (0o640, ["h.csv"])


def test_to_csv_follows_links_and_writes_to_pipes(tmp_path: Path) -> None:
    path = write(tmp_path, "old;*\n")
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    Hierarchy.from_table(CITIES).to_csv(link)
    assert link.is_symlink()
    assert Hierarchy.from_csv(path).preview() == ROWS
    Hierarchy.from_table(CITIES).to_csv("/dev/null")
    assert not Path("/dev/null").is_file()
    for wrong in (tmp_path, tmp_path / "none" / "h.csv"):
        with pytest.raises(OSError, match=str(wrong)):
            Hierarchy.from_table(CITIES).to_csv(wrong)


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


def test_a_hierarchy_is_read_from_a_query_and_errors_quote_no_value() -> None:
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT * FROM (VALUES (1, 'low'), (9, 'high')) t(a, b)")
        made = Hierarchy.from_query(con, "SELECT a, b FROM t ORDER BY a")
        assert made.preview() == [("1", "low", "*"), ("9", "high", "*")]
        assert made.origin == "given: query"
        with pytest.raises(Exception, match=r"DuckDB") as caught:
            Hierarchy.from_query(con, "SELECT CAST('CANARY' AS INTEGER)")
        assert "CANARY" not in repr((caught.value, caught.value.__cause__, caught.value.__context__))
        with pytest.raises(HierarchyError, match="one SELECT"):
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


def test_validation_of_rules(tmp_path: Path) -> None:
    good = write(tmp_path, 'rule = "prefix"\nlengths = [2, 1]\nthen = "own.csv"\n', "good.toml")
    write(tmp_path, "a;x;*\nb;y;*\n", "own.csv")
    found = validate(good)
    assert (found.ok, found.rule, found.height, found.missing) == (True, "prefix", 4, None)
    found = validate(good, values=["ab1", "b", "c"])
    assert (found.ok, found.missing, found.total) == (False, 1, False)
    assert found.problems == ("1 of 3 given values has no row.",)
    assert validate("us_zip5").rule == "prefix"
    assert validate("countries").rule is None
    write(tmp_path, 'rule = "prefix"\nlengths = [1]\nthen = "loop.toml"\n', "loop.toml")
    for text, message in [
        ('rule = "prefix"\nlengths = [1, 2]\n', "must become smaller"),
        ('rule = "prefix"\nlength = [1]\n', "has no key 'length'"),
        ('rule = "prefix"\nlengths = [1]\nthen = "nobody"\n', "Unknown hierarchy 'nobody'"),
        ('rule = "prefix"\nlengths = [1]\nthen = "loop.toml"\n', "has a loop"),
        ("rule = ", "is not TOML"),
    ]:
        found = validate(write(tmp_path, text, "bad.toml"))
        assert (found.ok, found.rule is not None, message in found.problems[0]) == (False, True, True)
    for name, message in [("none.toml", "cannot be read"), ("us_zip", "Did you mean 'us_zip5'")]:
        with pytest.raises(HierarchyError, match=message):
            validate(name)
    wrong = validate(Hierarchy.intervals(width=5), values=["CANARY"])
    assert not wrong.ok
    assert "CANARY" not in repr(wrong)
    with duckdb.connect() as con:
        save(con, "own", Hierarchy.from_table(CITIES))
        assert validate("own", connection=con).leaves == 3
        assert validate(Hierarchy.prefix([1], then="own"), connection=con).height == 3


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
