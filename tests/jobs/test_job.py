"""Jobs: errors name their table and key, and exit codes tell which kind it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from duckanon import errors
from duckanon.algorithms import Optimal
from duckanon.jobs import Job, exit_code, load_job, run_job
from tests.jobs.jobs import JOB, files, fill, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fill(tmp_path)


class TestLoad:
    def test_everything(self, folder: Path) -> None:
        job = load_job(write(folder))
        assert isinstance(job, Job)
        assert (job.name, job.limits, job.seconds, job.recoding) == ("job", {}, None, "fresh")
        assert job.state == folder / "job.state"
        table = job.table()
        assert table.name == "job"
        assert table.target.sink.paths[0] == folder / "out" / "people.parquet"
        assert table.reports == ("json", "md", "html")
        assert table.overwrite is True
        assert table.parameters == {
            "entity_key": "id",
            "identifiers": ["name"],
            "quasi_identifiers": ["age", "town"],
            "sensitive": ["ill"],
            "unlisted": "error",
            "k": 4,
            "suppression_limit": 0.1,
            "hierarchies": {"town": "town.csv", "age": {"rule": "intervals", "width": 5, "factors": [2]}},
            "algorithm": table.request.algorithm,
        }

    def test_paths_start_at_the_job_file(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir("/")
        assert load_job(write(folder)).table().source.target == (str(folder / "people.parquet"),)
        monkeypatch.chdir(folder)
        assert load_job("job.toml").table().source.target == (str(folder / "people.parquet"),)

    def test_other_sources(self, folder: Path) -> None:
        many = load_job(
            write(folder, ('"people.parquet"\n\n[roles]', '["a/*.csv", "/b.csv", "s3://c/d.csv"]\n\n[roles]'))
        )
        assert many.table().source.target == (str(folder / "a/*.csv"), "/b.csv", "s3://c/d.csv")
        other = load_job(write(folder, ('path = "people.parquet"\n\n', 'path = "x"\nformat = "csv"\nhive = true\n')))
        assert dict(other.table().source.options) == {"format": "csv", "hive": True}

    def test_limits(self, folder: Path) -> None:
        (folder / "spill").mkdir()
        limits = '[limits]\nmemory = "2GB"\nthreads = 2\ntemp_directory = "spill"\n[output]'
        job = load_job(write(folder, ("[output]", limits)))
        assert job.limits == {"memory": "2GB", "threads": 2, "temp_directory": folder / "spill"}

    def test_steering(self, folder: Path) -> None:
        algorithm = '[algorithm]\nname = "optimal"\nmetric = "precision"\n'
        steering = (
            "[steering]\nmin_levels = {age = 1}\nmax_levels.town = 1\niterative = true\n[steering.weights]\nAge = 2\n"
        )
        job = load_job(write(folder, ('[algorithm]\nname = "datafly"\nstop = "limit"\n', algorithm + steering))).table()
        assert job.request.algorithm == Optimal(metric="precision")
        asked = {
            "min_levels": {"age": 1},
            "max_levels": {"town": 1},
            "iterative": True,
            "weights": {"Age": 2},
        }
        assert {key: job.parameters[key] for key in asked} == asked


# (what is changed, what the error says)
WRONG: dict[str, tuple[str, str, str]] = {
    "unknown table": ("[privacy]", "[privcy]", r"unknown table \[privcy\]\. Did you mean 'privacy'\?"),
    "key outside of tables": ("\n[source]", "k = 5\n[source]", r"unknown table \[k\]"),
    "table that is none": ("\n[source]", "limits = 5\n[source]", r"\[limits\] must be a table\. Got 5"),
    "unknown key": ("k = 4", "kk = 4", r"\[privacy\] has no key 'kk'\. Did you mean 'k'\? Keys: k,"),
    "seed": ("k = 4", "k = 4\nseed = 1", r"\[privacy\] has no key 'seed'"),
    "misspelt role": ("sensitive =", "sensitiv =", r"\[roles\] has no key 'sensitiv'\. Did you mean 'sensitive'\?"),
    "text for a list": (
        '["age", "town"]',
        '"age"',
        r"\[roles\] quasi_identifiers must be a list of texts\. Got 'age'",
    ),
    "numbers in a list": ('["ill"]', "[1]", r"\[roles\] sensitive must be a list of texts\. Got a list"),
    "entity key": ('"id"', '["id"]', r"\[roles\] entity_key must be a text\. Got a list"),
    "no quasi-identifiers": ('quasi_identifiers = ["age", "town"]', "", r"\[roles\] needs quasi_identifiers"),
    "unlisted": ("entity_key", 'unlisted = "keep"\nentity_key', r"unlisted must be 'error' or 'drop'\. Got 'keep'"),
    "k text": ("k = 4", 'k = "4"', r"\[privacy\] k must be a whole number of at least 1\. Got '4'"),
    "k zero": ("k = 4", "k = 0", r"\[privacy\] k must be a whole number"),
    "k true": ("k = 4", "k = true", r"\[privacy\] k must be a whole number of at least 1\. Got true"),
    "no promise": ("k = 4", "", r"\[privacy\] No privacy model is given"),
    "unknown model": ("k = 4", 'models = ["l_diverse(2)"]', r"\[privacy\] Unknown model 'l_diverse'\. Did you mean"),
    "limit in percent": ("0.1", "5", r"\[privacy\] suppression_limit must be a fraction between 0 and 1\. Got 5"),
    "limit nan": ("0.1", "nan", r"\[privacy\] suppression_limit must be a fraction"),
    "on_unknown": ("k = 4", 'k = 4\non_unknown = "drop"', r"\[privacy\] on_unknown must be 'error' or 'top'"),
    "algorithm": ('"datafly"', '"dataflie"', r"\[algorithm\] Unknown algorithm 'dataflie'\. Did you mean 'datafly'\?"),
    "algorithm number": ('"datafly"', "7", r"\[algorithm\] name must be a text\. Got 7"),
    "algorithm key": ("stop =", "stopp =", r"\[algorithm\] datafly has no parameter 'stopp'\. Did you mean 'stop'\?"),
    "algorithm value": ('"limit"', '"never"', r"\[algorithm\] .*stop"),
    "steering key": ("[output]", "[steering]\nlevel = {}\n[output]", r"\[steering\] has no key 'level'\. Did you mean"),
    "steering column": (
        "[output]",
        "[steering]\nlevels = {agee = 1}\n[output]",
        r"\[steering\] levels names 'agee', which is no quasi-identifier\. Did you mean 'age'\?",
    ),
    "steering level": (
        "[output]",
        "[steering]\nmax_levels.age = 1.5\n[output]",
        r"\[steering\] max_levels of 'age' must",
    ),
    "steering levels": (
        "[output]",
        "[steering]\nlevels = 3\n[output]",
        r"\[steering\] levels must be a table .* Got 3",
    ),
    "steering weight": (
        "[output]",
        "[steering]\nweights.age = 0\n[output]",
        r"\[steering\] The weight of 'age' must be",
    ),
    "steering both": (
        "[output]",
        "[steering]\nlevels.age = 1\nmin_levels.age = 1\n[output]",
        r"\[steering\] levels fixes every level",
    ),
    "iterative": ("[output]", "[steering]\niterative = 1\n[output]", r"\[steering\] iterative must be true or false"),
    "metric": (
        'name = "datafly"\nstop = "limit"',
        'name = "ola"\nmetric = "los"',
        r"\[algorithm\] .*Did you mean 'loss'",
    ),
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
    "suffix": ("out/people.parquet", "out/people.xlsx", r"\[output\] path must end in \.parquet or \.csv"),
    "no output": (
        'path = "out/people.parquet"',
        "overwrite = true",
        r"\[output\] needs one of path, database and postgres",
    ),
    "two outputs": ("[output]", '[output]\ndatabase = "x"', r"\[output\] needs one of path, database and postgres"),
    "database without table": ('path = "out/people.parquet"', 'database = "x"', r"\[output\] database needs table"),
    "table of a file": ("[output]", '[output]\ntable = "x"', r"\[output\] table goes with database or postgres"),
    "partitions of a table": (
        'path = "out/people.parquet"',
        'database = "x"\ntable = "t"\npartition_by = ["town"]',
        r"\[output\] partition_by goes with path",
    ),
    "partitions of a file": ("[output]", '[output]\npartition_by = ["town"]', r"path is a folder where partition_by"),
    "keep without date": ("[output]", "[output]\nkeep = 3", r"\[output\] keep needs a path with \{date\}"),
    "unknown place": ("out/people", "out/{week}/people", r"\[output\] path has \{week\}, which is none of \{date\}"),
    "variable that is not set": (
        "people.parquet",
        "${DUCKANON_TEST_NOT_SET}/people.parquet",
        r"\[source\] path needs the environment variable DUCKANON_TEST_NOT_SET",
    ),
    "variable without a name": (
        "people.parquet",
        "${}/people.parquet",
        r"\[source\] path has a variable without a name",
    ),
    "report": (
        "[output]",
        '[output]\nreport = ["pdf"]',
        r"\[output\] report must be a list of 'json', 'md' and 'html'",
    ),
    "expect metric": (
        "[output]",
        "[expect]\nmax_loss = {nccp = 1}\n[output]",
        r"\[expect\] max_loss names 'nccp'.*'ncp'",
    ),
    "expect rows": ("[output]", "[expect]\nmin_rows = 9\nmax_rows = 3\n[output]", r"\[expect\] min_rows is larger"),
    "expect share": (
        "[output]",
        "[expect]\nrows_may_fall = 50\n[output]",
        r"\[expect\] rows_may_fall must be a fraction between 0 and 1",
    ),
    "recoding": (
        "[output]",
        '[nights]\nrecoding = "cold"\n[output]',
        r"\[nights\] recoding must be 'fresh' or 'frozen'",
    ),
    "time": ("[output]", '[limits]\ntime = "soon"\n[output]', r"\[limits\] time must be a time such as '90min'"),
    "overwrite": ("[output]", '[output]\noverwrite = "no"', r"\[output\] overwrite must be true or false\. Got 'no'"),
    "no source": ('path = "people.parquet"', "", r"\[source\] is missing or empty"),
    "two sources": (
        'path = "people.parquet"',
        'path = "x.csv"\ndatabase = "y"',
        r"\[source\] needs one of path, database and postgres",
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
def test_an_error_has_its_exit_code(error: BaseException | None, code: int) -> None:
    assert exit_code(error) == code
