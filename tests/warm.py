"""Compile the kernels once, before several workers begin: else each of them compiles each kernel for itself.

Compiling takes a third of a first run. Here one process for each core takes what is left to do from one list; kernels
that are compiled already cost next to nothing.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

# What takes longest comes first.
RELEASES: tuple[dict[str, Any], ...] = (
    {"algorithm": "mondrian(relaxed=true)", "l": 2},
    {"algorithm": "mondrian(target='ill')", "l": 2},
    {"algorithm": "mondrian", "l": 2},
    {"algorithm": "mondrian(target='ill')"},
    {"algorithm": "mondrian(relaxed=true)"},
    {"algorithm": "mondrian"},
    {"algorithm": "mondrian", "quasi_identifiers": ["sex", "number"], "rows": 70_000},
    {"algorithm": "greedy"},
    {"algorithm": "kaca", "l": 2},
    {"algorithm": "knn_clustering(stable_seeds=true)"},
    {"algorithm": "knn_clustering", "t": 0.4},
    {"algorithm": "k_member"},
    {"algorithm": "mdav", "t": 0.4},
    {"algorithm": "mdav"},
    {"algorithm": "v_mdav"},
    {"algorithm": "tdg"},
    {"algorithm": "optimal", "suppression_limit": 0.1},
)


def make(wanted: dict[str, Any]) -> None:
    """Make a release for the sake of its kernels."""
    import pyarrow as pa

    import duckanon

    rng = random.Random(3)
    rows = wanted.pop("rows", 300)
    people = pa.table(
        {
            "sex": [rng.choice("fmx") for _ in range(rows)],
            "age": [rng.randint(0, 90) for _ in range(rows)],
            "number": list(range(rows)),
            "ill": [rng.choice("abcd") for _ in range(rows)],
        }
    )
    usual = {"quasi_identifiers": ["sex", "age"], "sensitive": ["ill"], "k": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        duckanon.anonymize(people, **{**usual, **wanted}).close()


def warm(processes: int) -> None:
    """Compile in so many processes. Whatever fails here fails again in a test, which says why."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for _ in _finished(pool):
            pass


def _finished(pool: ProcessPoolExecutor) -> Iterator[BaseException | None]:
    for one in [pool.submit(make, dict(wanted)) for wanted in RELEASES]:
        yield one.exception()


if __name__ == "__main__":
    warm(2)
