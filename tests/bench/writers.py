"""Is the shuffled writer worth its lines? Whole runs from Parquet to Parquet, with it and with a library's writer.

python -m tests.bench.writers
python -m tests.bench.writers --only wide --repeat 5

Every variant publishes the same rows in the same order, which is checked. Each runs in a process of its own, after a
smaller run that loads everything; variants take turns. Other work on the machine moves the clock more than it moves
processor time, so judge by processor time unless the machine is idle.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from duckanon.testing.hospital import write_hospital
from tests.bench.datafly import PARAMETERS
from tests.bench.harness import Figure, measure, work

FIRST = 600_000
"""Rows of the run that loads everything: enough for the writer of many rows."""
_ROW_GROUP = 491_520


def shuffled() -> None:
    """Write with the shuffled writer, as the package does."""


def copied() -> None:
    """Let DuckDB join, sort and write all columns by COPY."""
    from duckanon.recoding.regions import Regions

    def write(self: Regions, *_: Any, **__: Any) -> bool:
        return False

    Regions.write = write  # type: ignore[method-assign]


def streamed() -> None:
    """Let DuckDB join and sort, and pyarrow's ParquetWriter write what comes."""
    import pyarrow.parquet as pq

    from duckanon.recoding.regions import Regions

    def write(self: Regions, kept: Any, columns: Any, path: Path, params: Any, count: int, _: Any = None) -> bool:
        rows = self.released(self.rows(kept), columns)
        reader = self.engine.reader(rows, params, batch=_ROW_GROUP, private=True)
        with pq.ParquetWriter(path, reader.schema, compression="snappy", store_schema=False) as writer:
            for batch in reader:
                writer.write_batch(batch)
        return True

    Regions.write = write  # type: ignore[method-assign]


VARIANTS: dict[str, Callable[[], None]] = {f.__name__: f for f in (shuffled, copied, streamed)}


@work
def published(source: str, first: str, target: str, variant: str, **parameters: Any) -> dict[str, Any]:
    """Anonymize a file with one of the variants, after a smaller one; return what the second run took."""
    import duckdb

    from duckanon.api import anonymize
    from duckanon.engine.base import open_engine

    VARIANTS[variant]()
    taken: dict[str, Any] = {}
    for path in (first, source):
        engine = open_engine(threads=2, temp_directory=Path(target).parent)
        start, cpu = time.perf_counter(), time.process_time()
        with anonymize(path, engine=engine, stage=Path(target).parent, seed=1, **parameters) as release:
            release.write(target)
            taken = {"seconds": release.summary()["seconds"]}
        taken = {**taken, "wall": time.perf_counter() - start, "cpu": time.process_time() - cpu}
    rows = "SELECT bit_xor(hash(r, file_row_number)) FROM read_parquet($path, file_row_number = true) AS r"
    ((digest,),) = duckdb.connect().execute(rows, {"path": target}).fetchall()
    return {**taken, "digest": digest, "bytes": Path(target).stat().st_size}


def hospital(path: Path, rows: int) -> dict[str, Any]:
    """Eight quasi-identifiers of mixed types, three columns that are passed through."""
    write_hospital(path, rows)
    return {**PARAMETERS, "k": 10, "suppression_limit": 0.0}


def few_values(path: Path, rows: int) -> dict[str, Any]:
    """Eight columns of 3 to 12 texts."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    columns = {}
    for j, size in enumerate((3, 4, 5, 6, 8, 9, 10, 12)):
        codes = np.minimum(rng.geometric(0.35, rows) - 1, size - 1).astype(np.int32)
        texts = pa.array([f"value {j}.{i}" for i in range(size)])
        columns[f"c{j}"] = pa.DictionaryArray.from_arrays(pa.array(codes), texts)
    pq.write_table(pa.table(columns), path, store_schema=False)
    return {"quasi_identifiers": [f"c{j}" for j in range(6)], "insensitive": ["c6", "c7"], "k": 10}


def wide(path: Path, rows: int) -> dict[str, Any]:
    """Four quasi-identifiers, and twenty columns of numbers, dates and texts that are passed through."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(2)
    columns: dict[str, Any] = {
        "age": rng.integers(18, 95, rows).astype("int16"),
        "area": rng.integers(1, 900, rows).astype("int32"),
        "sex": pa.array(["f", "m"]).take(pa.array(rng.integers(0, 2, rows))),
        "job": pa.array([f"job {i}" for i in range(40)]).take(pa.array(rng.integers(0, 40, rows))),
    }
    words = pa.array([f"some text of the number {i}" for i in range(200_000)])
    for j in range(5):
        columns[f"float{j}"] = rng.normal(size=rows)
        columns[f"whole{j}"] = rng.integers(0, 10 ** (j + 2), rows)
        columns[f"day{j}"] = pa.array(rng.integers(0, 20_000, rows).astype("int32"), pa.date32())
        columns[f"text{j}"] = words.slice(0, 20 * 10**j).take(pa.array(rng.integers(0, 20 * 10**j, rows)))
    pq.write_table(pa.table(columns), path)
    return {
        "quasi_identifiers": ["age", "area", "sex", "job"],
        "insensitive": [c for c in columns if c not in ("age", "area", "sex", "job")],
        "k": 10,
    }


TABLES: dict[str, tuple[Callable[[Path, int], dict[str, Any]], int]] = {
    "hospital": (hospital, 5_000_000),
    "few_values": (few_values, 10_000_000),
    "wide": (wide, 2_000_000),
}


def compare(name: str, scratch: Path, repeat: int, chosen: list[str]) -> None:
    """Run the variants in turn and print what each took, and how often that is what the shuffled writer took."""
    make, rows = TABLES[name]
    source, first = scratch / f"{name}.parquet", scratch / f"{name}_first.parquet"
    parameters = make(source, rows)
    make(first, FIRST)
    runs: dict[str, list[Figure]] = {variant: [] for variant in chosen}
    for _ in range(repeat):
        for variant in chosen:
            target = str(scratch / "release.parquet")
            given = {"source": str(source), "first": str(first), "target": target, "variant": variant}
            runs[variant].append(measure(variant, "writers.published", **given, **parameters))
            taken = runs[variant][-1].detail
            print(
                f"{name} {variant}: {taken['cpu']:.2f} s cpu, {taken['wall']:.2f} s wall", file=sys.stderr, flush=True
            )
    digests = {run.detail["digest"] for same in runs.values() for run in same}
    if len(digests) != 1:
        raise SystemExit(f"{name}: the variants did not publish the same rows in the same order")
    print(f"\n{name}, {rows:,} rows: median (lowest) of {repeat}; ratios to {chosen[0]} in the same turn, median")
    print(
        f"{'writer':<16} {'cpu s':>15} {'x':>6} {'wall s':>15} {'x':>6} {'recode s':>9} {'peak MB':>8} {'file MB':>8}"
    )
    for variant, same in runs.items():
        line = f"{variant:<16}"
        for kind in ("cpu", "wall"):
            values = [run.detail[kind] for run in same]
            ratios = [v / base.detail[kind] for v, base in zip(values, runs[chosen[0]], strict=True)]
            line += f" {median(values):>7.2f} ({min(values):>5.2f}) {median(ratios):>6.2f}"
        recode = median(run.detail["seconds"]["recode"] for run in same)
        peak, size = max(run.peak_mb for run in same), same[0].detail["bytes"] / 1e6
        print(f"{line} {recode:>9.2f} {peak:>8.0f} {size:>8.0f}", flush=True)


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", choices=[*TABLES], nargs="+", default=[*TABLES])
    parser.add_argument("--variants", choices=[*VARIANTS], nargs="+", default=[*VARIANTS])
    parser.add_argument("--folder", type=Path, help="where to keep the files (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.only:
            compare(name, options.folder or Path(temporary), options.repeat, options.variants)


if __name__ == "__main__":
    main()
