"""Rows whose texts are looked up after the sort: the same file as when all columns are sorted, and no text too many."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.engine.open import open_engine
from duckanon.engine.sql.relations import Column
from duckanon.errors import EngineError, PrivacyViolation
from duckanon.io import shuffled_writer as looked_up
from duckanon.io.parquet import RowGroups, encode
from duckanon.io.shuffled_writer import LookedUp, can_look_up
from duckanon.io.sorted_rows import SortedRows
from duckanon.kernels.lookup import look_up
from duckanon.kernels.ordering import deal, order_of
from duckanon.recoding import coded_rows, recoders
from duckanon.release.stages import partition as dividing

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
    for module in (coded_rows, dividing, recoders):
        monkeypatch.setattr(module, "MANY_ROWS", 1)
    monkeypatch.setattr(looked_up, "_ROW_GROUP", 300)
    calls: list[int] = []
    honest = LookedUp.write

    def counted(self: LookedUp, *arguments: Any) -> None:
        calls.append(1)
        honest(self, *arguments)

    monkeypatch.setattr(LookedUp, "write", counted)
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


def test_what_does_not_fit_is_sorted_by_the_database(many: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    table, raw = released(people())
    asked: list[int] = []

    def from_database(self: SortedRows, size: int) -> Iterator[Any]:
        asked.append(size)
        return honest(self, size)

    honest = SortedRows._from_database
    monkeypatch.setattr(SortedRows, "_from_database", from_database)
    assert released(people())[1] == raw
    assert not asked
    monkeypatch.setattr("duckanon.io.sorted_rows._COPIES", 10**9)
    assert released(people())[0].equals(table)
    assert asked == [300]


@pytest.mark.parametrize(("parts", "piles"), [(1, 1), (2, 16), (5, 2)])
def test_hashes_are_sorted_and_equal_ones_stay_as_they_come(parts: int, piles: int) -> None:
    rng = np.random.default_rng(4)
    for count in (0, 1, 2, 40, 513, 6_000):
        for most in (1, 3, 2**20, 2**63, 2**64 - 1):
            came = rng.integers(0, most, count, dtype=np.uint64, endpoint=True)
            hashes, at = np.empty_like(came), np.empty(count, dtype=np.int64)
            cuts = [0, *sorted(rng.integers(0, count, 2, endpoint=True).tolist()), count]
            bounds = np.zeros((3, piles + 1), dtype=np.int64)
            for own, start, end in zip(bounds, cuts, cuts[1:], strict=False):
                numbers = np.empty(end - start, dtype=np.int64)
                deal(came[start:end], numbers, own)
                dealt = [int(h) * piles >> 64 for h in came[start:end]]
                assert numbers.tolist() == np.argsort(dealt, kind="stable").tolist()
                assert own.tolist() == np.searchsorted(sorted(dealt), range(piles + 1)).tolist()
                own += start
                at[start:end] = start + numbers
            hashes[:] = came[at]
            rows = np.empty(count, dtype=np.int32)
            for part in rng.permutation(parts):
                order_of(hashes, bounds, rows, int(part), parts)
            assert at[rows].tolist() == np.argsort(came, kind="stable").tolist()


@pytest.mark.parametrize("most", [0, 3])
def test_however_many_piles_there_are_the_file_is_the_same(
    most: int, many: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, raw = released(people())
    monkeypatch.setattr("duckanon.io.sorted_rows._PILE", 1)
    monkeypatch.setattr("duckanon.io.sorted_rows._MOST_PILES", most)
    assert released(people())[1] == raw
    assert len(many) == 2


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
    honest = looked_up._Texts._of

    def changed(self: Any, group: pa.Table, columns: Any, room: Any) -> pa.Table:
        found = honest(self, group, columns, room)
        texts = found.column("town").to_pylist()
        return found.set_column(2, "town", pa.array(["elsewhere", *texts[1:]]).dictionary_encode())

    monkeypatch.setattr(looked_up._Texts, "_of", changed)
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
        assert isinstance(release.recoder, recoders.Regions)
        assert release.recoder.division.short == ({'odd "name"'} if short else frozenset())
        assert not release.recoder.division.room, "what the search worked in is let go"
        found = release.to_arrow()
    assert many
    both = [t.select(["cost", 'odd "name"']).sort_by("cost") for t in (found, table)]
    assert both[0].equals(both[1])


def test_a_text_that_the_first_rows_do_not_tell_is_stored_as_it_is(
    many: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coded_rows, "_FEW_TEXTS", 3)
    with duckanon.anonymize(people(), quasi_identifiers=QUASI, insensitive=["ill"], k=5, seed=3) as release:
        assert isinstance(release.recoder, recoders.Regions)
        assert not release.recoder.division.short
    assert many


def test_row_groups_encoded_apart_make_the_file_that_one_writer_makes(tmp_path: Path) -> None:
    made = people().append_column("word", pa.array(["x", None] * (ROWS // 2)).dictionary_encode())
    for size in (ROWS, 700, 90):
        pieces = [made.slice(start, size) for start in range(0, ROWS, size)]
        options = {"store_schema": False}
        file = RowGroups(tmp_path / "apart.parquet")
        for piece in pieces:
            file.add(encode(piece, options), len(piece))
        file.close()
        with pq.ParquetWriter(tmp_path / "whole.parquet", made.schema, **options) as writer:
            for piece in pieces:
                writer.write_table(piece)
        apart, whole = (tmp_path / f"{name}.parquet" for name in ("apart", "whole"))
        assert apart.read_bytes() == whole.read_bytes()


def test_row_groups_have_the_same_columns(tmp_path: Path) -> None:
    file = RowGroups(tmp_path / "odd.parquet")
    file.add(encode(pa.table({"a": [1]}), {}), 1)
    with pytest.raises(EngineError, match="different columns"):
        file.add(encode(pa.table({"a": ["x"]}), {}), 1)
    file.close()


def test_few_rows_are_sorted_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LookedUp, "write", lambda *_: pytest.fail("rows are few"))
    released(people())


def test_a_failure_while_rows_come_quotes_nothing(many: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        schema = None

        def __next__(self) -> None:
            raise pa.ArrowInvalid("could not convert 'Jane Doe'")

    monkeypatch.setattr("duckanon.io.sorted_rows._COPIES", 10**9)
    monkeypatch.setattr(DuckDBEngine, "reader", lambda *_, **__: Broken())
    with pytest.raises(EngineError, match="withheld") as caught:
        released(people())
    assert caught.value.__context__ is None
    assert many


@pytest.mark.parametrize("rows", [20, 2_000])
def test_codes_of_a_run_are_dense_and_nulls_stay(rows: int) -> None:
    rng = np.random.default_rng(2)
    sizes = [6, 2, 41]
    firsts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    codes = np.stack([rng.integers(0, s, 30) for s in sizes], axis=1).astype(np.uint32)
    free = np.full(firsts[-1], -2, dtype=np.int32)
    free[firsts[:-1]] = -1
    ranks, used = free.copy(), np.zeros_like(free)
    for _ in range(50):
        ids = rng.integers(0, 30, rng.integers(0, rows)).astype(np.uint32)
        out, counts = np.zeros((3, len(ids)), dtype=np.int32), np.zeros((2, 3), dtype=np.int64)
        look_up(ids, codes, ranks, firsts, used, out, counts)
        assert (ranks == free).all()
        for j in range(3):
            own = codes[ids, j].tolist()
            met = list(dict.fromkeys(c for c in own if c))
            assert used[firsts[j] : firsts[j] + counts[0, j]].tolist() == met
            assert counts[1, j] == own.count(0)
            assert out[j].tolist() == [met.index(c) if c else -1 for c in own]


@pytest.mark.slow
def test_sixty_files_have_the_rows_of_the_first(many: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB 2.0.0 lost values of enumerations in 10 of 60 files of two million rows with two threads."""
    monkeypatch.setattr(looked_up, "_ROW_GROUP", 122_880)
    made = people(300_000)
    table = pa.concat_tables([made] * 7)
    engine = open_engine(threads=2)
    given = {"quasi_identifiers": QUASI, "insensitive": ["ill"], "k": 5, "seed": 3}
    with duckanon.anonymize(table, engine=engine, **given) as release:
        first, recoder = release.digest, release.recoder
        assert isinstance(recoder, recoders.Regions)
        whole = release.to_arrow()
        columns = [*recoder.shown, ("ill", "p_0")]
        kept = [(a.name, release.plan.expression(a)) for a in release.plan.roles.published if a.name == "ill"]
        keys = {"key0": 1, "key1": 2}
        plain = release.engine.arrow(recoder.released(recoder.rows(kept), columns), keys)
        path = release.path.parent / "again.parquet"
        for _ in range(60):
            assert recoder.write(kept, columns, path, keys, len(table))
            assert release.engine.arrow(release.engine.parquet([path])).equals(plain)
        assert first is not None
        assert len(whole) == len(plain)
