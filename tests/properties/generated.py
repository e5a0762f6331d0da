"""Generated problems: a table, roles, hierarchies and parameters, and what must hold of every release of them."""

from __future__ import annotations

import math
import struct
from collections import Counter, defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

import duckanon
from duckanon.testing import strategies as das


@dataclass
class Problem:
    table: pa.Table
    quasi: list[str]
    sensitive: list[str]
    nobody: list[str]
    k: int
    limit: float
    entity: str | None = None
    hierarchies: dict[str, Any] = field(default_factory=dict)

    def release(self, table: pa.Table | None = None, **options: Any) -> duckanon.Release:
        return duckanon.anonymize(
            self.table if table is None else table,
            quasi_identifiers=self.quasi,
            sensitive=self.sensitive,
            entity_key=self.entity,
            k=self.k,
            suppression_limit=self.limit,
            hierarchies=self.hierarchies,
            **options,
        )


def text(value: Any) -> str:
    """The text by which a hierarchy knows a string."""
    return str(value)


@st.composite
def problems(draw: st.DrawFn, persons: bool = False, max_rows: int = 30) -> Problem:
    table = draw(das.tables(min_rows=2, max_rows=max_rows, min_columns=2, max_columns=5))
    names = table.column_names
    cut = draw(st.integers(1, len(names) - 1))
    rest = names[cut:]
    entity = None
    if persons:
        entity, rest = rest[0], rest[1:]
    half = draw(st.integers(0, len(rest)))
    hierarchies = {}
    for name in names[:cut]:
        column = table.column(name)
        if pa.types.is_string(column.type) and draw(st.booleans()):
            leaves = sorted({v for v in column.to_pylist() if v is not None}) or ["a"]
            rows = draw(das.level_rows([*leaves, *(x for x in ("absent",) if x not in leaves)]))
            hierarchies[name] = duckanon.Hierarchy.from_table(
                pa.table(
                    [pa.array(c, pa.string()) for c in zip(*rows, strict=True)],
                    names=[f"l{i}" for i in range(len(rows[0]))],
                )
            )
    return Problem(
        table,
        names[:cut],
        rest[:half],
        rest[half:],
        k=draw(st.integers(1, 5)),
        limit=draw(st.sampled_from([0.0, 0.05, 0.3, 0.9])),
        entity=entity,
        hierarchies=hierarchies,
    )


def key(value: Any) -> Hashable:
    """A value by its bytes: NaN equals itself, -0.0 is not 0.0, 1 is not True."""
    if isinstance(value, float):
        return ("float", "nan" if math.isnan(value) else struct.pack(">d", value))
    return (type(value).__name__, value)


def rows_of(table: pa.Table, names: list[str] | None = None) -> list[tuple[Hashable, ...]]:
    chosen = table.column_names if names is None else names
    return list(zip(*([key(v) for v in table.column(n).to_pylist()] for n in chosen), strict=True))


def read(release: duckanon.Release) -> pa.Table:
    """Read the file itself, without the database."""
    return pq.read_table(release.path)


def assert_sound(problem: Problem, release: duckanon.Release) -> None:
    """All that is promised of a release, counted in Python from the published file."""
    file = read(release)
    expected = [n for n in problem.table.column_names if n in problem.quasi or n in problem.sensitive]
    assert file.column_names == expected, "a column that nobody named is published, or one is missing"
    assert file.num_rows == release.rows_published
    assert release.rows_in == problem.table.num_rows
    assert release.rows_in == release.rows_published + release.rows_suppressed
    assert release.rows_suppressed <= int(problem.table.num_rows * problem.limit + 1e-9)
    assert all(check.holds for check in release.checks)
    published = Counter(rows_of(file, problem.quasi))
    assert published, "an empty release"
    mapped = recoded(problem, release)
    members = defaultdict(set)
    people = range(len(mapped)) if problem.entity is None else rows_of(problem.table, [problem.entity])
    for row, person in zip(mapped, people, strict=True):
        members[row].add(canonical_key(person))
    assert all(len(members[row]) >= problem.k for row in published), "a class has too few members"
    if problem.entity is None:
        assert min(published.values()) >= problem.k
    # Every published row is what the recoding makes of an original row, and no class is published in part.
    whole = Counter(mapped)
    assert all(whole[row] == count for row, count in published.items())
    assert all(len(members[row]) < problem.k for row in whole if row not in published)


def canonical_key(person: Any) -> Any:
    """Negative zero is zero: it is one person."""
    if isinstance(person, tuple):
        return tuple(key(0.0) if part == key(-0.0) else part for part in person)
    return person


def recoded(problem: Problem, release: duckanon.Release) -> list[tuple[Hashable, ...]]:
    """Every original row's quasi-identifiers as the recoding says that they are published."""
    columns = []
    for name in problem.quasi:
        level = release.recoding.levels[name]
        values = problem.table.column(name).to_pylist()
        if level == 0:
            columns.append([key(0.0) if isinstance(v, float) and v == 0 else key(v) for v in values])
            continue
        texts = texts_of(release, problem.table, name)
        pairs = release.recoding.mapping(name)
        mapping = dict(zip(pairs.column(0).to_pylist(), pairs.column(1).to_pylist(), strict=True))
        assert len(mapping) == pairs.num_rows, "a value has two labels"
        columns.append([key(mapping[t]) for t in texts])
    return list(zip(*columns, strict=True))


def texts_of(release: duckanon.Release, table: pa.Table, name: str) -> list[str | None]:
    """Return a column's values as the database writes them, one by one and without joins."""
    import duckdb

    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        con.register("one", pa.table({"v": table.column(name), "i": range(table.num_rows)}))
        kind = con.execute("SELECT any_value(typeof(v)) FROM one").fetchone()[0]
        value = f"v + 0::{kind}" if kind in ("FLOAT", "DOUBLE") else "v"
        return [t for (t,) in con.execute(f"SELECT ({value})::VARCHAR FROM one ORDER BY i").fetchall()]
