"""The slow references of the clustering algorithms: examples worked out by hand, and their choices checked again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from properties.clustering_cases import GRAIN, added, deltas, from_centroid, random_space, widest
from reference.greedy import greedy
from reference.k_member import k_member
from reference.kaca import kaca
from reference.knn_clustering import knn_clustering
from reference.mdav import mdav
from reference.space import Line, Space, Tree
from reference.v_mdav import v_mdav

SEEDS = range(40)
SIZES = [1, 2, 3, 7]
NUMBERS = [0.0, 1.0, 2.0, 10.0, 11.0, 20.0, 26.0]
TIDY: dict[str, Callable[[Space, int], list[list[int]]]] = {
    "mdav": mdav,
    "v_mdav": lambda space, k: v_mdav(space, k, 0.7),
    "knn_clustering": lambda space, k: knn_clustering(space, k, 5),
    "stable_seeds": lambda space, k: knn_clustering(space, k, 5, stable_seeds=True),
    "k_member": lambda space, k: k_member(space, k, 5),
    "greedy": greedy,
    "kaca": lambda space, k: kaca(space, k, 5),
}


def line(*values: float | None, norm: str = "sum", weights: Sequence[int] | None = None) -> Space:
    return Space([Line(values, 100.0)], weights, norm)


def tree(*places: int) -> Tree:
    """Two leaves under one node, three under the other: widths 1/4, 2/4 and 1."""
    return Tree(places, [[0, 1, 2, 3, 4], [0, 0, 1, 1, 1], [0] * 5], [[0.0] * 5, [0.25, 0.5], [1.0]])


# The space, by hand.


def test_distances_by_hand() -> None:
    column = Line([], 5.0)
    assert [column.delta(1.0, 4.0), column.delta(4.0, 1.0), column.delta(1.0, 7.0)] == [3.0, 3.0, 5.0]
    assert [column.delta(None, 1.0), column.delta(1.0, None), column.delta(None, None)] == [5.0, 5.0, 0.0]
    assert [tree().delta(*pair) for pair in [(3, 3), (0, 1), (4, 2), (1, 2)]] == [0.0, 0.25, 0.5, 1.0]
    columns = [Line([0.0, 3.0], 9.0), Line([4.0, 0.0], 9.0)]
    for norm, expected in [("sum", 7.0), ("squares", 25.0)]:
        space = Space(columns, norm=norm)
        assert space.distance(space.items[0], space.items[1]) == expected


def test_boxes_and_centroids_by_hand() -> None:
    space = Space([Line([1.0, 4.0, None, None, 7.0], 5.0), tree(1, 0, 2, 4, 1)])
    assert space.box([0, 1]) == [(1.0, 4.0, False), (1, 0)]
    assert space.width([0, 1]) == 3.25
    assert space.width([0, 4]) == 6.0, "the box of numbers is as wide as they are"
    assert space.width([2, 3]) == 0.5, "all missing"
    assert space.width([1, 2]) == 6.0, "a number and a missing one"
    assert space.centroid([0, 1, 2, 3]) == [2.5, 0], "all leaves are there once"
    assert space.centroid([2, 3, 4, 0]) == [4.0, 1]
    assert space.centroid([2, 3]) == [None, 2]


def test_costs_by_hand() -> None:
    space = Space([Line([0.0, 2.0, 10.0], 10.0)], [1, 3, 2])
    assert space.cost([0], [1]) == 4 * 2.0
    assert space.cost([0, 1], [2]) == 6 * 10.0 - 4 * 2.0


def test_ties_go_to_the_smallest_number() -> None:
    space = line(5.0, 6.0, 4.0, 5.0, 8.0, 2.0)
    assert space.nearest(space.items[0], [5, 4, 3, 2, 1], 4) == [3, 1, 2, 4]
    assert space.farthest(space.items[0], [5, 4, 3, 2, 1]) == 4


# The algorithms, by hand.


@pytest.mark.parametrize("norm", ["sum", "squares"])
def test_mdav_by_hand(norm: str) -> None:
    # The mean is 102 / 9, farthest from it 22, farthest from that 1.
    nine = line(1.0, 2.0, 3.0, 10.0, 11.0, 12.0, 20.0, 21.0, 22.0, norm=norm)
    assert mdav(nine, 3) == [[8, 7, 6], [0, 1, 2], [3, 4, 5]]
    # Fewer than 3k: the mean is 10, farthest 21, and the other five are left.
    eight = line(1.0, 2.0, 3.0, 10.0, 11.0, 12.0, 20.0, 21.0, norm=norm)
    assert mdav(eight, 3) == [[7, 6, 5], [0, 1, 2, 3, 4]]
    assert mdav(eight, 5) == [[0, 1, 2, 3, 4, 5, 6, 7]]
    assert mdav(eight, 9) == [[0, 1, 2, 3, 4, 5, 6, 7]]
    # Both ends are equally far from 1.5.
    assert mdav(line(0.0, 1.0, 2.0, 3.0, norm=norm), 2) == [[0, 1], [2, 3]]


def test_mdav_of_mixed_columns_by_hand() -> None:
    # The centroid is (0.5, 0); the items are 0.5, 0.5, 0, 1.5, 1.25 and 2 away from it, and 2, 2, 2, 1 and 1.5 away
    # from the last one.
    space = Space([Line([0.0, 0.25, 0.5, 1.0, 0.75, None], 1.0), tree(0, 1, 0, 2, 3, 2)])
    assert [space.distance([0.5, 0], item) for item in space.items] == [0.5, 0.5, 0.0, 1.5, 1.25, 2.0]
    assert mdav(space, 3) == [[5, 3, 4], [0, 1, 2]]


@pytest.mark.parametrize("norm", ["sum", "squares"])
def test_v_mdav_by_hand(norm: str) -> None:
    # 20 takes 11; 10 is 1 away from that group, and 8 from all others: it is added where 1 < 8 gamma.
    space = line(0.0, 1.0, 2.0, 10.0, 11.0, 20.0, norm=norm)
    assert v_mdav(space, 2, 0.13) == [[5, 4, 3], [0, 1, 2]]
    assert v_mdav(space, 2, 0.125) == [[5, 4], [0, 1], [2, 3]]
    # 4.5 is left over and goes to 0, 5.5 to 10: also after the first has moved the centroid of its group.
    space = line(0.0, 0.0, 0.0, 10.0, 10.0, 10.0, 4.5, 5.5, norm=norm)
    assert v_mdav(space, 3, 0.0) == [[0, 1, 2, 6], [3, 4, 5, 7]]
    assert v_mdav(space, 9, 1.0) == [[0, 1, 2, 3, 4, 5, 6, 7]]


def test_knn_clustering_by_hand() -> None:
    # 0.51, 0.95 and 0.14 are drawn: item 3 of 7, the last of 5, the first of 3. Then 2 is left over.
    assert knn_clustering(line(*NUMBERS), 2, 1) == [[3, 4], [6, 5], [0, 1, 2]]
    # The seeds are 20, 0 and 1, and 0 may not take 1. To add 11 costs 33, 29 or 12.
    assert list(np.random.default_rng(1).permutation(7)[:3]) == [5, 0, 1]
    assert knn_clustering(line(*NUMBERS), 2, 1, stable_seeds=True) == [[5, 6], [0, 2], [1, 3, 4]]
    assert knn_clustering(line(*NUMBERS), 8, 1) == [[0, 1, 2, 3, 4, 5, 6]]


def test_k_member_by_hand() -> None:
    # 0.64 is drawn: 11, from which 26 is farthest, and from 26 then 0. To add 10 costs 64 - 45 or 40 - 6.
    assert k_member(line(*NUMBERS), 3, 0) == [[6, 5, 4, 3], [0, 1, 2]]
    # 0.64 draws (20, 20), from which (0, 0) is farthest. After (4, 0), (0, 5) is nearest to that, but (6, 0) widens
    # the box least; the other two are left over.
    x, y = [0.0, 4.0, 0.0, 20.0, 6.0], [0.0, 0.0, 5.0, 20.0, 0.0]
    assert k_member(Space([Line(x, 20.0), Line(y, 20.0)]), 3, 0) == [[0, 1, 4, 2, 3]]


def test_greedy_by_hand() -> None:
    # Item 1 is the smallest and merged with 0 for 3/4 (others: 3, 2, 4). Then item 3 with 0 would cost 3 1/4, with 2
    # 1 1/2, with 4 2.
    space = Space([tree(0, 1, 2, 3, 4)], [2, 1, 2, 1, 3])
    assert greedy(space, 3) == [[0, 1], [2, 3], [4]]
    # {0, 1} goes on to {2, 3} for 6 - 3/4 - 3/2; with 4 alone it were 6 - 3/4. And 4 has only one way to go.
    assert greedy(space, 4) == [[0, 1, 2, 3, 4]]
    assert greedy(space, 1) == [[0], [1], [2], [3], [4]]
    assert greedy(space, 100) == [[0, 1, 2, 3, 4]]
    # A class keeps its number when another one is merged into it.
    assert greedy(line(5.0, 0.0, 6.0, weights=[1, 3, 3]), 3) == [[1], [0, 2]]


def test_kaca_by_hand() -> None:
    # 0.64 draws item 2 of four, which goes to 1 (2 against 4); 0.27 the first of 0 and 3: 9 - 2 against 10.
    space = line(0.0, 2.0, 3.0, 5.0)
    assert kaca(space, 2, 0) == [[0, 1, 2, 3]]
    # The smallest number first: 0 with 1, then 2 with 3 (4 against 9 - 4).
    assert greedy(space, 2) == [[0, 1], [2, 3]]


# Random tables: what was chosen is looked at again, with matrices of distances.


def is_farthest(d: np.ndarray, chosen: int, left: Sequence[int]) -> bool:
    return all(d[i] < d[chosen] or (d[i] == d[chosen] and chosen <= i) for i in left)


def are_nearest(d: np.ndarray, chosen: Sequence[int], left: Sequence[int]) -> bool:
    keys = [(d[i], i) for i in chosen]
    others = [(d[i], i) for i in left if i not in chosen]
    return keys == sorted(keys) and (not keys or not others or keys[-1] < min(others))


def check_left_over(space: Space, clusters: list[list[int]], k: int) -> None:
    parts = deltas(space)
    late = sorted(i for c in clusters for i in c[k:])
    now = [c[:k] for c in clusters]
    for i in late:
        losses = [(len(c) + 1) * widest(parts, [*c, i]) - len(c) * widest(parts, c) for c in now]
        now[int(np.argmin(losses))].append(i)
    assert now == clusters


@pytest.mark.parametrize("name", TIDY)
@pytest.mark.thinned(2)
def test_clusters_are_a_partition(name: str) -> None:
    for seed in SEEDS:
        space = random_space(np.random.default_rng(seed), weighted=name in ("greedy", "kaca"))
        for k in SIZES:
            clusters = TIDY[name](space, k)
            assert sorted(i for c in clusters for i in c) == list(range(space.n))
            sizes = [sum(space.weights[i] for i in c) for c in clusters]
            if len(clusters) > 1:
                assert min(sizes) >= k
            if name == "mdav":
                assert max(sizes) <= 2 * k - 1
                assert len(clusters) == max(space.n // k, 1)
            if name in ("knn_clustering", "stable_seeds", "k_member"):
                assert len(clusters) == max(space.n // k, 1)
            if name in ("greedy", "kaca"):
                assert clusters == [sorted(c) for c in clusters]


@pytest.mark.parametrize("seed", SEEDS)
def test_mdav_goes_from_end_to_end(seed: int) -> None:
    space = random_space(np.random.default_rng(seed))
    d = added(space, deltas(space))
    for k in SIZES:
        *clusters, last = mdav(space, k)
        left = list(range(space.n))
        first = None
        for cluster in clusters:
            if first is None:
                assert is_farthest(from_centroid(space, left), cluster[0], left)
                first = cluster[0] if len(left) >= 3 * k else None
            else:
                assert is_farthest(d[first], cluster[0], left)
                first = None
            assert len(cluster) == k
            assert are_nearest(d[cluster[0]], cluster[1:], [i for i in left if i != cluster[0]])
            left = [i for i in left if i not in cluster]
        assert first is None, "the other end was forgotten"
        assert last == left
        assert len(left) < 2 * k


@pytest.mark.parametrize("seed", SEEDS)
def test_v_mdav_takes_in_what_is_near(seed: int) -> None:
    rng = np.random.default_rng(seed)
    space = random_space(rng)
    d = added(space, deltas(space))
    # Two squares may differ and have the same root: only the comparison with gamma is one of roots.
    length = np.sqrt if space.norm == "squares" else np.asarray
    gamma = float(rng.choice([0.0, 0.2, 0.8, 1.1, 3.0]))
    centre = from_centroid(space, range(space.n))
    for k in SIZES:
        left = list(range(space.n))
        groups = v_mdav(space, k, gamma)
        if space.n < k:
            assert groups == [left]
            continue
        made: list[list[int]] = []
        for group in groups:
            assert is_farthest(centre, group[0], left)
            assert are_nearest(d[group[0]], group[1:k], [i for i in left if i != group[0]])
            now = group[:k]
            left = [i for i in left if i not in now]
            while left and len(now) < 2 * k - 1:
                near = d[np.ix_(left, now)].min(axis=1)
                u = left[int(near.argmin())]
                others = [i for i in left if i != u]
                out = d[u, others].min() if others else math.inf
                if gamma == 0.0 or length(near.min()) >= gamma * length(out):
                    break
                now.append(u)
                left.remove(u)
            assert group[: len(now)] == now
            made.append(now)
        assert len(left) < k
        to_groups = np.array([from_centroid(space, g) for g in made])
        for g, group in enumerate(groups):
            assert group == made[g] + [i for i in left if to_groups[:, i].argmin() == g]


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_knn_clusters_are_seeds_and_what_is_near(seed: int, stable: bool) -> None:
    space = random_space(np.random.default_rng(seed), tight=False)
    d = added(space, deltas(space))
    for k in SIZES:
        clusters = knn_clustering(space, k, seed, stable_seeds=stable)
        if space.n < k:
            assert clusters == [list(range(space.n))]
            continue
        left = list(range(space.n))
        drawn = np.random.default_rng(seed)
        numbers = drawn.permutation(space.n) if stable else drawn.random(space.n // k)
        seeds = [c[0] for c in clusters] if stable else []
        for cluster, number in zip(clusters, numbers, strict=False):
            assert cluster[0] == (number if stable else left[math.floor(number * len(left))])
            rest = [i for i in left if i != cluster[0] and i not in seeds]
            assert are_nearest(d[cluster[0]], cluster[1:k], rest)
            left = [i for i in left if i not in cluster[:k]]
        check_left_over(space, clusters, k)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.thinned(3)
def test_k_member_widens_least(seed: int) -> None:
    space = random_space(np.random.default_rng(seed), tight=False)
    parts = deltas(space)
    d = added(space, parts)
    for k in SIZES:
        clusters = k_member(space, k, seed)
        if space.n < k:
            assert clusters == [list(range(space.n))]
            continue
        left = list(range(space.n))
        r = math.floor(np.random.default_rng(seed).random() * space.n)
        for cluster in clusters:
            assert is_farthest(d[r], cluster[0], left)
            r = cluster[0]
            for size in range(1, k):
                left.remove(cluster[size - 1])
                widths = [widest(parts, [*cluster[:size], i]) for i in left]
                assert cluster[size] == left[int(np.argmin(widths))]
            left.remove(cluster[k - 1])
        check_left_over(space, clusters, k)


def merged(space: Space, k: int, numbers: Sequence[float] | None) -> list[list[int]]:
    """Greedy (or KACA, with the numbers that it draws) by updates alone: spans of pairs of classes, no items."""
    spans = np.array(deltas(space))
    weights = np.array(space.weights)
    label = np.arange(space.n)
    alive = np.ones(space.n, dtype=bool)
    own = np.zeros((len(space.columns), space.n))
    step = 0
    while alive.sum() > 1 and (weights[alive] < k).any():
        small = np.flatnonzero(alive & (weights < k))
        c = small[np.argmin(weights[small])] if numbers is None else small[int(numbers[step] * len(small))]
        both = np.maximum(np.maximum(spans[:, c], own), own[:, [c]])
        costs = (weights + weights[c]) * both.sum(axis=0) - weights * own.sum(axis=0) - weights[c] * own[:, c].sum()
        costs[~alive] = np.inf
        costs[c] = np.inf
        into = int(costs.argmin())
        own[:, into] = both[:, into]
        spans[:, into] = np.maximum(spans[:, into], spans[:, c])
        spans[:, :, into] = spans[:, into]
        weights[into] += weights[c]
        alive[c] = False
        label[label == c] = into
        step += 1
    return [[int(i) for i in np.flatnonzero(label == c)] for c in np.flatnonzero(alive)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.thinned(3)
def test_greedy_and_kaca_merge_where_it_costs_least(seed: int) -> None:
    space = random_space(np.random.default_rng(seed), weighted=True, tight=False)
    for k in [*SIZES, 20]:
        assert greedy(space, k) == merged(space, k, None)
        drawn = [float(u) for u in np.random.default_rng(seed).random(space.n)]
        assert kaca(space, k, seed) == merged(space, k, drawn)


def test_random_spaces_reach_everything() -> None:
    spaces = [random_space(np.random.default_rng(seed), weighted=True) for seed in range(300)]
    columns = [c for s in spaces for c in s.columns]
    lines = [c for c in columns if isinstance(c, Line)]
    trees = [c for c in columns if isinstance(c, Tree)]
    assert {len(s.columns) for s in spaces} == {1, 2, 3, 4}
    assert {s.norm for s in spaces} == {"sum", "squares"}
    assert {s.n for s in spaces} >= {1, 60}
    assert {w for s in spaces for w in s.weights} == {1, 2, 3, 4}
    assert any(set(s.weights) == {1} and s.n > 20 for s in spaces)
    assert {len({type(c) for c in s.columns}) for s in spaces} == {1, 2}
    present = [[v for v in c.values if v is not None] for c in lines]
    assert {(len(p) > 0, len(p) < len(c.values)) for p, c in zip(present, lines, strict=True)} >= {
        (True, True),
        (True, False),
        (False, True),
    }
    many = [p for p, c in zip(present, lines, strict=True) if len(p) > 20]
    assert 0.3 < sum(len(set(p)) == len(p) for p in many) / len(many) < 0.7, "half without a tie"
    assert any(max(p) - min(p) > c.cap for p, c in zip(present, lines, strict=True) if p)
    assert {len(c.nodes) for c in trees} == {1, 2, 3, 4, 5}
    for c in lines:
        assert all((v / GRAIN).is_integer() for v in [*c.values, c.cap] if v is not None)
    for c in trees:
        assert list(c.nodes[0]) == list(range(len(c.nodes[0])))
        assert len(set(c.nodes[-1])) == 1
        assert set(c.widths[0]) == {0.0}
        for low, high, under, over in zip(c.nodes, c.nodes[1:], c.widths, c.widths[1:], strict=False):
            parents = {(low[p], high[p]) for p in range(len(low))}
            assert len(parents) == len(set(low)), "every node has one parent"
            assert all(under[a] <= over[b] for a, b in parents)
            assert all((w / GRAIN).is_integer() for w in over)
