"""Compiles the kernels once before several workers start; otherwise each worker would compile each kernel.

Compiling takes a third of a first run. One process works through each list; kernels that are in the cache cost next to
nothing. Parts that kernels share are compiled once in a process, so kernels that share most are in one list, and both
lists take about the same time.
"""

from __future__ import annotations

import random
import warnings
from concurrent.futures import ProcessPoolExecutor, wait
from contextlib import suppress
from multiprocessing import get_context
from typing import Any

DIVIDING: tuple[dict[str, Any], ...] = (
    {"algorithm": "mondrian(relaxed=true)", "l": 2},
    {"algorithm": "mondrian(target='ill')", "l": 2},
    {"algorithm": "mondrian", "l": 2},
    {"algorithm": "mondrian(target='ill')"},
    {"algorithm": "mondrian(relaxed=true)"},
    {"algorithm": "mondrian"},
    {"algorithm": "mondrian", "quasi_identifiers": ["sex", "number"], "rows": 70_000},
    {"algorithm": "optimal", "suppression_limit": 0.1},
    {"algorithm": "optimal", "suppression_limit": 0.1, "l": 2},
)
CLUSTERING: tuple[dict[str, Any], ...] = (
    {"algorithm": "mdav"},
    {"algorithm": "mdav", "t": 0.4},
    {"algorithm": "mdav", "sensitive": ["number"], "t": 0.05},
    {"algorithm": "v_mdav"},
    {"algorithm": "knn_clustering(stable_seeds=true)"},
    {"algorithm": "knn_clustering", "t": 0.4},
    {"algorithm": "k_member", "output": "medoid"},
    {"algorithm": "greedy"},
    {"algorithm": "kaca", "l": 2},
    {"algorithm": "tdg", "quasi_identifiers": ["age", "number"], "rows": 20_500},
)
ATTACKS = ("distance_linkage", "inference", "linkability", "probabilistic_linkage", "singling_out")


def make(wanted: dict[str, Any], attacks: tuple[str, ...] = ()) -> None:
    """Make a release and attack it, so that the kernels involved are compiled."""
    import pyarrow as pa

    import duckanon

    rng = random.Random(3)
    wanted = dict(wanted)
    rows = wanted.pop("rows", 301)  # some are left when clusters of three are made
    people = pa.table(
        {
            "sex": [rng.choice("fmx") for _ in range(rows)],
            "age": [rng.randint(0, 90) for _ in range(rows)],
            "number": list(range(rows)),
            "ill": [rng.choice("abcd") for _ in range(rows)],
        }
    )
    usual = {"quasi_identifiers": ["sex", "age"], "sensitive": ["ill"], "k": 3}
    # A failure here is repeated and reported by a test.
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        with duckanon.anonymize(people, **{**usual, **wanted}) as release:
            if attacks:
                duckanon.attack(people, release, attacks=list(attacks))


def dividing() -> None:
    for wanted in DIVIDING:
        make(wanted)


def clustering() -> None:
    import numpy as np

    from duckanon.kernels.descending import descend

    for wanted in CLUSTERING:
        make(wanted)
    make({"algorithm": "datafly", "suppression_limit": 0.1}, ATTACKS)
    corners, ways = np.zeros((2, 2), dtype=np.int32), np.zeros(2, dtype=np.int64)
    descend(corners, ways[:1], ways[:1] - 1, ways, *[ways[:1]] * 2, ways[:1] - 1, corners, corners, ways.copy())


def compiled_kernels() -> set[str]:
    """Return the names of the compiled kernels in the cache, one for each combination of types."""
    from duckanon.kernels import jit

    return {path.stem for path in jit._FOLDER.glob("*.nbc")}


def warm(processes: int) -> None:
    """Compile all kernels with a number of processes."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        wait([pool.submit(some) for some in (dividing, clustering)])


if __name__ == "__main__":
    warm(2)
