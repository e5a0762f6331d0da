"""SSE and SSE/SST of releases on levels, in passes and in regions, made again from their rows."""

from __future__ import annotations

import datetime as dt
import random
from collections import defaultdict
from statistics import fmean
from typing import Any

import pyarrow as pa
import pytest

import duckanon

_RNG = random.Random(6)
PEOPLE = pa.table(
    {
        "age": [_RNG.choice([None, *range(20, 60)]) for _ in range(120)],
        "born": [dt.date(2000, 1, 1) + dt.timedelta(_RNG.randint(0, 900)) for _ in range(120)],
        "town": [_RNG.choice("abcdef") for _ in range(120)],
        "row": list(range(120)),
    }
)
QUASI = ["age", "born", "town"]
AGES = duckanon.Hierarchy.intervals(width=5, factors=[2, 2])


def squares(published: pa.Table) -> tuple[float, float]:
    """SSE and SST of age and born, a row that is not published being as far as from the mean of the table."""
    groups: dict[str, list[int]] = defaultdict(list)
    for row in published.to_pylist():
        groups[str([value for name, value in row.items() if name != "row"])].append(row["row"])
    sse = sst = 0.0
    for name in ("age", "born"):
        column = [v.toordinal() if isinstance(v, dt.date) else v for v in PEOPLE.column(name).to_pylist()]
        known = [v for v in column if v is not None]
        mean = fmean(known)
        variance = fmean((v - mean) ** 2 for v in known)
        centre = dict.fromkeys(range(len(column)), mean)
        for rows in groups.values():
            inside = [column[r] for r in rows if column[r] is not None]
            centre |= dict.fromkeys(rows, fmean(inside) if inside else mean)
        sse += sum((v - centre[r]) ** 2 for r, v in enumerate(column) if v is not None) / variance
        sst += len(known)
    return sse, sst


@pytest.mark.parametrize(
    "options",
    [
        {"algorithm": "datafly", "suppression_limit": 0.3},
        {"algorithm": "datafly", "suppression_limit": 0.3, "iterative": True},
        {"levels": {"town": 1, "age": 2, "born": 3}, "suppression_limit": 1.0},
        {"algorithm": "mondrian"},
        {"algorithm": "mondrian", "output": "mean", "bounds": "tight"},
        {"algorithm": "mondrian(relaxed=True)", "within": ["town"], "suppression_limit": 0.2},
    ],
)
@pytest.mark.thinned(2)
def test_every_release_is_measured(options: dict[str, Any]) -> None:
    given = {"quasi_identifiers": QUASI, "insensitive": ["row"], "k": 4, "hierarchies": {"age": AGES}}
    with duckanon.anonymize(PEOPLE, **given, **options) as release:
        found = {(m.metric, m.attribute): m for m in release.measure(["sse", "sse_ratio"])}
        sse, sst = squares(release.to_arrow())
    assert set(found) == {(m, a) for m in ("sse", "sse_ratio") for a in (None, "age", "born")}
    assert 0 < sse <= sst
    assert found["sse", None].value == pytest.approx(sse)
    assert found["sse", None].normalised == pytest.approx(sse / sst)
    assert found["sse_ratio", None].value == pytest.approx(sse / sst)


def test_a_table_that_somebody_else_made_in_sql() -> None:
    with duckanon.connect() as connection:
        connection.execute("CREATE TABLE people AS SELECT unnest([1, 3, 10, 14]) AS a")
        connection.execute("CREATE TABLE released AS SELECT unnest(['1-3', '1-3', '10-14', '10-14']) AS a")
        call = "FROM information_loss('people', 'released', quasi_identifiers := ['a'], metrics := ['sse_ratio'])"
        rows = connection.execute(f"SELECT attribute, value {call} ORDER BY attribute NULLS FIRST").fetchall()
    # Means 2, 12 and 7: squares 2 + 8 of 36 + 16 + 9 + 49.
    assert rows == [(None, pytest.approx(10 / 110)), ("a", pytest.approx(10 / 110))]


def test_texts_have_no_squares() -> None:
    with duckanon.anonymize(PEOPLE, quasi_identifiers=["town"], k=4) as release:
        assert [(m.attribute, m.value) for m in release.measure(["sse_ratio"])] == [(None, None)]
