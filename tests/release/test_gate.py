"""The gate: it counts what is published itself, and catches every lie on the way there."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

import duckanon
from duckanon.algorithms import Datafly
from duckanon.algorithms.full_domain import local, nodes
from duckanon.encoding import dictionaries as encode
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.engine.sql import recode
from duckanon.engine.sql.relations import col, number, subquery
from duckanon.errors import DataError, DuckanonError, PrivacyViolation
from duckanon.recoding import recoders
from duckanon.recoding.relations import levels as class_facts
from duckanon.release import gate
from duckanon.release.stages import search, write

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


def test_the_honest_run_passes() -> None:
    with release() as found:
        assert (found.rows_published, found.rows_suppressed) == (8, 4)
        (check,) = found.checks
        assert (check.holds, check.classes, check.violating_classes) == (True, 2, 0)


# Each lie is told in one place; a path of its own must find it.


def lie_in_node(**claims: Callable[[nodes.Node], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    def apply(patch: pytest.MonkeyPatch) -> None:
        honest = Datafly.search

        def search(self: Datafly, problem: Any) -> nodes.Node:
            node = honest(self, problem)
            return dataclasses.replace(node, **{k: claim(node) for k, claim in claims.items()})

        patch.setattr(Datafly, "search", search)

    return apply


def kept_from(grouped: exp.Select, size: int) -> exp.Select:
    """Keep the classes of at least that size."""
    others = [e for e in grouped.copy().selects if e.alias_or_name != "kept"]
    flag = exp.alias_(exp.GTE(this=col("units"), expression=number(size)), "kept", quoted=True)
    return exp.select(*(col(e.alias_or_name) for e in others), flag).from_(grouped.copy().subquery("k"))


def min_size_one(patch: pytest.MonkeyPatch) -> None:
    """Classes of any size are kept."""
    honest = recode.class_table
    patch.setattr(class_facts, "class_table", lambda grouped, cells: honest(kept_from(grouped, 1), cells))


def min_size_two_and_claimed(patch: pytest.MonkeyPatch) -> None:
    """Classes of two are kept, and the number of suppressed rows fits that."""
    honest = recode.class_table
    patch.setattr(class_facts, "class_table", lambda grouped, cells: honest(kept_from(grouped, 2), cells))
    lie_in_node(outlier_rows=lambda node: node.outlier_rows - 2)(patch)


def no_kept_filter(patch: pytest.MonkeyPatch) -> None:
    """The classes that are too small are joined, too."""

    def everything(honest: Callable[..., exp.Select]) -> Callable[..., exp.Select]:
        def changed(*arguments: Any) -> exp.Select:
            return honest(*arguments).transform(
                lambda n: exp.true() if isinstance(n, exp.Column) and n.name == "kept" else n
            )

        return changed

    patch.setattr(recoders, "shuffled_rows", everything(recode.shuffled_rows))


def no_kept_filter_and_claimed(patch: pytest.MonkeyPatch) -> None:
    no_kept_filter(patch)
    lie_in_node(outlier_rows=lambda node: 0)(patch)


def rows_twice(patch: pytest.MonkeyPatch) -> None:
    """Every row is published twice: singletons would pass a count of rows."""
    honest = recode.released_rows
    patch.setattr(
        recoders,
        "released_rows",
        lambda *a: exp.select("*").from_(exp.union(honest(*a), honest(*a), distinct=False).subquery("u")),
    )


def rows_lost(patch: pytest.MonkeyPatch) -> None:
    honest = recode.released_rows
    patch.setattr(recoders, "released_rows", lambda *a: honest(*a).limit(5))


def labels_split(patch: pytest.MonkeyPatch) -> None:
    """The labels of a class are not its own: each row shows its sensitive value's last digit instead."""

    def changed(rows: str, cells: Any, columns: Any) -> exp.Select:
        return recode.released_rows(rows, cells, [(n, "p_0" if i == "q_0" else i) for n, i in columns])

    patch.setattr(recoders, "released_rows", changed)


def labels_lost(patch: pytest.MonkeyPatch) -> None:
    """A value has no label, so that the join loses its rows."""
    honest = recode._value_codes
    patch.setattr(
        recode, "_value_codes", lambda cell: honest(cell).where(exp.GT(this=col("code", "v"), expression=number(0)))
    )


def labels_doubled(patch: pytest.MonkeyPatch) -> None:
    """A value has two labels, so that the join doubles its rows."""
    honest = recode._value_codes
    patch.setattr(recode, "_value_codes", lambda cell: exp.union(honest(cell), honest(cell), distinct=False))


def nulls_lost_when_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(encode, "same", lambda a, b: exp.EQ(this=a, expression=b))


def nulls_lost_when_recoded(patch: pytest.MonkeyPatch) -> None:
    """NULL rows vanish between the count and the file."""
    patch.setattr(recode, "same", lambda a, b: exp.EQ(this=a, expression=b))


def codes_mixed_up(patch: pytest.MonkeyPatch) -> None:
    """Rows find the class of another value."""
    honest = recode._value_codes

    def changed(cell: Any) -> exp.Select:
        return exp.select(
            col("value"),
            exp.alias_(
                exp.Mod(this=exp.Add(this=col("g"), expression=number(1)), expression=number(cell.size)),
                "g",
                quoted=True,
            ),
            col("q"),
        ).from_(honest(cell).subquery("h"))

    patch.setattr(recode, "_value_codes", changed)


def words_collide(patch: pytest.MonkeyPatch) -> None:
    """Rows that differ in the first column only fall into one class."""
    honest = recode.pack
    patch.setattr(recode, "pack", lambda codes, sizes: honest(codes[1:], sizes[1:]))


def extra_column(patch: pytest.MonkeyPatch) -> None:
    """A column that nobody named slips into the file."""
    honest = recode.released_rows
    patch.setattr(recoders, "released_rows", lambda *a: honest(*a).select(exp.alias_(number(7), "extra")))


def columns_swapped(patch: pytest.MonkeyPatch) -> None:
    """The sensitive column is published under the name of a quasi-identifier."""
    honest = recode.released_rows

    def changed(rows: str, cells: Any, columns: Any) -> exp.Select:
        (q, r, s) = columns
        return honest(rows, cells, [(q[0], s[1]), r, (s[0], q[1])])

    patch.setattr(recoders, "released_rows", changed)


def file_changed(patch: pytest.MonkeyPatch) -> None:
    """The file is not what was asked for: one row stands alone in it."""
    honest = DuckDBEngine.write_parquet

    def changed(self: DuckDBEngine, select: exp.Query, path: Any, *further: Any) -> None:
        honest(self, select, path, *further)
        table = pq.read_table(path)
        changed = ["back", *table.column("q").to_pylist()[1:]]
        pq.write_table(table.set_column(0, "q", pa.array(changed)), path)

    patch.setattr(DuckDBEngine, "write_parquet", changed)


MUTANTS: list[Callable[[pytest.MonkeyPatch], None]] = [
    lie_in_node(outlier_rows=lambda node: 0),
    lie_in_node(outlier_rows=lambda node: node.outlier_rows - 1),
    lie_in_node(outlier_rows=lambda node: node.outlier_rows + 1),
    min_size_one,
    min_size_two_and_claimed,
    no_kept_filter,
    no_kept_filter_and_claimed,
    rows_twice,
    rows_lost,
    labels_split,
    labels_lost,
    labels_doubled,
    nulls_lost_when_counted,
    codes_mixed_up,
    words_collide,
    extra_column,
    columns_swapped,
    file_changed,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.__qualname__.split(".")[0])
def test_a_lie_is_caught(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch, temp_folder
) -> None:
    mutant(monkeypatch)
    with pytest.raises((PrivacyViolation, DataError)) as caught:
        release()
    assert list(temp_folder.iterdir()) == [], "what the gate refused is still there"
    for row in ROWS:
        assert f"'{row[0]}'" not in str(caught.value)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.__qualname__.split(".")[0])
@pytest.mark.thinned(2)
def test_a_lie_is_caught_by_hashes(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "MANY_ROWS", 0)
    mutant(monkeypatch)
    with pytest.raises((PrivacyViolation, DataError)):
        release()


def test_nulls_lost_between_count_and_file_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    nulls_lost_when_recoded(monkeypatch)
    rows = pa.table({"q": [None, None, None, "a", "a", "a"]})
    with pytest.raises(PrivacyViolation, match="rows in are not rows published plus suppressed"):
        duckanon.anonymize(rows, quasi_identifiers=["q"], k=3, algorithm="datafly")


def rows_as_persons(patch: pytest.MonkeyPatch) -> None:
    """One person's rows are counted as persons."""
    honest = nodes.by_class

    def changed(node_table: str, width: int, entity: bool) -> exp.Select:
        counted = exp.select("* EXCLUDE units", "n AS units").from_(subquery(honest(node_table, width, entity), "h"))
        return exp.select("*").from_(subquery(counted, "u"))

    patch.setattr(nodes, "by_class", changed)


def proof_of_another_table(patch: pytest.MonkeyPatch) -> None:
    """Persons are counted on something else than what is published."""
    honest = write.write_persons

    def changed(plan: Any, recoder: Any, path: Any) -> None:
        honest(plan, recoder, path)
        table = pq.read_table(path)
        pq.write_table(table.set_column(1, "r", pa.array([9] * len(table))), path)

    patch.setattr(write, "write_persons", changed)


def local_release() -> duckanon.Release:
    """Twelve rows in two passes: the classes of four stay as they are, the rest is generalized; one row is left."""
    trees = {"q": {"rule": "suppress"}, "r": {"rule": "suppress"}}
    return release(suppression_limit=0.1, iterative=True, hierarchies=trees)


def test_an_honest_local_release_passes() -> None:
    with local_release() as found:
        assert len(found.recoding.passes) > 1
        assert found.checks[0].holds


def local_labels_split(patch: pytest.MonkeyPatch) -> None:
    """Rows show the labels of their class and their own value beside it."""
    honest = recoders.released_rows
    patch.setattr(
        recoders,
        "released_rows",
        lambda rows, cells, columns: honest(rows, cells, [(n, "p_0" if i == "q_1" else i) for n, i in columns]),
    )


def local_rest_forgotten(patch: pytest.MonkeyPatch) -> None:
    """The rows that the first pass leaves are suppressed instead of recoded again."""
    honest = local.search_passes
    patch.setattr(search, "search_passes", lambda algorithm, problem: honest(algorithm, problem)[:1])


@pytest.mark.parametrize("mutant", [local_labels_split, local_rest_forgotten])
def test_a_lie_about_passes_is_caught(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    with pytest.raises(PrivacyViolation, match="The gate refused the release"):
        local_release()


@pytest.mark.parametrize(("mutant", "k"), [(rows_as_persons, 3), (proof_of_another_table, 2)])
def test_a_lie_about_persons_is_caught(
    mutant: Callable[[pytest.MonkeyPatch], None], k: int, monkeypatch: pytest.MonkeyPatch, temp_folder
) -> None:
    mutant(monkeypatch)
    with pytest.raises(PrivacyViolation):
        release(entity_key="p", k=k, suppression_limit=0.5)
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
    with pytest.raises(DuckanonError, match="Nothing is promised"):
        duckanon.check(TABLE, quasi_identifiers=["q"])


def test_the_gate_shares_no_code_with_the_search() -> None:
    source = inspect.getsource(gate)
    for name in ("algorithms", "encode", "recode", "pipeline"):
        assert f"import {name}" not in source
        assert f"duckanon.{name}" not in source
