"""Paths without permission, texts that are no paths, and what worker threads may use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import duckanon
from duckanon.engine.process import allowed_threads, limited_threads, may_touch, touching_only, workers
from duckanon.io.paths import is_file, is_folder, is_there

CHECKOUT = Path(__file__).resolve().parents[2]

CLOSED = """
import os, sys
from contextlib import closing
from pathlib import Path
from duckanon import Hierarchy, Source
from duckanon.io.leaks import file_leaks
from duckanon.hierarchy import validate
from duckanon.hierarchy.store import from_path
from duckanon.jobs import exit_code
from duckanon.io.paths import covers
from duckanon.engine.base import open_engine
from duckanon.release.verify import verify_export

folder = sys.argv[1]
within = folder + "/people"
asked = (
    lambda engine: Source.of(within + ".parquet").open(engine),
    lambda engine: Source.of(folder + "/inner").open(engine),
    lambda engine: Source.of(folder + "/*.parquet").open(engine),
    lambda engine: Source.file(within + ".csv").open(engine),
    lambda engine: Source.database(within + ".duckdb", table="t").open(engine),
    lambda engine: Hierarchy.from_csv(within + ".csv"),
    lambda engine: validate(within + ".csv"),
    lambda engine: validate(within),
    lambda engine: file_leaks(within + ".parquet"),
    lambda engine: verify_export(Path(within + ".parquet")),
    lambda engine: Hierarchy.from_csv(sys.argv[2]),
    lambda engine: from_path(Path(sys.argv[3])),
)
for n, ask in enumerate(asked):
    with closing(open_engine()) as engine:
        if os.geteuid() == 0:
            # Root may enter every folder; the engine has been made, and its modules have been loaded.
            os.seteuid(65534)
        try:
            ask(engine)
        except Exception as error:
            print(exit_code(error), "cannot be read: Permission denied" in str(error), "Errno" in str(error), n, error)
        finally:
            if os.getuid() == 0:
                os.seteuid(0)
assert covers(folder, Path(folder) / "x.parquet")
"""


def test_what_may_not_be_opened_is_a_matter_of_the_environment(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    for folder in tmp_path.parents:
        if folder.stat().st_mode & 0o005 == 0o005:
            break
        folder.chmod(0o755)
    tmp_path.chmod(0o755)
    closed.chmod(0)
    files = [tmp_path / "levels.csv", tmp_path / "rule.toml"]
    for file in files:
        file.write_text("a;*")
        file.chmod(0)
    done = subprocess.run(
        [sys.executable, "-c", CLOSED, *map(str, (closed, *files))],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    closed.chmod(0o700)
    assert not done.returncode, done.stderr
    assert [line[:12] for line in done.stdout.splitlines()] == ["6 True False"] * 12, done.stdout + done.stderr


@pytest.mark.parametrize("text", ["SELECT " + "1 + " * 500 + "1", "a\0b", "no/such/file", "x" * 300])
def test_a_text_that_names_no_file_is_not_there(text: str) -> None:
    assert (is_there(text), is_file(text), is_folder(text)) == (False, False, False)


def test_a_query_may_be_longer_than_the_name_of_a_file() -> None:
    numbers = ", ".join(str(n) for n in range(100, 200))
    query = f"SELECT i % 3 AS a FROM range(30) AS r(i) WHERE i NOT IN ({numbers})"
    with duckdb.connect() as con, duckanon.anonymize(query, connection=con, quasi_identifiers=["a"], k=2) as release:
        assert release.rows_published == 30


@pytest.mark.parametrize("count", [1, 2])
def test_workers_may_touch_what_their_caller_may_touch(count: int) -> None:
    def asked() -> tuple[bool, bool, int | None]:
        return may_touch("here"), may_touch("there"), allowed_threads()

    with workers(count) as pool:
        with touching_only(lambda path: path == "here"), limited_threads(1):
            inside = [pool.submit(asked) for _ in range(4)]
            mapped = list(pool.map(lambda _: asked(), range(4)))
        outside = pool.submit(asked)
    assert [one.result() for one in inside] == mapped == [(True, False, 1)] * 4
    assert outside.result() == (True, True, None)
