"""Compiled kernels are code: they are read from where nobody else can write, or compiled anew."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from duckanon.kernels.cache import writable_by_others
from duckanon.progress import Event, Progress, compiled, compiling

CHECKOUT = Path(__file__).resolve().parents[2]
COMPILED = """
import os
from duckanon.kernels import jit

print(jit._FOLDER, "|", oct(os.stat(jit._FOLDER).st_mode & 0o777))
"""


def chosen(folder: Path, **changes: str | None) -> tuple[Path, str]:
    given = {**os.environ, "PYTHONPATH": str(CHECKOUT), "TMPDIR": str(folder / "tmp"), "HOME": str(folder / "home")}
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "DUCKANON_KERNELS"):
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


SCRATCH = """
from duckanon.kernels import jit, scratch
import numpy as np

scratch.doubled(np.arange(3))
print(jit._FOLDER.name, len(list(jit._FOLDER.glob("*.nbc"))))
"""


def compile_one(place: Path, home: Path, factor: int = 2, **changes: str) -> tuple[str, int, str]:
    """Use a kernel of an installation; return the folder's name, the kernels in it, and what was written beside."""
    if not place.exists():
        shutil.copytree(CHECKOUT / "duckanon", place / "duckanon", ignore=shutil.ignore_patterns("__pycache__"))
    kernel = place / "duckanon" / "kernels" / "scratch.py"
    text = (
        "from duckanon.kernels.jit import kernel\n\n\n"
        f"@kernel\ndef doubled(values):\n    return (values * {factor}).sum()\n"
    )
    if not kernel.exists() or kernel.read_text() != text:
        kernel.write_text(text)
    given = {**os.environ, "PYTHONPATH": str(place), "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "DUCKANON_KERNELS"):
        given.pop(name, None)
    program = "import logging; logging.basicConfig(level='INFO')\n" + SCRATCH + changes.pop("then", "")
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=place,
        env={**given, **changes},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    name, stored = done.stdout.split()[:2]
    return name, int(stored), done.stderr


COMPILING = "compiling kernels (first use on this machine)"


def test_kernels_compiled_elsewhere_are_found_by_their_content(folder: Path) -> None:
    """A new environment, or the same files written later, finds what was compiled; a changed kernel does not."""
    home = folder / "home"
    first, stored, said = compile_one(folder / "one", home)
    assert stored == 1
    assert COMPILING in said
    second, stored, said = compile_one(folder / "two", home)
    assert (second, stored) == (first, 1)
    assert COMPILING not in said
    for path in (folder / "two" / "duckanon").rglob("*.py"):
        os.utime(path, (10**9, 10**9))
    assert compile_one(folder / "two", home)[1:] == (1, "")
    changed, stored, said = compile_one(folder / "two", home, factor=3)
    assert changed != first
    assert stored == 1
    assert COMPILING in said


def test_another_processor_finds_none(folder: Path) -> None:
    home = folder / "home"
    compile_one(folder / "one", home)
    _, stored, said = compile_one(folder / "one", home, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")
    assert stored == 2
    assert COMPILING in said


def test_a_shared_folder_is_read_by_others_and_refused_where_others_can_write(folder: Path) -> None:
    shared = folder / "shared"
    compile_one(folder / "one", folder / "home", DUCKANON_KERNELS=str(shared), then="jit.share()")
    (own,) = shared.iterdir()
    assert own.stat().st_mode & 0o777 == 0o755
    assert {path.stat().st_mode & 0o777 for path in own.iterdir()} == {0o644}
    before = sorted(own.iterdir())
    other = folder / "other"
    other.mkdir()
    # A package that nobody can write to, and a folder that is only read.
    for path in (own, *own.iterdir()):
        path.chmod(path.stat().st_mode & 0o555)
    _, stored, said = compile_one(folder / "one", other, DUCKANON_KERNELS=str(shared))
    assert (stored, said) == (0, "")
    assert sorted(own.iterdir()) == before
    next(own.glob("*.nbc")).chmod(0o646)
    _, stored, said = compile_one(folder / "one", other, DUCKANON_KERNELS=str(shared))
    assert stored == 1
    assert "can be written to by others" in said
    next(own.glob("*.nbc")).chmod(0o644)
    shared.chmod(0o777)
    assert "everybody" in compile_one(folder / "one", other, DUCKANON_KERNELS=str(shared))[2]


def test_old_caches_are_swept_when_a_new_one_is_begun(folder: Path) -> None:
    caches = folder / "home" / ".cache" / "duckanon" / "kernels"
    caches.mkdir(parents=True, mode=0o700)
    long_ago = time.time() - 40 * 86_400
    for name, used in (("0" * 16, long_ago), ("1" * 16, time.time()), ("notes", long_ago)):
        (caches / name).mkdir()
        (caches / name / "file").write_text("")
        os.utime(caches / name, (used, used))
    path, _ = chosen(folder)
    assert {p.name for p in caches.iterdir()} == {path.name, "1" * 16, "notes"}


def test_compiling_is_told_to_whoever_watches_work() -> None:
    events: list[Event] = []
    watch = Progress(events.append)
    compiling()
    compiled()
    assert not events
    with watch.step("search"):
        compiling()
        compiled()
    steps = [(event.step, event.finished) for event in events]
    assert steps == [("search", False), (COMPILING, False), (COMPILING, True), ("search", True)]


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
