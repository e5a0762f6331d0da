"""Jobs: errors name their table and key, a run publishes all or nothing, and exit codes tell which it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duckanon import errors
from duckanon.job import Job, exit_code, load_job, plan_job, run_job
from duckanon.sink import locked, read_manifest, verify_files

CANARY = "Zaphod Beeblebrox"
ROWS = 40
PEOPLE = pa.table(
    {
        "id": list(range(1000, 1000 + ROWS)),
        "name": [CANARY] * ROWS,
        "age": [20 + i % 20 for i in range(ROWS)],
        "town": ["Bonn", "Lyon"] * (ROWS // 2),
        "ill": ["flu", "gout", "mumps", "flu"] * (ROWS // 4),
    }
)
JOB = """
[source]
path = "people.parquet"

[roles]
entity_key = "id"
identifiers = ["name"]
quasi_identifiers = ["age", "town"]
sensitive = ["ill"]

[hierarchies]
town = "town.csv"

[hierarchies.age]
rule = "intervals"
width = 5
factors = [2]

[privacy]
k = 4
suppression_limit = 0.1

[algorithm]
name = "datafly"
stop = "limit"

[output]
path = "out/people.parquet"
"""
FILES = ["people.manifest.json", "people.parquet", "people.report.json", "people.report.md"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    (tmp_path / "town.csv").write_text("Bonn;DE;*\nLyon;FR;*\n")
    return tmp_path


def write(folder: Path, *changes: tuple[str, str], text: str = JOB) -> Path:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "job.toml"
    path.write_text(text)
    return path


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def no_work(event: object) -> None:
    raise AssertionError("the work was begun although it cannot be published")


class TestLoad:
    def test_everything(self, folder: Path) -> None:
        job = load_job(write(folder))
        assert isinstance(job, Job)
        assert job.output == folder / "out" / "people.parquet"
        assert job.reports == ("json", "md")
        assert job.overwrite is True
        assert job.limits == {}
        assert job.roles["unlisted"] == "error"
        assert job.anonymize_arguments() == {
            "entity_key": "id",
            "identifiers": ["name"],
            "quasi_identifiers": ["age", "town"],
            "sensitive": ["ill"],
            "unlisted": "error",
            "k": 4,
            "suppression_limit": 0.1,
            "hierarchies": {"town": "town.csv", "age": {"rule": "intervals", "width": 5, "factors": [2]}},
            "algorithm": job.algorithm,
        }

    def test_paths_start_at_the_job_file(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir("/")
        assert load_job(write(folder)).source.target == (str(folder / "people.parquet"),)
        monkeypatch.chdir(folder)
        assert load_job("job.toml").source.target == (str(folder / "people.parquet"),)

    def test_other_sources(self, folder: Path) -> None:
        many = load_job(
            write(folder, ('"people.parquet"\n\n[roles]', '["a/*.csv", "/b.csv", "s3://c/d.csv"]\n\n[roles]'))
        )
        assert many.source.target == (str(folder / "a/*.csv"), "/b.csv", "s3://c/d.csv")
        other = load_job(write(folder, ('path = "people.parquet"\n\n', 'path = "x"\nformat = "csv"\nhive = true\n')))
        assert dict(other.source.options) == {"format": "csv", "hive": True}

    def test_limits(self, folder: Path) -> None:
        (folder / "spill").mkdir()
        limits = '[limits]\nmemory = "2GB"\nthreads = 2\ntemp_directory = "spill"\n[output]'
        job = load_job(write(folder, ("[output]", limits)))
        assert job.limits == {"memory_limit": "2GB", "threads": 2, "temp_directory": folder / "spill"}


# (what is changed, what the error says)
WRONG: dict[str, tuple[str, str, str]] = {
    "unknown table": ("[privacy]", "[privcy]", r"unknown table \[privcy\]\. Did you mean 'privacy'\?"),
    "key outside of tables": ("\n[source]", "k = 5\n[source]", r"unknown table \[k\]"),
    "table that is none": ("\n[source]", "limits = 5\n[source]", r"\[limits\] must be a table\. Got 5"),
    "unknown key": ("k = 4", "kk = 4", r"\[privacy\] has no key 'kk'\. Did you mean 'k'\? Keys: k,"),
    "seed": ("k = 4", "k = 4\nseed = 1", r"\[privacy\] has no key 'seed'"),
    "misspelt role": ("sensitive =", "sensitiv =", r"\[roles\] has no key 'sensitiv'\. Did you mean 'sensitive'\?"),
    "text for a list": ('["age", "town"]', '"age"', r"\[roles\] quasi_identifiers must be a list of texts\. Got 'age'"),
    "numbers in a list": ('["ill"]', "[1]", r"\[roles\] sensitive must be a list of texts\. Got a list"),
    "entity key": ('"id"', '["id"]', r"\[roles\] entity_key must be a text\. Got a list"),
    "no quasi-identifiers": ('quasi_identifiers = ["age", "town"]', "", r"\[roles\] needs quasi_identifiers"),
    "unlisted": ("entity_key", 'unlisted = "keep"\nentity_key', r"unlisted must be 'error' or 'drop'\. Got 'keep'"),
    "k text": ("k = 4", 'k = "4"', r"\[privacy\] k must be a whole number of at least 1\. Got '4'"),
    "k zero": ("k = 4", "k = 0", r"\[privacy\] k must be a whole number"),
    "k true": ("k = 4", "k = true", r"\[privacy\] k must be a whole number of at least 1\. Got true"),
    "no promise": ("k = 4", "", r"\[privacy\] Nothing is promised"),
    "unknown model": ("k = 4", "l = 2", r"\[privacy\] l=\.\.\.: this version has no model l_diversity"),
    "limit in percent": ("0.1", "5", r"\[privacy\] suppression_limit is a fraction between 0 and 1\. Got 5"),
    "limit nan": ("0.1", "nan", r"\[privacy\] suppression_limit is a fraction"),
    "on_unknown": ("k = 4", 'k = 4\non_unknown = "drop"', r"\[privacy\] on_unknown must be 'error' or 'top'"),
    "algorithm": ('"datafly"', '"dataflie"', r"\[algorithm\] Unknown algorithm 'dataflie'\. Did you mean 'datafly'\?"),
    "algorithm number": ('"datafly"', "7", r"\[algorithm\] name must be a text\. Got 7"),
    "algorithm key": ("stop =", "stopp =", r"\[algorithm\] datafly has no parameter 'stopp'\. Did you mean 'stop'\?"),
    "algorithm value": ('"limit"', '"never"', r"\[algorithm\] .*stop"),
    "hierarchy of nobody": (
        "town =",
        "twon =",
        r"\[hierarchies\] 'twon' is no quasi-identifier .* Did you mean 'town'",
    ),
    "hierarchy number": (
        '"town.csv"',
        "3",
        r"\[hierarchies\] town must be a name, a file or a table with a rule\. Got 3",
    ),
    "suffix": ("out/people.parquet", "out/people.csv", r"\[output\] path must end in \.parquet"),
    "no output": ('path = "out/people.parquet"', "overwrite = true", r"\[output\] needs path"),
    "report": ("[output]", '[output]\nreport = ["html"]', r"\[output\] report must be a list of 'json' and 'md'"),
    "overwrite": ("[output]", '[output]\noverwrite = "no"', r"\[output\] overwrite must be true or false\. Got 'no'"),
    "no source": ('path = "people.parquet"', "", r"\[source\] is missing or empty"),
    "two sources": (
        'path = "people.parquet"',
        'path = "x.csv"\ndatabase = "y"',
        r"\[source\] needs either path or database",
    ),
    "table of a path": ('path = "people.parquet"', 'path = "x"\ntable = "y"', r"table and query go with database"),
    "database alone": ('path = "people.parquet"', 'database = "x"', r"\[source\] database needs either table or query"),
    "database format": (
        'path = "people.parquet"',
        'database = "x"\ntable = "t"\nformat = "csv"',
        r"\[source\] format goes with path",
    ),
    "format": (
        'path = "people.parquet"',
        'path = "x"\nformat = "xls"',
        r"\[source\] format must be 'parquet' or 'csv'",
    ),
    "no paths": ('"people.parquet"\n\n', "[]\n", r"\[source\] path must be a path or a list of paths"),
    "memory": ("[output]", '[limits]\nmemory = "much"\n[output]', r"\[limits\] memory must be a size such as '2GB'"),
    "threads": ("[output]", "[limits]\nthreads = 0\n[output]", r"\[limits\] threads must be a whole number"),
    "temp": ("[output]", '[limits]\ntemp_directory = "no"\n[output]', r"\[limits\] temp_directory is not a folder"),
    "over the source": ("out/people.parquet", "people.parquet", r"among the files of \[source\]"),
    "syntax": ("k = 4", "k = ", r"not valid TOML: .*line 20"),
    "twice": ("k = 4", "k = 4\nk = 5", r"not valid TOML: .*line 2\d"),
}


class TestWrongJobs:
    @pytest.mark.parametrize("case", WRONG)
    def test_is_said(self, folder: Path, case: str) -> None:
        old, new, message = WRONG[case]
        path = write(folder, (old, new))
        before = files(folder)
        with pytest.raises(errors.JobError, match=r"^job\.toml: .*" + message) as caught:
            run_job(path)
        assert exit_code(caught.value) == 2
        assert files(folder) == before

    @pytest.mark.parametrize("table", ["source", "roles", "privacy", "output"])
    def test_missing_table(self, folder: Path, table: str) -> None:
        start = JOB.index(f"[{table}]")
        end = JOB.find("\n[", start)
        with pytest.raises(errors.JobError, match=rf"\[{table}\]"):
            load_job(write(folder, text=JOB[:start] + JOB[end:] if end > 0 else JOB[:start]))

    def test_no_file(self, folder: Path) -> None:
        with pytest.raises(errors.JobError, match=r"nowhere\.toml: there is no such job file"):
            load_job(folder / "nowhere.toml")
        with pytest.raises(errors.JobError, match="cannot be read"):
            load_job(folder)
        (folder / "job.toml").write_bytes(b"\xff")
        with pytest.raises(errors.JobError, match="not UTF-8"):
            load_job(folder / "job.toml")

    @pytest.mark.parametrize(
        ("source", "output", "bad"),
        [
            ("data", "data/p.parquet", True),
            ("data", "data/deep/p.parquet", True),
            ("data/*.parquet", "data/p.parquet", True),
            ("data/*.parquet", "data/out/p.parquet", False),
            ("data/**/*.parquet", "data/out/p.parquet", True),
            ("data/*.parquet", "out/p.parquet", False),
            ("data/*.csv", "data/p.parquet", False),
            ("data/../out/p.parquet", "out/p.parquet", True),
            ("da?a/[pq].parquet", "data/p.parquet", True),
        ],
    )
    def test_a_release_is_not_written_among_its_sources(
        self, folder: Path, source: str, output: str, bad: bool
    ) -> None:
        (folder / "data").mkdir()
        path = write(folder, ("out/people.parquet", output), ('path = "people.parquet"', f'path = "{source}"'))
        if bad:
            with pytest.raises(errors.JobError, match="the next run would read its own release"):
                load_job(path)
        else:
            load_job(path)


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
        assert list(dict.fromkeys(steps)) == ["encode", "search", "recode", "gate", "write"]
        assert result.job.path == folder / "job.toml"

    def test_twice_gives_the_same_rows(self, folder: Path) -> None:
        first = pq.read_table(run_job(write(folder)).written["release"]).to_pylist()
        second = pq.read_table(run_job(folder / "job.toml").written["release"]).to_pylist()
        assert sorted(map(str, first)) == sorted(map(str, second))

    def test_no_value_of_the_data_beside_the_release(self, folder: Path) -> None:
        written = run_job(write(folder)).written
        for path in (written["manifest"], *written["reports"]):
            text = path.read_text()
            for cell in (CANARY, "Bonn", "Lyon", "flu", "gout", "1007"):
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

    def test_reports_that_were_asked_for(self, folder: Path) -> None:
        run_job(write(folder, ("[output]", "[output]\nreport = []")))
        assert sorted(p.name for p in (folder / "out").iterdir()) == FILES[:2]

    def test_no_overwriting(self, folder: Path) -> None:
        path = write(folder, ("[output]", "[output]\noverwrite = false"))
        run_job(path)
        before = files(folder)
        with pytest.raises(errors.JobError, match=r"'people\.parquet' is there already, and overwrite = false"):
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
    "a column less": (remove_column, errors.RoleError, 2),
    "a value that the hierarchy does not know": (drop_towns, errors.UnknownValueError, 3),
    "a hierarchy that is none": (ragged, errors.HierarchyError, 2),
    "no rows": (empty, errors.DataError, 3),
    "fewer rows than k": (few, errors.InfeasibleError, 4),
    "one person only": (one_person, errors.InfeasibleError, 4),
    "a torn file": (torn, errors.DataError, 3),
    "no file": (remove, errors.DataError, 3),
}


class TestBadNights:
    @pytest.mark.parametrize("night", NIGHTS)
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

    @pytest.mark.parametrize("night", NIGHTS)
    def test_the_first_night_leaves_nothing(self, folder: Path, night: str) -> None:
        change, error, _ = NIGHTS[night]
        change(folder)
        with pytest.raises(error):
            run_job(write(folder))
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

        monkeypatch.setattr("duckanon.release.Release.verify", refuse)
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


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (None, 0),
        (errors.ConfigError(""), 2),
        (errors.JobError(""), 2),
        (errors.RoleError(""), 2),
        (errors.ParameterError(""), 2),
        (errors.HierarchyError(""), 2),
        (errors.UnsupportedError(""), 2),
        (errors.DataError(""), 3),
        (errors.UnlistedColumnError(""), 3),
        (errors.UnknownValueError(""), 3),
        (errors.InfeasibleError(""), 4),
        (errors.PrivacyViolation(""), 5),
        (errors.EngineError(""), 6),
        (OSError(), 6),
        (PermissionError(), 6),
        (MemoryError(), 6),
        (KeyboardInterrupt(), 130),
        (ZeroDivisionError(), 1),
        (errors.DuckanonError(""), 1),
    ],
)
def test_exit_codes(error: BaseException | None, code: int) -> None:
    assert exit_code(error) == code
