"""Interrupted writes end. DuckDB 2.0.0 with its default settings sometimes waits for ever."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest
from sqlglot import exp

from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.errors import DuckanonError

ROUNDS, PATIENCE = 150, 60.0


@pytest.mark.slow
def test_writing_that_is_interrupted_ends(tmp_path: Path) -> None:
    engine = DuckDBEngine(threads=4)
    numbers = exp.select("i", "i::VARCHAR AS a", "(i * 7919 % 1000003)::VARCHAR AS b")
    engine.create("many", numbers.from_("range(1000000) AS x(i)"))
    started = time.perf_counter()
    engine.write_parquet(exp.select("*").from_("many"), tmp_path / "whole.parquet")
    whole = time.perf_counter() - started
    dice, stopped = random.Random(5), 0

    def write() -> None:
        nonlocal stopped
        try:
            engine.write_parquet(exp.select("*").from_("many"), tmp_path / "part.parquet")
        except DuckanonError:
            stopped += 1

    for _ in range(ROUNDS):
        work = threading.Thread(target=write, daemon=True)
        work.start()
        time.sleep(dice.random() * whole)
        engine.interrupt()
        work.join(PATIENCE)
        assert not work.is_alive(), "an interrupted COPY does not end"
    assert stopped > ROUNDS // 4
    engine.close()
