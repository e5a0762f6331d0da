"""Searches of the full-domain lattice: ADULT in one warm process, 3 million varied rows Parquet to Parquet, 15 columns.

python -m tests.bench.lattice --data ../shared/data

ADULT and the other tables are not part of the project: ``--data`` (or DUCKANON_DATA) names the folder that has them.
The varied rows are ADULT's drawn again and again, each cell with a chance of 10 % of a fresh draw from its column.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.harness import measure, show
from tests.datasets import data_folder

ADULT = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "income", "occupation"]
CREDIT = ["AGE", "SEX", "EDUCATION", "MARRIAGE", "LIMIT_BAL", "PAY_0", "PAY_2", "PAY_3", "PAY_4", "PAY_5", "PAY_6"]
CREDIT += ["BILL_AMT1", "BILL_AMT2", "PAY_AMT1", "PAY_AMT2"]
MACH = ["age", "familysize", "gender", "married", "race", "religion", *(f"Q{i}A" for i in range(1, 10))]


def hierarchies(folder: Path, names: list[str]) -> dict[str, str]:
    return {name: str(folder / "hierarchies" / f"{name}.csv") for name in names}


def adult(folder: Path, repeat: int) -> None:
    """Whole searches, everything compiled and read before."""
    import duckanon

    print("ADULT, 30,162 rows, k = 5, metric loss; seconds of the search alone and of the whole release, fastest")
    for width in (8, 9):
        names = ADULT[:width]
        for limit, more in ((0.0, {}), (0.05, {}), (0.05, {"l": 5}), (0.0, {"t": 0.2}), (0.05, {"t": 0.2})):
            if more and width == 9:
                continue
            sensitive = ["occupation"] if more else []
            found = []
            for _ in range(repeat):
                start = time.perf_counter()
                with duckanon.anonymize(
                    folder / "data.parquet",
                    quasi_identifiers=names,
                    sensitive=sensitive,
                    hierarchies=hierarchies(folder, names),
                    k=5,
                    suppression_limit=limit,
                    algorithm="optimal",
                    **more,
                ) as release:
                    seconds = release.engine.progress.seconds["search"]
                    found.append((seconds, time.perf_counter() - start))
                    visited = f"{release.searched['visited']} of {release.searched['nodes']} nodes"
                    value = release.searched["value"]
            search, whole = (min(f[i] for f in found) for i in range(2))
            extra = "".join(f", {k} = {v}" for k, v in more.items())
            print(f"    {width} columns, limit {limit}{extra}: {search:.3f} s, {whole:.2f} s, {visited}, {value:.6f}")


def varied(folder: Path, target: Path, rows: int) -> None:
    """Write ADULT's rows drawn anew, each cell with a chance of 10 % from its column."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "data.parquet").select(ADULT)
    rng = np.random.default_rng(20021)
    base = rng.integers(0, table.num_rows, rows)
    columns = {}
    for name in table.column_names:
        fresh = rng.random(rows) < 0.1
        places = np.where(fresh, rng.integers(0, table.num_rows, rows), base)
        columns[name] = table.column(name).combine_chunks().take(pa.array(places))
    pq.write_table(pa.table(columns), target, compression="snappy")


def large(folder: Path, scratch: Path, rows: int, repeat: int) -> None:
    """Parquet to Parquet in a process of its own, compiled kernels in their cache."""
    source = scratch / f"varied_{rows}.parquet"
    if not source.exists():
        varied(folder, source, rows)
    for more in ({"suppression_limit": 0.05}, {"suppression_limit": 0.0}, {"suppression_limit": 0.05, "t": 0.2}):
        names = ADULT[:8]
        parameters: dict[str, Any] = {"quasi_identifiers": names, "hierarchies": hierarchies(folder, names), "k": 5}
        parameters |= {"algorithm": "optimal", **more}
        parameters["sensitive" if "t" in more else "insensitive"] = ["occupation"]
        runs = []
        for _ in range(repeat):
            copied = measure("copy", "copy", source=str(source), target=str(scratch / "copy.parquet"))
            target = str(scratch / "release.parquet")
            runs.append((copied, measure("optimal", "anonymize", source=str(source), target=target, **parameters)))
        print(f"\n{rows:,} varied rows, {more}, fastest of {repeat}")
        show([min((r[i] for r in runs), key=lambda f: f.seconds) for i in range(2)], base="copy")
        print(f"    levels {runs[0][1].detail['levels']}")


def wide(folder: Path, columns: list[str], seconds: float) -> None:
    """15 quasi-identifiers within a budget, with what can be proved of the result."""
    import duckanon
    from duckanon.algorithms import BestEffort

    for strategy in ("top_down", "bottom_up", "genetic"):
        start = time.perf_counter()
        with duckanon.anonymize(
            folder / "data.parquet",
            quasi_identifiers=columns,
            hierarchies=hierarchies(folder, columns),
            k=5,
            suppression_limit=0.05,
            algorithm=BestEffort(strategy=strategy, nodes=1_000_000, seconds=seconds),
        ) as release:
            found = release.searched
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"    {folder.name}, {strategy}: {found['visited']} of {found['nodes']:,} nodes, loss "
                f"{found['value']:.4f}, proved gap {found['gap']:.4f}, {time.perf_counter() - start:.1f} s in all, "
                f"peak {peak:.0f} MB so far"
            )


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="the budget of best_effort")
    parser.add_argument("--only", choices=["adult", "large", "wide"])
    parser.add_argument("--folder", type=Path, help="where to keep the files (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if options.only in (None, "adult"):
            adult(options.data / "adult", options.repeat)
        if options.only in (None, "large"):
            large(options.data / "adult", options.folder or Path(scratch), options.rows, options.repeat)
        if options.only in (None, "wide"):
            print(f"\n15 quasi-identifiers, best_effort within {options.seconds:g} s, k = 5, limit 0.05")
            wide(options.data / "creditcard", CREDIT, options.seconds)
            wide(options.data / "mach2019", MACH, options.seconds)


if __name__ == "__main__":
    main()
