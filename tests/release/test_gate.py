"""The gate counts what is published itself, and catches every lie before it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

import duckanon
from duckanon.algorithms.full_domain.nodes import Node
from duckanon.encoding import dictionaries
from duckanon.encoding.counting import ENTITY
from duckanon.engine.sql.relations import number
from duckanon.errors import DataError, DuckanonError, PrivacyViolation
from duckanon.release import gate
from tests.release.lies import (
    Lie,
    dictionary,
    exchanged,
    kept_where,
    liar,
    publishing,
    release_with,
    rows_of_all_classes,
)

# 12 rows; at k = 3 the classes (a, 1) and (b, 2) stand, the four rows of the other classes are outliers.
ROWS = [("a", 1)] * 4 + [("b", 2)] * 4 + [("a", 2), (None, 1), (None, 1), ("c", 3)]
TABLE = pa.table(
    {
        "q": [q for q, _ in ROWS],
        "r": [r for _, r in ROWS],
        "s": [f"s{i}" for i in range(12)],
        "p": [i // 2 for i in range(12)],
    }
)


def release(**options: Any) -> duckanon.Release:
    given = {"quasi_identifiers": ["q", "r"], "sensitive": ["s"], "k": 3, "suppression_limit": 0.4}
    return duckanon.anonymize(TABLE, **(given | {"algorithm": "datafly"} | options))


def test_an_honest_run_passes() -> None:
    with lying(Lie()) as found:
        assert (found.rows_published, found.rows_suppressed) == (8, 4)
        (check,) = found.checks
        assert (check.holds, check.classes, check.violating_classes) == (True, 2, 0)


# Each lie is in one place: in the search, in the recoding, or in the file. The gate must find it without their code.


def lying(lie: Lie, k: int = 3, **options: Any) -> duckanon.Release:
    given = {"data": TABLE, "quasi_identifiers": ["q", "r"], "sensitive": ["s"], "k": k, "suppression_limit": 0.4}
    return release_with(lie, **(given | options))


def outliers(more: int) -> Callable[[Node], dict[str, Any]]:
    """Say that more rows are suppressed, or fewer."""
    return lambda node: {"outlier_rows": node.outlier_rows + more}


def first_cell(value: Any) -> Callable[[pa.Table], pa.Table]:
    """Write another value into the first row."""
    return lambda table: table.set_column(0, "q", pa.array([value, *table.column("q").to_pylist()[1:]]))


def nulls_are_unequal(honest: Any) -> Any:
    """Lose rows with NULL between the count and the file."""

    def rows(self: Any, kept: Any, keyed: bool = False) -> exp.Select:
        query = type(honest).rows(self, kept, keyed)
        return query.transform(lambda n: exp.EQ(**n.args) if isinstance(n, exp.NullSafeEQ) else n)

    return liar(honest, rows=rows)


LIES = {
    "nothing is suppressed": Lie(node=lambda node: {"outlier_rows": 0}),
    "a row less is suppressed": Lie(node=outliers(-1)),
    "a row more is suppressed": Lie(node=outliers(1)),
    "classes of one are kept": Lie(recoder=kept_where("true")),
    "classes of one are kept, and the numbers fit": Lie(
        node=lambda node: {"outlier_rows": 0}, recoder=kept_where("true")
    ),
    "classes of two are kept, and the numbers fit": Lie(node=outliers(-2), recoder=kept_where("units >= 2")),
    "rows of all classes are published": Lie(recoder=rows_of_all_classes),
    "rows of all classes are published, and the numbers fit": Lie(
        node=lambda node: {"outlier_rows": 0}, recoder=rows_of_all_classes
    ),
    "rows are published twice": Lie(
        recoder=publishing(
            lambda honest, *given: exp.select("*").from_(
                exp.union(honest(*given), honest(*given), distinct=False).subquery("u")
            )
        )
    ),
    "rows are lost": Lie(recoder=publishing(lambda honest, *given: honest(*given).limit(5))),
    "rows show their own value in place of a label": Lie(recoder=exchanged({"q_0": "p_0"})),
    "a value has no code": Lie(recoder=dictionary("SELECT * FROM {table} WHERE code > 0")),
    "a value has two codes": Lie(recoder=dictionary("SELECT * FROM {table} UNION ALL SELECT * FROM {table}")),
    "values have each other's codes": Lie(
        recoder=dictionary("SELECT * REPLACE ((code + 1) % (SELECT count(*) FROM {table}) AS code) FROM {table}")
    ),
    "classes that differ in the first column are one": Lie(
        written=lambda table: table.set_column(0, "q", pa.array(["a"] * len(table)))
    ),
    "a column that nobody named is published": Lie(
        recoder=publishing(lambda honest, *given: honest(*given).select(exp.alias_(number(7), "extra")))
    ),
    "the sensitive column has the name of another": Lie(recoder=exchanged({"q_0": "p_0", "p_0": "q_0"})),
    "one row stands alone in the file": Lie(written=first_cell("back")),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_lie_is_caught(lie: Lie, temp_folder: Path) -> None:
    with pytest.raises((PrivacyViolation, DataError)) as caught:
        lying(lie)
    assert list(temp_folder.iterdir()) == [], "what the gate refused is still there"
    for row in ROWS:
        assert f"'{row[0]}'" not in str(caught.value)


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
@pytest.mark.thinned(2)
def test_a_lie_is_caught_by_hashes(lie: Lie, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "MANY_ROWS", 0)
    with pytest.raises((PrivacyViolation, DataError)):
        lying(lie)


def test_nulls_that_are_lost_when_they_are_counted_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionaries, "same", lambda a, b: exp.EQ(this=a, expression=b))
    with pytest.raises((PrivacyViolation, DataError)):
        release()


def test_nulls_that_are_lost_between_count_and_file_are_missed() -> None:
    rows = pa.table({"q": [None, None, None, "a", "a", "a"]})
    with pytest.raises(PrivacyViolation, match="rows in are not rows published plus suppressed"):
        lying(Lie(recoder=nulls_are_unequal), data=rows, quasi_identifiers=["q"], sensitive=[], suppression_limit=0)


def local_release(lie: Lie | None = None) -> duckanon.Release:
    """Twelve rows in two passes: the classes of four stay as they are, the rest is generalized; one row is left."""
    trees = {"q": {"rule": "suppress"}, "r": {"rule": "suppress"}}
    return lying(lie or Lie(), suppression_limit=0.1, iterative=True, hierarchies=trees)


def test_an_honest_local_release_passes() -> None:
    with local_release() as found:
        assert len(found.recoding.passes) > 1
        assert found.checks[0].holds


@pytest.mark.parametrize(
    "recoder",
    [exchanged({"q_1": "p_0"}), publishing(lambda honest, *given: honest(*given).limit(8))],
    ids=["rows show their own value in place of a label", "the rows of the second pass are suppressed"],
)
def test_a_lie_about_passes_is_caught(recoder: Callable[[Any], Any]) -> None:
    with pytest.raises(PrivacyViolation, match="The gate refused the release"):
        local_release(Lie(recoder=recoder))


def persons_counted_elsewhere(honest: Any) -> Any:
    """Count persons on something else than what is published: what is written for the gate alone is another table."""

    def rows(self: Any, kept: Any, keyed: bool = False) -> exp.Select:
        query = type(honest).rows(self, kept, keyed)
        if [name for name, _ in kept] != [ENTITY]:
            return query
        others = [e for e in query.selects if e.alias_or_name not in ("q_0", "q_1")]
        return query.select(
            exp.alias_(exp.Literal.string("a"), "q_0"), exp.alias_(number(9), "q_1"), *others, append=False
        )

    return liar(honest, rows=rows)


@pytest.mark.parametrize(
    ("lie", "k"),
    [
        (Lie(levels=(0, 0), node=lambda node: {"outlier_rows": 4}, recoder=kept_where("n >= 3")), 3),
        (Lie(recoder=persons_counted_elsewhere), 2),
    ],
    ids=["rows are counted as persons", "persons are counted elsewhere"],
)
def test_a_lie_about_persons_is_caught(lie: Lie, k: int, temp_folder: Path) -> None:
    with pytest.raises(PrivacyViolation):
        lying(lie, k, entity_key="p", suppression_limit=0.5)
    assert list(temp_folder.iterdir()) == []


def test_one_person_many_rows() -> None:
    """k rows of one person pass a count of rows, and fail with an entity key."""
    rows = pa.table({"q": ["a"] * 5 + ["b"] * 5, "p": [1] * 5 + [2, 3, 4, 5, 6]})
    with duckanon.anonymize(rows, quasi_identifiers=["q"], k=5) as found:
        assert set(found.to_arrow().column("q").to_pylist()) == {"a", "b"}
        assert any("one person's rows" in note for note in found.summary()["notes"])
    with duckanon.anonymize(rows, quasi_identifiers=["q"], entity_key="p", k=5) as found:
        assert set(found.to_arrow().column("q").to_pylist()) == {"*"}
        assert found.summary()["unit"] == "persons"
    assert duckanon.check(rows, quasi_identifiers=["q"], k=5)[0].holds
    assert not duckanon.check(rows, quasi_identifiers=["q"], entity_key="p", k=5)[0].holds


def test_rows_without_an_entity_are_one_person() -> None:
    rows = pa.table({"q": ["a"] * 4, "p": pa.array([None, None, None, 1], pa.int64())})
    assert duckanon.check(rows, quasi_identifiers=["q"], entity_key="p", k=2)[0].holds
    assert not duckanon.check(rows, quasi_identifiers=["q"], entity_key="p", k=3)[0].holds


def test_the_gate_looks_at_a_file_again() -> None:
    with release() as found:
        found.verify(found.path)
        table = pq.read_table(found.path)
        for broken in (
            table.slice(1),
            table.append_column("t", pa.array([1] * len(table))),
            table.drop_columns(["s"]),
            table.set_column(0, "q", pa.array([f"q{i}" for i in range(len(table))])),
        ):
            path = found.path.with_name("broken.parquet")
            pq.write_table(broken, path)
            with pytest.raises(PrivacyViolation):
                found.verify(path)


@pytest.mark.parametrize("k", [1, 3, 4, 5])
def test_check_says_whether_a_table_holds(k: int) -> None:
    table = pa.table({"q": ["a"] * 4 + ["b"] * 4})
    (found,) = duckanon.check(table, quasi_identifiers=["q"], k=k)
    assert found.holds == (k <= 4)
    assert found.to_dict()["parameters"] == {"k": k}


def test_check_of_nothing_is_an_error() -> None:
    with pytest.raises(DataError, match="no rows"):
        duckanon.check(pa.table({"q": pa.array([], pa.string())}), quasi_identifiers=["q"], k=2)
    with pytest.raises(DuckanonError, match="No privacy model is given"):
        duckanon.check(TABLE, quasi_identifiers=["q"])


def test_the_gate_shares_no_code_with_the_search() -> None:
    source = inspect.getsource(gate)
    for name in ("algorithms", "encode", "recode", "pipeline"):
        assert f"import {name}" not in source
        assert f"duckanon.{name}" not in source
