"""Few values are looked up in memory, many in the database: both make the same tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from duckanon import Hierarchy
from duckanon.encoding.dictionaries import Coded, dictionary
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.engine.sql.relations import col, table
from duckanon.hierarchy import Levels
from duckanon.release.stages.encode import code_hierarchy

ENGINE: DuckDBEngine
WORDS = ["a", "B", "ä", "b c", "", "Z", "10", "9"]


@pytest.fixture(scope="module", autouse=True)
def _opened() -> Iterator[None]:
    """A worker may come back to this module after it closed what it had opened."""
    global ENGINE
    ENGINE = DuckDBEngine()
    yield
    ENGINE.close()


def both(rows: Sequence[tuple[str | None, ...]], values: Sequence[str | None]) -> list[tuple[Levels, Coded]]:
    """Bind a table of labels to a column, in memory and in the database."""
    hierarchy = Hierarchy.from_table({f"l{i}": list(column) for i, column in enumerate(zip(*rows, strict=True))})
    incoming = ENGINE.fresh("incoming")
    ENGINE.register(incoming, pa.table({"v": pa.array(values, pa.string())}))
    own = dictionary(ENGINE, exp.select("*").from_(table(incoming)), "v", col("v"))
    assert own.null == (None in values)
    found = []
    for texts in (own.texts, None):
        levels = hierarchy.bind(ENGINE, own.table, "v", "VARCHAR", "top", texts)
        found.append((levels, code_hierarchy(ENGINE, own, levels)))
    return found


def content(name: str) -> tuple[list[pa.DataType], list[str]]:
    """Return the types and the rows of a table."""
    found = ENGINE.arrow(exp.select("*").from_(table(name)))
    return found.schema.types, sorted(map(repr, zip(*(c.to_pylist() for c in found.columns), strict=True)))


def assert_alike(found: list[tuple[Levels, Coded]]) -> None:
    """Compare everything that the two ways make."""
    (levels, coded), (other, expected) = found
    assert levels.arrays is not None
    assert other.arrays is None
    for name in ("height", "size", "top", "origin", "kind", "unknown"):
        assert getattr(levels, name) == getattr(other, name)
    assert content(levels.tree) == content(other.tree)
    assert content(levels.leaves) == content(other.leaves)
    assert content(coded.levels) == content(expected.levels)
    assert content(coded.labels) == content(expected.labels)
    assert (coded.sizes, coded.height, coded.masked) == (expected.sizes, expected.height, expected.masked)


@given(st.data())
def test_the_same_tables(data: st.DataObject) -> None:
    """Labels, codes, and leaves of a random tree; the column has some of its leaves, and perhaps NULL."""
    leaves = data.draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8, unique=True))
    groups = {leaf: data.draw(st.sampled_from(["x", "Y", "ö"])) for leaf in leaves}
    above = {group: data.draw(st.sampled_from(["p", "q"])) for group in sorted(set(groups.values()))}
    rows: list[tuple[str | None, ...]] = [(leaf, groups[leaf], above[groups[leaf]], "*") for leaf in leaves]
    if data.draw(st.booleans()):
        rows.append((None, None, None, "*"))
    values = data.draw(st.lists(st.sampled_from([*leaves, None]), min_size=1, max_size=20))
    assert_alike(both(rows, values))


def test_null_beside_one_level() -> None:
    """NULL that is not listed has the top label only, also where that is the first level."""
    assert_alike(both([("a", "*"), ("b", "*")], ["a", None, "a"]))


def test_a_value_that_is_not_listed() -> None:
    """Unknown values are for the database."""
    (levels, coded), _ = both([("a", "*"), ("b", "*")], ["a", "c"])
    assert levels.arrays is None
    assert coded.arrays is None
    assert (levels.unknown, coded.masked) == (1, True)


def test_no_value_in_what_is_shown() -> None:
    """The texts of values, and their labels, are in no text of the objects that hold them."""
    (levels, coded), _ = both([("secret", "label", "*"), ("other", "label", "*")], ["secret"])
    for shown in (repr(levels), repr(coded)):
        assert "secret" not in shown
        assert "label" not in shown.replace("labels", "")
