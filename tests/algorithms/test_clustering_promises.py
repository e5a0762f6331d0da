"""Clustering with `anonymize`: requirements, blocks, refusals, and how little changes from one k to the next."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from duckanon.algorithms.clustering.clusters import Cloud
from duckanon.algorithms.clustering.spaces import on_lines
from duckanon.errors import InfeasibleError, ParameterError, UnsupportedError
from duckanon.models import LDiversity, OrderedTCloseness, TCloseness
from tests.algorithms.clustered import NAMES, ROWS, TABLE, classes, made, publish

# Models.


MODELS: dict[str, dict[str, Any]] = {
    "l": {"l": 3, "sensitive": ["ill"]},
    "t": {"models": [TCloseness(0.35, "ill")], "sensitive": ["ill"]},
    "ordered t": {"models": [OrderedTCloseness(0.15, "cost")], "sensitive": ["cost"]},
    "several": {"models": [OrderedTCloseness(0.2, "cost"), LDiversity(3, "ill")], "sensitive": ["cost", "ill"]},
    "persons": {"entity_key": "person"},
    "persons and l": {"entity_key": "person", "l": 3, "sensitive": ["ill"]},
}
ALL = ("mdav", "greedy")
"""Those with which everything is tried: one that has rows, and one that has combinations of values."""


@pytest.mark.parametrize(
    ("name", "asked"), [(n, m) for n in NAMES for m in MODELS if n in ALL or m in ("several", "persons and l")]
)
@pytest.mark.thinned(3)
def test_every_class_satisfies_the_models_and_no_row_is_suppressed(name: str, asked: str) -> None:
    more = MODELS[asked]
    with publish(name, quasi_identifiers=["age", "income"], **more) as release:
        assert all(check.holds for check in release.checks)
        assert release.rows_published == ROWS
        found = classes(release, ["age", "income"])
    originals = TABLE.to_pylist()
    assert len(found) > 1
    for rows in found.values():
        own = [originals[row["row"]] for row in rows]
        members = {o["person"] for o in own} if "entity_key" in more else own
        assert len(members) >= 5
        if "l" in more:
            assert len({o["ill"] for o in own}) >= 3


def test_strata_keep_ordered_t_closeness_in_small_clusters() -> None:
    """Every cluster has a row of each stratum: as many rows as t asks for, and no more."""
    t = 0.05
    with publish("mdav", quasi_identifiers=["income", "born"], sensitive=["cost"], t=t, output="mean") as release:
        assert all(check.holds for check in release.checks)
        sizes = [len(rows) for rows in classes(release, ["income", "born"]).values()]
    wanted = int(np.ceil(ROWS / (2 * (ROWS - 1) * t + 1)))
    assert min(sizes) >= wanted
    assert max(sizes) <= 2 * wanted
    with publish("knn_clustering", quasi_identifiers=["income", "born"], sensitive=["cost"], t=t) as release:
        assert len(sizes) > len(classes(release, ["income", "born"])), "merging until it holds takes larger classes"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thinned(3)
def test_within_keeps_regions_apart(name: str) -> None:
    with publish(name, quasi_identifiers=["age", "income"], within=["region"]) as release:
        found = classes(release, ["age", "income", "region"])
    regions = TABLE.column("region").to_pylist()
    assert min(map(len, found.values())) >= 5
    assert {cells[2] for cells in found} == {"r0", "r1", "r2"}
    assert all(cells[2] == regions[row["row"]] for cells, rows in found.items() for row in rows)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thinned(3)
def test_nothing_is_suppressed_unless_it_must_be(name: str) -> None:
    with publish(name, quasi_identifiers=["age", "income"], suppression_limit=0.2) as release:
        assert release.rows_suppressed == 0
        allowed = release.to_arrow().to_pylist()
    with publish(name, quasi_identifiers=["age", "income"]) as release:
        assert release.to_arrow().to_pylist() == allowed
    regions = pa.array(["small"] * 3 + TABLE.column("region").to_pylist()[3:])
    table = TABLE.set_column(TABLE.column_names.index("region"), "region", regions)
    asked = {"quasi_identifiers": ["income"], "within": ["region"]}
    with pytest.raises(InfeasibleError, match=r"1 of 4 parts by region \(3 rows\)"):
        publish(name, table, **asked)
    with publish(name, table, **asked, suppression_limit=0.02) as release:
        assert release.rows_suppressed == 3


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.thinned(3)
def test_fewer_rows_than_k(name: str) -> None:
    with pytest.raises(InfeasibleError):
        publish(name, TABLE.slice(0, 4))
    with publish(name, TABLE.slice(0, 9)) as release:
        assert len(classes(release)) == 1
    with publish(name, TABLE.slice(0, 5)) as release:
        assert len(classes(release)) == 1


# Blocks.


@pytest.mark.parametrize(
    ("name", "more"),
    [(n, {}) for n in NAMES if n != "tdg"]
    + [(n, m) for n in ALL for m in ({"l": 3}, {"within": ["region"]}, {"entity_key": "person"})],
)
@pytest.mark.thinned(4)
def test_blocks_keep_the_same_promises(name: str, more: dict[str, Any]) -> None:
    columns = ["age", "income", "born"]
    with publish(made(name, block=50), quasi_identifiers=columns, sensitive=["ill"], **more) as release:
        blocks = release.searched["blocks"]
        assert ROWS / 50 <= blocks <= ROWS / 10
        assert release.summary()["search"]["blocks"] == blocks
        assert all(check.holds for check in release.checks)
        assert release.rows_published == ROWS
        assert min(map(len, classes(release, columns).values())) >= 5


def test_a_block_that_holds_all_rows_is_no_block() -> None:
    with publish(made("mdav", block=ROWS)) as release, publish("mdav") as other:
        assert release.searched == {}
        assert release.to_arrow().to_pylist() == other.to_arrow().to_pylist()


# What is refused.


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("mdav", {"distance": "gowers"}, "'distance'.*Did you mean 'gower'"),
        ("v_mdav", {"distance": 1}, "'distance'"),
        ("mdav", {"block": 0}, "'block'"),
        ("mdav", {"block": 2.5}, "'block'"),
        ("v_mdav", {"gamma": -0.1}, "'gamma'"),
        ("v_mdav", {"gamma": "much"}, "'gamma'"),
        ("v_mdav", {"gamma": float("nan")}, "'gamma'"),
        ("v_mdav", {"block": True}, "'block'"),
        ("knn_clustering", {"seed": -1}, "'seed'"),
        ("knn_clustering", {"stable_seeds": 1}, "'stable_seeds'"),
        ("knn_clustering", {"block": -5}, "'block'"),
        ("k_member", {"seed": 0.5}, "'seed'"),
        ("k_member", {"seed": True}, "'seed'"),
        ("tdg", {"seed": None}, "'seed'"),
        ("tdg", {"stable_seeds": "yes"}, "'stable_seeds'"),
        ("greedy", {"metric": "npc"}, "'metric'.*Did you mean 'ncp'"),
        ("greedy", {"metric": None}, "'metric'"),
        ("greedy", {"block": "all"}, "'block'"),
        ("kaca", {"seed": "1"}, "'seed'"),
    ],
)
def test_parameters_that_make_no_sense(name: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        made(name, **parameters)


@pytest.mark.parametrize("name", NAMES)
def test_what_clusters_have_not(name: str) -> None:
    with pytest.raises(ParameterError, match="no cuts between them"):
        publish(name, bounds="cut")
    with pytest.raises(UnsupportedError, match="have no levels"):
        publish(name, max_levels={"age": 1})
    with pytest.raises(UnsupportedError):
        publish(name, iterative=True)


@pytest.mark.parametrize("name", ["knn_clustering", "k_member", "tdg", "kaca"])
def test_a_seed_of_63_bits_is_taken_and_a_larger_one_is_refused(name: str) -> None:
    with publish(made(name, seed=2**63 - 1), quasi_identifiers=["income"]) as release:
        assert release.rows_published == ROWS
    with pytest.raises(ParameterError, match="'seed'"):
        made(name, seed=2**63)


# How much changes from one k to the next.


def changing(algorithm: Any, cloud: Cloud) -> float:
    """The share of pairs together in one of two neighbouring k that are not together in both, for k from 5 to 14."""
    before, shares = None, []
    for k in range(5, 15):
        labels = algorithm.cluster(cloud, k, 1, lambda _: None)
        together = labels[:, None] == labels[None, :]
        np.fill_diagonal(together, val=False)
        if before is not None:
            shares.append((together != before).sum() / (together | before).sum())
        before = together
    return float(np.mean(shares))


@pytest.mark.parametrize("digits", [1, 9])
@pytest.mark.parametrize("name", ["tdg", "knn_clustering"])
def test_stable_seeds_change_less(name: str, digits: int) -> None:
    numbers = np.unique(np.random.default_rng(5).random((300, 3)).round(digits), axis=0)
    space, points = on_lines(numbers, np.zeros(numbers.shape, dtype=bool), False)
    cloud = Cloud(space, points, np.ones(len(points), dtype=np.int64))
    plain, stable = (
        [changing(made(name, seed=seed, stable_seeds=how), cloud) for seed in range(5)] for how in (False, True)
    )
    assert statistics.fmean(stable) < 0.85 * statistics.fmean(plain)
    assert max(stable) < min(plain)
