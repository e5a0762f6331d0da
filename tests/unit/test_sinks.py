"""Sinks: files, folders and tables hold exactly the rows that passed the gate, or nothing new at all."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import duckanon
from duckanon.errors import ConfigError, DataError, EngineError, PrivacyViolation
from duckanon.release import Release
from duckanon.sink import (
    CsvFile,
    DuckDBTable,
    ParquetFile,
    ParquetFolder,
    Sink,
    read_manifest,
    recover,
    require_apart,
    verify_files,
)
from duckanon.sink import folder as folder_module
from duckanon.sink.commit import aside_path, pending_path
from duckanon.verifying import verify_export

CANARY = "Zaphod Beeblebrox"
ILL = ["flu", "", None, 'g"o,u;t', "=1+1", "line\r\nbreak", " ü ", "NULL"]
N = 64
PEOPLE = pa.table(
    {
        "name": [CANARY] * N,
        "age": [20 + i % 16 for i in range(N)],
        "sex": [["F", "M", None, "a/b=c%\n"][i // 2 % 4] for i in range(N)],
        "ward": [i % 2 for i in range(N)],
        "ill": [ILL[i % 8] for i in range(N)],
        "cost": [i / 8 for i in range(N)],
    }
)
COLUMNS = ["age", "sex", "ward", "ill", "cost"]
KINDS = ["parquet", "csv", "folder", "table"]
REPORTS = {"json": "{}\n", "md": "# Report\n"}


def made(people: pa.Table = PEOPLE, **options: Any) -> Release:
    given = {"within": ["sex", "ward"], "k": 2, "sensitive": ["ill"], "insensitive": ["cost"], **options}
    return duckanon.anonymize(people, quasi_identifiers=["age", "sex", "ward"], **given)


@pytest.fixture(scope="module")
def release() -> Iterator[Release]:
    with made() as release:
        yield release


def make_sink(kind: str, folder: Path) -> Sink:
    makers: dict[str, Callable[[], Sink]] = {
        "parquet": lambda: ParquetFile(folder / "people.parquet"),
        "csv": lambda: CsvFile(folder / "people.csv"),
        "folder": lambda: ParquetFolder(folder / "people", ["SEX", "ward"]),
        "table": lambda: DuckDBTable(folder / "p.duckdb", "people", folder / "reports"),
    }
    return makers[kind]()


@pytest.fixture(params=KINDS)
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> Sink:
    return make_sink(request.param, tmp_path)


def put(sink: Sink, release: Release, run: str = "r1", reports: dict[str, str] = REPORTS) -> dict[str, Any]:
    return sink.publish(release, reports=reports, run={"run": run, "job": "people", "table": "people"})


def rows_of(table: Any) -> list[str]:
    return sorted(map(str, table.select(COLUMNS).to_pylist()))


def everything(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


class TestEverySink:
    def test_publishes_and_publishes_again(self, sink: Sink, release: Release, tmp_path: Path) -> None:
        assert not sink.exists()
        assert sink.published_run() is None
        for run in ("r1", "r2"):
            sink.require_writable()
            written = put(sink, release, run)
            assert sink.exists()
            assert sink.published_run() == run
            assert [p.read_text() for p in written["reports"]] == list(REPORTS.values())
            content = read_manifest(written["manifest"])
            assert content["run"] == {"run": run, "job": "people", "table": "people"}
            assert [c["name"] for c in content["columns"]] == COLUMNS
            assert verify_export(written["manifest"]).intact
        assert not list(tmp_path.rglob(".*"))

    def test_no_value_beside_the_release(self, sink: Sink, release: Release) -> None:
        written = put(sink, release)
        for path in (written["manifest"], *written["reports"]):
            for cell in (CANARY, "flu", "g\\", "=1+1", "a/b", "a%2F", "sex=F"):
                assert cell not in path.read_text()

    def test_the_gate_refuses_and_all_stays(
        self, sink: Sink, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise PrivacyViolation("refused")

        put(sink, release)
        before, run = everything(tmp_path), sink.published_run()
        monkeypatch.setattr("duckanon.release.check_release", refuse)
        monkeypatch.setattr(release, "digest", "another")
        with pytest.raises(PrivacyViolation, match="refused"):
            put(sink, release, "r2")
        assert sink.published_run() == run
        assert verify_export(tmp_path / "reports" if "duckdb" in sink.name else tmp_path).intact
        if "duckdb" not in sink.name:
            assert everything(tmp_path) == before

    def test_a_gate_that_refuses_a_first_release_leaves_nothing(
        self, sink: Sink, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise PrivacyViolation("refused")

        monkeypatch.setattr("duckanon.release.check_release", refuse)
        monkeypatch.setattr(release, "digest", "another")
        with pytest.raises(PrivacyViolation):
            put(sink, release)
        assert list(tmp_path.iterdir()) == []

    def test_fewer_reports_than_before(self, sink: Sink, release: Release) -> None:
        first = put(sink, release)["reports"]
        second = put(sink, release, "r2", {"json": "{}"})["reports"]
        assert second == first[:1]
        assert not first[1].exists()

    def test_a_source_among_what_is_written_is_refused(self, sink: Sink, tmp_path: Path) -> None:
        for pattern in [str(sink.paths[0]), str(tmp_path / "**" / "*"), str(tmp_path)]:
            with pytest.raises(ConfigError, match="among the source's own files"):
                require_apart(sink, [pattern])
        require_apart(sink, [str(tmp_path / "in" / "*.parquet"), "s3://bucket/**"])

    def test_killed_runs_folders_are_swept(self, sink: Sink, release: Release, tmp_path: Path) -> None:
        program = "import os, sys; from pathlib import Path; from duckanon.resources import PrivateFolder\n"
        program += "p = PrivateFolder(Path(sys.argv[1])); print(p.path, flush=True); os.kill(os.getpid(), 9)"
        place = tmp_path / "reports" if "duckdb" in sink.name else tmp_path
        place.mkdir(exist_ok=True)
        dead = subprocess.run([sys.executable, "-c", program, place], capture_output=True, text=True, check=False)
        put(sink, release)
        assert not Path(dead.stdout.strip()).exists()


class TestFolder:
    def test_reads_as_the_release(self, release: Release, tmp_path: Path) -> None:
        put(make_sink("folder", tmp_path), release)
        listing = f"SELECT * FROM read_parquet('{tmp_path}/people/**/*.parquet', hive_partitioning = true)"
        want = rows_of(release.to_arrow())
        assert rows_of(duckdb.sql(listing).to_arrow_table()) == want
        assert rows_of(ds.dataset(tmp_path / "people", partitioning="hive").to_table()) == want

    def test_one_file_for_each_partition_without_its_columns(self, release: Release, tmp_path: Path) -> None:
        put(make_sink("folder", tmp_path), release)
        names = sorted(str(p.relative_to(tmp_path / "people")) for p in tmp_path.rglob("*.parquet"))
        folders = ["sex=F", "sex=M", "sex=__HIVE_DEFAULT_PARTITION__", "sex=a%2Fb%3Dc%25%0A"]
        assert names == [f"{f}/ward={w}/part-0.parquet" for f in folders for w in (0, 1)]
        assert ds.dataset(tmp_path / "people" / names[0]).schema.names == ["age", "ill", "cost"]

    def test_the_manifest_counts_files_and_names_none(self, release: Release, tmp_path: Path) -> None:
        content = read_manifest(put(make_sink("folder", tmp_path), release)["manifest"])
        assert content["files"][0]["name"] == "**/*.parquet"
        assert content["files"][0]["files"] == 8
        assert content["partition_by"] == ["sex", "ward"]

    @pytest.mark.parametrize("damage", ["move", "add", "remove", "change", "report", "stranger", "link"])
    def test_whatever_is_changed_is_found(self, release: Release, tmp_path: Path, damage: str) -> None:
        manifest = put(make_sink("folder", tmp_path), release)["manifest"]
        folder = tmp_path / "people"
        part = folder / "sex=F" / "ward=0" / "part-0.parquet"
        if damage == "move":
            part.rename(folder / "sex=F" / "ward=1" / "part-1.parquet")
        elif damage == "add":
            (folder / "sex=F" / "part-1.parquet").write_bytes(part.read_bytes())
        elif damage == "remove":
            part.unlink()
        elif damage == "change":
            part.write_bytes(part.read_bytes()[:-1] + b"2")
        elif damage == "report":
            (folder / "_report.md").write_text("# Another\n")
        elif damage == "stranger":
            (folder / "sex=F" / "raw.csv").write_text(CANARY)
        else:
            (folder / "sex=M" / "x.parquet").symlink_to(part)
        assert len(verify_files(manifest)) == 1
        assert not verify_export(folder).intact

    @pytest.mark.parametrize("stranger", ["notes.txt", "people.parquet", "sex=F/notes.txt", "archive/x.parquet"])
    def test_a_folder_with_anything_else_in_it_is_refused(
        self, release: Release, tmp_path: Path, stranger: str
    ) -> None:
        sink = make_sink("folder", tmp_path)
        for _ in range(2):
            (tmp_path / "people" / stranger).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "people" / stranger).write_text("mine")
            with pytest.raises(ConfigError, match="not of a release"):
                put(sink, release)
            with pytest.raises(ConfigError, match="not of a release"):
                sink.require_writable()
            assert (tmp_path / "people" / stranger).read_text() == "mine"
            (tmp_path / "people" / stranger).unlink()
            for path in sorted((tmp_path / "people").glob("*"), reverse=True):
                path.rmdir()
        put(sink, release)

    def test_an_empty_folder_is_replaced_and_a_link_or_file_is_not(self, release: Release, tmp_path: Path) -> None:
        (tmp_path / "people").mkdir()
        put(make_sink("folder", tmp_path), release)
        (tmp_path / "people").rename(tmp_path / "elsewhere")
        (tmp_path / "people").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(ConfigError, match="is no folder"):
            put(make_sink("folder", tmp_path), release)

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ([], "at least one"),
            (["sex", "SEX"], "twice"),
            (["name"], "no published column"),
            (COLUMNS, "all published columns"),
        ],
    )
    def test_columns_that_do_not_do(self, release: Release, tmp_path: Path, columns: list[str], message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            put(ParquetFolder(tmp_path / "p", columns), release)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        ("value", "message"),
        [("", "told from NULL"), ("__HIVE_DEFAULT_PARTITION__", "told from NULL"), ("x" * 300, "long")],
    )
    def test_values_that_no_folder_can_have(self, tmp_path: Path, value: str, message: str) -> None:
        people = PEOPLE.set_column(2, "sex", pa.array([value] * N))
        with made(people) as release, pytest.raises(DataError, match=message) as caught:
            put(ParquetFolder(tmp_path / "p", ["sex"]), release)
        assert "xxx" not in str(caught.value)
        assert list(tmp_path.iterdir()) == []

    def test_too_many_partitions(self, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(folder_module, "MOST_PARTS", 7)
        with pytest.raises(ConfigError, match="would make 8 folders"):
            put(make_sink("folder", tmp_path), release)
        assert list(tmp_path.iterdir()) == []

    def test_without_an_atomic_swap(self, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(folder_module, "exchange", lambda *_: False)
        sink = make_sink("folder", tmp_path)
        for run in ("r1", "r2", "r3"):
            put(sink, release, run)
            assert sink.published_run() == run
        assert [p.name for p in tmp_path.iterdir()] == ["people"]

    def test_killed_between_two_renames_the_old_folder_comes_back(self, release: Release, tmp_path: Path) -> None:
        sink = make_sink("folder", tmp_path)
        put(sink, release)
        (tmp_path / "people").rename(aside_path(tmp_path / "people"))
        assert verify_export(tmp_path / "people").intact
        (tmp_path / "people").rename(aside_path(tmp_path / "people"))
        put(sink, release, "r2")
        assert sink.published_run() == "r2"
        assert [p.name for p in tmp_path.iterdir()] == ["people"]

    def test_a_failure_after_the_swap_puts_back_what_was_there(
        self, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sink = make_sink("folder", tmp_path)
        put(sink, release)
        real, before = folder_module.sync, everything(tmp_path)

        def broken(path: Path) -> None:
            if path == tmp_path:
                raise OSError(5, "broken")
            real(path)

        monkeypatch.setattr(folder_module, "sync", broken)
        with pytest.raises(EngineError):
            put(sink, release, "r2")
        assert everything(tmp_path) == before


class TestCsv:
    def test_is_what_the_standard_says(self, release: Release, tmp_path: Path) -> None:
        put(make_sink("csv", tmp_path), release)
        raw = (tmp_path / "people.csv").read_bytes()
        assert raw.startswith(b'age,"sex",ward,"ill",cost\r\n')
        with (tmp_path / "people.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, strict=True))
        shown = [["" if v is None else str(v) for v in row.values()] for row in release.to_arrow().to_pylist()]
        assert sorted(rows[1:]) == sorted(shown)

    def test_null_and_empty_text_differ(self, release: Release, tmp_path: Path) -> None:
        put(make_sink("csv", tmp_path), release)
        text = (tmp_path / "people.csv").read_text()
        assert text.count(',"",') == ILL.count("") * N // 8
        query = "SELECT count(*) FILTER (ill IS NULL), count(*) FILTER (ill = '') FROM read_csv(?"
        query += ", allow_quoted_nulls = false)"
        assert duckdb.execute(query, [str(tmp_path / "people.csv")]).fetchall() == [(8, 8)]

    def test_a_file_that_holds_other_rows_is_refused(
        self, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from duckanon.sink import files

        real = files._write_csv

        def damaged(*arguments: Any) -> None:
            real(*arguments)
            path = arguments[-1]
            path.write_bytes(path.read_bytes().replace(b'"flu"', b'"flx"', 1))

        monkeypatch.setattr(files, "_write_csv", damaged)
        with pytest.raises(PrivacyViolation, match="does not hold the rows"):
            put(make_sink("csv", tmp_path), release)
        assert list(tmp_path.iterdir()) == []

    def test_a_nul_in_a_text(self, tmp_path: Path) -> None:
        people = PEOPLE.set_column(4, "ill", pa.array(["a\0b", "c"] * (N // 2)))
        with made(people) as release:
            put(make_sink("csv", tmp_path), release)
        assert verify_export(tmp_path).intact
        assert (tmp_path / "people.csv").read_bytes().count(b'"a\0b"') == N // 2

    def test_one_column_of_which_some_are_null(self, tmp_path: Path) -> None:
        people = pa.table({"age": [1, 1, None, None] * 4})
        with duckanon.anonymize(people, quasi_identifiers=["age"], k=2) as release:
            put(CsvFile(tmp_path / "p.csv"), release)
        assert verify_export(tmp_path).intact

    def test_does_not_take_the_manifest_of_a_parquet_file(self, release: Release, tmp_path: Path) -> None:
        put(make_sink("parquet", tmp_path), release)
        with pytest.raises(ConfigError, match=r"belongs to 'people\.parquet'"):
            put(make_sink("csv", tmp_path), release)
        assert not (tmp_path / "people.csv").exists()

    @pytest.mark.parametrize("name", ["p.parquet", "p", ".csv"])
    def test_other_suffixes(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(ConfigError, match=r"must end in \.csv"):
            CsvFile(tmp_path / name)


class TestTable:
    def test_has_the_rows_and_tells_its_run(self, release: Release, tmp_path: Path) -> None:
        put(make_sink("table", tmp_path), release)
        with duckdb.connect(str(tmp_path / "p.duckdb"), read_only=True) as connection:
            assert rows_of(connection.sql("FROM people").to_arrow_table()) == rows_of(release.to_arrow())
            ((comment,),) = connection.sql("SELECT comment FROM duckdb_tables()").fetchall()
        assert json.loads(comment)["run"] == "r1"

    def test_other_tables_stay(self, release: Release, tmp_path: Path) -> None:
        with duckdb.connect(str(tmp_path / "p.duckdb")) as connection:
            connection.execute("CREATE TABLE other AS SELECT 42 AS x; CREATE TABLE people AS SELECT 1 AS mine")
        put(make_sink("table", tmp_path), release)
        with duckdb.connect(str(tmp_path / "p.duckdb")) as connection:
            assert connection.sql("FROM other").fetchall() == [(42,)]
            assert connection.sql("FROM people").columns == COLUMNS

    def test_nothing_raw_is_in_the_file(self, release: Release, tmp_path: Path) -> None:
        put(make_sink("table", tmp_path), release)
        assert CANARY.encode() not in (tmp_path / "p.duckdb").read_bytes()
        assert not list(tmp_path.glob("*.wal"))

    def test_a_database_that_somebody_else_has_open(self, release: Release, tmp_path: Path) -> None:
        sink = make_sink("table", tmp_path)
        put(sink, release)
        program = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
        with subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "p.duckdb")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "open\n"
            for work in (sink.require_writable, lambda: put(sink, release, "r2")):
                with pytest.raises(EngineError, match=r"'p\.duckdb' is in use by another process"):
                    work()
            other.communicate()
        assert sink.published_run() == "r1"
        put(sink, release, "r3")
        assert verify_export(tmp_path / "reports").intact

    @pytest.mark.parametrize("decided", [True, False])
    @pytest.mark.parametrize("first", [True, False])
    def test_the_database_decides_on_the_files(
        self, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decided: bool, first: bool
    ) -> None:
        sink = make_sink("table", tmp_path)
        if not first:
            put(sink, release)
        from duckanon.sink import tables

        class Killed(BaseException):
            pass

        def die(*_: object, **__: object) -> None:
            raise Killed

        with monkeypatch.context() as patched:
            patched.setattr(tables.DuckDBTable, "_take_back", lambda *_: None)
            if decided:
                patched.setattr(tables.TableReports, "finished", die)
            else:
                real = tables.TableReports.prepared
                patched.setattr(tables.TableReports, "prepared", lambda *a, **k: [real(*a, **k), die()])
            with pytest.raises(Killed):
                put(sink, release, "r2")
        assert pending_path(tmp_path / "reports" / "people").exists()
        assert sink.published_run() == ("r2" if decided else None if first else "r1")
        if decided or not first:
            found = verify_export(tmp_path / "reports")
            assert found.intact
            assert found.exports[0].run == sink.published_run()
        sink.require_writable()
        assert not pending_path(tmp_path / "reports" / "people").exists()

    def test_changed_rows_are_found(self, release: Release, tmp_path: Path) -> None:
        put(make_sink("table", tmp_path), release)
        manifest = tmp_path / "reports" / "people.manifest.json"
        changes = ("UPDATE people SET cost = 0 WHERE cost = 1", "COMMENT ON TABLE people IS NULL", "DROP TABLE people")
        for change in changes:
            with duckdb.connect(str(tmp_path / "p.duckdb")) as connection:
                connection.execute(change)
            assert len(verify_export(manifest).problems) == 1

    def test_a_database_that_moved(self, release: Release, tmp_path: Path) -> None:
        manifest = put(make_sink("table", tmp_path), release)["manifest"]
        (tmp_path / "far").mkdir()
        (tmp_path / "p.duckdb").rename(tmp_path / "far" / "q.duckdb")
        assert "say where it is" in verify_export(manifest).problems[0]
        assert verify_export(manifest, database=tmp_path / "far" / "q.duckdb").intact

    @pytest.mark.parametrize("name", ["", "../x", "a/b", ".x", "a\0b"])
    def test_names_that_no_file_can_have(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(ConfigError, match="name of a file"):
            DuckDBTable(tmp_path / "p.duckdb", name, tmp_path)

    def test_a_strange_name(self, release: Release, tmp_path: Path) -> None:
        sink = DuckDBTable(tmp_path / "p.duckdb", """a"; DROP TABLE 'x' \N{SNOWMAN}""", tmp_path / "reports")
        put(sink, release)
        assert sink.published_run() == "r1"
        assert verify_export(tmp_path / "reports").intact

    def test_not_into_the_database_that_is_read(self, tmp_path: Path) -> None:
        with duckdb.connect(str(tmp_path / "p.duckdb")) as connection:
            connection.register("given", PEOPLE)
            connection.execute("CREATE TABLE raw AS FROM given")
        source = duckanon.Source.database(tmp_path / "p.duckdb", table="raw")
        with (
            duckanon.anonymize(source, quasi_identifiers=["age"], k=2) as release,
            pytest.raises(ConfigError, match="source's own files"),
        ):
            put(make_sink("table", tmp_path), release)


class TestRecover:
    def test_nothing_to_do_writes_nothing(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o500)
        assert not recover(tmp_path / "p.parquet")
        tmp_path.chmod(0o700)

    @pytest.mark.parametrize("journal", [None, "", "[]", '{"names": ["../x"], "removed": [], "run": null}'])
    def test_a_commit_without_a_journal_that_can_be_trusted_is_removed(
        self, release: Release, tmp_path: Path, journal: str | None
    ) -> None:
        put(make_sink("parquet", tmp_path), release)
        before = everything(tmp_path)
        pending = pending_path(tmp_path / "people.parquet")
        pending.mkdir(mode=0o700)
        (pending / "people.parquet").write_text("torn")
        if journal is not None:
            (pending / "journal.json").write_text(journal)
        assert recover(tmp_path / "people.parquet")
        assert everything(tmp_path) == before
        assert not pending.exists()

    def test_a_link_is_not_followed(self, release: Release, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        pending_path(tmp_path / "people.parquet").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(EngineError, match="another user"):
            put(make_sink("parquet", tmp_path), release)
        assert (tmp_path / "elsewhere").is_dir()
