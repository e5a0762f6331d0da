"""Each leak of a file is made on purpose and found; files of duckanon have none."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon.assess.disclosure import Leak, file_leaks
from duckanon.errors import DataError
from duckanon.io.leaks.order import FEWEST, order_of
from duckanon.io.sinks import CsvFile, ParquetFile, ParquetFolder
from tests.reference import order as reference

CANARY = "canary_7f3a"


@pytest.fixture(scope="module")
def people() -> pa.Table:
    n = 3000
    draw = random.Random(5)
    return pa.table(
        {
            "age": [draw.randrange(18, 90) for _ in range(n)],
            "sex": [draw.choice(["f", "m", None]) for _ in range(n)],
            "ill": [f"i{draw.randrange(11)}" for _ in range(n)],
            "cost": [round(draw.random() * 1000, 2) for _ in range(n)],
        }
    )


def _shuffled(n: int = 600, seed: int = 1) -> pa.Table:
    draw = random.Random(seed)
    return pa.table(
        {
            "age": pa.array([draw.randrange(18, 90) for _ in range(n)], pa.int64()),
            "ill": [draw.choice(["flu", "gout", "none"]) for _ in range(n)],
        }
    )


def _kinds(path: Path) -> set[tuple[str, str | None]]:
    return {(leak.kind, leak.column) for leak in file_leaks(path)}


def _plain(table: pa.Table, path: Path, **options: object) -> Path:
    pq.write_table(table, path, store_schema=False, **options)
    return path


# Ours


@pytest.mark.parametrize("algorithm", ["mondrian", "datafly"])
def test_files_of_duckanon_have_none(people: pa.Table, tmp_path: Path, algorithm: str) -> None:
    with duckanon.anonymize(
        people, quasi_identifiers=["age", "sex"], sensitive=["ill"], insensitive=["cost"], k=5, algorithm=algorithm
    ) as release:
        sinks = [
            ParquetFile(tmp_path / "a" / "p.parquet"),
            CsvFile(tmp_path / "a" / "c.csv"),
            ParquetFolder(tmp_path / "h", ["ill"]),
        ]
        for sink in sinks:
            sink.publish(release, reports={"md": "", "json": "{}"}, run={})
            assert file_leaks(sink.path) == ()


def test_many_random_orders_are_not_taken_for_others(tmp_path: Path) -> None:
    for seed in range(40):
        assert file_leaks(_plain(_shuffled(seed=seed), tmp_path / f"x{seed}.parquet")) == ()


# Dictionaries and statistics


def test_a_categorical_of_pandas_keeps_values_that_no_row_has(tmp_path: Path) -> None:
    values = pd.Categorical(_shuffled()["ill"].to_pylist(), categories=["flu", "gout", "none", CANARY, "other"])
    pd.DataFrame({"ill": values}).to_parquet(tmp_path / "x.parquet", index=False)
    (found,) = [leak for leak in file_leaks(tmp_path / "x.parquet") if leak.kind == "dictionary"]
    assert (found.column, found.count, found.of) == ("ill", 2, 5)


def test_an_enumeration_of_duckdb_does_so_too(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    with duckdb.connect() as connection:
        connection.register("rows", _shuffled())
        connection.execute(f"CREATE TYPE kinds AS ENUM ('flu', 'gout', 'none', '{CANARY}')")
        connection.execute(f"COPY (SELECT ill::kinds AS ill FROM rows) TO '{path}'")
    # DuckDB 1.5 writes the text itself, DuckDB 2 an empty one in its place, which still tells that there is one.
    (found,) = [leak for leak in file_leaks(path) if leak.kind == "dictionary"]
    assert (found.column, found.count, found.of) == ("ill", 1, 4)


def test_an_empty_text_that_rows_have_is_no_leak(tmp_path: Path) -> None:
    values = [random.Random(i).choice(["", "a"]) for i in range(90)]
    assert _kinds(_plain(pa.table({"x": values}), tmp_path / "x.parquet")) == set()


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
def test_pages_are_decoded_whatever_compresses_them(tmp_path: Path, compression: str) -> None:
    table = _shuffled()
    unused = pa.DictionaryArray.from_arrays(
        pa.array([i % 2 for i in range(table.num_rows)], pa.int32()), pa.array(["a", "b", CANARY * 9])
    )
    path = _plain(pa.table({"x": unused}), tmp_path / "x.parquet", compression=compression)
    (found,) = [leak for leak in file_leaks(path) if leak.kind == "dictionary"]
    assert (found.count, found.of) == (1, 3)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.5, -0.0, 0.0, float("nan"), None] * 40),
        pa.array([1, 2, None, 3] * 40, pa.int8()),
        pa.array([10**20, 2, None] * 40, pa.decimal128(30, 2)),
        pa.array([b"ab", b"cd", None] * 40, pa.binary(2)),
        pa.array([[1, 2], [], None, [3]] * 40),
        pa.array([{"a": 1}, None] * 40),
        pa.array([True, False, None] * 40),
        pa.array([0, 86_400_000, None] * 40, pa.timestamp("ms")),
        pa.array([None] * 40, pa.string()),
    ],
    ids=str,
)
def test_used_dictionaries_of_any_type_are_no_leak(tmp_path: Path, column: pa.Array) -> None:
    path = _plain(pa.table({"x": column}), tmp_path / "x.parquet")
    assert {kind for kind, _ in _kinds(path)} <= {"order"}


def test_statistics_of_rows_that_were_left_out(tmp_path: Path) -> None:
    path = _plain(pa.table({"x": ["bb", "cc"] * 50, "y": [100_001, 100_002] * 50}), tmp_path / "x.parquet")
    raw = path.read_bytes()
    end = raw.rindex(b"PAR1")
    footer = end - 4 - int.from_bytes(raw[end - 4 : end], "little")
    for own, other in ((b"bb", b"ab"), ((100_002).to_bytes(8, "little"), (100_009).to_bytes(8, "little"))):
        raw = raw[:footer] + raw[footer:].replace(own, other)
    path.write_bytes(raw)
    found = [leak for leak in file_leaks(path) if leak.kind == "statistics"]
    assert {leak.column for leak in found} == {"x", "y"}
    assert not any("100009" in leak.text or "ab" in leak.text.split() for leak in found)


def test_statistics_that_are_cut_off_are_no_leak(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT repeat('x', 3000) || (i % 7) AS x FROM range(300) t(i)) TO '{path}'")
    assert "statistics" not in {kind for kind, _ in _kinds(path)}


# Metadata and names


def test_notes_of_pandas(tmp_path: Path) -> None:
    frame = _shuffled().to_pandas()
    frame.attrs["made by"] = CANARY
    frame = frame[frame.age > 40].set_index("age", append=True)
    frame.to_parquet(tmp_path / "x.parquet")
    kinds = _kinds(tmp_path / "x.parquet")
    assert {("metadata", None), ("index", "__index_level_0__"), ("order", "__index_level_0__")} <= kinds
    told = {leak.text for leak in file_leaks(tmp_path / "x.parquet")}
    assert "The note of pandas has attributes of the frame." in told


def test_an_index_that_is_only_in_the_note_tells_how_many_rows_there_were(tmp_path: Path) -> None:
    frame = _shuffled().to_pandas()
    frame[:400].to_parquet(tmp_path / "whole.parquet")
    assert "index" not in {kind for kind, _ in _kinds(tmp_path / "whole.parquet")}
    frame[100:500].to_parquet(tmp_path / "part.parquet")
    assert ("index", None) in _kinds(tmp_path / "part.parquet")


def test_columns_that_only_the_metadata_name(tmp_path: Path) -> None:
    whole = pa.Table.from_pandas(pd.DataFrame({"ill": ["a"] * 9, "ssn": ["b"] * 9}))
    kept = whole.select(["ill"])
    pq.write_table(kept, tmp_path / "x.parquet")
    assert ("column_names", None) in _kinds(tmp_path / "x.parquet")
    assert "ssn" not in str(file_leaks(tmp_path / "x.parquet"))


@pytest.mark.parametrize(
    ("value", "word"),
    [("/home/jane/raw/people.csv", "a path"), ("jane@clinic.example", "an address"), ("2024-05-01T10:00", "a time")],
)
def test_keys_with_paths_addresses_and_times(tmp_path: Path, value: str, word: str) -> None:
    table = _shuffled().replace_schema_metadata({"note": value})
    pq.write_table(table, tmp_path / "x.parquet")
    found = [leak.text for leak in file_leaks(tmp_path / "x.parquet")]
    assert any(word in text for text in found)
    assert value not in str(found)


def test_keys_about_a_column(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("age", pa.int64(), metadata={"from": "x"}), pa.field("ill", pa.string())])
    pq.write_table(_shuffled().cast(schema), tmp_path / "x.parquet")
    assert ("metadata", "age") in _kinds(tmp_path / "x.parquet")


# Order and numbers


def test_sorted_files_are_found_and_by_which_column(tmp_path: Path) -> None:
    table = _shuffled()
    assert _kinds(_plain(table.sort_by("age"), tmp_path / "x.parquet")) == {("order", "age")}
    both = table.sort_by([("ill", "ascending"), ("age", "descending")])
    assert _kinds(_plain(both, tmp_path / "y.parquet")) == {("order", "age"), ("order", "ill")}


def test_rows_written_class_by_class_are_found(tmp_path: Path) -> None:
    draw = random.Random(3)
    classes = [draw.randrange(1000) for _ in range(60)]
    table = pa.table({"class": np.repeat(classes, 5), "x": [draw.random() for _ in range(300)]})
    assert _kinds(_plain(table, tmp_path / "x.parquet")) == {("order", "class")}


def test_equal_rows_that_stand_together_are_no_order(tmp_path: Path) -> None:
    values = [f"v{random.Random(i).random()}" for i in range(60)]
    assert file_leaks(_plain(pa.table({"x": np.repeat(values, 5)}), tmp_path / "x.parquet")) == ()


@pytest.mark.parametrize("value", ["{'a': x}", "[x]", "MAP {1: x}", "MAP {x: 1}", "[x]::TIMESTAMP[1]", "[{'a': [x]}]"])
@pytest.mark.parametrize("moment", ["'infinity'::TIMESTAMP", "'290309-12-22 (BC)'::TIMESTAMP", "'12000-01-01'::DATE"])
def test_nested_dates_beyond_those_of_python_can_be_looked_at(tmp_path: Path, value: str, moment: str) -> None:
    path = tmp_path / "x.parquet"
    if "TIMESTAMP[1]" in value:
        moment = moment.replace("::DATE", "::TIMESTAMP")
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {value.replace('x', moment)} AS v FROM range(3)) TO '{path}'")
    assert not [leak for leak in file_leaks(path) if leak.kind == "order"]


def test_a_column_that_numbers_the_rows(tmp_path: Path) -> None:
    table = _shuffled(50)
    numbers = random.Random(2).sample(range(50), 50)
    path = _plain(table.append_column("x", pa.array([n + 1000 for n in numbers])), tmp_path / "x.parquet")
    assert _kinds(path) == {("index", "x")}
    sparse = [n * 100 for n in numbers]
    assert _kinds(_plain(table.append_column("x", pa.array(sparse)), tmp_path / "y.parquet")) == set()
    assert _kinds(_plain(table.append_column("rowid", pa.array(sparse)), tmp_path / "z.parquet")) == {
        ("index", "rowid")
    }


def test_large_files_are_looked_at_in_pieces(tmp_path: Path) -> None:
    n = 400_000
    rng = np.random.default_rng(0)
    table = pa.table({"x": np.sort(rng.integers(0, 10**6, n)), "y": rng.integers(0, 10**6, n)})
    assert _kinds(_plain(table, tmp_path / "x.parquet", row_group_size=5_000)) == {("order", "x")}


@pytest.mark.parametrize("seed", range(60))
def test_figures_of_an_order_are_those_of_the_definitions(seed: int) -> None:
    draw = random.Random(seed)
    values = [draw.randrange(draw.choice([2, 4, 50])) for _ in range(FEWEST + draw.randrange(20))]
    found = order_of([(0, np.array(values))])
    assert found.trend == pytest.approx(reference.trend(values))
    assert found.equal == reference.equal_neighbours(values)
    few = values[:6]
    counts = [few.count(v) for v in set(few)]
    assert reference.expected_equal(few) == pytest.approx(sum(c * (c - 1) for c in counts) / len(few))
    counts = [values.count(v) for v in set(values)]
    assert found.expected == pytest.approx(sum(c * (c - 1) for c in counts) / len(values))


# CSV, folders, leftovers


def test_csv_of_pandas_with_its_index(tmp_path: Path) -> None:
    _shuffled().to_pandas().to_csv(tmp_path / "x.csv")
    assert _kinds(tmp_path / "x.csv") == {("index", ""), ("order", "")}


def test_a_name_and_a_time_in_a_gzip_header_are_found(tmp_path: Path) -> None:
    text = _shuffled().to_pandas().to_csv(index=False).encode()
    with gzip.GzipFile(tmp_path / "x.csv.gz", "wb") as file:
        file.write(text)
    assert _kinds(tmp_path / "x.csv.gz") == {("metadata", None)}
    with (tmp_path / "y.csv.gz").open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
        file.write(text)
    assert file_leaks(tmp_path / "y.csv.gz", siblings=False) == ()


def test_leftovers_beside_a_file_and_in_a_folder(tmp_path: Path) -> None:
    path = _plain(_shuffled(), tmp_path / "people.parquet")
    assert file_leaks(path) == ()
    (tmp_path / "people.parquet.tmp").touch()
    (tmp_path / "other.parquet.tmp").touch()
    (found,) = file_leaks(path)
    assert (found.kind, found.count) == ("leftovers", 1)
    assert file_leaks(path, siblings=False) == ()
    folder = tmp_path / "h"
    for name in ("sex=f", "sex=m"):
        (folder / name).mkdir(parents=True)
    _plain(_shuffled(), folder / "sex=f" / "part-0.parquet")
    (folder / "_SUCCESS").touch()
    found_below = file_leaks(folder)
    assert [(leak.kind, leak.count) for leak in found_below] == [("leftovers", 1), ("leftovers", 1)]


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 nothing")
    (tmp_path / "x.txt").touch()
    for path in (tmp_path / "x.parquet", tmp_path / "x.txt", tmp_path / "none.parquet", tmp_path):
        if path == tmp_path:
            (tmp_path / "x.parquet").unlink()
        with pytest.raises(DataError):
            file_leaks(path)


def test_leaks_are_plain_values() -> None:
    leak = Leak("order", "text", 2, 3, "x")
    assert leak.to_dict() == {"kind": "order", "text": "text", "count": 2, "of": 3, "column": "x"}
