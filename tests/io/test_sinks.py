"""Sinks: files, folders and tables hold exactly the rows that passed the gate, or nothing new at all."""

from __future__ import annotations

import csv
import os
import stat
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
from duckanon.io import disk
from duckanon.io.disk import take_rights
from duckanon.io.sinks import CsvFile, ParquetFile, ParquetFolder, Sink, read_manifest, require_apart, verify_files
from duckanon.io.sinks import folder as folder_module
from duckanon.io.sinks.commit import aside_path
from duckanon.release.release import Release
from duckanon.release.verify import verify_export
from tests.io.sink_cases import (
    CANARY,
    COLUMNS,
    ILL,
    KINDS,
    PEOPLE,
    REPORTS,
    N,
    everything,
    made,
    make_sink,
    put,
    rows_of,
)


@pytest.fixture(scope="module")
def release() -> Iterator[Release]:
    with made() as release:
        yield release


@pytest.fixture(params=KINDS)
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> Sink:
    return make_sink(request.param, tmp_path)


def modes(folder: Path) -> dict[str, int]:
    return {str(p.relative_to(folder)): stat.S_IMODE(p.stat().st_mode) for p in folder.rglob("*")}


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

    def test_rights_that_its_owner_took_away_stay_away(self, sink: Sink, release: Release, tmp_path: Path) -> None:
        put(sink, release, reports={"json": "{}"})
        usual = modes(tmp_path)
        for path in tmp_path.rglob("*"):
            path.chmod(0o750 if path.is_dir() else 0o640 if "manifest" in path.name else 0o600)
        narrowed = modes(tmp_path)
        assert narrowed != usual
        put(sink, release, "r2")
        added = next(p for p in tmp_path.rglob("*report.md"))
        assert not stat.S_IMODE(added.stat().st_mode) & 0o007  # new, and no more open than what it is beside
        found = modes(tmp_path)
        if "duckdb" not in sink.name and sink.name == "people":  # names of files below differ from night to night
            assert not any(mode & 0o027 for mode in found.values())
        else:
            assert {name: found[name] for name in narrowed} == narrowed
        assert verify_export(tmp_path / "reports" if "duckdb" in sink.name else tmp_path).intact

    def test_rights_that_somebody_added_are_not_passed_on(self, sink: Sink, release: Release, tmp_path: Path) -> None:
        put(sink, release)
        usual = modes(tmp_path)
        for path in tmp_path.rglob("*"):
            if "duckdb" not in path.name and path.name != "reports":  # these are changed in place
                path.chmod(0o777)
        put(sink, release, "r2")
        assert modes(tmp_path) == usual

    def test_the_gate_refuses_and_all_stays(
        self, sink: Sink, release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise PrivacyViolation("refused")

        put(sink, release)
        before, run = everything(tmp_path), sink.published_run()
        monkeypatch.setattr("duckanon.release.release.check_release", refuse)
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

        monkeypatch.setattr("duckanon.release.release.check_release", refuse)
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
        program = "import os, sys; from pathlib import Path; from duckanon.engine.process import PrivateFolder\n"
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
        with pytest.raises(ConfigError, match="is not a folder"):
            put(make_sink("folder", tmp_path), release)

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ([], "at least one"),
            (["sex", "SEX"], "twice"),
            (["name"], "not a published column"),
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
        monkeypatch.setattr(disk, "exchange", lambda *_: False)
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
        real, before = disk.sync, everything(tmp_path)

        def broken(path: Path) -> None:
            if path == tmp_path:
                raise OSError(5, "broken")
            real(path)

        monkeypatch.setattr(disk, "sync", broken)
        with pytest.raises(EngineError):
            put(sink, release, "r2")
        assert everything(tmp_path) == before


class TestCsv:
    @pytest.mark.parametrize("name", ["a\nb", "a\rb", "\r\na"])
    def test_a_name_with_a_line_break_is_refused_before_anything_is_written(self, tmp_path: Path, name: str) -> None:
        table = pa.table({name: [1, 1, 2, 2]})
        with (
            duckanon.anonymize(table, quasi_identifiers=[name], k=2) as release,
            pytest.raises(ConfigError, match="has a line break"),
        ):
            put(make_sink("csv", tmp_path), release)
        assert everything(tmp_path) == {}

    def test_is_what_the_standard_says(self, release: Release, tmp_path: Path) -> None:
        put(make_sink("csv", tmp_path), release)
        raw = (tmp_path / "people.csv").read_bytes()
        assert raw.startswith(b'"age","sex",ward,"ill",cost\r\n')
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
        from duckanon.io.sinks import files

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


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files to groups that it is not in")
def test_the_group_of_the_file_before_is_kept(release: Release, tmp_path: Path) -> None:
    sink = make_sink("parquet", tmp_path)
    put(sink, release)
    os.chown(tmp_path / "people.parquet", -1, 4711)
    (tmp_path / "people.parquet").chmod(0o640)
    put(sink, release, "r2")
    found = (tmp_path / "people.parquet").stat()
    assert (found.st_gid, stat.S_IMODE(found.st_mode)) == (4711, 0o640)


def test_where_the_group_cannot_be_kept_it_gets_no_rights(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch(mode=0o666)
    file.chmod(0o666)

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "chown", refuse)
    take_rights(file, 0o640, file.stat().st_gid + 1)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", [ParquetFile, CsvFile, lambda path: ParquetFolder(path.with_suffix(""), ["a"])])
def test_a_name_that_no_manifest_may_list_is_refused(kind: Callable[[Path], Sink], tmp_path: Path) -> None:
    suffix = ".csv" if kind is CsvFile else ".parquet"
    with pytest.raises(ConfigError, match="without a backslash"):
        kind(tmp_path / f"a\\b{suffix}")


@pytest.mark.parametrize("kind", KINDS)
def test_a_backslash_in_the_name_of_the_folder(release: Release, tmp_path: Path, kind: str) -> None:
    """DuckDB takes it for a slash where it makes folders and databases: nothing is published then."""
    folder = tmp_path / "a\\b"
    folder.mkdir()
    if kind in ("folder", "table"):
        with pytest.raises(EngineError):
            put(make_sink(kind, folder), release)
        assert everything(folder) == {}
    else:
        assert verify_export(put(make_sink(kind, folder), release)["manifest"]).intact
