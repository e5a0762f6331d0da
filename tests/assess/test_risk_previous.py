"""Two releases of the same people: groups below k, counted again in plain Python."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon.assess.composition import common
from duckanon.errors import ParameterError, RoleError

QUASI = ["age", "city"]


def _people(n: int, seed: int) -> pa.Table:
    draw = random.Random(seed)
    return pa.table(
        {
            "id": list(range(n)),
            "age": [draw.randrange(80) for _ in range(n)],
            "city": [draw.choice(["Bonn", "Kiel", "Jena", "Ulm"]) for _ in range(n)],
        }
    )


def _recoded(people: pa.Table, width: int, shift: int = 0, cities: bool = True) -> pa.Table:
    """Return a release with intervals of a width, with the key, as its owner has it."""
    ages = [(a + shift) // width * width - shift for a in people["age"].to_pylist()]
    shown = [f"[{a}, {a + width - 1}]" for a in ages]
    city = people["city"] if cities else pa.array(["*"] * people.num_rows)
    return pa.table({"id": people["id"], "age": shown, "city": city})


def _groups(before: pa.Table, after: pa.Table) -> Counter[tuple[object, ...]]:
    sides = [
        dict(zip(t["id"].to_pylist(), zip(*(t[c].to_pylist() for c in QUASI), strict=True), strict=True))
        for t in (before, after)
    ]
    return Counter((sides[0].get(p), sides[1].get(p)) for p in sides[0].keys() | sides[1].keys())


@pytest.mark.parametrize("seed", range(6))
def test_persons_are_followed_by_their_key(seed: int) -> None:
    draw = random.Random(seed)
    people = _people(120, seed)
    before = _recoded(people, 10).filter([draw.random() < 0.9 for _ in range(120)])
    after = _recoded(people, draw.choice([7, 20]), 3).filter([draw.random() < 0.9 for _ in range(120)])
    found = duckanon.risk(after, quasi_identifiers=QUASI, entity_key="id", previous=before, k=4).composition
    assert found is not None
    groups = _groups(before, after)
    both = [n for (a, b), n in groups.items() if a is not None and b is not None]
    assert (found.tied_by, found.k) == ("key", 4)
    assert found.smallest == min(both)
    assert found.persons_in_both == sum(both)
    assert found.groups_below == sum(n < 4 for n in both)
    assert found.persons_below == sum(n for n in both if n < 4)
    assert found.new_below == sum(n for (a, _), n in groups.items() if a is None and n < 4)
    assert found.departed_below == sum(n for (_, b), n in groups.items() if b is None and n < 4)
    assert not found.holds


@pytest.mark.parametrize("keyed", [False, True])
def test_an_original_places_people_as_their_key_would(keyed: bool) -> None:
    people = _people(150, 3)
    before, after = _recoded(people, 10), _recoded(people, 16, 5, cities=False)
    by_key = duckanon.risk(after, quasi_identifiers=QUASI, entity_key="id", previous=before, k=5).composition
    placed = duckanon.risk(
        after.drop_columns(["id"]),
        quasi_identifiers=QUASI,
        previous=before.drop_columns(["id"]),
        original=people,
        entity_key="id" if keyed else None,
        k=5,
    ).composition
    assert by_key is not None
    assert placed is not None
    assert placed.to_dict() | {"tied_by": "key"} == by_key.to_dict()


def test_regions_of_two_nights_are_placed(tmp_path: Path) -> None:
    people = _people(300, 8)
    for name, bounds in (("a", "cut"), ("b", "tight")):
        with duckanon.anonymize(people, quasi_identifiers=QUASI, k=6, bounds=bounds) as release:
            release.write(tmp_path / f"{name}.parquet", report=())
    names = {"quasi_identifiers": QUASI, "original": people, "entity_key": "id"}
    same = duckanon.risk(tmp_path / "a.parquet", previous=tmp_path / "b.parquet", **names).composition
    assert same is not None
    # The cuts are the same, so that nobody is told from others who was not before.
    assert (same.persons_in_both, same.holds, same.k) == (300, True, 6)
    other = _recoded(people, 9, 2).drop_columns(["id"])
    pq.write_table(other, tmp_path / "c.parquet")
    mixed = duckanon.risk(tmp_path / "a.parquet", previous=tmp_path / "c.parquet", **names).composition
    assert mixed is not None
    assert mixed.persons_below > 0


def test_an_earlier_original_tells_who_came_and_went() -> None:
    people = _people(100, 5)
    old, new = people.slice(0, 90), people.slice(10, 90)
    before, after = _recoded(old, 40), _recoded(new, 40)
    by_key = duckanon.risk(after, quasi_identifiers=QUASI, entity_key="id", previous=before, k=3).composition
    placed = duckanon.risk(
        after, quasi_identifiers=QUASI, previous=before, original=new, previous_original=old, entity_key="id", k=3
    ).composition
    assert by_key is not None
    assert placed is not None
    assert placed.persons_in_both == by_key.persons_in_both == 80
    assert (placed.new_below, placed.departed_below) == (by_key.new_below, by_key.departed_below)


# Without anybody to follow


@pytest.mark.parametrize("seed", range(8))
def test_what_the_overlap_proves_is_true(seed: int) -> None:
    draw = random.Random(seed)
    people = _people(draw.choice([20, 60]), seed)
    before, after = _recoded(people, draw.choice([10, 20])), _recoded(people, draw.choice([15, 40]), 5, cities=False)
    found = duckanon.risk(
        after.drop_columns(["id"]), quasi_identifiers=QUASI, previous=before.drop_columns(["id"]), k=4
    ).composition
    truth = [n for n in _groups(before, after).values() if n < 4]
    assert found is not None
    assert found.tied_by == "overlap"
    assert found.groups_below <= len(truth)
    assert found.persons_below <= sum(truth)


def test_the_overlap_proves_what_is_left_over() -> None:
    before = pa.table({"age": ["[0, 9]"] * 5 + ["[10, 19]"] * 5})
    after = pa.table({"age": ["[0, 11]"] * 6 + ["[12, 19]"] * 4})
    found = duckanon.risk(after, quasi_identifiers=["age"], previous=before, k=4).composition
    assert found is not None
    # Four of the five between 10 and 19 are from 12 on: so one is 10 or 11.
    assert (found.groups_below, found.persons_below, found.smallest) == (1, 1, 1)
    more = pa.concat_tables([after, after.slice(0, 1)])
    unknown = duckanon.risk(more, quasi_identifiers=["age"], previous=before, k=4).composition
    assert unknown is not None
    # Where people differ, sizes prove nothing.
    assert unknown.persons_below == 0


@pytest.mark.parametrize("seed", range(40))
def test_bounds_of_common_members_hold_for_every_table(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 4, (3, 4)) * (rng.random((3, 4)) < 0.7)
    meet = (table > 0) | (rng.random((3, 4)) < 0.2)
    least, most = common(meet, table.sum(axis=1), table.sum(axis=0))
    assert (least <= table).all()
    assert (table <= most).all()


def test_what_does_not_fit_is_refused() -> None:
    people = _people(20, 1)
    release = _recoded(people, 40)
    with pytest.raises(ParameterError, match="give previous"):
        duckanon.risk(release, quasi_identifiers=QUASI, original=people)
    with pytest.raises(ParameterError, match="entity_key"):
        duckanon.risk(release, quasi_identifiers=QUASI, previous=release, original=people, previous_original=people)
    with pytest.raises(RoleError):
        duckanon.risk(release, quasi_identifiers=QUASI, previous=release.drop_columns(["id"]), entity_key="id")


def test_the_figures_are_listed() -> None:
    release = _recoded(_people(20, 1), 40)
    found = duckanon.risk(release, quasi_identifiers=QUASI, previous=release, entity_key="id")
    listed = {name: value for name, value, _ in found.figures()}
    assert listed["persons_in_both"] == 20
    assert listed["persons_below_k"] == 0
    assert found.to_dict()["composition"]["tied_by"] == "key"
