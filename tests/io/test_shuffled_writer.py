"""Rows whose texts are looked up after the sort: the same file as when all columns are sorted, and no text too many."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon.engine.base import open_engine
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.engine.sql.recode import shuffled
from duckanon.engine.sql.relations import Column
from duckanon.errors import EngineError, PrivacyViolation
from duckanon.io import shuffled_writer
from duckanon.io.shuffled_writer import can_look_up
from duckanon.recoding import coded_rows, regions

ROWS = 2_000


def people(rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(11)
    ages = rng.integers(18, 90, rows)
    return pa.table(
        {
            "age": pa.array([None if i % 97 == 0 else int(a) for i, a in enumerate(ages)], pa.int16()),
            "born": pa.array((rng.integers(0, 15_000, rows)).astype("int32"), pa.date32()),
            "town": pa.array([None if t == 8 else f"town {t}" for t in rng.integers(0, 9, rows)]),
            "sex": pa.array(["f" if s else "m" for s in rng.integers(0, 2, rows)]),
            "ill": pa.array([None if i == 0 else f"ill {i}" for i in rng.integers(0, 12, rows)]),
            "cost": rng.normal(size=rows),
            "paid": pa.array([Decimal(int(p)) / 100 for p in rng.integers(0, 9_999, rows)], pa.decimal128(12, 2)),
            "seen": pa.array(rng.integers(0, 10**9, rows), pa.timestamp("us")),
            "alive": pa.array(rng.integers(0, 2, rows).astype(bool)),
        }
    )


QUASI = ["age", "born", "town", "sex"]
OTHERS = ["ill", "cost", "paid", "seen", "alive"]


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows count as many; the list says how often they were looked up."""
    for module in (coded_rows, regions):
        monkeypatch.setattr(module, "MANY_ROWS", 1)
    monkeypatch.setattr(shuffled_writer, "_ROW_GROUP", 300)
    calls: list[int] = []
    honest = shuffled_writer.write_shuffled

    def counted(*arguments: Any) -> None:
        calls.append(1)
        honest(*arguments)

    monkeypatch.setattr(regions, "write_shuffled", counted)
    return calls


def released(table: pa.Table, threads: int = 2, **options: Any) -> tuple[pa.Table, bytes]:
    given = {"quasi_identifiers": QUASI, "insensitive": OTHERS, "k": 5, "seed": 3, **options}
    engine = open_engine(threads=threads)
    with duckanon.anonymize(table, engine=engine, **given) as release:
        types = [(c.name, c.type) for c in release.columns]
        return release.to_arrow().replace_schema_metadata({"types": str(types)}), release.path.read_bytes()


CASES: list[dict[str, Any]] = [
    {},
    {"bounds": "cut"},
    {"bounds": "tight"},
    {"output": "bounds", "bounds": "cut"},
    {"output": {"age": "midpoint", "born": "bounds"}, "bounds": "cut"},
    {"output": "set", "bounds": "tight"},
    {"within": ["sex"]},
    {"within": ["town"], "k": 230, "suppression_limit": 0.9},
    {"quasi_identifiers": ["sex"], "insensitive": ["ill"]},
    {"quasi_identifiers": ["age", "town"], "insensitive": []},
    {"algorithm": "mdav", "quasi_identifiers": ["age", "sex"], "insensitive": ["ill"]},
]


_RARE = [pytest.param(case, marks=pytest.mark.slow) for case in (*CASES[1:4], *CASES[8:])]


@pytest.mark.parametrize("options", [CASES[0], *CASES[4:8], *_RARE], ids=str)
@pytest.mark.thinned(5)
def test_the_file_is_that_of_the_whole_sort(options: dict[str, Any], request: pytest.FixtureRequest) -> None:
    plain, _ = released(people(), **options)
    calls = request.getfixturevalue("many")
    found, _ = released(people(), **options)
    assert calls
    assert found.schema.metadata == plain.schema.metadata, "columns or types differ"
    assert found.equals(plain), "rows or their order differ"


def test_any_number_of_threads_writes_the_same_bytes(many: list[int]) -> None:
    files = {released(people(), threads=threads)[1] for threads in (1, 2, 4)}
    assert len(many) == 3
    assert len(files) == 1


def test_a_row_group_lists_its_own_texts_only(many: list[int], tmp_path: Path) -> None:
    table, raw = released(people())
    path = tmp_path / "release.parquet"
    path.write_bytes(raw)
    file = pq.ParquetFile(path, read_dictionary=[*QUASI, "ill"])
    assert file.num_row_groups == -(-ROWS // 300)
    assert file.schema_arrow.metadata is None, "the order of codes is nobody's business"
    for i in range(file.num_row_groups):
        group = file.read_row_group(i)
        for name in [*QUASI, "ill"]:
            (chunk,) = group.column(name).chunks
            assert sorted(chunk.dictionary.to_pylist()) == sorted(set(chunk.drop_null().to_pylist()))
    assert pq.read_table(path).equals(table.replace_schema_metadata(None).cast(pq.read_table(path).schema))


def test_a_lie_is_caught_all_the_same(many: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    honest = shuffled_writer._Classes.looked_up

    def changed(self: Any, rows: pa.Table, columns: Any) -> pa.Table:
        found = honest(self, rows, columns)
        texts = found.column("town").to_pylist()
        return found.set_column(2, "town", pa.array(["elsewhere", *texts[1:]]).dictionary_encode())

    monkeypatch.setattr(shuffled_writer._Classes, "looked_up", changed)
    with pytest.raises(PrivacyViolation):
        released(people())
    assert many


def test_types_that_mean_different_things_are_left_to_the_database(many: list[int]) -> None:
    table = people().append_column("list", pa.array([[1]] * ROWS))
    found, _ = released(table, insensitive=["list"])
    assert not many
    assert found.column("list").to_pylist() == [[1]] * ROWS
    for kind in ("HUGEINT", "STRUCT(a INTEGER)", "TIMESTAMP WITH TIME ZONE", "TIME", "BLOB", "UUID", "INTEGER[]"):
        assert not can_look_up([], [Column("c", kind)])
        assert not can_look_up([Column("c", kind)], [])
    assert can_look_up([Column("c", "ENUM('a')")], [Column("d", "DECIMAL(18,3)"), Column("e", "UBIGINT")])
    assert not can_look_up([], [Column("c", "ENUM('a')")]), "texts of rows are not those of classes"


@pytest.mark.parametrize(("texts", "short"), [(["a", "", None, "ü"], True), ([None], False), (range(40), False)])
def test_texts_of_few_values_are_stored_as_enumerations(
    texts: Any, short: bool, many: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coded_rows, "ENUM_LIMIT", 30)
    words = [None if text is None else str(text) for text in texts]
    own = pa.array([words[i % len(words)] for i in range(ROWS)], pa.string())
    table = people().append_column('odd "name"', own)
    given = {"quasi_identifiers": QUASI, "insensitive": ["cost", 'odd "name"'], "k": 5, "seed": 3}
    with duckanon.anonymize(table, **given) as release:
        assert isinstance(release.recoder, regions.Regions)
        assert release.recoder.division.short == ({'odd "name"'} if short else frozenset())
        found = release.to_arrow()
    assert many
    both = [t.select(["cost", 'odd "name"']).sort_by("cost") for t in (found, table)]
    assert both[0].equals(both[1])


def test_a_text_that_the_first_rows_do_not_tell_is_stored_as_it_is(
    many: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coded_rows, "_FEW_TEXTS", 3)
    with duckanon.anonymize(people(), quasi_identifiers=QUASI, insensitive=["ill"], k=5, seed=3) as release:
        assert isinstance(release.recoder, regions.Regions)
        assert not release.recoder.division.short
    assert many


def test_few_rows_are_sorted_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "write_shuffled", lambda *_: pytest.fail("rows are few"))
    released(people())


def test_a_failure_while_rows_come_quotes_nothing(many: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        schema = None

        def __next__(self) -> None:
            raise pa.ArrowInvalid("could not convert 'Jane Doe'")

    monkeypatch.setattr(DuckDBEngine, "reader", lambda *_, **__: Broken())
    with pytest.raises(EngineError, match="withheld") as caught:
        released(people())
    assert caught.value.__context__ is None
    assert many


@pytest.mark.slow
def test_sixty_files_have_the_rows_of_the_first(many: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB 2.0.0 lost values of enumerations in 10 of 60 files of two million rows with two threads."""
    monkeypatch.setattr(shuffled_writer, "_ROW_GROUP", 122_880)
    made = people(300_000)
    table = pa.concat_tables([made] * 7)
    engine = open_engine(threads=2)
    given = {"quasi_identifiers": QUASI, "insensitive": ["ill"], "k": 5, "seed": 3}
    with duckanon.anonymize(table, engine=engine, **given) as release:
        first, recoder = release.digest, release.recoder
        assert isinstance(recoder, regions.Regions)
        whole = release.to_arrow()
        columns = [*recoder.shown, ("ill", "p_0")]
        kept = [(a.name, release.plan.expression(a)) for a in release.plan.roles.published if a.name == "ill"]
        keys = {"key0": 1, "key1": 2}
        rows = shuffled(recoder.rows(kept, keyed=True))
        plain = release.engine.arrow(recoder.released(rows, columns), keys)
        path = release.path.parent / "again.parquet"
        for _ in range(60):
            assert recoder.write(kept, columns, path, keys, len(table))
            assert release.engine.arrow(release.engine.parquet([path])).equals(plain)
        assert first is not None
        assert len(whole) == len(plain)
