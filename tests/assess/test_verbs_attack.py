"""Attacks find what can be found, and no more than chance where there is nothing."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import duckanon
from duckanon import Hierarchy
from duckanon.assess.disclosure import Attack, Finding
from duckanon.errors import DataError, ParameterError, RoleError
from tests.effort import share

LINKING = (
    "distance_linkage",
    "inference",
    "linkability",
    "linkage",
    "boosting_inference",
    "forest_inference",
    "probabilistic_linkage",
    "singling_out",
)


def _one(found: Attack, name: str) -> Finding:
    (finding,) = [f for f in found.findings if f.attack == name]
    return finding


@pytest.fixture(scope="module")
def people() -> pa.Table:
    n = 4000
    return pa.table(
        {
            "age": [(i * 7919) % 80 for i in range(n)],
            "sex": [None if i % 17 == 0 else "fm"[(i * 31) % 2] for i in range(n)],
            "ill": [f"i{(i * i + 3) % 11}" for i in range(n)],
            "cost": [float((i * 104729) % 997) for i in range(n)],
        }
    )


def test_a_release_gives_no_position_away_and_a_copy_all(people: pa.Table) -> None:
    names = {"quasi_identifiers": ["age", "sex"], "sensitive": ["ill", "cost"]}
    with duckanon.anonymize(people, **names, k=5, algorithm="datafly") as release:
        shuffled = _one(duckanon.attack(people, release, attacks=["position"]), "position")
    assert shuffled.rows == 4000
    assert shuffled.base_rate < 0.01
    noise = math.sqrt(shuffled.base_rate / shuffled.rows)
    assert abs(shuffled.success - shuffled.base_rate) < 6 * noise
    copied = _one(duckanon.attack(people, people, **names, attacks=["position"]), "position")
    assert copied.success == 1
    assert copied.base_rate == pytest.approx(shuffled.base_rate)


def test_linkage_is_one_over_the_size_of_the_class(people: pa.Table) -> None:
    with duckanon.anonymize(
        people, quasi_identifiers=["age", "sex"], sensitive=["ill"], k=60, suppression_limit=0.2, algorithm="datafly"
    ) as release:
        found = _one(duckanon.attack(people, release, attacks=["linkage"]), "linkage")
        assert found.success == pytest.approx(release.classes().num_rows / people.num_rows)
        assert found.base_rate == pytest.approx(1 / release.rows_published)
        plain = duckanon.attack(
            people,
            release.to_arrow(),
            quasi_identifiers=["age", "sex"],
            sensitive=["ill"],
            hierarchies={},
            attacks=["linkage"],
        )
        assert _one(plain, "linkage").success == pytest.approx(found.success)


def test_linkage_counts_persons_where_the_release_does() -> None:
    data = pa.table({"age": [30, 31, 32, 60, 61, 62], "person": [1, 1, 2, 3, 4, 5]})
    with duckanon.anonymize(data, quasi_identifiers=["age"], entity_key="person", k=2, algorithm="datafly") as release:
        found = _one(duckanon.attack(data, release, attacks=["linkage"]), "linkage")
    assert found.success == pytest.approx((3 / 2 + 3 / 3) / 6)


def test_rows_unknown_to_the_release_are_not_linked() -> None:
    data = pa.table({"age": [30, 31, 60, 61]})
    with duckanon.anonymize(data, quasi_identifiers=["age"], k=2, algorithm="datafly") as release:
        assert (
            _one(duckanon.attack(pa.table({"age": [30, 99]}), release, attacks=["linkage"]), "linkage").success == 0.25
        )


@share(0.5)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", None])), min_size=1, max_size=30))
def test_homogeneity_by_hand(rows: list[tuple[int, str | None]]) -> None:
    data = pa.table({"q": [r[0] for r in rows], "s": pa.array([r[1] for r in rows], pa.string())})
    names = {"quasi_identifiers": ["q"], "sensitive": ["s"], "attacks": ["homogeneity"]}
    found = _one(duckanon.attack(data, data, **names), "homogeneity")
    classes = defaultdict(list)
    for q, s in rows:
        classes[q].append(s)
    shares = [n / len(rows) for n in Counter(s for _, s in rows).values()]
    assert found.success == pytest.approx(sum(len(c) for c in classes.values() if len(set(c)) == 1) / len(rows))
    assert found.base_rate == (1 if len(shares) == 1 else 0)
    smallest = min(len(c) for c in classes.values())
    assert found.allowed == (None if smallest == 1 else pytest.approx(sum(p**smallest for p in shares)))
    assert found.attribute == "s"


@share(0.5)
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["a", "b", None])), min_size=1, max_size=6))
def test_skewness_by_hand(rows: list[tuple[int, str | None]]) -> None:
    """What k allows is the mean over all ways to deal the values into classes of k."""
    data = pa.table({"q": [r[0] for r in rows], "s": pa.array([r[1] for r in rows], pa.string())})
    names = {"quasi_identifiers": ["q"], "sensitive": ["s"], "attacks": ["skewness"]}
    found = _one(duckanon.attack(data, data, **names), "skewness")
    values = [s for _, s in rows]
    classes = defaultdict(list)
    for q, s in rows:
        classes[q].append(s)
    k = min(len(c) for c in classes.values())
    assert found.success == pytest.approx(sum(c.count(s) / len(c) for c in classes.values() for s in c) / len(rows))
    assert found.base_rate == pytest.approx(sum(values.count(s) / len(rows) for s in values) / len(rows))
    if k == 1:
        assert found.allowed is None
    else:
        dealt = [order[:k].count(order[0]) / k for order in permutations(values)]
        assert found.allowed == pytest.approx(sum(dealt) / len(dealt))


@pytest.mark.parametrize("attack", ["homogeneity", "skewness"])
def test_what_classes_tell_is_seen_beside_the_table_without_classes(attack: str) -> None:
    """Raw rows tell everything; classes whose values are chance tell what k allows, and stars nothing."""
    draw = np.random.default_rng(7)
    ill = pa.array(draw.choice(["flu", "gout", "cold"], 600))
    places = {"raw": range(600), "chance": [i // 5 for i in range(600)], "stars": [0] * 600}
    findings = {}
    for name, place in places.items():
        data = pa.table({"q": pa.array(place, pa.int64()), "ill": ill})
        found = duckanon.attack(data, data, quasi_identifiers=["q"], sensitive=["ill"], attacks=[attack])
        findings[name] = _one(found, attack)
    assert findings["raw"].success == 1
    assert {name: f.level for name, f in findings.items()} == {"raw": "much", "chance": "promised", "stars": "nothing"}
    assert len({f.base_rate for f in findings.values()}) == 1
    told = pa.table({"q": places["chance"], "ill": [("flu", "gout", "cold")[i // 5 % 3] for i in range(600)]})
    found = duckanon.attack(told, told, quasi_identifiers=["q"], sensitive=["ill"], attacks=[attack])
    assert _one(found, attack).level == "much"


def test_classes_that_nobody_sees_tell_no_values(people: pa.Table) -> None:
    names = {"quasi_identifiers": ["age", "sex"], "sensitive": ["ill"], "k": 5}
    with duckanon.anonymize(people.slice(0, 200), **names, algorithm="probabilistic(groups='mondrian')") as release:
        found = duckanon.attack(people.slice(0, 200), release, attacks=["homogeneity", "skewness"])
    assert not found.findings
    assert all("classes that can be seen" in why for why in found.skipped.values())


def test_what_cannot_be_tried_is_said(people: pa.Table) -> None:
    names = ["homogeneity", "position", "distance_linkage", "linkability"]
    found = duckanon.attack(people.select(["age"]), people.select(["age"]), quasi_identifiers=["age"], attacks=names)
    assert found.findings == ()
    assert set(found.skipped) == set(names)
    assert found.to_dict()["skipped"]["homogeneity"] == "needs a sensitive column"
    assert found.verdict == "No attack could be tried."


def test_mixed_levels_are_linked_by_what_cells_can_stand_for() -> None:
    data, released = pa.table({"zip": ["11", "12"]}), pa.table({"zip": ["11", "1*"]})
    hierarchies = {"zip": Hierarchy.mask(levels=1)}
    found = duckanon.attack(data, released, quasi_identifiers=["zip"], hierarchies=hierarchies, attacks=["linkage"])
    assert _one(found, "linkage").success == (1 / 2 + 1 / 1) / 2


def test_no_value_is_in_the_findings(people: pa.Table) -> None:
    found = duckanon.attack(people, people, quasi_identifiers=["age", "sex"], sensitive=["ill"], control=people)
    assert {f.attack for f in found.findings} >= set(LINKING)
    for shown in (str(found.to_dict()), *(found.report(kind) for kind in ("json", "md", "html"))):
        assert not any(f"i{j}{end}" in shown for j in range(11) for end in "' <|\"")


def test_unknown_attacks_are_refused(people: pa.Table) -> None:
    with pytest.raises(ParameterError, match="Did you mean 'linkage'"):
        duckanon.attack(people, people, quasi_identifiers=["age"], attacks=["linkag"])


@pytest.mark.parametrize("door", ["table", "release"])
def test_groups_of_a_hierarchy_that_was_made_are_read_and_controls_do_not_shift_them(door: str) -> None:
    # Groups of more than 16 words are named by both ends: who is in them depends on the words of the original.
    words = [f"{letter}{'-' * at}" for letter in "bcdefghijklmnopq" for at in range(4)]
    people = pa.table({"word": words, "sex": ["f"] * 64, "ill": ["flu", "gout"] * 32})
    others = pa.table({"word": ["a", "b", "q"], "sex": ["f"] * 3, "ill": ["flu", "flu", "gout"]})
    names = {"quasi_identifiers": ["word", "sex"], "sensitive": ["ill"]}
    with duckanon.anonymize(people, **names, k=32) as release:
        shown = release.to_arrow()
        assert all(label.startswith("[") for label in shown["word"].to_pylist())
        given = {} if door == "release" else names
        found = duckanon.attack(
            people, release if door == "release" else shown, control=others, attacks=["linkage"], **given
        )
    # Nobody falls out of the groups, and each has 32 rows to hide among.
    assert _one(found, "linkage").success == pytest.approx(1 / 32)


def test_an_attack_with_nothing_to_try_says_so(people: pa.Table) -> None:
    found = duckanon.attack(people, people, quasi_identifiers=["age", "ill", "cost"], attacks=["order"])
    assert found.findings == ()
    assert "there was nothing" in found.skipped["order"]


def test_tables_that_lack_something_are_named(people: pa.Table) -> None:
    names = {"quasi_identifiers": ["age", "sex"], "sensitive": ["ill"]}
    some = people.slice(0, 50)
    with pytest.raises(RoleError, match="In the control: There is no column 'sex'"):
        duckanon.attack(some, some, control=some.drop_columns(["sex"]), **names)
    with pytest.raises(RoleError, match="In the original: There is no column 'age'"):
        duckanon.attack(some.drop_columns(["age"]), some, **names)
    for word, tables in {"original": (some[:0], None), "control": (some, some[:0])}.items():
        with pytest.raises(DataError, match=f"The {word} has no rows"):
            duckanon.attack(tables[0], some, control=tables[1], **names)
    found = duckanon.attack(
        some, some, control=some.drop_columns(["ill"]), attacks=["distance_linkage", "homogeneity"], **names
    )
    assert "that the controls have, too" in found.skipped["distance_linkage"]
    assert found.verdict.endswith("1 attack was not tried.")
