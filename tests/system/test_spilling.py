"""Tables larger than memory: data in files gives the same release, and no file stays."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

import duckanon
from duckanon.algorithms import Mondrian
from duckanon.algorithms.partition.presplit import Cutting
from duckanon.encoding import spill
from duckanon.encoding.spill import RID, ClassFile, PartFiles
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.engine.process import share_of_database, size_in_bytes
from duckanon.engine.sql.relations import table
from duckanon.errors import ParameterError
from duckanon.recoding.coded_rows import numbered
from duckanon.testing.hospital import write_hospital

ROOT = Path(__file__).parents[2]
ROLES: dict[str, Any] = {"quasi_identifiers": ["age", "town"], "sensitive": ["ill"], "insensitive": ["cost"]}


def people(rows: int = 1200, kinds: int = 90) -> pa.Table:
    rng = np.random.default_rng(11)
    return pa.table(
        {
            "who": [None if i % 50 == 0 else f"p{i}" for i in rng.integers(0, rows // 2, rows)],
            "age": [None if i == 7 else i for i in rng.integers(0, kinds, rows).tolist()],
            "town": [f"t{i}" for i in rng.integers(0, 6, rows)],
            "ill": [f"i{i}" for i in rng.integers(0, 5, rows)],
            "cost": rng.normal(size=rows),
        }
    )


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table is too large for the memory."""
    monkeypatch.setattr(DuckDBEngine, "is_crowded_by", lambda self, size: True)


DATAFLY = {"algorithm": "datafly", "suppression_limit": 0.1}


@pytest.mark.parametrize(
    ("asked", "kinds"),
    [
        ({}, 90),
        ({"entity_key": "who", "l": 2}, 90),
        # Few different rows, which are divided as combinations.
        ({"t": 0.5}, 4),
        ({"within": ["town"]}, 90),
        ({"algorithm": Mondrian(budget=150, relaxed=True)}, 90),
        (DATAFLY, 90),
        ({**DATAFLY, "entity_key": "who", "l": 2}, 90),
        ({**DATAFLY, "entity_key": "who", "iterative": True}, 90),
    ],
    ids=str,
)
@pytest.mark.thinned(4)
def test_files_give_the_release_that_tables_give(
    asked: dict[str, Any], kinds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = people(kinds=kinds)
    found = []
    for module in ("recoding.coded_rows", "recoding.regions"):
        monkeypatch.setattr(f"duckanon.{module}.MANY_ROWS", 0)
    for is_crowded, threads in ((False, 2), (True, 1)):
        monkeypatch.setattr(DuckDBEngine, "is_crowded_by", lambda self, size, answer=is_crowded: answer)
        monkeypatch.setattr(DuckDBEngine, "threads", lambda self, answer=threads: answer)
        how = {"algorithm": Mondrian(budget=150)} | asked
        with duckanon.anonymize(source, **ROLES, k=5, seed=3, **how) as release:
            assert all(check.holds for check in release.checks)
            summary = release.summary()
            found.append((release.to_arrow().to_pylist(), summary["found"], summary["search"]))
    assert found[0] == found[1]
    assert "visited" in found[0][2] or found[0][2].get("parts", 1) > 1 or kinds == 4


def test_persons_are_counted_as_persons_are(crowded: None) -> None:
    source = people()
    with duckanon.anonymize(source, **ROLES, entity_key="who", k=8, seed=3, algorithm=Mondrian(budget=200)) as release:
        sizes = release.engine.rows(exp.select("n", "units").from_(table(release.relations.table("class_map"))))
        assert min(units for _, units in sizes) >= 8
        assert any(units < n for n, units in sizes)
        assert sum(n for n, _ in sizes) == source.num_rows


class TestPartFiles:
    def test_items_come_back_part_by_part(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(1)
        files = PartFiles(tmp_path, "x")
        codes, parts = rng.integers(0, 200, 500).astype(np.uint8), rng.integers(0, 4, 500)
        for start in range(0, 500, 120):
            chunk = slice(start, start + 120)
            files.add(pa.record_batch({"c": codes[chunk]}), parts[chunk])
        for part in range(4):
            records = files.take(part)
            assert records[RID].tolist() == np.flatnonzero(parts == part).tolist()
            assert records["c"].tolist() == codes[parts == part].tolist()
        assert len(files.take(9)) == 0
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("block", [1, 7, 1000])
    def test_classes_are_put_where_the_items_were(
        self, tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(spill, "_BLOCK", block)
        rng = np.random.default_rng(block)
        parts, expected = rng.integers(0, 3, 50), rng.integers(0, 99, 50).astype(np.int32)
        file = ClassFile(tmp_path / "ids", 50, ("class_id", "r_0"))
        for part in range(3):
            rid = np.flatnonzero(parts == part)
            file.put(rid, {"class_id": expected[rid], "r_0": -expected[rid]})
        found = file.reader().read_all()
        assert found.column("class_id").to_pylist() == expected.tolist()
        assert found.column("r_0").to_pylist() == (-expected).tolist()
        file.remove()
        assert list(tmp_path.iterdir()) == []


def test_the_way_through_the_cuts_ends_in_the_range_of_the_part() -> None:
    bounds = ({0: (0, 4), 1: (0, 2)}, {0: (0, 4), 1: (3, 9)}, {0: (5, 9)})
    cutting = Cutting(bounds, ((0, 5, 1, -3), (1, 3, -1, -2)))
    codes = [c.ravel() for c in np.meshgrid(np.arange(10), np.arange(10))]
    found = cutting.parts_of(codes)
    for part, own in enumerate(bounds):
        inside = np.ones(100, dtype=bool)
        for j, (low, high) in own.items():
            inside &= (codes[j] >= low) & (codes[j] <= high)
        assert (found == part).tolist() == inside.tolist()


def test_numbers_of_persons_are_dense() -> None:
    values = np.array([2**63 + 5, 0, 2**63 + 5, 7], dtype=np.uint64)
    assert numbered(values).tolist() == [2, 0, 2, 1]
    assert numbered(values[:0]).tolist() == []


class TestEngine:
    def test_a_file_is_read_as_a_table_and_goes_with_it(self, tmp_path: Path) -> None:
        engine = DuckDBEngine(temp_directory=tmp_path)
        name = engine.fresh("rows")
        made = engine.create_file(name, exp.select("i").from_(exp.Table(this=exp.func("range", 300_000), alias="t(i)")))
        assert made == 300_000
        (file,) = engine.scratch().glob("*.parquet")
        assert stat.S_IMODE(engine.scratch().stat().st_mode) == 0o700
        column = engine.arrow(exp.select("i").from_(table(name))).column(0).to_numpy()
        assert (column == np.arange(300_000)).all()
        engine.drop(name)
        assert not file.exists()
        engine.create_file(name, exp.select(exp.Literal.number(1).as_("i")))
        engine.close()
        assert list(tmp_path.iterdir()) == []

    def test_a_shared_database_has_a_folder_too(self) -> None:
        with duckanon.connect() as connection:
            engine = DuckDBEngine(connection)
            folder = engine.scratch()
            assert engine.create_file(engine.fresh("x"), exp.select(exp.Literal.number(1).as_("i"))) == 1
            engine.close()
            assert not folder.exists()

    def test_the_database_gets_a_part_of_the_memory(self) -> None:
        engine = DuckDBEngine(memory="2GB")
        assert engine.memory_limit() == pytest.approx(share_of_database(2 * 10**9), rel=0.1)
        assert engine.array_limit() == 5 * 10**8
        assert engine.is_crowded_by(10**9)
        assert not engine.is_crowded_by(10**8)
        engine.close()

    @pytest.mark.parametrize(("memory", "pool"), [("200MB", "system"), ("2GB", None)])
    def test_little_memory_is_not_kept_by_arrow(self, memory: str, pool: str | None, tmp_path: Path) -> None:
        opened = f"from duckanon.engine.base import open_engine; open_engine(memory={memory!r}).close()"
        asked = "import pyarrow; print(pyarrow.default_memory_pool().backend_name)"
        env = {n: v for n, v in os.environ.items() if n != "ARROW_DEFAULT_MEMORY_POOL"} | {"PYTHONPATH": str(ROOT)}

        def told(program: str) -> str:
            command = [sys.executable, "-c", program]
            done = subprocess.run(command, env=env, cwd=tmp_path, check=True, capture_output=True, text=True)
            return done.stdout.strip()

        assert told(f"{opened}; {asked}") == (pool or told(asked))

    @pytest.mark.parametrize(
        ("text", "size"), [("1GB", 10**9), ("1.5 GiB", 3 * 2**29), ("24mb", 24 * 10**6), ("7B", 7), ("9 bytes", 9)]
    )
    def test_sizes(self, text: str, size: int) -> None:
        assert size_in_bytes(text) == size

    def test_a_share_of_the_machine(self) -> None:
        assert 0 < size_in_bytes("50%") < size_in_bytes("100%")

    def test_no_size(self) -> None:
        with pytest.raises(ParameterError, match="number and a unit"):
            size_in_bytes("much")


JOB = """
[source]
path = "hospital.parquet"
[roles]
entity_key = "patient_id"
identifiers = ["name", "country", "education", "marital_status", "admission_date", "length_of_stay", "cost", "ward"]
quasi_identifiers = ["birth_date", "sex", "zip"]
sensitive = ["diagnosis"]
[hierarchies]
zip = "us_zip5"
birth_date = {{ rule = "dates", levels = ["month", "year", "decade"] }}
[privacy]
k = 10
suppression_limit = 0.05
[algorithm]
name = "{algorithm}"
[output]
path = "out/hospital.parquet"
[limits]
memory = "{memory}"
threads = 2
temp_directory = "spill"
"""


def run(folder: Path, rows: int, memory: str, algorithm: str) -> dict[str, Any]:
    """Run a job in a process of its own; return what it said, with what an export needs to be checked again."""
    write_hospital(folder / "hospital.parquet", rows, chunk=250_000)
    (folder / "spill").mkdir()
    (folder / "job.toml").write_text(JOB.format(algorithm=algorithm, memory=memory))
    command = [sys.executable, "-m", "duckanon"]
    place = {"cwd": folder, "env": {**os.environ, "PYTHONPATH": str(ROOT)}, "capture_output": True, "text": True}
    done = subprocess.run([*command, "run", "job.toml", "--json"], check=False, **place)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list((folder / "spill").iterdir()) == []
    again = subprocess.run(
        [*command, "verify", "out", "--json", "--memory", memory, "--accept", "persons"], check=False, **place
    )
    assert again.returncode == 0, again.stdout + again.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("algorithm", ["mondrian", pytest.param("datafly", marks=pytest.mark.slow)])
def test_a_job_over_more_rows_than_its_memory_holds(tmp_path: Path, algorithm: str) -> None:
    rows = 500_000
    told = run(tmp_path, rows, "100MB", algorithm)
    published = pq.read_metadata(tmp_path / "out/hospital.parquet").num_rows
    assert told["summary"]["found"]["rows_in"] == rows == published + told["summary"]["found"]["rows_suppressed"]
    assert told["peak_memory"] > 0
    if algorithm == "mondrian":
        assert told["summary"]["search"]["parts"] > 1


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["mondrian", "datafly"])
def test_the_peak_is_the_limit_and_the_libraries(tmp_path: Path, algorithm: str) -> None:
    (tmp_path / "few").mkdir()
    libraries = run(tmp_path / "few", 2000, "200MB", algorithm)["peak_memory"]
    told = run(tmp_path, 5_000_000, "200MB", algorithm)
    assert told["peak_memory"] < libraries + 200e6, (told["peak_memory"], libraries)
