"""NCP of what is published, read from the published file by a slow reference, for all bounds and output forms."""

from __future__ import annotations

import random
import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties.test_numbers_along_hierarchies import hierarchy, random_lines

import duckanon
from duckanon import Hierarchy
from tests.effort import share

ALGORITHMS = ("mondrian", "mondrian(relaxed=true)", "mdav", "greedy", "k_member", "kaca")
READABLE = ("interval", "bounds", "struct")
BESIDE = ("midpoint", "mean", "median", "medoid", "mode", "set")
"""What does not show bounds has the loss of the regions that it is published of."""
NUMBER = r"(-?[0-9.]+)"
FORMS = {
    rf"\[{NUMBER}, {NUMBER}[\])]": lambda a, b: (a, b),
    rf"(?:<|<=) {NUMBER}": lambda b: (None, b),
    rf">= {NUMBER}": lambda a: (a, None),
    NUMBER: lambda a: (a, a),
    r"\*": lambda: (None, None),
}


def ends_of(cell: str) -> tuple[float | None, float | None]:
    for pattern, ends in FORMS.items():
        match = re.fullmatch(pattern, cell)
        if match is not None:
            return ends(*(float(x) for x in match.groups()))
    raise AssertionError("an interval of another form")


def width(ends: tuple[float | None, float | None], low: float, high: float) -> float:
    """The share of the range from low to high that lies between two ends; what is open goes on to its end."""
    a, b = (low if ends[0] is None else ends[0]), (high if ends[1] is None else ends[1])
    return (min(b, high) - max(a, low)) / (high - low) if high > low else 0.0


def measured(release: duckanon.Release, column: str) -> tuple[float, float]:
    found = {(m.metric, m.attribute): m.value for m in release.measure(["ncp", "gcp"])}
    return found["ncp", column], found["gcp", column]


@share(1 / 2)
@given(seed=st.integers(0, 2**32))
def test_ncp_is_that_of_the_published_cells(seed: int, connection: Any) -> None:
    rng = random.Random(seed)
    n = rng.randint(2, 40)
    missing = rng.choice([0.0, 0.0, 0.2])
    lines = random_lines(rng)
    leaves = [int(line[0]) for line in lines]
    values = [None if rng.random() < missing else rng.choice(leaves) for _ in range(n)]
    known = [v for v in values if v is not None]
    algorithm = rng.choice(ALGORITHMS)
    bounds = rng.choice(["grid", "tight", *(["cut"] if "mondrian" in algorithm else [])])
    form = rng.choice([*READABLE, *BESIDE, "lca"])
    kind = rng.choice([pa.int64(), pa.float64()])
    rule: Any = Hierarchy.intervals(width=rng.choice([3, 5]), factors=[2, 2]) if rng.random() < 0.7 else None
    if form == "lca":
        rule, kind = hierarchy(lines), pa.int64()
    given_: dict[str, Any] = {
        "data": pa.table({"x": pa.array(values, kind)}),
        "quasi_identifiers": ["x"],
        "hierarchies": {} if rule is None else {"x": rule},
        "k": min(n, rng.randint(1, 6)),
        "algorithm": algorithm,
        "bounds": bounds,
        "seed": 1,
        "connection": connection,
    }
    with duckanon.anonymize(**given_, output=form) as release:
        ncp, gcp = measured(release, "x")
        file = release.to_arrow()
        if algorithm in ("mondrian", "greedy"):
            vector = duckanon.comparison.vectors(release, ["ncp"]).column("ncp").to_pylist()
            assert sum(vector) == pytest.approx(ncp)
    assert gcp == pytest.approx(ncp / n)
    if not known or len({*values}) < 2:
        assert ncp == 0
        return
    if form in BESIDE:
        with duckanon.anonymize(**given_, output="interval") as release:
            assert (ncp, gcp) == pytest.approx(measured(release, "x"))
        return
    low, high = float(min(known)), float(max(known))
    total = 0.0
    if form == "lca":
        domain = len(lines) + (None in values)
        for cell in file.column("x").to_pylist():
            shown = None if cell is None else str(cell)
            under = {line[0] for line in lines if shown in line} if shown != "*" else set(range(domain))
            total += len(under) / domain if len(under) > 1 else 0.0
    elif form == "interval":
        for cell in file.column("x").to_pylist():
            if cell is not None and low < high:
                total += width(ends_of(str(cell)), low, high) if cell != "*" else 1.0
    else:
        rows = file.to_pylist() if form == "bounds" else [row["x"] for row in file.to_pylist()]
        names = ("x_lo", "x_hi") if form == "bounds" else ("lo", "hi")
        pairs = [(row[names[0]], row[names[1]]) if row is not None else (None, None) for row in rows]
        # Without a bound at either end a cell is NULL or anything: the file does not say which.
        if (None, None) in pairs:
            return
        total = sum(width(pair, low, high) for pair in pairs)
    assert ncp == pytest.approx(total, abs=1e-9)
