"""Power loss: content is synced before it gets its name, and names before the run reports success."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon.io import disk
from duckanon.io.sinks import Sink
from tests.faults.driver import make_sink
from tests.jobs.jobs import fill


@pytest.fixture
def trace(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
    """What was synced and renamed, in its order; a file is known by its number, whatever name it has."""
    seen: list[tuple[str, str, str]] = []
    fsync, replace, rename, exchange = os.fsync, os.replace, os.rename, disk.exchange

    def number(path: Any) -> str:
        return str(os.stat(path, follow_symlinks=False).st_ino)  # noqa: PTH116

    def synced(handle: int) -> None:
        fsync(handle)
        seen.append(("sync", str(os.fstat(handle).st_ino), ""))

    def replaced(old: Any, new: Any, **options: Any) -> None:
        inode = number(old)
        replace(old, new, **options)
        seen.append(("name", inode, str(new)))

    def renamed(old: Any, new: Any, **options: Any) -> None:
        inode = number(old)
        rename(old, new, **options)
        seen.append(("name", inode, str(new)))

    def exchanged(first: Path, second: Path) -> bool:
        inode = number(first)
        done = exchange(first, second)
        seen.append(("name", inode, str(second)))
        return done

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    monkeypatch.setattr(os, "rename", renamed)
    monkeypatch.setattr(disk, "exchange", exchanged)
    return seen


def publish(sink: Sink, source: Path) -> None:
    options: dict[str, Any] = {"quasi_identifiers": ["age", "town"], "sensitive": ["ill"], "k": 4}
    with duckanon.anonymize(source, algorithm="datafly", **options) as release:
        sink.publish(release, reports={"md": "# Report"}, run={"run": "1"})


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("earlier", [True, False])
def test_a_file_is_synced_before_it_has_its_name(
    tmp_path: Path, trace: list[tuple[str, str, str]], kind: str, earlier: bool
) -> None:
    out, source = tmp_path / "out", fill(tmp_path) / "people.parquet"
    out.mkdir()
    for _ in range(1 + earlier):
        trace.clear()
        publish(make_sink(kind, tmp_path), source)
    at = {name: i for i, (what, _, name) in enumerate(trace) if what == "name"}
    inside = str(out.stat().st_ino)
    synced = {inode: i for i, (what, inode, _) in reversed(list(enumerate(trace))) if what == "sync"}
    commit = at[str(out / f".people.{kind}.commit")]
    finals = [f"people.{kind}", "people.report.md", "people.manifest.json"]
    for name in finals:
        place = at[str(out / name)]
        assert synced[trace[place][1]] < commit < place, name
    assert at[str(out / finals[0])] < at[str(out / finals[2])]
    # The folder is synced after the commit is decided on, before the first name is given, and after the last.
    folders = [i for i, (what, inode, _) in enumerate(trace) if what == "sync" and inode == inside]
    assert any(commit < i < at[str(out / finals[0])] for i in folders)
    assert any(i > at[str(out / finals[2])] for i in folders)


@pytest.mark.parametrize("earlier", [True, False])
def test_all_of_a_folder_is_synced_before_it_has_its_name(
    tmp_path: Path, trace: list[tuple[str, str, str]], earlier: bool
) -> None:
    out, source = tmp_path / "out", fill(tmp_path) / "people.parquet"
    out.mkdir()
    for _ in range(1 + earlier):
        trace.clear()
        publish(make_sink("folder", tmp_path), source)
    place = next(i for i, (what, _, name) in enumerate(trace) if what == "name" and name == str(out / "people"))
    before = {inode for what, inode, _ in trace[:place] if what == "sync"}
    everything = [out / "people", *(out / "people").rglob("*")]
    assert len(everything) > 4
    assert {str(p.stat().st_ino) for p in everything} <= before
    assert ("sync", str(out.stat().st_ino), "") in trace[place:]
    assert sum(pq.read_table(p).num_rows for p in everything if p.suffix == ".parquet") == 40
