"""Nights from PostgreSQL to PostgreSQL: no group below k, no person that moves, no false alarm."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.nightly import Clinic, live, write_job
from tests.postgres.conftest import Server

pytestmark = pytest.mark.postgres
TYPES = {"stay": "text", "patient": "bigint", "age": "integer", "zip": "text", "ill": "text"}


@pytest.mark.parametrize(
    ("policy", "nights"),
    [("stop", 3), pytest.param("stop", 30, marks=pytest.mark.slow), pytest.param("hold", 30, marks=pytest.mark.slow)],
)
def test_nights(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str, nights: int) -> None:
    monkeypatch.setenv("DUCKANON_TEST_URI", server.uri)

    def store(data: pa.Table) -> None:
        def written(value: Any) -> str:
            return "NULL" if value is None else f"'{value}'"

        rows = ", ".join(f"({', '.join(written(v) for v in row.values())})" for row in data.to_pylist())
        columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
        server.run("DROP TABLE IF EXISTS stays", f"CREATE TABLE stays ({columns})", f"INSERT INTO stays VALUES {rows}")

    def read() -> list[dict[str, Any]]:
        return [
            dict(zip(("stay", "age", "zip"), row, strict=True))
            for row in server.rows("SELECT stay, age, zip FROM released")
        ]

    clinic = Clinic(random.Random(5))
    clinic.arrive(400)
    address = 'postgres = "${DUCKANON_TEST_URI}"'
    source, output = f'{address}\ntable = "stays"', f'{address}\ntable = "released"\nreports_in = "reports"'
    path = write_job(tmp_path, source, output, policy=policy)
    published, stopped = live(path, clinic, store, read, nights=nights, daily=4, policy=policy)
    assert published + stopped == nights
    assert published
