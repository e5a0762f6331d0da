"""Whatever the table, its hierarchies and its names: what is promised holds of the published file."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import numpy as np
from generated import Problem, assert_sound, problems, read, rows_of
from hypothesis import given
from hypothesis import strategies as st

import duckanon
from duckanon.engine.duckdb.engine import DuckDBEngine
from duckanon.errors import InfeasibleError
from tests.effort import share


def solved(problem: Problem, **options: object) -> duckanon.Release | None:
    """Return a release with columns on levels, or None where the promise cannot be kept."""
    try:
        return problem.release(algorithm="datafly", **options)
    except InfeasibleError:
        return None


def assert_really_infeasible(problem: Problem) -> None:
    """With everything generalized all rows are one class: that fails only if it is too small, or all may be dropped."""
    people = range(problem.table.num_rows) if problem.entity is None else rows_of(problem.table, [problem.entity])
    members = len(set(people))
    assert members < problem.k or problem.limit > 0


@share(1 / 3)
@given(problem=problems())
def test_the_published_file_keeps_the_promise(problem: Problem, connection) -> None:
    release = solved(problem, connection=connection)
    if release is None:
        assert_really_infeasible(problem)
        return
    with release:
        assert_sound(problem, release)
        assert_recounts_agree(problem, release)
        assert_plain_sql_agrees(problem, release)
        assert_within_bounds(release)


@share(1 / 3)
@given(problem=problems(persons=True))
def test_persons_are_counted_with_an_entity_key(problem: Problem, connection) -> None:
    release = solved(problem, connection=connection)
    if release is None:
        assert_really_infeasible(problem)
        return
    with release:
        assert_sound(problem, release)
        assert_plain_sql_agrees(problem, release)


def assert_plain_sql_agrees(problem: Problem, release: duckanon.Release) -> None:
    """The recoding as one statement, run without duckanon, gives the same rows."""
    with duckdb.connect(config={"threads": 1}) as plain:
        plain.execute("SET TimeZone = 'UTC'")
        plain.register("source", problem.table)
        again = plain.sql(release.recoding.to_sql()).to_arrow_table()
    released = release.to_arrow()
    assert again.column_names == released.column_names
    assert Counter(rows_of(again)) == Counter(rows_of(released))


def assert_recounts_agree(problem: Problem, release: duckanon.Release) -> None:
    """The classes counted by the database without its optimizer, in numpy, and by the gate."""
    with duckdb.connect(config={"threads": 1}) as plain:
        plain.execute("PRAGMA disable_optimizer")
        plain.read_parquet(str(release.path)).create_view("released")
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in problem.quasi)
        counts = sorted(n for (n,) in plain.execute(f"SELECT count(*) FROM released GROUP BY {quoted}").fetchall())
    rows = rows_of(read(release), problem.quasi)
    seen = {row: i for i, row in enumerate(dict.fromkeys(rows))}
    assert counts == sorted(np.bincount([seen[row] for row in rows]).tolist())
    assert counts == sorted(release.classes().column(len(problem.quasi)).to_pylist())
    assert len(counts) == release.checks[0].classes
    assert counts[0] >= problem.k


def assert_within_bounds(release: duckanon.Release) -> None:
    for found in release.measure():
        low, high = duckanon.metrics.metrics.get(found.metric).bounds
        if found.value is None:
            # There are no distances where there is no number.
            assert found.metric in ("sse", "sse_ratio")
            continue
        assert found.value >= low - 1e-9
        assert high is None or found.value <= high + 1e-9


@share(1 / 3)
@given(problem=problems(), shuffle=st.randoms(use_true_random=False))
def test_threads_and_the_order_of_the_source_leave_no_trace(problem: Problem, shuffle: random.Random) -> None:
    order = list(range(problem.table.num_rows))
    shuffle.shuffle(order)
    found = []
    for threads, table in ((1, problem.table), (2, problem.table.take(order))):
        engine = DuckDBEngine(threads=threads)
        try:
            with problem.release(table, engine=engine, seed=7, algorithm="datafly") as release:
                found.append((release.recoding.levels, rows_of(read(release)), release.path.read_bytes()))
        except InfeasibleError:
            found.append(None)
        finally:
            engine.close()
    assert found[0] == found[1], "other rows, or another order"
