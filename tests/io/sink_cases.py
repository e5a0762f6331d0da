"""A release with odd values in it, and the sinks that it goes to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import duckanon
from duckanon.io.sinks import CsvFile, DuckDBTable, ParquetFile, ParquetFolder, Sink
from duckanon.release.release import Release

CANARY = "Zaphod Beeblebrox"
ILL = ["flu", "", None, 'g"o,u;t', "=1+1", "line\r\nbreak", " ü ", "NULL"]
N = 64
PEOPLE = pa.table(
    {
        "name": [CANARY] * N,
        "age": [20 + i % 16 for i in range(N)],
        "sex": [["F", "M", None, "a/b=c%\n"][i // 2 % 4] for i in range(N)],
        "ward": [i % 2 for i in range(N)],
        "ill": [ILL[i % 8] for i in range(N)],
        "cost": [i / 8 for i in range(N)],
    }
)
COLUMNS = ["age", "sex", "ward", "ill", "cost"]
KINDS = ["parquet", "csv", "folder", "table"]
REPORTS = {"json": "{}\n", "md": "# Report\n"}


def made(people: pa.Table = PEOPLE, **options: Any) -> Release:
    given = {"within": ["sex", "ward"], "k": 2, "sensitive": ["ill"], "insensitive": ["cost"], **options}
    return duckanon.anonymize(people, quasi_identifiers=["age", "sex", "ward"], **given)


def make_sink(kind: str, folder: Path) -> Sink:
    makers: dict[str, Callable[[], Sink]] = {
        "parquet": lambda: ParquetFile(folder / "people.parquet"),
        "csv": lambda: CsvFile(folder / "people.csv"),
        "folder": lambda: ParquetFolder(folder / "people", ["SEX", "ward"]),
        "table": lambda: DuckDBTable(folder / "p.duckdb", "people", folder / "reports"),
    }
    return makers[kind]()


def put(sink: Sink, release: Release, run: str = "r1", reports: dict[str, str] = REPORTS) -> dict[str, Any]:
    return sink.publish(release, reports=reports, run={"run": run, "job": "people", "table": "people"})


def rows_of(table: Any) -> list[str]:
    return sorted(map(str, table.select(COLUMNS).to_pylist()))


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
