"""Runs that do not end, and failures of the machine: they are reported as such, and never waited for."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from sqlglot import parse_one

from duckanon import Source
from duckanon.engine.base import Engine, open_engine
from duckanon.engine.duckdb.catalog import clean_error
from duckanon.engine.process import PrivateFolder, sweep
from duckanon.errors import DataError, EngineError, HierarchyError, ResourceError
from duckanon.jobs import exit_code, run_job
from tests.jobs.jobs import STATE, fill, write

CHECKOUT = Path(__file__).resolve().parents[2]
HANG = """
import ctypes, sys, time
from duckanon.jobs import time_limit
from duckanon.io.source import Source

time_limit.GRACE_SECONDS, time_limit._LAST_WORDS_SECONDS = 0.5, {words}
Source._open_file = lambda *given: ctypes.{kind}(None).sleep(100)
sys.argv = ["duckanon", "run", sys.argv[1], "--log", "human"]
from duckanon.interfaces.cli import main

main()
"""


def fifo(path: Path) -> Path:
    os.mkfifo(path)
    return path


def hanging(folder: Path, kind: str, words: float) -> subprocess.CompletedProcess[str]:
    job = write(folder, ("[output]", '[limits]\ntime = "1s"\n\n[output]'))
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", HANG.format(kind=kind, words=words), str(job)],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert time.monotonic() - begun < 60
    assert not list((folder / "out").glob("*")) if (folder / "out").exists() else True
    return done


@pytest.mark.parametrize("named", ["people.parquet", "link.parquet"])
def test_a_pipe_as_source_is_refused(tmp_path: Path, named: str) -> None:
    folder = fill(tmp_path)
    (folder / "people.parquet").unlink()
    fifo(folder / "people.parquet")
    (folder / "link.parquet").symlink_to("people.parquet")
    with pytest.raises(DataError, match="not a regular file") as caught:
        run_job(write(folder, ('"people.parquet"', f'"{named}"')))
    assert exit_code(caught.value) == 3


def test_devices_and_pipes_of_any_kind_are_refused(tmp_path: Path) -> None:
    for path in (Path("/dev/zero"), fifo(tmp_path / "x.csv")):
        with closing(open_engine()) as engine, pytest.raises(DataError, match="not a regular file"):
            Source.file(path, format="csv").open(engine)
    folder = fill(tmp_path)
    (folder / "town.csv").unlink()
    fifo(folder / "town.csv")
    with pytest.raises(HierarchyError, match="not a regular file"):
        run_job(write(folder))


def test_a_process_that_hangs_in_native_code_is_ended(tmp_path: Path) -> None:
    done = hanging(fill(tmp_path), "CDLL", 5.0)
    assert done.returncode == 6
    assert "longer than the 1 s of [limits] time" in done.stderr
    (history,) = (tmp_path / STATE).rglob("history.jsonl")
    assert '"exit_code": 6' in history.read_text()
    assert "longer than the 1 s of [limits] time" in (history.parent / "failure.html").read_text()
    # Nothing keeps the next run from its work.
    job = write(tmp_path)
    assert run_job(job).written


def test_a_process_whose_native_code_keeps_the_interpreter_is_ended(tmp_path: Path) -> None:
    assert hanging(fill(tmp_path), "PyDLL", 0.5).returncode != 0


def test_a_caller_in_python_gets_an_exception_and_keeps_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duckanon.jobs.time_limit.GRACE_SECONDS", 0.1)
    monkeypatch.setattr("duckanon.jobs.time_limit.os._exit", lambda code: pytest.fail("the process was ended"))
    opened = Source._open_file

    def slow(*given: object) -> object:
        time.sleep(2)
        return opened(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(Source, "_open_file", slow)
    armed = []
    monkeypatch.setattr("faulthandler.dump_traceback_later", lambda *given, **how: armed.append(given))
    with pytest.raises(EngineError, match=r"longer than the 1 s of \[limits\] time"):
        run_job(write(fill(tmp_path), ("[output]", '[limits]\ntime = "1s"\n\n[output]')))
    assert not armed
    assert not (tmp_path / "out").exists()


def test_a_statement_of_a_caller_in_python_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Source._open_file

    def endless(own: Source, engine: Engine, *given: object) -> object:
        engine.rows(parse_one("SELECT count(*) FROM range(10000000000) AS a(x), range(1000) AS b(y) WHERE x * y = -1"))
        return opened(own, engine, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Source, "_open_file", endless)
    begun = time.monotonic()
    with pytest.raises(EngineError, match=r"longer than the 1 s of \[limits\] time"):
        run_job(write(fill(tmp_path), ("[output]", '[limits]\ntime = "1s"\n\n[output]')))
    assert time.monotonic() - begun < 30


def test_what_ran_out_is_no_matter_of_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    for error in (
        duckdb.OutOfMemoryException("Out of Memory Error: could not allocate block of size 30.5 MiB"),
        duckdb.Error("Out of Memory Error: failed to pin block"),
        duckdb.InterruptException("INTERRUPT Error: Interrupted!"),
        duckdb.IOException("IO Error: Could not write file: No space left on device"),
    ):
        with closing(open_engine()) as engine:
            failure = clean_error(error)

            def columns(query: object, failure: Exception = failure) -> None:
                raise failure

            monkeypatch.setattr(engine, "columns", columns)
            with pytest.raises(ResourceError) as caught:
                Source.file(tmp_path / "x.csv").open(engine)
        assert exit_code(caught.value) == 6


def test_a_file_that_is_damaged_is_a_matter_of_the_data(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_text("no")
    with closing(open_engine()) as engine, pytest.raises(DataError, match="is damaged"):
        Source.file(tmp_path / "x.parquet").open(engine)
    with duckdb.connect(str(tmp_path / "used.duckdb")) as con, closing(open_engine()) as engine:
        con.execute("CREATE TABLE t AS SELECT 1 AS a")
        (tmp_path / "x.duckdb").write_text("no")
        with pytest.raises(DataError, match="is not a DuckDB database"):
            Source.database(tmp_path / "x.duckdb", table="t").open(engine)


UNREADABLE = """
import os, sys
from contextlib import closing
from duckanon import Source
from duckanon.jobs import exit_code
from duckanon.engine.base import open_engine

for source in (Source.file(sys.argv[1]), Source.file(sys.argv[2]), Source.database(sys.argv[3], table="t")):
    with closing(open_engine()) as engine:
        if os.geteuid() == 0:
            # Root may read everything; the engine has been made, and its modules have been loaded.
            os.seteuid(65534)
        try:
            source.open(engine)
        except Exception as error:
            print(exit_code(error), "cannot be read" in str(error), error)
        finally:
            if os.getuid() == 0:
                os.seteuid(0)
"""


def test_a_source_that_may_not_be_read_is_a_matter_of_the_environment(tmp_path: Path) -> None:
    fill(tmp_path)
    with duckdb.connect(str(tmp_path / "people.duckdb")) as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS a")
    # Whoever else runs may enter the folder, and may not read what is in it.
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o005 == 0o005:
            break
        folder.chmod(0o755)
    files = [tmp_path / "people.parquet", tmp_path / "town.csv", tmp_path / "people.duckdb"]
    for file in files:
        file.chmod(0)
    pattern = str(tmp_path / "peo*.parquet")
    done = subprocess.run(
        [sys.executable, "-c", UNREADABLE, pattern, str(files[1]), str(files[2])],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert [line[:6] for line in done.stdout.splitlines()] == ["6 True"] * 3, done.stdout + done.stderr


def test_a_sweep_goes_on_after_what_it_cannot_remove(tmp_path: Path) -> None:
    (tmp_path / ".duckanon-run-a").write_text("a file")
    (tmp_path / ".duckanon-run-b").symlink_to(tmp_path / "gone")
    odd = tmp_path / ".duckanon-run-c"
    (odd / "lock").mkdir(parents=True)
    dead = tmp_path / ".duckanon-run-d"
    dead.mkdir()
    (dead / "rows").write_text("x")
    with closing(PrivateFolder(tmp_path)) as live:
        assert sweep(tmp_path) == 1
        assert live.path.is_dir()
    assert not dead.exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == [".duckanon-run-a", ".duckanon-run-b", ".duckanon-run-c"]


@pytest.mark.parametrize("algorithm", ['name = "mondrian"', 'name = "datafly"\nstop = "limit"', 'name = "mdav"'])
def test_one_thread_means_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str) -> None:
    import pyarrow as pa

    from duckanon.engine import process
    from duckanon.engine.duckdb.engine import DuckDBEngine

    used: set[tuple[int, int, int]] = set()
    opened: list[int] = []
    make = DuckDBEngine.__init__

    def made(self: DuckDBEngine, *given: object, **options: object) -> None:
        make(self, *given, **options)  # type: ignore[arg-type]
        opened.append(self.threads())

    monkeypatch.setattr(DuckDBEngine, "__init__", made)
    before = pa.cpu_count(), pa.io_thread_count(), process.cores()
    job = write(fill(tmp_path), ("[output]", "[limits]\nthreads = 1\n\n[output]"))
    job.write_text(job.read_text().replace('name = "datafly"\nstop = "limit"', algorithm))
    run_job(job, progress=lambda event: used.add((pa.cpu_count(), pa.io_thread_count(), process.cores())))
    assert used == {(1, 1, 1)}
    assert set(opened) == {1}
    assert (pa.cpu_count(), pa.io_thread_count(), process.cores()) == before


def test_one_thread_does_the_work_that_others_would_do_beside_it() -> None:
    import threading

    from duckanon.engine.process import workers

    with workers(1) as pool:
        assert pool.submit(threading.current_thread).result() is threading.current_thread()
        assert list(pool.map(abs, [-1, 2])) == [1, 2]
        assert isinstance(pool.submit(int, "x").exception(), ValueError)
    with workers(2) as pool:
        assert pool.submit(threading.current_thread).result() is not threading.current_thread()


def test_a_crash_in_a_job_leaves_no_image_of_the_memory(tmp_path: Path) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_CORE)
    found: set[int] = set()
    run_job(write(fill(tmp_path)), progress=lambda event: found.add(resource.getrlimit(resource.RLIMIT_CORE)[0]))
    assert found == {0}
    assert resource.getrlimit(resource.RLIMIT_CORE) == before
