"""Peak memory in bytes, of this process alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from duckanon.jobs.monitoring import memory

ROOT = Path(__file__).parents[2]
CODE = """
from duckanon.jobs.monitoring import peak_memory
before = peak_memory()
block = bytearray(200_000_000)
block[::4096] = b"x" * len(block[::4096])
del block
print(before, peak_memory())
"""


def peak() -> tuple[int, int]:
    done = subprocess.run(
        [sys.executable, "-c", CODE], env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True
    )
    before, after = map(int, done.stdout.split())
    return before, after


def test_grows_with_what_was_used_and_stays() -> None:
    before, after = peak()
    assert 190e6 < after - before < 260e6


def test_is_not_that_of_the_process_that_started_this_one() -> None:
    block = bytearray(400_000_000)
    block[::4096] = b"x" * len(block[::4096])
    before, _ = peak()
    assert len(block) > before


def test_without_proc_the_system_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = memory.peak_memory()
    monkeypatch.setattr(memory, "_STATUS", Path("/nowhere"))
    assert memory.peak_memory() >= exact * 0.9
    assert memory.peak_memory() < 1e12
