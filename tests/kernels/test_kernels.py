"""Kernels against plain Python: compiled, interpreted, and with bounds checked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from duckanon.kernels import lattice
from duckanon.kernels.lattice import group, weighted_leaves

BITS = (3, 7, 5, 60, 4)
PLACES = ((0, 0), (0, 3), (0, 10), (1, 0), (2, 0))


def cases(count: int) -> None:
    """Compare on random tables of five columns in three words."""
    rng = np.random.default_rng(7)
    words = np.array([w for w, _ in PLACES], dtype=np.int64)
    shifts = np.array([s for _, s in PLACES], dtype=np.uint64)
    masks = np.array([(1 << b) - 1 for b in BITS], dtype=np.uint64)
    everything = np.full(3, np.iinfo(np.uint64).max, dtype=np.uint64)
    for _ in range(count):
        rows = int(rng.integers(0, 60))
        sizes = [int(rng.integers(1, min(1 << b, 9))) for b in BITS]
        codes = np.stack([rng.integers(0, s, rows) for s in sizes], axis=1)
        counts = rng.integers(1, 5, rows)
        keys = np.zeros((rows, 3), dtype=np.uint64)
        for j, (w, s) in enumerate(PLACES):
            keys[:, w] |= codes[:, j].astype(np.uint64) << np.uint64(s)
        changed = [j for j in range(5) if rng.random() < 0.5]
        maps = {j: rng.integers(0, sizes[j], sizes[j]) for j in changed}
        offsets = np.cumsum([0, *(len(maps[j]) for j in changed[:-1])])[: len(changed)].astype(np.int64)
        table = np.concatenate([maps[j] for j in changed]) if changed else np.zeros(1, dtype=np.int64)
        keep = everything.copy()
        if dropped := rng.random() < 0.3:
            keep[2] = np.uint64(0)
        places = (words[changed], shifts[changed], masks[changed], offsets, table.astype(np.int64))
        found, totals, joined = group(keys, counts.astype(np.int64), *places, keep)
        expected: Counter[tuple[int, ...]] = Counter()
        lines: Counter[tuple[int, ...]] = Counter()
        for row, n in zip(codes.tolist(), counts.tolist(), strict=True):
            new = tuple(int(maps[j][c]) if j in maps else c for j, c in enumerate(row))
            new = (*new[:4], 0) if dropped else new
            expected[new] += n
            lines[new] += 1
        unpacked = [tuple(int((k[w] >> s) & m) for w, s, m in zip(words, shifts, masks, strict=True)) for k in found]
        assert dict(zip(unpacked, totals.tolist(), strict=True)) == dict(expected)
        assert dict(zip(unpacked, joined.tolist(), strict=True)) == dict(lines)
        assert unpacked == list(expected), "classes come in the order of their first rows"
        kept = rng.random(len(found)) < 0.7
        leaves = [rng.random(s) for s in sizes]
        starts = np.cumsum([0, *(len(x) for x in leaves[:-1])]).astype(np.int64)
        sums = np.zeros(5)
        weighted_leaves(found, totals, kept, words, shifts, masks, starts, np.concatenate(leaves), sums)
        for j in range(5):
            plain = sum(n * leaves[j][u[j]] for u, n, k in zip(unpacked, totals, kept, strict=True) if k)
            assert abs(sums[j] - plain) < 1e-9


def test_compiled_kernels_give_what_their_references_give() -> None:
    cases(300)


def test_parts_side_by_side_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for least in (1, 7, 20):
        monkeypatch.setattr(lattice, "_LEAST", least)
        monkeypatch.setattr(lattice, "_WORKERS", 3)
        cases(60)


@pytest.mark.parametrize("setting", ["NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"])
def test_interpreted_and_with_bounds_checked(setting: str) -> None:
    paths = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, setting: "1", "PYTHONPATH": paths}
    command = [sys.executable, "-c", "from tests.kernels.test_kernels import cases; cases(60)"]
    subprocess.run(command, env=environment, check=True, timeout=600)
