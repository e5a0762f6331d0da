"""What a release holds, and what it must not: order, footers, dictionaries, temporary files, messages."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot

import duckanon
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.errors import DataError, HierarchyError, InfeasibleError
from duckanon.testing.common import RELATIONS

CANARY = "Canary-Q7-Doe"


def people(rows: int = 200, seed: int = 1) -> pa.Table:
    rng = random.Random(seed)
    return pa.table(
        {
            "id": [f"{CANARY}-{i}" for i in range(rows)],
            "age": [rng.randint(18, 90) for _ in range(rows)],
            "zip": [f"{rng.randint(10000, 10999)}" for _ in range(rows)],
            "ill": [rng.choice(["flu", "cold", "ok", None]) for _ in range(rows)],
            "note": [f"{CANARY} note {i}" for i in range(rows)],
        }
    )


OPTIONS = {"quasi_identifiers": ["age", "zip"], "sensitive": ["ill"], "k": 5, "suppression_limit": 0.1}


def test_a_release_in_all_forms() -> None:
    with duckanon.anonymize(people(), **OPTIONS) as release:
        table = release.to_arrow()
        assert table.column_names == ["age", "zip", "ill"]
        assert len(release.to_pandas()) == len(release.to_polars()) == table.num_rows == release.rows_published
        assert pa.table(release).equals(table)
        assert release.reader(batch=10).read_all().equals(table)
        classes = release.classes()
        assert sum(classes.column("n").to_pylist()) == release.rows_published
        assert [c.name for c in release.columns] == table.column_names


def test_the_summary_is_plain_and_free_of_values() -> None:
    with duckanon.anonymize(people(), identifiers=["id"], **OPTIONS) as release:
        summary = release.summary()
    assert json.loads(json.dumps(summary)) == summary
    assert CANARY not in json.dumps(summary)
    assert summary["found"]["rows_in"] == 200
    assert summary["found"]["class_size"]["min"] >= 5
    assert summary["roles"]["dropped"] == ["note"]
    assert not summary["seeded"]
    assert {m["metric"] for m in summary["loss"]} == set(duckanon.metrics.headlines())


def test_a_seeded_release_says_so_and_hides_the_seed() -> None:
    with duckanon.anonymize(people(), seed=123456789, **OPTIONS) as release:
        summary = release.summary()
        assert summary["seeded"]
        assert "seeded: for tests, not for release" in summary["notes"]
        assert "123456789" not in json.dumps(summary)
        assert b"123456789" not in release.path.read_bytes()


def test_the_class_relations_have_the_columns_that_statements_read() -> None:
    with duckanon.anonymize(people(), **OPTIONS) as release:
        for relation in ("classes", "class_cells", "cell_rows", "domain"):
            query = f"SELECT * FROM {release.relations.table(relation)}"
            found = release.engine.columns(sqlglot.parse_one(query))
            assert [c.name for c in found] == list(RELATIONS[relation])


# Order


def test_position_links_nothing() -> None:
    """Linking by position finds rows at chance only."""
    rows = 4000
    table = pa.table({"q": [i // 40 for i in range(rows)], "s": list(range(rows))})
    with duckanon.anonymize(table, quasi_identifiers=["q"], sensitive=["s"], k=2) as release:
        published = pq.read_table(release.path).column("s").to_pylist()
    assert sorted(published) == list(range(rows))
    assert sum(a == b for a, b in zip(published, range(rows), strict=True)) < 20
    rising = sum(a < b for a, b in pairwise(published))
    assert abs(rising - rows / 2) < rows * 0.05


@pytest.mark.parametrize("columns", [1, 8])
def test_classes_are_shuffled_too(columns: int) -> None:
    """Neighbours in the file are no neighbours in the order of the values, however wide the labels are."""
    values = [f"value-{i // 3:06d}-and-some-more-text" for i in range(9000)]
    names = [f"q{j}" for j in range(columns)]
    table = pa.table(dict.fromkeys(names, values))
    one = {n: duckanon.Hierarchy.suppress() for n in names}
    with duckanon.anonymize(table, quasi_identifiers=names, hierarchies=one, k=3) as release:
        published = pq.read_table(release.path).column("q0").to_pylist()
    distinct = [v for v, w in zip(published, [None, *published], strict=False) if v != w]
    rising = sum(a < b for a, b in pairwise(distinct))
    assert abs(rising - len(distinct) / 2) < len(distinct) * 0.1


def test_two_runs_have_two_orders() -> None:
    orders = []
    for _ in range(2):
        with duckanon.anonymize(people(), **(OPTIONS | {"k": 2})) as release:
            orders.append(pq.read_table(release.path))
    assert not orders[0].equals(orders[1])


def test_many_row_groups_come_in_the_same_order_for_any_number_of_threads() -> None:
    with duckdb.connect() as con:
        table = con.sql(
            "SELECT i % 5000 AS q, (i % 7)::VARCHAR AS r, i AS s FROM range(400000) AS x(i)"
        ).to_arrow_table()
    found = []
    for threads in (1, 4):
        engine = DuckDBEngine(threads=threads)
        with duckanon.anonymize(
            table, quasi_identifiers=["q", "r"], sensitive=["s"], k=2, seed=3, engine=engine
        ) as release:
            found.append(pq.read_table(release.path))
    assert found[0].equals(found[1])


# Files


def pages(path: Path) -> bytes:
    """All values and statistics that a file holds, decoded; and its raw bytes."""
    file = pq.ParquetFile(path)
    parts = [repr(file.metadata.metadata), repr(file.schema_arrow.metadata), repr(file.schema)]
    for group in range(file.num_row_groups):
        for column in range(file.metadata.num_columns):
            chunk = file.metadata.row_group(group).column(column)
            parts += [
                repr(chunk.statistics),
                repr(getattr(chunk.statistics, "min", "")),
                repr(getattr(chunk.statistics, "max", "")),
            ]
    names = file.schema_arrow.names
    dictionaries = pq.read_table(path, read_dictionary=names)
    for name in names:
        for chunk in dictionaries.column(name).chunks:
            parts.append(
                repr(chunk.dictionary.to_pylist() if pa.types.is_dictionary(chunk.type) else chunk.to_pylist())
            )
    return "\n".join(parts).encode() + path.read_bytes()


def test_footer_statistics_and_dictionaries_hold_published_values_only() -> None:
    table = people()
    lonely = {"id": [CANARY], "age": [150], "zip": [CANARY], "ill": [f"{CANARY} ill"], "note": [CANARY]}
    table = pa.concat_tables([table, pa.table(lonely, schema=table.schema)])
    table = table.set_column(3, "ill", table.column("ill").dictionary_encode())
    table = table.replace_schema_metadata({"pandas": CANARY})
    one = {name: duckanon.Hierarchy.suppress() for name in ("age", "zip")}
    options = OPTIONS | {"hierarchies": one, "k": 2, "suppression_limit": 0.95, "algorithm": "datafly"}
    with duckanon.anonymize(table, **options) as release:
        assert release.rows_suppressed > 0
        assert CANARY.encode() not in pages(release.path)
        metadata = pq.ParquetFile(release.path).metadata
        assert set(metadata.metadata or {}) <= {b"ARROW:schema"}
        published = pq.read_table(release.path)
        for column in range(metadata.num_columns):
            statistics = metadata.row_group(0).column(column).statistics
            if statistics is not None and statistics.has_min_max:
                values = published.column(column).to_pylist()
                assert {statistics.min, statistics.max} <= set(values)


def test_a_written_release_holds_nothing_else(tmp_path: Path, temp_folder: Path) -> None:
    target = tmp_path / "out" / "release.parquet"
    with duckanon.anonymize(people(), identifiers=["id"], stage=tmp_path, **OPTIONS) as release:
        release.write(target)
        for path in target.parent.rglob("*"):
            assert CANARY.encode() not in (pages(path) if path.suffix == ".parquet" else path.read_bytes()), path.name
    left = [p for p in tmp_path.rglob("*") if p.is_file() and target.parent not in p.parents]
    assert left == [], "a private file is left"
    assert list(temp_folder.iterdir()) == []


@pytest.mark.parametrize("entity", [None, "id"])
def test_private_files_are_private_and_go(entity: str | None, temp_folder: Path) -> None:
    with duckanon.anonymize(people(), entity_key=entity, **OPTIONS) as release:
        folder = release.path.parent
        assert folder.stat().st_mode & 0o077 == 0
        if entity is None:
            assert CANARY.encode() not in pages(release.path)
    assert not folder.exists()
    assert list(temp_folder.iterdir()) == []


# Suppressed rows


def test_suppressed_rows_are_left_out_and_form_no_class() -> None:
    """Two outliers at k = 5: there is no class of fewer than five stars."""
    table = pa.table({"q": ["a"] * 10 + ["b"] * 10 + ["x", "y"]})
    given = {"quasi_identifiers": ["q"], "k": 5, "suppression_limit": 0.1}
    with duckanon.anonymize(table, algorithm="datafly", **given) as release:
        assert Counter(pq.read_table(release.path).column("q").to_pylist()) == {"a": 10, "b": 10}
        assert release.rows_suppressed == 2


def test_unknown_values_published_as_the_top_form_a_class_of_k() -> None:
    table = pa.table({"q": ["a"] * 5 + ["b"] * 5 + ["x", "y"]})
    tree = duckanon.Hierarchy.from_table({"leaf": ["a", "b"], "top": ["*", "*"]})
    with pytest.raises(HierarchyError, match=r"does not know 2 of 4 values \(2 of 12 rows\)") as caught:
        duckanon.anonymize(table, quasi_identifiers=["q"], hierarchies={"q": tree}, k=3)
    assert "'x'" not in str(caught.value)
    with duckanon.anonymize(
        table,
        quasi_identifiers=["q"],
        hierarchies={"q": tree},
        k=3,
        on_unknown="top",
        suppression_limit=0.2,
        algorithm="datafly",
    ) as release:
        assert Counter(pq.read_table(release.path).column("q").to_pylist()) == {"a": 5, "b": 5}
    # Regions take in another group instead.
    with duckanon.anonymize(table, quasi_identifiers=["q"], hierarchies={"q": tree}, k=3, on_unknown="top") as release:
        assert Counter(pq.read_table(release.path).column("q").to_pylist()) == {"b": 5, "*": 7}
    with duckanon.anonymize(table, quasi_identifiers=["q"], hierarchies={"q": tree}, k=2, on_unknown="top") as release:
        assert Counter(pq.read_table(release.path).column("q").to_pylist()) == {"a": 5, "b": 5, "*": 2}


# Empty input


@pytest.mark.parametrize("k", [1, 5])
def test_a_table_without_rows_is_refused(k: int, tmp_path: Path, temp_folder: Path) -> None:
    pq.write_table(people(1).slice(0, 0), tmp_path / "empty.parquet")
    for data in (people(1).slice(0, 0), tmp_path / "empty.parquet"):
        with pytest.raises(DataError, match="has no rows"):
            duckanon.anonymize(data, **(OPTIONS | {"k": k}))
    assert list(temp_folder.iterdir()) == []


def test_fewer_rows_than_k(temp_folder: Path) -> None:
    with pytest.raises(InfeasibleError, match="4 rows: fewer than the 5"):
        duckanon.anonymize(people(4), **OPTIONS)
    assert list(temp_folder.iterdir()) == []


def test_one_row_and_k_one() -> None:
    with duckanon.anonymize(people(1), **(OPTIONS | {"k": 1})) as release:
        assert release.rows_published == 1


# Schema drift


def test_a_new_column_is_not_published() -> None:
    drifted = people().append_column("ssn", pa.array([f"{CANARY}{i}" for i in range(200)]))
    with duckanon.anonymize(drifted, **OPTIONS) as release:
        assert "ssn" not in pq.read_table(release.path).column_names
        assert CANARY.encode() not in pages(release.path)
