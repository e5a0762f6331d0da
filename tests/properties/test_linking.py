"""Attacks that link people to published rows find what slow, obvious references find, on random tables."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from reference import linking as slow

import duckanon
from duckanon.assess.attacks.linkage_space import Projection
from duckanon.assess.attacks.probabilistic_linkage import ENOUGH, NEAR, ROUNDS, START
from duckanon.assess.attacks.singling_out import MOST

CITIES = ["Ulm", "Bonn", "Kiel", "Jena", None]
ILLS = ["flu", "gout", "cold"]
ORDERED = (True, False, True)


@dataclass
class Tables:
    """A random original, controls and a released table, and what its cells stand for."""

    people: list[tuple[Any, ...]]
    controls: list[tuple[Any, ...]]
    released: pa.Table
    rows: list[tuple[Any, ...]]
    ills: list[str]

    @classmethod
    def drawn(cls, seed: int) -> Tables:
        draw = random.Random(seed)

        def person() -> tuple[Any, ...]:
            return draw.randint(20, 60), draw.choice(CITIES), draw.choice([0.5, 1.5, 2.25]), draw.choice(ILLS)

        people = [person() for _ in range(draw.randint(8, 25))]
        controls = [person() for _ in range(draw.randint(5, 12))]
        present = sorted({p[1] for p in people + controls if p[1] is not None})
        labels, rows = [], []
        for age, city, dose, ill in draw.sample(people, draw.randint(4, len(people))):
            low, high = age - draw.randint(0, 9), age + draw.randint(0, 9)
            kind = draw.choice(["closed", "half", "point", "dash"])
            age_label = {
                "closed": f"[{low}, {high}]",
                "half": f"[{low}, {high + 1})",
                "point": str(age),
                "dash": f"{low}-{high}",
            }[kind]
            bounds = (age, age) if kind == "point" else (low, high)
            cells = {city}
            city_label = city
            if city is not None and draw.random() < 0.6:
                cells |= set(draw.sample(present, draw.randint(1, len(present))))
                city_label = "{" + ", ".join(sorted(cells)) + "}"
            elif draw.random() < 0.2:
                cells, city_label = set(CITIES), "*"
            labels.append((age_label, city_label, dose, ill))
            rows.append((bounds, cells, (dose, dose)))
        names = ("age", "city", "dose", "ill")
        released = pa.table({n: pa.array(column) for n, column in zip(names, zip(*labels, strict=True), strict=True)})
        return cls(people, controls, released, rows, [label[3] for label in labels])

    @staticmethod
    def table(people: list[tuple[Any, ...]]) -> pa.Table:
        ages, cities, doses, ills = zip(*people, strict=True)
        return pa.table({"age": ages, "city": pa.array(cities, pa.string()), "dose": doses, "ill": ills})

    @property
    def spans(self) -> tuple[float, float, float]:
        every = self.people + self.controls
        return tuple(
            (max(p[j] for p in every) - min(p[j] for p in every)) or 1.0 if ORDERED[j] else 1.0 for j in range(3)
        )  # type: ignore[return-value]

    def attack(self, name: str, **options: Any) -> list[Any]:
        found = duckanon.attack(
            self.table(self.people),
            self.released,
            control=self.table(self.controls),
            quasi_identifiers=["age", "city", "dose"],
            sensitive=["ill"],
            attacks=[name],
            **options,
        )
        assert found.skipped == {}
        return list(found.findings)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.thinned(2)
def test_the_nearest_rows_are_those_of_the_reference(seed: int) -> None:
    tables = Tables.drawn(seed)
    found = {f.adversary: f for f in tables.attack("distance_linkage", known=["age", "city"])}
    for adversary, columns in (("part", (0, 1)), ("full", (0, 1, 2))):
        rows = [[row[j] for j in columns] for row in tables.rows]
        ordered, spans = [ORDERED[j] for j in columns], [tables.spans[j] for j in columns]
        for people, share in ((tables.people, found[adversary].success), (tables.controls, found[adversary].control)):
            hits = []
            for person in people:
                linked = slow.nearest([person[j] for j in columns], rows, ordered, spans)
                hits.append(slow.vote([tables.ills[i] for i in linked], person[3]))
            assert share == pytest.approx(_mean(hits))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.thinned(2)
def test_the_model_of_fellegi_and_sunter_is_that_of_the_reference(seed: int) -> None:
    tables = Tables.drawn(seed)
    (found,) = (f for f in tables.attack("probabilistic_linkage") if f.adversary == "full")
    known = [person[:3] for person in tables.people]
    patterns = [slow.pattern(p, row, ORDERED, tables.spans, NEAR) for p in known for row in tables.rows]
    m, u, _ = slow.expectation_maximization(patterns, 1 / len(tables.rows), START, ROUNDS, ENOUGH)
    hits = []
    for person in tables.people:
        linked = slow.heaviest(person[:3], tables.rows, ORDERED, tables.spans, NEAR, m, u)
        hits.append(slow.vote([tables.ills[i] for i in linked], person[3]))
    assert found.success == pytest.approx(_mean(hits))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.thinned(4)
def test_linkability_and_linkage_are_those_of_the_reference(seed: int) -> None:
    tables = Tables.drawn(seed)
    (found,) = tables.attack("linkability")
    (candidates,) = tables.attack("linkage")
    assert candidates.control is None
    for people, share in ((tables.people, found.success), (tables.controls, found.control)):
        both = [slow.meeting(p[:3], tables.rows, ORDERED, tables.spans, (True, False, True)) for p in people]
        assert share == pytest.approx(_mean(both))
    fits = [sum(slow.fitting(row, [p[:3]], ORDERED, tables.spans) for row in tables.rows) for p in tables.people]
    assert candidates.success == pytest.approx(_mean([1 / n if n else 0.0 for n in fits]))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.thinned(2)
def test_who_fits_a_description_is_counted_as_one_by_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    fast = Projection.fitting

    def watched(view: Projection, cells: Any, people: Any, enough: int) -> Any:
        found = fast(view, cells, people, enough)
        asked.append((view, cells, people, enough, found))
        return found

    monkeypatch.setattr(Projection, "fitting", watched)
    Tables.drawn(seed).attack("singling_out")
    assert {enough for *_, enough, _ in asked} == {2, MOST}
    for view, cells, people, enough, found in asked:
        axes = [view.space.axes[j] for j in view.columns]
        for row, count in zip(cells, found, strict=True):
            fits = 0
            for person in people.points[:, list(view.columns)]:
                fits += all(_stands_for(axis, cell, x) for axis, cell, x in zip(axes, row, person, strict=True))
            assert count == min(fits, enough)


def _stands_for(axis: Any, cell: int, place: float) -> bool:
    if axis.start[cell] >= 0:
        return bool(place in axis.members[axis.start[cell] : axis.stop[cell]])
    return bool(axis.low[cell] <= place <= axis.high[cell])
