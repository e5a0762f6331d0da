"""Datafly: the path, the stop rules, what is infeasible."""

from __future__ import annotations

import pyarrow as pa
import pytest

import duckanon
from duckanon.algorithms import Datafly
from duckanon.algorithms.full_domain.datafly import datafly_path
from duckanon.errors import InfeasibleError, ParameterError
from duckanon.models import KAnonymity


@pytest.mark.parametrize(
    ("sizes", "path"),
    [
        ([(1, 1)], [(0,), (1,)]),
        ([(2, 1), (4, 3, 1)], [(0, 0), (0, 1), (0, 2), (1, 2)]),
        ([(3, 1), (3, 1)], [(0, 0), (1, 0), (1, 1)]),
        ([(2, 2, 1), (2, 1)], [(0, 0), (1, 0), (2, 0), (2, 1)]),
        ([(5, 4, 1), (3, 2, 1)], [(0, 0), (1, 0), (2, 0), (2, 1), (2, 2)]),
    ],
)
def test_the_path_takes_the_widest_column_and_the_first_of_equals(sizes: list, path: list) -> None:
    assert datafly_path(sizes) == path


def test_an_unknown_stop_is_refused() -> None:
    assert Datafly().parameters() == {"stop": "limit"}
    with pytest.raises(ParameterError, match=r"'limit' or 'k'\. Got 'never'"):
        Datafly(stop="never")


@pytest.mark.parametrize(
    ("rows", "limit", "allowed"), [(100, 0.07, 7), (100, 0.0, 0), (3, 0.5, 1), (10, 1.0, 10), (30162, 0.05, 1508)]
)
def test_how_many_rows_may_go(rows: int, limit: float, allowed: int) -> None:
    assert Datafly().allowed_rows(rows, limit, (KAnonymity(5),)) == allowed
    assert Datafly(stop="k").allowed_rows(rows, limit, (KAnonymity(5),)) == 5


def solve(values: list, k: int, limit: float = 0.0, stop: str = "limit", **options: object) -> duckanon.Release:
    return duckanon.anonymize(
        pa.table({"q": values}),
        quasi_identifiers=["q"],
        k=k,
        suppression_limit=limit,
        algorithm=Datafly(stop=stop),
        **options,
    )


def test_suppression_instead_of_generalization() -> None:
    values = ["a"] * 5 + ["b"] * 5 + ["c"]
    with solve(values, 3) as release:
        assert (release.recoding.levels["q"], release.rows_suppressed) == (1, 0)
    with solve(values, 3, limit=0.1) as release:
        assert (release.recoding.levels["q"], release.rows_suppressed) == (0, 1)
    with solve(values, 3, stop="k") as release:
        assert (release.recoding.levels["q"], release.rows_suppressed) == (0, 1)


def test_exactly_the_limit_is_allowed() -> None:
    values = ["a"] * 93 + [f"x{i}" for i in range(7)]
    with solve(values, 5, limit=0.07) as release:
        assert release.rows_suppressed == 7
    with solve(values, 5, limit=0.06) as release:
        assert release.rows_suppressed == 0


@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_constant_column(k: int) -> None:
    with solve(["a"] * 5, k) as release:
        assert release.recoding.levels == {"q": 0}


def test_fewer_rows_than_k() -> None:
    with pytest.raises(InfeasibleError, match="3 rows: fewer than the 4"):
        solve(["a", "b", "c"], 4)


def test_everything_would_go() -> None:
    with pytest.raises(InfeasibleError, match="All 3 rows would be suppressed"):
        solve(["a", "b", "c"], 2, limit=1.0)


def test_too_few_persons() -> None:
    table = pa.table({"q": ["a", "b"] * 5, "p": [1, 2] * 5})
    with pytest.raises(InfeasibleError, match="10 of 10 rows are in classes of fewer than 3 persons"):
        duckanon.anonymize(table, quasi_identifiers=["q"], entity_key="p", k=3, algorithm="datafly")
