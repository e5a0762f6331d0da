"""A full disk is reported, the old export stays byte for byte, and the next run with room succeeds."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duckanon.release.verify import verify_export
from tests.faults.site import ROOT

SIZE = 2 * 1024 * 1024
PROGRAM = textwrap.dedent("""
    import resource, sys
    from pathlib import Path
    import duckanon
    from duckanon.errors import EngineError
    from tests.faults.driver import make_sink
    source, folder, kind, run, limit = sys.argv[1:]
    release = duckanon.anonymize(
        source, quasi_identifiers=["age"], insensitive=["town", "noise"], k=2, algorithm="datafly",
        hierarchies={"age": {"rule": "intervals", "width": 10}}, stage=None if limit != "0" else folder,
    )
    if limit != "0":
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
    sink = make_sink(kind, Path(folder))
    sink.require_writable()
    sink.publish(release, reports={"md": "# Report"}, run={"run": run})
    release.close()
""")
GUARDED = (
    f"from duckanon.errors import EngineError\ntry:\n{textwrap.indent(PROGRAM, '    ')}\nexcept EngineError as error:\n"
)
GUARDED += "    print(error)\n    raise SystemExit(6)\n"
# A file and a table in every run; the others on demand.
SOME = ("parquet", "table", "csv", "folder")


def source(path: Path, size: int) -> Path:
    """Write rows that fill about ``size`` bytes however they are packed."""
    rows = size // 16
    noise = pa.array([os.urandom(8).hex() for _ in range(rows)])
    pq.write_table(pa.table({"age": [i % 80 for i in range(rows)], "town": ["Bonn"] * rows, "noise": noise}), path)
    return path


def publish(rows: Path, folder: Path, kind: str, run: str, limit: int = 0) -> tuple[int, str]:
    arguments = [str(rows), str(folder), kind, run, str(limit)]
    done = subprocess.run(
        [sys.executable, "-c", GUARDED, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def state(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def place(folder: Path, kind: str) -> Path:
    return folder / "out" / {"folder": "people", "table": "reports"}.get(kind, "")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0755", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here: that needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("kind", SOME)
@pytest.mark.thinned(4)
def test_a_small_file_system(small: Path, tmp_path: Path, kind: str) -> None:
    (small / "out").mkdir()
    little, much = source(tmp_path / "little.parquet", 64 * 1024), source(tmp_path / "much.parquet", 4 * SIZE)
    assert publish(little, small, kind, "r1") == (0, "")
    before = state(small)
    code, message = publish(much, small, kind, "r2")
    assert code == 6, message
    assert "No space left on device" in message
    found = verify_export(place(small, kind))
    assert found.intact, found.problems
    assert found.exports[0].run == "r1"
    if kind != "table":  # a database may keep pages that it made room for
        assert state(small) == before
    assert publish(little, small, kind, "r3") == (0, "")
    found = verify_export(place(small, kind))
    assert found.intact, found.problems
    assert found.exports[0].run == "r3"


@pytest.mark.parametrize("kind", SOME)
@pytest.mark.thinned(4)
@pytest.mark.slow
def test_a_limit_on_the_size_of_files(tmp_path: Path, kind: str) -> None:
    """The same where nothing can be mounted: no file may grow beyond a limit."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    (tmp_path / "out").mkdir()
    little, much = source(tmp_path / "little.parquet", 16 * 1024), source(tmp_path / "much.parquet", SIZE)
    assert publish(little, tmp_path, kind, "r1") == (0, "")
    before = state(tmp_path / "out")
    limit = 600 * 1024 if kind == "table" else 64 * 1024
    if kind == "parquet":
        limit = 512  # the data get a second name, which takes no room: the manifest does not fit
    code, message = publish(much, tmp_path, kind, "r2", limit)
    assert code == 6, message
    found = verify_export(place(tmp_path, kind))
    assert found.intact, found.problems
    assert found.exports[0].run == "r1"
    if kind != "table":
        assert state(tmp_path / "out") == before
    assert publish(little, tmp_path, kind, "r3") == (0, "")
    assert verify_export(place(tmp_path, kind)).exports[0].run == "r3"
