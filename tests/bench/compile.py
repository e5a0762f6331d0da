"""What compiling kernels costs the first call on a machine: processor time with an empty cache beside a filled one.

python -m tests.bench.compile --data ../shared/data
python -m tests.bench.compile --only mondrian "mondrian, l" --kernels

Each case runs in a process of its own with a cache of its own, once with what is compiled before it and once more:
the difference is what compiling costs. A case may begin with the kernels of another one. ADULT is not part of the
project: ``--data`` (or DUCKANON_DATA) names the folder that has it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from tests.bench.harness import measure, work
from tests.bench.lattice import ADULT, hierarchies
from tests.datasets import data_folder

NAMES = ADULT[:8]
SOME = 3_000
"""Rows that are clustered: enough for every kernel, few enough for the search not to hide what compiling costs."""
CASES: dict[str, dict[str, Any]] = {
    "mondrian": {},
    "mondrian, l": {"after": "mondrian", "sensitive": ["occupation"], "l": 3},
    "mondrian, t": {"after": "mondrian", "sensitive": ["occupation"], "t": 0.4},
    "mondrian, persons": {"after": "mondrian", "entity_key": "person"},
    "mondrian, relaxed": {"after": "mondrian", "algorithm": "mondrian(relaxed=true)"},
    "mondrian, target": {
        "after": "mondrian",
        "sensitive": ["occupation"],
        "algorithm": "mondrian(target='occupation')",
    },
    "optimal": {"algorithm": "optimal", "suppression_limit": 0.05},
    "optimal, l": {"after": "optimal", "algorithm": "optimal", "sensitive": ["occupation"], "l": 3},
    "tdg": {"algorithm": "tdg"},
    "mdav": {"algorithm": "mdav", "rows": SOME},
    "v_mdav": {"algorithm": "v_mdav", "rows": SOME},
    "knn_clustering": {"algorithm": "knn_clustering", "rows": SOME},
    "k_member": {"algorithm": "k_member", "rows": SOME},
    "greedy": {"algorithm": "greedy", "rows": SOME},
    "kaca": {"algorithm": "kaca", "rows": SOME},
}
GOALS = {
    "mondrian": 5.0,
    "mondrian, l": 2.0,
    "mondrian, t": 2.0,
    "mondrian, persons": 2.0,
    "optimal": 1.5,
    **dict.fromkeys(("tdg", "mdav", "knn_clustering", "k_member", "greedy"), 5.0),
}


@work
def release(data: str, rows: int, columns: int, kernels: bool, **parameters: Any) -> dict[str, Any]:
    """Anonymize ADULT once and write the release; return the processor time, and that of each kernel if asked for."""
    import pyarrow.parquet as pq

    import duckanon

    table = pq.read_table(Path(data) / "data.parquet")
    table = table.slice(0, rows or len(table))
    if "entity_key" in parameters:
        import pyarrow as pa

        table = table.append_column("person", pa.array([i // 2 for i in range(len(table))]))
    names = NAMES[:columns]
    seconds: dict[str, float] = {}
    started = time.process_time()
    given = {"quasi_identifiers": names, "hierarchies": hierarchies(Path(data), names), "k": 5, **parameters}
    with (
        _watched(seconds) if kernels else nullcontext(),
        tempfile.TemporaryDirectory() as folder,
        duckanon.anonymize(table, **given) as made,
    ):
        made.write(Path(folder) / "release.parquet")
    return {"cpu": time.process_time() - started, "kernels": seconds}


@contextmanager
def _watched(seconds: dict[str, float]) -> Iterator[None]:
    """Measure what each compilation takes by itself, without what it calls."""
    from numba.core import event

    open_ones: list[list[float]] = []

    class Watch(event.Listener):
        def on_start(self, event: Any) -> None:
            open_ones.append([time.thread_time(), 0.0])

        def on_end(self, event: Any) -> None:
            began, within = open_ones.pop()
            whole = time.thread_time() - began
            if open_ones:
                open_ones[-1][1] += whole
            name = f"{event.data['dispatcher'].py_func.__module__}.{event.data['dispatcher'].py_func.__name__}"
            types = "".join(str(event.data["args"]).split())
            if not name.startswith("numba."):
                seconds[f"{name} {types}"] = seconds.get(f"{name} {types}", 0.0) + whole - within

    with event.install_listener("numba:compile", Watch()):
        yield


def run(case: str, data: Path, cache: Path, kernels: bool = False) -> Any:
    """Run a case in a process with this cache."""
    given = {"rows": 0, "columns": 8, "algorithm": "mondrian", **CASES[case]}
    given.pop("after", None)
    os.environ["NUMBA_CACHE_DIR"] = str(cache)
    return measure(case, "compile.release", data=str(data), kernels=kernels, **given)


def compiling(case: str, data: Path, kernels: bool) -> tuple[float, float, int, dict[str, float]]:
    """Return the processor time of a case with and without compiling, the kernels stored, and what each took."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        after = CASES[case].get("after")
        if after is not None:
            run(after, data, cache)
        before = len(list(cache.rglob("*.nbc")))
        cold = run(case, data, cache, kernels)
        stored = len(list(cache.rglob("*.nbc"))) - before
        warm = min(run(case, data, cache).cpu for _ in range(2))
        shutil.rmtree(cache)
    return cold.cpu, warm, stored, cold.detail["kernels"]


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--only", nargs="+", choices=CASES, metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--kernels", action="store_true", help="what each kernel takes, by its types")
    options = parser.parse_args()
    print(f"{'processor seconds':<22} {'cold':>7} {'warm':>7} {'compiling':>10} {'goal':>6} {'kernels stored':>15}")
    for case in options.only or CASES:
        found = [compiling(case, options.data / "adult", options.kernels) for _ in range(options.repeat)]
        cold, warm = (statistics.median(f[i] for f in found) for i in range(2))
        spent = statistics.median(f[0] - f[1] for f in found)
        goal = f"{GOALS[case]:.1f}" if case in GOALS else ""
        print(f"{case:<22} {cold:>7.2f} {warm:>7.2f} {spent:>10.2f} {goal:>6} {found[0][2]:>15}", flush=True)
        for name, seconds in sorted(found[0][3].items(), key=lambda entry: -entry[1]):
            print(f"    {seconds:>6.2f} {name[:150]}")


if __name__ == "__main__":
    main()
