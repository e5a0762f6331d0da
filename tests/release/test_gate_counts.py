"""How the gate counts classes, and by which keys: values, or keyed words of them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from duckanon.encoding import words
from duckanon.encoding.counting import count_classes
from duckanon.encoding.words import named_in, secret_words
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.engine.sql.relations import col, hash_of
from duckanon.errors import PrivacyViolation
from duckanon.models import KAnonymity
from duckanon.release.gate import check_models, require, require_same_classes
from duckanon.release.truth import Fingerprint


def counted(engine: DuckDBEngine, relation: exp.Query, keys: list[exp.Expr]) -> list[int]:
    classes = count_classes(engine, relation, keys)
    return sorted(n for (n,) in engine.rows(exp.select("n").from_(classes)))


def fingerprint(types: dict[str, str]) -> Fingerprint:
    columns = tuple((name, kind, slot) for slot, (name, kind) in enumerate(types.items()))
    return Fingerprint(secret_words(len(columns)), columns, 0, 0)


def counted_by_words(engine: DuckDBEngine, relation: exp.Query, types: dict[str, str], names: list[str]) -> list[int]:
    published = fingerprint(types)
    key, _ = published.words(names)
    classes = count_classes(engine, relation, [key], params=named_in(key, published.keys))
    return sorted(n for (n,) in engine.rows(exp.select("n").from_(classes)))


@pytest.mark.parametrize("seed", range(6))
def test_words_tell_the_same_classes_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    days = [f"[{a}, {b}]" for a, b in rng.integers(1000, 1400, (400, 2))]
    table = pa.table(
        {
            "day": pa.array([None if rng.integers(9) == 0 else days[i] for i in rng.integers(0, 400, 3000)]),
            "n": pa.array([None if v == 3 else float(v) for v in rng.integers(0, 4, 3000)]),
            "s": pa.array([{"a": int(v)} for v in rng.integers(0, 3, 3000)]),
            "other": pa.array(rng.integers(0, 3, 3000)),
        }
    )
    engine = DuckDBEngine()
    engine.register("made", table)
    relation, names = exp.select("*").from_("made"), ["day", "n", "s"]
    types = {"day": "VARCHAR", "n": "DOUBLE", "s": "STRUCT(a BIGINT)", "other": "BIGINT"}
    assert counted_by_words(engine, relation, types, names) == counted(engine, relation, [col(n) for n in names])
    engine.close()


def test_values_that_change_columns_are_another_class() -> None:
    engine = DuckDBEngine()
    engine.register("made", pa.table({"q": ["a", "b", None, "", "a"], "r": ["b", "a", "", None, "a"]}))
    relation, types = exp.select("*").from_("made"), {"q": "VARCHAR", "r": "VARCHAR"}
    assert counted_by_words(engine, relation, types, ["q", "r"]) == [1] * 5
    engine.close()


def test_long_texts_of_one_form_do_collide_and_are_told_apart() -> None:
    """The first two are of those that DuckDB gives one hash."""
    alike = ["[1937-02-01, 1948-10-31]", "[1937-09-01, 1938-10-31]", "[1937-02-01, 1938-10-31]", None]
    engine = DuckDBEngine()
    engine.register("made", pa.table({"q": [v for n, v in enumerate(alike, 1) for _ in range(n)]}))
    relation = exp.select("*").from_("made")
    assert counted(engine, relation, [hash_of(col("q"))]) == [3, 3, 4]
    assert counted_by_words(engine, relation, {"q": "VARCHAR"}, ["q"]) == [1, 2, 3, 4]
    engine.close()


def rows_of(table: pa.Table, engine: DuckDBEngine) -> exp.Query:
    name = engine.fresh("data")
    engine.register(name, table)
    return sqlglot.parse_one(f"SELECT * FROM {name}", dialect="duckdb")


@pytest.mark.parametrize("alike", [True, False])
def test_classes_and_rows_are_compared_in_one_reading(alike: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database adds up the words of rows as the kernels do; where it does not, the kernels add all of them."""
    if not alike:
        monkeypatch.setattr(words, "mixes_alike", lambda engine: False)
    rng = np.random.default_rng(7)
    made = pa.table({"q": [f"v{i}" for i in rng.integers(0, 40, 900)], "x": rng.integers(0, 9, 900)})
    engine = DuckDBEngine()
    published = fingerprint({"q": "VARCHAR", "x": "BIGINT"})
    every = [w for name, kind, slot in published.columns for w in words.words_of(col(name), kind, slot)]
    rows, total = words.sum_of_rows(engine, rows_of(made, engine), every, published.keys)
    published = dataclasses.replace(published, rows=rows, total=total)
    key, rest = published.words(["q"])
    q, x = made.column("q").to_numpy(), made.column("x").to_numpy().copy()
    place = int(np.flatnonzero((q[1:] != q[:-1]) & (x[1:] != x[:-1]))[0])
    x[[place, place + 1]] = x[[place + 1, place]]
    exchanged = rows_of(made.set_column(1, "x", pa.array(x)), engine)
    shuffled = rows_of(made.take(rng.permutation(900)), engine)
    classes = [count_classes(engine, r, [key], rest=rest, params=published.keys) for r in (shuffled, exchanged)]
    published.require(engine, shuffled)
    published.require_classes(engine, classes[0])
    with pytest.raises(PrivacyViolation, match="does not hold the rows that were checked"):
        published.require(engine, exchanged)
    with pytest.raises(PrivacyViolation, match="does not hold the rows that were checked"):
        published.require_classes(engine, classes[1])
    engine.close()


def test_the_database_mixes_words_as_the_kernels_do() -> None:
    """If it does not, each row is read twice: then this wants to be looked at."""
    engine = DuckDBEngine()
    assert words.mixes_alike(engine)
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
