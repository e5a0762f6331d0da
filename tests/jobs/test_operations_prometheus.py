"""Metrics: text that Prometheus' own parser reads, in a file that is never half written and never forgets a success."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from duckanon.errors import EngineError
from duckanon.jobs.monitoring import textfile, write_textfile
from tests.jobs.runs import failed, run

STARTED, ENDED = 1772416807.0, 1772416820.5


def read(text: str) -> dict[str, dict[tuple[str, str], float]]:
    """Return the samples as Prometheus' own parser sees them."""
    parser = pytest.importorskip("prometheus_client.parser")
    found: dict[str, dict[tuple[str, str], float]] = {}
    for family in parser.text_string_to_metric_families(text):
        assert family.type == "gauge"
        assert family.documentation
        for sample in family.samples:
            assert set(sample.labels) == {"job", "table"}
            key = (sample.labels["job"], sample.labels["table"])
            assert key not in found.setdefault(sample.name, {})
            found[sample.name][key] = sample.value
    return found


def test_a_published_run() -> None:
    found = read(textfile([run()]))
    here = ("hospital", "stays")
    assert {name: values[here] for name, values in found.items()} == {
        "duckanon_last_run_timestamp_seconds": ENDED,
        "duckanon_last_success_timestamp_seconds": ENDED,
        "duckanon_last_run_exit_code": 0,
        "duckanon_last_run_seconds": 13.5,
        "duckanon_last_run_warnings": 1,
        "duckanon_last_run_peak_memory_bytes": 700 * 2**20,
        "duckanon_rows_in": 20000,
        "duckanon_rows_published": 19500,
        "duckanon_rows_suppressed": 500,
        "duckanon_rows_held_back": 37,
        "duckanon_suppressed_ratio": 0.025,
        "duckanon_classes": 321,
        "duckanon_class_size_min": 5,
        "duckanon_class_size_median": 19,
        "duckanon_loss_ratio": 0.1534,
    }


def test_every_family_has_help_and_type_before_its_samples() -> None:
    lines = textfile([run(), run(table="other")]).splitlines()
    heads = [i for i, line in enumerate(lines) if line.startswith("# HELP")]
    assert all(lines[i + 1].startswith("# TYPE ") for i in heads)
    assert len(lines) == len(heads) * 4
    assert textfile([]) == ""


def test_a_failed_run_says_nothing_of_a_release() -> None:
    found = read(textfile([failed()]))
    assert found["duckanon_last_run_exit_code"] == {("hospital", "stays"): 3}
    assert "duckanon_last_success_timestamp_seconds" not in found
    assert "duckanon_rows_in" not in found
    assert "duckanon_last_success_timestamp_seconds" not in read(textfile([run(outcome="dry_run")]))


@pytest.mark.parametrize(
    "name", ['say "x"', "back\\slash", "two\nlines", "\\n", 'end\\"', "ü {}=,", "", "\u2028", "\r"]
)
def test_labels_with_odd_characters_are_read_back(tmp_path: Path, name: str) -> None:
    text = textfile([run(job=name, table=name)])
    assert read(text)["duckanon_rows_in"] == {(name, name): 20000}
    path = tmp_path / "x.prom"
    write_textfile(path, [run(job=name, table=name)])
    write_textfile(path, [failed(job=name, table=name)])
    found = read(path.read_bytes().decode())
    assert found["duckanon_last_success_timestamp_seconds"] == {(name, name): ENDED}
    assert found["duckanon_last_run_exit_code"] == {(name, name): 3}


def test_a_name_that_is_not_unicode_is_written_all_the_same(tmp_path: Path) -> None:
    write_textfile(tmp_path / "x.prom", [run(job="\udc80")])
    assert len(read((tmp_path / "x.prom").read_text())["duckanon_rows_in"]) == 1


class TestFile:
    def test_a_failed_run_keeps_the_last_success(self, tmp_path: Path) -> None:
        path = tmp_path / "duckanon.prom"
        here = ("hospital", "stays")
        write_textfile(path, [run()])
        write_textfile(path, [failed(6, ended="2026-03-03T02:00:00+00:00", peak_memory=None)])
        found = read(path.read_text())
        assert found["duckanon_last_success_timestamp_seconds"][here] == ENDED
        assert found["duckanon_last_run_timestamp_seconds"][here] > ENDED
        assert found["duckanon_last_run_exit_code"][here] == 6
        # The export of the last good night is still there, and so are its figures.
        assert found["duckanon_rows_published"][here] == 19500
        # What this run does not know is not that of the run before.
        assert "duckanon_last_run_peak_memory_bytes" not in found
        write_textfile(path, [run(ended="2026-03-04T02:00:00+00:00")])
        assert read(path.read_text())["duckanon_last_success_timestamp_seconds"][here] > ENDED + 86400

    def test_a_release_without_a_figure_does_not_keep_the_old_one(self, tmp_path: Path) -> None:
        path = tmp_path / "duckanon.prom"
        write_textfile(path, [run()])
        summary: dict[str, Any] = {**run()["summary"], "loss": []}
        write_textfile(path, [run(summary=summary)])
        assert "duckanon_loss_ratio" not in read(path.read_text())

    def test_other_jobs_and_tables_stay(self, tmp_path: Path) -> None:
        path = tmp_path / "duckanon.prom"
        write_textfile(path, [run(), run(table="wards", exit_code=0)])
        write_textfile(path, [failed(job="other")])
        write_textfile(path, [failed(4)])
        codes = read(path.read_text())["duckanon_last_run_exit_code"]
        assert codes == {("hospital", "stays"): 4, ("hospital", "wards"): 0, ("other", "stays"): 3}

    def test_everybody_may_read_and_nothing_is_left_beside(self, tmp_path: Path) -> None:
        path = tmp_path / "duckanon.prom"
        before = os.umask(0o077)
        try:
            write_textfile(path, [run()])
        finally:
            os.umask(before)
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
        assert [p.name for p in tmp_path.iterdir()] == ["duckanon.prom"]

    @pytest.mark.parametrize("there", [b"", b"\xff\xfe\x00", b"# HELP\nnot a metric\nduckanon_rows_in{job=", b"x 1\n"])
    def test_a_damaged_file_is_replaced(self, tmp_path: Path, there: bytes) -> None:
        path = tmp_path / "duckanon.prom"
        path.write_bytes(there)
        write_textfile(path, [run()])
        assert path.read_text() == textfile([run()])

    def test_a_damaged_line_does_not_remove_what_the_file_says_of_other_jobs(self, tmp_path: Path) -> None:
        path = tmp_path / "duckanon.prom"
        write_textfile(path, [run()])
        intact = path.read_text()
        for damaged in ("not a metric", "# TYPE duckanon_rows_in nonsense", "duckanon_rows_in"):
            path.write_text(f"{damaged}\n{intact}{damaged}\n")
            write_textfile(path, [])
            assert path.read_text() == intact

    def test_a_link_is_replaced_and_what_it_points_to_is_left_alone(self, tmp_path: Path) -> None:
        path, other = tmp_path / "duckanon.prom", tmp_path / "other"
        other.write_text("private")
        other.chmod(0o600)
        path.symlink_to(other)
        write_textfile(path, [run()])
        assert (other.read_text(), stat.S_IMODE(other.stat().st_mode)) == ("private", 0o600)
        assert path.read_text() == textfile([run()])

    def test_a_folder_that_is_missing_or_closed(self, tmp_path: Path) -> None:
        with pytest.raises(EngineError, match=r"metrics file 'x.prom' cannot be written: No such file"):
            write_textfile(tmp_path / "none" / "x.prom", [run()])
        with pytest.raises(EngineError, match="Is a directory"):
            write_textfile(tmp_path, [run()])
        assert list(tmp_path.iterdir()) == []

    def test_what_fails_halfway_leaves_the_old_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "duckanon.prom"
        write_textfile(path, [run()])
        old = path.read_text()

        def full(handle: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(EngineError, match="No space left on device"):
            write_textfile(path, [failed()])
        assert path.read_text() == old
        assert [p.name for p in tmp_path.iterdir()] == ["duckanon.prom"]

    def test_many_writers_lose_nothing(self, tmp_path: Path) -> None:
        path = tmp_path / "duckanon.prom"
        work = [threading.Thread(target=write_textfile, args=(path, [run(job=f"j{i}")])) for i in range(16)]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        assert len(read(path.read_text())["duckanon_rows_in"]) == 16
