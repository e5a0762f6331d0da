"""Compiles the kernels once before several workers start; otherwise each worker would compile each kernel.

Kernels that are in the cache cost next to nothing.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, wait
from multiprocessing import get_context

from duckanon.jobs.warmup import OTHERS, USUAL, make

# What shares most is compiled by one process; both take about the same time.
DIVIDING = (*USUAL, *OTHERS[:2])
CLUSTERING = OTHERS[2:]


def dividing() -> None:
    for case in DIVIDING:
        make(case)


def clustering() -> None:
    for case in CLUSTERING:
        make(case)


def compiled_kernels() -> set[str]:
    """Return the names of the compiled kernels in the cache, one for each combination of types."""
    from duckanon.kernels import jit

    return jit.stored()


def warm(processes: int) -> None:
    """Compile all kernels with a number of processes."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        wait([pool.submit(some) for some in (dividing, clustering)])


if __name__ == "__main__":
    warm(2)
