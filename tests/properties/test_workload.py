"""Answers of range queries compared with counts row by row."""

from __future__ import annotations

import math

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from reference import workload as slow

import duckanon
from duckanon.assess.utility.workload import draw

KINDS = {"a": "number", "b": "text", "c": "day"}


def made(seed: int) -> tuple[list[dict], list[dict], list[dict], list[str]]:
    """A table, its release as cells are written, the same as what they stand for, and the columns asked about."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(20, 60))
    pick = lambda values: [values[i] for i in rng.integers(0, len(values), rows)]  # noqa: E731
    a = pick([1, 2, 3, 5, 8, 13, 21, *([None] if seed % 3 == 0 else [])])
    b = pick(["red", "green", "blue", "pink", *([None] if seed % 4 == 0 else [])])
    v = pick([None, 1.5, 2.5, -4.0, 10.0])
    table = [{"a": x, "b": y, "v": z} for x, y, z in zip(a, b, v, strict=True)]
    domain = {"a": {r["a"] for r in table}, "b": {r["b"] for r in table}}
    written, meant = [], []
    for row in table:
        if rng.random() < 0.1:
            continue
        (ca, ma), (cb, mb) = number_cell(row["a"], domain["a"], rng), text_cell(row["b"], domain["b"], rng)
        written.append({"a": ca, "b": cb, "v": row["v"]})
        meant.append({"a": ma, "b": mb, "v": row["v"]})
    return table, written, meant, ["a", "b"]


def number_cell(value, domain, rng):
    known = sorted(x for x in domain if x is not None)
    kind = rng.integers(0, 5)
    if value is None or kind == 0:
        return ("*", sorted(domain, key=str)) if value is not None or kind else (None, [None])
    if kind == 1:
        return str(value), [value]
    if kind == 2:
        return f"{value - 0.5:g}", value - 0.5
    low, high = value - int(rng.integers(0, 6)), value + int(rng.integers(0, 9))
    if kind == 3:
        return f"[{low}, {high}]", [x for x in known if low <= x <= high]
    return f"[{low}, {high + 1})", [x for x in known if low <= x < high + 1]


def text_cell(value, domain, rng):
    kind = rng.integers(0, 3)
    if kind == 0:
        return "*", list(domain)
    if kind == 1 or value is None:
        return value, [value]
    others = sorted(x for x in domain if x is not None and rng.random() < 0.5) or [value]
    members = sorted({value, *others})
    return "{" + ", ".join(members) + "}", members


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.thinned(2)
def test_answers_are_those_counted_row_by_row(seed: int) -> None:
    table, written, meant, columns = made(seed)
    domains = []
    for name in columns:
        values = {r[name] for r in table}
        known = sorted(x for x in values if x is not None)
        # Codes are in the order of the values; NULL is the last of them, and no number.
        domains.append([*known, *([None] if None in values and name == "b" else [])])
    dimensions = 1 + seed % 2
    drawn = draw([(len(domains[0]), True), (len(domains[1]), False)], 40, dimensions, 0.3, seed)
    found = duckanon.utility.queries(
        pa.Table.from_pylist(table),
        pa.Table.from_pylist(written),
        columns=columns,
        n=40,
        dimensions=dimensions,
        selectivity=0.3,
        average="v",
        seed=seed,
        sanity=0.01,
    )
    lines = {(r["query"], r["kind"]): r for r in found.to_arrow().to_pylist()}
    nothing = 0
    for q in range(40):
        query = {}
        for place, j in enumerate(drawn.columns[q]):
            ranks = range(drawn.first[q, place], drawn.last[q, place] + 1)
            query[columns[j]] = {v for v, rank in zip(domains[j], drawn.ranks[j], strict=True) if rank in ranks}
        wanted = slow.answers(table, meant, query, "v")
        count, mean = lines[q, "count"], lines[q, "average"]
        assert count["columns"] == list(query)
        assert count["actual"] == wanted["count"]
        assert count["estimate"] == pytest.approx(wanted["count_estimate"])
        error = abs(wanted["count_estimate"] - wanted["count"]) / max(wanted["count"], 0.01 * len(table))
        assert count["error"] == pytest.approx(error)
        pair = [wanted["average"], wanted["average_estimate"]]
        assert [None if math.isnan(x) else x for x in (mean["actual"], mean["estimate"])] == [
            x if x is None else pytest.approx(x) for x in pair
        ]
        nothing += None in pair
    assert found.unanswered == nothing
    assert {line["kind"]: line["queries"] for line in found.summary().to_pylist()}["count"] == 40


@pytest.mark.parametrize("algorithm", ["mondrian", "optimal"])
def test_a_release_of_ours_is_understood(algorithm: str) -> None:
    rng = np.random.default_rng(2)
    rows = 400
    table = pa.table(
        {
            "age": rng.integers(18, 80, rows),
            "day": rng.integers(19000, 19200, rows).astype("datetime64[D]"),
            "town": np.array(["Bonn", "Ulm", "Graz", "Linz"])[rng.integers(0, 4, rows)],
            "cost": rng.normal(100, 20, rows),
        }
    )
    options = {"quasi_identifiers": ["age", "day", "town"], "insensitive": ["cost"], "algorithm": algorithm}
    errors = {}
    for k in (1, 4, 40) if algorithm == "optimal" else (4, 40):
        outputs = ["interval"] if algorithm == "optimal" else ["interval", "bounds", "midpoint"]
        for output in outputs:
            form = {} if algorithm == "optimal" else {"output": {"age": output, "day": output}}
            with duckanon.anonymize(table, k=k, **options, **form) as release:
                found = duckanon.utility.queries(table, release, n=60, average="cost", seed=1)
            errors[k, output] = found.summary().to_pylist()[0]["mean"]
    assert errors[4, "interval"] < errors[40, "interval"]
    if algorithm == "optimal":
        assert errors[1, "interval"] == 0
    else:
        assert errors[4, "bounds"] == pytest.approx(errors[4, "interval"])


def test_answers_do_not_depend_on_threads() -> None:
    rng = np.random.default_rng(4)
    rows = 100_000
    age, cost = rng.integers(0, 90, rows), rng.normal(0, 1, rows) * 10.0 ** rng.integers(-9, 9, rows)
    table = pa.table({"age": age, "town": rng.integers(0, 30, rows).astype(str), "cost": cost})
    low = age // 7 * 7
    bands = [f"[{a}, {a + 6}]" for a in low.tolist()]
    released = pa.table({"age": bands, "town": table.column("town"), "cost": cost})
    found = []
    for threads in (1, 4):
        with duckdb.connect(config={"threads": threads}) as connection:
            asked = duckanon.utility.queries(
                table, released, columns=["age", "town"], n=50, average="cost", connection=connection
            )
            found.append(asked.to_arrow())
    assert found[0].equals(found[1])
    assert found[0].filter(pc.equal(found[0].column("kind"), "average")).column("error").null_count == 0


def test_what_makes_no_sense_is_refused() -> None:
    table = pa.table({"a": [1, 2], "b": ["x", "y"]})
    for wrong in ({"n": 0}, {"dimensions": 0}, {"selectivity": 0.0}, {"sanity": 2}, {"average": "b"}):
        with pytest.raises(duckanon.errors.ParameterError):
            duckanon.utility.queries(table, table, columns=["a"], **wrong)
    with pytest.raises(duckanon.errors.RoleError):
        duckanon.utility.queries(table, table)
    with pytest.raises(duckanon.errors.RoleError):
        duckanon.utility.queries(table, table, columns=["a"], average="z")
    with pytest.raises(duckanon.errors.DataError):
        duckanon.utility.queries(table.slice(0, 0), table.slice(0, 0), columns=["a"])
