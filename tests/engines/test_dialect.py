"""Functions that differ between engines come from one module, and the engine's dialect writes them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sqlglot import exp

import duckanon
from duckanon.engine.base import Engine
from duckanon.engine.sql import relations as dialect
from duckanon.engine.sql.relations import cast, named, number, text

PACKAGE = Path(duckanon.__file__).parent
BY_NAME = re.compile(r'(?:call|builtin|Anonymous)\((?:this=)?"(hash|approx_count_distinct|isfinite|epoch|epoch_us)"')


def test_no_other_module_calls_them_by_name() -> None:
    own = PACKAGE / "engine" / "sql" / "relations.py"
    wrong = [str(p.relative_to(PACKAGE)) for p in PACKAGE.rglob("*.py") if p != own and BY_NAME.search(p.read_text())]
    assert wrong == []


@pytest.mark.parametrize(
    ("built", "value"),
    [
        (dialect.is_finite(cast(text("inf"), "DOUBLE")), False),
        (dialect.is_finite(cast(text("nan"), "DOUBLE")), False),
        (dialect.is_finite(cast(text("1e300"), "DOUBLE")), True),
        (dialect.is_finite(cast(text("infinity"), "DATE")), False),
        (dialect.epoch_seconds(cast(text("1970-01-02"), "DATE")), 86400),
        (dialect.epoch_seconds(cast(text("00:00:01.5"), "TIME")), 1.5),
        (dialect.epoch_microseconds(cast(text("1969-12-31 23:59:59.999999"), "TIMESTAMP")), -1),
    ],
)
def test_a_function_means_what_its_docstring_says(engine: Engine, built: exp.Expr, value: object) -> None:
    assert engine.row(exp.select(named(built, "found"))) == (value,)


def test_equal_values_have_equal_hashes_under_one_key(engine: Engine) -> None:
    values = [dialect.keyed_hash(number(n)) for n in (1, 1, 2)]
    first = engine.row(exp.select(*(v.copy() for v in values)), {"key0": 1, "key1": 2})
    other = engine.row(exp.select(*values), {"key0": 1, "key1": 3})
    assert first[0] == first[1] != first[2]
    assert first[0] != other[0]


def test_the_dialect_writes_statements(engine: Engine) -> None:
    assert engine.dialect.name
    assert "1" in engine.dialect.sql(exp.select(number(1)))


def test_the_distance_of_two_shuffle_keys_differs_between_classes(engine: Engine) -> None:
    """If the last of several values were mixed in weakly, the keys of two rows would differ alike in every class."""
    keys = [
        [dialect.shuffle_key(number(class_id), number(7), text(value)) for value in ("a", "b")]
        for class_id in range(50)
    ]
    query = exp.select(*(key for pair in keys for key in pair))
    row = engine.row(query, {"key0": 1, "key1": 2})
    assert len(set(row)) == 100
    assert len({row[i] ^ row[i + 1] for i in range(0, 100, 2)}) == 50
