"""A dbt project in a temporary folder, run by dbt's own command in a process of its own.

The folder is not called ``dbt``: the tests' folder is on the path, and would hide the package of that name.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import pytest

import duckanon
from duckanon.interfaces.dbt import package_folder

ROOT = Path(duckanon.__file__).parents[1]
CANARIES = ("Zyxcanary", "90210-canary", "canaryitis", "777000777")
"""Marks of a name, a zip code, a diagnosis and an id: they may stand in the database, and nowhere else."""

PATIENTS = """
    CREATE TABLE hospital."Patient Rows" AS
    SELECT 777000777000 + i AS id, 'Zyxcanary ' || i AS name, (20 + i * 7 % 60)::INTEGER AS age,
           CASE WHEN i % 50 = 0 THEN NULL ELSE '90210-canary-' || (i * 37 % 40) END AS zip,
           ['canaryitis a', 'canaryitis b', 'canaryitis c'][1 + (i // 7) % 3] AS diagnosis
    FROM range(300) AS r(i)
"""


@dataclass(frozen=True)
class Result:
    """What dbt says of one node."""

    status: str
    message: str
    failures: int | None


@dataclass
class Project:
    """A dbt project on a database file."""

    folder: Path
    database: Path
    output: str = ""

    @classmethod
    def make(cls, folder: Path, *, threads: int = 4, package: bool = True, settings: str = "", plugin: bool = True):
        project = cls(folder, folder / "Klinik Süd.duckdb")
        (folder / "models").mkdir(parents=True)
        project.write("dbt_project.yml", "name: clinic\nversion: '1.0'\nprofile: clinic\n")
        plugins = "plugins: [{module: duckanon.interfaces.dbt}]" if plugin else ""
        project.write(
            "profiles.yml",
            f"""
clinic:
  target: dev
  outputs:
    dev:
      type: duckdb
      path: "{project.database}"
      threads: {threads}
      {plugins}
      {settings}
""",
        )
        if package:
            project.write("packages.yml", f"packages:\n  - local: '{package_folder()}'\n")
        return project

    def write(self, name: str, content: str) -> None:
        (self.folder / name).write_text(content, encoding="utf-8")

    def model(self, name: str, sql: str, **config: str) -> None:
        settings = ", ".join(f"{key}={value!r}" for key, value in {"materialized": "table", **config}.items())
        self.write(f"models/{name}.sql", f"{{{{ config({settings}) }}}}\n{sql}\n")

    def dbt(self, *arguments: str) -> dict[str, Result]:
        """Run a command of dbt and return what it says of every node, by name."""
        scratch = self.folder / "tmp"
        scratch.mkdir(exist_ok=True)
        results = self.folder / "target" / "run_results.json"
        results.unlink(missing_ok=True)
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(scratch),
            # dbt imports Python models from the folder for temporary files; their byte code is not ours.
            "PYTHONDONTWRITEBYTECODE": "1",
            "DBT_PROFILES_DIR": str(self.folder),
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
            "DUCKANON_DBT": str(package_folder()),
        }
        done = subprocess.run(
            [str(Path(sys.executable).parent / "dbt"), "--no-use-colors", "--debug", *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        self.output = done.stdout + done.stderr
        assert "nanobind" not in self.output
        assert list(scratch.iterdir()) == [], "something is left behind"
        if not results.exists():
            return {}
        found: list[dict[str, Any]] = json.loads(results.read_text(encoding="utf-8"))["results"]
        return {
            one["unique_id"].split(".")[2]: Result(one["status"], one["message"] or "", one["failures"])
            for one in found
        }

    def deps(self) -> None:
        self.dbt("deps")
        assert (self.folder / "dbt_packages" / "duckanon").exists(), self.output

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.database)) as con:
            return con.execute(sql).fetchall()

    def canaries(self) -> list[str]:
        """Return where dbt wrote a cell of the source."""
        places = [("output", self.output.encode())]
        for folder in ("logs", "target"):
            places += [(str(p), p.read_bytes()) for p in (self.folder / folder).rglob("*") if p.is_file()]
        assert len(places) > 3
        return [f"{c} in {name}" for name, content in places for c in CANARIES if c.encode() in content]


@pytest.fixture(autouse=True, scope="session")
def _needs_dbt() -> None:
    if find_spec("dbt") is None or find_spec("dbt.adapters.duckdb") is None:
        pytest.skip("dbt-duckdb is not installed: pip install 'duckanon[dbt]'")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose database has the raw rows of patients, which dbt knows as a source."""
    made = Project.make(tmp_path / "clinic")
    with_patients(made)
    return made


def with_patients(project: Project) -> None:
    with duckdb.connect(str(project.database)) as con:
        con.execute("CREATE SCHEMA hospital")
        con.execute(PATIENTS)
    project.write(
        "models/sources.yml",
        "sources:\n  - name: hospital\n    tables:\n      - name: patients\n        identifier: Patient Rows\n",
    )
    project.model("staged", "select * from {{ source('hospital', 'patients') }}")
