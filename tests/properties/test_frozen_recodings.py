"""A frozen recoding gives the night it came from again, and every further row to one class or to none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from hypothesis import event, given
from hypothesis import strategies as st

from duckanon.engine.base import open_engine
from duckanon.errors import InfeasibleError
from duckanon.jobs.nights import Stored, freeze, frozen_plan, remembering
from duckanon.plan.plan import Plan
from duckanon.plan.request import Request
from duckanon.release import pipeline
from duckanon.release.release import Release
from tests.effort import share
from tests.properties.frozen_cases import Case

Key = tuple[Any, ...]


class Nights:
    """Releases of one plan."""

    def __init__(self, plan: dict[str, Any], stack: ExitStack) -> None:
        self.plan, self.stack = plan, stack
        self.folder = Path(stack.enter_context(TemporaryDirectory()))

    def make(self, data: pa.Table, stored: Stored | None = None) -> Release:
        engine = open_engine()
        try:
            plan = Plan.resolve(Request(data=data, **self.plan), engine)
            release = pipeline.run(remembering(plan) if stored is None else frozen_plan(plan, stored), engine)
        except BaseException:
            engine.close()
            raise
        self.stack.callback(release.close)
        return release

    def freeze(self, release: Release) -> Stored:
        freeze(release, self.folder)
        return Stored.load(self.folder)


@contextmanager
def first_night(case: Case) -> Iterator[tuple[Nights, Release | None]]:
    with ExitStack() as stack:
        nights = Nights(case.plan, stack)
        try:
            release = nights.make(case.table(case.rows))
        except InfeasibleError:
            event("nothing keeps the promise")
            yield nights, None
            return
        event(f"{release.plan.algorithm.name}, {release.plan.bounds}")
        yield nights, release


def labels(release: Release) -> dict[str, Key]:
    """Return what is published of every row, by a column that is published as it is."""
    rows = release.to_arrow().to_pylist()
    names = [n for n in release.to_arrow().column_names if n not in ("who", "ill")]
    found = {row["who"]: tuple(repr(row[n]) for n in names) for row in rows}
    assert len(found) == len(rows)
    return found


def texts(release: Release) -> dict[str, Key]:
    """Return labels as texts: a column of single values keeps its type until a label stands among them."""
    found = release.to_arrow().to_pylist()
    names = [n for n in release.to_arrow().column_names if n not in ("who", "ill")]
    return {row["who"]: tuple(str(row[n]).lower() for n in names) for row in found}


def values_of(case: Case, row: dict[str, Any]) -> Key:
    return tuple(repr(0.0 if row[n] == 0 and isinstance(row[n], float) else row[n]) for n in case.names)


@share(1 / 2)
@given(seed=st.integers(0, 2**32))
def test_the_same_rows_are_published_alike(seed: int) -> None:
    case = Case.of(seed)
    with first_night(case) as (nights, first):
        if first is None:
            return
        again = nights.make(case.table(case.rows), nights.freeze(first))
        assert labels(again) == labels(first)
        assert again.to_arrow().schema == first.to_arrow().schema
        assert again.rows_suppressed == first.rows_suppressed
        assert sorted(map(str, again.classes().to_pylist())) == sorted(map(str, first.classes().to_pylist()))


@share(1 / 2)
@given(seed=st.integers(0, 2**32))
def test_further_rows_move_nobody(seed: int) -> None:
    case = Case.of(seed)
    with first_night(case) as (nights, first):
        if first is None:
            return
        stored, before = nights.freeze(first), texts(first)
        gone = set(case.rng.sample(range(len(case.rows)), len(case.rows) // 4))
        stay = [row for i, row in enumerate(case.rows) if i not in gone]
        rows = [*stay, *(case.row(case.rng.random() < 0.5) for _ in range(case.rng.randint(0, 40)))]
        case.rng.shuffle(rows)
        try:
            second = nights.make(case.table(rows), stored)
        except InfeasibleError:
            event("nothing keeps the promise tonight")
            return
        after = texts(second)
        assert second.rows_in == len(rows) == len(after) + second.rows_suppressed
        # Whoever stays and is published keeps the labels, and rows of equal values are published alike or not at all.
        assert all(after[who] == before[who] for who in after.keys() & before.keys())
        of: dict[Key, set[Key | None]] = {}
        for row in rows:
            of.setdefault(values_of(case, row), set()).add(after.get(row["who"]))
        assert all(len(found) == 1 for found in of.values())
        # Whom tonight's rows of the first night are enough for is published.
        if set(case.plan) & {"l", "t", "models"}:
            return
        people: dict[Key, set[Any]] = {}
        for row in stay:
            if row["who"] in before:
                people.setdefault(before[row["who"]], set()).add(row["id" if case.persons else "who"])
        sizes = Counter(before.values())
        several = classes_alike(first)
        for row in stay:
            own = before.get(row["who"])
            if own is not None and len(people[own]) >= case.plan["k"] and own not in several and sizes[own]:
                assert row["who"] in after


def classes_alike(release: Release) -> set[Key]:
    """Return labels that more than one class is published under."""
    published = getattr(release.recoder, "published", None)
    if published is None or not published.merged:
        return set()
    return set(texts(release).values())
