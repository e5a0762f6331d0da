"""Every metric against its slow, obviously right twin, on boxes made by hand."""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from reference.relations import relations_of
from reference.tables import Cell, Domain, Table

from duckanon.engine.base import Engine
from duckanon.metrics import Measure, measure
from duckanon.testing.common import make_relations
from tests.effort import share
from tests.properties.metric_checks import NORMALISED_BY_ONE_CLASS, assert_equal


def boxes(rng: random.Random) -> Table:
    """Draw boxes and clusters: every group of rows has cells of its own, which may overlap."""
    width, size = rng.randint(1, 4), rng.randint(1, 25)
    ordered = [rng.random() < 0.5 for _ in range(width)]
    values: list[list[Hashable]] = []
    for j in range(width):
        many = rng.choice([6, 6, 18])
        some: list[Hashable] = (
            [rng.randint(-9, 9) for _ in range(rng.randint(1, many))] if ordered[j] else list("abcdef")
        )
        values.append([*some, None] if rng.random() < 0.3 else some)
    rows = [tuple(rng.choice(v) for v in values) for _ in range(size)]
    domains, cells_of = [], []
    for j in range(width):
        present = sorted({r[j] for r in rows}, key=lambda v: (v is None, v if isinstance(v, int) else str(v)))
        spare = rng.choice([0, 0, 3])
        numbers = {v: None if v is None else float(v) for v in present} if ordered[j] else None
        height = rng.choice([None, 1, 3])
        labels = rng.random() < 0.3
        domains.append(Domain(len(present) + spare, height, numbers, rng.choice([1.0, 1.0, 2.5]), labels))
        cells_of.append((present, spare, height))
    groups = [rng.randint(0, rng.randint(0, 5)) for _ in rows]
    made: dict[int, tuple[Cell, ...] | None] = {}
    for group in set(groups):
        if rng.random() < 0.2:
            made[group] = None
            continue
        own = []
        for j, (present, spare, height) in enumerate(cells_of):
            covers = {r[j] for r, g in zip(rows, groups, strict=True) if g == group}
            covers |= {v for v in present if rng.random() < 0.2}
            own.append(_cell(covers, present, spare, height))
        made[group] = tuple(own)
    cells = [made[g] for g in groups]
    known = [{c[j] for c in cells if c is not None} for j in range(width)]
    return Table(rows, cells, domains, known, [rng.choice("xyz") for _ in rows], rng.randint(1, 4))


def _cell(covers: set[Hashable], present: list[Hashable], spare: int, height: int | None) -> Cell:
    if len(covers) == 1:
        (value,) = covers
        return Cell(None if value is None else str(value), None if height is None else 0, 1, frozenset(covers))
    whole = len(covers) == len(present)
    text = "{" + ", ".join(sorted(str(v) for v in covers)) + "}"
    level = None if height is None else height if whole else max(1, height - 1)
    return Cell(text, level, len(covers) + (spare if whole else 0), frozenset(covers))


def measured(engine: Engine, table: Table, names: Sequence[str]) -> list[Measure]:
    relations = make_relations(engine, relations_of(table, names))
    try:
        return list(measure(engine, relations, None, {"k": table.k}))
    finally:
        for name in relations.tables(*relations.made()).values():
            engine.unregister(name)


@share(1 / 2)
@given(seed=st.integers(0, 2**32))
def test_metrics_of_boxes_and_clusters_are_those_of_their_definitions(seed: int, shared_engine: Engine) -> None:
    table = boxes(random.Random(seed))
    names = list("abcd"[: table.width])
    assert_equal(measured(shared_engine, table, names), table, names)


@share(1 / 8)
@given(seed=st.integers(0, 2**32))
def test_a_fully_suppressed_table_is_1_and_untouched_is_0(seed: int, shared_engine: Engine) -> None:
    table = boxes(random.Random(seed))
    names = list("abcd"[: table.width])
    untouched, suppressed = (
        {(m.metric, m.attribute): m for m in measured(shared_engine, shown, names)}
        for shown in (_untouched(table), _untouched(table).suppressed())
    )
    for key, one in untouched.items():
        if key[0] not in {*NORMALISED_BY_ONE_CLASS, "diameter"}:
            # At best a diameter is that of all columns, in which untouched rows need not differ.
            assert one.normalised is None or math.isclose(one.normalised, 0, abs_tol=1e-9), one
    for key, one in suppressed.items():
        if key[0] not in NORMALISED_BY_ONE_CLASS and one.normalised is not None:
            # Where nothing can be lost, as in columns of one leaf, both are at best.
            value = untouched[key].value if key in untouched and key[0] != "diameter" else None
            nothing = value is not None and one.value is not None and math.isclose(one.value, value, abs_tol=1e-9)
            assert math.isclose(one.normalised, 0 if nothing else 1, abs_tol=1e-9), (one, value)


def _untouched(table: Table) -> Table:
    """The same domains, of each row one, published as it is."""
    rows = list(dict.fromkeys(table.rows))
    cells = [
        tuple(
            Cell(None if v is None else str(v), None if d.height is None else 0, 1, frozenset([v]))
            for v, d in zip(row, table.domains, strict=True)
        )
        for row in rows
    ]
    known = [{c[j] for c in cells} for j in range(table.width)]
    return replace(table, rows=rows, cells=cells, known=known, labels=table.labels and table.labels[: len(rows)])
