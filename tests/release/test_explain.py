"""What a plan explains is what runs, for each algorithm."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

import duckanon
from duckanon.algorithms.base import algorithms
from duckanon.engine.base import open_engine
from duckanon.plan.plan import Plan
from duckanon.plan.request import Request
from duckanon.progress import Event
from duckanon.release.explain import statements

PEOPLE = pa.table(
    {
        "age": [20 + i * 7 % 30 for i in range(60)],
        "zip": [f"10{i % 4}" for i in range(60)],
        "ill": [["Canary", "cold", "gout"][i % 3] for i in range(60)],
    }
)
NAMES = re.compile(r"(?<=duckanon_)(\w+?)_?\d+|/[^']*\.duckanon-run-[^/']*")
"""What differs between two runs: numbers in names of private tables, and private folders."""


def requested(algorithm: str) -> dict[str, object]:
    limit = 0.2 if algorithm != "probabilistic" else 0.0
    return {"k": 3, "quasi_identifiers": ["age", "zip"], "sensitive": ["ill"], "suppression_limit": limit, "seed": 1}


@contextmanager
def recorded() -> Iterator[tuple[Callable[[Event], None], list[tuple[str, str]]]]:
    """Yield a listener to progress, and the list of (step, statement) that grows while statements run."""
    found: list[tuple[str, str]] = []

    class Recorder(logging.Handler):
        step = ""

        def emit(self, record: logging.LogRecord) -> None:
            found.append((self.step, record.getMessage()))

        def listen(self, event: Event) -> None:
            self.step = event.step

    log, recorder = logging.getLogger("duckanon.sql"), Recorder()
    log.addHandler(recorder)
    log.setLevel(logging.DEBUG)
    try:
        yield recorder.listen, found
    finally:
        log.removeHandler(recorder)
        log.setLevel(logging.NOTSET)


@pytest.mark.parametrize("algorithm", list(algorithms))
def test_the_steps_explained_are_those_that_ran(algorithm: str) -> None:
    with (
        recorded() as (listen, ran),
        duckanon.anonymize(PEOPLE, **requested(algorithm), algorithm=algorithm, progress=listen) as release,
    ):
        explained = dict(release.plan.steps())
        source = release.plan.relation.query.sql(dialect="duckdb")

    def of(step: str, *words: str) -> bool:
        return any(name == step and all(word in sql for word in words) for name, sql in ran)

    assert list(explained) == list(dict.fromkeys(name for name, _ in ran if name))
    counted = of("encode", source, "JOIN", "GROUP BY ALL")
    assert counted == ("count the rows of each combination" in explained["encode"])
    assert of("code", source, "JOIN") == ("code" in explained)
    assert not of("search", source)
    assert of("gate", "/* k_anonymity:") == ("k_anonymity" in explained["gate"].split())


@pytest.mark.parametrize("algorithm", ["mondrian", "optimal", "mdav", "probabilistic"])
def test_the_statements_shown_are_among_those_that_ran(algorithm: str) -> None:
    engine = open_engine()
    try:
        shown = statements(
            Plan.resolve(Request(data=PEOPLE, algorithm=algorithm, **requested(algorithm)), engine), engine
        )
    finally:
        engine.close()
    with recorded() as (_, ran):
        duckanon.anonymize(PEOPLE, algorithm=algorithm, **requested(algorithm)).close()
    alike = {NAMES.sub(r"\1", sql) for _, sql in ran}
    assert [one.sql for one in shown if NAMES.sub(r"\1", one.sql) not in alike] == []
    assert {one.step for one in shown} >= {"encode", "recode", "gate"}
    assert "Canary" not in "".join(one.pretty() for one in shown)


@pytest.mark.parametrize(
    "algorithm",
    [
        "optimal(metric='bivariate_correlation')",
        "optimal(metric='mutual_information_loss')",
        "mondrian(choose_dim='least_squares', target='cost')",
    ],
)
def test_statements_have_no_number_of_the_data(algorithm: str) -> None:
    ages = [171700 + i * 7 % 96 for i in range(200)]
    table = pa.table({"age": ages, "zip": [f"10{i % 4}" for i in range(200)], "cost": [371744.25] * 200})
    with recorded() as (_, ran):
        release = duckanon.anonymize(
            table,
            algorithm=algorithm,
            quasi_identifiers=["age", "zip"],
            insensitive=["cost"],
            k=3,
            suppression_limit=0.1,
        )
        release.measure(["bivariate_correlation", "mutual_information_loss"])
        release.close()
    texts = "".join(sql for _, sql in ran)
    low, high = min(ages), max(ages)
    numbers = [low, high, low / 2, high / 2, (high - low) / 2, 371744.25]
    assert [n for n in numbers if re.search(rf"(?<![\w.]){re.escape(f'{n:g}' if n < 1000 else str(n))}", texts)] == []


def test_recording_statements_leaves_logging_and_progress_as_they_were() -> None:
    log, seen = logging.getLogger("duckanon.sql"), []
    before = (log.level, list(log.handlers))
    engine = open_engine(None, seen.append)
    try:
        listener = engine.progress.listener
        statements(Plan.resolve(Request(data=PEOPLE, **requested("mondrian")), engine), engine)
        assert engine.progress.listener is listener
    finally:
        engine.close()
    assert (log.level, list(log.handlers)) == before
    assert {event.step for event in seen} >= {"encode", "gate"}


def test_statements_that_differ_in_a_column_alone_are_shown_once() -> None:
    table = pa.table({name: ["a", "b"] * 3 for name in ("ward", "town", "land")})
    engine = open_engine()
    try:
        request = Request(data=table, quasi_identifiers=table.column_names, k=2)
        counted, first = statements(Plan.resolve(request, engine), engine)[:2]
    finally:
        engine.close()
    assert (counted.step, counted.also) == ("count", ())
    assert first.also == ("town", "land")
    assert first.pretty().startswith("-- encode, and likewise for town, land\nCREATE")
