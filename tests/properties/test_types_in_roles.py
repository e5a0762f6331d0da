"""Every type in every role: an honest release is true, keeps what it promises, and is the same wherever it is written.

What is published is read by a plain reader of its texts and counted again row by row; or a clear error says why not.
"""

from __future__ import annotations

import contextlib
import math
import struct
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from columns_drawn import VALUES, Labels, Ladder, between, ladders
from hypothesis import given
from hypothesis import strategies as st
from reference.csv_text import rows_of
from reference.labels import family, place

import duckanon
from duckanon.errors import DuckanonError, EngineError, PrivacyViolation
from duckanon.io.sinks.files import CsvFile, ParquetFile
from duckanon.io.sinks.tables import DuckDBTable
from tests.effort import share

ROLES = [*["quasi_identifiers"] * 4, "sensitive", "insensitive", "entity_key", "identifiers", "within"]
REGIONS = ["mondrian", "mondrian", "mdav", "k_member", "tdg", "v_mdav", "knn_clustering", "kaca", "greedy"]
ALGORITHMS = ["datafly", "optimal", "ola", *REGIONS, "probabilistic"]
WRITTEN = ["interval", "interval", "interval", "bounds", "struct", "mean", "median", "geometric_mean", "mode", "medoid"]
WRITTEN += ["set", "lca", "midpoint", "proportional"]
PERSONS = ["'ann'", "'bob'", "'cid'", "'dan'", "''", "NULL"]
SOURCES = ["duckdb", "arrow", "parquet", "csv", "polars", "pandas"]
OUTPUTS = ["parquet", "csv", "table"]


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(list(VALUES)))
    cell = st.sampled_from([*VALUES[kind], *VALUES[kind], "NULL"])
    cells = draw(st.lists(cell, min_size=6, max_size=18))
    role, algorithm = draw(st.sampled_from(ROLES)), draw(st.sampled_from(ALGORITHMS))
    recoded = role == "quasi_identifiers"
    persons = role not in ("entity_key", "within") and draw(st.booleans())
    return {
        "kind": kind,
        "cells": cells,
        "persons": [draw(st.sampled_from(PERSONS)) for _ in cells] if persons else None,
        "role": role,
        "algorithm": algorithm,
        "source": draw(st.sampled_from(SOURCES)),
        "output": draw(st.sampled_from(OUTPUTS)),
        "bounds": draw(st.sampled_from(["grid", "cut", "tight"] if algorithm == "mondrian" else ["grid", "tight"])),
        "written": draw(st.sampled_from(WRITTEN)),
        "ladder": draw(ladders(kind, cells)) if recoded else Ladder(None),
        "on_unknown": draw(st.sampled_from(["error", "top"])) if recoded else "error",
        "iterative": algorithm in ("datafly", "optimal") and draw(st.booleans()),
        "promise": draw(st.sampled_from([{"k": 2}, {"k": 3}, {"k": 2, "l": 2}])),
    }


def source_of(case: dict[str, Any], connection: duckdb.DuckDBPyConnection, folder: Path) -> Any:
    """Create the table ``t(x, y, i, e)`` and return the source that holds it in some form."""
    persons = case["persons"] or ["'nobody'"] * len(case["cells"])
    rows = ", ".join(
        f"(({cell})::{case['kind']}, {i % 3 + 1}, {i}, {who})"
        for i, (cell, who) in enumerate(zip(case["cells"], persons, strict=True))
    )
    connection.execute(f"CREATE TABLE t AS SELECT * FROM (VALUES {rows}) AS v(x, y, i, e)")
    # polars panics where it meets months, days and nanoseconds.
    if case["source"] == "duckdb" or (case["source"] == "polars" and "INTERVAL" in case["kind"]):
        return "t"
    if case["source"] in ("parquet", "csv"):
        path = folder / f"in.{case['source']}"
        quoted = ", FORCE_QUOTE *" if case["source"] == "csv" else ""
        connection.execute(f"COPY t TO '{path}' (FORMAT {case['source']}{quoted})")
        return path
    rows = connection.sql("FROM t").to_arrow_table()
    if case["source"] == "arrow":
        return rows
    if case["source"] == "pandas":
        return rows.to_pandas()
    import polars

    return polars.from_arrow(rows)


@dataclass(frozen=True)
class Source:
    """The rows as they were, by ``i``, as texts, and the type of ``x`` with its texts in the order of the values."""

    kind: str
    values: dict[str, str | None]
    persons: dict[str, str | None]
    order: list[str]


def read_source(connection: duckdb.DuckDBPyConnection, data: Any) -> Source:
    """Read the source in its own form."""
    if isinstance(data, Path):
        rows = f"read_{data.suffix[1:]}('{data}')"
    elif isinstance(data, str):
        rows = data
    else:
        library = type(data).__module__.split(".")[0]
        data = with_integers(data) if library == "pandas" else data
        table = pa.Table.from_pandas(data) if library == "pandas" else data if library == "pyarrow" else data.to_arrow()
        connection.register("given", table)
        rows = "given"
    # Read first, then cast: a cast right over a CSV file is read as if the column were text.
    connection.execute(f"CREATE TEMP TABLE read AS SELECT * FROM {rows}")
    found = connection.execute("SELECT x::VARCHAR, i::VARCHAR, e::VARCHAR FROM read").fetchall()
    (kind,) = connection.execute("SELECT typeof(x) FROM read LIMIT 1").fetchone() or ("",)
    ordered = connection.execute("SELECT x::VARCHAR FROM read WHERE x IS NOT NULL ORDER BY x").fetchall()
    order = list(dict.fromkeys(x for (x,) in ordered))
    return Source(kind, {i: x for x, i, _ in found}, {i: e for _, i, e in found}, order)


def with_integers(frame: Any) -> Any:
    """Return a frame whose integers that a missing value made floats are integers, by the rules of pandas itself."""
    for name in frame.columns:
        column = frame[name]
        if (
            not isinstance(column.dtype, np.dtype)
            or column.dtype.kind != "f"
            or not column.isna().any()
            or not column.abs().max() < 2**53
        ):
            continue
        # pandas refuses where a value is not whole.
        with contextlib.suppress(TypeError):
            frame = frame.assign(**{name: column.astype("Int64")})
    return frame


def plain(value: str | None) -> str | None:
    """Return a text as both sides write it: zero has no sign, and the session is in UTC."""
    return "0.0" if value == "-0.0" else value.removesuffix("+00") if value else value


def same_person(value: str | None) -> str | None:
    """Return what tells persons apart; nested zeros have no sign either, and rows of nobody are one more person."""
    return None if value is None else str(plain(value)).replace("-0.0", "0.0")


def asked(case: dict[str, Any]) -> dict[str, Any]:
    """Return what is asked for."""
    wanted: dict[str, Any] = {"quasi_identifiers": ["y"], "insensitive": ["i"], **case["promise"]}
    role = case["role"]
    if "l" in wanted and role != "sensitive":
        wanted["sensitive"] = ["i"]
        wanted["insensitive"] = []
    if role == "entity_key":
        wanted["entity_key"] = "x"
    elif role == "within":
        wanted["within"] = ["x"]
    else:
        wanted[role] = [*wanted.get(role, []), "x"]
    if case["persons"]:
        wanted["entity_key"] = "e"
    if case["ladder"].hierarchy is not None:
        wanted |= {"hierarchies": {"x": case["ladder"].hierarchy}, "on_unknown": case["on_unknown"]}
    if case["algorithm"] in REGIONS:
        return wanted | {"bounds": case["bounds"], "output": case["written"]}
    if case["written"] == "proportional" and case["algorithm"] != "probabilistic":
        wanted["output"] = "proportional"
    if case["iterative"]:
        wanted["iterative"] = True
    return wanted | {"suppression_limit": 0.5}


def check(case: dict[str, Any], folder: Path) -> None:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        try:
            data = source_of(case, connection, folder)
        except Exception:
            return
        try:
            release = duckanon.anonymize(data, connection=connection, algorithm=case["algorithm"], **asked(case))
        except (EngineError, PrivacyViolation):
            # Neither is an answer: the database met what it cannot do, or what is true and kept was refused.
            raise
        except DuckanonError:
            return
        with release:
            source = read_source(connection, data)
            rows = published(connection, release)
            require_kept(case, source, rows, release)
            require_true(case, source, rows, release)
            require_written_alike(case, connection, release, folder)


@dataclass(frozen=True)
class Row:
    """A published row: its texts by column, and what is written of ``x`` where that is a bound, bounds or shares."""

    texts: dict[str, str | None]
    parts: tuple[Any, ...]

    @property
    def i(self) -> str:
        return str(self.texts["i"])


def published(connection: duckdb.DuckDBPyConnection, release: Any) -> list[Row]:
    names, types = [c.name for c in release.columns], {c.name: c.type for c in release.columns}
    columns = [f'"{n}"::VARCHAR' for n in names]
    parts = ["NULL"]
    if types.get("x", "").startswith("STRUCT(lo"):
        parts = ["x.lo::VARCHAR", "x.hi::VARCHAR"]
    elif types.get("x", "").startswith("MAP("):
        parts = ["map_keys(x)::VARCHAR[]", "map_values(x)"]
    elif "x_lo" in names:
        parts = ["x_lo::VARCHAR", "x_hi::VARCHAR"]
    query = f"SELECT {', '.join([*columns, *parts])} FROM read_parquet('{release.path}')"
    found = connection.execute(query).fetchall()
    return [Row(dict(zip(names, row, strict=False)), row[len(names) :]) for row in found]


def classes_of(case: dict[str, Any], rows: Iterable[Row]) -> list[list[Row]]:
    """Return the classes as a reader sees them: rows that are alike in all that was recoded."""
    aside = {"i", *(["x"] if case["role"] in ("sensitive", "insensitive") else [])}
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(v for n, v in row.texts.items() if n not in aside)].append(row)
    return list(found.values())


def require_kept(case: dict[str, Any], source: Source, rows: Sequence[Row], release: Any) -> None:
    """Count the promise again."""
    assert len(rows) == release.rows_published
    assert release.rows_published + release.rows_suppressed == len(case["cells"])
    assert len({row.i for row in rows}) == len(rows)
    assert {row.i for row in rows} <= set(source.values)
    assert not {"e", *(["x"] if case["role"] in ("entity_key", "identifiers") else [])} & set(
        rows[0].texts if rows else ()
    )
    if case["algorithm"] == "probabilistic":
        return
    persons = source.values if case["role"] == "entity_key" else source.persons if case["persons"] else None
    if persons is source.values and source.kind.startswith(("UNION", "VARIANT")):
        return  # Different values of these types have one text.
    for own in classes_of(case, rows):
        units = {row.i if persons is None else same_person(persons[row.i]) for row in own}
        assert len(units) >= case["promise"]["k"], (case["kind"], len(own), len(units))
        if "l" in case["promise"] and case["role"] == "sensitive":
            assert len({plain(row.texts["x"]) for row in own}) >= case["promise"]["l"]


def require_true(case: dict[str, Any], source: Source, rows: Sequence[Row], release: Any) -> None:
    """Compare what is published of x with what it was."""
    if case["role"] in ("sensitive", "insensitive", "within"):
        for row in rows:
            assert plain(row.texts["x"]) == plain(source.values[row.i]), case["kind"]
    if case["role"] != "quasi_identifiers":
        return
    if case["algorithm"] == "probabilistic":
        before = Counter(plain(source.values[row.i]) for row in rows)
        assert Counter(plain(row.texts["x"]) for row in rows) == before, case["kind"]
        return
    labels = case["ladder"].reader(source.kind, source.order)
    written = release.described().get("output", {}).get("x", "interval")
    if written in ("interval", "set", "lca"):
        for row in rows:
            was = source.values[row.i]
            assert labels.covers(plain(row.texts["x"]), plain(was)), (source.kind, row.texts["x"], was)
    elif written in ("bounds", "struct"):
        for row in rows:
            assert between(source.kind, row.parts, source.values[row.i]), (source.kind, row.parts, row.i)
    else:
        for own in classes_of(case, rows):
            values = [source.values[row.i] for row in own]
            assert by_class(written, source.kind, labels, own[0], values), (written, source.kind, own[0].parts, values)


def by_class(written: str, kind: str, labels: Labels, row: Row, values: Sequence[str | None]) -> bool:
    """Say whether what is published of a class as a whole is what its values give."""
    cell = plain(row.texts["x"])
    known = [str(plain(v)) for v in values if v is not None]
    if written == "proportional":
        return shares(labels, row.parts[0], row.parts[1], values)
    if written in ("mode", "medoid"):
        counted = Counter(plain(v) for v in values)
        right = [v for v, n in counted.items() if written == "medoid" or n == max(counted.values())]
        return cell in right or cell == labels.reader.top
    if len(known) < len(values):
        return cell is None or cell == labels.reader.top
    if written == "median" and family(kind) == "other":
        order = sorted(known, key=labels.reader.order.index)
        return cell in (order[(len(order) - 1) // 2], labels.reader.top)
    places = sorted(place(v, kind) for v in known)
    if written == "median":
        return cell is not None and place(cell, kind) == places[(len(places) - 1) // 2]
    finite = [exact(at, kind) for odd, at in places if not odd and math.isfinite(at)]
    if not finite and written == "midpoint" and len(set(known)) == 1:
        return cell == known[0]  # A region of one value is published as that value, be it NaN or infinite.
    if not finite or cell is None:
        return not finite and cell is None
    if family(kind) != "number":
        _, at = place(cell, kind)
        # A midpoint is within its region, which may be wider than the class.
        return written == "midpoint" or finite[0] <= at <= finite[-1]
    own, slack = float(cell), 1e-6 * (abs(float(finite[0])) + abs(float(finite[-1])))
    if written == "midpoint":
        return not math.isnan(own)
    if written == "mean":
        right = float(sum(finite) / len(finite))
    else:
        right = math.exp(sum(math.log(at) for at in finite) / len(finite))
    return abs(own - right) <= slack


def exact(at: Decimal | int, kind: str) -> Fraction:
    """Return a finite number or moment as it is; a FLOAT is not quite what its text says."""
    return Fraction(struct.unpack("f", struct.pack("f", at))[0] if kind == "FLOAT" else at)


def shares(labels: Labels, keys: list[str], values: list[float], members: Sequence[str | None]) -> bool:
    """Say whether every member is under some key, and at least as many under each as its share says."""
    if abs(sum(values) - 1) > 1e-9:
        return False
    for key, part in zip(keys, values, strict=True):
        under = sum(labels.covers(plain(key), plain(member)) for member in members)
        if under < part * len(members) - 1e-6:
            return False
    return all(any(labels.covers(plain(key), plain(member)) for key in keys) for member in members)


def require_written_alike(
    case: dict[str, Any], connection: duckdb.DuckDBPyConnection, release: Any, folder: Path
) -> None:
    """Publish the release in some form, and read it again with what knows nothing of it."""
    names = [c.name for c in release.columns]
    target = folder / {"parquet": "out.parquet", "csv": "out.csv", "table": "out.duckdb"}[case["output"]]
    sink = {
        "parquet": lambda: ParquetFile(target),
        "csv": lambda: CsvFile(target),
        "table": lambda: DuckDBTable(target, "released", folder),
    }[case["output"]]()
    try:
        sink.publish(release, reports={}, run={})
    except PrivacyViolation as error:
        # Readers of CSV take values for one: nothing else may be refused here.
        if "readers of CSV" not in str(error):
            raise
        return
    listed = ", ".join(f'"{n}"::VARCHAR' for n in names)
    released = connection.execute(f"SELECT {listed} FROM read_parquet('{release.path}')").fetchall()
    if case["output"] == "csv":
        header, *found = rows_of(target.read_bytes().decode())
        assert header == names
    elif case["output"] == "table":
        connection.execute(f"ATTACH '{target}' AS written (READ_ONLY)")
        found = connection.execute(f"SELECT {listed} FROM written.released").fetchall()
    else:
        found = connection.execute(f"SELECT {listed} FROM read_parquet('{target}')").fetchall()
    assert Counter(map(tuple, found)) == Counter(released), (case["kind"], case["output"])


@given(case=cases())
@share(0.6)
def test_every_type_in_every_role(case: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(case, Path(folder))
