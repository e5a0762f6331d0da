"""A place with a valid export, in which runs are killed, and what must hold before and after the next run."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

from duckanon.release.verify import Verified, verify_export
from tests.jobs.jobs import CANARY, STATE, fill, write
from tests.postgres.conftest import Server

KINDS = ("write", "job", "parquet", "csv", "folder", "table")
TABLES = ("table", "postgres")
FILES = ["people.manifest.json", "people.report.json", "people.report.md"]
ROOT = Path(__file__).parents[2]


class Driver:
    """The process that forks a child for every order."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.driver"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def order(self, **order: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@dataclass
class Site:
    """A folder with a source, a job and an export of one kind."""

    driver: Driver
    folder: Path
    kind: str
    server: Server | None = None
    runs: list[str] = field(default_factory=list)
    calls: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        fill(self.folder)
        if self.server is not None:
            self.server.run("DROP TABLE IF EXISTS people")
        write(self.folder)
        for name in ("out", "tmp"):
            (self.folder / name).mkdir()
        self.run()
        found = self.run()
        self.calls, self.seconds = found["calls"], found["seconds"]

    @property
    def out(self) -> Path:
        return self.folder / "out"

    @property
    def verifiable(self) -> Path:
        return self.out / {"folder": "people", "table": "reports", "postgres": "reports"}.get(self.kind, "")

    def verified(self) -> Verified:
        return verify_export(self.verifiable, database=None if self.server is None else self.server.uri)

    def run(self, kill: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
        self.runs.append(str(len(self.runs)))
        order = {"kind": self.kind, "folder": str(self.folder), "run": self.runs[-1], "kill": kill}
        if self.server is not None:
            order["uri"] = self.server.uri
        found = self.driver.order(**order, **options)
        if kill is None and not options:
            assert (found["signal"], found["exit"], found.get("message")) == (0, 0, None), found
        return found

    def data(self) -> str:
        """Return a hash of the data under their final name, which must be whole at any time."""
        if self.kind == "folder":
            parts = sorted((self.out / "people").rglob("*.parquet"))
            assert len(parts) == 2
            assert sum(pq.read_table(p).num_rows for p in parts) == 40
            return hashlib.sha256(b"".join(p.read_bytes() for p in parts)).hexdigest()
        if self.kind == "table":
            with duckdb.connect(str(self.out / "people.duckdb")) as connection:
                (comment,) = connection.sql(
                    "SELECT comment FROM duckdb_tables() WHERE table_name = 'people'"
                ).fetchall()
                (rows,) = connection.sql("SELECT count(*) FROM people").fetchall()
            assert rows == (40,)
            return str(comment)
        if self.server is not None:
            ((comment, rows),) = self.server.rows(
                "SELECT obj_description('people'::regclass), count(*) FROM people"  # one statement: one state
            )
            assert rows == 40
            return str(comment)
        if self.kind == "csv":
            content = (self.out / "people.csv").read_bytes()
            assert content.count(b"\r\n") == 41
            return hashlib.sha256(content).hexdigest()
        assert pq.read_table(self.out / "people.parquet").num_rows == 40
        return hashlib.sha256((self.out / "people.parquet").read_bytes()).hexdigest()

    def kill_and_recover(self, kill: dict[str, Any], follow: bool = True) -> bool:
        """Kill a run, look at what it left, and let the next one end well; say whether the new export was decided on.

        Without ``follow`` the next one is killed, too.
        """
        before = self.data()
        killed = self.run(kill)
        assert killed["signal"] in (0, 9), killed
        self.check_leftovers()
        middle = self.data()
        found = self.verified()
        assert found.intact, (kill, found.problems)
        assert len(found.exports) == 1
        run, after = found.exports[0].run, self.data()
        assert middle in (before, after), kill
        if self.kind not in ("write", "job"):
            assert run == self.runs[-1] if after != before else run in self.runs[:-1], kill
        if follow:
            self.run()
            self.check_clean()
            assert self.verified().intact
        return after != before

    def check_leftovers(self) -> None:
        """Private things are private, and no raw value is anywhere else."""
        for path in self.folder.rglob("*"):
            hidden = path.name.startswith(".duckanon-") or path.name.endswith(".commit")
            if hidden and path.is_dir():
                assert stat.S_IMODE(path.stat().st_mode) == 0o700, path.name
        self.check_values(private=False)

    def check_values(self, private: bool) -> None:
        for path in self.folder.rglob("*"):
            if not path.is_file() or path == self.folder / "people.parquet":
                continue
            inside = any(p.name.startswith(".") and stat.S_IMODE(p.stat().st_mode) == 0o700 for p in path.parents)
            if inside and not private:
                continue
            assert CANARY.encode() not in path.read_bytes(), path.name
            if path.suffix == ".parquet" and path.stat().st_size:
                # Pages are compressed: a search of the bytes alone would miss what is in them.
                kept = path.is_relative_to(self.folder / STATE)
                # What a job keeps for the next night are hashes.
                allowed = {"person", "class_id"} if kept else {"age", "town", "ill"}
                assert set(pq.read_table(path, partitioning=None).column_names) <= allowed, path.name

    def check_clean(self) -> None:
        """The next run has swept everything but folders that were only just made, which are empty."""
        young = list(self.folder.rglob(".duckanon-new-*"))
        for path in young:
            assert [p.name for p in path.iterdir()] in ([], ["lock"])
        there = sorted(p.name for p in self.out.iterdir() if p not in young)
        assert there == self.expected(), there
        assert [p for p in (self.folder / "tmp").iterdir() if p not in young] == []
        if self.kind in TABLES:
            assert sorted(p.name for p in (self.out / "reports").iterdir() if p not in young) == FILES
        self.check_values(private=True)

    def expected(self) -> list[str]:
        return {
            "csv": sorted([*FILES, "people.csv"]),
            "folder": ["people"],
            "table": ["people.duckdb", "reports"],
            "postgres": ["reports"],
            "job": sorted([*FILES, "people.parquet", "people.report.html"]),
        }.get(self.kind, sorted([*FILES, "people.parquet"]))
