"""What is published of a number covers it: all types, their extremes, and intervals of any width."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from math import inf, isinf, isnan
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import duckanon
from duckanon import Hierarchy
from duckanon.errors import HierarchyError, InfeasibleError
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


def covers(cell: str, value: str) -> bool:
    """Say whether a published cell is true of a value, both as texts."""
    if cell == "*":
        return True
    with localcontext(EXACT):
        own = place(value)
        if cell.startswith(">= "):
            return own >= place(cell[3:])
        if cell.startswith("<= "):
            return own <= place(cell[3:])
        if cell.startswith("< "):
            return own < place(cell[2:])
        if cell.startswith("["):
            low, high = (place(end) for end in cell[1:-1].split(", "))
            return low <= own <= high and (own < high or cell.endswith("]"))
        return place(cell) == own


def place(number: str) -> tuple[bool, Decimal]:
    """Return where a number stands in the order of the database, in which nan is above all others."""
    return (True, Decimal(0)) if number == "nan" else (False, Decimal(number))


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
                    assert covers(str(row["x"]), row["was"]), (kind, row)
