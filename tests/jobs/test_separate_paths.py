"""What a job reads and writes lies apart, under whatever names: checked before anything is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from duckanon.errors import JobError
from duckanon.interfaces.cli.app import app
from duckanon.jobs import load_job, run_job
from tests.jobs.jobs import JOB, files, fill, write

FOLDER = ('path = "out/people.parquet"', 'path = "out"\npartition_by = ["ill"]')
SOURCES = [
    "people.parquet",
    "./x/../people.parquet",
    "PEOPLE.parquet",
    "linked.parquet",
    "hard.parquet",
    "way/people.parquet",
]
OTHERS = ["job.toml", "town.csv", "out/people.parquet", "out/people.manifest.json", "out/people.report.html"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = fill(tmp_path)
    (found / "x").mkdir()
    (found / "linked.parquet").symlink_to("people.parquet")
    (found / "way").symlink_to(found)
    os.link(found / "people.parquet", found / "hard.parquet")
    return found


def refused(job: Path, folder: Path) -> str:
    before = files(folder)
    with pytest.raises(JobError) as caught:
        run_job(job)
    result = CliRunner().invoke(app, ["job", "validate", str(job)])
    assert result.exit_code == 2
    assert files(folder) == before
    assert not (folder / "out").exists()
    assert not (folder / "job.state").exists()
    return str(caught.value)


@pytest.mark.parametrize("key", ["metrics", "lineage"])
@pytest.mark.parametrize("place", [*SOURCES, *OTHERS])
def test_metrics_and_lineage_replace_nothing_else(folder: Path, key: str, place: str) -> None:
    job = write(folder, text=f'{JOB}\n[operations]\n{key} = "{place}"\n')
    message = refused(job, folder)
    assert f"[operations] {key}" in message


@pytest.mark.parametrize("place", SOURCES)
def test_a_release_does_not_replace_its_source(folder: Path, place: str) -> None:
    assert "[source]" in refused(write(folder, ('path = "out/people.parquet"', f'path = "{place}"')), folder)


@pytest.mark.parametrize("pattern", ["*.parquet", "way/*.parquet", "w*/**/*.parquet", "PEO*.parquet"])
@pytest.mark.parametrize("key", ["metrics", "lineage"])
def test_nothing_is_written_among_the_files_of_a_pattern(folder: Path, pattern: str, key: str) -> None:
    text = JOB.replace('path = "people.parquet"', f'path = "{pattern}"') + f'\n[operations]\n{key} = "people.parquet"\n'
    assert "is among the files of [source] path" in refused(write(folder, text=text), folder)


def test_metrics_and_lineage_have_a_file_each(folder: Path) -> None:
    job = write(folder, text=f'{JOB}\n[operations]\nmetrics = "Run.log"\nlineage = "x/../run.log"\n')
    assert "each needs its own" in refused(job, folder)


@pytest.mark.parametrize(
    ("nights", "operations", "changes"),
    [
        ("out", "", ()),
        (".", "", ()),
        ("way", "", ()),
        ("kept", 'lineage = "kept/events.jsonl"', ()),
        ("kept", 'metrics = "kept/runs/x.prom"', ()),
        ("out/kept", "", (FOLDER,)),
        ("kept", 'lineage = "out/events.jsonl"', (FOLDER,)),
        ("kept", "", (('path = "out/people.parquet"', 'path = "kept/people.parquet"'),)),
        ("kept", "", (('path = "out/people.parquet"', 'path = "."\npartition_by = ["ill"]'),)),
        ("x", "", (("[output]", '[limits]\ntemp_directory = "x"\n\n[output]'),)),
    ],
)
def test_folders_that_are_swept_or_replaced_hold_nothing_else(
    folder: Path, nights: str, operations: str, changes: tuple[tuple[str, str], ...]
) -> None:
    text = f'{JOB}\n[nights]\nstate = "{nights}"\n' + (f"\n[operations]\n{operations}\n" if operations else "")
    message = refused(write(folder, *changes, text=text), folder)
    assert "own" in message or "same" in message


def test_one_table_does_not_write_what_another_reads(folder: Path) -> None:
    (folder / "more.parquet").write_bytes((folder / "people.parquet").read_bytes())
    shared, _, output = JOB.partition("[output]")
    text = shared.replace('[source]\npath = "people.parquet"\n', "") + (
        '[[tables]]\nname = "a"\nsource.path = "people.parquet"\noutput.path = "out/a.parquet"\n'
        '[[tables]]\nname = "b"\nsource.path = "more.parquet"\noutput.path = "people.parquet"\n'
    )
    assert output
    message = refused(write(folder, text=text), folder)
    assert "a: [source] path" in message
    assert "b: [output] path" in message


def test_a_database_holds_several_tables_but_not_the_raw_rows(folder: Path) -> None:
    import duckdb

    with duckdb.connect(str(folder / "raw.duckdb")) as con:
        con.execute(f"CREATE TABLE people AS FROM '{folder / 'people.parquet'}'")
    os.link(folder / "raw.duckdb", folder / "twin.duckdb")
    source = ('path = "people.parquet"', 'database = "raw.duckdb"\ntable = "people"')
    output = ('path = "out/people.parquet"', 'database = "twin.duckdb"\ntable = "released"')
    assert "[source] database" in refused(write(folder, source, output), folder)


def test_a_job_whose_paths_are_apart_runs(folder: Path) -> None:
    more = '\n[nights]\nstate = "kept"\n\n[operations]\nmetrics = "x/run.prom"\nlineage = "x/run.jsonl"\n'
    job = write(folder, text=JOB + more)
    assert load_job(job).metrics == folder / "x" / "run.prom"
    for _ in range(2):
        assert run_job(job).tables[0].warnings == ()
    assert {p.name for p in (folder / "x").iterdir()} == {"run.prom", "run.jsonl"}


def test_tables_nested_deeply_are_a_job_file_that_is_wrong(folder: Path) -> None:
    rules = JOB.replace("width = 5", f"width = 5\n{'a.' * 2_000}b = 1")
    for nested in ("x = " + "[" * 2_000, "[" + "a." * 2_000 + "b]\n", "x = " + "{a=" * 2_000, rules):
        (folder / "job.toml").write_text(nested)
        with pytest.raises(JobError, match=r"job\.toml: "):
            load_job(folder / "job.toml")


def test_a_draft_does_not_replace_the_table_that_it_is_made_from(folder: Path) -> None:
    before = (folder / "people.parquet").read_bytes()
    for place in ("people.parquet", "hard.parquet"):
        arguments = ["job", "init", str(folder / "people.parquet"), "-o", str(folder / place), "--force"]
        assert CliRunner().invoke(app, arguments).exit_code == 2
    assert (folder / "people.parquet").read_bytes() == before
