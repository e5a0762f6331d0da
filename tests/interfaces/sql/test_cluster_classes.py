"""``mdav_classes(list, k)`` and ``tdg_classes(list, k)``: clusters of the members of every group."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pytest
from reference.mdav import mdav
from reference.space import Line, Space
from reference.tdg import tdg

import duckanon

Con = duckdb.DuckDBPyConnection
GRAIN = 2.0**26


@pytest.fixture
def con() -> Any:
    with duckdb.connect() as connection:
        duckanon.install(connection)
        yield connection


def rounded(values: np.ndarray) -> np.ndarray:
    return np.rint(values * GRAIN) / GRAIN


def line(values: list[float | None], standardised: bool) -> Line:
    known = np.array([v for v in values if v is not None], dtype=np.float64)
    if standardised:
        unit = (known - known.min()) / np.ptp(known)
        scaled = rounded((unit - unit.mean()) / unit.std())
    else:
        scaled = rounded((known - known.min()) / np.ptp(known))
    left = iter(scaled.tolist())
    return Line([None if v is None else next(left) for v in values], float(np.ptp(scaled)))


def together(numbers: list[int]) -> set[frozenset[int]]:
    return {frozenset(i for i, n in enumerate(numbers) if n == c) for c in set(numbers)}


@pytest.mark.parametrize("function", ["mdav_classes", "tdg_classes"])
@pytest.mark.parametrize("missing", [False, True])
def test_groups_have_the_clusters_of_the_reference(con: Con, function: str, missing: bool) -> None:
    rng = np.random.default_rng(3)
    for turn in range(6):
        k = 2 + turn % 3
        lists = []
        for _ in range(3):
            drawn = rng.integers(0, 30, (40, 2)).tolist()
            rows = {(None if missing and (a + b) % 9 == 0 else float(a), float(b)) for a, b in drawn}
            # Members in the order of their values, which is the order in which ties are broken.
            ordered = sorted(rows, key=lambda r: (r[0] is None, r[0] or 0.0, r[1]))
            lists.append([{"a": a, "b": b} for a, b in ordered])
        answer = con.execute(
            f"SELECT {function}(m, $k) FROM (SELECT unnest($lists) AS m)", {"lists": lists, "k": k}
        ).fetchall()
        for members, (found,) in zip(lists, answer, strict=True):
            standardised = function == "mdav_classes"
            columns = [line([m[c] for m in members], standardised) for c in "ab"]
            space = Space(columns, norm="squares" if standardised else "sum")
            expected = mdav(space, k) if standardised else tdg(space, k, 0)
            assert together(found) == {frozenset(cluster) for cluster in expected}


@pytest.mark.parametrize("function", ["mdav_classes", "tdg_classes"])
def test_what_has_too_few_members_has_no_classes(con: Con, function: str) -> None:
    query = f"SELECT {function}([1, 2, 3, 4], 2), {function}([1], 2), {function}([]::INTEGER[], 2), {function}(NULL, 2)"
    whole, few, none, null = con.execute(query).fetchone() or ()
    assert together(whole) == {frozenset({0, 1}), frozenset({2, 3})}
    assert (few, none, null) == ([None], [], None)


@pytest.mark.parametrize("function", ["mdav_classes", "tdg_classes"])
def test_the_order_of_members_does_not_matter(con: Con, function: str) -> None:
    con.execute("CREATE TABLE t AS SELECT (i * 37) % 101 AS a, ['x', 'y', 'z'][1 + i % 3] AS b FROM range(90) r(i)")
    found = [
        con.execute(
            f"SELECT m.a, m.b, c FROM (SELECT unnest(l) AS m, unnest({function}(l, 4)) AS c "
            f"FROM (SELECT list({{'a': a, 'b': b}} ORDER BY {order}) AS l FROM t)) ORDER BY ALL"
        ).fetchall()
        for order in ("a, b", "b DESC, a")
    ]
    assert found[0] == found[1]
    sizes = np.bincount([c for *_, c in found[0]])[1:]
    assert sizes.min() >= 4


@pytest.mark.parametrize("function", ["mdav_classes", "tdg_classes"])
@pytest.mark.parametrize(("members", "k", "reason"), [("[1]", "0", "k must be"), ("3", "2", "must be a list")])
def test_errors_name_the_function(shared: Con, function: str, members: str, k: str, reason: str) -> None:
    with pytest.raises(duckdb.Error, match=f"{function}: .*{reason}"):
        shared.execute(f"SELECT {function}({members}, {k})")
