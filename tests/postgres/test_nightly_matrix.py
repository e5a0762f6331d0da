"""Nights by every policy and every kind of recoding into a table of a PostgreSQL server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.postgres.conftest import Server
from tests.properties.nightly_matrix import FRESH, Case, Doors, nights, sample

pytestmark = pytest.mark.postgres
CASES = [case for case in sample() if case[1] == "postgres"]


def doors(folder: Path, server: Server) -> Doors:
    def store(data: pa.Table) -> None:
        pq.write_table(data, folder / "stays.parquet")

    def read() -> list[dict[str, Any]]:
        rows = server.rows("SELECT stay, age, zip FROM released")
        return [dict(zip(("stay", "age", "zip"), row, strict=True)) for row in rows]

    output = 'postgres = "${DUCKANON_TEST_URI}"\ntable = "released"\nreports_in = "reports"'
    return 'path = "stays.parquet"', output, store, read


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_thirty_nights(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    monkeypatch.setenv("DUCKANON_TEST_URI", server.uri)
    published, stopped = nights(tmp_path, case, doors(tmp_path, server), count=30, size=400)
    assert published + stopped == 30
    assert published
    if case[2] != "stop" and case[0] not in FRESH:
        assert not stopped
