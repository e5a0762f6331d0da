"""Rows held out where nobody gave controls: a leak is told from what holds of anybody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import duckanon
from duckanon.assess.attacks.holding_out import divided
from duckanon.assess.disclosure import Attack
from duckanon.errors import ParameterError
from duckanon.jobs.nights.stored_algorithms import StoredLevels

NAMES: dict[str, Any] = {"quasi_identifiers": ["age", "income"], "sensitive": ["ill"]}
TRIED = ["distance_linkage", "homogeneity", "inference"]
SAID = "rows were held out, and a release of the other"


def _people(rows: int = 1500, *, told: bool = False, each: int = 1) -> pa.Table:
    """People whose illness is chance, or told by their age; with ``each`` rows of a person."""
    draw = np.random.default_rng(1)
    age = draw.integers(18, 90, rows)
    ill = np.array(["flu", "gout", "cold", "none"])[age // 20 % 4 if told else draw.integers(0, 4, rows)]
    person = np.arange(rows) // each
    return pa.table({"age": age, "income": draw.integers(1000, 5000, rows), "ill": ill, "person": person})


def _levels(found: Attack) -> dict[str, set[str]]:
    return {name: {f.level for f in found.findings if f.attack == name} for name in TRIED}


def test_a_leak_is_found_without_controls() -> None:
    people = _people()
    with duckanon.anonymize(people, **NAMES, k=2) as release:
        alone = duckanon.attack(people, release, attacks=TRIED, hold_out=0)
        found = duckanon.attack(people, release, attacks=TRIED)
        again = duckanon.attack(people, release, attacks=TRIED)
        other = duckanon.attack(people, release, attacks=TRIED, seed=7)
    # Classes of two tell one illness in two: with chance alone it would be one in four.
    assert _levels(alone)["inference"] == {"unknown"}
    assert _levels(found)["inference"] == {"much"}
    assert "much" in _levels(found)["distance_linkage"]
    assert found.verdict.startswith("The release leaks")
    assert alone.controls == 0
    assert alone.held_out == ""
    assert 200 < found.controls < 400
    assert found.rows == 1500
    assert f"{found.controls} {SAID} {1500 - found.controls:,}, made in the same way" in found.held_out
    for f in found.findings:
        assert (SAID in f.verdict) == (f.controls > 0) == (f.attack != "homogeneity")
    assert [f.to_dict() for f in found.findings] == [f.to_dict() for f in again.findings]
    assert found.controls != other.controls
    assert found.held_out in found.report("md")


def test_what_is_true_of_anybody_is_no_leak() -> None:
    people = _people(told=True)
    with duckanon.anonymize(people, **NAMES, k=20, algorithm="mondrian") as release:
        assert _levels(duckanon.attack(people, release, attacks=TRIED, hold_out=0))["inference"] == {"unknown"}
        found = duckanon.attack(people, release, attacks=["distance_linkage", "inference"])
    assert {f.level for f in found.findings} == {"nothing"}
    assert min(f.success for f in found.findings if f.adversary != "part") > 0.5
    assert found.verdict.startswith("None of 2 attacks found a leak")


@pytest.mark.parametrize("door", ["plan", "attack"])
def test_all_rows_of_a_person_are_on_one_side(door: str) -> None:
    people = _people(1200, each=4)
    how: dict[str, Any] = {"entity_key": "person"} if door == "plan" else {"insensitive": ["person"]}
    with duckanon.anonymize(people, **NAMES, **how, k=3) as release:
        engine, plan = release.engine, release.plan
        sides = divided(plan, engine, 0.3, 5, None if door == "plan" else "PERSON")
        rest, out = (engine.arrow(side.query) for side in sides)
        same = engine.arrow(divided(plan, engine, 0.3, 5, None if door == "plan" else "PERSON")[1].query)
    persons = [set(side["person"].to_pylist()) for side in (rest, out)]
    assert not persons[0] & persons[1]
    assert rest.num_rows + out.num_rows == 1200
    assert 0.2 < len(persons[1]) / 300 < 0.4
    assert same.equals(out)


def test_rows_without_an_entity_key_are_on_one_side_too() -> None:
    people = _people(300)
    people = people.set_column(3, "person", pa.array([None if i % 2 else i for i in range(300)]))
    with duckanon.anonymize(people, **NAMES, entity_key="person", k=3) as release:
        rest, out = (release.engine.arrow(s.query) for s in divided(release.plan, release.engine, 0.5, 0, None))
    assert {rest["person"].null_count, out["person"].null_count} == {0, 150}


def test_nothing_is_left_and_the_release_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    people = _people()
    pq.write_table(people, tmp_path / "people.parquet")

    def made(release: Any, share: float) -> list[str]:
        before = set(release.engine._private())
        found = duckanon.attack(people, release, attacks=["inference"], hold_out=share)
        assert bool(found.held_out) == (share > 0)
        return sorted(name.rstrip("0123456789") for name in set(release.engine._private()) - before)

    with duckanon.anonymize(tmp_path / "people.parquet", **NAMES, k=2) as release:
        rows, seconds, files = release.to_arrow(), dict(release.engine.progress.seconds), set(tmp_path.rglob("*"))
        assert made(release, 0.2) == made(release, 0)
        assert set(tmp_path.rglob("*")) == files
        assert release.engine.progress.seconds == seconds
        assert release.to_arrow().equals(rows)


@pytest.mark.parametrize(
    ("rows", "how", "why"),
    [(300, {}, "fewer than 100"), (1500, {"sample": 50}, "fewer than 100"), (1500, {"k": 140}, "10 times k")],
)
def test_where_few_rows_are_the_verdict_stays_and_says_why(rows: int, how: dict[str, int], why: str) -> None:
    people = _people(rows)
    with duckanon.anonymize(people, **NAMES, k=2) as release:
        found = duckanon.attack(people, release, attacks=["inference"], **how)
    assert found.level == "unknown"
    assert f"Give people who are not in the release (control). {found.held_out}" in found.verdict
    assert found.held_out.startswith("No rows were held out: ")
    assert why in found.held_out


def test_what_cannot_be_made_again_is_said(tmp_path: Path) -> None:
    people = _people()
    path = tmp_path / "people.parquet"
    pq.write_table(people, path)

    def why(release: Any, original: pa.Table = people) -> str:
        found = duckanon.attack(original, release, attacks=["inference"], k=2)
        assert found.level == "unknown"
        assert found.controls == 0
        return found.held_out

    with duckanon.anonymize(path, **NAMES, k=2) as release:
        assert "not as many rows" in why(release, people.slice(0, 1000))
        plan = release.plan
        # All 1,500 rows are needed for this model: of fewer no release can be made.
        strict = duckanon.models.KAnonymity(1400)
        object.__setattr__(plan, "models", (strict,))
        assert "no release could be made" in why(release)
        object.__setattr__(plan, "algorithm", StoredLevels(duckanon.algorithms.Datafly(), (1, 1), (2, 2)))
        assert "recoding was stored" in why(release)
        object.__setattr__(plan, "algorithm", duckanon.algorithms.Mondrian())
        path.unlink()
        assert "cannot be read again" in why(release)
    found = duckanon.attack(people, people, attacks=["inference"], **NAMES)
    assert "a table does not say how it was made" in found.verdict


@pytest.mark.parametrize("share", [-0.1, 1, True, "0.2", None])
def test_the_share_is_checked(share: Any) -> None:
    people = _people(10)
    with pytest.raises(ParameterError, match="hold_out is a fraction"):
        duckanon.attack(people, people, hold_out=share, **NAMES)


def test_too_few_rows_to_tell_leave_the_verdict_open(monkeypatch: pytest.MonkeyPatch) -> None:
    from duckanon.assess.attacks import holding_out

    monkeypatch.setattr(holding_out, "FEWEST", 5)
    people = _people()
    with duckanon.anonymize(people, **NAMES, k=2) as release:
        found = duckanon.attack(people, release, attacks=["inference"], hold_out=0.006)
    (finding,) = found.findings
    assert finding.level == "unknown"
    assert "held out are too few to tell" in finding.verdict
