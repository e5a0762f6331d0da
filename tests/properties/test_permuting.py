"""Probabilistic k-anonymity against its slow reference: dissimilarities, groups, blocks, permutations and links."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from reference import probabilistic as reference
from reference.mdav import mdav
from reference.space import Line, Space

import duckanon
from duckanon.algorithms.clustering.clusters import Cloud
from duckanon.algorithms.clustering.clusters import mdav as fast_mdav
from duckanon.algorithms.clustering.spaces import free_space
from duckanon.algorithms.partition.partition import Items, PartitionAxis, Parts
from duckanon.algorithms.permutation.ahmad_dey import Apart, Beside, apart
from duckanon.algorithms.permutation.permuting import Draw, _chance_to_stay, permute
from duckanon.recoding.permutation import secret_of

GRAIN = 2.0**26


def table(seed: int) -> tuple[list[list[Any]], list[bool]]:
    """Return a few columns of few values, some of them numbers, that have to do with each other."""
    random = np.random.default_rng(seed)
    rows = int(random.integers(8, 40))
    hidden = random.integers(0, 3, rows)
    columns: list[list[Any]] = []
    numeric = [bool(b) for b in random.integers(0, 2, int(random.integers(2, 5)))]
    for is_number in numeric:
        noise = random.integers(0, 3, rows)
        own = (hidden * random.integers(0, 2) + noise) % 4
        columns.append([int(v) for v in own] if is_number else [f"v{v}" for v in own])
    return columns, numeric


def coded(columns: list[list[Any]]) -> tuple[list[list[Any]], list[np.ndarray]]:
    values = [sorted(set(c)) for c in columns]
    return values, [np.array([v.index(x) for x in c]) for v, c in zip(values, columns, strict=True)]


def distances(columns: list[list[Any]], numeric: list[bool]) -> tuple[Apart, list[list[Any]]]:
    values, codes = coded(columns)
    counts = {}
    for i in range(len(columns)):
        for j in range(i + 1, len(columns)):
            counts[i, j] = np.zeros((len(values[i]), len(values[j])))
            np.add.at(counts[i, j], (codes[i], codes[j]), 1)
    beside = [Beside(f"c{j}", len(v), n) for j, (v, n) in enumerate(zip(values, numeric, strict=True))]
    return apart(beside, counts), values


@pytest.mark.parametrize("seed", range(25))
def test_ahmad_dey_is_its_definition(seed: int) -> None:
    columns, numeric = table(seed)
    found, values = distances(columns, numeric)
    for j, is_number in enumerate(numeric):
        if is_number:
            assert found.weights[j] == pytest.approx(float(reference.significance(columns, j)))
            continue
        for a, first in enumerate(values[j]):
            for b, second in enumerate(values[j]):
                wanted = reference.category_distance(columns, j, first, second)
                assert found.matrices[j][a, b] == pytest.approx(float(wanted), abs=1e-12)


def test_ahmad_dey_of_one_column() -> None:
    found = apart([Beside("a", 3, False)], {})
    assert (found.matrices[0] == 1 - np.eye(3)).all()


@dataclass(frozen=True)
class Matrix:
    """A column of the reference whose values are apart by a table; the middle is the most frequent, first in a row."""

    values: list[int]
    table: np.ndarray
    rank: list[int]

    def delta(self, a: int, b: int) -> float:
        return float(np.rint(np.sqrt(self.table[a, b]) * GRAIN) / GRAIN)

    def centre(self, values: list[int]) -> int:
        counts = Counter(values)
        return min(counts, key=lambda v: (-counts[v], self.rank[v]))


class Mixed(Space):
    def __init__(self, columns: list[Any]):
        self.columns, self.norm = columns, "squares"
        self.items = [list(row) for row in zip(*(c.values for c in columns), strict=True)]
        self.n = len(self.items)


def chained(matrix: np.ndarray) -> list[int]:
    chain = [0]
    while len(chain) < len(matrix):
        chain.append(min(set(range(len(matrix))) - set(chain), key=lambda v: (matrix[chain[-1], v], v)))
    return chain


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("k", [2, 3, 5])
def test_groups_by_ahmad_dey_are_those_of_naive_mdav(seed: int, k: int) -> None:
    columns, numeric = table(seed + 1000)
    own, values = distances(columns, numeric)
    _, codes = coded(columns)
    axes, slow = [], []
    for j, is_number in enumerate(numeric):
        size = len(values[j])
        if is_number:
            numbers = np.array(values[j], dtype=np.float64)
            weight = float(np.sqrt(own.weights[j]))
            axes.append(PartitionAxis(size, False, numbers, np.arange(size), weight=weight))
            wide = float(numbers[-1] - numbers[0]) or 1.0
            placed = [float(np.rint((v - values[j][0]) / wide * weight * GRAIN) / GRAIN) for v in columns[j]]
            slow.append((j, Line(placed, float(np.rint(weight * GRAIN) / GRAIN))))
        else:
            axes.append(PartitionAxis(size, False, np.zeros(size), nodes=(np.arange(size),), leaves=(np.ones(size),)))
    for j, matrix in own.matrices.items():
        chain = chained(matrix)
        slow.append((j, Matrix(codes[j].tolist(), matrix, [chain.index(v) for v in range(len(matrix))])))
    places = np.stack(codes, axis=1)
    space = free_space(axes, Items(places), own.matrices)
    cloud = Cloud(space.space, space.points(places), np.ones(len(places), dtype=np.int64))
    labels = fast_mdav(cloud, k, lambda rows: None)
    wanted = mdav(Mixed([column for _, column in slow]), k)
    found = [sorted(np.flatnonzero(labels == label).tolist()) for label in range(labels.max() + 1)]
    assert sorted(found) == sorted(sorted(cluster) for cluster in wanted)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.thinned(2)
def test_blocks_follow_mutual_information(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = 90
    ill = random.integers(0, 3, rows)
    columns = {
        f"q{j}": (ill * random.integers(0, 2, rows) * j + random.integers(0, 9, rows)).astype(float) for j in range(5)
    }
    columns["q1"] = random.normal(0, 1, rows) + ill
    texts = {"q3": [f"v{int(v)}" for v in columns["q3"]]}
    data = pa.table({**columns, **texts, "ill": [f"s{v}" for v in ill]})
    names = list(columns)
    binned = {n: reference.intervals(data.column(n).to_pylist(), 7) if n != "q3" else texts["q3"] for n in names}
    sensitive = data.column("ill").to_pylist()
    told = [reference.mutual_information(binned[n], sensitive) for n in names]
    wanted = [[names[j] for j in block] for block in reference.blocks(told)]
    with duckanon.anonymize(
        data, quasi_identifiers=names, sensitive=["ill"], k=3, algorithm="probabilistic(intervals=7)"
    ) as found:
        summary = found.summary()["permutation"]
        assert [sorted(b) for b in summary["blocks"]] == [sorted(b) for b in wanted]
        before = summary["mutual_information"]["with_sensitive"]["before"]
        assert before == pytest.approx(sum(told) / len(told))
        rows_out = found.to_arrow()
        after = [
            reference.mutual_information(
                _like(binned[n], data.column(n).to_pylist(), rows_out.column(n).to_pylist()),
                rows_out.column("ill").to_pylist(),
            )
            for n in names
        ]
        assert summary["mutual_information"]["with_sensitive"]["after"] == pytest.approx(sum(after) / len(after))


def _like(binned: list[Any], values: list[Any], others: list[Any]) -> list[Any]:
    known = dict(zip(values, binned, strict=True))
    return [known[v] for v in others]


# The permutation


def grouped(random: Any, sizes: list[int], width: int, kinds: int) -> tuple[Items, Parts]:
    rows = sum(sizes)
    places = random.integers(0, kinds, (rows, width)).astype(np.uint16)
    order = random.permutation(rows).astype(np.int32)
    none = np.empty((len(sizes), 0), dtype=np.int32)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Items(places, ties=random.integers(0, 2**60, rows).astype(np.uint64)), Parts(order, starts, none, none)


@pytest.mark.parametrize("seed", range(20))
def test_blocks_are_permuted_within_groups_and_move_where_they_must(seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes = random.integers(3, 9, int(random.integers(1, 12))).tolist()
    items, parts = grouped(random, sizes, 4, int(random.integers(1, 5)))
    blocks = [(2, 0), (1, 3)]
    k = 3
    found = permute(items, parts, np.array(sizes), blocks, Draw(bytes([seed])), 5, k).places
    for number in range(len(sizes)):
        members = parts.order[parts.starts[number] : parts.starts[number + 1]]
        for block in blocks:
            before = [tuple(row) for row in items.places[members][:, block].tolist()]
            after = [tuple(row) for row in found[members][:, block].tolist()]
            assert Counter(before) == Counter(after)
            chance = float(Fraction(1)) if len(set(before)) == 1 else _stays(before)
            if chance < 1 and chance <= (1 - k / len(members)) / len(blocks):
                assert before != after


def _stays(tuples: list[Any]) -> float:
    ways = 1.0
    left = len(tuples)
    for count in Counter(tuples).values():
        for taken in range(count):
            ways *= (left - taken) / (taken + 1)
        left -= count
    return 1 / ways


def test_chances_to_stay_are_those_of_all_orders() -> None:
    for own in ([0, 0, 0, 1], [0, 1, 2, 3], [0, 0, 1, 1], [0, 1], [0, 0], [0, 0, 1, 1, 2]):
        group = np.zeros(len(own), dtype=np.int64)
        (found,) = _chance_to_stay(np.array(own), group, np.array([0]), np.array([len(own)]))
        assert found == pytest.approx(float(reference.chance_to_stay(own)))


def test_every_order_is_as_likely() -> None:
    """Of 6,000 groups of three that may stay, each of six orders comes about 1,000 times; five standard deviations."""
    places = np.tile(np.arange(3, dtype=np.uint16), 6000)[:, None]
    rows = np.arange(len(places), dtype=np.int32)
    none = np.empty((6000, 0), dtype=np.int32)
    parts = Parts(rows, np.arange(0, len(rows) + 1, 3), none, none)
    items = Items(places, ties=rows.astype(np.uint64))
    found = permute(items, parts, np.full(6000, 3), [(0,)], Draw(b"key"), 0, None).places.reshape(-1, 3)
    counts = Counter(map(tuple, found.tolist()))
    assert len(counts) == 6
    assert all(abs(n - 1000) < 5 * (6000 * 5 / 36) ** 0.5 for n in counts.values())


def test_a_seed_can_be_guessed_and_a_secret_cannot() -> None:
    """Somebody who knows all quasi-identifiers tries seeds: the right one gives the rows that were published."""
    random = np.random.default_rng(4)
    rows = 48
    places = np.stack([random.permutation(rows), random.permutation(rows)], axis=1).astype(np.uint16)
    none = np.empty((8, 0), dtype=np.int32)
    parts = Parts(np.arange(rows, dtype=np.int32), np.arange(0, rows + 1, 6), none, none)

    def published(secret: bytes, ties: int) -> np.ndarray:
        items = Items(places, ties=np.random.default_rng(ties).integers(0, 2**60, rows).astype(np.uint64))
        return permute(items, parts, np.full(8, 6), [(0,), (1,)], Draw(secret), 0, 5).places

    def guessed(release: np.ndarray) -> list[int]:
        return [s for s in range(512) if (published(secret_of(s), 9) == release).all()]

    for seed in (0, 7, 42, 511):
        assert guessed(published(secret_of(seed), 1)) == [seed]
    assert guessed(published(secret_of(None), 1)) == []


# Links


CASES = [
    [[0, 1, 2]],
    [[0, 0, 1]],
    [[0, 1, 2], [0, 0, 1]],
    [[0, 1, 2, 3]],
    [[0, 0, 0, 1], [0, 1, 2, 3]],
    [[0, 0, 0, 1], [0, 0, 0, 1]],
    [[0, 0, 1, 1], [0, 1, 1, 1]],
]


@pytest.mark.parametrize("tuples", CASES)
def test_no_link_above_one_in_k_by_who_knows_the_rule(tuples: list[list[int]]) -> None:
    n = len(tuples[0])
    for k in range(1, n + 1):
        chances = [reference.chance_to_stay(own) for own in tuples]
        redrawn = [c < 1 and c <= (1 - Fraction(k, n)) / len(tuples) for c in chances]
        link = reference.highest_link(tuples, redrawn)
        assert link <= Fraction(1, k)
        # What the report says is no less than that.
        ruled_out = sum((c for c, again in zip(chances, redrawn, strict=True) if again), Fraction(0))
        assert link <= 1 / (n * (1 - ruled_out))


def test_drawing_again_without_a_limit_links_above_one_in_k() -> None:
    """The rule of the paper with groups of k: two rows are always swapped, and one outlier is never where it was."""
    assert reference.highest_link([["a", "b"]], [True]) == 1
    assert reference.highest_link([["a", "b", "b"]], [True]) == Fraction(1, 2)
    assert reference.highest_link([["a", "b", "c"]], [True]) == Fraction(2, 5)
