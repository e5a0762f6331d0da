"""The intersection of the releases of two nights, counted again in plain Python."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from duckanon.errors import DataError, InfeasibleError, ParameterError, PrivacyViolation
from duckanon.hierarchy import Hierarchy
from duckanon.jobs import exit_code
from duckanon.jobs.nights import Night, State
from tests.jobs.nights_made import K, Town, classes_of, fresh_state, night, published, recount

LEVELS: dict[str, Any] = {"algorithm": "datafly", "hierarchies": {"age": Hierarchy.intervals(width=30)}}


class Job:
    """Nights of one job, one after the other."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.made: list[Night] = []

    def run(self, data: pa.Table, plan: dict[str, Any] | None = None, **how: Any) -> Night:
        made = night(data, self.state, f"r{len(self.made)}", plan, **how)
        self.made.append(made)
        return published(made, self.state)


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    found = Job(fresh_state(tmp_path))
    yield found
    for made in found.made:
        made.release.close()


def agree(before: Night, after: Night, at: int = 0) -> None:
    """Assert that the figures are those of a recount."""
    assert after.intersection is not None
    told = after.intersection.compared[at]
    old, new = classes_of(before.release), classes_of(after.release)
    groups = recount(old, new)
    assert told.run == before.run
    assert told.persons_in_both == len(old.keys() & new.keys())
    assert told.smallest == min(groups["both"], default=None)
    assert told.groups_below == sum(n < K for n in groups["both"])
    for kind, figure in (("both", told.persons_below), ("new", told.new_below), ("departed", told.departed_below)):
        assert figure == sum(n for n in groups[kind] if n < K), kind


@pytest.mark.parametrize("plan", [LEVELS, {"algorithm": "mondrian"}], ids=["levels", "regions"])
def test_unchanged_people_and_a_frozen_recoding_pass(job: Job, plan: dict[str, Any]) -> None:
    data = Town(200, 1).table()
    for _ in range(3):
        made = job.run(data, plan, recoding="frozen", intersection="stop")
        assert made.warnings == []
        assert made.held_back == 0
    assert made.intersection is not None
    assert made.intersection.holds
    assert [c.run for c in made.intersection.compared] == ["r1", "r0"]
    assert made.intersection.persons_in_both == 200
    assert made.stored == "r0"


def test_a_new_search_after_changes_breaks_k(job: Job) -> None:
    town = Town(200, 2)
    job.run(town.table(), recoding="fresh", intersection="stop")
    town.depart(20)
    town.arrive(20)
    with pytest.raises(InfeasibleError, match="persons in both are in groups of fewer than 4") as caught:
        job.run(town.table(), recoding="fresh", intersection="stop")
    assert exit_code(caught.value) == 4
    assert "person " not in str(caught.value)
    warned = job.run(town.table(), recoding="fresh", intersection="warn")
    assert warned.warnings
    agree(job.made[0], warned)


@pytest.mark.parametrize("plan", [LEVELS, {"algorithm": "mondrian"}], ids=["levels", "regions"])
@pytest.mark.thinned(2)
def test_the_figures_are_those_of_a_recount(job: Job, plan: dict[str, Any]) -> None:
    town = Town(200, 3)
    for i in range(4):
        if i:
            town.depart(3 * i)
            town.arrive(4)
            town.move(5)
        made = job.run(town.table(), plan, recoding="frozen", intersection="warn")
        for at, before in enumerate(reversed(job.made[:-1][-3:])):
            agree(before, made, at)
    assert made.intersection is not None
    assert len(made.intersection.compared) == 3
    assert made.intersection.to_dict()["compared"][0]["run"] == "r2"


def test_the_delta_of_one_row(job: Job) -> None:
    """One person who comes, goes or moves is found by subtraction, in whatever class."""
    town = Town(120, 4)
    job.run(town.table(), LEVELS, recoding="frozen", intersection="stop")
    town.depart(1)
    gone = job.run(town.table(), LEVELS, recoding="frozen", intersection="warn", keep=1)
    assert gone.intersection is not None
    assert (gone.intersection.compared[0].departed_below, gone.intersection.persons_below) == (1, 0)
    town.arrive(1)
    come = job.run(town.table(), LEVELS, recoding="frozen", intersection="stop", keep=1)
    assert come.intersection is not None
    assert come.intersection.compared[0].new_below == 1
    assert "difference of the two releases" in come.warnings[0]
    with pytest.raises(InfeasibleError):
        come.intersection.require(delta=True)
    town.depart(1)
    held = job.run(town.table(), LEVELS, recoding="frozen", intersection="hold")
    assert held.intersection is not None
    assert held.intersection.holds
    # Three others of his class wait with him who is gone.
    assert held.held_back == K - 1
    assert held.release.rows_published + held.release.rows_suppressed == held.release.rows_in == 119
    assert held.release.summary()["found"]["rows_in"] == 119


def test_who_waits_is_the_same_when_the_night_is_made_again(job: Job) -> None:
    town = Town(160, 3)
    job.run(town.table(), LEVELS, recoding="frozen", intersection="hold")
    town.depart(1)
    made = [
        night(town.table(), job.state, run, LEVELS, recoding="frozen", intersection="hold")
        for run in ("again", "twice")
    ]
    job.made += made
    one, other = (classes_of(m.release) for m in made)
    assert 0 < made[0].held_back < 20
    assert one == other


def test_one_person_with_many_rows(job: Job) -> None:
    """Rows of one person in two classes on both nights are what each night shows by itself."""
    count = 12
    both = {"id": [*range(count)] * 2, "age": [20] * count + [70] * count, "zip": ["1"] * 2 * count}
    twice = pa.table(both | {"ill": ["a"] * 2 * count, "who": ["x"] * 2 * count})
    job.run(twice, LEVELS, recoding="frozen", intersection="stop")
    again = job.run(twice, LEVELS, recoding="frozen", intersection="stop")
    assert again.intersection is not None
    assert again.intersection.holds
    # One person's second row is gone, and nobody else's.
    fewer = job.run(twice.slice(0, 2 * count - 1), LEVELS, recoding="frozen", intersection="warn")
    assert fewer.intersection is not None
    assert [c.departed_below for c in fewer.intersection.compared] == [1, 1]
    held = job.run(twice.slice(0, 2 * count - 1), LEVELS, recoding="frozen", intersection="hold", keep=3)
    assert held.intersection is not None
    assert held.intersection.holds


def test_rows_without_an_entity_are_nobody(job: Job) -> None:
    data = Town(120, 6).table()
    ids = pa.array([None if i % 10 == 0 else i for i in range(120)], pa.int64())
    data = data.set_column(0, "id", ids)
    for _ in range(2):
        made = job.run(data, LEVELS, recoding="frozen", intersection="stop")
    assert made.intersection is not None
    assert made.intersection.persons_in_both == 108


def test_nothing_can_be_read_from_what_is_kept(job: Job) -> None:
    town = Town(120, 7)
    job.run(town.table(), LEVELS, recoding="frozen", intersection="warn")
    (path,) = (job.state.folder / "runs" / "r0").glob("persons.parquet")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    kept = pq.read_table(path)
    assert kept.column_names == ["person", "class_id"]
    assert {len(v) for v in kept.column("person").to_pylist()} == {16}
    assert kept.column("person").to_pylist() == sorted(kept.column("person").to_pylist())
    other = State.open(job.state.folder.parent / "other")
    made = night(town.table(), other, "r0", LEVELS, recoding="frozen", intersection="warn")
    mine = pq.read_table(other.run_folder("r0") / "persons.parquet")
    assert not set(mine.column("person").to_pylist()) & set(kept.column("person").to_pylist())
    made.release.close()
    secret = job.state.key()
    for file in job.state.folder.rglob("*"):
        assert file.name == "key" or not file.is_file() or secret.encode() not in file.read_bytes()


def test_a_lost_night_is_an_error(job: Job) -> None:
    data = Town(120, 8).table()
    job.run(data, LEVELS, recoding="frozen", intersection="warn")
    path = job.state.run_folder("r0") / "persons.parquet"
    whole = path.read_bytes()
    path.unlink()
    with pytest.raises(DataError, match="earlier run"):
        job.run(data, LEVELS, recoding="frozen", intersection="warn")
    path.write_bytes(whole)
    pq.write_table(pa.table({"person": [b"1"]}), path)
    with pytest.raises(DataError, match="earlier run"):
        job.run(data, LEVELS, recoding="frozen", intersection="warn")


def test_persons_are_those_of_what_is_published(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: the persons of one row less than is published."""
    from duckanon.recoding.full_domain import FullDomain

    own = FullDomain.released
    calls = []

    def fewer(self: Any, rows: Any, columns: Any) -> Any:
        calls.append(1)
        found = own(self, rows, columns)
        return found if len(calls) < 3 else found.limit(100)

    monkeypatch.setattr(FullDomain, "released", fewer)
    with pytest.raises(PrivacyViolation):
        job.run(Town(120, 9).table(), LEVELS, recoding="frozen", intersection="warn")


def test_refresh_stores_a_new_recoding_when_it_is_published(job: Job) -> None:
    town = Town(200, 10)
    job.run(town.table(), recoding="frozen")
    assert job.run(town.table(), recoding="frozen").stored == "r0"
    town.arrive(200)
    made = night(town.table(), job.state, "lost", recoding="refresh")
    assert made.stored == "lost"
    made.prepare(job.state)
    made.release.close()
    # It was never published: what was stored before is still in force.
    job.state.settle("r1")
    assert job.run(town.table(), recoding="frozen").stored == "r0"
    assert job.run(town.table(), recoding="refresh").stored == "r3"
    assert job.run(town.table(), recoding="frozen").stored == "r3"
    assert job.run(town.table(), recoding="fresh").stored is None
    last = job.state.last()
    assert last is not None
    assert last["columns"]["age"] == "INTEGER"
    assert 0 < last["loss"]["loss"] < 1


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"intersection": "hold"}, "needs recoding = 'frozen'"),
        ({"intersection": "sop"}, "Did you mean 'stop'"),
        ({"recoding": "froze"}, "Did you mean 'frozen'"),
        ({"keep": 0}, "at least 1"),
    ],
)
def test_what_does_not_go_together(tmp_path: Path, how: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        night(Town(20, 1).table(), fresh_state(tmp_path), "r0", **how)


def test_without_an_entity_key_nobody_is_in_both(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="entity_key"):
        night(Town(20, 1).table(), fresh_state(tmp_path), "r0", {"entity_key": None}, intersection="warn")


def test_holding_back_all_is_refused(job: Job) -> None:
    """Two classes of five that exchange one person each cannot be published again."""
    who = [str(i) for i in range(10)]
    ages = [20] * 5 + [70] * 5
    data = pa.table({"id": range(10), "age": ages, "zip": ["1"] * 10, "ill": ["a"] * 10, "who": who})
    plan = LEVELS | {"k": 5}
    job.run(data, plan, recoding="frozen", intersection="hold")
    moved = data.set_column(1, "age", pa.array([70, *[20] * 4, 20, *[70] * 4]))
    with pytest.raises(InfeasibleError, match="held back") as caught:
        job.run(moved, plan, recoding="frozen", intersection="hold")
    assert exit_code(caught.value) == 4
