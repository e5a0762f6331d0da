"""Attacks succeed on raw data, are at chance on suppressed data, and stay near 1/k in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon.assess.disclosure import Finding
from duckanon.errors import ParameterError, RoleError

QUASI = ["age", "city", "income"]
NAMES: dict[str, Any] = {"quasi_identifiers": QUASI, "sensitive": ["ill"]}

ATTACKS = [
    "distance_linkage",
    "forest_inference",
    "homogeneity",
    "inference",
    "linkability",
    "linkage",
    "position",
    "probabilistic_linkage",
    "singling_out",
    "skewness",
]


def _people(rows: int, seed: int) -> pa.Table:
    """People whose illness is chance: there is nothing to learn of anybody but those who are in the release."""
    draw = np.random.default_rng(seed)
    cities = np.array(["Ulm", "Bonn", "Kiel", "Jena", "Hof"])
    return pa.table(
        {
            "person": np.arange(rows) + 100_000 * seed,
            "age": draw.integers(18, 90, rows),
            "city": cities[draw.integers(0, 5, rows)],
            "income": draw.integers(1000, 5000, rows),
            "ill": np.array(["flu", "gout", "cold", "none"])[draw.integers(0, 4, rows)],
        }
    )


@pytest.fixture(scope="module")
def people() -> pa.Table:
    return _people(600, 1)


@pytest.fixture(scope="module")
def others() -> pa.Table:
    return _people(600, 2)


def _found(found: Any, attack: str, attribute: str | None = None, adversary: str = "full") -> Finding:
    (one,) = (f for f in found.findings if (f.attack, f.attribute, f.adversary) == (attack, attribute, adversary))
    return one


def test_a_copy_gives_everybody_away(people: pa.Table, others: pa.Table) -> None:
    found = duckanon.attack(people, people, control=others, entity_key="person", attacks=ATTACKS, **NAMES)
    for attack in ("distance_linkage", "probabilistic_linkage"):
        secret, own = _found(found, attack, "ill"), _found(found, attack)
        assert secret.success > 0.98
        assert secret.control == pytest.approx(0.25, abs=0.08)
        assert secret.level == own.level == "much"
        assert own.success > 0.98
    assert _found(found, "inference", "ill", "all").success > 0.98
    assert _found(found, "linkage").success > 0.98
    assert _found(found, "singling_out", None, "all").success > 0.9
    assert found.level == "much"
    assert "leaks" in found.verdict


def test_nothing_is_learned_from_a_table_of_stars(people: pa.Table, others: pa.Table) -> None:
    stars = {name: pa.array(["*"] * people.num_rows) for name in QUASI}
    mixed = people.take(np.random.default_rng(3).permutation(people.num_rows))
    released = pa.table({**stars, "ill": mixed["ill"], "person": mixed["person"]})
    found = duckanon.attack(people, released, control=others, entity_key="person", attacks=ATTACKS, **NAMES)
    assert found.skipped == {}
    assert {f.level for f in found.findings} <= {"nothing", "promised"}
    assert _found(found, "distance_linkage").success == pytest.approx(1 / 600)
    assert _found(found, "linkage").success == pytest.approx(1 / 600)
    assert "None of" in found.verdict


@pytest.mark.parametrize("algorithm", ["mondrian", "datafly"])
def test_linkage_of_a_release_is_at_most_one_in_k(people: pa.Table, others: pa.Table, algorithm: str) -> None:
    names = ["distance_linkage", "probabilistic_linkage", "linkage", "linkability"]
    with duckanon.anonymize(people, **NAMES, insensitive=["person"], k=10, algorithm=algorithm) as release:
        found = duckanon.attack(people, release, control=others, entity_key="person", attacks=names)
    assert found.skipped == {}
    for f in found.findings:
        if f.attribute is None:
            assert f.success <= 0.1 + 1e-9, f.attack
            assert f.level in ("nothing", "promised")


def test_a_quasi_identifier_that_was_forgotten_is_found(people: pa.Table, others: pa.Table) -> None:
    forgotten = [name for name in QUASI if name != "income"]
    with duckanon.anonymize(
        people, quasi_identifiers=forgotten, sensitive=["ill"], insensitive=["income", "person"], k=10
    ) as release:
        released = release.to_arrow()
    found = duckanon.attack(
        people, released, control=others, entity_key="person", attacks=["distance_linkage"], **NAMES
    )
    own = _found(found, "distance_linkage")
    assert own.success > 0.5
    assert own.level == "much"
    assert own.verdict.startswith("Leaks")
    assert found.level == "much"


@pytest.mark.parametrize("output", ["bounds", "struct", "mean", "set"])
@pytest.mark.thinned(2)
def test_every_output_is_read(people: pa.Table, output: str, tmp_path: Path) -> None:
    with duckanon.anonymize(people, **NAMES, insensitive=["person"], k=10, output=output) as release:
        found = duckanon.attack(people, release, entity_key="person", attacks=["distance_linkage"])
        own = _found(found, "distance_linkage")
        assert 0.02 < own.success <= 0.1 + 1e-9
        if output in ("struct", "mean"):
            return
        path = tmp_path / "release.parquet"
        pq.write_table(release.to_arrow(), path)
    again = duckanon.attack(people, path, entity_key="person", attacks=["distance_linkage"], **NAMES)
    assert _found(again, "distance_linkage").success == pytest.approx(own.success, rel=0.2)


def test_the_same_seed_gives_the_same_figures(people: pa.Table, others: pa.Table) -> None:
    def tried(seed: int) -> list[dict[str, Any]]:
        names = ["distance_linkage", "forest_inference", "singling_out"]
        found = duckanon.attack(people, people, control=others, sample=100, seed=seed, attacks=names, **NAMES)
        return [f.to_dict() for f in found.findings]

    first = tried(3)
    assert tried(3) == first != tried(4)
    assert first[0]["sampled_from"] == 600


def test_labels_that_nobody_can_read_are_said(people: pa.Table) -> None:
    released = people.set_column(1, "age", pa.array(["about forty"] * people.num_rows))
    found = duckanon.attack(people, released, attacks=["distance_linkage", "homogeneity"], **NAMES)
    assert "labels that can be read" in found.skipped["distance_linkage"]
    assert "about forty" not in found.skipped["distance_linkage"]
    assert [f.attack for f in found.findings] == ["homogeneity"]


def test_settings_are_checked(people: pa.Table) -> None:
    with pytest.raises(RoleError, match="Did you mean 'city'"):
        duckanon.attack(people, people, known=["cite"], **NAMES)
    with pytest.raises(RoleError, match="not a column of both"):
        duckanon.attack(people, people, entity_key="name", **NAMES)
    with pytest.raises(ParameterError, match="at least one"):
        duckanon.attack(people, people, known=[], **NAMES)
    with pytest.raises(ParameterError, match="sample"):
        duckanon.attack(people, people, sample=0, **NAMES)


def test_a_number_is_guessed_within_a_tolerance() -> None:
    draw = np.random.default_rng(5)
    age = draw.integers(20, 80, 400)
    data = pa.table({"age": age, "pay": age * 100 + draw.integers(-20, 20, 400)})
    found = duckanon.attack(
        data, data, quasi_identifiers=["age"], sensitive=["pay"], attacks=["distance_linkage", "forest_inference"]
    )
    for f in found.findings:
        assert f.success > 0.9
        assert f.base_rate < 0.3
        assert "within 5 %" in f.text


def test_without_controls_a_leak_cannot_be_told_from_general_knowledge() -> None:
    # Who knows the age knows the illness, of anybody: the release is exact, and nobody's secret.
    n = 2000
    ages = [20 + i % 60 for i in range(n)]
    people = pa.table({"age": ages, "ill": ["old" if age > 50 else "young" for age in ages]})
    names: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": ["ill"], "attacks": ["distance_linkage"]}
    alone = duckanon.attack(people, people, **names)
    assert {f.level for f in alone.findings} == {"unknown"}
    assert alone.level == "unknown"
    assert alone.verdict.startswith("Cannot tell a leak from general knowledge: distance_linkage learned more")
    page = alone.report("html")
    assert page.count("Cannot tell a leak from general knowledge") == 1 + len(alone.findings)
    assert '<div class="verdict warn">' in page
    beside = duckanon.attack(people, people, control=people, **names)
    assert {f.level for f in beside.findings} == {"nothing"}
    assert '<div class="verdict good">' in beside.report("html")


def test_no_attack_is_no_good_verdict() -> None:
    people = pa.table({"age": [1, 1, 2, 2]})
    found = duckanon.attack(people, people, quasi_identifiers=["age"], attacks=["homogeneity"])
    page = found.report("html")
    assert '<div class="verdict warn">' in page
    assert "No leak found" not in page
