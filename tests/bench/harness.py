"""Run a piece of work in a process of its own and say how long it took and how much memory it needed.

Every figure stands beside a plain DuckDB copy of the same file, measured in the same run: machines differ, ratios less.
"""

from __future__ import annotations

import importlib
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Figure:
    """What one run cost; ``detail`` is whatever the work returned."""

    name: str
    seconds: float
    peak_mb: float
    detail: dict[str, Any]
    cpu: float = 0.0


_CLASS_BASED = {"classes", "class_cells", "cell_rows", "domain", "class_values", "domain_values"}
WORK: dict[str, Callable[..., dict[str, Any]]] = {}


def work(function: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Decorator: make a function callable by name in a fresh process."""
    WORK[function.__name__] = function
    return function


@work
def copy(source: str, target: str, threads: int = 2) -> dict[str, Any]:
    """Copy a Parquet file with DuckDB and nothing else."""
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    connection.execute(
        "COPY (SELECT * FROM read_parquet($source)) TO $target (FORMAT parquet)", {"source": source, "target": target}
    )
    return {"bytes": Path(target).stat().st_size}


@work
def anonymize(
    source: str, target: str, threads: int = 2, memory: str | None = None, **parameters: Any
) -> dict[str, Any]:
    """Parquet to Parquet: read, encode, search, recode, gate, write, gate again, manifest and report."""
    from duckanon.api import anonymize as run
    from duckanon.engine.base import open_engine

    engine = open_engine(threads=threads, memory_limit=memory, temp_directory=Path(target).parent)
    with run(source, engine=engine, stage=Path(target).parent, **parameters) as release:
        release.write(target)
        summary = release.summary()
    told = {key: summary[key] for key in ("seconds", "found", "permutation") if key in summary}
    return {**told, "levels": release.recoding.levels, "cpu": time.process_time()}


@work
def look(source: str, everything: bool, threads: int = 2, **parameters: Any) -> dict[str, Any]:
    """Anonymize, and then time the models and the metrics; ``everything`` adds those that look at tuples and pairs."""
    import duckanon
    from duckanon.engine.base import open_engine
    from duckanon.metrics.base import metrics

    names = None if everything else [n for n in metrics if set(metrics.get(n).statement().reads) <= _CLASS_BASED]
    engine = open_engine(threads=threads)
    seconds: dict[str, float] = {}
    with duckanon.anonymize(source, engine=engine, **parameters) as release:
        for turn in ("first", "again"):
            start = time.perf_counter()
            found = duckanon.privacy(release)
            seconds[f"{len(set(found.column('model').to_pylist()))} models, {turn}"] = time.perf_counter() - start
            start = time.perf_counter()
            measured = release.measure(names)
            seconds[f"{len({m.metric for m in measured})} metrics, {turn}"] = time.perf_counter() - start
        classes = release.classes().num_rows
    return {"seconds": seconds, "classes": classes}


def measure(name: str, function: str, **arguments: Any) -> Figure:
    """Run ``function`` in a new process; ``module.function`` where another module of this folder has it."""
    command = [sys.executable, "-m", "tests.bench.harness", function, json.dumps(arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result = json.loads(done.stdout.strip().splitlines()[-1])
    return Figure(name, result["seconds"], result["peak_mb"], result["detail"], result["cpu"])


def show(figures: list[Figure], base: str) -> None:
    """Print the figures, each as a ratio to the one called ``base``."""
    reference = next(f for f in figures if f.name == base)
    print(f"{'work':<44} {'seconds':>9} {'x copy':>7} {'peak MB':>9} {'cpu s':>9} {'x copy':>7}")
    for figure in figures:
        took = f"{figure.seconds:>9.2f} {figure.seconds / reference.seconds:>7.2f} {figure.peak_mb:>9.0f}"
        print(f"{figure.name:<44} {took} {figure.cpu:>9.2f} {figure.cpu / reference.cpu:>7.2f}")
        for step, seconds in figure.detail.get("seconds", {}).items():
            print(f"    {step:<40} {seconds:>9.2f} {seconds / reference.seconds:>7.2f}")


def _main() -> None:
    function, arguments = sys.argv[1], json.loads(sys.argv[2])
    start = time.perf_counter()
    # Looked up in the imported module, not in __main__, so that other modules' work is found too.
    import tests.bench.harness as harness

    if "." in function:
        module, function = function.split(".")
        importlib.import_module(f"tests.bench.{module}")
    detail = harness.WORK[function](**arguments)
    seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime
    print(json.dumps({"seconds": seconds, "peak_mb": used.ru_maxrss / 1024, "detail": detail, "cpu": cpu}))


if __name__ == "__main__":
    _main()
