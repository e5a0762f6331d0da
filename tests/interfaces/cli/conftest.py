"""A folder of its own for every test, with a small table, a job and a demo."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duckanon.interfaces.cli import options
from tests.interfaces.cli.tools import JOB, call


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yield tmp_path
    options.quiet()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    rows = 60
    table = {
        "age": [20 + i % 30 for i in range(rows)],
        "zip": [f"97{i % 4}0{i % 3}" for i in range(rows)],
        "ill": ["abc"[i % 3] for i in range(rows)],
    }
    folder = tmp_path_factory.mktemp("people")
    pq.write_table(pa.table(table), folder / "people.parquet")
    (folder / "job.toml").write_text(JOB)
    return folder


@pytest.fixture
def people(in_folder, made):
    shutil.copytree(made, in_folder, dirs_exist_ok=True)
    return in_folder


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    """A demo's whole folder, and what the command said."""
    folder = tmp_path_factory.mktemp("hospital") / "demo"
    return folder, call("demo", "--rows", "2000", "--folder", str(folder))
