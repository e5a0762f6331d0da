"""What is published of numbers, dates, times and moments covers them: all types, their extremes, every hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Context, Decimal
from math import inf, isinf, isnan
from typing import Any

import duckdb
import numpy as np
import pytest
from columns_drawn import between, ladders
from hypothesis import given
from hypothesis import strategies as st
from reference.labels import Reader

import duckanon
from duckanon import Hierarchy
from duckanon.errors import HierarchyError, InfeasibleError, ParameterError
from tests.effort import share

WHOLE = {
    f"{'U' * u}{name}INT": (0, 2**bits - 1) if u else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for u in (0, 1)
    for name, bits in (("TINY", 8), ("SMALL", 16), ("BIG", 64), ("HUGE", 128))
}
PLACES = {
    f"DECIMAL({digits},{places})": (digits, places)
    for digits, places in ((4, 1), (18, 18), (38, 0), (38, 10), (38, 30), (38, 38))
}
EXACT = Context(prec=100)
ZONES = ["UTC", "America/New_York", "Asia/Kolkata"]


@st.composite
def columns(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A type of numbers, and values of it as texts."""
    kind = draw(st.sampled_from([*WHOLE, *PLACES, "DOUBLE", "FLOAT"]))
    if kind in ("DOUBLE", "FLOAT"):
        width = 64 if kind == "DOUBLE" else 32
        odd = [0.0, -0.0, inf, -inf, float("nan"), 5e-324 if width == 64 else 2.0**-149, 1e15, -1e30]
        numbers = st.one_of(st.floats(width=width), st.sampled_from(odd).map(lambda v: float(f"{v:.6g}")))
        return kind, [repr(v) for v in draw(st.lists(numbers, min_size=6, max_size=14))]
    least, most = WHOLE.get(kind) or (1 - 10 ** PLACES[kind][0], 10 ** PLACES[kind][0] - 1)
    powers = st.builds(
        lambda s, p, d: max(least, min(most, s * 10**p + d)),
        st.sampled_from([1, -1, 5]),
        st.integers(0, 38),
        st.integers(-1, 1),
    )
    numbers = st.one_of(st.integers(least, most), powers, st.sampled_from([least, most, max(0, least)]))
    places = PLACES.get(kind, (0, 0))[1]
    drawn = draw(st.lists(numbers, min_size=6, max_size=14))
    return kind, [f"{Decimal(v).scaleb(-places, EXACT):f}" for v in drawn]


@st.composite
def hierarchies(draw: st.DrawFn, values: Sequence[str]) -> Hierarchy | None:
    """Intervals of a round width, or cut at the values themselves and near them; or none."""
    which = draw(st.sampled_from(["made", "width", "cuts"]))
    if which == "made":
        return None
    if which == "width":
        width = Decimal(draw(st.sampled_from([1, 2, 5]))).scaleb(draw(st.integers(-20, 38)))
        return Hierarchy.intervals(width=width, factors=draw(st.sampled_from([[], [2, 5], [10]])))
    finite = [Decimal(v) for v in values if not (isnan(float(v)) or isinf(float(v)))] or [Decimal(0)]
    near = st.builds(EXACT.add, st.sampled_from(finite), st.sampled_from([Decimal(d) for d in ("0", "1", "-0.5")]))
    return Hierarchy.intervals(cuts=sorted(draw(st.sets(near, min_size=1, max_size=4))))


@pytest.mark.parametrize("algorithm", ["mondrian", "datafly"])
@given(data=st.data())
@share(0.6)
def test_every_label_covers_its_value(algorithm: str, data: st.DataObject) -> None:
    kind, values = data.draw(columns())
    hierarchy = data.draw(hierarchies(values))
    more: dict[str, Any] = (
        {"suppression_limit": 0.9, "min_levels": {"x": 1}}
        if algorithm == "datafly"
        else {"bounds": data.draw(st.sampled_from(["grid", "cut", "tight"]))}
    )
    if hierarchy is not None:
        more["hierarchies"] = {"x": hierarchy}
    with duckdb.connect() as connection:
        told = ", ".join(f"('{v}')" for v in values)
        connection.execute(
            f"CREATE TABLE t AS SELECT w::{kind} AS x, (w::{kind})::VARCHAR AS was FROM (VALUES {told}) AS v(w)"
        )
        try:
            release = duckanon.anonymize(
                "t",
                connection=connection,
                quasi_identifiers=["x"],
                insensitive=["was"],
                k=data.draw(st.integers(1, 3)),
                algorithm=algorithm,
                **more,
            )
        except (HierarchyError, InfeasibleError):
            return
        with release:
            for row in release.to_arrow().to_pylist():
                if isinstance(row["x"], float) and kind == "FLOAT":
                    assert np.array_equal(np.float32(row["x"]), np.float32(row["was"]), equal_nan=True)
                else:
                    assert Reader(kind).covers(str(row["x"]), row["was"]), (kind, row)


DAY = 86_400 * 10**9
STEPS = {"DATE": DAY, "TIMESTAMP_S": 10**9, "TIMESTAMP_MS": 10**6, "TIMESTAMP_NS": 1, "TIMESTAMPTZ_NS": 1, "TIME_NS": 1}
"""Nanoseconds between neighbours, where these are no microseconds."""
KINDS = ["DATE", "TIME", "TIME_NS", *(f"TIMESTAMP{unit}" for unit in ("", "_S", "_MS", "_NS", "TZ", "TZ_NS"))]


def day_of(days: int) -> str:
    """Return the text of a day that is counted from 1970."""
    cycles = (days + 719_163) // 146_097 - 4
    day = date.fromordinal(days + 719_163 - 146_097 * cycles)
    year = day.year + 400 * cycles
    return f"{year:04d}-{day:%m-%d}" if year > 0 else f"{1 - year:04d}-{day:%m-%d} (BC)"


def moment(kind: str, at: int) -> str:
    """Return the text of a moment that is counted in nanoseconds from 1970."""
    days, rest = divmod(at, DAY)
    seconds, fraction = divmod(rest, 10**9)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:09d}"
    clock = clock if kind.endswith("_NS") else clock[:-3]
    if kind.startswith("TIME") and not kind.startswith("TIMESTAMP"):
        return clock
    return day_of(days) if kind == "DATE" else f"{day_of(days)} {clock}" + ("+00" if "TZ" in kind else "")


def reach(kind: str) -> tuple[int, int]:
    """Return the first and the last moment that a type holds."""
    if kind.startswith("TIMESTAMP"):
        return (
            (-(2**63) + 2, 2**63 - 2) if kind.endswith("_NS") else (-9_223_372_022_400_000_000_000, (2**63 - 2) * 1000)
        )
    return (-(2**31 - 2) * DAY, (2**31 - 2) * DAY) if kind == "DATE" else (0, DAY - 1)


def cells_of(connection: duckdb.DuckDBPyConnection, release: Any) -> list[tuple[Any, str]]:
    """Return what is published, as a text or as two bounds, beside what it was."""
    types = {c.name: c.type for c in release.columns}
    shown = "x::VARCHAR"
    if "x_lo" in types or types["x"].startswith("STRUCT"):
        shown = "x_lo::VARCHAR, x_hi::VARCHAR" if "x_lo" in types else "x.lo::VARCHAR, x.hi::VARCHAR"
    rows = connection.execute(f"SELECT was, {shown} FROM read_parquet('{release.path}')").fetchall()
    return [(tuple(cell) if len(cell) == 2 else cell[0], was) for was, *cell in rows]


@st.composite
def moments(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A type of dates, times or moments, and values of it as texts."""
    kind = draw(st.sampled_from(KINDS))
    least, most = reach(kind)
    years = [0, 18_321, 2_932_896, -719_162, -719_528, 47_482]
    centres = st.sampled_from([*(y * DAY for y in years), least, most])
    steps = st.sampled_from([1, 1000, 10**9, 3600 * 10**9, DAY, 7 * DAY, 31 * DAY, 366 * DAY, 3653 * DAY])
    near = st.builds(lambda c, s, n: c + s * n, centres, steps, st.integers(-3, 3))
    drawn = draw(st.lists(st.one_of(near, near, st.integers(least, most)), min_size=6, max_size=14))
    step = STEPS.get(kind, 1000)
    texts = [moment(kind, max(least, min(most, at)) // step * step) for at in drawn]
    odd = [] if kind.startswith("TIME") and not kind.startswith("TIMESTAMP") else ["infinity", "-infinity"]
    for _ in range(draw(st.integers(0, 2)) if odd else 0):
        texts[draw(st.integers(0, len(texts) - 1))] = draw(st.sampled_from(odd))
    return kind, texts


WRITTEN = ["interval", "interval", "bounds", "struct", "set", "lca"]


@pytest.mark.parametrize("algorithm", ["mondrian", "datafly"])
@given(data=st.data())
@share(0.6)
def test_every_label_covers_its_date_or_time(algorithm: str, data: st.DataObject) -> None:
    kind, values = data.draw(moments())
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        told = ", ".join(f"('{v}')" for v in values)
        connection.execute(
            f"CREATE TABLE t AS SELECT w::{kind} AS x, (w::{kind})::VARCHAR AS was FROM (VALUES {told}) v(w)"
        )
        order = [was for (was,) in connection.execute("SELECT DISTINCT ON (x) was FROM t ORDER BY x").fetchall()]
        ladder = data.draw(ladders(kind, [f"'{v}'" for v in values]))
        more: dict[str, Any] = {"suppression_limit": 0.9, "min_levels": {"x": data.draw(st.integers(0, 2))}}
        if algorithm == "mondrian":
            more = {"bounds": data.draw(st.sampled_from(["grid", "cut", "tight"]))}
            more["output"] = data.draw(st.sampled_from(WRITTEN))
        if ladder.hierarchy is not None:
            more["hierarchies"] = {"x": ladder.hierarchy}
        connection.execute(f"SET TimeZone = '{data.draw(st.sampled_from(ZONES))}'")
        try:
            release = duckanon.anonymize(
                "t",
                connection=connection,
                quasi_identifiers=["x"],
                insensitive=["was"],
                k=data.draw(st.integers(1, 3)),
                algorithm=algorithm,
                on_unknown="top",
                **more,
            )
        except (HierarchyError, InfeasibleError, ParameterError):
            return
        connection.execute("SET TimeZone = 'UTC'")
        labels = ladder.reader(kind, order)
        with release:
            for cell, was in cells_of(connection, release):
                if isinstance(cell, tuple):
                    assert between(kind, cell, was), (kind, cell, was)
                else:
                    assert labels.covers(cell, was), (kind, cell, was)
