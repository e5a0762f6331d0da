"""Clusters: exact MDAV and how it grows, beside its naive form; every algorithm on ADULT, with its loss; large tables.

python -m tests.bench.clusters --data ../shared/data

Floats are made here; ADULT is not part of the project: ``--data`` (or DUCKANON_DATA) names the folder that has it. The
varied rows are those of ``tests.bench.lattice``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from duckanon.kernels.jit import kernel
from tests.bench.harness import measure, show
from tests.bench.lattice import hierarchies, varied
from tests.bench.mondrian import COLUMNS, mean_ncp
from tests.datasets import data_folder

K = 10
ALGORITHMS = ("mdav", "v_mdav", "tdg", "knn_clustering", "k_member", "greedy", "kaca")


def cloud(rows: int, columns: int) -> Any:
    """Return rows of standardised normal numbers, in the order of their values."""
    from duckanon.algorithms.clustering.clusters import Cloud
    from duckanon.algorithms.clustering.spaces import on_lines

    drawn = np.random.default_rng(20050).normal(size=(rows, columns))
    space, points = on_lines(drawn, np.zeros(drawn.shape, dtype=np.bool_), True)
    order = np.lexsort([points[:, j] for j in reversed(range(columns))])
    return Cloud(space, np.ascontiguousarray(points[order]), np.ones(rows, dtype=np.int64))


@kernel
def naive(points, k, labels):  # type: ignore[no-untyped-def]
    """Find the clusters of MDAV by looking at every row each time."""
    count, width = points.shape
    left, far = np.arange(count), np.empty(count)
    cluster, row = 0, np.empty(width)
    while len(left) >= 2 * k:
        turns = 2 if len(left) >= 3 * k else 1
        row[:] = 0.0
        for i in left:
            row += points[i]
        row /= len(left)
        for _ in range(turns):
            best = 0
            for at in range(len(left)):
                far[at] = 0.0
                for j in range(width):
                    far[at] += (points[left[at], j] - row[j]) ** 2
                if far[at] > far[best]:
                    best = at
            first = left[best]
            row[:] = points[first]
            for at in range(len(left)):
                far[at] = 0.0
                for j in range(width):
                    far[at] += (points[left[at], j] - row[j]) ** 2
            far[best] = -1.0
            # Of rows equally near the first are taken.
            bound = np.partition(far[: len(left)], k - 1)[k - 1]
            kept = np.ones(len(left), dtype=np.bool_)
            taken = 0
            for at in range(len(left)):
                if far[at] < bound:
                    kept[at], taken, labels[left[at]] = False, taken + 1, cluster
            for at in range(len(left)):
                if far[at] == bound and taken < k:
                    kept[at], taken, labels[left[at]] = False, taken + 1, cluster
            left = left[kept]
            cluster += 1
    for i in left:
        labels[i] = cluster


def _timed(work: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        found = work()
        seconds.append(time.perf_counter() - start)
    return min(seconds), found


def exact(largest: int, repeat: int) -> None:
    """MDAV on arrays, all compiled before: fastest of some runs, and the exponent by which it grows."""
    from duckanon.algorithms.clustering.clusters import mdav

    def ours(data: Any) -> Callable[[], Any]:
        return lambda: mdav(data, K, lambda rows: None)

    small = cloud(1000, 4)
    ours(small)()
    naive(small.points, K, np.empty(1000, dtype=np.int64))
    print(f"\nexact MDAV on arrays of normal numbers, k = {K}, fastest of {repeat}")
    for columns in (4, 8):
        data = cloud(30_000, columns)
        seconds, found = _timed(ours(data), repeat)
        labels = np.empty(len(found), dtype=np.int64)
        plain, _ = _timed(lambda data=data, labels=labels: naive(data.points, K, labels), 1)  # type: ignore[misc]
        pairs = np.unique(np.stack([found, labels]), axis=1).shape[1]
        same = "the same clusters" if pairs == found.max() + 1 == labels.max() + 1 else "OTHER CLUSTERS"
        print(
            f"    30,000 x {columns}: {seconds:.2f} s; naive {plain:.2f} s, {plain / seconds:.0f} times as long, {same}"
        )
        if columns == 4:
            base = seconds
    for columns in (1, 2, 3, 4):
        first = base if columns == 4 else _timed(ours(cloud(30_000, columns)), repeat)[0]
        last, _ = _timed(ours(cloud(largest, columns)), 1)
        grown = np.log(last / first) / np.log(largest / 30_000)
        print(f"    {largest:,} x {columns}: {last:.2f} s, {first:.2f} s for 30,000: exponent {grown:.2f}")


def adult(data: Path, repeat: int) -> None:
    """Every algorithm on ADULT in one warm process: seconds of the search, and the loss."""
    import duckanon

    print("\nADULT, 8 quasi-identifiers, bounds tight; seconds of the search and mean NCP at k = 5 / 10 / 50")
    for name in (*ALGORITHMS, "tdg(stable_seeds=true)", "knn_clustering(stable_seeds=true)"):
        seconds, losses = [], []
        for k in (5, 10, 50):
            best = np.inf
            for _ in range(repeat):
                with duckanon.anonymize(
                    data / "data.parquet",
                    quasi_identifiers=COLUMNS,
                    hierarchies=hierarchies(data, COLUMNS),
                    k=k,
                    algorithm=name,
                    bounds="tight",
                ) as release:
                    best = min(best, release.engine.progress.seconds["search"])
                    loss = mean_ncp(release, False)
            seconds.append(f"{best:.2f}")
            losses.append(f"{loss:.3f}")
        print(f"    {name:<34} {' / '.join(seconds)} s   {' / '.join(losses)}")


def files(scratch: Path, name: str, source: Path, algorithms: tuple[str, ...], **parameters: Any) -> None:
    """Copy a file, and anonymize it by one algorithm after the other, each in a process of its own."""
    figures = [measure("copy", "copy", source=str(source), target=str(scratch / "copy.parquet"))]
    target = str(scratch / "release.parquet")
    for algorithm in algorithms:
        work = {"source": str(source), "target": target, "k": K, "algorithm": algorithm, **parameters}
        figures.append(measure(algorithm, "anonymize", **work))
    print(f"\n{name}, k = {K}, Parquet to Parquet")
    show(figures, base="copy")
    for figure in figures[1:]:
        blocks = figure.detail["found"].get("blocks", 1)
        print(f"    {figure.name}: {figure.detail['found']['classes']} classes, {blocks} blocks")


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", choices=["exact", "adult", "floats", "varied"])
    given = parser.parse_args()

    def asked(part: str) -> bool:
        return given.only in (None, part)

    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        if asked("exact"):
            exact(given.rows, given.repeat)
        if asked("floats"):
            import pyarrow as pa
            import pyarrow.parquet as pq

            rng, source = np.random.default_rng(20060), scratch / "floats.parquet"
            pq.write_table(pa.table({f"x{j}": rng.normal(size=given.rows) for j in range(4)}), source)
            quasi = {"quasi_identifiers": [f"x{j}" for j in range(4)], "output": "mean"}
            files(
                scratch, f"{given.rows:,} rows of 4 floats, means", source, ("mdav", "tdg", "knn_clustering"), **quasi
            )
        if not given.data.is_dir():
            print("\nADULT is left out: --data names the folder that has it.")
            return
        where = given.data / "adult"
        if asked("adult"):
            adult(where, given.repeat)
        if asked("varied"):
            source = scratch / "varied.parquet"
            varied(where, source, given.rows)
            quasi = {"quasi_identifiers": COLUMNS, "hierarchies": hierarchies(where, COLUMNS)}
            files(scratch, f"varied ADULT, {given.rows:,} rows", source, ("tdg", "knn_clustering", "mdav"), **quasi)


if __name__ == "__main__":
    main()
