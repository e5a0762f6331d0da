"""Tables hold exactly the rows that passed the gate; the database decides on their manifest. What recovery trusts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import duckanon
from duckanon.errors import ConfigError, EngineError
from duckanon.io.sinks import DuckDBTable, recover
from duckanon.io.sinks.commit import pending_path
from duckanon.release.release import Release
from duckanon.release.verify import verify_export
from tests.io.sink_cases import CANARY, COLUMNS, PEOPLE, everything, made, make_sink, put, rows_of


@pytest.fixture(scope="module")
def release() -> Iterator[Release]:
    with made() as release:
        yield release


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
        from duckanon.io.sinks import tables

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
