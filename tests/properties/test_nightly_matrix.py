"""Night after night by every policy, into every sink and by every kind of recoding: nothing below k, no false alarm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.properties.nightly_matrix import FRESH, Case, Doors, nights, sample

FILES = [case for case in sample() if case[1] != "postgres"]


def doors(folder: Path, sink: str) -> Doors:
    def store(data: pa.Table) -> None:
        pq.write_table(data, folder / "stays.parquet")

    def read() -> list[dict[str, Any]]:
        if sink == "parquet":
            return pq.read_table(folder / "out" / "stays.parquet").to_pylist()
        with duckdb.connect() as con:
            if sink == "csv":
                return con.read_csv(str(folder / "out" / "stays.csv"), all_varchar=True).to_arrow_table().to_pylist()
            con.execute(f"ATTACH '{folder / 'released.duckdb'}' AS r (READ_ONLY)")
            return con.sql("FROM r.released").to_arrow_table().to_pylist()

    output = f'path = "out/stays.{sink}"'
    if sink == "duckdb":
        output = 'database = "released.duckdb"\ntable = "released"\nreports_in = "reports"'
    return 'path = "stays.parquet"', output, store, read


@pytest.mark.parametrize("case", FILES, ids=str)
@pytest.mark.slow
def test_thirty_nights(tmp_path: Path, case: Case) -> None:
    published, stopped = nights(tmp_path, case, doors(tmp_path, case[1]), count=30, size=400)
    assert published + stopped == 30
    assert published
    if case[2] != "stop" and case[0] not in FRESH:
        assert not stopped


@pytest.mark.parametrize(
    "case", [("mondrian", "csv", "hold", True, True), ("mdav", "duckdb", "no key", True, True)], ids=str
)
def test_a_few_nights(tmp_path: Path, case: Case) -> None:
    assert nights(tmp_path, case, doors(tmp_path, case[1]), count=3, size=200) == (3, 0)
