"""Retention removes complete old exports of duckanon, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from duckanon.errors import EngineError, ParameterError
from duckanon.io.sinks import locked, prune, publish, read_manifest, verify_files
from duckanon.io.sinks.manifest import compose, parts_entry, sealed


def put(target: Path, day: int) -> Path:
    staged = target.parent.parent / "staged"
    staged.write_bytes(b"rows")
    publish(staged, target, summary={}, reports={"md": "x", "json": "{}"}, verify=lambda path: None)
    staged.unlink()
    return dated(target.with_name(f"{target.stem}.manifest.json"), day)


def dated(manifest: Path, day: int) -> Path:
    content = {**read_manifest(manifest), "created": f"2024-01-{day:02}T00:00:00+00:00"}
    manifest.write_text(sealed(content))
    return manifest


def put_folder(target: Path, day: int) -> None:
    (target / "a=1").mkdir(parents=True)
    (target / "a=1" / "part-0.parquet").write_bytes(b"rows")
    (target / "_manifest.json").write_text(compose({}, [parts_entry(target)]))
    dated(target / "_manifest.json", day)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_keeps_the_newest(out: Path) -> None:
    for day in (3, 1, 2, 4):
        put(out / f"people-{day}.parquet", day)
    assert [p.name for p in prune(out / "people-*.parquet", keep=2)] == ["people-1.parquet", "people-2.parquet"]
    assert names(out) == sorted(
        f"people-{d}.{s}" for d in (3, 4) for s in ("parquet", "manifest.json", "report.md", "report.json")
    )
    assert prune(out / "people-*.parquet", keep=2) == []


def test_the_own_export_stays_whatever_its_time(out: Path) -> None:
    for day in (3, 1, 2):
        put(out / f"people-{day}.parquet", day)
    own = out / "people-1.parquet"
    assert [p.name for p in prune(out / "people-*.parquet", keep=1, current=own)] == ["people-2.parquet"]
    assert verify_files(out / "people-1.manifest.json") == []


def test_dates_in_names_go_before_times_in_manifests(out: Path) -> None:
    for name, day in (("1", 9), ("2", 8), ("3", 7)):
        put(out / f"people-{name}.parquet", day)
    assert [p.name for p in prune(out / "people-*.parquet", keep=1, day_of=lambda path: path.stem[-1])] == [
        "people-1.parquet",
        "people-2.parquet",
    ]


def test_what_is_not_ours_stays(out: Path) -> None:
    for day in (1, 2):
        put(out / f"people-{day}.parquet", day)
    strangers = {"people-0.parquet": "raw", "people-1.notes.txt": "x", "people-1.report.html": "x"}
    strangers["people-00.manifest.json"] = json.dumps({"files": [{"name": "people-0.parquet"}]})
    for name, text in strangers.items():
        (out / name).write_text(text)
    put(out / "visits-1.parquet", 1)
    prune(out / "people-*.parquet", keep=1)
    assert set(strangers) <= set(names(out))
    assert verify_files(out / "visits-1.manifest.json") == []
    assert not (out / "people-1.parquet").exists()


def test_the_newest_good_one_stays_however_old(out: Path) -> None:
    for day in (1, 2, 3, 4):
        put(out / f"p-{day}.parquet", day)
    for day in (3, 4):
        (out / f"p-{day}.parquet").write_bytes(b"torn")
    assert [p.name for p in prune(out / "p-*.parquet", keep=1)] == ["p-1.parquet", "p-3.parquet"]
    assert verify_files(out / "p-2.manifest.json") == []


def test_without_a_good_one_nothing_goes(out: Path) -> None:
    for day in (1, 2):
        put(out / f"p-{day}.parquet", day)
        (out / f"p-{day}.parquet").write_bytes(b"torn")
    assert prune(out / "p-*.parquet", keep=1) == []


def test_killed_in_between_is_finished_by_the_next(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for day in (1, 2):
        put(out / f"p-{day}.parquet", day)

    class Killed(BaseException):
        pass

    real = Path.unlink

    for after in range(3):

        def unlink(self: Path, *arguments: Any, left: list[int] = [after], **options: Any) -> None:  # noqa: B006
            if self.name.startswith("p-1"):
                if left[0] == 0:
                    raise Killed
                left[0] -= 1
            real(self, *arguments, **options)

        with monkeypatch.context() as patched:
            patched.setattr(Path, "unlink", unlink)
            with pytest.raises(Killed):
                prune(out / "p-*.parquet", keep=1)
        assert (out / "p-1.manifest.json").exists()
    assert [p.name for p in prune(out / "p-*.parquet", keep=1)] == ["p-1.parquet"]
    assert [n for n in names(out) if n.startswith("p-1")] == []


def test_old_folders_are_removed_and_others_stay(out: Path) -> None:
    for day in (1, 2, 3):
        put_folder(out / f"people-{day}", day)
    (out / "people-0").mkdir()
    assert [p.name for p in prune(out / "people-*", keep=1)] == ["people-1", "people-2"]
    assert names(out) == ["people-0", "people-3"]


def test_dates_in_the_names_of_folders(out: Path) -> None:
    for day in (1, 2, 3):
        (out / f"2024-01-0{day}").mkdir()
        put(out / f"2024-01-0{day}" / "people.parquet", day)
    (out / "2024-01-02" / "notes.txt").touch()
    prune(out / "*" / "people.parquet", keep=1)
    assert names(out) == ["2024-01-02", "2024-01-03"]
    assert names(out / "2024-01-02") == ["notes.txt"]


def test_one_that_is_being_written_is_left_alone(out: Path) -> None:
    for day in (1, 2):
        put(out / f"p-{day}.parquet", day)
    with locked(out / "p-1.parquet"), pytest.raises(EngineError, match="Another run"):
        prune(out / "p-*.parquet", keep=1)


@pytest.mark.parametrize("keep", [0, -1, True, 1.5, "3"])
def test_keep_is_a_number(out: Path, keep: Any) -> None:
    with pytest.raises(ParameterError, match="keep"):
        prune(out / "p-*.parquet", keep=keep)
