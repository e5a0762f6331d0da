"""Whatever is published of a region holds for every row in it."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import duckanon
from tests.effort import share

BEGIN = dt.date(2020, 1, 1)
NUMBER = st.none() | st.integers(-30, 30)
ROW = st.tuples(NUMBER, st.none() | st.integers(0, 800), st.none() | st.sampled_from("abcd"), NUMBER)


def table_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table(
        {
            "n": pa.array([row[0] for row in rows], pa.int32()),
            "d": pa.array([None if row[1] is None else BEGIN + dt.timedelta(days=row[1]) for row in rows], pa.date32()),
            "t": pa.array([row[2] for row in rows], pa.string()),
            "f": pa.array([None if row[3] is None else row[3] / 4 for row in rows], pa.float64()),
            "row": list(range(len(rows))),
        }
    )


def read(text: str, kind: str) -> Any:
    return {"n": int, "d": dt.date.fromisoformat, "f": float, "t": str}[kind](text)


def holds(shown: str | None, value: Any, kind: str) -> bool:
    """Say whether a value can be what is published as an interval."""
    if shown is None:
        return value is None
    if shown == "*":
        return True
    if value is None:
        return False
    for sign, test in (("<= ", lambda a: value <= a), (">= ", lambda a: value >= a), ("< ", lambda a: value < a)):
        if shown.startswith(sign):
            return bool(test(read(shown.removeprefix(sign), kind)))
    if shown.startswith("[") and ", " in shown:
        low, high = (read(end, kind) for end in shown[1:-1].split(", "))
        return bool(low <= value < high if shown.endswith(")") else low <= value <= high)
    if shown.startswith("{"):
        return str(value) in shown[1:-1].split(", ")
    return shown.startswith("group ") or read(shown, kind) == value


@share(1 / 4)
@given(
    rows=st.lists(ROW, min_size=4, max_size=40),
    k=st.integers(1, 4),
    bounds=st.sampled_from(["grid", "cut", "tight"]),
    output=st.sampled_from(["interval", "bounds", "struct", "midpoint", "mean", "set"]),
    relaxed=st.booleans(),
)
def test_every_value_is_where_it_is_said_to_be(
    rows: list[tuple[Any, ...]], k: int, bounds: str, output: str, relaxed: bool
) -> None:
    data = table_of(rows)
    known = {row["row"]: row for row in data.to_pylist()}
    names = ["n", "d", "t", "f"]
    options = {"algorithm": f"mondrian(relaxed={relaxed})", "bounds": bounds, "output": output}
    with duckanon.anonymize(data, quasi_identifiers=names, insensitive=["row"], k=k, **options) as release:
        published = release.to_arrow().to_pylist()
        assert len(release.classes()) == release.summary()["found"]["classes"]
    assert sorted(row["row"] for row in published) == sorted(known)
    members: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in published:
        key = tuple(str(value) for name, value in row.items() if name != "row")
        members.setdefault(key, []).append(known[row["row"]])
    for row in published:
        own = known[row["row"]]
        key = tuple(str(value) for name, value in row.items() if name != "row")
        for name in names:
            values = [member[name] for member in members[key]]
            if name == "t" or output == "interval":
                assert holds(None if row[name] is None else str(row[name]), own[name], name)
            elif output == "set":
                shown = None if row[name] is None else str(row[name])
                assert holds(shown, own[name], name)
                if shown is not None and shown.startswith("{") and bounds == "tight":
                    assert {str(v) for v in values} == set(shown[1:-1].split(", "))
            elif output in ("bounds", "struct"):
                ends = (row[f"{name}_lo"], row[f"{name}_hi"]) if output == "bounds" else tuple(row[name].values())
                low, high = ends
                if own[name] is None:
                    assert ends == (None, None)
                assert own[name] is None or low is None or low <= own[name]
                assert own[name] is None or high is None or own[name] <= high
                if bounds == "tight" and None not in values:
                    assert ends == (min(values), max(values))
            elif None in values:
                assert row[name] is None
            elif name == "n" and output == "mean":
                assert abs(row[name] - sum(values) / len(values)) < 1e-9
            else:
                assert row[name] is not None
