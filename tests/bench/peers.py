"""Mondrian of another library beside ours: the same rows, the same columns, the same kind of cells, one run.

pip install anonypy pandas && python -m tests.bench.peers --data ../shared/data

anonypy publishes the smallest and largest number of a class and the set of its values; ours does so with tight bounds
and sets. It is the one published Mondrian that installs from the package index.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from tests.bench.lattice import hierarchies
from tests.bench.mondrian import COLUMNS, mean_ncp
from tests.datasets import data_folder


def theirs(rows: Any, data: Path, k: int) -> tuple[float, float, int]:
    """Return the seconds of anonypy's partitioning, the mean NCP over cells, and the classes."""
    from anonypy.mondrian import Mondrian

    frame = rows.to_pandas()
    words = [c for c in COLUMNS if c != "age"]
    frame = frame.astype(dict.fromkeys(words, "category"))
    start = time.perf_counter()
    classes = Mondrian(frame, COLUMNS).partition(k)
    seconds = time.perf_counter() - start
    assert sum(map(len, classes)) == len(frame)
    assert min(map(len, classes)) >= k
    total = 0.0
    for column in COLUMNS:
        own = frame[column]
        # As of ours: all values that the hierarchy lists, though some of them do not occur.
        listed = len((data / "hierarchies" / f"{column}.csv").read_text().splitlines())
        domain = listed if column in words else own.max() - own.min()
        for members in classes:
            found = own[members]
            distinct = found.nunique() if column in words else 0
            wide = (distinct if distinct > 1 else 0) if column in words else found.max() - found.min()
            total += len(members) * wide / domain
    return seconds, total / (len(frame) * len(COLUMNS)), len(classes)


def ours(rows: Any, data: Path, k: int, repeat: int = 2) -> tuple[float, float, int, float]:
    """Return the seconds of our search, the mean NCP, the classes, and the seconds of the whole call; all warm."""
    import duckanon

    found = []
    for _ in range(repeat):
        start = time.perf_counter()
        with duckanon.anonymize(
            rows,
            quasi_identifiers=COLUMNS,
            hierarchies=hierarchies(data, COLUMNS),
            k=k,
            bounds="tight",
            output="set",
        ) as release:
            whole = time.perf_counter() - start
            search = release.engine.progress.seconds["search"]
            found.append((search, mean_ncp(release, True), release.classes().num_rows, whole))
    return min(found)


def main() -> None:
    """Anonymize some rows of ADULT both ways."""
    import pyarrow.parquet as pq

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--rows", type=int, nargs="+", default=[3_000, 30_162])
    parser.add_argument("-k", type=int, nargs="+", default=[10])
    options = parser.parse_args()
    table = pq.read_table(options.data / "adult" / "data.parquet")
    print(f"{'rows':>7} {'k':>4} {'':<10} {'search s':>9} {'whole s':>8} {'mean NCP':>9} {'classes':>8}")
    for count in options.rows:
        rows = table.slice(0, count)
        for k in options.k:
            search, loss, classes, whole = ours(rows, options.data / "adult", k)
            print(f"{count:>7} {k:>4} {'duckanon':<10} {search:>9.3f} {whole:>8.2f} {loss:>9.3f} {classes:>8}")
            seconds, loss, classes = theirs(rows, options.data / "adult", k)
            print(f"{count:>7} {k:>4} {'anonypy':<10} {seconds:>9.3f} {'':>8} {loss:>9.3f} {classes:>8}")
            print(f"{'':>13}{'ratio':<10} {seconds / search:>9.0f} {seconds / whole:>8.0f}")


if __name__ == "__main__":
    main()
