"""Several tables in one job, outputs of every kind, dates in paths, and secrets from the environment."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from duckanon import errors
from duckanon.io.sinks import read_manifest, verify_files
from duckanon.jobs import load_job, run_job
from tests.jobs.jobs import PEOPLE, ROWS, fill, write

SEVERAL = """
[source]
database = "people.duckdb"

[roles]
entity_key = "id"
identifiers = ["name"]

[hierarchies]
town = "town.csv"
age = { rule = "intervals", width = 5, factors = [2] }

[privacy]
k = 4

[[tables]]
name = "people"
source = { table = "people" }
roles = { quasi_identifiers = ["age", "town"], sensitive = ["ill"] }
output = { path = "out/people.parquet" }

[[tables]]
name = "ages"
source = { query = "SELECT id, name, age FROM people" }
roles = { quasi_identifiers = ["age"] }
privacy = { k = 10 }
output = { path = "out/ages.csv" }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fill(tmp_path)
    with duckdb.connect(str(tmp_path / "people.duckdb")) as con:
        con.execute("CREATE TABLE people AS SELECT * FROM read_parquet(?)", [str(tmp_path / "people.parquet")])
    return tmp_path


class TestSeveralTables:
    def test_share_what_stands_outside(self, folder: Path) -> None:
        job = load_job(write(folder, text=SEVERAL))
        people, ages = job.tables
        assert list(people.request.hierarchies) == ["town", "age"]
        assert list(ages.request.hierarchies) == ["age"]
        assert (people.request.k, ages.request.k) == (4, 10)
        assert {t.request.entity_key for t in job.tables} == {"id"}
        with pytest.raises(errors.JobError, match="several tables, name one: people, ages"):
            job.table()
        with pytest.raises(errors.JobError, match=r"there is no table 'age'\. Did you mean 'ages'"):
            job.table("age")

    def test_are_published_together(self, folder: Path) -> None:
        result = run_job(write(folder, text=SEVERAL))
        assert [t.name for t in result.tables] == ["people", "ages"]
        for table in result.tables:
            assert verify_files(table.written["manifest"]) == []
            assert read_manifest(table.written["manifest"])["run"]["table"] == table.name
        assert pq.read_table(folder / "out" / "people.parquet").num_rows == ROWS
        assert (folder / "out" / "ages.csv").read_text().splitlines()[0] == '"age"'

    def test_none_is_published_where_one_cannot_be(self, folder: Path) -> None:
        path = write(folder, ("k = 10", "k = 100"), text=SEVERAL)
        with pytest.raises(errors.InfeasibleError):
            run_job(path)
        assert not (folder / "out").exists()

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ('name = "ages"', 'name = "People"', r"\[\[tables\]\] has 'People' twice"),
            ('name = "ages"\n', "", r"\[\[tables\]\] number 2 needs a name"),
            ('name = "ages"', 'name = "a/b"', r"\[\[tables\]\] number 2 needs a name"),
            ('name = "ages"', 'name = ".."', r"\[\[tables\]\] number 2 needs a name"),
            ("out/ages.csv", "out/people.parquet", r"ages: another table has the same \[output\]"),
            (
                '"town.csv"',
                '"town.csv"\nheight = "x.csv"',
                r"\[hierarchies\] 'height' is no quasi-identifier of any table",
            ),
            ("privacy = { k = 10 }", "privacy = { kk = 10 }", r"ages: \[privacy\] has no key 'kk'"),
            ("privacy = { k = 10 }", "limits = { threads = 1 }", r"ages: unknown table \[limits\]"),
        ],
    )
    def test_mistakes(self, folder: Path, old: str, new: str, message: str) -> None:
        with pytest.raises(errors.JobError, match=message):
            load_job(write(folder, (old, new), text=SEVERAL))

    def test_two_tables_of_one_database(self, folder: Path) -> None:
        outputs = [
            (f'path = "out/{name}"', 'database = "release.duckdb", table = "TABLE"')
            for name in ("people.parquet", "ages.csv")
        ]
        text = SEVERAL
        for (old, new), table in zip(outputs, ("people", "ages"), strict=True):
            text = text.replace(old, new.replace("TABLE", table))
        run_job(write(folder, text=text))
        with duckdb.connect(str(folder / "release.duckdb"), read_only=True) as con:
            assert sorted(con.execute("SHOW TABLES").fetchall()) == [("ages",), ("people",)]
        with pytest.raises(errors.JobError, match="another table has the same"):
            load_job(write(folder, text=text.replace('table = "ages"', 'table = "people"')))


class TestOutputs:
    def test_folder_of_partitions(self, folder: Path) -> None:
        output = 'path = "out/people"\npartition_by = ["ill"]'
        path = write(folder, ('path = "out/people.parquet"', output))
        for _ in range(2):
            run_job(path)
            found = duckdb.sql(f"SELECT ill, count(*) FROM read_parquet('{folder}/out/people/**/*.parquet') GROUP BY 1")
            assert dict(found.fetchall()) == {"flu": ROWS // 2, "gout": ROWS // 4, "mumps": ROWS // 4}
        assert sorted(p.name for p in (folder / "out").iterdir()) == ["people"]

    def test_table_of_a_database(self, folder: Path) -> None:
        output = 'database = "release.duckdb"\ntable = "people"\nreports_in = "reports"'
        path = write(folder, ('path = "out/people.parquet"', output))
        for _ in range(2):
            run_job(path)
            with duckdb.connect(str(folder / "release.duckdb"), read_only=True) as con:
                assert con.execute("SELECT count(*) FROM people").fetchone() == (ROWS,)
        assert "people.manifest.json" in {p.name for p in (folder / "reports").iterdir()}

    def test_not_into_the_file_of_the_raw_rows(self, folder: Path) -> None:
        source = ('path = "people.parquet"', 'database = "people.duckdb"\ntable = "people"')
        output = ('path = "out/people.parquet"', 'database = "./people.duckdb"\ntable = "released"')
        with pytest.raises(errors.JobError, match="does not go into the file of the raw rows"):
            load_job(write(folder, source, output))

    def test_the_source_does_not_take_in_the_state(self, folder: Path) -> None:
        source = ('path = "people.parquet"', 'path = "**/*.parquet"')
        output = ('path = "out/people.parquet"', 'path = "out/people.csv"')
        with pytest.raises(errors.JobError, match=r"includes the state of the job.*\[nights\] state"):
            load_job(write(folder, source, output))

    def test_dated_exports_are_kept_for_a_while(self, folder: Path) -> None:
        path = write(folder, ('"out/people.parquet"', '"out/people-{date}.parquet"\nkeep = 2'))
        for day in (1, 2, 3):
            run_job(path, day=date(2026, 3, day))
        kept = sorted(p.name for p in (folder / "out").glob("*.parquet"))
        assert kept == ["people-2026-03-02.parquet", "people-2026-03-03.parquet"]
        assert len(list((folder / "out").glob("*.manifest.json"))) == 2

    @pytest.mark.parametrize(
        "named",
        ["out/people-{date}.parquet", "./out//{year}/{month}/{day}/people.parquet", "out/{day}.{month}.{year}.csv"],
    )
    def test_a_clock_that_was_set_back_removes_nothing_of_this_run(self, folder: Path, named: str) -> None:
        path = write(folder, ('"out/people.parquet"', f'"{named}"\nkeep = 1'))
        run_job(path, day=date(2026, 3, 2))
        own = Path(run_job(path, day=date(2026, 2, 28)).written["release"])
        assert own.is_file()
        assert verify_files(next(own.parent.glob(f"{own.stem}.manifest.json"))) == []
        assert len(exports(folder)) == 2
        run_job(path, day=date(2026, 3, 3))
        assert len(exports(folder)) == 1
        assert not own.exists()

    def test_an_earlier_day_made_again_removes_no_newer_night(self, folder: Path) -> None:
        path = write(folder, ('"out/people.parquet"', '"out/people-{date}.parquet"\nkeep = 2'))
        for day in (1, 2, 3):
            run_job(path, day=date(2026, 3, day))
        for day in (1, 2):
            run_job(path, day=date(2026, 1, day))
        assert exports(folder) == [f"people-2026-{d}.parquet" for d in ("01-02", "03-02", "03-03")]

    def test_old_exports_are_this_jobs_own(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DUCKANON_TEST_OUT", "o[u]t")
        named = '"${DUCKANON_TEST_OUT}/people-{date}.parquet"\nkeep = 1'
        small = write(folder, ('"out/people.parquet"', named.replace("-{", "-small-{"))).rename(folder / "small.toml")
        path = write(folder, ('"out/people.parquet"', named))
        for job, day in ((small, 1), (path, 1), (path, 2)):
            run_job(job, day=date(2026, 3, day))
        kept = sorted(p.name for p in (folder / "o[u]t").iterdir() if p.suffix == ".parquet")
        assert kept == ["people-2026-03-02.parquet", "people-small-2026-03-01.parquet"]

    def test_a_source_of_the_day(self, folder: Path) -> None:
        (folder / "2026-03-01").mkdir()
        pq.write_table(PEOPLE, folder / "2026-03-01" / "people.parquet")
        path = write(folder, ('path = "people.parquet"', 'path = "{date}/people.parquet"'))
        assert run_job(path, day=date(2026, 3, 1)).written
        with pytest.raises(errors.DataError, match="No file matches"):
            run_job(path, day=date(2026, 3, 2))


def exports(folder: Path) -> list[str]:
    return sorted(p.name for p in (folder / "out").rglob("*") if p.suffix in (".parquet", ".csv"))


class TestEnvironment:
    def test_variables(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DUCKANON_TEST_IN", "people")
        path = write(folder, ('path = "people.parquet"', 'path = "${DUCKANON_TEST_IN}.parquet"'))
        assert load_job(path).table().source.target == (str(folder / "people.parquet"),)

    def test_a_secret_is_shown_nowhere(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        secret = "hunter2"
        monkeypatch.setenv("DUCKANON_TEST_URI", f"postgresql://me:{secret}@127.0.0.1:1/db")
        path = write(folder, ('path = "people.parquet"', 'postgres = "${DUCKANON_TEST_URI}"\ntable = "people"'))
        job = load_job(path)
        assert secret not in repr(job)
        pytest.importorskip("adbc_driver_postgresql")
        with pytest.raises(errors.DuckanonError) as caught:
            run_job(path)
        assert secret not in str(caught.value)
        for file in folder.rglob("*"):
            assert not file.is_file() or secret.encode() not in file.read_bytes()

    def test_a_dollar_in_a_query_is_the_database_s(self, folder: Path) -> None:
        query = "SELECT * FROM people WHERE name <> '${X}'"
        text = ('path = "people.parquet"\n\n', f'database = "people.duckdb"\nquery = "{query}"\n')
        assert run_job(write(folder, text)).summary["found"]["rows_in"] == ROWS
