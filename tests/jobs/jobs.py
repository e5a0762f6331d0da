"""A job and the small table that it is about, for tests."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

CANARY = "Zaphod Beeblebrox"
ROWS = 40
PEOPLE = pa.table(
    {
        "id": list(range(7_301_000, 7_301_000 + ROWS)),
        "name": [CANARY] * ROWS,
        "age": [20 + i % 20 for i in range(ROWS)],
        "town": ["Bonn", "Lyon"] * (ROWS // 2),
        "ill": ["flu", "gout", "mumps", "flu"] * (ROWS // 4),
    }
)
JOB = """
[source]
path = "people.parquet"

[roles]
entity_key = "id"
identifiers = ["name"]
quasi_identifiers = ["age", "town"]
sensitive = ["ill"]

[hierarchies]
town = "town.csv"

[hierarchies.age]
rule = "intervals"
width = 5
factors = [2]

[privacy]
k = 4
suppression_limit = 0.1

[algorithm]
name = "datafly"
stop = "limit"

[output]
path = "out/people.parquet"
"""
FILES = ["people.manifest.json", "people.parquet", "people.report.html", "people.report.json", "people.report.md"]
STATE = "job.state"


def fill(folder: Path) -> Path:
    pq.write_table(PEOPLE, folder / "people.parquet")
    (folder / "town.csv").write_text("Bonn;DE;*\nLyon;FR;*\n")
    return folder


def write(folder: Path, *changes: tuple[str, str], text: str = JOB) -> Path:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "job.toml"
    path.write_text(text)
    return path


def files(folder: Path) -> dict[str, bytes]:
    """Return all files but those of the job's own state, which a failed run adds a line to."""
    found = {str(p.relative_to(folder)): p for p in sorted(folder.rglob("*")) if p.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith(STATE)}


def no_work(event: object) -> None:
    raise AssertionError("the work was begun although it cannot be published")
