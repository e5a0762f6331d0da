"""Runs of jobs: all is published or nothing, and the last good release stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duckanon import errors
from duckanon.io.sinks import locked, read_manifest, verify_files
from duckanon.jobs import exit_code, plan_job, run_job
from tests.jobs.jobs import CANARY, FILES, PEOPLE, ROWS, STATE, files, fill, no_work, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fill(tmp_path)


class TestRun:
    def test_publishes(self, folder: Path) -> None:
        steps = []
        result = run_job(write(folder), progress=lambda event: steps.append(event.step))
        assert sorted(p.name for p in (folder / "out").iterdir()) == FILES
        assert result.written["release"] == folder / "out" / "people.parquet"
        assert verify_files(result.written["manifest"]) == []
        released = pq.read_table(result.written["release"])
        assert released.column_names == ["age", "town", "ill"]
        found = result.summary["found"]
        assert found["rows_in"] == ROWS == found["rows_published"] + found["rows_suppressed"]
        assert result.summary["checks"][0]["holds"]
        assert list(dict.fromkeys(steps)) == ["encode", "search", "recode", "gate", "measure", "write"]
        assert result.job.path == folder / "job.toml"

    def test_twice_gives_the_same_rows(self, folder: Path) -> None:
        first = pq.read_table(run_job(write(folder)).written["release"]).to_pylist()
        second = pq.read_table(run_job(folder / "job.toml").written["release"]).to_pylist()
        assert sorted(map(str, first)) == sorted(map(str, second))

    def test_no_value_of_the_data_beside_the_release(self, folder: Path) -> None:
        written = run_job(write(folder)).written
        for path in (written["manifest"], *written["reports"]):
            text = path.read_text()
            for cell in (CANARY, "Bonn", "Lyon", "flu", "gout", "7301007"):
                assert cell not in text
            assert str(folder) not in text
        assert CANARY.encode() not in written["release"].read_bytes()
        assert "seed" not in json.dumps({**read_manifest(written["manifest"]), "seeded": None}).replace("seeded", "")

    def test_dry_run_publishes_nothing(self, folder: Path) -> None:
        path = write(folder)
        before = files(folder)
        result = run_job(path, dry_run=True)
        assert result.written == {}
        assert result.summary["checks"][0]["holds"]
        assert files(folder) == before
        assert not (folder / "out").exists()
        assert not (folder / STATE).exists()

    def test_levels_that_somebody_chose(self, folder: Path) -> None:
        chosen = "[steering.levels]\nage = 2\ntown = 1\n[output]"
        result = run_job(write(folder, ("[output]", chosen)), dry_run=True)
        assert {h["attribute"]: h["level"] for h in result.summary["hierarchies"]} == {"age": 2, "town": 1}
        assert result.summary["steering"] == {"levels": {"age": 2, "town": 1}}
        assert (result.summary["search"]["nodes"], result.summary["search"]["visited"]) == (1, 1)

    def test_reports_that_were_asked_for(self, folder: Path) -> None:
        run_job(write(folder, ("[output]", "[output]\nreport = []")))
        assert sorted(p.name for p in (folder / "out").iterdir()) == FILES[:2]

    def test_no_overwriting(self, folder: Path) -> None:
        path = write(folder, ("[output]", "[output]\noverwrite = false"))
        run_job(path)
        before = files(folder)
        with pytest.raises(errors.JobError, match=r"'people\.parquet' exists, and overwrite = false"):
            run_job(path, progress=no_work)
        assert files(folder) == before

    @pytest.mark.parametrize("what", ['table = "people"', 'query = "SELECT * FROM people WHERE age < 100"'])
    def test_from_a_database(self, folder: Path, what: str) -> None:
        with duckdb.connect(str(folder / "p.duckdb")) as con:
            con.execute("CREATE TABLE people AS SELECT * FROM read_parquet(?)", [str(folder / "people.parquet")])
        before = (folder / "p.duckdb").read_bytes()
        result = run_job(write(folder, ('path = "people.parquet"\n\n', f'database = "p.duckdb"\n{what}\n\n')))
        assert result.summary["found"]["rows_in"] == ROWS
        assert (folder / "p.duckdb").read_bytes() == before
        assert not list(folder.glob("*.wal"))

    def test_from_a_folder_with_brackets_in_its_name(self, tmp_path: Path) -> None:
        folder = tmp_path / "a[1] b'c"
        (folder / "in").mkdir(parents=True)
        pq.write_table(PEOPLE, folder / "in" / "people.parquet")
        (folder / "town.csv").write_text("Bonn;DE;*\nLyon;FR;*\n")
        for source in ("in/people.parquet", "in/*.parquet"):
            path = write(folder, ('path = "people.parquet"', f'path = "{source}"'))
            assert run_job(path).summary["found"]["rows_in"] == ROWS

    def test_within_limits(self, folder: Path) -> None:
        (folder / "spill").mkdir()
        limits = '[limits]\nmemory = "300MB"\nthreads = 1\ntemp_directory = "spill"\n[output]'
        run_job(write(folder, ("[output]", limits)))
        assert list((folder / "spill").iterdir()) == []


def drop_towns(folder: Path) -> None:
    (folder / "town.csv").write_text("Bonn;DE;*\n")


def add_column(folder: Path) -> None:
    pq.write_table(PEOPLE.append_column("ssn", PEOPLE["name"]), folder / "people.parquet")


def remove_column(folder: Path) -> None:
    pq.write_table(PEOPLE.drop_columns(["ill"]), folder / "people.parquet")


def change_type(folder: Path) -> None:
    pq.write_table(PEOPLE.set_column(2, "age", PEOPLE["age"].cast(pa.string())), folder / "people.parquet")


def halve(folder: Path) -> None:
    pq.write_table(PEOPLE.slice(0, ROWS // 2 - 1), folder / "people.parquet")


def empty(folder: Path) -> None:
    pq.write_table(PEOPLE.slice(0, 0), folder / "people.parquet")


def few(folder: Path) -> None:
    pq.write_table(PEOPLE.slice(0, 3), folder / "people.parquet")


def torn(folder: Path) -> None:
    (folder / "people.parquet").write_bytes(b"PAR1" + CANARY.encode())


def remove(folder: Path) -> None:
    (folder / "people.parquet").unlink()


def ragged(folder: Path) -> None:
    (folder / "town.csv").write_text("Bonn;DE;*\nLyon;FR\n")


def one_person(folder: Path) -> None:
    pq.write_table(PEOPLE.set_column(0, "id", pa.array([7] * ROWS)), folder / "people.parquet")


NIGHTS: dict[str, tuple[Any, type[Exception], int]] = {
    "a new column": (add_column, errors.UnlistedColumnError, 3),
    "a column less": (remove_column, errors.DataError, 3),
    "another type": (change_type, errors.DataError, 3),
    "half of the rows": (halve, errors.DataError, 3),
    "a value that the hierarchy does not know": (drop_towns, errors.UnknownValueError, 3),
    "a hierarchy that is none": (ragged, errors.HierarchyError, 2),
    "no rows": (empty, errors.DataError, 3),
    "a few rows": (few, errors.DataError, 3),
    "one person only": (one_person, errors.InfeasibleError, 4),
    "a torn file": (torn, errors.DataError, 3),
    "no file": (remove, errors.DataError, 3),
}


# What ends otherwise where no run came before: there is nothing to compare with.
FIRST = {"a column less": 2, "another type": 2, "half of the rows": 0, "a few rows": 4}


class TestBadNights:
    @pytest.mark.parametrize("night", NIGHTS)
    @pytest.mark.thinned(2)
    def test_the_last_release_stays(self, folder: Path, night: str) -> None:
        change, error, code = NIGHTS[night]
        path = write(folder)
        run_job(path)
        change(folder)
        before = files(folder)
        with pytest.raises(error) as caught:
            run_job(path)
        assert exit_code(caught.value) == code
        assert CANARY not in str(caught.value)
        assert files(folder) == before
        assert sorted(p.name for p in (folder / "out").iterdir()) == FILES

    @pytest.mark.parametrize(
        ("night", "code"), [(n, FIRST.get(n, code)) for n, (_, _, code) in NIGHTS.items() if FIRST.get(n, code)]
    )
    def test_the_first_night_leaves_nothing(self, folder: Path, night: str, code: int) -> None:
        NIGHTS[night][0](folder)
        with pytest.raises(errors.DuckanonError) as caught:
            run_job(write(folder))
        assert exit_code(caught.value) == code
        assert not (folder / "out").exists()

    @pytest.mark.parametrize(("error", "code"), [(errors.PrivacyViolation("no"), 5), (KeyboardInterrupt(), 130)])
    def test_the_gate_refuses_or_somebody_interrupts(
        self, folder: Path, error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = write(folder)
        run_job(path)
        before = files(folder)

        def refuse(*_: object) -> None:
            raise error

        monkeypatch.setattr("duckanon.release.release.Release.verify", refuse)
        with pytest.raises(type(error)) as caught:
            run_job(path)
        assert exit_code(caught.value) == code
        assert files(folder) == before

    def test_another_run_is_writing(self, folder: Path) -> None:
        path = write(folder)
        run_job(path)
        with (
            locked(folder / "out" / "people.parquet"),
            pytest.raises(errors.EngineError, match="Another run") as caught,
        ):
            run_job(path, progress=no_work)
        assert exit_code(caught.value) == 6

    def test_output_below_a_file(self, folder: Path) -> None:
        (folder / "out").write_text("a file")
        with pytest.raises(errors.EngineError, match="not a folder") as caught:
            run_job(write(folder))
        assert exit_code(caught.value) == 6


class TestPlan:
    def test_touches_no_data(self, folder: Path) -> None:
        path = write(folder)
        before = files(folder)
        plan = plan_job(path)
        assert plan.to_dict()["published"] == ["age", "town", "ill"]
        assert plan.hierarchies["town"] is not None
        assert "never published: name, id" in plan.explain()
        assert files(folder) == before

    def test_finds_what_a_run_would_find_in_the_schema(self, folder: Path) -> None:
        with pytest.raises(errors.RoleError, match="There is no column 'agee'"):
            plan_job(write(folder, ('["age", "town"]', '["agee", "age", "town"]')))
