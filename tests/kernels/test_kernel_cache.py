"""Compiled kernels are code: they are read from where nobody else can write, or compiled anew."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from duckanon.kernels.cache import writable_by_others

CHECKOUT = Path(__file__).resolve().parents[2]
COMPILED = """
import os
from duckanon.kernels import jit

print(jit._FOLDER, "|", oct(os.stat(jit._FOLDER).st_mode & 0o777))
"""


def chosen(folder: Path, **changes: str | None) -> tuple[Path, str]:
    given = {**os.environ, "PYTHONPATH": str(CHECKOUT), "TMPDIR": str(folder / "tmp"), "HOME": str(folder / "home")}
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        given.pop(name, None)
    for name, value in changes.items():
        if value is None:
            given.pop(name, None)
        else:
            given[name] = value
    done = subprocess.run(
        [sys.executable, "-c", COMPILED], env=given, capture_output=True, text=True, check=True, timeout=120
    )
    path, _, mode = done.stdout.strip().partition(" | ")
    return Path(path), mode


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("tmp", "home"):
        (tmp_path / name).mkdir(mode=0o700)
    return tmp_path


def test_the_users_own_cache_is_used_and_private(folder: Path) -> None:
    path, mode = chosen(folder)
    assert path.is_relative_to(folder / "home" / ".cache" / "duckanon" / "kernels")
    assert mode == "0o700"


@pytest.mark.parametrize("place", [".", ".cache", ".cache/duckanon", ".cache/duckanon/kernels"])
def test_a_folder_above_the_cache_that_others_can_write_to_is_not_trusted(folder: Path, place: str) -> None:
    shared = folder / "home" / place
    shared.mkdir(parents=True, exist_ok=True)
    shared.chmod(0o777)
    path, mode = chosen(folder)
    assert path.is_relative_to(folder / "tmp")
    assert mode == "0o700"
    assert not list((folder / "tmp").iterdir())


@pytest.mark.parametrize("home", ["gone", "file", "/proc"])
def test_without_a_home_kernels_are_compiled_into_a_private_folder(folder: Path, home: str) -> None:
    (folder / "file").write_text("")
    path, mode = chosen(folder, HOME=str(folder / home))
    assert path.is_relative_to(folder / "tmp")
    assert mode == "0o700"
    assert not (folder / "gone").exists()
    # It goes with the process.
    assert not list((folder / "tmp").iterdir())


def test_the_folder_that_is_set_is_looked_at_as_well(folder: Path) -> None:
    own, shared = folder / "own", folder / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    path, mode = chosen(folder, NUMBA_CACHE_DIR=str(own))
    assert (path.parent, mode) == (own, "0o700")
    (folder / "link").symlink_to(shared)
    for given in (shared, shared / "below", folder / "link" / "below"):
        path, _ = chosen(folder, NUMBA_CACHE_DIR=str(given))
        assert path.is_relative_to(folder / "tmp")


def test_kernels_compiled_elsewhere_are_found_by_their_content(folder: Path) -> None:
    """A new environment, or the same files written later, finds what was compiled; a changed kernel does not."""
    program = """
from duckanon.kernels import jit, scratch
import numpy as np

scratch.doubled(np.arange(3))
counts = scratch.doubled.stats
print(jit._FOLDER.name, sum(counts.cache_hits.values()), sum(counts.cache_misses.values()))
"""

    def run(place: Path, factor: int) -> list[str]:
        if not place.exists():
            shutil.copytree(CHECKOUT / "duckanon", place / "duckanon", ignore=shutil.ignore_patterns("__pycache__"))
        (place / "duckanon" / "kernels" / "scratch.py").write_text(
            "from duckanon.kernels.jit import kernel\n\n\n"
            f"@kernel\ndef doubled(values):\n    return (values * {factor}).sum()\n"
        )
        given = {**os.environ, "PYTHONPATH": str(place), "HOME": str(folder / "home")}
        for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
            given.pop(name, None)
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=place,
            env=given,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        return done.stdout.split()

    first = run(folder / "one", 2)
    assert first[1:] == ["0", "1"]
    assert run(folder / "two", 2) == [first[0], "1", "0"]
    changed = run(folder / "two", 3)
    assert changed[0] != first[0]
    assert changed[1:] == ["0", "1"]


def test_who_could_write(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert writable_by_others(inner) is None
    (tmp_path / "a").chmod(0o1777)
    assert writable_by_others(inner) is None
    assert "everybody" in str(writable_by_others(tmp_path / "a"))
    (tmp_path / "a").chmod(0o777)
    assert "everybody" in str(writable_by_others(inner))
    if os.getuid() == 0:
        (tmp_path / "a").chmod(0o755)
        os.chown(tmp_path / "a", 12345, 0)
        assert "another user" in str(writable_by_others(inner))
        os.chown(tmp_path / "a", 0, 12345)
        (tmp_path / "a").chmod(0o770)
        assert "its group" in str(writable_by_others(inner))
