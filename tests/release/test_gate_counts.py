"""How the gate counts classes, and by which keys: values, or hashes that separate all values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from duckanon.encoding.counting import count_classes
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.engine.sql.relations import call, col, number
from duckanon.errors import PrivacyViolation
from duckanon.models import KAnonymity
from duckanon.release import gate
from duckanon.release.gate import check_models, require, require_same_classes, short_keys


def counted(engine: DuckDBEngine, relation: exp.Query, keys: list[exp.Expr]) -> list[int]:
    classes = count_classes(engine, relation, keys)
    return sorted(n for (n,) in engine.rows(exp.select("n").from_(classes)))


@pytest.mark.parametrize("seed", range(6))
def test_hashes_tell_the_same_classes_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    days = [f"[{a}, {b}]" for a, b in rng.integers(1000, 1400, (400, 2))]
    table = pa.table(
        {
            "day": pa.array([None if rng.integers(9) == 0 else days[i] for i in rng.integers(0, 400, 3000)]),
            "n": pa.array([None if v == 3 else float(v) for v in rng.integers(0, 4, 3000)]),
            "s": pa.array([{"a": int(v)} for v in rng.integers(0, 3, 3000)]),
        }
    )
    engine = DuckDBEngine()
    engine.register("made", table)
    relation, names = exp.select("*").from_("made"), ["day", "n", "s"]
    keys = short_keys(engine, relation, names)
    assert all(isinstance(key, exp.Expression) and key.sql() not in names for key in keys)
    assert counted(engine, relation, keys) == counted(engine, relation, [col(n) for n in names])
    engine.close()


def hash_of(patch: pytest.MonkeyPatch, function: str, *further: exp.Expr) -> None:
    """Make values collide: their hash is that of what a function tells of them."""
    honest = gate.hashed
    patch.setattr(gate, "hashed", lambda value: honest(call(function, value, *further)))


@pytest.mark.parametrize("worse", ["length", "typeof"])
def test_a_hash_that_collides_is_not_used(worse: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hash_of(monkeypatch, worse)
    engine = DuckDBEngine()
    engine.register("made", pa.table({"q": ["ab", "cd", "ab", None], "r": ["a", "a", "a", "a"]}))
    relation = exp.select("*").from_("made")
    keys = short_keys(engine, relation, ["q", "r"])
    assert keys[0] == col("q")
    assert counted(engine, relation, keys) == [1, 1, 2]
    engine.close()


@pytest.mark.parametrize("few", [0, 1000])
def test_texts_that_collide_are_turned_around(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    hash_of(monkeypatch, "left", number(1))
    monkeypatch.setattr(gate, "FEW_VALUES", few)
    engine = DuckDBEngine()
    engine.register("made", pa.table({"q": ["ab", "ac", "ab", "zx", None, "zx", "zx"]}))
    (key,) = short_keys(engine, exp.select("*").from_("made"), ["q"])
    assert "REVERSE" in key.sql().upper()
    assert counted(engine, exp.select("*").from_("made"), [key]) == [1, 1, 2, 3]
    engine.close()


def test_long_texts_of_one_form_do_collide_and_are_told_apart() -> None:
    """The first two are of those that DuckDB gives one hash."""
    alike = ["[1937-02-01, 1948-10-31]", "[1937-09-01, 1938-10-31]", "[1937-02-01, 1938-10-31]", None]
    engine = DuckDBEngine()
    engine.register("made", pa.table({"q": [v for n, v in enumerate(alike, 1) for _ in range(n)]}))
    relation = exp.select("*").from_("made")
    assert counted(engine, relation, short_keys(engine, relation, ["q"])) == [1, 2, 3, 4]
    engine.close()


def test_columns_of_few_values_share_words() -> None:
    rng = np.random.default_rng(5)
    table = pa.table({f"c{j}": [None if v == 0 else f"v{v}" for v in rng.integers(0, 150, 4000)] for j in range(9)})
    engine = DuckDBEngine()
    engine.register("made", table)
    relation = exp.select("*").from_("made")
    for width in range(1, 10):
        names = table.column_names[:width]
        keys = short_keys(engine, relation, names)
        assert len(keys) == 1 if width <= 4 else len(keys) < width
        assert counted(engine, relation, keys) == counted(engine, relation, [col(n) for n in names])
    engine.close()


@pytest.mark.parametrize("mutant", ["_part", "_window"])
def test_bits_that_do_not_tell_values_apart_are_not_used(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = gate._part
    lies = {"_part": lambda digest, shift, width, at: honest(digest, 0, 1, at), "_window": lambda hashes, at: (0, 2)}
    monkeypatch.setattr(gate, mutant, lies[mutant])
    engine = DuckDBEngine()
    engine.register("made", pa.table({"q": [f"v{i}" for i in range(9)], "r": ["a"] * 9}))
    relation = exp.select("*").from_("made")
    keys = short_keys(engine, relation, ["q", "r"])
    assert col("q") in keys
    assert counted(engine, relation, keys) == [1] * 9
    engine.close()


@pytest.fixture
def engine():
    found = DuckDBEngine(threads=1)
    yield found
    found.close()


def relation(engine: DuckDBEngine, **columns: Any) -> exp.Query:
    name = engine.fresh("data")
    engine.register(name, pa.table(columns))
    return sqlglot.parse_one(f"SELECT * FROM {name}", dialect="duckdb")


def sizes(engine: DuckDBEngine, classes: str) -> list[int]:
    return sorted(n for (n,) in engine.rows(sqlglot.parse_one(f"SELECT n FROM {classes}")))


def test_classes_are_counted_with_null_as_a_value(engine: DuckDBEngine) -> None:
    rows = relation(engine, a=[1, 1, None, None, None], b=["x", "x", "x", None, None])
    assert sizes(engine, count_classes(engine, rows, [col("a"), col("b")])) == [1, 2, 2]


@pytest.mark.parametrize("keys", [False, True])
def test_every_class_has_a_number_of_its_own(keys: bool, engine: DuckDBEngine) -> None:
    rows = relation(engine, a=[v for v in range(300) for _ in range(300 - v)])
    classes = count_classes(engine, rows, [col("a")], keys=keys)
    found = engine.rows(exp.select("class_id", "n").from_(classes))
    assert sorted(i for i, _ in found) == list(range(1, 301))
    assert sorted(n for _, n in found) == list(range(1, 301))
    assert not keys or all(i == n for i, n in found)


def test_persons_are_counted_once(engine: DuckDBEngine) -> None:
    rows = relation(engine, a=[1, 1, 1, 2, 2], p=["x", "x", "y", None, None])
    assert sizes(engine, count_classes(engine, rows, [col("a")], col("p"))) == [1, 2]


def test_no_rows_are_no_classes(engine: DuckDBEngine) -> None:
    rows = relation(engine, a=pa.array([], pa.int64()))
    classes = count_classes(engine, rows, [col("a")])
    (found,) = check_models(engine, {"classes": classes}, [KAnonymity(2)], "rows")
    assert (found.holds, found.classes) == (True, 0)


def test_a_failed_check_says_how_much_and_never_what(engine: DuckDBEngine) -> None:
    rows = relation(engine, a=["Canary", "b", "b"])
    classes = count_classes(engine, rows, [col("a")])
    checks = check_models(engine, {"classes": classes}, [KAnonymity(1), KAnonymity(2)], "rows")
    with pytest.raises(PrivacyViolation, match=r"k_anonymity is broken by 1 of 2 classes \(1 rows\)") as caught:
        require(checks)
    assert caught.value.checks == checks
    assert [c.holds for c in checks] == [True, False]
    assert "Canary" not in str(caught.value)


def test_the_same_classes_in_another_order_are_the_same(engine: DuckDBEngine) -> None:
    first = relation(engine, a=[1, None, None], b=["x", "y", "y"])
    require_same_classes(engine, first, relation(engine, a=[None, 1, None], b=["y", "x", "y"]), ["a", "b"])
    for other in ([1, None], ["x", "y"]), ([1, 1, None], ["x", "x", "y"]), ([1, None, None, 2], ["x", "y", "y", "z"]):
        with pytest.raises(PrivacyViolation):
            require_same_classes(engine, first, relation(engine, a=other[0], b=other[1]), ["a", "b"])
