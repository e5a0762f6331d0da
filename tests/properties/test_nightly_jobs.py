"""Jobs night after night, from files and from a database: no group below k, no person that moves, no false alarm."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.nightly import Clinic, live, write_job

Doors = tuple[str, str, Callable[[pa.Table], None], Callable[[], list[dict[str, Any]]]]


def of_files(folder: Path) -> Doors:
    def store(data: pa.Table) -> None:
        pq.write_table(data, folder / "stays.parquet")

    def read() -> list[dict[str, Any]]:
        return pq.read_table(folder / "out" / "stays.parquet").to_pylist()

    return 'path = "stays.parquet"', 'path = "out/stays.parquet"', store, read


def of_duckdb(folder: Path) -> Doors:
    def store(data: pa.Table) -> None:
        with duckdb.connect(str(folder / "clinic.duckdb")) as con:
            con.register("tonight", data)
            con.execute("CREATE OR REPLACE TABLE stays AS FROM tonight")

    def read() -> list[dict[str, Any]]:
        with duckdb.connect(str(folder / "released.duckdb"), read_only=True) as con:
            return con.sql("FROM released").to_arrow_table().to_pylist()

    source = 'database = "clinic.duckdb"\ntable = "stays"'
    return source, 'database = "released.duckdb"\ntable = "released"\nreports_in = "reports"', store, read


SOURCES = {"parquet": of_files, "duckdb": of_duckdb}


def nights(folder: Path, source: str, seed: int, count: int, size: int, **how: Any) -> tuple[int, int]:
    clinic = Clinic(random.Random(seed))
    clinic.arrive(size)
    lines, output, store, read = SOURCES[source](folder)
    path = write_job(folder, lines, output, policy=how["policy"], algorithm=how.pop("algorithm", "mondrian"))
    return live(path, clinic, store, read, nights=count, **how)


@pytest.mark.parametrize("source", SOURCES)
def test_a_few_nights(tmp_path: Path, source: str) -> None:
    assert nights(tmp_path, source, 1, 4, 250, daily=3, policy="stop") == (4, 0)


@pytest.mark.parametrize("algorithm", ["mondrian", "optimal"])
@pytest.mark.thinned(2)
def test_unchanged_stays_are_published_unchanged(tmp_path: Path, algorithm: str) -> None:
    assert nights(tmp_path, "parquet", 2, 3, 250, daily=0, policy="stop", algorithm=algorithm) == (3, 0)


@pytest.mark.slow
@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize("policy", ["stop", "hold", "warn"])
@pytest.mark.parametrize("algorithm", ["mondrian", "datafly"])
@pytest.mark.parametrize("source", SOURCES)
def test_thirty_nights(tmp_path: Path, source: str, algorithm: str, policy: str, moving: bool) -> None:
    published, stopped = nights(
        tmp_path, source, 3, 30, 600, daily=4, policy=policy, algorithm=algorithm, moving=moving
    )
    assert published + stopped == 30
    assert published
