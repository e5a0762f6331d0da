"""What learners and queries make of releases, and how long that takes.

python -m tests.bench.utility --data ../shared/data --rows 1000000

Learners on ADULT: rows are held out first, Mondrian anonymizes the others, each learner is taught thrice. Queries:
1,000 for counts and as many for means, over two columns each, on ADULT and on synthetic stays.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

import duckanon
from duckanon.assess.utility.learners import LEARNERS
from duckanon.testing.hospital import write_hospital

ADULT = ["age", "workclass", "education", "marital-status", "race", "sex", "native-country"]
STAYS = ["birth_date", "sex", "zip", "admission_date"]


def timed(action: Callable[[], Any]) -> tuple[Any, float, float]:
    clock, processor = time.perf_counter(), time.process_time()
    found = action()
    return found, time.perf_counter() - clock, time.process_time() - processor


def learners(table: Any, hierarchies: dict[str, str], ks: list[int], names: list[str]) -> None:
    """Teach every learner by raw rows and by releases of ADULT."""
    parts = duckanon.utility.split(table, target="income")
    columns = {"quasi_identifiers": ADULT, "insensitive": ["income"], "hierarchies": hierarchies}
    print(f"\nADULT: {parts.train.num_rows} rows taught, {parts.test.num_rows} held out; F1 and AUROC of income")
    for name in names:
        for k in ks:
            with duckanon.anonymize(parts.train, k=k, **columns) as release:
                options = {"target": "income", "test": parts.test, "learners": [name], "seeds": 3}
                options["baseline"] = k == ks[0]
                found, clock, processor = timed(partial(duckanon.utility.evaluate, parts.train, release, **options))
            for row in found.summary().to_pylist():
                if row["learner"] == name:
                    by = "raw" if row["trained_on"] == "raw" else f"k = {k}"
                    print(f"{name:20} {by:8} F1 {row['f1']:.3f}  AUROC {row['auroc']:.3f}")
            print(f"{'':20} {clock:.1f} s, of the processor {processor:.1f} s")


def copied(source: str) -> float:
    """Return the processor seconds of DuckDB's copy of a file, to compare with."""
    with tempfile.TemporaryDirectory() as scratch, duckdb.connect() as connection:
        to = Path(scratch) / "copy.parquet"
        _, _, processor = timed(
            partial(connection.execute, "COPY (FROM read_parquet($1)) TO $2 (COMPRESSION zstd)", [source, str(to)])
        )
    return processor


def queries(label: str, source: str, average: str, **columns: Any) -> None:
    """Ask range queries of a release by Mondrian."""
    copy = copied(source)
    for k in (10, 100):
        with duckanon.anonymize(source, k=k, insensitive=[average], **columns) as release:
            found, clock, processor = timed(partial(duckanon.utility.queries, source, release, n=1000, average=average))
        for row in found.summary().to_pylist():
            print(f"{label}, k = {k}, {row['kind']}: median error {row['median']:.1%}, mean {row['mean']:.1%}", end="")
            print(f"; 2,000 queries in {clock:.1f} s, of the processor {processor:.1f} s, a copy {copy:.1f} s")


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder of the public data sets")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--k", type=int, nargs="+", default=[5, 50])
    parser.add_argument("--learners", nargs="+", default=[n for n in LEARNERS if n != "xgboost"])
    options = parser.parse_args()
    if options.data:
        folder = options.data / "adult"
        table = pq.read_table(folder / "data.parquet")
        hierarchies = {name: str(folder / "hierarchies" / f"{name}.csv") for name in ADULT}
        queries(
            "ADULT",
            str(folder / "data.parquet"),
            "hours-per-week",
            quasi_identifiers=ADULT,
            hierarchies=hierarchies,
        )
        learners(table, hierarchies, options.k, options.learners)
    if options.rows:
        with tempfile.TemporaryDirectory() as scratch:
            source = str(Path(scratch) / "stays.parquet")
            write_hospital(source, options.rows)
            queries(f"{options.rows:,} stays", source, "cost", quasi_identifiers=STAYS, hierarchies={"zip": "us_zip5"})


if __name__ == "__main__":
    main()
