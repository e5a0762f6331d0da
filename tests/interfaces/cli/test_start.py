"""What the command line does not import when it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

_SCRIPT = """
import sys
from duckanon.interfaces.cli.start import arrow_without_pandas

arrow_without_pandas()
import numpy as np
import pyarrow as pa

table = pa.table({"x": np.array([1, 2]), "y": ["a", None]})
assert table.column("x").to_numpy().tolist() == [1, 2]
assert pa.array([1.0, None]).to_numpy(zero_copy_only=False)[0] == 1.0
assert "pandas" not in sys.modules
frame = table.to_pandas()
import pandas as pd

assert isinstance(frame, pd.DataFrame)
assert pa.array(pd.Series([1.0, None])).null_count == 1
assert pa.Table.from_pandas(frame).column_names == ["x", "y"]
"""
_INSPECTED = """
import sys
from duckanon import Hierarchy
from duckanon.hierarchy.store import shipped

for path in shipped().values():
    if path.suffix == ".csv":
        Hierarchy.from_csv(path)
assert "scipy.sparse" not in sys.modules
"""


def run(script: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return done.stderr


def test_arrays_are_made_without_pandas_which_is_there_for_who_asks(tmp_path: Path) -> None:
    run(_SCRIPT, tmp_path)


def test_hierarchies_without_loops_need_no_graphs(tmp_path: Path) -> None:
    run(_INSPECTED, tmp_path)


def test_a_run_does_not_import_pandas_and_leaves_nothing_behind(tmp_path: Path) -> None:
    pq.write_table(pa.table({"age": [30, 31, 32, 33] * 5, "ill": ["a", "b"] * 10}), tmp_path / "people.parquet")
    (tmp_path / "job.toml").write_text(
        '[source]\npath = "people.parquet"\n[roles]\nquasi_identifiers = ["age"]\nsensitive = ["ill"]\n'
        '[privacy]\nk = 3\n[output]\npath = "out.parquet"\n'
    )
    script = (
        "import sys\nfrom duckanon.interfaces.cli import app\nsys.argv = ['duckanon', 'run', 'job.toml', '--json']\n"
        "try:\n    app()\nexcept SystemExit:\n    pass\nassert 'pandas' not in sys.modules\n"
    )
    # Modules written in C++ say here what they still have.
    assert run(script, tmp_path) == ""
    assert (tmp_path / "out.parquet").exists()


_COUNTED = """
import gc, sys

looked = []
gc.callbacks.append(lambda phase, about: looked.append(about["generation"]) if phase == "stop" else None)
import duckanon

duckanon.anonymize
assert "duckanon.api" in sys.modules
assert 2 not in looked, looked
assert gc.isenabled()
gc.disable()
duckanon.connect
assert not gc.isenabled()
"""


def test_importing_looks_through_nothing_for_garbage(tmp_path: Path) -> None:
    run(_COUNTED, tmp_path)


_KEPT = """
import gc, weakref
from duckanon.interfaces.cli.start import modules_kept

with modules_kept():
    from duckanon.jobs import run_job
assert gc.isenabled()
kept = gc.get_freeze_count()
assert kept > 10_000

class Ring:
    pass

ring = Ring()
ring.itself = ring
gone = weakref.ref(ring)
del ring
gc.collect()
assert gone() is None
assert gc.get_freeze_count() <= kept
"""


def test_garbage_of_a_command_is_found_and_modules_are_kept(tmp_path: Path) -> None:
    run(_KEPT, tmp_path)


_ENDED = """
import atexit, sys, threading, time
from duckanon.interfaces.cli import signals

class Costly:
    def __del__(self):
        print("given back")

kept = Costly()
atexit.register(print, "at exit")
if sys.argv[1] == "thread":
    threading.Thread(target=lambda: (time.sleep(0.5), print("worked on"))).start()
if sys.argv[1] != "open":
    signals.all_closed()
print("said", end="; ")
signals.end(3)
"""


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("closed", "said; at exit"),
        ("open", "said; at exit|given back"),
        ("thread", "said; worked on|at exit|given back"),
    ],
)
def test_a_process_ends_at_once_where_all_is_closed_and_no_thread_works(tmp_path: Path, how: str, said: str) -> None:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", _ENDED, how]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=buffered)
    assert (done.returncode, "|".join(done.stdout.splitlines()), done.stderr) == (3, said, "")
