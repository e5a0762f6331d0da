"""Clusters of the kernels against the slow references, on hundreds of random spaces and on some larger ones."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from properties.clustering_cases import random_space
from properties.clustering_clouds import as_sets, cloud_of, lines_first, of_labels
from properties.test_clustering_reference import merged
from reference.greedy import greedy
from reference.k_member import k_member
from reference.kaca import kaca
from reference.knn_clustering import knn_clustering
from reference.mdav import mdav
from reference.mdav_across import mdav_across, spread_size
from reference.merging import merge_rounds
from reference.space import Line, Space, Tree
from reference.tdg import tdg
from reference.v_mdav import v_mdav

from duckanon.algorithms.clustering import clusters
from duckanon.algorithms.clustering import mdav as mdav_module
from duckanon.algorithms.clustering.clustering import Run, in_blocks
from duckanon.algorithms.clustering.clusters import Cloud
from duckanon.algorithms.partition.partition import Items, Rules
from duckanon.models import KAnonymity, LDiversity

WEIGHTED = ("greedy", "kaca", "tdg", "tdg_stable")
NAMES = ("mdav", "mdav_scanned", "v_mdav", "knn", "knn_stable", "k_member", *WEIGHTED)
GAMMAS = [0.0, 0.2, 0.5, 1.1, 3.0]


def nothing(_: int) -> None:
    """Is told how far the work is."""


def fast(name: str, cloud: Cloud, k: int, seed: int) -> np.ndarray:
    gamma = GAMMAS[seed % len(GAMMAS)]
    found: dict[str, Callable[[], np.ndarray]] = {
        "mdav": lambda: clusters.mdav_in_tree(cloud, k, nothing),
        "mdav_scanned": lambda: clusters.mdav_scanned(cloud, k, nothing),
        "v_mdav": lambda: clusters.v_mdav(cloud, k, gamma, nothing),
        "knn": lambda: clusters.knn_clustering(cloud, k, seed, False, nothing),
        "knn_stable": lambda: clusters.knn_clustering(cloud, k, seed, True, nothing),
        "k_member": lambda: clusters.k_member(cloud, k, seed, nothing),
        "greedy": lambda: clusters.greedy(cloud, k, nothing),
        "kaca": lambda: clusters.kaca(cloud, k, seed, nothing),
        "tdg": lambda: clusters.tdg(cloud, k, seed, False, 1, nothing),
        "tdg_stable": lambda: clusters.tdg(cloud, k, seed, True, 1, nothing),
    }
    return found[name]()


def slow(name: str, space: Space, k: int, seed: int) -> list[list[int]]:
    gamma = GAMMAS[seed % len(GAMMAS)]
    found: dict[str, Callable[[], list[list[int]]]] = {
        "mdav": lambda: mdav(space, k),
        "mdav_scanned": lambda: mdav(space, k),
        "v_mdav": lambda: v_mdav(space, k, gamma),
        "knn": lambda: knn_clustering(space, k, seed),
        "knn_stable": lambda: knn_clustering(space, k, seed, stable_seeds=True),
        "k_member": lambda: k_member(space, k, seed),
        "greedy": lambda: greedy(space, k),
        "kaca": lambda: kaca(space, k, seed),
        "tdg": lambda: tdg(space, k, seed),
        "tdg_stable": lambda: tdg(space, k, seed, stable_seeds=True),
    }
    return found[name]()


def draw(seed: int, weighted: bool = False, least: int = 1, most: int = 60) -> tuple[Space, Cloud, np.random.Generator]:
    """A random space, and its cloud; pairs of places are not written down in every third."""
    rng = np.random.default_rng(seed)
    while True:
        space = lines_first(random_space(rng, weighted=weighted, ordered=True, tight=False, most=most))
        if space.n >= least:
            return space, cloud_of(space, many=seed % 3 == 0), rng


def compare(name: str, seed: int, **how: Any) -> None:
    space, cloud, rng = draw(seed, name in WEIGHTED, **how)
    k = int(rng.integers(1, 9)) * (1 + 2 * (name in WEIGHTED and seed % 2))
    assert of_labels(fast(name, cloud, k, seed)) == as_sets(slow(name, space, k, seed)), f"seed {seed}, k {k}"


@pytest.mark.parametrize("name", NAMES)
def test_clusters_are_the_references(name: str) -> None:
    # Merging is slow in the reference.
    for seed in range(40 if name in ("greedy", "kaca") else 80):
        compare(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
@pytest.mark.parametrize("name", NAMES)
def test_clusters_are_the_references_thousands_more(name: str, block: int) -> None:
    for seed in range(1000 + 500 * block, 1500 + 500 * block):
        compare(name, seed)


@pytest.mark.parametrize("name", ["mdav", "mdav_scanned", "v_mdav", "knn", "knn_stable", "tdg", "tdg_stable"])
@pytest.mark.thinned(2)
def test_larger_tables_are_clustered_as_by_the_reference(name: str) -> None:
    """Trees have several levels then, and some of their leaves are empty long before others."""
    for seed in range(4):
        compare(name, seed, least=300, most=450)


@pytest.mark.parametrize("drawn", [False, True])
def test_merging_of_many_classes(drawn: bool) -> None:
    """Its tree is made anew whenever half of the classes are gone."""
    for seed in range(12):
        space, cloud, rng = draw(seed, weighted=True, least=300, most=450)
        k = int(rng.integers(2, 40))
        numbers = [float(u) for u in np.random.default_rng(seed).random(space.n)]
        found = clusters.kaca(cloud, k, seed, nothing) if drawn else clusters.greedy(cloud, k, nothing)
        assert of_labels(found) == as_sets(merged(space, k, numbers if drawn else None)), f"seed {seed}, k {k}"


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("greedy", "kaca")])
def test_more_larger_tables(name: str) -> None:
    for seed in range(100, 120):
        compare(name, seed, least=300, most=450)


def test_k_member_of_a_larger_table() -> None:
    for seed in range(2):
        compare("k_member", seed, least=120, most=160)


@pytest.mark.parametrize("name", ["mdav", "mdav_scanned", "v_mdav", "knn", "knn_stable", "k_member", "greedy", "kaca"])
def test_work_that_is_interrupted_goes_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels come back after some clusters or merges, so that it can be said how far they are."""
    monkeypatch.setattr("duckanon.algorithms.clustering.clusters._AT_ONCE", 2)
    for seed in range(500, 540):
        compare(name, seed)


@pytest.mark.slow
def test_kernels_stay_within_their_arrays() -> None:
    """All of the above once more, with every index checked."""
    checked = {**os.environ, "NUMBA_BOUNDSCHECK": "1"}
    asked = ["-n", "0", "-q", "-p", "no:cacheprovider", "-m", "not slow", "-k", "references or larger or merging"]
    command = [sys.executable, "-m", "pytest", *asked, __file__]
    done = subprocess.run(command, env=checked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


# Clusters with a row of every stratum.


def compare_across(seed: int, **how: Any) -> None:
    space, cloud, rng = draw(seed, **how)
    values = rng.integers(0, int(rng.integers(1, space.n + 1)), space.n)
    t = float(rng.choice([0.02, 0.05, 0.1, 0.3]))
    size = mdav_module.spread_size(space.n, min(int(rng.integers(1, 9)), space.n), t)
    found = mdav_module.across(cloud, values, size, nothing)
    expected = mdav_across(space, [int(v) for v in values], size)
    assert of_labels(found) == as_sets(expected), f"seed {seed}, size {size}"
    assert len(expected) == space.n // size
    assert {len(c) for c in expected} <= {size, size + 1}


def test_clusters_across_strata_are_the_references() -> None:
    for seed in range(400):
        compare_across(seed)


def test_clusters_across_strata_of_larger_tables() -> None:
    for seed in range(6):
        compare_across(seed, least=300, most=450)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_clusters_across_strata_thousands_more(block: int) -> None:
    for seed in range(1000 + 500 * block, 1500 + 500 * block):
        compare_across(seed)


def test_sizes_of_clusters_across_strata() -> None:
    for count in range(2, 120):
        for k in range(1, min(count, 30) + 1):
            for t in (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0):
                size = mdav_module.spread_size(count, k, t)
                assert size == spread_size(count, k, t)
                assert count % size <= count // size, "the stratum in the middle has one more for each cluster at most"


# Rounds of merging.


def compare_rounds(seed: int, **how: Any) -> None:
    """Random classes with sensitive values are merged until each has enough rows and enough distinct values."""
    space, cloud, rng = draw(seed, weighted=True, **how)
    k, distinct, codes = (int(rng.integers(1, high)) for high in (12, 5, 7))
    values = rng.integers(0, codes, space.n)
    labels = np.unique(rng.integers(0, int(rng.integers(1, space.n + 1)), space.n), return_inverse=True)[1]
    totals = np.bincount(values, weights=cloud.counts, minlength=codes).astype(np.int64)
    items = Items(np.zeros((space.n, 0), dtype=np.int64), counts=cloud.counts, values={"s": values})
    rules = Rules((KAnonymity(k), LDiversity(distinct, "s")), {"s": (totals, ())})
    each = np.arange(space.n)
    parts = Run(cloud, items, rules, each, each).merged(labels)
    found = [parts.order[a:b].tolist() for a, b in zip(parts.starts, parts.starts[1:], strict=False)]

    def fine(members: Any) -> bool:
        return space.rows(members) >= k and len({int(values[i]) for i in members}) >= distinct

    begun = [np.flatnonzero(labels == c).tolist() for c in range(int(labels.max()) + 1)]
    expected = merge_rounds(space, begun, fine)
    assert as_sets(found) == as_sets(expected), f"seed {seed}"
    assert len(expected) == 1 or all(map(fine, expected))


def test_rounds_of_merging_are_the_references() -> None:
    for seed in range(200):
        compare_rounds(seed)
    for seed in range(2):
        compare_rounds(seed, least=150, most=200)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_rounds_of_merging_thousands_more(block: int) -> None:
    for seed in range(1000 + 500 * block, 1500 + 500 * block):
        compare_rounds(seed)


# Threads and blocks.


@pytest.mark.parametrize("stable", [False, True])
def test_groups_that_several_threads_divide(stable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duckanon.algorithms.clustering.clusters._GRAIN", 3)
    for seed in range(60):
        space, cloud, rng = draw(seed, weighted=True)
        k = int(rng.integers(1, 9))
        expected = as_sets(tdg(space, k, seed, stable_seeds=stable))
        for threads in (1, 4):
            assert of_labels(clusters.tdg(cloud, k, seed, stable, threads, nothing)) == expected, f"seed {seed}"


@pytest.mark.parametrize("stable", [False, True])
def test_any_number_of_threads_gives_the_same(stable: bool) -> None:
    rng = np.random.default_rng(3)
    n = 60_000
    line = [round(float(x) * 2**26) / 2**26 for x in rng.random(n)]
    space = Space([Line(line, 1.0), Line([float(x) for x in rng.integers(0, 50, n)], 49.0), flat_tree(rng, n, 40)])
    found = []
    for threads in (1, 2, 5):
        told: list[int] = []
        found.append(clusters.tdg(cloud_of(space), 4, 9, stable, threads, told.append))
        assert sum(told) == n
    assert np.bincount(found[0]).min() >= 4
    assert all(np.array_equal(found[0], other) for other in found)


def flat_tree(rng: np.random.Generator, n: int, size: int) -> Tree:
    """Categories without a hierarchy: any two are equally far apart."""
    return Tree([int(p) for p in rng.integers(0, size, n)], [list(range(size)), [0] * size], [[0.0] * size, [1.0]])


def test_groups_from_which_little_is_split_off_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where numbers are farther and farther apart halves are as uneven as can be: paths have more steps than bits."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        space = Space([Line([2.0 ** int(i) for i in rng.permutation(400)], 2.0**400) for _ in range(2)])
        expected = as_sets(tdg(space, 2, seed))
        for grain in (10**6, 3):
            monkeypatch.setattr("duckanon.algorithms.clustering.clusters._GRAIN", grain)
            assert of_labels(clusters.tdg(cloud_of(space), 2, seed, False, 2, nothing)) == expected, f"grain {grain}"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_are_clustered_each_by_itself(name: str, threads: int) -> None:
    for seed in range(4):
        space, cloud, rng = draw(seed, name in WEIGHTED, least=200, most=400)
        k = int(rng.integers(1, 6))
        size = int(rng.integers(4 * k, 100))
        labels, sizes = blocks_of(name, cloud, k, size, threads)
        of_labels(labels)
        assert np.bincount(labels, weights=cloud.counts).min() >= k
        assert len(sizes) > 1
        assert sum(sizes) == len(labels) == space.n
        assert max(sizes) <= max(size, 12)
        assert min(sizes) >= 2 * k


def blocks_of(name: str, cloud: Cloud, k: int, size: int, threads: int) -> tuple[np.ndarray, list[int]]:
    sizes: list[int] = []

    def cluster(part: Cloud) -> np.ndarray:
        sizes.append(len(part.points))
        return fast(name, part, k, 1)

    labels, count = in_blocks(cloud, size, threads, cluster, nothing)
    assert count == len(sizes)
    return labels, sizes


# Few rows.


@pytest.mark.parametrize("name", NAMES)
def test_fewer_rows_than_two_classes(name: str) -> None:
    for n in range(1, 8):
        space = Space([Line([float(i) for i in range(n)], 10.0)])
        for k in range(n // 2 + 1, n + 2):
            labels = fast(name, cloud_of(space), k, 1)
            assert of_labels(labels) == as_sets(slow(name, space, k, 1)) == [tuple(range(n))]


@pytest.mark.parametrize("name", NAMES)
def test_rows_that_are_all_equal(name: str) -> None:
    space = Space([Line([1.0] * 40, 1.0), Tree([0] * 40, [[0, 1], [0, 0]], [[0.0, 0.0], [1.0]])])
    for k in (1, 3, 7):
        labels = fast(name, cloud_of(space), k, 1)
        assert of_labels(labels) == as_sets(slow(name, space, k, 1))


@pytest.mark.parametrize("name", NAMES)
def test_all_are_missing(name: str) -> None:
    space = Space([Line([None] * 20, 1.0), Line([float(i % 3) for i in range(20)], 2.0)], norm="squares")
    for k in (1, 3, 7):
        labels = fast(name, cloud_of(space), k, 1)
        assert of_labels(labels) == as_sets(slow(name, space, k, 1))
