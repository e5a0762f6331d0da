"""Attacks on the file, on the order and on the algorithm: they find what is there, and nothing in safe settings."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon.assess.attacks.minimality import cut_classes, judge, level_classes, refused
from duckanon.assess.disclosure import Finding
from duckanon.models import LDiversity

QUASI = ["age", "height"]


def _people(n: int = 1200, seed: int = 1) -> pa.Table:
    draw = random.Random(seed)
    return pa.table(
        {
            "age": [draw.randrange(18, 90) for _ in range(n)],
            "height": [draw.randrange(140, 210) for _ in range(n)],
            "ill": [draw.choices(["flu", "gout", "none"], [1, 1, 4])[0] for _ in range(n)],
            "visit": [draw.random() for _ in range(n)],
        }
    )


def _attacked(data: Any, release: Any, name: str, **how: Any) -> tuple[Finding, ...]:
    return duckanon.attack(data, release, attacks=[name], **how).findings


# The file and its order


def test_a_file_of_pandas_leaks_and_one_of_ours_does_not(tmp_path: Path) -> None:
    people = _people()
    names = {"quasi_identifiers": QUASI, "sensitive": ["ill"]}
    with duckanon.anonymize(people, **names, k=5) as release:
        (inside,) = _attacked(people, release, "file")
        release.write(tmp_path / "ours.parquet")
        frame = release.to_pandas()
    (ours,) = _attacked(people, tmp_path / "ours.parquet", "file", **names)
    assert (inside.level, ours.level, ours.success) == ("nothing", "nothing", 0)
    frame["ill"] = pd.Categorical(frame["ill"], categories=["flu", "gout", "none", "rare"])
    frame.sort_values("age").to_parquet(tmp_path / "theirs.parquet")
    theirs = _attacked(people, tmp_path / "theirs.parquet", "file", **names)
    assert {(f.text.split(":")[0], f.attribute, f.level) for f in theirs} >= {
        ("dictionary", "ill", "much"),
        ("order", "age", "much"),
        ("index", "__index_level_0__", "much"),
        ("metadata", None, "little"),
    }
    assert "rare" not in str([f.to_dict() for f in theirs])


def test_tables_in_memory_have_no_file() -> None:
    people = _people(50)
    found = duckanon.attack(people, people, quasi_identifiers=QUASI, attacks=["file"])
    assert found.skipped == {"file": "needs a Parquet or CSV file, or a folder of them"}


def test_an_order_is_found_behind_suppressed_rows() -> None:
    people = _people()
    names = {"quasi_identifiers": QUASI}
    with duckanon.anonymize(people, **names, insensitive=["visit"], k=5, seed=8) as release:
        (shuffled,) = _attacked(people, release, "order")
    assert shuffled.rows == 1200
    assert shuffled.level == "nothing"
    kept = people.filter([random.Random(i).random() < 0.8 for i in range(1200)])
    (found,) = _attacked(people, kept, "order", **names)
    assert found.success > 0.5
    assert found.level == "much"
    (exact,) = _attacked(people, kept, "position", **names)
    assert exact.success < 0.2


# Bounds


@pytest.mark.parametrize(("bounds", "level"), [("tight", "much"), ("grid", "nothing")])
def test_tight_bounds_single_out_and_a_grid_does_not(bounds: str, level: str) -> None:
    people = _people()
    with duckanon.anonymize(people, quasi_identifiers=QUASI, k=5, bounds=bounds) as release:
        found, tuples = _attacked(people, release, "downcoding")
    assert found.level == level
    assert ("tight" in found.verdict) == (bounds == "tight")
    assert tuples.success == 0


@pytest.mark.parametrize(("output", "level"), [("medoid", "much"), ("interval", "nothing")])
def test_medoids_are_rows_of_persons(output: str, level: str) -> None:
    people = _people()
    with duckanon.anonymize(people, quasi_identifiers=QUASI, k=5, output=output) as release:
        tuples = _attacked(people, release, "downcoding")[-1]
    assert tuples.level == level
    assert ("medoid" in tuples.verdict) == (output == "medoid")


def test_files_are_downcoded_as_the_release_they_came_from(tmp_path: Path) -> None:
    people = _people()
    with duckanon.anonymize(people, quasi_identifiers=QUASI, k=5, bounds="tight") as release:
        inside = _attacked(people, release, "downcoding")
        pq.write_table(release.to_arrow(), tmp_path / "x.parquet")
    outside = _attacked(people, tmp_path / "x.parquet", "downcoding", quasi_identifiers=QUASI)
    assert [(f.success, f.base_rate, f.rows) for f in inside] == [(f.success, f.base_rate, f.rows) for f in outside]


# Minimality


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bounds", ["grid", "tight"])
def test_mondrian_refused_every_cut_that_is_listed(seed: int, bounds: str) -> None:
    people = _people(400, seed)
    with duckanon.anonymize(people, quasi_identifiers=QUASI, sensitive=["ill"], k=3, l=3, bounds=bounds) as release:
        classes, totals, every = cut_classes(release, "ill", 1000, 0)
        assert every == len(classes) == release.classes().num_rows
        assert sum(len(c.values) for c in classes) == 400
    allowed = judge([LDiversity(3)], totals)
    assert any(c.parts.shape[1] for c in classes)
    for members in classes:
        assert refused(members, members.values[None, :], allowed).all()


@pytest.mark.parametrize("algorithm", ["optimal", "ola", "samarati"])
@pytest.mark.thinned(2)
def test_minimal_algorithms_refused_every_node_below(algorithm: str) -> None:
    listed = 0
    for seed in range(4):
        people = _people(150, seed)
        with duckanon.anonymize(
            people, quasi_identifiers=QUASI, sensitive=["ill"], k=2, l=3, algorithm=algorithm
        ) as release:
            classes, totals = level_classes(release, "ill")
            assert len(classes) == release.classes().num_rows
        allowed = judge([LDiversity(3)], totals)
        nodes = classes[0].parts.shape[1]
        broken = [refused(c, c.values[None, :], allowed)[0] for c in classes]
        assert np.logical_or.reduce(broken).all() if nodes else True
        listed += nodes
    assert listed


def test_a_class_that_had_to_be_made_gives_values_away() -> None:
    # Two people of 20 and three of 21, and one value that occurs twice: the two have it, or they would be a class.
    people = pa.table(
        {
            "age": [20, 20, 21, 21, 21, *([50] * 2), *([51] * 3)],
            "ill": ["a", "a", "b", "c", "d", "e", "f", "g", "h", "i"],
        }
    )
    with duckanon.anonymize(people, quasi_identifiers=["age"], sensitive=["ill"], k=2, l=2, bounds="tight") as release:
        (found,) = _attacked(people, release, "minimality")
    # By classes alone the best guesses are right for 2 of the first five people (a), and for one in each other class.
    assert found.base_rate == pytest.approx((2 + 1 + 1) / 10)
    assert found.success == pytest.approx((2 + 1 + 1 + 1) / 10)
    assert "20.0% of the people" in found.remark or "50.0% of the people" in found.remark


@pytest.mark.parametrize(
    ("how", "word"),
    [
        ({"k": 3}, "privacy requirement about the values"),
        ({"k": 3, "l": 2, "algorithm": "datafly"}, "minimal algorithm"),
        ({"k": 3, "l": 2, "algorithm": "optimal", "suppression_limit": 0.1}, "without suppression"),
        ({"k": 3, "l": 2, "entity_key": "who"}, "counts rows"),
        ({"k": 3, "l": 2, "within": ["letter"], "quasi_identifiers": [*QUASI, "letter"]}, "within"),
        ({"k": 3, "l": 2, "quasi_identifiers": ["letter", "word"]}, "why a hierarchy was"),
    ],
)
def test_where_minimality_says_nothing_it_is_said(how: dict[str, Any], word: str) -> None:
    people = _with_letters(_people(100))
    with duckanon.anonymize(people, **({"quasi_identifiers": QUASI, "sensitive": ["ill"]} | how)) as release:
        found = duckanon.attack(people, release, attacks=["minimality"])
    assert word in found.skipped["minimality"]
    assert f"minimality: {found.skipped['minimality']}" in found.report("md")


def test_minimality_says_which_columns_it_does_not_follow() -> None:
    people = _with_letters(_people(100))
    names = {"quasi_identifiers": [*QUASI, "letter", "word"], "sensitive": ["ill"]}
    with duckanon.anonymize(people, **names, k=3, l=2) as release:
        (found,) = _attacked(people, release, "minimality")
    assert "not followed: those of 2 columns" in found.verdict


def _with_letters(people: pa.Table) -> pa.Table:
    rows = range(people.num_rows)
    people = people.append_column("who", pa.array([i // 2 for i in rows]))
    people = people.append_column("letter", pa.array(["ab"[i % 2] for i in rows]))
    return people.append_column("word", pa.array([["one", "two", "three"][i % 3] for i in rows]))
